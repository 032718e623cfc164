"""The composition root: the only file that knows everybody. It puts the parts together and says when to stop."""

import os
import secrets
import signal
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path

import anyio
from anyio import to_thread

from ashep import __version__
from ashep.adapters.beads import BeadsTracker
from ashep.adapters.clock import RealClock
from ashep.adapters.git import GitTree
from ashep.adapters.opencode import OpencodeRunner
from ashep.config import Configuration, load
from ashep.core.account import account, is_held_up, is_idle
from ashep.core.commands import Command
from ashep.core.events import (
    Adopted,
    AnswerRefused,
    DaemonStarted,
    Fact,
    IssueClosed,
    IssueGivenBack,
    IssueLeft,
    IssueParked,
    IssueTaken,
    JournalBegun,
    PersonAnswered,
    PersonAsked,
    PhaseEntered,
    RetryScheduled,
    RunEnded,
    RunnerSeen,
    RunPlanned,
    TrackerLost,
)
from ashep.core.records import Entry
from ashep.core.step import RULES
from ashep.core.text import clean
from ashep.core.world import World
from ashep.effects import Effects
from ashep.errors import AshepError, TrackerUnavailable
from ashep.journal.lock import Lock
from ashep.journal.log import Journal
from ashep.monitor import Monitor
from ashep.ports import Clock, Runner, Tracker, TrackerInfo, WorkTree
from ashep.shepherd import Picture, Shepherd
from ashep.store.follow import Follower
from ashep.worker import Worker

FOLDER = ".agent-shepherd"

BACKOFF = (1.0, 30.0)
"""Seconds between tries to reach a tracker that does not answer at the start."""


@dataclass(frozen=True, slots=True)
class WorkOptions:
    """What `ashep work` was asked for."""

    issues: tuple[str, ...] = ()
    until_idle: bool = False
    idle_grace: timedelta = timedelta(minutes=5)
    max_issues: int | None = None


@dataclass(frozen=True, slots=True)
class Parts:
    """What touches the world."""

    tracker: Tracker
    runner: Runner
    tree: WorkTree
    clock: Clock


Say = Callable[[str], None]


def work(project: Path, options: WorkOptions, say: Say) -> int:
    """Run the daemon until it is told to stop, or is idle where that was asked for; give the exit code.

    Raises `ConfigError`, `AlreadyRunning`, `TrackerMissing`, `JournalDamaged`, `DiskFailed`.
    """
    configuration = load(project / FOLDER)
    state = project / FOLDER / "state"
    clock = RealClock()
    with Lock.acquire(state, clock.now()):
        journal = Journal.open(state, clock.now())
        if journal.cut:
            say(f"the last {journal.cut} bytes of the journal were torn and are cut: nothing of them was acted on")
        try:
            return _run(partial(_work, project, configuration, journal, clock, options, say))
        finally:
            journal.close()


def _run(main: Callable[[], Awaitable[int]]) -> int:
    """Run the event loop; of a group of errors of ours the one with the highest exit code is told."""
    try:
        return anyio.run(main)
    except BaseExceptionGroup as group:
        ours, others = group.split(AshepError)
        if ours is None or others is not None:
            raise
        raise max(_leaves(ours), key=lambda error: error.exit_code) from None


def _leaves(group: BaseExceptionGroup[AshepError]) -> Iterator[AshepError]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error


