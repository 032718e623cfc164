"""Daemon, put together from parts of any kind: the real ones (`ashep.app`), or simulated ones.

It folds the journal, adopts the configuration, lets the sources of facts run, and says when to stop.
"""

import json
import logging
import os
import secrets
import signal
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from hashlib import sha256

import anyio
from anyio import to_thread

from ashep import __version__
from ashep.config import Configuration
from ashep.core.analysis.issue_status import account, has_patience, is_held_up, is_idle, needs_person, obstacle
from ashep.core.facts import commands, delivery, issues, records, resources, runs
from ashep.core.facts.sources import SourceAdmitted, SourceFailed, SourceHeld, SourceStood
from ashep.core.facts.tracker import EffectFailed, TrackerLost, TrackerSeen
from ashep.core.facts.vocabulary import ChangeJudged, Fact
from ashep.core.policy.landing import ForgeSettings
from ashep.core.policy.runner_kinds import spoken
from ashep.core.policy.settings import Settings
from ashep.core.reconcile import observe
from ashep.core.reconcile.step import RULES
from ashep.core.state.world import World
from ashep.core.text import clean
from ashep.daemon.auditor import Auditor
from ashep.daemon.base_checker import BaseWatch
from ashep.daemon.effects.cached_factory import CachedFactory
from ashep.daemon.effects.executor import Effects, ReadSignatures
from ashep.daemon.effects.pulls import ForgeAdapters
from ashep.daemon.effects.sources import Make as MakeSources
from ashep.daemon.effects.trees import TreeEffects
from ashep.daemon.effects.work import DeliveryAdapters
from ashep.daemon.journal_pruner import Pruner
from ashep.daemon.lease_heartbeat import Heartbeat
from ashep.daemon.leases import Leases
from ashep.daemon.load_monitor import MachineLoad
from ashep.daemon.pull_request_poller import PullWatch
from ashep.daemon.repository_monitor import RepositoryWatch
from ashep.daemon.runner_monitor import Monitor
from ashep.daemon.schedules import Hours
from ashep.daemon.shepherd import Picture, Shepherd
from ashep.daemon.source_poller import SourceWatch
from ashep.daemon.tracker_poller import TrackerPoller
from ashep.errors import AshepError
from ashep.journal.snapshot_writer import SnapshotWriter
from ashep.journal.writer import Journal
from ashep.ports.clock import Clock
from ashep.ports.journal import Blobs
from ashep.ports.notifier import Notifier
from ashep.ports.repository import Checkup
from ashep.ports.runner import Runner
from ashep.ports.runner_router import RunnerRouter, runners_of
from ashep.ports.tracker import Tracker, TrackerInfo
from ashep.ports.workspaces import Workspaces, WorkTree
from ashep.prompt.templates import Templates

FIRST_LOOK = 60.0
"""Seconds for a source to show issues that are waited for by name."""

Keep = Callable[[str], Awaitable[str]]
"""Makes a text durable, and gives its hash."""


@dataclass(frozen=True, slots=True)
class WorkOptions:
    """What `ashep work` was asked for."""

    issues: tuple[str, ...] = ()
    until_idle: bool = False
    idle_grace: timedelta = timedelta(minutes=5)
    max_issues: int | None = None
    backlog: resources.Backlog = ""


@dataclass(frozen=True, slots=True)
class Adapters:
    """What touches the world."""

    tracker: Tracker
    runner: Runner | RunnerRouter
    tree: WorkTree
    clock: Clock
    notifier: Notifier | None = None
    """None: nobody can be told anything."""
    workspaces: Callable[[Settings], Workspaces] | None = None
    """What makes work trees of issues' own, as the settings in force say. None: nothing does."""
    means: Callable[[Settings, Keep], DeliveryAdapters] | None = None
    """What looks into the work that was done there, and lands it."""
    pulls: Callable[[ForgeSettings], ForgeAdapters] | None = None
    """What pushes branches and opens pull requests. None: nothing does."""
    checkup: Callable[[Settings], Checkup] | None = None
    """What looks at the repository. None: nothing does."""
    bases: bool = False
    """Whether the checks of policies are run on the base, before any work."""
    asks: bool = False
    """Whether agents that are alone in a place are answered who ask for what they have committed to be verified."""
    where: Callable[[], str | None] | None = None
    """Asks where people reach the page, and blocks; None: nobody knows."""
    pressure: Callable[[], float | None] | None = None
    """Returns how long processes wait for a processor, and blocks. None: the machine's load is not looked at."""
    signatures: ReadSignatures | None = None
    """Reads signed approvals. None: none counts."""
    sources: MakeSources | None = None
    """What reaches issues that are kept elsewhere. None: nothing does."""


