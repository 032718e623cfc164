"""The control socket: how a command of the same user reaches the running daemon. One line of JSON each way, no port.

The server of the page has one of its own (`UI`), by which people are let in.

The socket lies in a folder that is this user's alone, under a name that is a hash of the state folder's real path, for
such paths may have about 107 bytes only. Where it lies says the link `control` in the state folder, so that commands
with another environment find it, too.
"""

import json
import os
import socket
import stat
import struct
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.buffered import BufferedByteReceiveStream

from ashep.errors import AshepError

LINK = "control"
"""The link in the state folder that leads to the socket."""

UI = "ui"
"""The link to the socket of the page's server."""

LONGEST_PATH = 100
"""Bytes of a socket's path; the kernel takes 107."""

LONGEST_LINE = 64 * 1024
"""Bytes of a request or an answer."""

READING = 5.0
"""Seconds in which a request must have come."""

ANSWERING = 30.0
"""Seconds in which a request is answered."""

AT_ONCE = 16
"""Requests that are looked at at one time; others wait."""

WHICH = {"which": "state"}
"""The request that every socket answers by itself: whose it is."""

MOST = 200
"""Sockets that are asked whose they are."""

LOOKING, LOOKING_AT_ALL = 1.0, 5.0
"""Seconds that one of them has, and all of them; the last that is asked may take longer."""

Answer = Callable[[bytes], Awaitable[dict[str, Any]]]

_WHICH = json.dumps(WHICH).encode()


def places(state: Path, environ: Mapping[str, str], link: str = LINK) -> Iterator[Path]:
    """Where the socket may lie, the best first."""
    name = _name(state.resolve(), link)
    if runtime := environ.get("XDG_RUNTIME_DIR"):
        yield Path(runtime) / "ashep" / name
    yield Path(tempfile.gettempdir()) / f"ashep-{os.getuid()}" / name
    yield state.resolve() / "sockets" / name


def _name(state: Path, link: str) -> str:
    return f"{sha256(os.fsencode(state)).hexdigest()[:16]}{'' if link == LINK else f'.{link}'}.sock"


def place(state: Path, environ: Mapping[str, str], link: str = LINK) -> Path | None:
    """Give the first place that is ours alone, its folder made; None where there is none."""
    short = (path for path in places(state, environ, link) if len(os.fsencode(path)) <= LONGEST_PATH)
    return next((path for path in short if _private(path.parent)), None)


def _private(folder: Path) -> bool:
    """Make the folder for us alone; False where that cannot be, or where it is somebody else's, or open to others."""
    try:
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        return _is_private(folder)
    except OSError:
        return False


def _is_private(folder: Path) -> bool:
    seen = folder.lstat()
    return stat.S_ISDIR(seen.st_mode) and seen.st_uid == os.getuid() and not seen.st_mode & 0o077


# --- the daemon's end ---------------------------------------------------------------------------------------------


async def serve(
    state: Path, environ: Mapping[str, str], answer: Answer, say: Callable[[str], None], link: str = LINK
) -> None:
    """Answer requests for ever; where there is no place for a socket that is said, and nothing else happens.

    Call it while holding the state folder: what stands in the socket's place is then a dead daemon's, and is replaced.
    """
    path = await anyio.to_thread.run_sync(place, state, environ, link)
    if path is None:
        unreached = "`ashep ui` will not reach this server"
        if link == LINK:
            unreached = "pause, resume, drain and cancel will not reach this daemon"
        say(f"there is no folder for the {link} socket: {unreached}")
        return
    limiter, ours = anyio.CapacityLimiter(AT_ONCE), await anyio.to_thread.run_sync(lambda: str(state.resolve()))

    async def tell(line: bytes) -> dict[str, Any]:
        return {"state": ours} if line == _WHICH else await answer(line)

    async def handle(stream: SocketStream) -> None:
        async with stream, limiter:
            await _answer_request(stream, tell)

    await anyio.Path(path).unlink(missing_ok=True)
    listener = await anyio.create_unix_listener(path, mode=0o600)
    try:
        await anyio.to_thread.run_sync(_point, state / link, path)
        async with listener:
            await listener.serve(handle)
    finally:
        for left in (state / link, path):
            with suppress(OSError):
                left.unlink()


def _point(link: Path, path: Path) -> None:
    fresh = link.with_name(f"{link.name}.new")
    fresh.unlink(missing_ok=True)
    fresh.symlink_to(path)
    fresh.replace(link)


