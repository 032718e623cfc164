"""The demonstration's story: a small program with a bug, three issues, and what each agent does about them.

The issues are worked on at once, each in a work tree of its own. Two of them change the same place, so whoever lands
second must resolve a conflict; the third one's check fails at first.

It is data. The scripted model plays it through the tools of a real agent server (`ashep.extras.demo.project`), the
simulation plays it in memory (`ashep.extras.demo.simulated`).
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ashep.extras.demo.scripted_model import outcome_text

PROGRAM = '''"""Numbers about numbers."""


def mean(numbers: list[float]) -> float:
    """Give the arithmetic mean."""
    return sum(numbers) / (len(numbers) - 1)
'''

TEST = """import unittest

import calc


class Calc(unittest.TestCase):
    def test_mean_of_three(self) -> None:
        self.assertEqual(calc.mean([1, 2, 3]), 2)


if __name__ == "__main__":
    unittest.main()
"""

README = """# calc

Numbers about numbers.
"""

FILES = {"calc.py": PROGRAM, "test_calc.py": TEST, "README.md": README, ".gitignore": "__pycache__/\n"}
"""The project at the beginning; its test fails."""

TEST_PROGRAM = "test_calc.py"

BASE = "main"
"""The branch that is checked out, where work lands."""

Check = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class IssueScript:
    """An issue as the person writes it."""

    id: str
    type: Literal["bug", "feature", "chore"]
    title: str
    description: str
    checks: tuple[Check, ...]
    """What its acceptance criteria say for a machine."""
    after: str | None = None
    """The person looks at it once that issue is closed."""

    def acceptance(self, *types: str) -> str:
        """Give its acceptance criteria; with types: only checks of these."""
        checks = [check for check in self.checks if not types or check["type"] in types]
        return f"```json\n{json.dumps({'checks': checks}, indent=1)}\n```\n" if checks else ""


def _check(name: str, type_: str, description: str, **verify: object) -> Check:
    return {"id": name, "type": type_, "description": description, "verify": verify}


_MEDIAN = "import calc; assert calc.median([9, 1, 2, 3]) == 2.5"
_TESTS = f"python3 {TEST_PROGRAM}"

ISSUES = (
    IssueScript(
        "calc-1", "bug", "mean() is wrong", "mean([1, 2, 3]) gives 3. And mean([]) must be a ValueError.",
        (_check("tests", "test_pass", "the program's tests pass", command=_TESTS.split()),),
    ),
    IssueScript(
        "calc-2", "feature", "Add median()", "calc.median(numbers), with a test.",
        (
            _check("there", "file_exists", "median() is in calc.py", path="calc.py", contains=["def median("]),
            _check("median", "test_pass", "the median of four numbers", command=["python3", "-c", _MEDIAN]),
        ),
        after="calc-1",
    ),
    IssueScript(
        "calc-3", "chore", "Say how to run the tests", "README.md should say how the tests are run.",
        (_check("command", "file_exists", f"README.md has `{_TESTS}`", path="README.md", contains=[f"`{_TESTS}`"]),),
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FileEdit:
    """A change of a file: the first `old` becomes `new`."""

    path: str
    old: str
    new: str
    every: bool = False
    """Not the first alone."""


@dataclass(frozen=True, slots=True)
class RunScript:
    """What an agent does in a run: edits, a commit, a verdict."""

    summary: str
    verdict: str | None = None
    edits: tuple[FileEdit, ...] = ()
    commits: bool = True
    """Whether it commits its edits itself."""

    @property
    def message(self) -> str:
        """Its final message."""
        return outcome_text(self.verdict, summary=self.summary)


_THREE = "        self.assertEqual(calc.mean([1, 2, 3]), 2)\n"
"""Behind this both calc-1 and calc-2 add a test."""

_MEAN = "def mean(numbers: list[float]) -> float:\n"

_PARTS: dict[str, RunScript] = {
    "calc-1/implement.1.1": RunScript(
        "mean() divides by the number of numbers, and mean([]) is a ValueError, with a test",
        edits=(
            FileEdit(
                "calc.py",
                "    return sum(numbers) / (len(numbers) - 1)\n",
                '    if not numbers:\n        raise ValueError("no numbers")\n    return sum(numbers) / len(numbers)\n',
            ),
            FileEdit(
                "test_calc.py",
                _THREE,
                f"{_THREE}\n"
                "    def test_mean_of_none(self) -> None:\n"
                "        self.assertRaises(ValueError, calc.mean, [])\n",
            ),
        ),
    ),
    "calc-2/implement.1.1": RunScript(
        "median(), with a test; the test of mean() fails, which is another issue",
        edits=(
            FileEdit(
                "calc.py",
                _MEAN,
                "def median(numbers: list[float]) -> float:\n"
                '    """Give the middle number, or the mean of the two in the middle."""\n'
                "    ordered, middle = sorted(numbers), len(numbers) // 2\n"
                f"    return (ordered[middle] + ordered[-middle - 1]) / 2\n\n\n{_MEAN}",
            ),
            FileEdit(
                "test_calc.py",
                _THREE,
                f"{_THREE}\n"
                "    def test_median_of_four(self) -> None:\n"
                "        self.assertEqual(calc.median([9, 1, 2, 3]), 2.5)\n",
            ),
        ),
    ),
    "calc-3/implement.1.1": RunScript(
        "README.md says how the tests are run",
        edits=(
            FileEdit(
                "README.md", "Numbers about numbers.\n", "Numbers about numbers.\n\nTests: `python test_calc.py`\n"
            ),
        ),
        commits=False,
    ),
    "calc-3/implement.1.2": RunScript(
        "README.md has the command that the check asks for",
        edits=(FileEdit("README.md", "`python test_calc.py`", f"`{_TESTS}`"),),
        commits=False,
    ),
    "calc-3/review.1.1": RunScript("README.md:5: it does not say which Python it needs", "needs_changes"),
    "calc-3/arbitrate.1.1": RunScript("The review is right: name the version", "needs_work"),
    "calc-3/implement.2.1": RunScript(
        "README.md names the version of Python",
        edits=(FileEdit("README.md", f"`{_TESTS}`", f"`{_TESTS}`, with Python 3.11"),),
    ),
}

_OTHERS = {
    "implement": RunScript("nothing was left to do"),
    "review": RunScript("I read the change and found nothing wrong", "approve"),
    "arbitrate": RunScript("The work does what the issue asks", "pass"),
}

RUNS = 16
"""How many runs the story has, whoever lands first."""

_MERGE = re.compile(r"run `git merge (\S+)`")


def merge_asked(prompt: str) -> str | None:
    """Give the branch that a prompt asks to be merged, because the work contradicts it; else None."""
    found = _MERGE.search(prompt)
    return found[1] if found else None


def part(run: str, prompt: str = "") -> RunScript:
    """What the agent of a run does, by the run's id `<issue>/<phase>.<visit>.<attempt>` and by what it is told.

    Where its issue's work contradicts the base, it does the same once more, on the base's files.
    """
    issue, _, rest = run.partition("/")
    phase = rest.partition(".")[0]
    if phase == "implement" and (onto := merge_asked(prompt)) is not None:
        edits = _PARTS[f"{issue}/implement.1.1"].edits
        return RunScript(f"{onto} is merged, and what both wanted holds", edits=edits)
    return _PARTS.get(run) or _OTHERS.get(phase) or RunScript(f"nothing is written for {run}")


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is played: a project, what a person wants there, and what agents do about it."""

    name: str
    """Also of the model's script."""
    begins: str
    """What there is in the beginning, in words."""
    files: Mapping[str, str]
    issues: tuple[IssueScript, ...]
    part: Callable[[str, str], RunScript]
    """What the agent of a run does, by its id and its prompt."""
    shows: tuple[tuple[str, ...], ...]
    """What is asked of ashep in the end; the last answer is looked at in the proof."""
    init: tuple[str, ...] = ("init",)
    works: tuple[str, ...] = ("work",)
    ends: bool = False
    """Whether what works ends by itself; else a person stays next to it until every issue is closed."""


SHOWN = ISSUES[1].id
"""The issue whose story is shown."""

CALC = Scenario(
    "demo", "a project with a bug, three issues in bd", FILES, ISSUES, part, (("status", "--all"), ("why", SHOWN))
)