Say = Callable[[str], None]


def narrator(say: Say) -> Picture:
    """Tell a person who watches the turns of the story."""
    known: tuple[str, ...] = ()

    def tell(entries: Sequence[records.Entry], world: World) -> None:
        nonlocal known
        for entry in entries:
            lines = (_describe_event(entry.body, world),)
            if isinstance(seen := entry.body, delivery.RepositorySeen):
                fault = seen.fault and f"nothing begins until this is mended: {seen.fault}"
                lines, before = (fault, seen.behind, seen.error), known
                known = tuple(line.partition(" (as of ")[0] for line in lines)
                lines = tuple(line for line in lines if line.partition(" (as of ")[0] not in before)
            for line in filter(None, lines):
                say(clean(line))

    return tell


def _describe_event(body: Fact | commands.Command, world: World) -> str | None:
    """What a person who watches is told of: the turns of the story, not every effect."""
    match body:
        case EffectFailed(unforeseen=True):
            return None  # its issue is parked, and the log has the traceback
        case EffectFailed(issue=issue) if (flow := world.flows.get(issue)) is not None and flow.infra == 1:
            return f"{issue}: {account(world, issue).reason}"  # the first of a row; `status` and `why` count the others
        case issues.IssueTaken() | issues.PhaseEntered():
            phase = f" {body.phase}" if isinstance(body, issues.PhaseEntered) else ""
            return f"{body.issue}{phase}: {body.why}"
        case runs.RunPlanned():
            return f"{body.run} goes to {body.agent}: {body.why}"
        case runs.RunEnded():
            return f"{body.run} {body.state}: {body.why}"
        case runs.PromptAbandoned():
            return f"{body.run}: its prompt was never begun and is sent again: {body.why}"
        case issues.PersonAsked() | runs.InputWanted():
            return f"{body.issue} waits for a person: {body.question}"
        case (
            issues.IssueParked()
            | issues.IssueGivenBack()
            | issues.IssueLeft()
            | runs.InputEnded()
            | issues.PersonAnswered()
            | issues.AnswerRefused()
            | issues.RetryScheduled()
            | runs.SessionReleased()
        ):
            return f"{body.issue}: {body.why}"
        case ChangeJudged() if body.refused:  # what a person's change leads to is told as that
            return f"{body.issue}: {body.why}"
        case runs.SessionTaken():
            return f"{body.issue} is a person's for now: {body.why}"
        case issues.IssueClosed():
            return f"{body.issue} closed by {body.by}: {body.why}"
        case resources.WorkPaused():
            what = f"{body.provider} is paused" if body.provider else "paused"
            end = f"until {body.until.astimezone():%Y-%m-%d %H:%M}" if body.until else "until somebody resumes"
            return f"{what} by {body.by} {end}: no run starts"
        case resources.WorkResumed():
            return f"{body.provider or 'work'} resumed by {body.by}"
        case issues.IssueCancelled():
            return f"{body.run or body.issue} cancelled by {body.by}"
        case resources.RunnerSeen() if body.state != "up":
            return f"{spoken(body.runner)} is {body.state}: {body.detail}"
        case resources.RunnerSeen() if body.replaced:
            return f"{spoken(body.runner)} was replaced: {body.replaced}; sessions go on"
        case resources.RunnerSeen() if body.times > 1:
            return f"{spoken(body.runner)} comes and goes: it came back {body.times} times, each for less than a minute"
        case resources.ServerRestartPlanned() if body.failures > 1:
            when = f"{body.due.astimezone():%H:%M:%S}"
            return f"the agent server failed {body.failures} times in a row; it waits until {when}: {body.why}"
        case resources.RecycleWanted():
            return f"the agent server is begun anew {'at once' if body.at_once else 'once it is at rest'}: {body.why}"
        case resources.ServerEnded(why="recycled"):
            return "the agent server was begun anew"
        case resources.AccountAudited() if body.findings:
            several = f", and {n} more" if (n := len(body.findings) - 1 + body.more) else ""
            return f"the audit found: {body.findings[0].issue or ''} {body.findings[0].what}{several} (`ashep audit`)"
        case TrackerSeen() if body.replaced:
            more = _describe_event(replace(body, replaced=""), world)
            return f"the tracker's program was replaced: {body.replaced}" + (f"; {more}" if more else "")
        case TrackerSeen() if body.unread:
            names = ", ".join(f"{issue} ({reason})" for issue, reason in body.unread[:5])
            more = f", and {len(body.unread) - 5} more" if len(body.unread) > 5 else ""
            return f"nothing is done about these issues, which cannot be read: {names}{more}"
        case TrackerSeen() if body.lacks:
            return f"nothing new is taken: {body.lacks}"
        case resources.BacklogHeld():
            return body.reason
        case resources.MachineSeen():
            return f"the machine is behind: {body.why}; less starts" if body.why else "the machine has caught up"
        case resources.FolderLeft():
            return body.why
        case SourceStood() if body.reason:
            return f"{body.source} does not answer as a source of issues: {body.reason}"
        case SourceHeld() | SourceAdmitted():
            return f"{body.issue}: {body.why}"
        case SourceFailed():
            return f"{body.issue}: {body.error}"
        case TrackerLost():
            return f"the tracker does not answer: {body.error}"
        case _:
            return None


