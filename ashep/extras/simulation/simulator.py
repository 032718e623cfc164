"""Lives of issues from their first look to their end, all at once and none in another's way.

The shepherd, its effects and all of the core are the daemon's own. What the worker and the monitor tell the daemon is
told here as soon as it is so, because nothing in this world happens unseen: an hour of waiting costs nothing. What many
lives have in common is their `Distribution`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from importlib import resources
from math import ceil
from pathlib import Path
from typing import Any, Literal, get_args

import anyio
from anyio.abc import TaskGroup

from ashep import __version__
from ashep.config import ConfigErrors, read
from ashep.config.error_messages import nearest
from ashep.config.files import examine
from ashep.config.presets import PRESETS, preset
from ashep.config.starter import starter
from ashep.core.analysis.issue_status import account
from ashep.core.analysis.soundness import Code
from ashep.core.facts import commands, records, tracker
from ashep.core.facts import issues as issue_facts
from ashep.core.facts.resources import Adopted, DaemonStarted, JournalBegun, RunnerSeen, TimerDue
from ashep.core.facts.runs import Model, PromptSent, RunPlanned, RunWithdrawn
from ashep.core.facts.vocabulary import Fact
from ashep.core.policy.agents import Agents
from ashep.core.policy.budgets import Budgets
from ashep.core.policy.landing import LandingSettings
from ashep.core.policy.policies import Policies, Policy
from ashep.core.policy.settings import Notify, Settings
from ashep.core.reconcile.observe import compare_tracker, issue_read, turn_read
from ashep.core.reconcile.step import RULES
from ashep.core.runs.agent_selection import named_in
from ashep.core.state.timers import split_timer
from ashep.core.state.world import World
from ashep.daemon import leases, runner_monitor, shepherd
from ashep.daemon.effects.executor import Effects
from ashep.daemon.effects.trees import TreeEffects
from ashep.errors import UsageError
from ashep.extras.simulation.actor_moves import (
    APPROVED,
    LANDS,
    NO_OUTCOME,
    SILENCE,
    TIMED_OUT,
    Act,
    ActorStep,
    Kind,
    Point,
    play,
)
from ashep.extras.simulation.fake_delivery import MadeUpWork
from ashep.extras.simulation.memory.runner import MemoryRunner
from ashep.extras.simulation.memory.scripted_sessions import Play, Prompted
from ashep.extras.simulation.memory.tracker import MemoryTracker
from ashep.extras.simulation.memory.work_tree import MemoryTree
from ashep.extras.simulation.memory.workspaces import MemoryWorkspaces
from ashep.extras.simulation.script import write_script
from ashep.extras.simulation.virtual_time import VIRTUAL, LoopClock, MemoryJournal

ACTOR, PERSON, PREFIX = "ashep-simulation", "pat", "sim"

AT_ONCE = 64
"""Lives in one world: as many runs may be under way at once, so that none waits for another's."""

RUN_TAKES, DIAGNOSIS_TAKES, PERSON_TAKES = timedelta(minutes=10), timedelta(minutes=1), timedelta(hours=1)
"""How long things take of which nobody says how long."""

LONGEST = timedelta(days=2000)
"""Twice as long as any wait that a policy can ask for: where nothing has happened for so long, nothing will."""

CIRCLE = 1000
"""Records of an issue in one moment, from which on it counts as stuck; an agent's whole turn leaves about twenty."""

End = Literal["closed", "parked", "waiting", "stuck"]


@dataclass
class Cycle:
    """What a cycle of an issue took, up to where a person answered: that mostly begins another one."""

    runs: int = 0
    questions: int = 0
    """Of human phases."""


@dataclass
class SimulatedIssue:
    """What became of an issue."""

    issue: str
    end: End | None = None
    """waiting: for what no move gives it (an agent that does not exist, the next line of a script); stuck: nothing can
    happen to it any more, which is a bug."""
    code: str = ""
    why: str = ""
    cycles: list[Cycle] = field(default_factory=list[Cycle])
    visits: Counter[str] = field(default_factory=Counter[str])
    questions: int = 0
    """Those of agents, too."""
    moves: list[tuple[str, ActorStep]] = field(default_factory=list[tuple[str, ActorStep]])
    """What was done, as a script says it: the point's name, and the move."""
    began: datetime | None = None
    ended: datetime | None = None

    @property
    def runs(self) -> int:
        """Runs of agents, in all cycles."""
        return sum(cycle.runs for cycle in self.cycles)

    @property
    def time(self) -> timedelta:
        """From the taking of the issue to its end, in whole milliseconds."""
        if self.began is None or self.ended is None:
            return timedelta()
        return timedelta(milliseconds=round((self.ended - self.began) / timedelta(milliseconds=1)))


