"""Server on loopback, until it is told to stop: the token, the socket, and the parts put together."""

import errno
import ipaddress
import os
import secrets
import signal
import socket
import stat
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import uvicorn
from anyio import to_thread
from starlette.applications import Starlette

from ashep.actions.verify import Outputs, types
from ashep.adapters.verifier import wrong_patterns
from ashep.app import secrets_of
from ashep.connect import annotations_of, tracker_of, verifier_of
from ashep.core.policy.settings import Settings
from ashep.errors import AshepError, UsageError
from ashep.http.door import Connection
from ashep.http.entrance import held, let_in, link
from ashep.http.http import application
from ashep.http.operations import Service
from ashep.http.page.acts import Acts
from ashep.http.page.live import Live
from ashep.http.page.pictures import Pictures
from ashep.http.sessions import Sessions
from ashep.http.static import built
from ashep.http.verification.places import Places
from ashep.http.verification.tickets import Tickets

ACTOR = "ashep-service"
"""Under which name the service writes to the tracker: it is no person, whoever asks it."""

TOKEN = "service.token"
"""The file in the state folder that holds the token."""

SHORTEST = 16
"""Characters of a token that somebody chose."""

GRACE = 5
"""Seconds that requests under way get when the service ends; then they are cancelled, and their checks with them."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """How the service is to listen."""

    host: str = "127.0.0.1"
    port: int = 8090
    token_env: str | None = None


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
        return _kept(file) or _new(file), str(file)
    except OSError as error:
        raise UsageError(f"{file}: cannot be used: {error.strerror}") from error


def _kept(file: Path) -> str | None:
    """Read the token that an earlier service wrote; one that others could read is none to trust."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with open(descriptor, encoding="utf-8", errors="replace") as stream:
        seen = os.fstat(stream.fileno())
        if not stat.S_ISREG(seen.st_mode) or seen.st_uid != os.getuid() or stat.S_IMODE(seen.st_mode) & 0o077:
            raise UsageError(f"{file} is not this user's alone: delete it, and a new one is written")
        token = stream.read(1000).strip()
    if len(token) < SHORTEST:
        raise UsageError(f"{file} holds no token: delete it, and a new one is written")
    return token


def _new(file: Path) -> str:
    token = secrets.token_urlsafe(32)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as stream:
        stream.write(f"{token}\n")
    return token


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
        taken = error.errno == errno.EADDRINUSE
        why = f"port {port} is taken" if taken else f"port {port} cannot be used: {error.strerror}"
        raise AshepError(f"{why}; choose another with --port") from error


class _Server(uvicorn.Server):
    """A uvicorn that leaves signals to its program."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


def server_of(application: Starlette) -> uvicorn.Server:
    """Give what listens; how many may be connected, and for how long, is the door's (`ashep.http.door`)."""
    config = uvicorn.Config(
        application,
        log_level="critical",
        lifespan="off",
        ws="none",
        http=Connection,
        server_header=False,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=GRACE,
    )
    return _Server(config)


def serve(
    project: Path,
    folder: Path,
    settings: Settings,
    wanted: Wanted,
    say: Callable[[str], None],
    enter: Callable[[str], None] | None = None,
    person: str = "",
) -> None:
    """Answer requests until SIGTERM or SIGINT. Raises `UsageError` and `AshepError` before it begins.

    `enter` is told the link by which this person comes in, once somebody listens there.
    """
    state = folder / "state"
    token, place = token_of(state, wanted.token_env, os.environ)
    listener = listen(wanted.host, wanted.port)
    host, port = listener.getsockname()[:2]
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    sessions = Sessions(token, time.monotonic)  # noqa: TID251 - for people, outside of everything that is replayed
    try:
        with held(state) as alone:

            def ready() -> None:
                say(f"listening on {address}; the token is in {place}")
                if not alone:
                    say("another server of this project lets people in: `ashep ui` leads there")
                if enter is not None:
                    enter(link(address, sessions.code(person)))

            entrance = address if alone else None
            anyio.run(_serve, project, folder, settings, token, sessions, listener, entrance, ready, say)
    finally:
        listener.close()


async def _serve(
    project: Path,
    folder: Path,
    settings: Settings,
    token: str,
    sessions: Sessions,
    listener: socket.socket,
    entrance: str | None,
    ready: Callable[[], None],
    say: Callable[[str], None],
) -> None:
    from ashep.adapters.clock import RealClock

    redaction, state = secrets_of(settings, say), folder / "state"
    redaction.add(token)
    outputs, clock = Outputs(redaction.text), RealClock()
    tracker = tracker_of(project, settings, ACTOR, redaction=redaction)
    tickets = Tickets(
        tracker,
        annotations_of(project, settings, ACTOR),
        verifier_of(project, settings, outputs.keep, redaction=redaction),
        outputs,
        Places(project, settings.verification.repositories, state / "repositories"),
        clock.now,
        types(settings),
        wrong_patterns,
    )
    pictures = Pictures(folder, clock.now, say, redaction)
    live = Live(pictures)
    service = Service(tickets, pictures, Acts(pictures, clock.now), live, sessions)
    server = server_of(application(service, say, await to_thread.run_sync(built)))
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(_until_told, server, tickets, live)
            if entrance is not None:
                group.start_soon(let_in, state, os.environ, sessions, entrance, say)
                group.start_soon(pictures.keep)  # as its holder: of several servers one does
            ready()
            await server.serve([listener])
            group.cancel_scope.cancel()
    finally:
        clock.close()
        with anyio.CancelScope(shield=True), anyio.move_on_after(2):
            await tracker.aclose()


async def _until_told(server: uvicorn.Server, tickets: Tickets, live: Live) -> None:
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            tickets.end()
            live.end()
            server.should_exit = True
