"""Nights in which issues have work trees of their own: their work is verified and lands, while people move the base.

Everything here has dice of its own, so that nights in the shared work tree are as they were.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

import anyio

from ashep.core.analysis.audit import Ledger
from ashep.core.facts.commands import IntegrateWork, MoveBase
from ashep.core.facts.delivery import LandingRefused, TreeSealed, Verification, WorkConflicted, WorkLanded, WorkVerified
from ashep.core.facts.issues import (
    IssueClosed,
    IssueFinished,
    IssueGivenBack,
    IssueLeft,
    IssueParked,
    PersonAsked,
    PhaseEntered,
)
from ashep.core.facts.records import Entry
from ashep.core.facts.resources import DaemonStarted, JournalBegun
from ashep.core.facts.runs import RunEnded, RunPlanned
from ashep.core.facts.tracker import EffectFailed
from ashep.core.policy.settings import Settings
from ashep.core.reconcile.effect_failures import INFRA_LIMIT
from ashep.core.state.branches import branch_of
from ashep.core.state.pending_intents import AT_IT
from ashep.core.state.world import World as Known
from ashep.daemon.effects.work import DeliveryAdapters
from ashep.errors import AshepError
from ashep.extras.simulation.memory.annotations import MemoryDiffs, MemoryVerifier
from ashep.extras.simulation.memory.workspaces import MemoryLanding, MemoryWorkspaces
from ashep.ports.landing import HEAD, Advanced, MoveRefused
from ashep.ports.verifier import VerifyRequest
from chaos.torture.pulls import FORGE, Site

if TYPE_CHECKING:
    from chaos.torture.life import Life
    from chaos.torture.sessions import Session
    from chaos.torture.world import World

MARK, SHARED, CI = "sound.txt", "calc.py", ".github/workflows/ci.yml"
SOUND: dict[str, Any] = {"id": "sound", "type": "file_exists", "description": "", "verify": {"path": MARK}}
"""The project's check: an agent that takes the file away has done bad work."""
OFTEN = 60
"""Visits and runs: work that others contradict again and again comes to its end all the same."""
EPIC = "epic"
"""By this name issues share a branch."""
PULLS, EPICS = 4, 9
"""Of ten seeds, the one whose work lands by pull request, and the one whose issues share a branch."""


def has_own(seed: int) -> bool:
    """Whether issues of this seed have work trees of their own, whatever its dice say."""
    return seed % 10 in (PULLS, EPICS)


def phases(all_: Sequence[dict[str, Any]], *, verifies: bool) -> list[dict[str, Any]]:
    """Let the phase that writes be verified, and gone back to as often as the base moves."""
    more: dict[str, Any] = {"max_visits": OFTEN} | ({"verify": True, "checks": [SOUND]} if verifies else {})
    of = {"implement": more, "review": {"max_visits": OFTEN}}  # whatever is written again is reviewed again
    return [phase | of.get(phase["name"], {}) for phase in all_]


def limits(more: dict[str, Any]) -> dict[str, Any]:
    """Let a cycle have as many runs as that may take."""
    return more | {"limits": more.get("limits", {}) | {"max_runs": OFTEN}}


