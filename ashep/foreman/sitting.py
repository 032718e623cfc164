"""A person's sitting with Claude Code: it is started at once, heard, and begun anew when its hooks say so.

The child does not wait for us: a socket is bound, the child started, and only then what is slow is imported (the web
server, the hooks, the tools); what the child asks meanwhile waits in the socket's queue. Everything that it needs for
a start is written anew for each (the plugin once), and goes with the sitting.
"""

import logging
import shutil
import signal
import socket
import uuid
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import anyio
import anyio.abc
import anyio.to_thread
from anyio.streams.memory import MemoryObjectSendStream

from ashep.core.text import clean
from ashep.errors import DiskFailed, UsageError, ours
from ashep.foreman.child import VARIABLE, Child, Terminal, end_left
from ashep.foreman.history import Entry, History
from ashep.foreman.launch import Given, write_plugin
from ashep.foreman.memory import system_prompt
from ashep.foreman.reading import Place
from ashep.foreman.rules import Relaunch
from ashep.foreman.settings import Restart
from ashep.redaction import Redaction, guessed

if TYPE_CHECKING:  # both take long to import: see above
    from ashep.foreman.hooks import Desk

_Act = Callable[[], Coroutine[Any, Any, None]]

LOG = "foreman.log"
"""What went wrong in the last sitting, in the worker's folder."""

ANSWERED = 0.3
"""Seconds between a hook's answer and the end of the child that got it."""

RESTARTS, WITHIN = 5, 60.0
"""A session that was begun anew so often in so many seconds is left running: something is wrong."""

_NAMESPACE = uuid.UUID("b6a2c7de-61f5-5d0b-8f0e-3a4f6f1a9c55")
_LONGEST = 100_000  # bytes of a prompt as a word of a command line, where 128 kB are the most (facts/claude-code.md 13)
_LOGGED = 10_000  # lines of a sitting's log
_QUIET: dict[str, object] = {"topics": False, "restart": Restart(bytes=2**62, share=1, window=2**62)}
_RESUME = (
    "The session before this one had grown long and was ended in the midst of its work; what you were about to ask a "
    "subagent has not been asked. Go on where the last entries above end."
)


@dataclass(frozen=True, slots=True)
class Seat:
    """What a sitting is given."""

    place: Place
    given: Given
    claude: Path
    directory: Path
    """Where Claude Code works."""
    say: Callable[[str], None]
    """Tells the person a line, between two sessions."""


async def sit(seat: Seat) -> int:
    """Sit with Claude Code until it ends, and give its exit code. Raises `WorkerBusy` and other errors of ours."""
    logging.disable()  # the terminal is Claude Code's, and libraries talk
    redaction = Redaction(tuple(guessed(seat.place.environ)))
    folder = seat.place.folder
    if not seat.directory.is_dir():
        raise UsageError(f"{seat.directory} is no folder")
    with History.open(folder, redaction, seat.place.settings.memory.keep) as history:
        await end_left(folder)
        try:
            return await _Sitting(seat, history, redaction).run()
        except BaseExceptionGroup as group:
            raise ours(group)[0] from group
        except OSError as error:
            raise DiskFailed(f"{error.filename or folder}: {error.strerror}") from error
        finally:
            with anyio.CancelScope(shield=True):
                await end_left(folder)


