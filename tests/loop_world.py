"""A whole daemon in a world of memory and virtual time, with a crash or a lost answer at any boundary between the two.

One `World` is a test's world: its tracker, agent server, work tree and state folder outlive the daemon; `live` is one
life of a daemon in it. Every call that crosses the boundary passes two *points* (asked, answered) and every batch of
the journal two more; the point with the number `crash_at` ends the daemon there and then, with no cleanup.
"""

import json
import random
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, cast

import anyio
import yaml

from ashep.actions.replay import replay
from ashep.config import Configuration, load, write_starter
from ashep.config.files import has_commit
from ashep.core.analysis.audit import Ledger, of_indexes, of_issue, of_look, of_world
from ashep.core.analysis.issue_status import account
from ashep.core.analysis.replay import Replay
from ashep.core.facts.records import Entry
from ashep.core.facts.runs import RunEnded, RunPlanned
from ashep.core.runs.prompt_commands import EXTRACTION
from ashep.core.state.branches import branch_of
from ashep.core.state.world import World as Known
from ashep.daemon.daemon import Adapters, RunningDaemon, WorkOptions, daemon
from ashep.daemon.effects.executor import ReadSignatures
from ashep.daemon.effects.pulls import ForgeAdapters
from ashep.daemon.effects.sources import Make as MakeSources
from ashep.daemon.effects.sources import SourceAdapters
from ashep.daemon.effects.work import DeliveryAdapters
from ashep.errors import AshepError, ForgeUnavailable, NotSent, RunnerUnavailable, TrackerUnavailable
from ashep.extras.simulation.memory.annotations import MemoryAnnotations, MemoryDiffs, MemoryVerifier
from ashep.extras.simulation.memory.runner import MemoryRunner, Play, Prompted
from ashep.extras.simulation.memory.source import MemorySource
from ashep.extras.simulation.memory.tracker import MemoryTracker
from ashep.extras.simulation.memory.work_tree import MemoryTree
from ashep.extras.simulation.memory.workspaces import MemoryLanding, MemoryWorkspaces
from ashep.extras.simulation.virtual_time import EPOCH, VIRTUAL, LoopClock, open_now, wait_for_threads
from ashep.journal.snapshots import beginning
from ashep.journal.writer import SIZES, Journal
from ashep.prompt.templates import Templates
from ashep.store.journal_reader import JournalView
from ashep.store.writer import Store
from tests.full import half
from tests.memory import MemoryCheckup, MemoryForge, MemoryNotifier

T = TypeVar("T")

ACTOR = "ashep-sim"
PATIENCE = 6 * 3600.0
"""Virtual seconds until a scenario counts as stranded."""


class Crash(BaseException):
    """The daemon's process is gone."""


class Points:
    """The boundaries that one life has crossed, and what happens there."""

    def __init__(self, crash_at: int | None = None, lose: dict[int, str] | None = None) -> None:
        self.crash_at, self.lose = crash_at, lose or {}
        self.names: list[str] = []
        self.calls: list[str] = []
        self.dead = False

    def reach(self, name: str) -> None:
        if self.dead:
            raise Crash
        self.names.append(name)
        if len(self.names) == self.crash_at:
            self.dead = True
            raise Crash(name)

    def call(self, name: str) -> str | None:
        """Number a call and say whether its question (`before`) or answer (`after`) gets lost."""
        self.calls.append(name)
        return self.lose.get(len(self.calls))


class Through:
    """An adapter as seen through the points: a proxy of every method that is awaited."""

    def __init__(self, target: object, points: Points, latency: Callable[[], float], lost: Exception) -> None:
        self._target, self._points, self._latency, self._lost = target, points, latency, lost

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._target, name)
        if name in ("hints", "signs", "actor", "settle", "aclose", "confirm") or not callable(method):
            return method

        async def call(*arguments: object, **named: object) -> object:
            self._points.reach(f"{name} asked")
            lost = self._points.call(name)
            await anyio.sleep(self._latency())
            if self._points.dead:
                raise Crash
            if lost == "before":
                raise self._lost
            answer = await cast("Awaitable[object]", method(*arguments, **named))
            if lost == "after":
                raise self._lost
            self._points.reach(f"{name} done")
            await anyio.sleep(self._latency())
            self._points.reach(f"{name} answered")
            return answer

        return call