@dataclass(frozen=True, slots=True)
class Cast:
    """Under what issues live."""

    policies: Policies
    policy: str
    agents: Agents
    settings: Settings
    unsound: tuple[str, ...] = ()
    """Why no daemon would run these policies."""

    @property
    def own_trees(self) -> bool:
        """Whether each issue has a work tree of its own, whose work is looked into, and lands."""
        return self.settings.worker.workspace != "shared"

    @property
    def rules(self) -> Policy:
        """The policy."""
        return self.policies.policies[self.policy]


def live(cast: Cast, issues: Sequence[str], act: Act, watch: shepherd.Picture | None = None) -> list[SimulatedIssue]:
    """Live through some issues, `AT_ONCE` at most; `watch` is shown every batch of the journal."""
    assert len(issues) <= AT_ONCE

    async def run() -> list[SimulatedIssue]:
        return await _Scene(cast, issues, act, watch).play()

    return anyio.run(run, backend_options=dict(VIRTUAL))


class _Scene:
    def __init__(self, cast: Cast, issues: Sequence[str], act: Act, watch: shepherd.Picture | None) -> None:
        self.cast, self.act = cast, act
        self.clock = LoopClock()
        self.tracker = MemoryTracker(self.clock.now, ACTOR, PREFIX)
        self.people = self.tracker.as_actor(PERSON)
        slugs, models = named_in(cast.agents)
        default = Model("simulated", "default")
        self.runner = MemoryRunner(self.clock, self._perform, agents=slugs, models=(default, *models))
        self.journal = MemoryJournal()
        self.tree, workspaces = MemoryTree(present=cast.own_trees), MemoryWorkspaces()
        if cast.own_trees:
            self.tree.commit("Begin")
        effects = Effects(
            tracker=self.tracker,
            runner=self.runner,
            trees=TreeEffects(self.tree, (lambda _: workspaces) if cast.own_trees else None),
            blobs=self.journal.blobs,
            leases=leases.Leases(self.tracker, self.clock),
            # nobody reads a prompt here, and a real one costs a third of a life
            render=lambda brief, _: f"{brief.run} {brief.kind}",
        )
        effects.work = self.work = MadeUpWork(self.tracker, self.journal.blobs, workspaces, self._fits)
        self.shepherd = shepherd.Shepherd(self.journal, effects, self.clock, [*([watch] if watch else []), self._see])
        self.lives = {issue: SimulatedIssue(issue) for issue in issues}
        self.left = set(issues)
        self._ends: dict[str, datetime | None] = {}
        """When the turn of an issue's present prompt ends."""
        self._moments: dict[str, tuple[datetime, int]] = {}
        """How many records of an issue its last moment has brought."""
        self._reading: set[str] = set()
        self._group: TaskGroup

    async def play(self) -> list[SimulatedIssue]:
        label = self.cast.settings.labels.policy_prefix + self.cast.policy
        for issue in self.lives:
            self.tracker.add(f"A made-up issue, {issue}", id=issue, labels=(label,), actor=PERSON)
        await self.runner.start()
        async with (
            aclosing(self.runner.signs()) as signs,
            self.shepherd.running(*await self._first()),
            anyio.create_task_group() as self._group,
        ):
            await anext(signs)  # the silence of a turn counts from when somebody listens
            look, tree, as_of = await self.tracker.look(), await self.tree.read(), self.shepherd.world.seq
            self.shepherd.tell(
                lambda world: compare_tracker(world, look.ready, [issue.issue for issue in look.issues], tree, as_of)
            )
            while self.left:
                with anyio.move_on_after(LONGEST.total_seconds()) as waited:
                    await self.shepherd.changed()
                if waited.cancelled_caught:  # nothing has happened for years; what waits for an agent may do so
                    for stuck in sorted(self.left):
                        stands = account(self.shepherd.world, stuck)
                        end: End = "waiting" if stands.code == "no_agent" else "stuck"
                        self._end(self.lives[stuck], end, stands.code, stands.reason, stands.since or self.clock.now())
            self._group.cancel_scope.cancel()
        return [*self.lives.values()]

    async def _first(self) -> list[Fact]:
        """What opens the journal: everything in it is the same in every process."""
        # without what lets one issue wait for another, for money, for the hour or for anybody else
        free = {"max_concurrent_runs": AT_ONCE, "lock_work_tree": False, "allow_dirty": True, "quiet_hours": ()}
        worker, landing = self.cast.settings.worker.model_copy(update=free), LandingSettings(base="main")
        unhindered = {"worker": worker, "landing": landing, "budgets": Budgets(), "notify": Notify(), "people": None}
        settings = self.cast.settings.model_copy(update=unhindered)
        text = await self.journal.blobs.keep("")
        info, catalog = await self.tracker.check(), await self.runner.catalog()
        return [
            JournalBegun("51" * 8, "51" * 16, ACTOR),
            DaemonStarted(1, __version__, trees=self.cast.own_trees),
            Adopted("settings", settings.model_dump_json(), text, RULES),
            Adopted("agents", self.cast.agents.model_dump_json(), text, RULES),
            Adopted("policies", self.cast.policies.model_dump_json(), text, RULES),
            tracker.TrackerSeen(ACTOR, info.prefix, info.version),
            RunnerSeen("up", catalog.version, catalog.instance, catalog.agents, catalog.models, catalog.default),
        ]

    # --- what happens -----------------------------------------------------------------------------------------------

    def _see(self, entries: Sequence[records.Entry], world: World) -> None:
        """Take a batch in: count, and let happen what follows from it in the world outside."""
        touched: dict[str, None] = {}
        for entry in entries:
            body = entry.body
            issue = split_timer(body.key)[1] if isinstance(body, TimerDue) else getattr(body, "issue", None)
            if isinstance(issue, str) and issue in self.left:
                touched[issue] = None
                self._note(self.lives[issue], entry)
                self._moment(self.lives[issue], entry.at)
        for issue in touched:
            if self._read_again(world, issue):
                self._reading.add(issue)
                self._group.start_soon(self._read, issue)

    def _note(self, life: SimulatedIssue, entry: records.Entry) -> None:
        match entry.body:
            case issue_facts.IssueTaken():
                life.began = entry.at
            case issue_facts.PhaseEntered():
                life.visits[entry.body.phase] += 1
            case issue_facts.CycleBegan() | issue_facts.PersonAnswered():
                life.cycles.append(Cycle())
            case RunPlanned():
                life.cycles[-1].runs += 1
            case RunWithdrawn():
                life.cycles[-1].runs -= 1
            case PromptSent():
                self._group.start_soon(self._turn, life.issue, self._ends.get(life.issue))
            case issue_facts.PersonAsked():
                life.questions += 1
                life.cycles[-1].questions += entry.body.human_phase
                life.visits[entry.body.phase] += entry.body.human_phase
                self._group.start_soon(self._answer, entry.body, entry.at)
            case issue_facts.IssueClosed():
                self._end(life, "closed", "", entry.body.why, entry.at)
            case issue_facts.IssueParked():
                self._end(life, "parked", entry.body.code, entry.body.why, entry.at)
            case issue_facts.IssueLeft() | issue_facts.IssueGivenBack():
                self._end(life, "stuck", entry.body.code, entry.body.why, entry.at)
            case _:
                pass

    def _moment(self, life: SimulatedIssue, at: datetime) -> None:
        """See a life that goes round in a circle in which no time passes: it would hold all others up for ever."""
        before, entries = self._moments.get(life.issue, (at, 0))
        self._moments[life.issue] = (at, entries + 1 if at == before else 1)
        if entries >= CIRCLE and at == before:
            self._end(life, "stuck", "circle", f"{CIRCLE} records in one moment", at)
            for issue in sorted(self.left):
                self._end(self.lives[issue], "waiting", "left_off", f"no time passes, because of {life.issue}", at)

    def _end(self, life: SimulatedIssue, end: End, code: str, why: str, at: datetime) -> None:
        life.end, life.code, life.why, life.ended = end, code, why, at
        self.left.discard(life.issue)

    # --- agents -----------------------------------------------------------------------------------------------------

    def _perform(self, asked: Prompted) -> Play:
        issue = asked.key.partition(":")[2].partition("/")[0]
        run = self.shepherd.world.flows[issue].run
        assert run is not None, "a prompt is one of a run"
        phase = self.cast.rules.phase(run.phase)
        assert phase is not None, "the policy stays as it is"
        if run.prompt.kind in ("recover", "extract"):  # of a run that was to come to no outcome
            done = play(NO_OUTCOME, phase, DIAGNOSIS_TAKES, run.timeout)
        elif run.prompt.kind == "continue":  # of one that was to be partial
            done = play("partial", phase, timedelta(seconds=1), run.timeout)
        else:
            kind: Kind = "diagnosis" if run.prompt.kind == "diagnose" else "run"
            point = Point(issue, phase, kind, run.timeout, run.visit, run.attempt, run.agent)
            step, usual = self._step(point), RUN_TAKES if kind == "run" else DIAGNOSIS_TAKES
            after = point.in_time(usual) if step is None or step.after is None else step.after
            move = step.move if step else TIMED_OUT
            self.work.record_run(issue, run.branch, run.id, move, writes=run.access == "write" and kind == "run")
            done = play(move, phase, after, run.timeout)
        hangs = done.fate == "hangs"
        self._ends[issue] = None if hangs else self.clock.now() + timedelta(seconds=done.delay)
        return done

    def _step(self, point: Point) -> ActorStep | None:
        life = self.lives[point.issue]
        step = self.act(point) if point.issue in self.left else None
        if step is not None:
            life.moves.append((point.name, step))
        elif point.issue in self.left:
            self._end(life, "waiting", "left_off", f"nobody says what happens at {point.name}", self.clock.now())
        return step

    def _fits(self, issue: str) -> bool:
        phase = self.cast.rules.phase(self.shepherd.world.flows[issue].phase or "")
        assert phase is not None, "the policy stays as it is"
        step = self._step(Point(issue, phase, "landing", timedelta()))
        return step is None or step.move == LANDS

    async def _turn(self, issue: str, ends: datetime | None) -> None:
        await self._read(issue)
        if ends is not None:
            while self.clock.now() < ends:  # a sleep may end a little early, in a clock of whole microseconds
                await self.clock.sleep_until(ends + timedelta(microseconds=1))
            await self._read(issue)

    def _read_again(self, world: World, issue: str) -> bool:
        flow = world.flows[issue]
        run = flow.run
        if run is None or run.ended or not run.prompt.sent or not run.watch.fresh_after or issue in self._reading:
            return False
        return not any(isinstance(command, (commands.SendPrompt, commands.StopTurn)) for command in flow.open)

    async def _read(self, issue: str) -> None:
        self._reading.discard(issue)
        world = self.shepherd.world
        now = self.clock.now()
        read = await runner_monitor.read_turn(
            self.runner, self.journal.blobs, world, world.flows[issue], world.seq, now
        )
        if read is not None:
            self.shepherd.tell(lambda world: turn_read(world, read.seen))

    # --- people -----------------------------------------------------------------------------------------------------

    async def _answer(self, asked: issue_facts.PersonAsked, at: datetime) -> None:
        phase = self.cast.rules.phase(asked.phase)
        assert phase is not None, "the policy stays as it is"
        point = Point(asked.issue, phase, "question", asked.due - at)
        step = self._step(point)
        if step is None or step.move == SILENCE:
            return
        await self.clock.sleep_until(at + (point.in_time(PERSON_TAKES) if step.after is None else step.after))
        labels = self.cast.settings.labels
        label = labels.approved if step.move == APPROVED else labels.changes_requested
        while self._stands(asked.issue, at) and label not in self.shepherd.world.flows[asked.issue].issue.labels:
            self.tracker.person_sets(asked.issue, PERSON, add_labels=(label,))
            seen, as_of = await self.tracker.issue(asked.issue), self.shepherd.world.seq
            assert seen is not None, "nobody deletes issues here"
            self.shepherd.tell(lambda world, view=seen.issue, as_of=as_of: issue_read(world, view, as_of))
            await self.shepherd.changed()

    def _stands(self, issue: str, asked: datetime) -> bool:
        question = self.shepherd.world.flows[issue].question
        return question is not None and question.asked == asked


