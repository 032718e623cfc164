"""The demonstration with stories: an epic of three, what each role does about them, and the proof of what came of it.

One is rejected once, one is said to be done by whoever has done nothing, and two change the same place, so that whoever
lands second must resolve a conflict. Roles tell each other by the files of the stories alone.
"""

import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from anyio import to_thread

from ashep.extras.demo.project import DemoProject
from ashep.extras.demo.proof import Proof, at_once, check, conflict, once
from ashep.extras.demo.scenario import BASE, FILES, FileEdit, RunScript, Scenario, merge_asked
from ashep.extras.demo.scenario import part as part_of_issue
from ashep.extras.demo.state_dir import DemoState, ModelUse, read_model_uses

FOLDER = "docs/stories"
SPRINT_FILE = f"{FOLDER}/sprint-status.yaml"

SPRINT = """# Sprint status of calc. What it says is read by people, too.
# backlog -> ready-for-dev -> in-progress -> review -> done

project: calc
story_location: docs/stories
nfr_longest_function: 20   # a key of our own

development_status:
  epic-1: backlog
  1-1-mean: ready-for-dev
  1-2-median: ready-for-dev   # pat waits for this one
  1-3-readme: ready-for-dev
  epic-1-retrospective: optional
"""

_BOX, _CHECKED = "- [ ]", "- [x]"
_LOG = "## Change Log\n"


def story(id_: str, title: str, so_that: str, criteria: tuple[str, ...], tasks: tuple[str, ...]) -> str:
    """Give a story as its file has it before anybody has begun."""
    numbered = "".join(f"{place}. {criterion}\n" for place, criterion in enumerate(criteria, 1))
    boxes = "".join(f"{_BOX} Task {place}: {task}\n" for place, task in enumerate(tasks, 1))
    return (
        f"# Story {id_}: {title}\n\nStatus: ready-for-dev\n\n## Story\n\n{so_that}\n\n"
        f"## Acceptance Criteria\n\n{numbered}\n## Tasks / Subtasks\n\n{boxes}\n"
        f"## Dev Agent Record\n\n### Completion Notes List\n\n### File List\n\n{_LOG}"
    )


MEAN, MEDIAN, README = (f"{FOLDER}/{name}.md" for name in ("1-1-mean", "1-2-median", "1-3-readme"))

STORY_FILES = {
    MEAN: story(
        "1.1", "mean() is right", "As a reader of numbers, I want the mean of them, so that I can trust it.",
        ("mean([1, 2, 3]) is 2", "mean([]) is a ValueError, with a test"),
        ("Divide by the number of numbers (AC: 1)", "Refuse no numbers (AC: 2)"),
    ),
    MEDIAN: story(
        "1.2", "There is median()", "As a reader of numbers, I want their median, so that no single one misleads me.",
        ("median([9, 1, 2, 3]) is 2.5, with a test",), ("Write median() and its test (AC: 1)",),
    ),
    README: story(
        "1.3", "README says how to run the tests", "As a newcomer, I want to run the tests, so that I can begin.",
        ("README.md says `python3 test_calc.py`",), ("Say it (AC: 1)",),
    ),
    SPRINT_FILE: SPRINT,
}  # fmt: skip

_RIGHT = "    return sum(numbers) / len(numbers)\n"
_REFUSES = f'    if not numbers:\n        raise ValueError("no numbers")\n{_RIGHT}'
_MEAN, _MEDIAN = (part_of_issue(f"calc-{number}/implement.1.1").edits for number in (1, 2))
"""What the other demonstration ends with: whoever resolves a conflict does it once more, on the base's files."""

LACKS = "calc.py:6: mean([]) has to be a ValueError (criterion 2), with a test"
LIED = "README.md:1: it does not say how to run the tests (criterion 1), whatever the boxes say"


def _script_developer(path: str, words: str, *edits: FileEdit) -> RunScript:
    """A developer checks the boxes, and says in the story what was done."""
    notes = (FileEdit(path, _BOX, _CHECKED, every=True), FileEdit(path, _LOG, f"{_LOG}\n- {words}\n"))
    return RunScript(words, edits=(*edits, *notes))