async def _work(
    project: Path, configuration: Configuration, journal: Journal, clock: RealClock, options: WorkOptions, say: Say
) -> int:
    state = project / FOLDER / "state"
    tracker_settings = configuration.settings.tracker
    actor = tracker_settings.actor or kept_name(journal) or actor_name(state)
    tracker = BeadsTracker(project, tracker_settings.command, actor, tracker_settings.timeout.total_seconds())
    runner = OpencodeRunner.from_settings(
        configuration.settings.runners.opencode, directory=project, state=state, environ=os.environ
    )
    parts = Parts(tracker, runner, GitTree(project), clock)
    follower, code = Follower(state, journal, say), 0
    try:
        info = await _reach_tracker(tracker, say)
        say(f"working on {info.location} as {actor}; bd {info.version}")
        async with anyio.create_task_group() as group:
            group.start_soon(follower.run)
            pictures: list[Picture] = [lambda _, world: follower.offer(journal.position, world), _narrator(say)]
            async with daemon(
                parts, configuration, journal, options, pictures, project / FOLDER / "prompts"
            ) as running:
                code = await running.until(info, options, say)
            group.cancel_scope.cancel()
        return code
    finally:
        with anyio.CancelScope(shield=True), anyio.move_on_after(2):
            await tracker.aclose()
            await runner.aclose()
            clock.close()


def kept_name(journal: Journal) -> str:
    """The name that this journal began with; empty in a new one."""
    first = next(iter(journal.read()), None)
    return first.body.actor if first and isinstance(first.body, JournalBegun) else ""


def actor_name(state: Path) -> str:
    """The default name: the host and a hash of the state folder's real path at the first start (design section 4)."""
    host = "".join(char for char in socket.gethostname().split(".")[0].lower() if char.isalnum() or char == "-")
    return f"ashep-{host[:40] or 'host'}-{sha256(os.fsencode(state.resolve())).hexdigest()[:8]}"


async def _reach_tracker(tracker: Tracker, say: Say) -> TrackerInfo:
    """Only an unmistakable answer ends the start; any other failure of the tracker is tried again with backoff."""
    wait = BACKOFF[0]
    while True:
        try:
            return await tracker.check()
        except TrackerUnavailable as error:
            say(f"the tracker does not answer ({error}); trying again in {wait:.0f} s")
        await anyio.sleep(wait)
        wait = min(wait * 2, BACKOFF[1])


def _narrator(say: Say) -> Picture:
    def tell(entries: Sequence[Entry], _: World) -> None:
        for entry in entries:
            if line := _told(entry.body):
                say(clean(line))

    return tell


def _told(body: Fact | Command) -> str | None:
    """What a person who watches is told of: the turns of the story, not every effect."""
    match body:
        case IssueTaken() | PhaseEntered():
            phase = f" {body.phase}" if isinstance(body, PhaseEntered) else ""
            return f"{body.issue}{phase}: {body.why}"
        case RunPlanned():
            return f"{body.run} goes to {body.agent}: {body.why}"
        case RunEnded():
            return f"{body.run} {body.state}: {body.why}"
        case PersonAsked():
            return f"{body.issue} waits for a person: {body.question}"
        case IssueParked() | IssueGivenBack() | IssueLeft() | PersonAnswered() | AnswerRefused() | RetryScheduled():
            return f"{body.issue}: {body.why}"
        case IssueClosed():
            return f"{body.issue} closed by {body.by}: {body.why}"
        case RunnerSeen() if body.state != "up":
            return f"the agent server is {body.state}: {body.detail}"
        case TrackerLost():
            return f"the tracker does not answer: {body.error}"
        case _:
            return None


# --- the daemon's parts, put together; the demonstration and the tests put them together here as well -----------------