class Repository:
    """The base branch and the issues' trees, and whoever works in them."""

    def __init__(self, world: "World") -> None:
        dice = world.dice
        self.world = world
        self.mode = dice.of("landing").choice(("merge", "merge", "merge", "merge", "branch"))
        if dice.seed % 10 == PULLS:
            self.mode = "pull_request"
        self.verifies = dice.of("verify").random() < 0.7
        self.trees = MemoryWorkspaces({SHARED: "1", MARK: "yes"})
        self.landing = Watched(self)
        self.site = Site(world, self) if self.mode == "pull_request" else None
        self.apart = dice.of("apart").random() < 0.5
        """Whether who makes is kept apart from who judges."""
        self.shares = dice.seed % 10 == EPICS or (self.site is not None and dice.of("branches").random() < 0.4)
        """Whether issues share a branch."""
        self.branches = dict[str, str]()
        """By issue: where it was worked on last."""
        self.heads = dict[str, str]()
        """By issue: what its branch held when it was sealed last."""
        self._proofs = dict[str, tuple[str, tuple[str, ...]]]()
        """By commit: the tree of which there is evidence, and what did not hold."""
        self._runs = dict[str, tuple[str, str]]()
        """Runs of this journal that are not over: issue and branch."""
        self._planned = set[str]()
        self._edits = self._worked = 0
        self._resisted = Counter[str]()
        self._landing: set[str] = set()
        """Issues whose landing has begun, and is not over."""

    # --- agents ---

    def edit(self, run: str) -> None:
        """An agent does its work in the tree that it is in."""
        dice, issue = self.world.dice, run.split("/")[0]
        branch = self.branches.get(issue, branch_of(issue))
        self._is_alone(run, issue, branch)
        self.trees.resisting.discard(branch)
        if branch not in {one.branch for one in self.trees.standing()}:
            return  # it removed its tree before its turn died
        flow = self.world.known.flows.get(issue)
        flaw = flow.work.flaw if flow is not None else None
        if flaw is not None and (flaw.onto or flaw.kind == "review"):
            theirs = self.trees.files(self.trees.base).get(SHARED, "")
            mine = self.trees.read(branch).get(SHARED, "")
            self.trees.take_in(branch)
            self.trees.edit(branch, SHARED, _joined(mine, theirs))
        if dice.roll("work_idle", 0.15):
            return
        self._worked += 1
        # a session that is used again names its first run only: where CI is to be mended, that would change nothing
        self.trees.edit(branch, f"{issue}.py", run if self.site is None else f"{run} {self._worked}")
        if dice.roll("work_contradicts", 0.6):
            self.trees.edit(branch, SHARED, _joined(self.trees.read(branch).get(SHARED, ""), issue))
        if dice.roll("work_touches_ci", 0.15):
            self.trees.edit(branch, CI, run)
        self.trees.edit(branch, MARK, None if dice.roll("work_falls_short", 0.25) else "yes")
        if dice.roll("work_resists", 0.3):
            if dice.of("trees").random() < 0.3:
                self.trees.lose(branch)
            else:
                self.trees.resisting.add(branch)
            self.world.tell(f"{run} leaves a tree that cannot be sealed, or none: {branch}")

    # --- people, and the machine ---

    async def _while_one_lands(self, kind: str) -> None:
        """Mostly wait for the moment in which it matters most: something stands on the base that there was."""
        if self.world.dice.of(kind).random() < 0.3:
            return
        while not self.world.dice.calm:
            known = self.world.known
            first = [known.flows[issue].work.landing for _, _, issue in known.indexes.landings][:1]
            if any(landing is not None and landing.commit for landing in first):
                return
            await anyio.sleep(0.1 if first else 1.0)  # its attempt is verified for seconds before it lands

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
        self.landing.refuses = MoveRefused(
            "dirty", "main is checked out in /p, and calc.py has uncommitted changes there"
        )
        await anyio.sleep(self.world.dice.of("base_dirty").choice((3, 20, 100)))
        self.landing.refuses = None
        self.world.tell("the checkout of main is clean")

    def calm(self) -> None:
        """Nobody stands in the way any more."""
        self.landing.refuses = None
        self.trees.resisting.clear()
        if self.site is not None:
            self.site.calm()

    def begin(self) -> None:
        """Let issues share a branch, and people look at pull requests."""
        dice = self.world.dice.of("branches")
        if self.shares:
            for number in range(dice.randint(2, 3)):
                self.world.store.add(f"part {number}", priority=dice.randint(0, 3), labels={f"branch:{EPIC}"})
        if self.site is not None:
            self.world.spawn(self.site.live)

    def put_right(self) -> None:
        """In the end people take back what they have done."""
        if self.site is not None:
            self.site.put_right()

    # --- the daemon's side ---

    def means(self, life: "Life") -> DeliveryAdapters:
        """What looks into the work of issues, and lands it, in this life."""
        diffs, verifier = MemoryDiffs(self.trees), Flaky(self.world, MemoryVerifier(self.trees))
        parts = (Through(life, one) for one in (verifier, diffs, self.landing))
        return DeliveryAdapters(self.world.root, *(cast("Any", one) for one in parts))

    # --- the laws ---

    def durable(self, body: Any) -> None:
        """Look at what becomes of work, as the journal tells it."""
        self._noted(body)
        self._in_turn(body)
        if self.site is not None:
            self.site.durable(body)

    def _noted(self, body: Any) -> None:
        match body:
            case RunPlanned() if body.branch is not None:
                others = [
                    run for run, (issue, branch) in self._runs.items() if branch == body.branch != branch_of(issue)
                ]
                if others:
                    self.world.laws.broken("a shared branch has one at work", f"{body.run}, and so has {others}")
                self._runs[body.run] = body.issue, body.branch
                self._planned.add(body.run)
                self.branches[body.issue] = body.branch
            case RunEnded():
                self._runs.pop(body.run, None)
            case EffectFailed() if body.key.endswith("/tree/after"):
                self._resisted[body.key] += 1
                if self._resisted[body.key] > INFRA_LIMIT:
                    self.world.laws.broken("a seal is tried a bounded number of times", body.key)
            case TreeSealed():
                self.heads[body.issue] = body.head
            case WorkVerified():
                failed = tuple(one.check_id for one in body.results if one.status in ("failed", "error"))
                self._proofs[body.commit] = body.tree, failed
            case JournalBegun():
                for known in (self._runs, self._planned, self._proofs, self.heads, self._resisted):
                    known.clear()
            case DaemonStarted():  # what became durable at the very end of the life before was shown to nobody
                self._caught_up()
            case _:
                pass

    def _caught_up(self) -> None:
        flows = self.world.known.flows
        for issue, flow in flows.items():
            if flow.work.own is not None:
                self.branches[issue] = flow.work.own.branch
                self.heads[issue] = flow.work.own.head or self.heads.get(issue, "")
            for proof in flow.work.proofs:
                self._proofs[proof.commit] = proof.tree, proof.failures
        runs = [(issue, flow.run) for issue, flow in flows.items() if flow.run is not None and not flow.run.ended]
        self._runs = {run.id: (issue, run.branch) for issue, run in runs if run.branch is not None}
        self._planned |= self._runs.keys()

    def _is_alone(self, run: str, issue: str, branch: str) -> None:
        """Nobody else is in the tree in which somebody begins to work."""
        for session in self.world.server.sessions.all.values():
            other = str(session.metadata.get("ashep", ":")).split(":", 1)[1].split("/")
            if (
                session.turn is None
                or _is_persons(session)
                or other[0] == issue
                or "/".join(other[:2]) not in self._planned
            ):
                continue
            if self.branches.get(other[0]) == branch and run in self._planned:
                self.world.laws.broken("a shared branch has one at work", f"{run} begins while {other} is at it")

    def is_proven(self, commit: str, what: str) -> None:
        """There is evidence for exactly the tree of a commit; what did not hold a person let pass."""
        if not self.verifies:
            return
        tree, failed = self._proofs.get(commit, ("", ()))
        waived = {name for flow in self.world.known.flows.values() for name in flow.work.waived}
        if tree != self.trees.tree_of(commit):
            self.world.laws.broken("evidence is of what people get", f"{commit} was {what}, and nobody verified it")
        elif left := set(failed) - waived:
            self.world.laws.broken("evidence is of what people get", f"{commit} was {what}, and {left} did not hold")

    def _in_turn(self, body: Any) -> None:
        """One lands at a time: from the first step until the base has it, or the issue goes elsewhere."""
        match body:
            case IntegrateWork() | MoveBase():
                if others := self._landing - {body.issue}:
                    self.world.laws.broken("one lands at a time", f"{body.key}, and so do {sorted(others)}")
                self._landing.add(body.issue)
            case (
                WorkLanded() | WorkConflicted() | LandingRefused() | EffectFailed() | PhaseEntered() | PersonAsked()
                | IssueParked() | IssueLeft() | IssueGivenBack() | IssueClosed()
            ):  # fmt: skip
                self._landing.discard(body.issue)
            case JournalBegun():
                self._landing.clear()
            case DaemonStarted():  # what became durable at the very end of the life before was shown to nobody
                self._landing = {issue for rank, _, issue in self.world.known.indexes.landings if rank == AT_IT}
            case _:
                pass

    def at_rest(self) -> None:
        """Whoever is at the head of the queue goes on, or waits for a time; at rest there is nobody."""
        if left := [issue for _, _, issue in self.world.known.indexes.landings]:
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