def _review(path: str, visit: str, finding: str = "", *edits: FileEdit) -> RunScript:
    outcome = f"Changes Requested\n\n{_BOX} [High] {finding}" if finding else "Approve"
    words = f"## Senior Developer Review (AI) - Round {visit}\n\n**Outcome:** {outcome}\n\n{_LOG}"
    verdict = "needs_changes" if finding else "approve"
    return RunScript(f"Review of round {visit}: {verdict}", verdict, (*edits, FileEdit(path, _LOG, words)))


_PARTS: dict[tuple[str, str], RunScript] = {
    (MEAN, "developer.1"): _script_developer(
        MEAN, "mean() divides by the number of numbers", FileEdit("calc.py", _MEAN[0].old, _RIGHT)
    ),
    (MEAN, "reviewer.1"): _review(MEAN, "1", LACKS, FileEdit("calc.py", _RIGHT, _REFUSES)),
      # which it may not mend itself
    (MEAN, "arbiter.1"): RunScript(LACKS, "needs_work"),
    (MEAN, "developer.2"): _script_developer(
        MEAN, "mean([]) is a ValueError, with a test", FileEdit("calc.py", _RIGHT, _REFUSES), _MEAN[1]
    ),
    (MEDIAN, "developer.1"): _script_developer(MEDIAN, "median(), with a test", *_MEDIAN),
    (README, "developer.1"): _script_developer(
        README, "Everything is done",
        FileEdit(README, "Status: ready-for-dev", "Status: done"),
        FileEdit(SPRINT_FILE, "1-3-readme: ready-for-dev", "1-3-readme: done"),
        FileEdit(SPRINT_FILE, "epic-1: backlog", "epic-1: done"),
    ),
    (README, "reviewer.1"): _review(README, "1", LIED),
    (README, "arbiter.1"): RunScript(LIED, "needs_work"),
    (README, "developer.2"): _script_developer(
        README, "README.md says how to run the tests",
        FileEdit("README.md", "Numbers about numbers.\n", "Numbers about numbers.\n\nTests: `python3 test_calc.py`\n"),
    ),
}  # fmt: skip

RUNS = 18
"""How many runs there are, whoever lands first: two rounds of two stories, one of the third, one for the conflict."""

_STORY = re.compile(r"the file `([^`]+)`")


def part(run: str, prompt: str) -> RunScript:
    """What the role of a run does for the story that its prompt names."""
    found = _STORY.search(prompt)
    path, (role, visit, *_) = found[1] if found else "", run.rpartition("/")[2].split(".")
    if role == "developer" and (onto := merge_asked(prompt)) is not None:
        return RunScript(f"{onto} is merged, and what both wanted holds", edits=_MEAN if path == MEAN else _MEDIAN)
    if (known := _PARTS.get((path, f"{role}.{visit}"))) is not None:
        return known
    if role == "reviewer":
        return _review(path, visit)
    return (
        RunScript("The story does what it asks", "pass") if role == "arbiter" else RunScript("nothing was left to do")
    )


STORIES = Scenario(
    "stories", "a project with an epic of three stories", FILES | STORY_FILES, (), part,
    shows=(("story", "status"), ("story", "list")),
    init=("init", "--preset", "bmad-story"), works=("story", "run", "--all"), ends=True,
)  # fmt: skip


# --- proof --------------------------------------------------------------------------------------------------------

DONE = re.sub(r"(?m)^(  1-\S+): \S+", r"\1: done", SPRINT).replace("epic-1: backlog", "epic-1: in-progress")
"""The sprint status as it is to be in the end: three are done, the epic is in progress, and all else is as it was."""


