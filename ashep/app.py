"""The composition root: the only file that knows everybody. It gives the daemon the real tools to work with."""

import gc
import os
import socket
from functools import partial
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

from ashep import factories
from ashep.actions.doctor import settings_of
from ashep.actions.dry_run import DryRun, preview
from ashep.actions.issue_sources import make_sources
from ashep.actions.story_sync import Keeping, mirror_of
from ashep.actions.verify_requests import VerifyResponder
from ashep.adapters.git.user_work_tree import GitTree
from ashep.adapters.notifier import Messenger
from ashep.adapters.sandboxes.bubblewrap import try_out
from ashep.adapters.sandboxes.logins import orders
from ashep.adapters.system import control_socket, filesystems, process_table, programs
from ashep.adapters.system.clock import RealClock
from ashep.adapters.system.load import cpu_pressure
from ashep.adapters.system.process_table import OWN_OOM, adjust
from ashep.adapters.system.sd_notify import Systemd
from ashep.config import load, put_schemas
from ashep.core.impact.secrets import is_random
from ashep.core.policy.isolation_notice import AS_YOU
from ashep.core.policy.runner_kinds import OPENCODE
from ashep.core.policy.settings import Settings
from ashep.core.resources.notices import targets
from ashep.daemon.control import Control, LiveSigns
from ashep.daemon.daemon import Adapters, Say, WorkOptions, daemon, narrator
from ashep.daemon.reload import Reload
from ashep.daemon.shepherd import Picture
from ashep.daemon.tracker_poller import longest_gap
from ashep.daemon.watchdog import Watchdog
from ashep.errors import DiskFailed, NotSent, TrackerUnavailable, ours
from ashep.factories import FOLDER
from ashep.journal.lock import Lock
from ashep.journal.writer import Journal, Sizes
from ashep.ports.notifier import Message
from ashep.ports.tracker import Tracker, TrackerInfo
from ashep.prompt import user_files
from ashep.prompt.user_files import UserFiles
from ashep.redaction import SHORTEST, Redaction, guessed
from ashep.store.projector import Follower

FOLDER_CHECK = 10.0
"""Seconds between looks at whether the state folder is still there."""

BACKOFF = (1.0, 30.0)
"""Seconds between tries to reach a tracker that does not answer at the start."""


def work(project: Path, options: WorkOptions, say: Say) -> int:
    """Run the daemon until it is told to stop, or is idle where that was asked for; give the exit code.

    Raises `ConfigError`, `AlreadyRunning`, `TrackerMissing`, `JournalDamaged`, `DiskFailed`.
    """
    files = user_files.read(project / FOLDER)
    configuration = files.configuration
    factories.check(project, configuration.settings)
    state = project / FOLDER / "state"
    process_table.raise_open_files()
    if kind := filesystems.network_file_system(state):
        say(filesystems.warning(state, kind))
    gc.freeze()  # what was imported stays for ever: the collector need not walk it again and again
    clock = RealClock()
    adjust(os.getpid(), OWN_OOM)
    with programs.no_thread_each(), Lock.acquire(state, clock.now()) as lock:
        sizes = configuration.settings.journal
        journal = Journal.open(state, clock.now(), Sizes(sizes.max_file_size, sizes.keep))
        if journal.cut:
            say(f"the last {journal.cut} bytes of the journal were torn and are cut: nothing of them was acted on")
        try:
            put_schemas(project / FOLDER)  # there will be work: what ends before leaves all as it was
            return anyio.run(_work, project, files, journal, lock, clock, options, say)
        except BaseExceptionGroup as group:  # of errors of ours the one with the highest exit code is told
            raise max(ours(group), key=lambda error: error.exit_code) from None
        finally:
            journal.close()