STUCK_SHOWN = 20
"""Lives that got stuck, of which the script is given."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The least, the middle, what nine of ten stay within, the most, and the mean."""

    min: float
    median: float
    p90: float
    max: float
    mean: float

    @staticmethod
    def from_values(values: Iterable[float]) -> "Spread":
        """Order some numbers, one at least; each figure but the mean is one of them (the nearest rank)."""
        ordered = sorted(values)
        middle, most = (ordered[ceil(len(ordered) * share) - 1] for share in (0.5, 0.9))
        return Spread(ordered[0], middle, most, ordered[-1], round(sum(ordered) / len(ordered), 3))


@dataclass(frozen=True, slots=True)
class Distribution:
    """All of some lives."""

    lives: int
    ends: tuple[tuple[str, str, int], ...]
    """How they ended: closed, parked or waiting and why by its code, and how many; the most frequent first."""
    per_issue: Mapping[str, Spread]
    """Runs, visits, questions and seconds."""
    visits_of: Mapping[str, Spread]
    """Visits of each phase, in the policy's order."""
    stuck: tuple[str, ...]
    """What brings lives to where nothing can happen to them any more, as scripts: there must be none."""

    @staticmethod
    def from_lives(lives: Sequence[SimulatedIssue], phases: Sequence[str]) -> "Distribution":
        """Sum lives up, one at least."""
        ends = Counter((life.end or "stuck", life.code) for life in lives)
        stuck = [write_script(life.moves) for life in lives if life.end == "stuck"]
        return Distribution(
            len(lives),
            tuple((end, code, count) for (end, code), count in sorted(ends.items(), key=lambda one: (-one[1], one[0]))),
            {
                "runs": Spread.from_values(life.runs for life in lives),
                "visits": Spread.from_values(life.visits.total() for life in lives),
                "questions": Spread.from_values(life.questions for life in lives),
                "seconds": Spread.from_values(round(life.time.total_seconds(), 3) for life in lives),
            },
            {name: Spread.from_values(life.visits[name] for life in lives) for name in phases},
            tuple(stuck[:STUCK_SHOWN]),
        )

    def as_json(self) -> dict[str, Any]:
        """Give it as plain JSON data; times are seconds."""
        return asdict(self) | {"ends": [{"end": end, "code": code or None, "lives": n} for end, code, n in self.ends]}