# --- the parts, put together --------------------------------------------------------------------------------------


class RunningDaemon:
    """A daemon that runs."""

    def __init__(
        self, shepherd: Shepherd, poller: TrackerPoller, monitors: Sequence[Monitor], auditor: Auditor
    ) -> None:
        self.shepherd, self.poller, self.monitors, self.auditor = shepherd, poller, monitors, auditor

    async def until(
        self, info: TrackerInfo, options: WorkOptions, say: Say, stopping: Callable[[], None] = lambda: None
    ) -> int:
        """Work until a signal, or until idle where that was asked for; give the exit code. `stopping`: called then."""
        code, why = 0, "a signal"
        async with anyio.create_task_group() as group:
            group.start_soon(self.poller.run, info)
            for monitor in self.monitors:
                group.start_soon(monitor.run)
            group.start_soon(self.auditor.run)
            with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
                async with anyio.create_task_group() as waiting:
                    waiting.start_soon(self._until_signal, signals, waiting.cancel_scope, say)
                    if options.until_idle:
                        if self.shepherd.world.settings.sources.all:  # one may show what nobody knows yet
                            with anyio.move_on_after(FIRST_LOOK):
                                await self.shepherd.until(lambda world: world.flows.keys() >= {*options.issues})
                        code, why = await self.until_idle(options.idle_grace, say), "idle"
                        waiting.cancel_scope.cancel()
            stopping()
            await self.auditor.last()
            await self.shepherd.stop(why)
            group.cancel_scope.cancel()
        async with anyio.create_task_group() as group:
            for monitor in self.monitors:
                group.start_soon(monitor.let_go)
        if options.until_idle:
            say(summary(self.shepherd.world))
            for issue in options.issues:
                if issue not in self.shepherd.world.flows:  # nothing was done about it
                    say(f"there is no issue {issue} that is not closed")
                    code = 1
        return code

    async def _until_signal(self, signals: AsyncIterator[signal.Signals], scope: anyio.CancelScope, say: Say) -> None:
        async for received in signals:
            say(f"{received.name}: stopping; turns that run go on at the server, the next start picks them up")
            scope.cancel()
            return

    async def until_idle(self, grace: timedelta, say: Say = lambda _: None) -> int:
        """Return 0 once nothing is left to do, or 1 where something waits for a server that stays away, or a person.

        A server that is alive, or has not failed too often, is waited for longer than `grace`.
        """
        while True:
            await self.shepherd.wait_while(lambda world: not is_idle(world, grace))
            if is_held_up(self.shepherd.world):
                # its start is no absence
                await self.shepherd.wait_while(lambda world: not {*world.runners} <= {*world.seen})
                # a person may have just put it right
                await self.poller.fresh_look(lambda: is_held_up(self.shepherd.world))
                patience = 0.0 if needs_person(self.shepherd.world) else grace.total_seconds()
                with anyio.move_on_after(patience) as waited:
                    await self.shepherd.wait_while(is_held_up)
                over = waited.cancelled_caught and is_idle(self.shepherd.world, grace)
                if over and not has_patience(self.shepherd.world):
                    say(f"gave up waiting: {obstacle(self.shepherd.world)}")
                    return 1
                continue
            await self.poller.fresh_look(lambda: is_done(self.shepherd.world, grace))
            if is_done(self.shepherd.world, grace):
                return 0


