"""Server on loopback, until it is told to stop: the token, the socket, and the parts put together."""

import errno
import fcntl
import ipaddress
import os
import secrets
import signal
import socket
import stat
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread

from ashep.actions.systemd_unit import PORT
from ashep.actions.verify import Outputs, types
from ashep.adapters.system import control_socket
from ashep.adapters.system.http_server import Server, make_server
from ashep.adapters.verifier import wrong_patterns
from ashep.api.application import application
from ashep.api.browser_sessions import BrowserSessions
from ashep.api.handlers import point_in_time
from ashep.api.handlers.actions import ActionHandlers
from ashep.api.handlers.allowed_repositories import AllowedRepositories
from ashep.api.handlers.events import Live
from ashep.api.handlers.queries import QueryHandlers
from ashep.api.handlers.tickets import Tickets
from ashep.api.login_links import LoginLinks, lock_entrance
from ashep.api.openapi import ApiServices
from ashep.api.page_port import PortTaken, listen_somewhere, read_port
from ashep.api.paired_devices import Devices, read_private
from ashep.api.sessions import Sessions
from ashep.api.static import built
from ashep.app import secrets_of
from ashep.core.policy.settings import Settings
from ashep.errors import AshepError, UsageError
from ashep.factories import annotations_of, tracker_of, verifier_of

ACTOR = "ashep-service"
"""Under which name the service writes to the tracker: it is no person, whoever asks it."""

TOKEN = "service.token"
"""The file in the state folder that holds the token."""

SHORTEST = 16
"""Characters of a token that somebody chose."""

GRACE = 5
"""Seconds that requests under way get when the service ends; then they are cancelled, and their checks with them."""


@dataclass(frozen=True, slots=True)
class ListenOptions:
    """How the service is to listen."""

    host: str = "127.0.0.1"
    port: int | None = None
    """None: the project's own, which is 8090 at first."""
    moves: bool = False
    """Where the project's own is taken, another one is its own from now on."""
    token_env: str | None = None
    socket: Path | None = None
    """A unix socket in place of the port."""
    origins: tuple[str, ...] = ()
    """Origins next to those of config.yaml."""


@dataclass(frozen=True, slots=True)
class Person:
    """Who comes in as soon as somebody listens."""

    name: str
    enter: Callable[[str], None]
    """It is told the link."""
    pairs: bool = False
    origin: str | None = None
    place: str = ""
    """The page that it leads to; empty: the first one."""


def token_of(state: Path, token_env: str | None, environ: Mapping[str, str]) -> tuple[str, str]:
    """Give the token and where it comes from; a new one is written where there is none. Raises `UsageError`."""
    if token_env is not None:
        token = environ.get(token_env, "")
        if len(token) < SHORTEST:
            raise UsageError(f"{token_env} is {'too short' if token else 'not set'}: a token has {SHORTEST} characters")
        return token, f"the variable {token_env}"
    file = state / TOKEN
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        if (text := read_private(file, 1000)) is None:  # an earlier service wrote none
            text = secrets.token_urlsafe(32)
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with open(descriptor, "w", encoding="utf-8") as stream:
                stream.write(f"{text}\n")
    except OSError as error:
        raise UsageError(f"{file}: cannot be used: {error.strerror}") from error
    if len(text.strip()) < SHORTEST:
        raise UsageError(f"{file} holds no token: delete it, and a new one is written")
    return text.strip(), str(file)


def listen(host: str, port: int) -> socket.socket:
    """Listen on loopback. Raises `UsageError` for any other address, `AshepError` where the port is taken."""
    name = "127.0.0.1" if host == "localhost" else host
    try:
        address = ipaddress.ip_address(name)
    except ValueError as error:
        raise UsageError(f"--host {host}: expected an address such as 127.0.0.1 or ::1") from error
    if not address.is_loopback:
        raise UsageError(f"--host {host}: only loopback; put a proxy with TLS in front of it for other machines")
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    try:
        made = socket.create_server((name, port), family=family)
        # asyncio does so for sockets of this protocol by name alone: else each answer waits 40 ms for its own head
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return made
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise PortTaken(f"port {port} is taken; choose another with --port") from error
        raise AshepError(f"port {port} cannot be used: {error.strerror}; choose another with --port") from error


@contextmanager
def listening_at(path: Path) -> Generator[socket.socket]:
    """Listen on a unix socket of this user's alone, and take it away at the end.

    Where a dead server's stands there it is replaced. Raises `UsageError` where something else does, `AshepError`
    where somebody listens on it.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as made:
        try:
            with _alone_in(path.parent):
                _make_room(path)
                made.bind(str(path))
                path.chmod(0o600)  # nobody can connect before it listens
                made.listen(128)
                ours = path.lstat()
        except OSError as error:  # that of a path that is too long is not the system's
            raise UsageError(f"--socket {path}: {error.strerror or error}") from error
        try:
            yield made
        finally:
            with suppress(OSError), _alone_in(path.parent):
                if os.path.samestat(path.lstat(), ours):
                    path.unlink()


@contextmanager
def _alone_in(folder: Path) -> Generator[None]:
    """Let nobody else begin or end there, so that of two one finds what the other made; who cannot, does not wait."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(opened)