class Away:
    """What keeps an agent server from answering, for as long as it is `now`."""

    def __init__(self, words: str, methods: Sequence[str]) -> None:
        self.now, self._words, self._methods = False, words, methods

    def __call__(self, method: str, when: str) -> Exception | None:
        asked = when == "before" and (method in self._methods or not self._methods)
        return RunnerUnavailable(self._words) if self.now and asked else None


class Writing:
    """A journal as seen through the points: there is one before and one after each batch."""

    def __init__(self, journal: Journal, points: Points) -> None:
        self._journal, self._points = journal, points

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)

    async def append(self, entries: Sequence[Entry]) -> None:
        if entries:
            self._points.reach("batch")
            await self._journal.append(entries)
            self._points.reach("durable")


_LOADED: dict[tuple[object, ...], Configuration] = {}


def loaded(folder: Path) -> Configuration:
    """Read a folder's files; what is in the same words is checked once a process: that was a third of a life's time."""
    texts = [(str(file.relative_to(folder)), file.read_text()) for file in sorted(folder.rglob("*.yaml"))]
    words = (*texts, has_commit(folder.parent))  # that decides where runs work, where nobody said it
    if words not in _LOADED:
        _LOADED[words] = load(folder)
    return _LOADED[words]


Answer = Callable[["World", Prompted], Play | None]
Act = Callable[[], Coroutine[Any, Any, None]]