async def _answer_request(stream: SocketStream, answer: Answer) -> None:
    """Read a request, and answer it; whoever says nothing, or goes away, is forgotten."""
    connection = stream.extra(SocketAttribute.raw_socket)
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, user, _ = struct.unpack("3i", credentials)  # of the other end
    if user not in (os.getuid(), 0):
        return
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, anyio.IncompleteRead):
        try:
            with anyio.fail_after(READING):
                line = await BufferedByteReceiveStream(stream).receive_until(b"\n", LONGEST_LINE)
            with anyio.fail_after(ANSWERING):
                told = await answer(line)
        except anyio.DelimiterNotFound:
            told = {"error": f"a request is a line of at most {LONGEST_LINE} bytes"}
        except TimeoutError:
            told = {"error": "it took too long: see `ashep status` for what has become of it"}
        with anyio.move_on_after(READING):
            await stream.send(json.dumps(told).encode() + b"\n")


class NotListening(AshepError):
    """The daemon does not listen: it has only begun, or found no place for its control socket."""


# --- a command's end ----------------------------------------------------------------------------------------------


def ask(state: Path, request: Mapping[str, Any], link: str = LINK) -> dict[str, Any]:
    """Ask the running daemon. Blocks, within bounds; `AshepError` where it does not answer, or refuses.

    `NotListening` says that nothing was asked, so that it may be tried again.
    """
    try:
        path = (state / link).readlink()
    except OSError as error:
        raise NotListening from error
    return _ask_at(path, request, link, ANSWERING + READING)


def _ask_at(path: Path, request: Mapping[str, Any], link: str, patience: float) -> dict[str, Any]:
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as wire:
            wire.settimeout(patience)
            try:
                wire.connect(str(path))
            except (ConnectionRefusedError, FileNotFoundError) as error:
                raise NotListening from error
            wire.sendall(json.dumps(request).encode() + b"\n")
            with wire.makefile("rb") as lines:
                said = lines.readline(LONGEST_LINE)
        told: dict[str, Any] = json.loads(said)
    except (OSError, ValueError) as error:
        who = "the daemon" if link == LINK else "the page's server"
        busy = "; it may be busy: `ashep status` shows what it does" if isinstance(error, TimeoutError) else ""
        raise AshepError(f"{who} does not answer at {path}: {error}{busy}") from error
    if "error" in told:
        raise AshepError(str(told["error"]))
    return told


def running(environ: Mapping[str, str]) -> dict[Path, set[str]]:
    """Find the state folders of projects whose daemon (`LINK`) or page (`UI`) this user runs. Blocks, within bounds.

    Nobody keeps a list: their sockets are asked. A socket is believed only about the folder whose hash is its name.
    """
    runtimes = (environ.get("XDG_RUNTIME_DIR"), f"/run/user/{os.getuid()}")
    folders = [Path(runtime, "ashep") for runtime in runtimes if runtime]
    states, deadline = dict[Path, set[str]](), time.monotonic() + LOOKING_AT_ALL  # noqa: TID251 - for people who look
    for folder in dict.fromkeys((*folders, Path(tempfile.gettempdir()) / f"ashep-{os.getuid()}")):
        try:
            sockets = sorted(folder.glob("*.sock"))[:MOST] if _is_private(folder) else []
        except OSError:
            continue
        for path in sockets:
            if time.monotonic() > deadline:  # noqa: TID251 - as above
                break
            link = UI if path.name.endswith(f".{UI}.sock") else LINK
            with suppress(AshepError, KeyError):
                state = Path(str(_ask_at(path, WHICH, link, LOOKING)["state"]))
                if state.is_absolute() and path.name == _name(state, link):
                    states.setdefault(state, set()).add(link)
    return states


def address_of(state: Path) -> str | None:
    """Ask the page's server where it is reached on this machine; None: none says so. Blocks for a moment at most."""
    with suppress(AshepError, OSError, KeyError):
        return str(_ask_at((state / UI).readlink(), {"where": True}, UI, LOOKING)["address"])
    return None


def page_of(state: Path) -> str | None:
    """Ask the page's server where people reach it; None: none says so. Blocks, within bounds."""
    with suppress(AshepError, KeyError):
        return str(ask(state, {"where": True}, UI)["where"])
    return None