async def _work(
    project: Path,
    files: UserFiles,
    journal: Journal,
    lock: Lock,
    clock: RealClock,
    options: WorkOptions,
    say: Say,
) -> int:
    state, configuration = project / FOLDER / "state", files.configuration
    tracker_settings = configuration.settings.tracker
    kept_name = journal.begun.actor if journal.begun else ""  # with which this journal began
    actor = tracker_settings.actor or kept_name or actor_name(state)
    redaction = secrets_of(configuration.settings, say)
    journal.blobs.redact = redaction.text
    settings = configuration.settings
    tracker = factories.tracker_of(project, settings, actor, redaction=redaction, clock=clock)
    await anyio.to_thread.run_sync(orders, factories.opencode_logins().file)  # those that came before any agent began
    runner = factories.runners_of(project, settings, redaction=redaction, clock=clock)
    notifier = Messenger(project, redaction=redaction)
    tree, trees = GitTree(project, redaction=redaction), partial(factories.worktrees_of, project, redaction=redaction)
    means = partial(factories.make_delivery_adapters, project, actor=actor, redaction=redaction, clock=clock)
    pulls = partial(factories.make_forge_adapters, project, redaction=redaction)
    wished = {settings.agents.sandbox, *(agent.sandbox for agent in configuration.agents.agents)}
    found = await try_out() if settings.isolated else ""  # agents.yaml may come to ask for one
    why, boxed = (found, False) if isinstance(found, str) else ("", True)
    where = partial(control_socket.page_of, state)
    checkup = partial(factories.checkup_of, project, redaction=redaction)
    parts = Adapters(
        tracker, runner, tree, clock, notifier, trees, means, pulls, checkup, bases=True, asks=boxed, where=where,
        pressure=cpu_pressure, signatures=partial(factories.read_signatures, project),
        sources=partial(make_sources, project, actor=actor, redaction=redaction),
    )  # fmt: skip
    systemd = Systemd.from_environ(os.environ)
    follower, code = Follower(state, journal, say), 0
    stories = Keeping(mirror_of(project, settings, actor), say) if settings.bmad.enabled else None
    try:
        info = await _reach_tracker(tracker, say, systemd)
        program = tracker_settings.type if tracker_settings.is_own else "bd"
        say(f"working on {info.location} as {actor}; {program} {info.version}")
        if "sandbox" not in settings.agents.model_fields_set:
            say(AS_YOU)
        if "auto" in wished and why:
            say(f"agents run as you and reach all that you can: `sandbox` is auto, and {why}")
        if stories is not None:
            await stories.once()
        async with anyio.create_task_group() as group:
            group.start_soon(follower.run)
            group.start_soon(stay_at_home, lock)
            pictures: list[Picture] = [lambda _, world: follower.offer(journal.position, world), narrator(say)]
            async with daemon(parts, configuration, journal, options, pictures, files.templates, say) as running:
                group.start_soon(Reload(project / FOLDER, running.shepherd, say).run)
                if stories is not None:
                    group.start_soon(stories.run)
                if boxed:
                    group.start_soon(VerifyResponder(project, running.shepherd, redaction).run)
                control = Control(running.shepherd, LiveSigns(running.shepherd, runner, clock).read)
                group.start_soon(control_socket.serve, state, os.environ, control.answer, say)
                watchdog = Watchdog(running.shepherd, clock, lambda: running.poller.looks, systemd.tell)
                if systemd.listens:
                    group.start_soon(watchdog.run, systemd.watchdog, longest_gap(tracker_settings))
                    systemd.tell("READY=1")
                code = await running.until(info, options, say, lambda: systemd.tell("STOPPING=1"))
            group.cancel_scope.cancel()
        return code
    finally:
        with anyio.CancelScope(shield=True), anyio.move_on_after(2):
            await tracker.aclose()
            await runner.aclose()
            systemd.close()