class World:
    """Everything outside of the daemon."""

    def __init__(
        self, folder: Path, *, seed: int = 0, policies: str | None = None, config: str | None = None,
        begins: datetime = EPOCH, issues: int = 0,
    ) -> None:  # fmt: skip
        self.folder = folder
        self.clock = LoopClock(begins)
        self.random = random.Random(seed)
        self.tracker = MemoryTracker(self.clock.now, ACTOR)
        self.people = self.tracker.as_actor("pat")
        for number in range(issues):
            self.tracker.add(f"issue {number}")
        self.tree = MemoryTree()
        self.tree.write("calc.py", "1")
        self.tree.commit("first")
        self.workspaces: MemoryWorkspaces | None = None
        """Where issues have work trees of their own; None: they all share one."""
        self.landing: MemoryLanding | None = None
        self.verifier: MemoryVerifier | None = None
        self.bases = False
        """Whether the checks of policies are run on the base."""
        self.checkup: MemoryCheckup | None = None
        """What looks at the repository; None: nothing does."""
        self.forge: MemoryForge | None = None
        """Where pull requests are opened; None: nowhere."""
        self.source: MemorySource | None = None
        self.other_source: MemorySource | None = None
        """Where issues come from beside the tracker; None: from nowhere."""
        self.runner = MemoryRunner(self.clock, self.play)
        self.notifier = MemoryNotifier()
        self.signatures: ReadSignatures | None = None
        """What reads signed approvals; None: nothing does."""
        self.answer: Answer | None = None
        self.outcomes: dict[str, list[dict[str, object]]] = {}
        """What agents report, by phase or `<issue>/<phase>`, in order; the last stands for ever."""
        self.told: Counter[str] = Counter()
        self.delay = 20.0
        self.said: list[str] = []
        self.world = Known()
        self.entries: list[Entry] = []
        if not (folder / "config.yaml").exists():
            write_starter(folder)
        if policies:
            (folder / "policies.yaml").write_text(policies)
        if config:
            (folder / "config.yaml").write_text(config)
        self.configuration = loaded(folder)
        self.templates: Templates | None = None
        self.sizes = SIZES
        """How the journal is divided."""

    @property
    def own_trees(self) -> MemoryWorkspaces:
        """The work trees of issues, in a world that has some."""
        assert self.workspaces is not None
        return self.workspaces

    def away(self, words: str = "away", *methods: str) -> "Away":
        """An agent server that can be sent away: then it answers nothing (or none of these methods)."""
        self.runner.fault = away = Away(words, methods)
        return away

    # --- agents ---

    def play(self, asked: Prompted) -> Play:
        run = asked.key.split(":", 1)[1]
        if self.answer is not None and (play := self.answer(self, asked)) is not None:
            return play
        phase = run.split("/")[1].split(".")[0]
        key = run.split(".")[0]
        script = self.outcomes.get(key, self.outcomes.get(phase, []))
        outcome = script[min(self.told[key], len(script) - 1)] if script else {}
        begins = asked.turn == 0 and not run.endswith(EXTRACTION)  # that reads what the run wrote, and does no work
        if begins:
            self.told[key] += 1
        if phase == "implement" and begins and self.workspaces is not None:
            self.workspaces.edit(branch_of(run.split("/")[0]), "calc.py", run)
        elif phase == "implement" and begins:
            self.tree.write("calc.py", run)
            self.tree.commit(f"work of {run}", run)
        return Play(text=said(phase, **outcome), delay=self.delay)

    def _means(self, points: Points) -> Callable[..., DeliveryAdapters]:
        """What looks into the work of issues, and lands it, as seen through the points."""
        trees, annotations = self.own_trees, MemoryAnnotations(self.tracker)
        targets = self.verifier or MemoryVerifier(trees), MemoryDiffs(trees), self.landing, annotations
        seen = [
            Through(one, points, lambda: self.random.uniform(0.05, 0.3), AshepError("git: lost")) for one in targets
        ]
        return lambda *_: DeliveryAdapters(self.folder, *cast("Any", seen))

    def _pulls(self, points: Points) -> Callable[..., ForgeAdapters]:
        """Where pull requests are opened, and what they are pushed to, as seen through the points."""
        lost = ForgeUnavailable("lost", unknown=True)
        site = cast("Any", Through(self.forge, points, lambda: self.random.uniform(0.05, 0.3), lost))
        return lambda *_: ForgeAdapters(site, site)

    def _sources(self, points: Points) -> MakeSources:
        """Issues of sources, and what writes them into the tracker, as seen through the points."""
        lost = ForgeUnavailable("lost", unknown=True)
        there = {
            source.name: cast("Any", Through(source, points, lambda: self.random.uniform(0.05, 0.3), lost))
            for source in (self.source, self.other_source)
            if source is not None
        }
        here = Through(MemoryAnnotations(self.tracker), points, lambda: 0.05, TrackerUnavailable("lost"))

        async def make(_: object) -> SourceAdapters:
            return SourceAdapters(there, cast("Any", here))

        return make

    # --- a life ---

    @asynccontextmanager
    async def living(
        self, points: Points | None = None, options: WorkOptions | None = None, *, sources: bool = True
    ) -> AsyncGenerator[RunningDaemon]:
        """A daemon at work; without its sources, `RunningDaemon.until` is to start them."""
        points, options = points or Points(), options or WorkOptions()
        tracker = Through(self.tracker, points, lambda: self.random.uniform(0.05, 0.3), TrackerUnavailable("lost"))
        runner = Through(self.runner, points, lambda: self.random.uniform(0.001, 0.03), RunnerUnavailable("lost"))
        tree = Through(self.tree, points, lambda: 0.005, TrackerUnavailable("lost"))
        journal = cast("Journal", Writing(open_now(self.folder / "state", self.clock.now(), self.sizes), points))
        notifier = Through(self.notifier, points, lambda: self.random.uniform(0.05, 0.3), NotSent("lost"))
        parts = Adapters(
            cast("Any", tracker), cast("Any", runner), cast("Any", tree), self.clock, cast("Any", notifier)
        )
        if self.workspaces is not None:
            self.landing = self.landing or MemoryLanding(self.workspaces)
            trees = Through(self.workspaces, points, lambda: self.random.uniform(0.05, 0.3), AshepError("git: lost"))
            parts = replace(parts, workspaces=lambda _: cast("Any", trees), means=self._means(points), bases=self.bases)
        if (checkup := self.checkup) is not None:
            parts = replace(parts, checkup=lambda _: checkup)
        parts = replace(parts, signatures=self.signatures)
        if self.forge is not None:
            parts = replace(parts, pulls=self._pulls(points))
        if self.source is not None:
            parts = replace(parts, sources=self._sources(points))

        def picture(entries: Sequence[Entry], world: Known) -> None:
            self.entries += entries
            self.world = world

        try:
            info = await self.tracker.check()
            async with (
                daemon(
                    parts, self.configuration, journal, options, [picture], self.templates, self.told_people
                ) as running,
                anyio.create_task_group() as group,
            ):
                if sources:
                    group.start_soon(running.poller.run, info)
                    group.start_soon(running.monitors[0].run)
                    group.start_soon(running.auditor.run)
                yield running
                group.cancel_scope.cancel()
        finally:
            journal.close()

    async def live(
        self, goal: Callable[[], bool] | None = None, points: Points | None = None, patience: float = PATIENCE,
        *, beside: Act | None = None, person: bool = False,
    ) -> bool:  # fmt: skip
        """Live until the goal is reached (default: everything closed) or the crash; False after a crash.

        `beside`: what somebody does meanwhile, until then at the longest. `person`: somebody answers every question.
        """
        lived = False
        async with anyio.create_task_group() as group:
            for act in (beside, self.person if person else None):
                if act is not None:
                    group.start_soon(act)
            lived = await self._live(goal or self.all_closed, points, patience)
            group.cancel_scope.cancel()
        return lived

    async def finish(
        self, points: Points | None = None, patience: float = PATIENCE,
        *, beside: Act | None = None, person: bool = False, restarts: int = 0,
    ) -> None:  # fmt: skip
        """Live until everything is closed, whatever comes between, and leave nothing behind."""
        await self.live(None, points, patience, beside=beside, person=person)
        self.check_done(restarts=restarts)

    async def live_on(self, points: Points, beside: Act | None = None) -> bool:
        """Live until everything is closed, through a crash where there is one; False if there was."""
        if await self.live(points=points, beside=beside):
            return True
        await anyio.sleep(1)
        await self.live(beside=beside)
        return False

    async def _live(self, goal: Callable[[], bool], points: Points | None, patience: float) -> bool:
        try:
            async with self.living(points) as running:
                with anyio.move_on_after(patience) as waited:
                    while not goal():
                        await running.shepherd.changed()
                assert not waited.cancelled_caught, "stranded:\n" + self.state()
        except BaseExceptionGroup as group:
            crashes, others = group.split(Crash)
            if others is not None or crashes is None:
                raise
            return False
        return True

    # --- people ---

    async def person(self, label: str = "human:approved", thinks: float = 40.0) -> None:
        """Answer every question, for ever."""
        while True:
            await anyio.sleep(thinks)
            for seen in (await self.people.look()).issues:
                if "needs:human_approval" in seen.issue.labels:
                    self.tracker.person_sets(seen.issue.id, "pat", add_labels=(label,))

    def told_people(self, words: str) -> None:
        """What the daemon says on its terminal of what it does beside its work."""
        self.said.append(words)

    # --- looking at it ---

    def issues(self) -> dict[str, Any]:
        database = self.tracker._database  # pyright: ignore[reportPrivateUsage] - closed ones too
        return {name: record.issue for name, record in database.records.items()}

    def all_closed(self) -> bool:
        stages = [flow.stage for flow in self.world.flows.values()]
        return (
            bool(stages)
            and all(stage == "closed" for stage in stages)
            and all(issue.status == "closed" for issue in self.issues().values())
        )

    def stands(self, issue: str) -> str:
        return account(self.world, issue).state

    def code(self, issue: str) -> str:
        return account(self.world, issue).code

    def state(self) -> str:
        lines = [f"{account(self.world, name)}" for name in self.world.flows]
        lines += [repr(issue) for issue in self.issues().values()]
        lines += [f"{entry.seq} {entry.at:%H:%M:%S} {entry.body}"[:260] for entry in self.entries[-40:]]
        lines += [
            f"runners {[*self.world.seen.values()]} tracker {self.world.tracker_error!r} ready {self.world.ready} "
        ]
        return "\n".join(lines)

    def bodies(self, kind: type[T]) -> list[T]:
        return [entry.body for entry in self.journal() if isinstance(entry.body, kind)]

    def journal(self) -> list[Entry]:
        opened = Journal.open(self.folder / "state", self.clock.now())
        try:
            return [entry for batch in opened.batches() for entry in batch.entries]
        finally:
            opened.close()

    def draw(self) -> None:
        """The database is drawn, as by whoever reads next."""
        Store.open(self.folder / "state", JournalView(self.folder / "state" / "journal")).close()

    def comments(self, issue: str) -> list[str]:
        database = self.tracker._database  # pyright: ignore[reportPrivateUsage] - without a turn of the loop
        return [one.text for one in database.records[issue].comments]

    def check(self, *, restarts: int = 0) -> None:
        """What must hold in the end, whatever happened."""
        for session in self.runner.sessions.values():
            ours = [message for message in session.messages if message.who == "ashep"]
            for message in ours:
                assert self.runner.began[message.id] <= 1 + restarts, (session.request.key, message.id)
        by_run = Counter(
            session.request.key.split(":", 1)[1] for session in self.runner.sessions.values() if session.messages
        )
        assert all(count == 1 for count in by_run.values()), f"a run was prompted in two sessions: {by_run}"
        for issue in self.issues():
            markers = [text.split("\n")[-1] for text in self.comments(issue) if "<!-- ashep" in text]
            assert len(markers) == len(set(markers)), f"a comment was posted twice: {markers}"
        again = Replay()
        differences = list(replay(self.folder / "state", again))
        assert not differences, f"derived again, it differs: {differences[:3]}"
        entries = self.journal()
        bodies = [entry.body for entry in entries]
        self.audit(again.world, entries)
        planned = [fact.run for fact in bodies if isinstance(fact, RunPlanned)]
        assert len(planned) == len(set(planned)), "a run id was used twice"
        ended = Counter(fact.run for fact in bodies if isinstance(fact, RunEnded))
        assert all(count == 1 for count in ended.values()), f"a run ended twice: {ended}"

    def audit(self, known: Known, entries: Sequence[Entry]) -> None:
        """Nothing is left over, as `ashep audit` would see it."""
        ledger = Ledger(beginning(self.folder / "state" / "journal")[0])
        for entry in entries:
            ledger.note(entry)
        found = [*of_world(known), *of_indexes(known), *ledger.findings(known)]
        for flow in known.flows.values():
            found += of_issue(known, flow, self.clock.now(), living=False)
        listed = [issue for issue in self.issues().values() if issue.status != "closed"]
        found += of_look(known, listed, known.seq, taken_in=False)
        assert not found, f"left over: {found}"

    def check_done(self, *, restarts: int = 0) -> None:
        """Everything closed, and nothing left behind."""
        self.check(restarts=restarts)
        assert self.all_closed(), self.state()
        assert self.world.lock is None
        assert not list(self.world.indexes.live)
        for name, issue in self.issues().items():
            assert not [label for label in issue.labels if label.startswith(("phase:", "needs:", "ashep:"))], issue
            flow = self.world.flows[name]
            assert not flow.open, flow.open
            assert not flow.comments
            assert not flow.creations