UNSOUND = get_args(Code)
"""Codes of what the search of a policy finds: no daemon runs it, but its lives may be looked at."""


def cast_of(folder: Path, name: str, file: Path | None) -> Cast:
    """Find a policy by its name: in `file`, in the project's files, or, where there is no file and no such policy,
    among the presets, whose agents are those that `ashep init` writes.

    `folder` is the project's `.agent-shepherd`; where there is none, the agents are those of `ashep init`, too.
    Raises `ConfigErrors` with all that is wrong with the files (but for what makes a policy unsound), and `UsageError`
    where there is no such policy.
    """
    if file is not None and not file.is_file():
        raise UsageError(f"{file}: there is no such file")
    cast = None
    if folder.is_dir():
        cast = _of_files(folder, name, file)
    elif file is not None:
        with resources.as_file(resources.files("ashep.config") / "starter") as shipped:
            cast = _of_files(shipped, name, file)
    if cast is not None and name in cast.policies.policies:
        return cast
    if file is None and name in PRESETS:
        return of_preset(name)
    known = [*(cast.policies.policies if cast else ()), *(PRESETS if file is None else ())]
    raise UsageError(f"there is no policy {name}{nearest(name, known)}")


def of_preset(name: str) -> Cast:
    """A shipped policy, with the agents that `ashep init` writes."""
    policies = unproven(read(Policies, preset(name), Path(f"{name}.yaml")))
    return Cast(policies, name, starter_agents(name), Settings())


def starter_agents(preset: str = PRESETS[0]) -> Agents:
    """The agents that `ashep init` writes for a preset."""
    return read(Agents, starter("agents.yaml", preset), Path("agents.yaml"))


def _of_files(folder: Path, name: str, file: Path | None) -> Cast:
    found = examine(folder, file)
    errors = [finding for finding in found.findings if finding.severity == "error"]
    broken = [finding for finding in errors if finding.code not in UNSOUND]
    if broken or found.policies is None or found.agents is None or found.settings is None:
        raise ConfigErrors(broken)
    own = found.settings.worker.workspace != "shared"
    policies = found.policies if own else unproven(found.policies)
    return Cast(policies, name, found.agents, found.settings, tuple(map(str, errors)))


def unproven(policies: Policies) -> Policies:
    """Give policies without what has no effect in the shared work tree: then nobody can make a move of it."""
    without: dict[str, object] = {"verify": None, "checks": (), "when_flags": {}}
    bare = {
        name: policy.model_copy(update={"phases": tuple(one.model_copy(update=without) for one in policy.phases)})
        for name, policy in policies.policies.items()
    }
    return policies.model_copy(update={"policies": bare})