def is_done(world: World, grace: timedelta) -> bool:
    """Whether nothing is left to do, as far as is known, and nothing waits for a server that is away."""
    return is_idle(world, grace) and not is_held_up(world)


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
    counts = [f"{states.count(state)} {word}" for state, word in words.items() if state in states]
    return f"idle: {', '.join(counts) or 'no issue is known'}"


class _Reports(logging.Handler):
    """What adapters report of folders that they cannot delete becomes facts, and so is told to people."""

    def __init__(self, shepherd: Shepherd) -> None:
        super().__init__()
        self._shepherd = shepherd

    def emit(self, record: logging.LogRecord) -> None:
        """Take a report, in the thread of the event loop."""
        self._shepherd.tell(resources.FolderLeft(clean(record.getMessage())[:1000]))


@asynccontextmanager
async def _reported(shepherd: Shepherd) -> AsyncGenerator[None]:
    logger, handler = logging.getLogger("ashep.folders"), _Reports(shepherd)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)


@asynccontextmanager
async def daemon(
    parts: Adapters,
    configuration: Configuration,
    journal: Journal,
    options: WorkOptions,
    pictures: Sequence[Picture] = (),
    templates: Templates | None = None,
    report: Say = lambda _: None,
) -> AsyncGenerator[RunningDaemon]:
    """Fold the journal, adopt the configuration, and take turns for as long as the block runs."""
    keeper = SnapshotWriter(journal, report)
    pictures = [*pictures, keeper.offer]
    runners = runners_of(parts.runner)
    leases, made = Leases(parts.tracker, parts.clock), parts.means
    checkups = CachedFactory(parts.checkup, by=lambda settings: (settings.worker, settings.landing))
    effects = Effects(
        tracker=parts.tracker,
        runner=runners,
        trees=TreeEffects(parts.tree, parts.workspaces, checkups),
        blobs=journal.blobs,
        leases=leases,
        means=None if made is None else lambda settings: made(settings, journal.blobs.keep),
        pulls=parts.pulls,
        prompts=templates.folder if templates else None,
        notifier=parts.notifier,
        asks=parts.asks,
        where=parts.where,
        head=lambda: journal.head,
        report=report,
        signatures=parts.signatures,
        sources=parts.sources,
    )
    shepherd = Shepherd(journal, effects, parts.clock, pictures)

    async def begins(session: str, message: str) -> bool:
        """Let the turn of a prompt begin, once that is durable."""
        return bool(await shepherd.ask(lambda world: observe.turn_asked(world, session, message)))

    runners.begins = begins
    await to_thread.run_sync(shepherd.recover)
    poller = TrackerPoller(shepherd, parts.tracker, parts.tree, parts.clock, configuration.settings)
    monitors = [
        Monitor(shepherd, runners, name, journal.blobs, parts.clock, configuration.settings, report)
        for name in runners.names
    ]
    auditor = Auditor(shepherd, runners, parts.clock, poller.next_look)
    shepherd.show(auditor.note)
    first = await _first(shepherd.world, configuration, journal.blobs, options, parts)
    prompts = await adopted_templates(templates, journal.blobs)
    if prompts.text or shepherd.world.files.prompts:
        first.append(prompts)
    await parts.tracker.settle()  # before anything is probed: what an earlier life asked for may still land
    with suppress(AshepError):  # the next step of whatever is to land says what is wrong
        await effects.work.settle(configuration.settings)
    async with (
        _reported(shepherd),
        aclosing(effects.pulls),
        aclosing(effects.sources),
        anyio.create_task_group() as beside,
    ):
        beside.start_soon(keeper.run)
        async with shepherd.running(*first), anyio.create_task_group() as group:
            group.start_soon(Heartbeat(shepherd, leases).run)
            group.start_soon(PullWatch(shepherd, effects.pulls, journal.blobs).run)
            if parts.sources is not None:
                watch = SourceWatch(shepherd, effects.sources, journal.blobs, parts.signatures, boxed=parts.asks)
                group.start_soon(watch.run)
            if checkups.possible:
                group.start_soon(RepositoryWatch(shepherd, checkups, parts.clock).run)
            group.start_soon(Hours(shepherd, parts.clock).run)
            if parts.bases:
                group.start_soon(BaseWatch(shepherd, effects.work).run)
            group.start_soon(Pruner(shepherd, journal, parts.clock, report).run)
            group.start_soon(Hours(shepherd, parts.clock, quiet=True).run)
            if parts.pressure is not None:
                group.start_soon(MachineLoad(shepherd, parts.clock, parts.pressure).run)
            yield RunningDaemon(shepherd, poller, monitors, auditor)
            group.cancel_scope.cancel()
        beside.cancel_scope.cancel()
    await keeper.finish()