def said(phase: str, **outcome: object) -> str:
    """A final message with an outcome; the verdict of the starter policy's phases is the willing one."""
    verdicts = {"review": "approve", "arbitrate": "pass"}
    body: dict[str, object] = {"result": "success", "summary": f"{phase} done"}
    if phase in verdicts and outcome.get("result", "success") == "success":
        body["verdict"] = verdicts[phase]
    return f"Done.\n\n```json\n{json.dumps(body | outcome)}\n```\n"


REJECTED_ONCE: dict[str, list[dict[str, object]]] = {
    "review": [{"verdict": "needs_changes"}, {"verdict": "approve"}],
    "arbitrate": [{"verdict": "needs_work"}, {"verdict": "pass"}],
}


def policy(*phases: dict[str, object], **more: object) -> str:
    """The text of a policies.yaml with one policy for every task."""
    one = {"match": {"types": ["task", "bug", "feature", "chore"]}, "phases": list(phases)} | more
    return yaml.safe_dump({"version": 1, "default_policy": None, "policies": {"standard": one}}, sort_keys=False)


def simulate(main: Callable[[], Awaitable[T]]) -> T:
    """Run a scenario in virtual time, and give what comes of it."""

    async def run() -> T:
        wait_for_threads()
        return await main()

    return anyio.run(run, backend_options=dict(VIRTUAL))


