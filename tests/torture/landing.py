"""Nights in which issues have work trees of their own: their work is verified and lands, while people move the base.

Everything here has dice of its own, so that nights in the shared work tree are as they were.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import anyio

from ashep.adapters.memory.landing import MemoryLanding
from ashep.adapters.memory.looking import MemoryDiffs, MemoryVerifier
from ashep.adapters.memory.workspaces import MemoryWorkspaces
from ashep.core.audit import Ledger
from ashep.core.branches import branch_of
from ashep.core.commands import IntegrateWork
from ashep.core.events import (
    DaemonStarted,
    IssueClosed,
    IssueFinished,
    IssueGivenBack,
    IssueLeft,
    IssueParked,
    JournalBegun,
    PersonAsked,
    PhaseEntered,
    TreeSealed,
    WorkConflicted,
    WorkLanded,
)
from ashep.core.evidence import Verification
from ashep.core.model import Settings
from ashep.core.records import Entry
from ashep.core.world import World as Known
from ashep.errors import AshepError
from ashep.landing import HEAD, Refused
from ashep.verification import VerifyRequest
from ashep.work_effects import Means

if TYPE_CHECKING:
    from tests.torture.life import Life
    from tests.torture.world import World

MARK, SHARED, CI = "sound.txt", "calc.py", ".github/workflows/ci.yml"
SOUND: dict[str, Any] = {"id": "sound", "type": "file_exists", "description": "", "verify": {"path": MARK}}
"""The project's check: an agent that takes the file away has done bad work."""
OFTEN = 60
"""Visits and runs: work that others contradict again and again comes to its end all the same."""


def phases(all_: Sequence[dict[str, Any]], *, verifies: bool) -> list[dict[str, Any]]:
    """Let the phase that writes be verified, and gone back to as often as the base moves."""
    more: dict[str, Any] = {"max_visits": OFTEN} | ({"verify": True, "checks": [SOUND]} if verifies else {})
    return [phase | (more if phase["name"] == "implement" else {}) for phase in all_]


def limits(more: dict[str, Any]) -> dict[str, Any]:
    """Let a cycle have as many runs as that may take."""
    return more | {"limits": more.get("limits", {}) | {"max_runs": OFTEN}}