def _is_persons(session: "Session") -> bool:
    """Whether a person wrote in it: then it is theirs, and what goes on there is their work."""
    return any(message["info"].get("who") for message in session.messages)


def _joined(mine: str, theirs: str) -> str:
    return "\n".join(sorted({*mine.splitlines(), *theirs.splitlines()}))


class Watched(MemoryLanding):
    """Landing, of which it is judged what the base gets."""

    def __init__(self, own: Repository) -> None:
        super().__init__(own.trees)
        self._own = own

    async def advance(self, base_branch: str, old: str, new: str) -> Advanced | MoveRefused:
        """Move the base."""
        before = self._own.trees.base
        moved = await super().advance(base_branch, old, new)
        if self._own.trees.base != before:
            self._own.is_proven(new, "landed")
        return moved


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


def with_landing(settings: Settings, mode: str, keep: timedelta, *, apart: bool) -> Settings:
    """The settings with this mode of landing, in trees of issues' own that stand for a time. `apart`: in places, with
    agents in a sandbox and judges on clean ground.
    """
    worker = settings.worker.model_copy(update={"workspace": "place" if apart else "worktree"})
    agents = settings.agents.model_copy(update={"sandbox": "auto" if apart else "none"})
    forge = FORGE if mode == "pull_request" else None
    landing = settings.landing.model_copy(update={"mode": mode, "forge": forge})
    trees = settings.trees.model_copy(update={"keep": keep})
    return settings.model_copy(update={"worker": worker, "agents": agents, "landing": landing, "trees": trees})
