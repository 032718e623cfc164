"""The OpenCode server that ashep starts itself, and how it is found again.

Two servers on one data folder break each other (facts/opencode.md 23), so that at most one may ever live, whatever is
killed when. All of this happens under a lock file:

1. A record with a random token, a port and a password is on disk (0600, fsynced) before a server is started.
2. The token stands in the server's environment, which its children inherit. A process is ours if, and only if, its
   environment holds the token: a pid that the system gave to somebody else is never touched, and a server that was
   started just before ashep died is found although no pid was written.
3. Whatever holds the token is ended and seen dead before another server starts: the tools of a dead server too.
4. The password goes to a port only once what listens there holds the token: whoever took the port before the server
   did, another user of this machine, say, gets nothing, and the server begins on another one.

The server has a process group of its own and writes to a file, so that it outlives ashep.
"""

import hashlib
import os
import secrets
import shlex
import socket
import subprocess
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import NoReturn

import anyio.to_thread
from pydantic import BaseModel, ValidationError

from ashep.adapters.git import fsync
from ashep.adapters.runners.opencode.client import PROBE, USER, Address, probe, was_refused
from ashep.adapters.runners.opencode.environment import filter_environment
from ashep.adapters.sandboxes.bubblewrap import View
from ashep.adapters.sandboxes.exec import find_program_folders, start
from ashep.adapters.sandboxes.logins import orders
from ashep.adapters.sandboxes.profiles import SandboxProfile
from ashep.adapters.system import process_table, programs
from ashep.adapters.system.folders import delete
from ashep.core.policy.settings import Settings
from ashep.core.text import clean
from ashep.errors import ProgramMissing, RunnerUnauthorized, RunnerUnavailable, ServerNotStarted, ServerStarting
from ashep.journal import durable_io

FIRST_PATIENCE = 40.0
"""Seconds that a started server is given to answer. One that is alive then is given twice as long, again and again."""

BUSY_PATIENCE = 30.0
"""The same for a server that has answered before; one that is not alive then counts as wedged, and is ended."""

LONGEST_PATIENCE = 600.0
"""Seconds after which a server that has not answered is ended, whatever it uses."""

_SLICE = 60.0  # the longest that one call waits, so that who waits is told how things are
_PATIENCE = 8.0  # the longest of those probes: on a busy machine a healthy server is slow
_LOCK = 120.0  # for another starter to be done
_PORTS = 3  # that are tried where somebody else takes them

LOG_LIMIT = 16 * 1024 * 1024
"""Bytes of `server.log` at which its last part moves to `server.log.old` and it begins again."""

LOG_KEPT = 1024 * 1024
"""Bytes that move there."""

LEFT = "left"
"""A file in the folder of a server that was ended because what runs there is over: nobody begins it only to read."""

TOKEN = "ASHEP_SERVER_TOKEN"
"""The environment variable that holds the token."""


class ServerRecord(BaseModel):
    """The content of `server.json`."""

    token: str
    port: int
    password: str
    pid: int | None = None
    """None: it was about to be started."""
    started: int | None = None
    """The process's start time, in clock ticks since the machine started."""
    first: tuple[int, int] | None = None
    """The first process of its sandbox and that one's start time: with it all that is in there ends."""
    how: str = ""
    """How it was started, where not everything that can be was; one that is to be started otherwise is another one."""
    answered: bool = False
    """It has answered: what does not answer any more is busy, or wedged."""

    @property
    def mark(self) -> process_table.ProcessMark:
        """What tells the server's processes from all others."""
        return process_table.ProcessMark(TOKEN, self.token)


def record_in(folder: Path) -> ServerRecord | None:
    """Read the record of the server that keeps its things in a folder; None: there is none that can be read."""
    with suppress(OSError, ValueError):
        return ServerRecord.model_validate_json((folder / "server.json").read_bytes())
    return None


def folder_of(state: Path, environ: Mapping[str, str]) -> Path:
    """Where the server of a state folder keeps its things: it survives the loss of `state/`."""
    base = environ.get("XDG_STATE_HOME") or os.path.join(environ.get("HOME") or os.path.expanduser("~"), ".local/state")
    digest = hashlib.sha256(os.fsencode(os.path.realpath(state))).hexdigest()[:16]
    return Path(base, "ashep", digest)


@dataclass(slots=True)
class _Silence:
    """A server does not answer: since when, how many seconds it is given now, and what it had used of the processor."""

    token: str
    since: float
    bound: float
    used: float
    answered: bool