class Repository:
    """The base branch and the issues' trees, and whoever works in them."""

    def __init__(self, world: "World") -> None:
        dice = world.dice
        self.world = world
        self.mode = dice.of("landing").choice(("merge", "merge", "merge", "merge", "branch"))
        self.verifies = dice.of("verify").random() < 0.7
        self.trees = MemoryWorkspaces({SHARED: "1", MARK: "yes"})
        self.landing = MemoryLanding(self.trees)
        self._edits = 0
        self._landing: set[str] = set()
        """Issues whose landing has begun, and is not over."""

    # --- agents ---

    def edit(self, run: str) -> None:
        """An agent does its work in the tree that it is in."""
        dice, issue = self.world.dice, run.split("/")[0]
        branch = branch_of(issue)
        flow = self.world.known.flows.get(issue)
        flaw = flow.flaw if flow is not None else None
        if flaw is not None and flaw.onto:
            theirs = self.trees.files(self.trees.base).get(SHARED, "")
            mine = self.trees.read(branch).get(SHARED, "")
            self.trees.take_in(branch)
            self.trees.edit(branch, SHARED, _joined(mine, theirs))
        if dice.roll("work_idle", 0.15):
            return
        self.trees.edit(branch, f"{issue}.py", run)
        if dice.roll("work_contradicts", 0.6):
            self.trees.edit(branch, SHARED, _joined(self.trees.read(branch).get(SHARED, ""), issue))
        if dice.roll("work_touches_ci", 0.15):
            self.trees.edit(branch, CI, run)
        self.trees.edit(branch, MARK, None if dice.roll("work_falls_short", 0.25) else "yes")

    # --- people, and the machine ---

    async def _while_one_lands(self, kind: str) -> None:
        """Mostly wait for the moment in which it matters most: something stands on the base that there was."""
        if self.world.dice.of(kind).random() < 0.3:
            return
        while not self.world.dice.calm:
            known = self.world.known
            first = [known.flows[issue].landing for _, issue in known.landings][:1]
            if any(landing is not None and landing.commit for landing in first):
                return
            await anyio.sleep(0.1)

    async def move(self) -> None:
        """A person commits to the base, sometimes what contradicts everybody."""
        await self._while_one_lands("base_moves")
        dice = self.world.dice.of("base_moves")
        self._edits += 1
        path = SHARED if dice.random() < 0.2 else "notes.md"
        text = f"{self._edits}" if path != SHARED else _joined(self.trees.files(self.trees.base).get(SHARED, ""), "pat")
        self.world.tell(f"a person commits {path} to main: {self.trees.commit(path, text)[:12]}")

    async def work_in_checkout(self) -> None:
        """A person has uncommitted changes where the base is checked out."""
        await self._while_one_lands("base_dirty")
        if self.world.dice.calm:
            return
        self.world.tell("a person works in the checkout of main")
        self.landing.refuses = Refused("dirty", "main is checked out in /p, and calc.py has uncommitted changes there")
        await anyio.sleep(self.world.dice.of("base_dirty").choice((3, 20, 100)))
        self.landing.refuses = None
        self.world.tell("the checkout of main is clean")

    def calm(self) -> None:
        """Nobody stands in the way any more."""
        self.landing.refuses = None

    # --- the daemon's side ---

    def means(self, life: "Life") -> Means:
        """What looks into the work of issues, and lands it, in this life."""
        diffs, verifier = MemoryDiffs(self.trees), Flaky(self.world, MemoryVerifier(self.trees))
        parts = (Through(life, one) for one in (verifier, diffs, self.landing))
        return Means(self.world.root, *(cast("Any", one) for one in parts))

    # --- the laws ---

    def durable(self, body: Any) -> None:
        """One lands at a time: from the first step until the base has it, or the issue goes elsewhere."""
        match body:
            case IntegrateWork():
                if others := self._landing - {body.issue}:
                    self.world.laws.broken("one lands at a time", f"{body.key}, and so do {sorted(others)}")
                self._landing.add(body.issue)
            case (
                WorkLanded() | WorkConflicted() | PhaseEntered() | PersonAsked()
                | IssueParked() | IssueLeft() | IssueGivenBack() | IssueClosed()
            ):  # fmt: skip
                self._landing.discard(body.issue)
            case JournalBegun():
                self._landing.clear()
            case DaemonStarted():  # what became durable at the very end of the life before was shown to nobody
                self._landing = {issue for _, issue in self.world.known.landings if self._is_landing(issue)}
            case _:
                pass

    def _is_landing(self, issue: str) -> bool:
        flow = self.world.known.flows[issue]
        begun = flow.landing is not None and bool(flow.landing.commit)
        return begun or any(isinstance(one, IntegrateWork) for one in flow.open)

    def at_rest(self) -> None:
        """Whoever is at the head of the queue goes on, or waits for a time; at rest there is nobody."""
        if left := [issue for _, issue in self.world.known.landings]:
            self.world.laws.broken("nobody waits to land for ever", f"{left}")

    def at_end(self, entries: Sequence[Entry], bodies: Sequence[Any]) -> None:
        """What was closed landed, once, as what was verified. `bodies`: those of lost journals, too."""
        if self.mode == "merge":
            self._on_the_base(bodies)
        subjects = [commit.subject for commit in self.trees.history()]
        claims = Counter(subject.rpartition(f"[{HEAD}: ")[2] for subject in subjects if f"[{HEAD}: " in subject)
        for claim, count in claims.items():
            if count > 1:
                self.world.laws.broken("work lands once", f"{claim} {count} times")
        ledger = Ledger(Known())
        for entry in entries:
            ledger.note(entry)
        for finding in ledger.findings(self.world.known):
            self.world.laws.broken("every closing is accounted for", str(finding))

    def _on_the_base(self, bodies: Sequence[Any]) -> None:
        heads = dict[str, str]()
        for body in bodies:
            match body:
                case TreeSealed():
                    heads[body.issue] = body.head
                case IssueFinished(verify=False) if self.verifies and body.issue in heads:
                    self.world.laws.broken("what lands is verified", f"{body}")
                case WorkLanded() if not self.trees.holds(self.trees.base, body.commit):
                    self.world.laws.broken("what landed stays on the base", f"{body}")
                case IssueClosed(by="shepherd") if (head := heads.get(body.issue)) is not None:
                    if not self.landing.holds(self.trees.base, head):
                        self.world.laws.broken("what is closed is on the base", f"{body.issue}, whose head is {head}")
                case _:
                    pass


def _joined(mine: str, theirs: str) -> str:
    return "\n".join(sorted({*mine.splitlines(), *theirs.splitlines()}))


class Flaky:
    """A verifier whose checks fail by chance."""

    def __init__(self, world: "World", verifier: MemoryVerifier) -> None:
        self._world, self._verifier = world, verifier

    async def verify(self, request: VerifyRequest) -> Verification:
        found = await self._verifier.verify(request)
        if found.results and self._world.dice.roll("checks_flaky", 0.15):
            first = replace(found.results[0], status="failed", message="it failed by chance")
            found = replace(found, results=(first, *found.results[1:]))
        return found


class Through:
    """What the daemon calls, with boundaries at which it is killed, and calls that fail before or after it was done."""

    def __init__(self, life: "Life", target: object) -> None:
        self._life, self._target = life, target

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._target, name)

        async def call(*arguments: object) -> object:
            life, dice = self._life, self._life.world.dice
            life.reach(f"{name} asked")
            slow = dice.of("work").choice((5.0, 30.0)) if dice.roll("work_slow", 0.1) else 0.0
            await anyio.sleep(dice.of("work").uniform(0.02, 0.3) + slow)
            life.reach(f"{name} begins")
            fails = name != "settle" and dice.roll("work_fails", 0.08)
            late = fails and dice.of("work").random() < 0.5
            if fails and not late:
                raise AshepError(f"{name}: git ended with exit code 128: fatal: cannot lock ref")
            answer = await method(*arguments)
            life.reach(f"{name} done")
            if late:
                raise AshepError(f"{name}: git was killed")
            return answer

        return call


def with_landing(settings: Settings, mode: str) -> Settings:
    """The settings with this mode of landing, in trees of issues' own."""
    worker = settings.worker.model_copy(update={"workspace": "worktree"})
    landing = settings.landing.model_copy(update={"mode": mode})
    return settings.model_copy(update={"worker": worker, "landing": landing})
