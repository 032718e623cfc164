"""A month that was lived, and what is said of it under another policy, held against the recount."""

import json
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ashep.actions.replay import compare
from ashep.config import load_other
from ashep.journal.reader import nobody
from ashep.views import policy_comparison
from chaos.month.month import Month, policies
from chaos.month.recount import Counted, recount
from chaos.night.lived import same_each_time
from chaos.night.recount import records
from tests.loop_world import simulate


@dataclass
class Lived:
    """A month, when it is over."""

    project: Path
    other: Path
    told: dict[str, Any] = field(default_factory=dict[str, Any])
    counted: dict[str, Counted] = field(default_factory=dict[str, Counted])
    wrong: list[str] = field(default_factory=list[str])
    entries: int = 0
    seconds: tuple[float, float] = (0.0, 0.0)
    """What living it took, and what comparing it took."""

    @property
    def summary(self) -> str:
        """A line about it."""
        lived, compared = self.seconds
        return (
            f"{len(self.counted)} issues, {self.entries} records, lived in {lived:.0f} s, compared in "
            f"{compared:.1f} s; {len(self.wrong)} differences from the recount"
        )


def lived(project: Path, seed: int, issues: int, days: float = 30.0, docs: float = 0.3) -> Lived:
    """Live a month in a project's folder, ask `ashep replay --policy` about it, and count it again."""
    folder, began = project / ".agent-shepherd", time.monotonic()
    found = Lived(project, project / "other.yaml")

    async def scenario() -> None:
        month = Month(folder, seed, issues, days, docs)
        await month.live()
        labelled.update(name for name, issue in month.world.issues().items() if "docs" in issue.labels)

    labelled = set[str]()
    with same_each_time(seed):
        simulate(scenario)
    found.other.write_text(policies(skip=True))
    rows = list(records(folder / "state" / "journal"))
    found.entries, found.counted = len(rows), recount(rows, labelled)
    between = time.monotonic()
    found.told = json.loads(printed(project, found.other, "--last", "100000", "--json"))
    found.seconds = between - began, time.monotonic() - between
    found.wrong = differences(found.told, found.counted)
    return found


def printed(project: Path, other: Path, *more: str) -> str:
    """What the command prints."""
    words = ("-C", str(project), "replay", "--policy", str(other), *more)
    argv = (sys.executable, "-m", "ashep", *words)
    done = subprocess.run(argv, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def said(project: Path, other: Path) -> dict[str, Any]:
    """What the command would print as JSON, in this process."""
    folder = project / ".agent-shepherd"
    made, covers = compare(folder, *load_other(folder, other, None), nobody)
    return policy_comparison.as_json(made.compared(), strict=False, covers=covers)


def differences(told: dict[str, Any], counted: dict[str, Counted]) -> list[str]:
    """Say where what was told is not what was counted."""
    wrong: list[str] = []
    said = {one["issue"]: one for one in told["issues"]}
    wrong += [f"{issue} is told of by one of the two" for issue in sorted(said.keys() ^ counted.keys())]
    for issue in sorted(said.keys() & counted.keys()):
        one, other = said[issue], counted[issue]
        spread = {what: _spread(one[what]) for what in ("runs", "questions")}
        if (one["verdict"], spread["runs"], spread["questions"]) != (other.verdict, other.runs, other.questions):
            wrong.append(f"{issue} is told as {one['verdict']}, {spread}, and counted as {other}")
    sums = told["totals"]
    verdicts = Counter(one.verdict for one in counted.values())
    if verdicts != Counter({verdict: sums[verdict] for verdict in ("same", "differs", "unknown") if sums[verdict]}):
        wrong.append(f"{sums} is told, and counted are {verdicts}")
    for what in ("runs", "questions"):
        parts = [getattr(one, what) for one in counted.values()]
        if _spread(sums[what]) != tuple(sum(part) for part in zip(*parts, strict=True)):
            wrong.append(f"in sum {sums[what]} {what} are told, and counted are others")
        recorded, least, most = _spread(sums[what])
        if sums[what]["saved"] != {"least": recorded - most, "most": recorded - least}:
            wrong.append(f"of {what} {sums[what]['saved']} are saved, which is not the difference")
    return wrong


def _spread(told: dict[str, Any]) -> tuple[int, int, int]:
    return told["recorded"], told["other"]["least"], told["other"]["most"]