class ManagedServer:
    """The server of one state folder, or of a folder of its own."""

    def __init__(
        self,
        *,
        command: Sequence[str],
        directory: Path,
        state: Path,
        environ: Mapping[str, str] | None = None,
        nice: int = 0,
        names: Collection[str] = (),
        secret: Collection[str] = (),
        folder: Callable[[], Path] | None = None,
        profile: Callable[[Path], Awaitable[SandboxProfile]] | None = None,
    ) -> None:
        """`named` and `secret`: variables that pass to the server, too, and those that never do. `folder`: gives its
        own; None: that of the state folder. `profile`: gives how it is started, with its folder; None: as we are.
        """
        self._named, self._secret = names, secret
        self._own, self._profiled = folder, profile
        self._profile: SandboxProfile | None = None
        self._command, self._nice = tuple(command), nice
        self._directory = directory
        self._environ = dict(os.environ if environ is None else environ)
        self._state = state
        self._little = ""
        """Why its disk had too little room at the last look."""
        self._silence: _Silence | None = None
        self._first = FIRST_PATIENCE
        """Seconds that the next start is given: twice as many after each that showed no life."""

    @cached_property
    def folder(self) -> Path:
        """The folder of `server.json`, `server.log`, the lock and the server's own data (0700)."""
        return self._own() if self._own is not None else folder_of(self._state, self._environ)

    @property
    def _record_file(self) -> Path:
        return self.folder / "server.json"

    @property
    def _log_file(self) -> Path:
        return self.folder / "server.log"

    async def reach(self) -> Address:
        """Re-attach to the server that runs, or end what is left of it and start one.

        Raises:
            ProgramMissing: there is no such program.
            ServerStarting: it is alive, and has not answered yet; the next call goes on waiting.
            ServerNotStarted: it did not answer in time; its log's last lines are in the message.

        """
        async with self._locked():
            await self.ask_for_room()
            strange = await _in_thread(orders, self._login)
            self._profile = await self._profiled(self.folder) if self._profiled is not None else None
            record = await _in_thread(self._recall)
            if record is not None:
                with suppress(_Taken):
                    same = record.how == (self._profile.how if self._profile is not None else "")
                    if same and record.pid is not None:
                        if await self._answers(record):
                            return await self._reached(record)
                        if not record.answered:
                            await self._give_up(record)
                await _end(record)
            if strange:
                raise ServerNotStarted(
                    f"a login `wellknown` at {', '.join(map(clean, strange))[:500]} has come into {self._login} since "
                    "ashep began: OpenCode takes its configuration from there, and the programs that this names; where "
                    "it is not yours, `opencode auth logout` takes it away, and where it is, begin ashep again"
                )
            for _ in range(_PORTS - 1):
                with suppress(_Taken):
                    return await self._start()
            return await self._start()

    async def living(self) -> Address:
        """Say where the server that runs is; `RunnerUnavailable` where none does. Nothing is started or written."""
        record = await _in_thread(self._read)
        leader = await _in_thread(_leader, record) if record is not None else None
        if record is None or leader is None:
            raise RunnerUnavailable("no managed agent server runs")
        await _in_thread(self._listens, record)
        return _address(record.model_copy(update={"pid": leader[0], "started": leader[1]}))

    async def surroundings(self) -> tuple[SandboxProfile | None, dict[str, str]]:
        """Say how it would be started now, and what the tools of its agents have in their environment."""
        folder = await _in_thread(lambda: self.folder)
        profile = await self._profiled(folder) if self._profiled is not None else None
        return profile, await _in_thread(self._make_environment, profile)

    async def stop(self) -> bool:
        """End the server and everything that it started, and see it dead; False where none ran."""
        if not await _in_thread(lambda: self._record_file.exists()):
            return False
        async with self._locked():
            record = await _in_thread(self._read)
            ended = record is not None and await _end(record)
            await _in_thread(self._forget)
            return ended

    async def memory(self) -> int | None:
        """How many bytes the server's process group holds; None where no server is on record."""
        return await _in_thread(self._measure)

    async def ask_for_room(self) -> None:
        """Raise RunnerUnavailable where its data lie on a disk that takes hardly anything more.

        It answers then as ever, takes prompts and loses them: no turn on it can be believed to have begun or died.
        """
        folder = await _in_thread(lambda: self.folder)
        self._little = await programs.little_room(folder, was_little=bool(self._little))
        if self._little:
            raise RunnerUnavailable(self._little)

    def _measure(self) -> int | None:
        with suppress(OSError):
            self._shorten_log()
        record = self._read()
        return process_table.memory_of(record.pid) or None if record is not None and record.pid is not None else None

    def refused(self) -> None:
        """Do nothing: a managed server's life is named by its process."""

    # --- starting -------------------------------------------------------------------------------------------------

    def _recall(self) -> ServerRecord | None:
        """The record of the server that should run; its pid is None where the process does not live."""
        record = self._read()
        if record is None:
            return None
        leader = _leader(record)
        if leader is None:
            return record.model_copy(update={"pid": None, "started": None})
        if (record.pid, record.started) != leader:  # ashep died before it could write them
            record = record.model_copy(update={"pid": leader[0], "started": leader[1]})
            self._write(record)
        return record

    async def _start(self) -> Address:
        record, port_error = await _in_thread(self._launch), None
        try:
            if await self._answers(record):
                return await self._reached(record)
        except _Taken as error:
            port_error = error
        return await self._give_up(record, port_error)

    async def _reached(self, record: ServerRecord) -> Address:
        """Note that a server answers, and return where it is."""
        self._silence, self._first = None, FIRST_PATIENCE
        if not record.answered:
            await _in_thread(self._write, record.model_copy(update={"answered": True}))
        return _address(record)

    async def _give_up(self, record: ServerRecord, cause: ServerNotStarted | None = None) -> NoReturn:
        """End a server that has never answered. Raises `ServerNotStarted`."""
        silence, lived = self._silence, await _in_thread(process_table.lives, record.pid, record.started)
        used = await _in_thread(process_table.processor_time, record.pid or 0)
        await _end(record)
        tail = await _in_thread(self._log_tail)
        await _in_thread(self._forget)
        self._silence = None
        if cause is not None:
            raise cause
        fate = "ended at its start"
        if lived and silence is not None:
            self._first = min(silence.bound * 2, LONGEST_PATIENCE)
            fate = f"did not answer within {silence.bound:g} s and was ended; it had used {used:.0f} s of CPU"
        raise ServerNotStarted(f"the OpenCode server {fate}; {self._log_file} {tail}")

    def _launch(self) -> ServerRecord:
        """Record, start, record: in this order, so that no server is ever unknown."""
        program = programs.find(self._command[0])
        if program is None:
            raise ProgramMissing(f"{self._command[0]} is neither on PATH nor in the tools cache")
        record = ServerRecord(token=secrets.token_hex(16), port=_free_port(), password=secrets.token_urlsafe(24))
        record.how = self._profile.how if self._profile is not None else ""
        self._link_credentials()
        (self.folder / LEFT).unlink(missing_ok=True)
        self._write(record)
        process, first = self._spawn(program, record)
        record = record.model_copy(update={"pid": process.pid, "started": process_table.stat(process.pid)[1]})
        record.first = (first, process_table.stat(first)[1]) if first is not None else None
        self._write(record)
        return record

    async def _answers(self, record: ServerRecord) -> bool:
        """Wait for a server; False: it has ended, shows no life at its bound, or reached the longest bound.

        A server is alive that used processor time since the last bound, and one that starts, if it takes connections.
        Raises `ServerStarting` where it is alive and somebody should know, and `_Taken`.
        """
        silence = self._silence
        if silence is None or silence.token != record.token:
            age = await _in_thread(process_table.age, record.pid or 0)
            answered = record.answered or age > LONGEST_PATIENCE
            age, bound = (0.0, BUSY_PATIENCE) if answered else (age, self._first)
            used = await _in_thread(process_table.processor_time, record.pid or 0) if answered else 0.0
            silence = self._silence = _Silence(record.token, anyio.current_time() - age, bound, used, answered)
        while silence.since + silence.bound <= anyio.current_time() and silence.bound < LONGEST_PATIENCE:
            silence.bound = min(silence.bound * 2, LONGEST_PATIENCE)  # it was alive when an earlier ashep looked
        now, over = anyio.current_time(), silence.since + silence.bound
        deadline = over if over > now else now + _PATIENCE  # one of an earlier ashep is asked once, however old it is
        answered, listens = await self._probe_until(record, min(deadline, now + _SLICE))
        if answered or not await _in_thread(process_table.lives, record.pid, record.started):
            return answered
        used, late = await _in_thread(process_table.processor_time, record.pid or 0), anyio.current_time() >= over
        waited = anyio.current_time() - silence.since
        alive = used > silence.used + process_table.IDLE or (listens and not silence.answered)
        if late and (silence.bound >= LONGEST_PATIENCE or not alive):
            return False
        if late:
            silence.bound, silence.used = min(silence.bound * 2, LONGEST_PATIENCE), used
        raise ServerStarting(
            f"the OpenCode server did not answer within {waited:.0f} s, alive, used {used:.0f} s of CPU; "
            f"waiting up to {silence.bound:g} s"
        )

    async def _probe_until(self, record: ServerRecord, deadline: float) -> tuple[bool, bool]:
        """Probe until it answers, the time is over or the process has ended; whether it answered, and took connections.

        Raises `_Taken`.
        """
        address, timeout, listens = _address(record), PROBE, False
        while (left := deadline - anyio.current_time()) > 0:
            try:
                listens = await _in_thread(self._listens, record)
                if listens:
                    await probe(address.url, address.password, min(timeout, left))
                    return True, True
            except _Taken:
                raise
            except RunnerUnauthorized:
                pass
            except RunnerUnavailable as error:
                # whoever refuses does so at once; only for one that took the connection the next is given longer
                timeout = timeout if was_refused(error) else min(timeout * 2, _PATIENCE)
            if not await _in_thread(process_table.lives, record.pid, record.started):
                await _in_thread(self._listens, record)  # it may have ended because another took its port just now
                return False, listens
            await anyio.sleep(0.1)
        return False, listens

    def _listens(self, record: ServerRecord) -> bool:
        """Whether the server, or what it started, listens at its port; False: nobody does yet. Raises `_Taken`."""
        sockets = process_table.listeners(record.port)
        if sockets is None:  # only the server writes its log, and it writes its address there
            return f":{record.port}" in self._log_file.read_text(errors="replace")
        holders = {pid for pid, _ in process_table.holders_of(record.mark)}
        if not sockets or process_table.have(holders, sockets):
            return bool(sockets)
        if process_table.listeners(record.port) != sockets:
            return False  # it ended just now
        raise _Taken(
            f"another process listens at port {record.port} of 127.0.0.1, which the OpenCode server was to have; "
            "it was given no password"
        )

    def _spawn(self, program: Path, record: ServerRecord) -> tuple[subprocess.Popen[bytes], int | None]:
        arguments = [*self._command[1:], "serve", "--port", str(record.port), "--hostname", "127.0.0.1"]
        login = {TOKEN: record.token, "OPENCODE_SERVER_USERNAME": USER, "OPENCODE_SERVER_PASSWORD": record.password}
        profile, sandbox, view = self._profile, None, View(self._directory, ())
        if profile is not None and (sandbox := profile.sandbox) is not None:
            view = replace(profile.view, readable=(*profile.view.readable, *find_program_folders(program)))
        environment = self._make_environment(profile) | login
        descriptor = os.open(self._log_file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            files = (subprocess.DEVNULL, descriptor, descriptor)
            process, first = start(sandbox, view, [str(program), *arguments], environment, files)
        except OSError as error:
            raise ProgramMissing(f"{program} cannot be started: {error}") from error
        finally:
            os.close(descriptor)
        process_table.restrain(process.pid, self._nice)
        if first is not None:
            process_table.restrain(first, 0)
        return process, first

    def _make_environment(self, profile: SandboxProfile | None) -> dict[str, str]:
        inherited = filter_environment(self._environ, self._named, self._secret)
        ours = {
            "BEADS_ACTOR": "ashep-agent",
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "XDG_DATA_HOME": str(self.folder / "data"),
            "XDG_STATE_HOME": str(self.folder / "state"),
        }
        if profile is not None:
            inherited = {name: value for name, value in inherited.items() if name not in profile.without}
            ours |= profile.environment
        return inherited | fsync.environment(inherited) | ours

    @property
    def _login(self) -> Path:
        """The file with the providers that the user has logged in to."""
        home = self._environ.get("HOME") or os.path.expanduser("~")
        base = self._environ.get("XDG_DATA_HOME") or os.path.join(home, ".local/share")
        return Path(base, "opencode", "auth.json").absolute()

    def _link_credentials(self) -> None:
        """Let the server use the user's logins, or what its profile has of them, whatever was left in their place."""
        source = (self._profile.login if self._profile is not None else None) or self._login
        link = self.folder / "data" / "opencode" / "auth.json"
        if link.parent.is_symlink():  # whoever works in the sandbox may have left one, which leads out of it
            link.parent.unlink()
        link.parent.mkdir(parents=True, exist_ok=True)
        delete(link)
        if source.exists():
            link.symlink_to(source)

    def _shorten_log(self) -> None:
        """Keep the log bounded. It is written at its end, wherever that is, so that it may be cut under the server."""
        with self._log_file.open("r+b") as file:
            size = file.seek(0, os.SEEK_END)
            if size <= LOG_LIMIT:
                return
            file.seek(size - LOG_KEPT)
            old = os.open(f"{self._log_file}.old", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(old, "wb") as target:
                target.write(file.read(LOG_KEPT))
            file.truncate(0)

    def _log_tail(self) -> str:
        with suppress(OSError):
            text = self._log_file.read_bytes()[-2000:].decode(errors="replace")
            if lines := " / ".join(text.strip().splitlines()[-5:]):
                return f"ends: {lines}"
        return "is empty"

    # --- the record -----------------------------------------------------------------------------------------------

    def _read(self) -> ServerRecord | None:
        with suppress(FileNotFoundError, ValidationError):  # a torn record cannot be: it is renamed into place
            return ServerRecord.model_validate_json(self._record_file.read_bytes())
        return None

    def _forget(self) -> None:
        self._record_file.unlink(missing_ok=True)

    def _write(self, record: ServerRecord) -> None:
        durable_io.replace(self._record_file, record.model_dump_json().encode())

    def _open_lock(self) -> int:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder.chmod(0o700)
        return os.open(self.folder / "server.lock", os.O_RDWR | os.O_CREAT, 0o600)

    @asynccontextmanager
    async def _locked(self) -> AsyncGenerator[None]:
        """Hold the folder's lock; whoever waits for it in vain, or cannot write there, gets RunnerUnavailable."""
        descriptor: int | None = None
        try:
            descriptor = await _in_thread(self._open_lock)
            with anyio.move_on_after(_LOCK) as bound:
                while not process_table.locked(descriptor):
                    await anyio.sleep(0.1)
            if bound.cancelled_caught:
                raise RunnerUnavailable(f"another process has held {self.folder}/server.lock for {_LOCK:g} s")
            yield
        except OSError as error:
            raise RunnerUnavailable(await programs.full_disk(str(error), self.folder) or str(error)) from error
        finally:
            if descriptor is not None:
                os.close(descriptor)


class _Taken(ServerNotStarted):
    """Somebody else listens at the server's port."""


_in_thread = anyio.to_thread.run_sync


async def _end(record: ServerRecord) -> bool:
    """End a server and everything that it started; what took the mark off itself is in its sandbox all the same."""
    there = record.first is not None and await process_table.kill(*record.first, RunnerUnavailable)
    return await process_table.end(record.mark, RunnerUnavailable) or there


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def _address(record: ServerRecord) -> Address:
    instance = f"managed:{record.pid}:{record.started}:{record.token[:8]}"
    return Address(url=f"http://127.0.0.1:{record.port}", password=record.password, instance=instance)


def _leader(record: ServerRecord) -> tuple[int, int] | None:
    """The server's process and its start time: the recorded one, or, where none was written, the oldest holder."""
    holders = process_table.holders_of(record.mark)
    if record.pid is None or record.started is None:
        return holders[0] if holders else None
    return (record.pid, record.started) if (record.pid, record.started) in holders else None


_VARIABLE = "OPENCODE_SERVER_PASSWORD"
"""Where `opencode attach` looks for the password."""


def how_to_open(settings: Settings, project: Path, folder: Path, session: str, *, alone: bool = False) -> str:
    """Give the command that opens a session, or say why there is none now.

    `project`: the folder that it works in; `folder`: that of its server; `alone`: nobody else works on that one.
    """
    opencode = settings.runners.opencode
    if opencode.url is not None:
        secret = "" if opencode.password_env == _VARIABLE else f'{_VARIABLE}="${opencode.password_env}" '
        return _describe_attach(secret, opencode.command, opencode.url, project, session)
    file = folder / "server.json"
    if (record := record_in(folder)) is None:
        return f"Its session is {session}; the agent server is not running, and starts with the next run."
    read = f"""sed -n 's/.*"password": *"\\([^"]*\\)".*/\\1/p' {shlex.quote(str(file))}"""
    hint = _describe_attach(
        f'{_VARIABLE}="$({read})" ', opencode.command, f"http://127.0.0.1:{record.port}", project, session
    )
    return f"{hint}\nIts agent knows that server's password, too: what you see there may be its own." if alone else hint


def _describe_attach(secret: str, command: tuple[str, ...], url: str, project: Path, session: str) -> str:
    line = shlex.join((*command, "attach", url, "--dir", str(project), "--session", session))
    return f"Its session opens with:\n  {secret}{line}"