class _Sitting:
    def __init__(self, seat: Seat, history: History, redaction: Redaction) -> None:
        self._seat, self._history, self._redaction = seat, history, redaction
        self._secret = token_hex(32)
        redaction.add(self._secret)
        self._settings = seat.place.settings.model_copy(update=_QUIET if seat.given.prints else {})
        self._things = seat.place.folder / "now"
        self._own = _own_text(seat)
        self._terminal = Terminal()
        self._child: Child | None = None
        self._desk: Desk | None = None
        self._session, self._sent, self._number = "", "", 0
        self._next: Relaunch | None = None
        self._told_to_end = 0
        self._restarts = deque[float](maxlen=RESTARTS)
        self._logged, self._last, self._after = 0, "", list[str]()

    async def run(self) -> int:
        with ExitStack() as stack:
            stack.enter_context(_emptied(self._things))
            listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
            # else each answer waits 40 ms for its own head to be acknowledged (docs/facts/claude-code.md 78)
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            settings, plugin = self._settings, self._things / "plugin"
            write_plugin(plugin, url, self._secret, self._seat.place.worker, settings.topic_timeout)
            stack.enter_context(self._terminal.left_to_child())
            code = 0
            async with anyio.create_task_group() as group:
                await group.start(self._hear_signals)
                try:
                    self._begin(None)
                    group.start_soon(self._hear, listener)
                    code = await self._until_ended()
                finally:
                    if self._child is not None:
                        await self._child.end()
                    group.cancel_scope.cancel()
        if self._logged and not self._after:
            self._after.append(f"{self._last}; all that went wrong stands in {self._seat.place.folder / LOG}")
        for line in self._after:
            self._seat.say(line)
        return code

    async def _until_ended(self) -> int:
        while True:
            assert self._child is not None
            code = await self._child.wait()
            relaunch, self._next = self._next, None
            if self._told_to_end:
                return 128 + self._told_to_end
            if relaunch is None:
                return code
            self._seat.say(relaunch.line or "the session is begun anew")
            self._begin(relaunch)

    def _begin(self, relaunch: Relaunch | None) -> None:
        """Start Claude Code: for the first time, or anew."""
        seat, self._number = self._seat, self._number + 1
        why = relaunch.why if relaunch else ""
        text = system_prompt(
            self._history.entries(),
            self._settings.memory,
            seat.place.template,
            resume=_RESUME if why == "long" else "",
            collapsed=why == "topic",
        )
        file = str(self._history.keep_prompt("\n\n".join(filter(None, (text, self._own)))))
        new = str(uuid.uuid5(_NAMESPACE, f"{self._secret}\0{self._number}"))
        plugin = str(self._things / "plugin")
        if relaunch is None:
            words = seat.given.first(plugin, file, new)
            self._session = "" if seat.given.resumes else seat.given.session or new
        else:
            self._session, self._sent = new, self._as_a_word(relaunch.prompt)
            words = seat.given.anew(plugin, file, new, self._sent)
        if self._desk is not None:
            self._desk.begun(self._session, self._sent)
        environ = {**seat.place.environ, VARIABLE: str(seat.place.folder)}
        self._child = Child.start([seat.claude, *words], environ, seat.directory, self._terminal)

    def _as_a_word(self, prompt: str) -> str:
        """Give a prompt as a command line can hold it; a longer one is read from a file."""
        prompt = prompt.replace("\0", "")
        if len(prompt.encode(errors="surrogatepass")) <= _LONGEST:
            return prompt
        file = self._things / "prompt.md"
        file.write_text(prompt, encoding="utf-8", errors="replace")
        return f"What I want is long; it stands in {file}. Read all of it, then do what it says."

    # --- while it runs --------------------------------------------------------------------------------------------

    async def _hear_signals(self, *, task_status: anyio.abc.TaskStatus[None]) -> None:
        """End the child where we are told to end; nohup's word stands."""
        ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        with anyio.open_signal_receiver(signal.SIGTERM, *(() if ignored else (signal.SIGHUP,))) as signals:
            task_status.started()
            async for number in signals:
                self._told_to_end = number
                if self._child is not None:
                    await self._child.end()

    async def _hear(self, listener: socket.socket) -> None:
        """Answer hooks and tools, once what they need is imported; where that fails the session goes on without us."""
        sent, relaunches = anyio.create_memory_object_stream[Relaunch](1)
        try:
            desk, run, serve = await anyio.to_thread.run_sync(self._prepared, sent, listener)
        except Exception as error:  # whatever is wrong with what is installed here
            listener.close()  # hooks that are refused let everything pass
            self._log(f"nothing is heard: {error}")
            return
        self._desk = desk
        desk.begun(self._session, self._sent)
        async with anyio.create_task_group() as group, sent, relaunches:
            for act in (run, serve, lambda: self._tell_of_the_night(desk)):
                group.start_soon(self._beside, act)
            async for relaunch in relaunches:
                await self._relaunch(relaunch, desk)

    async def _beside(self, act: _Act) -> None:
        """Do what the session can do without."""
        try:
            await act()
        except Exception as error:
            self._log(f"{type(error).__name__}: {error}")

    async def _tell_of_the_night(self, desk: "Desk") -> None:
        if desk.settings.morning:
            from ashep.foreman.night import morning

            desk.morning = await morning(self._seat.directory, desk.now())

    async def _relaunch(self, relaunch: Relaunch, desk: "Desk") -> None:
        """End the child once its hook has been answered, so that another one is begun."""
        now = anyio.current_time()
        if len(self._restarts) == RESTARTS and now - self._restarts[0] < WITHIN:
            self._log(line := f"the session was begun anew {RESTARTS} times within a minute; it is left as it is now")
            self._after.append(line)
            desk.settings = desk.settings.model_copy(update=_QUIET)
            desk.begun(self._session)
            return
        self._restarts.append(now)
        await anyio.sleep(ANSWERED)
        if self._child is not None and not self._child.ended:
            self._next = relaunch
            await self._child.end()

    def _prepared(
        self, relaunches: MemoryObjectSendStream[Relaunch], listener: socket.socket
    ) -> "tuple[Desk, _Act, _Act]":
        """Make the desk, what runs the tools' server, and what serves both; for a thread: it imports all of it."""
        import uvicorn
        from starlette.applications import Starlette
        from starlette.routing import Route

        from ashep.adapters.clock import RealClock
        from ashep.foreman import endpoints, night
        from ashep.foreman import web as tools
        from ashep.foreman.hooks import Desk, routes

        place, settings, directory = self._seat.place, self._settings, self._seat.directory
        web = tools.WebTools(settings, place.environ, directory, self._secret, self._redaction)
        small = endpoints.Small(settings.model, place.environ, directory) if settings.model else None

        async def is_new_topic(recent: Sequence[Entry], prompt: str, timeout: float) -> bool:
            return await endpoints.is_new_topic(small, recent, prompt, timeout)

        async def handed(arguments: str) -> str:
            plan = night.plan_of(self._history.entries())
            return await night.command(night.project_of(directory), plan, arguments, place.environ)

        class Server(uvicorn.Server):
            """A uvicorn that leaves signals to its program."""

            @contextmanager
            def capture_signals(self) -> Generator[None]:
                yield

        desk = Desk(
            history=self._history,
            redaction=self._redaction,
            settings=settings,
            secret=self._secret,
            relaunches=relaunches,
            now=RealClock().now,
            say=self._log,
            is_new_topic=is_new_topic if small is not None and settings.topics else None,
            hand_over=handed,
            web=web,
        )
        app = tools.McpApp(web)
        config = uvicorn.Config(
            Starlette(routes=[*routes(desk), Route("/mcp", endpoint=app)]),
            log_level="critical", lifespan="off", ws="none", server_header=False, proxy_headers=False,
            timeout_graceful_shutdown=1,
        )  # fmt: skip
        return desk, app.run, lambda: Server(config).serve([listener])

    def _log(self, line: str) -> None:
        """Keep a line about what went wrong; the terminal is Claude Code's."""
        from ashep.adapters.clock import RealClock

        self._last = clean(self._redaction.text(line))
        self._logged += 1
        if self._logged <= _LOGGED:
            with suppress(OSError), (self._seat.place.folder / LOG).open("a" if self._logged > 1 else "w") as log:
                log.write(f"{RealClock().now():%Y-%m-%d %H:%M:%S} {self._last}\n")


def _own_text(seat: Seat) -> str:
    """Read the person's own file for the end of the system prompt."""
    if seat.given.file is None:
        return ""
    try:
        return (seat.directory / seat.given.file).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(f"--append-system-prompt-file {seat.given.file}: {error.strerror}") from error


@contextmanager
def _emptied(folder: Path) -> Generator[None]:
    """Have a folder for what is needed now: it is empty, whatever a dead wrapper left there, and gone in the end."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    try:
        yield
    finally:
        shutil.rmtree(folder, ignore_errors=True)
