"""`IsolatedRunner`: the port `Runner` over a server for each place where work is made, and one for all that judge it.

The server of a place is the agent's as much as ours: whoever works there knows its password, and may have put another
program in its stead. So nothing that it says is about more than its own run, and a server that does not answer, or does
not start, keeps nobody else's run waiting. What the catalogue and the health of "the server" are is the judges' server.
"""

import math
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

import anyio
import anyio.to_thread

from ashep.adapters.runners.opencode.runner import OpencodeRunner
from ashep.adapters.runners.opencode.sandbox_profiles import PLACE, sandbox_named, wish, wish_of
from ashep.adapters.runners.opencode.server import LEFT, ManagedServer, folder_of, record_in
from ashep.adapters.sandboxes import registered_processes
from ashep.adapters.sandboxes.logins import Logins
from ashep.adapters.sandboxes.profiles import tell
from ashep.adapters.system import process_table
from ashep.adapters.system.folders import delete
from ashep.core.facts.requests import Request
from ashep.core.policy.agents import Sandbox
from ashep.errors import (
    RunnerError,
    RunnerRefused,
    RunnerUnauthorized,
    RunnerUnavailable,
    ServerNotStarted,
    ServerSlow,
    ServerStarting,
    SessionUnavailable,
)
from ashep.ports.forwarding import forward
from ashep.ports.runner import Catalog, Prompt, SessionRequest, Sign

_Answer = TypeVar("_Answer")

SERVERS = "servers"
"""Below the folder of the judges' server: those of places, each with a folder of its own."""

_SESSIONS, _GONE = "sessions", ".gone-"
_WAITING = 100  # signs that are not yet taken
_IDLE = 300.0  # seconds after which the server of a place is ended that nobody used
_PAUSE, _LONGEST = 2.0, 60.0  # seconds for which a server that failed once more is left alone
_SLOW_CALLS = 4  # so many failures in a row end a server that answers, but not what it is asked, in time
_READING = 20.0  # seconds that a read waits for a server to be started
_TIMES = 2  # so often the limit of memory goes into what a server holds that is ended at once


def folder_for(state: Path, place: Path, environ: Mapping[str, str] | None = None) -> Path:
    """Give the folder in which the server of a place keeps its things. Blocks."""
    return (
        folder_of(state, environ or os.environ)
        / SERVERS
        / sha256(os.fsencode(os.path.realpath(place))).hexdigest()[:16]
    )


def living(folder: Path) -> tuple[int, int]:
    """Count the servers of a project that live, those of judges and of places, and the bytes that they hold."""
    groups = list[int]()
    for one in (folder, *folder.glob(f"{SERVERS}/*")):
        record = record_in(one)
        if record is not None and record.pid is not None and process_table.lives(record.pid, record.started):
            groups.append(record.pid)
    return len(groups), sum(map(process_table.memory_of, groups))


async def leave(state: Path, place: Path) -> None:
    """End the server of a place, if it has one, and all agents that run there. `state`: the project's state folder."""
    server = ManagedServer(command=(), directory=place, state=state, folder=partial(folder_for, state, place))

    def mark() -> None:
        with suppress(OSError):  # it has no folder, or the disk is full: then a read may begin it in vain
            (server.folder / LEFT).touch()

    await anyio.to_thread.run_sync(mark)
    await registered_processes.evict(server.folder, RunnerUnavailable)
    await server.stop()
    await anyio.to_thread.run_sync(mark)  # one that was being begun took the first away


async def forget(state: Path, place: Path) -> None:
    """Take away what the server of a place kept: whoever works there next begins with nothing of it."""
    await leave(state, place)
    await anyio.to_thread.run_sync(lambda: _delete(folder_for(state, place)))


def _delete(folder: Path) -> None:
    """Delete a folder in which somebody else had a say: it is nobody's at once, whatever of it can be deleted."""
    with suppress(FileNotFoundError):
        folder.rename(folder.with_name(f"{_GONE}{secrets.token_hex(8)}"))
    for gone in folder.parent.glob(f"{_GONE}*"):
        delete(gone)