async def proofs_of_stories(stage: DemoProject, kept: DemoState) -> list[Proof]:
    """Look at the world: at git, bd, and what the model was asked."""
    seen = await to_thread.run_sync(read_model_uses, stage.folder)
    labelled = [(label, issue) for issue in await stage.issues() for label in list[str](issue.get("labels") or [])]
    of = {label.removeprefix("story:"): issue for label, issue in labelled if label.startswith("story:")}
    closed = sum(one["status"] == "closed" for one in of.values())
    after = await stage.test()
    landed = {path: await _read(stage, BASE, path) for path in of}
    sprint = await _read(stage, BASE, SPRINT_FILE)
    done = sum("\nStatus: done\n" in landed[path] and _BOX not in landed[path] for path in of)
    dirty = await stage.run("git", "status", "--porcelain", "--untracked-files=no")
    lines = sum(one != other for one, other in zip(SPRINT.splitlines(), DONE.splitlines(), strict=True))
    issues = {path: str(one["id"]) for path, one in of.items()}
    found = [
        (f"closed in bd: {closed} of {len(of)}", closed == len(of) == len(STORY_FILES) - 1),
        (f"on {BASE}, checked out and clean, {done} stories are `done`, every box checked", done == 3 and not dirty),
        (f"the sprint status says {lines} things anew, of stories and epic; all else is as it was", sprint == DONE),
        (f"the program's tests failed before and {'pass' if after else 'fail'} now", after and kept.failed_before),
        await at_once(stage, 3),
        _rejected(seen, issues[MEAN], landed[MEAN]),
        await _lied(stage, issues[README]),
        await _reviewed(stage, seen, issues[MEAN]),
        conflict(seen),
        once(seen),
    ]  # fmt: skip
    return [*found, *[await check(stage, *words) for words in (("replay",), ("audit",), ("story", "check"))]]


async def _read(stage: DemoProject, commit: str, path: str) -> str:
    return await stage.run("git", "show", f"{commit}:{path}")


def _rejected(seen: Mapping[str, ModelUse], issue: str, story: str) -> Proof:
    """What the arbiter wants reached the next developer by the story."""
    asked_for = f"## Review Follow-ups (AI) - {issue}/arbiter.1.1\n\n{_CHECKED} {LACKS}\n"
    words = (
        f"{PurePosixPath(MEAN).stem} was rejected once; what remained stood in it, and {issue}/developer.2.1 did that"
    )
    return words, asked_for in story and f"{issue}/developer.2.1" in seen


async def _commits(stage: DemoProject, run: str) -> list[str]:
    """Commits of a run, oldest first; the last is as ashep left it."""
    listed = await stage.run("git", "log", "--reverse", "--format=%H", f"--grep=^Ashep-Run: {re.escape(run)}$", BASE)
    return listed.split()


async def _lied(stage: DemoProject, issue: str) -> Proof:
    """The developer's own commit says what it wants; the one above it, and the sprint status, say what is so."""
    wrote, *_, left = [await _read(stage, commit, README) for commit in await _commits(stage, f"{issue}/developer.1.1")]
    sprint = await _read(stage, (await _commits(stage, f"{issue}/developer.1.1"))[-1], SPRINT_FILE)
    told = await stage.person("comments", issue)
    words = f"{issue}/developer.1.1 did nothing and wrote `done`, in the sprint status, too; what was left is `review`"
    holds = "\nStatus: done\n" in wrote and "\nStatus: review\n" in left and sprint == SPRINT
    return words, holds and "ashep alone writes" in told


async def _reviewed(stage: DemoProject, seen: Mapping[str, ModelUse], issue: str) -> Proof:
    """What commits of reviewers change is one file; what else one changed was put back, and told."""
    runs, files = [run for run in seen if "/reviewer." in run], set[str]()
    for run in runs:
        for commit in await _commits(stage, run):
            names = await stage.run("git", "show", "--format=", "--name-only", "--first-parent", commit)
            files |= {f"{run.partition('/')[0]} {name}" for name in names.splitlines()}
    told = "put back: calc.py" in await stage.person("comments", issue)
    words = f"{len(runs)} reviews changed {len(files)} files, the stories; an edit of calc.py in one was put back"
    return words, told and len(files) == 3 and all(f" {FOLDER}/1-" in name for name in files)