class Running:
    """A daemon that runs."""

    def __init__(self, shepherd: Shepherd, worker: Worker, monitor: Monitor) -> None:
        self.shepherd, self.worker, self.monitor = shepherd, worker, monitor

    async def until(self, info: TrackerInfo, options: WorkOptions, say: Say) -> int:
        """Work until a signal, or until idle where that was asked for; give the exit code."""
        code = 0
        async with anyio.create_task_group() as group:
            group.start_soon(self.worker.run, info)
            group.start_soon(self.monitor.run)
            with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
                async with anyio.create_task_group() as waiting:
                    waiting.start_soon(self._until_signal, signals, waiting.cancel_scope, say)
                    if options.until_idle:
                        code = await self.until_idle(options.idle_grace)
                        waiting.cancel_scope.cancel()
            await self.shepherd.stop("idle" if options.until_idle else "asked to")
            group.cancel_scope.cancel()
        if options.until_idle:
            say(summary(self.shepherd.world))
        return code

    async def _until_signal(self, signals: AsyncIterator[signal.Signals], scope: anyio.CancelScope, say: Say) -> None:
        async for received in signals:
            say(f"{received.name}: stopping; turns that run go on at the server, the next start picks them up")
            scope.cancel()
            return

    async def until_idle(self, grace: timedelta) -> int:
        """Return 0 once nothing is left to do, or 1 where something waits for a server that stays away."""
        while True:
            while not is_idle(self.shepherd.world, grace):
                await self.shepherd.changed()
            if is_held_up(self.shepherd.world):
                with anyio.move_on_after(grace.total_seconds()) as waited:
                    while is_held_up(self.shepherd.world):
                        await self.shepherd.changed()
                if waited.cancelled_caught:
                    return 1
                continue
            await self.worker.fresh_look()
            world = self.shepherd.world
            if is_idle(world, grace) and not is_held_up(world):
                return 0


def summary(world: World) -> str:
    """One line: how many issues stand where."""
    states = [account(world, issue).state for issue in world.flows]
    words = {
        "closed": "closed",
        "person": "waiting for a person",
        "parked": "parked",
        "time": "waiting for a time or a slot",
        "running": "running",
        "not_eligible": "not eligible",
    }
    return "idle: " + ", ".join(f"{states.count(state)} {word}" for state, word in words.items() if state in states)


@asynccontextmanager
async def daemon(
    parts: Parts,
    configuration: Configuration,
    journal: Journal,
    options: WorkOptions,
    pictures: Sequence[Picture] = (),
    prompts: Path | None = None,
) -> AsyncGenerator[Running]:
    """Fold the journal, adopt the configuration, and take turns for as long as the block runs."""
    effects = Effects(tracker=parts.tracker, runner=parts.runner, tree=parts.tree, blobs=journal.blobs, prompts=prompts)
    shepherd = Shepherd(journal, effects, parts.clock, pictures)
    await to_thread.run_sync(shepherd.recover)
    worker = Worker(shepherd, parts.tracker, parts.tree, configuration.settings)
    monitor = Monitor(shepherd, parts.runner, journal.blobs, parts.clock, configuration.settings)
    first = await _first(shepherd.world, configuration, journal, options, parts.tracker.actor)
    async with shepherd.running(*first):
        yield Running(shepherd, worker, monitor)


async def _first(
    world: World, configuration: Configuration, journal: Journal, options: WorkOptions, actor: str
) -> list[Fact]:
    first: list[Fact] = []
    if not world.instance:
        first.append(JournalBegun(secrets.token_hex(8), secrets.token_hex(16), actor))
    first.append(DaemonStarted(os.getpid(), __version__, options.issues, options.max_issues))
    first += [
        await _adopted(configuration, journal, "settings", configuration.settings.model_dump_json(), "config"),
        await _adopted(configuration, journal, "agents", configuration.agents.model_dump_json(), "agents"),
        await _adopted(configuration, journal, "policies", configuration.policies.model_dump_json(), "policies"),
    ]
    return first


async def _adopted(configuration: Configuration, journal: Journal, kind: str, content: str, name: str) -> Adopted:
    sources = {str(key): source.text for key, source in configuration.sources.items()}
    text = await journal.blobs.keep(sources.get(name, ""))
    return Adopted(kind, content, text, RULES)  # pyright: ignore[reportArgumentType] - one of the three names above


# --- without a daemon -------------------------------------------------------------------------------------------------


def stop_server(project: Path) -> bool:
    """End the managed agent server of this project; False where there is none."""
    return anyio.run(_stop_server, project)


async def _stop_server(project: Path) -> bool:
    settings = load(project / FOLDER).settings.runners.opencode
    if settings.url is not None or not settings.managed:
        return False
    runner = OpencodeRunner.from_settings(
        settings, directory=project, state=project / FOLDER / "state", environ=os.environ
    )
    try:
        return await runner.stop_server()
    finally:
        await runner.aclose()