@dataclass(frozen=True, slots=True)
class _SessionLocation:
    directory: str
    sandbox: Sandbox | None = None
    """None: as all others are."""


def _read_location(line: str) -> _SessionLocation:
    first, _, rest = line.partition("\t")  # lines of before name no sandbox
    sandbox = sandbox_named(first)
    return _SessionLocation(line) if sandbox is None else _SessionLocation(rest, sandbox)


@dataclass(slots=True)
class _Maker:
    runner: OpencodeRunner
    used: float = field(default_factory=anyio.current_time)
    up: bool = False
    """It was started, and was not seen to be away since."""
    life: int = 0
    """Which one of its servers it is."""
    failed: int = 0
    until: float = 0.0
    """Until then it is not tried again."""
    starting: anyio.Lock = field(default_factory=anyio.Lock)
    following: anyio.CancelScope | None = None
    """Where its signs are followed."""


class IsolatedRunner:
    """Sessions go to the server of the folder that they work in."""

    def __init__(
        self,
        judges: OpencodeRunner,
        maker: Callable[[Path], OpencodeRunner],
        *,
        place_of: Callable[[str | None], Path | None],
        state: Path,
        most: int | None = None,
        logins: Logins | None = None,
    ) -> None:
        """`maker` makes the runner of a place's server; `place_of` gives the place that a folder is in, and blocks;
        `state`: the project's state folder.

        `most`: bytes of memory that one should hold; at more than twice as much it is ended. `logins`: what those in a
        sandbox have of the user's.
        """
        self._logins = logins
        self._judges, self._make, self._place_of, self._state, self._most = judges, maker, place_of, state, most
        self._makers = dict[Path, _Maker]()
        self._sessions: dict[str, _SessionLocation] | None = None
        """Those that are in places."""
        self._changed = anyio.Event()
        self._attaches = False

    @cached_property
    def _starts(self) -> anyio.CapacityLimiter:
        """Servers that start at one time: each takes a processor, and 400 MB, for seconds."""
        return anyio.CapacityLimiter(max((os.cpu_count() or 2) // 2, 1))

    @cached_property
    def _folder(self) -> Path:
        return folder_of(self._state, os.environ)

    # --- life -----------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Make the judges' server answer (see the port)."""
        await self._judges.start()

    async def attach(self) -> None:
        """Use the servers that run, and start none (see `OpencodeRunner.attach`)."""
        self._attaches = True
        await self._judges.attach()

    async def catalog(self) -> Catalog:
        """Say what the judges' server offers (see the port). Servers of places that nobody used for long are ended."""
        if self._logins is not None and self._logins.used:
            with suppress(OSError):  # it is tried again with the next start, which says so
                await self._logins.keep()
        catalog = await self._judges.catalog()
        for place in await anyio.to_thread.run_sync(self._standing):
            self._makers.setdefault(place, _Maker(self._make(place)))  # an earlier life of ours may have left it
        for place, maker in list(self._makers.items()):
            with suppress(RunnerError):  # one that does not end is found again
                await self._rest(place, maker)
        return catalog

    async def _rest(self, place: Path, maker: _Maker) -> None:
        """End a server that nobody used for long, or that has grown beyond all bounds."""
        memory = await maker.runner.endpoint.memory() if maker.up and self._most is not None else None
        async with maker.starting:
            if memory is not None and self._most is not None and memory > _TIMES * self._most:
                maker.up = False  # its turn begins again, as after any death of a server
                await maker.runner.stop_server()
            elif anyio.current_time() - maker.used > _IDLE:
                await maker.runner.stop_server()
                del self._makers[place]
                if maker.following is not None:
                    maker.following.cancel()

    async def aclose(self) -> None:
        await self._judges.aclose()
        for one in self._makers.values():
            await one.runner.aclose()

    async def stop_server(self) -> bool:
        ended = False
        for place in await anyio.to_thread.run_sync(self._standing):
            maker = self._makers.get(place) or _Maker(self._make(place))
            maker.up = False
            ended = await maker.runner.stop_server() or ended
        return await self._judges.stop_server() or ended

    def _standing(self) -> list[Path]:
        links = (record.with_name(PLACE) for record in self._folder.glob(f"{SERVERS}/*/server.json"))
        return [Path(os.readlink(link)) for link in links if link.is_symlink()]

    # --- which server ---------------------------------------------------------------------------------------------

    async def _choose(self, location: _SessionLocation) -> None:
        """Have the server of a place be one for this session: no other works there, and whoever only reads takes the
        server as it is, also after a restart of ours. It is begun again when it is used next.
        """
        place = await anyio.to_thread.run_sync(self._place_of, location.directory)
        if place is not None and await self._chosen(location.directory) != (location.sandbox or ""):
            try:
                await anyio.to_thread.run_sync(lambda: wish(folder_for(self._state, place), location.sandbox))
            except OSError as error:
                raise RunnerUnavailable(f"where {place.name} is to run cannot be written down: {error}") from error
            maker = self._makers.setdefault(place, _Maker(self._make(place)))
            maker.up, maker.failed, maker.until = False, 0, 0.0

    async def _chosen(self, directory: str) -> str | None:
        """Name the sandbox that was chosen last for the place of this folder; None: none was since it was made."""
        place = await anyio.to_thread.run_sync(self._place_of, directory)
        if place is None:
            return None
        return await anyio.to_thread.run_sync(lambda: wish_of(folder_for(self._state, place)))

    async def _call_server(
        self, directory: str | None, call: Callable[[OpencodeRunner], Awaitable[_Answer]], patience: float | None = None
    ) -> _Answer:
        """Call the server of a folder. One of a place is started where it does not run, and again where it went away;
        a reader waits for that no longer than `patience` (None: 20 s), for others are read after this one.

        Raises `SessionUnavailable` where that of a place does not answer: that is about this run alone. A call that
        opens or sends is not kept off by what came of other calls, and waits as long as the server shows life.
        """
        place = await anyio.to_thread.run_sync(self._place_of, directory)
        if place is None:
            return await call(self._judges)
        patience = _READING if patience is None else patience
        maker = self._makers.setdefault(place, _Maker(self._make(place)))
        maker.used = anyio.current_time()
        if maker.used < maker.until and patience != math.inf:  # each try may take long, and others wait for it
            raise SessionUnavailable(f"the agent server of {place.name} does not answer")
        try:
            await self._ensure_server(maker, place, patience)
            with suppress(RunnerUnavailable):
                return await self._once(maker, call)
            await self._ensure_server(maker, place, patience)
            return await self._once(maker, call)
        except (RunnerUnavailable, RunnerUnauthorized) as error:
            if self._attaches:
                raise
            await maker.runner.endpoint.ask_for_room()  # a full disk is everybody's
            await self._failed(maker, error)
            raise SessionUnavailable(f"the agent server of {place.name}: {error}") from error

    async def _once(self, maker: _Maker, call: Callable[[OpencodeRunner], Awaitable[_Answer]]) -> _Answer:
        life = maker.life
        try:
            answer = await call(maker.runner)
        except (RunnerUnavailable, RunnerUnauthorized):
            if maker.life == life:  # else somebody began it again meanwhile
                maker.up = False
            raise
        maker.failed, maker.until = 0, 0.0
        return answer

    async def _failed(self, maker: _Maker, error: RunnerError) -> None:
        """Leave a server alone for a while that failed, unless somebody began it again, or does."""
        if maker.up or maker.starting.locked():
            return
        async with maker.starting:
            if isinstance(error, ServerStarting):
                return  # it is waited for
            maker.failed += 1
            maker.until = anyio.current_time() + min(_PAUSE * 2**maker.failed, _LONGEST)
            is_slow = isinstance(error, ServerSlow) and maker.failed < _SLOW_CALLS  # it has just answered at its start
            if not is_slow and not isinstance(error, ServerNotStarted):  # that one has been ended
                with suppress(RunnerError):
                    await maker.runner.stop_server()  # whatever it is that answers there, or does not

    async def _ensure_server(self, maker: _Maker, place: Path, patience: float) -> None:
        if patience != math.inf and not maker.up and await self._has(place, LEFT):
            raise RunnerRefused(f"the agent server of {place.name} was ended with its run")
        with anyio.move_on_after(patience) as waited:
            await self._start(maker)
        if waited.cancelled_caught:
            raise ServerStarting(f"it is being started, and did not answer in {patience:g} s")

    async def _start(self, maker: _Maker) -> None:
        """Start a server, or see that it runs.

        Servers that start at one time slow each other down. One that needs longer than its first patience lets others
        start: an agent may have made it so.
        """
        async with maker.starting:
            turn: AbstractAsyncContextManager[object] = self._starts
            while not maker.up:
                maker.up = True  # before it is: it may be to be another while it is being started
                try:
                    async with turn:
                        await (maker.runner.attach() if self._attaches else maker.runner.start())
                except ServerStarting:
                    maker.up, turn = False, nullcontext()
                    continue
                except BaseException:
                    maker.up = False
                    raise
                maker.life += 1
                changed, self._changed = self._changed, anyio.Event()
                changed.set()

    async def route(
        self, session: str, call: Callable[[OpencodeRunner, str], Awaitable[_Answer]], patience: float | None = None
    ) -> _Answer:
        """Call the server that has a session (see `_call_server`)."""
        location = await self._find_session(session)
        if location is not None and location.sandbox is not None and await self._chosen(location.directory) is None:
            await self._choose(location)  # its place was made again, and holds what its agent committed
        return await self._call_server(await self._directory(session), lambda runner: call(runner, session), patience)

    async def _directory(self, session: str) -> str | None:
        """Give the folder of a session that is in a place; None: it is with those who judge."""
        location = await self._find_session(session)
        return location.directory if location is not None else None

    async def _find_session(self, session: str) -> _SessionLocation | None:
        if self._sessions is None:
            self._sessions = await anyio.to_thread.run_sync(self._noted)
        return self._sessions.get(session)

    def _noted(self) -> dict[str, _SessionLocation]:
        with suppress(FileNotFoundError):
            lines = (self._folder / _SESSIONS).read_text(errors="surrogateescape").splitlines()
            noted = (line.partition("\t")[::2] for line in lines)  # the machine may have died in the midst of the last
            locations = ((session, _read_location(text)) for session, text in noted)
            return {session: location for session, location in locations if os.path.isdir(location.directory)}
        return {}

    async def _note(self, session: str, location: _SessionLocation) -> None:
        """Write down where a session is: whoever starts after us has to know."""
        if await self._find_session(session) == location or self._sessions is None:
            return
        if await anyio.to_thread.run_sync(self._place_of, location.directory) is None:
            return
        self._sessions[session] = location
        line = "\t".join(filter(None, (session, location.sandbox, location.directory)))

        def write() -> None:
            file = os.open(self._folder / _SESSIONS, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(file, os.fsencode(f"\n{line}\n"))
                os.fsync(file)
            finally:
                os.close(file)

        await anyio.to_thread.run_sync(write)

    async def _by_server(self, sessions: Collection[str]) -> list[tuple[str | None, list[str]]]:
        groups = dict[Path | None, list[str]]()
        for session in sorted(sessions):
            directory = await self._directory(session)
            groups.setdefault(await anyio.to_thread.run_sync(self._place_of, directory), []).append(session)
        return [(None if place is None else str(place), group) for place, group in groups.items()]

    # --- sessions -------------------------------------------------------------------------------------------------

    async def open_session(self, request: SessionRequest) -> str:
        """Open a session for a run (see the port), on the server of its folder: to write only in a place."""
        place = await anyio.to_thread.run_sync(self._place_of, request.directory)
        if request.access == "write" and place is None:
            raise RunnerRefused("who changes files works in a place of its own, and none stands for this run")
        if place is not None and request.snapshot:
            await anyio.to_thread.run_sync(lambda: tell(folder_for(self._state, place), request.snapshot))
        location = _SessionLocation(request.directory, request.sandbox) if request.directory is not None else None
        if location is not None:
            await self._choose(location)
        session = await self._call_server(request.directory, lambda runner: runner.open_session(request), math.inf)
        if location is not None:
            await self._note(session, location)
        return session

    async def find_session(self, key: str, directory: str | None = None) -> str | None:
        place = await anyio.to_thread.run_sync(self._place_of, directory)
        chosen = await self._chosen(directory) if directory is not None else None
        if place is not None and chosen is None and not await self._has(place, "data"):
            return None  # a server that is begun to look for it might be another than its agent is to have
        session = await self._call_server(directory, lambda runner: runner.find_session(key, directory), math.inf)
        if session is not None and directory is not None and await self._directory(session) != directory:
            # it is the last that was opened there, and what it wants was written down before
            await self._note(session, _SessionLocation(directory, sandbox_named(chosen)))
        return session

    async def _has(self, place: Path, name: str) -> bool:
        return await anyio.to_thread.run_sync(lambda: (folder_for(self._state, place) / name).exists())

    async def has_session(self, session: str) -> bool:
        return await self.route(session, OpencodeRunner.has_session, math.inf)

    asked, turn, life = forward(OpencodeRunner.asked), forward(OpencodeRunner.turn), forward(OpencodeRunner.life)
    transcript, reply = forward(OpencodeRunner.transcript), forward(OpencodeRunner.reply)

    async def send(self, prompt: Prompt) -> str:
        if (location := await self._find_session(prompt.session)) is not None:
            await self._choose(location)
        directory = await self._directory(prompt.session)
        return await self._call_server(directory, lambda runner: runner.send(prompt), math.inf)

    async def busy(self, sessions: Collection[str]) -> frozenset[str]:
        """Those sessions that run a turn (see the port); of a place's server that does not answer none does."""
        busy_sessions = set[str]()
        for directory, group in await self._by_server(sessions):
            with suppress(RunnerRefused, SessionUnavailable):  # whoever reads such a session is told why
                busy_sessions |= await self._call_server(directory, lambda runner, group=group: runner.busy(group))
        return frozenset(busy_sessions)

    async def abort(self, session: str) -> None:
        """Stop a session's turn and see it stopped (see the port): where its own server does not say so, that ends."""
        try:
            await self.route(session, OpencodeRunner.abort)
        except SessionUnavailable:
            place = await anyio.to_thread.run_sync(self._place_of, await self._directory(session))
            maker = self._makers.get(place) if place is not None else None
            if maker is None:
                raise
            async with maker.starting:
                maker.up = False
                await maker.runner.stop_server()

    # --- questions ------------------------------------------------------------------------------------------------

    async def requests(self, sessions: Collection[str]) -> tuple[Request, ...]:
        open_requests: list[Request] = []
        for directory, group in await self._by_server(sessions):
            try:
                open_requests += await self._call_server(directory, lambda runner, group=group: runner.requests(group))
            except (RunnerRefused, SessionUnavailable) as error:
                if directory is None:
                    raise
                open_requests += [Request("", one, "permission", unlisted=str(error)) for one in group]
        return tuple(open_requests)

    # --- signs ----------------------------------------------------------------------------------------------------

    async def signs(self) -> AsyncIterator[Sign]:
        into, out = anyio.create_memory_object_stream[Sign](_WAITING)

        async def follow(runner: OpencodeRunner, scope: anyio.CancelScope) -> None:
            with scope:
                async for sign in runner.signs():
                    await into.send(sign)

        async def follow_makers() -> None:
            for maker in self._makers.values():
                maker.following = None
            while True:
                changed = self._changed
                for maker in self._makers.values():
                    if maker.up and maker.following is None:
                        maker.following = anyio.CancelScope()
                        group.start_soon(follow, maker.runner, maker.following)
                await changed.wait()

        async with anyio.create_task_group() as group:
            group.start_soon(follow, self._judges, anyio.CancelScope())
            group.start_soon(follow_makers)
            async for sign in out:
                yield sign