async def _first(
    world: World, configuration: Configuration, blobs: Blobs, options: WorkOptions, parts: Adapters
) -> list[Fact]:
    first: list[Fact] = []
    if not world.instance:
        first.append(resources.JournalBegun(secrets.token_hex(8), secrets.token_hex(16), parts.tracker.actor))
    first.append(
        resources.DaemonStarted(
            os.getpid(), __version__, options.issues, options.max_issues, trees=parts.workspaces is not None,
            bases=parts.bases, watches=parts.checkup is not None, backlog=options.backlog,
        )
    )  # fmt: skip
    first += [
        await adopted(configuration, blobs, "settings", configuration.settings.model_dump_json(), "config"),
        await adopted(configuration, blobs, "agents", configuration.agents.model_dump_json(), "agents"),
        await adopted(configuration, blobs, "policies", configuration.policies.model_dump_json(), "policies"),
    ]
    with suppress(AshepError):  # the look that comes next says what is wrong with it
        first.append(delivery.TreeSeen(await parts.tree.read()))
    return first


async def adopted(configuration: Configuration, blobs: Blobs, kind: str, content: str, name: str) -> resources.Adopted:
    """Give the fact that policies, agents or settings came into force; the text of their file is kept first."""
    sources = {str(key): source.text for key, source in configuration.sources.items()}
    text = await blobs.keep(sources.get(name, ""))
    return resources.Adopted(kind, blobs.redact(content), text, RULES)  # pyright: ignore[reportArgumentType] - one of the three names above


async def adopted_templates(templates: Templates | None, blobs: Blobs) -> resources.Adopted:
    """Give the fact that the user's templates came into force; `text` is empty where there are none."""
    if templates is None or not templates.texts:
        return resources.Adopted("prompts", "{}", "", RULES)
    hashes = {name: sha256(text.encode()).hexdigest() for name, text in sorted(templates.texts.items())}
    return resources.Adopted("prompts", json.dumps(hashes), await blobs.keep(templates.as_text()), RULES)