async def stay_at_home(lock: Lock, every: float = FOLDER_CHECK) -> None:
    """Raise `DiskFailed` once the state folder is gone: the next daemon that starts would be a second one."""
    while await anyio.to_thread.run_sync(lock.stands):
        await anyio.sleep(every)
    raise DiskFailed(
        f"{lock.path.parent} was deleted or moved while the daemon ran. Nothing more is done. "
        "Start ashep again: it goes on from what the tracker shows, or put the folder back first."
    )


def secrets_of(settings: Settings, say: Say) -> Redaction:
    """Collect what must not be written down: the values of the variables that the settings take a secret from, and of
    those that look as if they held one.
    """
    redaction = Redaction(tuple(guessed(os.environ)))
    for name in settings.redact:
        value = os.environ.get(name, "")
        redaction.add(value)
        if len(value) < SHORTEST:
            say(f"warning: redact: {name} is {'too short to be found in a text' if value else 'not set'}: not redacted")
    for name in factories.secret_variables(settings):
        for part in os.environ.get(name, "").split():
            redaction.add_url(part)
    opencode = settings.runners.opencode
    for name in (*settings.verification.environment, *opencode.environment):  # handed on to programs that may print it
        if is_random(value := os.environ.get(name, "")):
            redaction.add(value)
    redaction.add(os.environ.get(opencode.password_env))
    redaction.add(urlsplit(opencode.url or "").password)
    return redaction


def actor_name(state: Path) -> str:
    """The default name: the host and a hash of the state folder's real path at the first start."""
    host = "".join(char for char in socket.gethostname().split(".")[0].lower() if char.isalnum() or char == "-")
    return f"ashep-{host[:40] or 'host'}-{sha256(os.fsencode(state.resolve())).hexdigest()[:8]}"


async def _reach_tracker(tracker: Tracker, say: Say, systemd: Systemd) -> TrackerInfo:
    """Only an unmistakable answer ends the start; any other failure of the tracker is tried again with backoff.

    To wait for it is to be at work: a service manager is told so, and that the daemon lives.
    """
    wait = BACKOFF[0]
    while True:
        try:
            return await tracker.check()
        except TrackerUnavailable as error:
            say(f"the tracker does not answer ({error}); trying again in {wait:.0f} s")
            systemd.tell("READY=1", "WATCHDOG=1", f"STATUS=the tracker does not answer: {error}")
        await anyio.sleep(wait)
        wait = min(wait * 2, BACKOFF[1])


# --- without a daemon -------------------------------------------------------------------------------------------------


def dry_run(project: Path, options: WorkOptions) -> DryRun:
    """Look once and say who would start and who would not; nothing is written anywhere."""
    folder = project / FOLDER
    name = actor_name(folder / "state")
    return anyio.run(preview, project, folder, options.issues, options.max_issues, name, options.backlog)


def stop_server(project: Path) -> bool:
    """End the managed agent server of this project; False where there is none."""
    return anyio.run(_stop_server, project)


async def _stop_server(project: Path) -> bool:
    settings = settings_of(project)  # whatever is wrong in another file, a server can be ended
    runners, ended = factories.runners_of(project, settings), False
    try:
        for name in (name for name in runners.names if name != OPENCODE or settings.runners.opencode.ours):
            ended = await runners[name].stop_server() or ended
    finally:
        await runners.aclose()
    return ended


def notify_test(project: Path) -> list[tuple[str, str]]:
    """Send a test message to every target of `notify`: each with what went wrong, or an empty text."""
    return anyio.run(_notify_test, project)


async def _notify_test(project: Path) -> list[tuple[str, str]]:
    settings = load(project / FOLDER).settings
    messenger = Messenger(project, redaction=secrets_of(settings, lambda _: None))
    found = list[tuple[str, str]]()
    for name, target in targets(settings.notify).items():
        message = Message(f"test:{name}", "a test", "- this is a test; nothing happened", test=True)
        try:
            await messenger.send(target, message)
            found.append((name, ""))
        except NotSent as error:
            found.append((name, str(error)))
    return found
