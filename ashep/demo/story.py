"""The demonstration's story: a small program with a bug, three issues, and what each agent does about them.

It is data. The scripted model plays it through the tools of a real agent server (`ashep.demo.stage`), the simulation
plays it in memory (`ashep.demo.simulated`).
"""

from dataclasses import dataclass
from typing import Literal

from ashep.demo.model import outcome_text

PROGRAM = '''"""Numbers about numbers."""


def mean(numbers: list[float]) -> float:
    """Give the arithmetic mean."""
    return sum(numbers) / (len(numbers) - 1)
'''

TEST = """import unittest

import calc


class Mean(unittest.TestCase):
    def test_of_three(self) -> None:
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


@dataclass(frozen=True, slots=True)
class Told:
    """An issue as the person writes it."""

    id: str
    type: Literal["bug", "feature", "chore"]
    title: str
    description: str
    blocked_by: str | None = None


ISSUES = (
    Told("calc-1", "bug", "mean() is wrong", "mean([1, 2, 3]) gives 3. And mean([]) must be a ValueError."),
    Told("calc-2", "feature", "Add median()", "calc.median(numbers), with a test.", blocked_by="calc-1"),
    Told("calc-3", "chore", "Say how to run the tests", "README.md should say how the tests are run."),
)


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of a file: the first `old` becomes `new`."""

    path: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Part:
    """What an agent does in a run: edits, a commit, a verdict."""

    summary: str
    verdict: str | None = None
    edits: tuple[Edit, ...] = ()

    @property
    def message(self) -> str:
        """Its final message."""
        return outcome_text(self.verdict, summary=self.summary)


_PARTS: dict[str, Part] = {
    "calc-1/implement.1": Part(
        "mean() divides by the number of numbers",
        edits=(Edit("calc.py", "/ (len(numbers) - 1)", "/ len(numbers)"),),
    ),
    "calc-1/review.1": Part("calc.py:6: mean([]) still is a ZeroDivisionError, and no test shows it", "needs_changes"),
    "calc-1/arbitrate.1": Part("The review is right: mean([]) must be a ValueError, with a test", "needs_work"),
    "calc-1/implement.2": Part(
        "mean([]) is a ValueError, with a test",
        edits=(
            Edit(
                "calc.py",
                "    return sum(numbers)",
                '    if not numbers:\n        raise ValueError("no numbers")\n    return sum(numbers)',
            ),
            Edit(
                "test_calc.py",
                "        self.assertEqual(calc.mean([1, 2, 3]), 2)\n",
                "        self.assertEqual(calc.mean([1, 2, 3]), 2)\n\n"
                "    def test_of_none(self) -> None:\n"
                "        self.assertRaises(ValueError, calc.mean, [])\n",
            ),
        ),
    ),
    "calc-2/implement.1": Part(
        "median(), with a test",
        edits=(
            Edit(
                "calc.py",
                "    return sum(numbers) / len(numbers)\n",
                "    return sum(numbers) / len(numbers)\n\n\n"
                "def median(numbers: list[float]) -> float:\n"
                '    """Give the middle number, or the mean of the two in the middle."""\n'
                "    middle = len(numbers) // 2\n"
                "    return mean(sorted(numbers)[middle - (len(numbers) % 2 == 0) : middle + 1])\n",
            ),
            Edit(
                "test_calc.py",
                "\n\nif __name__",
                "\n\nclass Median(unittest.TestCase):\n"
                "    def test_of_four(self) -> None:\n"
                "        self.assertEqual(calc.median([9, 1, 2, 3]), 2.5)\n\n\nif __name__",
            ),
        ),
    ),
    "calc-3/implement.1": Part(
        "README.md says how the tests are run",
        edits=(
            Edit("README.md", "Numbers about numbers.\n", "Numbers about numbers. Tests: `python3 test_calc.py`\n"),
        ),
    ),
}

_OTHERS = {
    "implement": Part("nothing was left to do"),
    "review": Part("I read the change and found nothing wrong", "approve"),
    "arbitrate": Part("The work does what the issue asks", "pass"),
}


def part(run: str) -> Part:
    """What the agent of a run does, by the run's id `<issue>/<phase>.<visit>.<attempt>`."""
    visit = run.rpartition(".")[0]
    phase = visit.partition("/")[2].partition(".")[0]
    return _PARTS.get(visit) or _OTHERS.get(phase) or Part(f"nothing is written for {run}")