Life = Callable[[Path, Points], Awaitable[None]]
"""A world in a folder, lived in and looked at."""


def some(names: list[str], each: int) -> list[int]:
    """Numbers of points: of each kind so many, evenly spread."""
    chosen = set[int]()
    for kind in sorted(set(names)):
        numbers = [number for number, name in enumerate(names, 1) if name == kind]
        chosen |= {numbers[(2 * place + 1) * len(numbers) // (2 * each)] for place in range(each)}
    return sorted(chosen)


def crossed(life: Life, folder: Path) -> Points:
    """The points of an undisturbed life."""
    points = Points()
    simulate(partial(life, folder / "0", points))
    return points


def crash_at_each(life: Life, folder: Path, numbers: Iterable[int]) -> None:
    """A life for each of these points, at which it crashes; in the ordinary run for every second of them."""
    for number in half(numbers):
        simulate(partial(life, folder / str(number), Points(number)))


def lose_each(life: Life, folder: Path, which: str) -> None:
    """A life for each kind of call, of which a question (`before`) or an answer (`after`) gets lost."""
    for number in some(crossed(life, folder).calls, 1):
        simulate(partial(life, folder / str(number), Points(lose={number: which})))


def minutes(count: float) -> float:
    return timedelta(minutes=count).total_seconds()