def _make_room(path: Path) -> None:
    folder = path.parent.stat()
    others = folder.st_mode & stat.S_IWOTH and not folder.st_mode & stat.S_ISVTX
    if others or folder.st_uid not in (0, os.getuid()):
        raise UsageError(f"--socket {path}: others may put a socket of theirs in its place; take a folder of your own")
    try:
        seen = path.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(seen.st_mode) or seen.st_uid != os.getuid():
        raise UsageError(f"--socket {path}: something else is there, which is not replaced")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as wire:
        wire.settimeout(1)
        try:
            wire.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
        except TimeoutError:
            pass
    raise AshepError(f"--socket {path}: somebody listens on it")


@contextmanager
def _listener(
    state: Path, wanted: ListenOptions, say: Callable[[str], None], *, alone: bool
) -> Generator[tuple[socket.socket, str, str]]:
    """Listen; give the address for browsers, and how it is said."""
    if wanted.socket is not None:
        path = wanted.socket.absolute()
        address = f"http://localhost:{wanted.port or PORT}"
        with listening_at(path) as made:
            yield made, address, f"{path}; reach it as {address} by `ssh -L {wanted.port or PORT}:{path} THERE`"
        return
    bind = partial(listen, wanted.host)
    if wanted.port is not None or not alone:  # of several servers of a project the first has its port
        listener = bind(wanted.port if wanted.port is not None else read_port(state) or PORT)
    else:
        listener = listen_somewhere(state, bind, say, moves=wanted.moves)
    with listener as made:
        host, port = made.getsockname()[:2]
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        yield made, address, address


def serve(
    project: Path,
    folder: Path,
    settings: Settings,
    wanted: ListenOptions,
    say: Callable[[str], None],
    person: Person | None = None,
) -> None:
    """Answer requests until SIGTERM or SIGINT. Raises `UsageError` and `AshepError` before it begins.

    `person` comes in as soon as somebody listens.
    """
    state = folder / "state"
    token, place = token_of(state, wanted.token_env, os.environ)
    with lock_entrance(state) as alone, _listener(state, wanted, say, alone=alone) as (listener, address, said):
        sessions = _make_sessions(token, state if alone else None, address, say)
        entrance = LoginLinks(sessions, address, tuple(dict.fromkeys((*settings.ui.origins, *wanted.origins))))

        def ready() -> None:
            say(f"listening on {said}; the token is in {place}")
            if not alone:
                say("another server of this project lets people in: `ashep ui` leads there")
            if person is not None:
                person.enter(entrance.link(person.name, pairs=person.pairs, origin=person.origin, place=person.place))

        anyio.run(_serve, project, folder, settings, token, entrance, listener, alone, ready, say)


def _make_sessions(token: str, state: Path | None, address: str, say: Callable[[str], None]) -> Sessions:
    """Make the sessions, with those of an earlier server; `state`: None: another server lets people in."""
    clock = partial(datetime.now, UTC)  # noqa: TID251 - for people, outside of everything that is replayed, as below
    devices = None if state is None else Devices(state, clock)
    browsers = BrowserSessions(state, clock, address)
    for kind in filter(None, (devices, browsers)):
        try:
            kind.load()
        except AshepError as error:
            say(f"warning: {error}")
    return Sessions(token, time.monotonic, devices, browsers)  # noqa: TID251


async def _serve(
    project: Path,
    folder: Path,
    settings: Settings,
    token: str,
    entrance: LoginLinks,
    listener: socket.socket,
    alone: bool,
    ready: Callable[[], None],
    say: Callable[[str], None],
) -> None:
    from ashep.adapters.system.clock import RealClock

    redaction, state = secrets_of(settings, say), folder / "state"
    redaction.add(token)
    outputs, clock = Outputs(redaction.text), RealClock()
    tracker = tracker_of(project, settings, ACTOR, redaction=redaction)
    tickets = Tickets(
        tracker,
        annotations_of(project, settings, ACTOR),
        verifier_of(project, settings, outputs.keep, redaction=redaction),
        outputs,
        AllowedRepositories(project, settings.verification.repositories, state / "repositories"),
        clock.now,
        types(settings),
        wrong_patterns,
        settings.labels,
    )
    pictures = QueryHandlers(folder, clock.now, say, redaction)
    live = Live(pictures)
    sessions = entrance.sessions
    service = ApiServices(tickets, pictures, ActionHandlers(pictures, clock.now), live, sessions)
    server = make_server(application(service, say, await to_thread.run_sync(built), entrance.origins), GRACE)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_until_told, server, tickets, live)
            if alone:
                group.start_soon(control_socket.serve, state, os.environ, entrance.answer, say, control_socket.UI)
                group.start_soon(point_in_time.keep, pictures)  # of several servers one does, as it lets people in
            for kind in sessions.people:
                group.start_soon(kind.keep, say)
            ready()
            await server.serve([listener])
            group.cancel_scope.cancel()
    finally:
        pictures.drawer.end()
        with anyio.CancelScope(shield=True), anyio.move_on_after(2):
            await tracker.aclose()
            await sessions.save()


async def _until_told(server: Server, tickets: Tickets, live: Live) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            tickets.end()
            live.end()
            server.should_exit = True
