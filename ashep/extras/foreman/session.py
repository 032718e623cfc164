"""A person's sitting with Claude Code: it is started at once, heard, and begun again when its hooks say so.

The child does not wait for us: a socket is bound, the child started, and only then what is slow is imported (the web
server, the hooks, the tools); what the child asks meanwhile waits in the socket's queue.
"""

import logging
import shutil
import signal
import socket
import uuid
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from ashep.config.findings import read_text
from ashep.core.text import clean
from ashep.errors import DiskFailed, ours
from ashep.extras.foreman.claude_process import VARIABLE, Child, Terminal, end_left
from ashep.extras.foreman.history import History
from ashep.extras.foreman.hook_rules import Relaunch
from ashep.extras.foreman.launch_args import ClaudeArguments, write_plugin
from ashep.extras.foreman.memory import system_prompt
from ashep.extras.foreman.queries import WorkerPaths
from ashep.extras.foreman.settings import Restart
from ashep.redaction import Redaction, guessed

if TYPE_CHECKING:  # it takes long to import: see above
    from ashep.extras.foreman.hook_server import Desk

RESTARTS, WITHIN = 5, 60.0
"""A session that was begun again so often in so many seconds is left running: something is wrong."""

_QUIET: dict[str, object] = {"topics": False, "restart": Restart(bytes=2**62, share=1, window=2**62)}
_RESUME = "The last session grew too long, and its last subagent was not asked. Go on where the last entries above end."
_Act = Callable[[], Coroutine[Any, Any, None]]


async def sit(seat: "Seat") -> int:
    """Sit with Claude Code until it ends, and give its exit code. Raises `WorkerBusy` and other errors of ours."""
    logging.disable()  # the terminal is Claude Code's, and libraries talk [79]
    with seat.history:
        try:
            await end_left(seat.folder)
            return await seat.run()
        except BaseExceptionGroup as group:
            raise ours(group)[0] from group
        except OSError as error:
            raise DiskFailed(f"{error.filename or seat.folder}: {error.strerror}") from error
        finally:
            shutil.rmtree(seat.folder / "now", ignore_errors=True)
            await end_left(seat.folder)


class Seat:
    """A person's seat at Claude Code, which works in `directory`; `say` tells them a line while it does not run."""

    def __init__(
        self, place: WorkerPaths, given: ClaudeArguments, claude: Path, directory: Path, say: Callable[[str], None]
    ) -> None:
        self._terminal = Terminal()
        self._place, self._given, self._claude, self._directory, self._say = place, given, claude, directory, say
        self._own = "\n" + read_text(directory / given.file) if given.file else ""
        self._settings = place.settings.model_copy(update=_QUIET if given.prints else {})
        self._redaction, self._secret = Redaction(tuple(guessed(place.environ))), token_hex(32)
        self.folder, self._now = place.folder, place.folder / "now"
        self.history = History.open(place.folder, self._redaction, place.settings.memory.keep)
        self._sent, self._relaunches = anyio.create_memory_object_stream[Relaunch](1)
        self._child: Child
        self._begun = "", ""  # the session, and the prompt that it got from us
        self._desk: Desk | None = None
        self._next: Relaunch | None = None
        self._told_to_end = False
        self._restarts, self._wrong = deque[float](maxlen=RESTARTS), deque[str](maxlen=10)

    async def run(self) -> int:
        """Run Claude Code, again where its hooks say so, and give its exit code."""
        code = 0
        shutil.rmtree(self._now, ignore_errors=True)
        listener = socket.create_server(("127.0.0.1", 0))
        # else each answer waits 40 ms for its own head to be acknowledged (docs/facts/claude-code.md 78)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        url, timeout = f"http://127.0.0.1:{listener.getsockname()[1]}", self._settings.topic_timeout
        write_plugin(self._now / "plugin", url, self._secret, self._place.worker, timeout)
        ends = [one for one in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(one) is not signal.SIG_IGN]  # nohup
        with listener, self._terminal.left_to_child(), anyio.open_signal_receiver(*ends) as signals:
            self._begin(None)
            async with anyio.create_task_group() as group:
                group.start_soon(self._end_when_told, signals)
                group.start_soon(self._run_optional, partial(self._hear, listener))
                try:
                    code = await self._child.wait()
                    while self._next is not None and not self._told_to_end:
                        self._say(self._next.line or "the session is begun anew")
                        self._begin(self._next)
                        code = await self._child.wait()
                finally:
                    await self._child.end()
                    group.cancel_scope.cancel()
        for line in self._wrong:
            self._say(line)
        return code

    def _begin(self, relaunch: Relaunch | None) -> None:
        place, why, self._next = self._place, relaunch.why if relaunch else "", None
        resume, collapsed = _RESUME if why == "long" else "", why == "topic"
        text = system_prompt(self.history.entries(), self._settings.memory, place.template, resume, collapsed)
        plugin, file = str(self._now / "plugin"), str(self.history.keep_prompt(text + self._own))
        new = str(uuid.UUID(hex=token_hex(16), version=4))
        if relaunch is None:
            words = self._given.first(plugin, file, new)
            self._begun = "" if self._given.resumes else self._given.session or new, ""
        else:
            prompt = relaunch.prompt.replace("\0", "").encode(errors="replace")
            if len(prompt) > 100_000:  # a word of a command line has 128 kB at most (facts/claude-code.md 13)
                (long := self._now / "prompt.md").write_bytes(prompt)
                prompt = f"What I want is long; it stands in {long}. Read all of it, then do what it says.".encode()
            self._begun = new, prompt.decode()
            words = self._given.anew(plugin, file, *self._begun)
        if self._desk is not None:
            self._desk.note_start(*self._begun)
        environ = {**place.environ, VARIABLE: str(place.folder)}
        self._child = Child([self._claude, *words], environ, self._directory, self._terminal)

    async def _end_when_told(self, signals: AsyncIterator[signal.Signals]) -> None:
        async for _ in signals:
            self._told_to_end = True
            await self._child.end()

    async def _run_optional(self, act: _Act) -> None:
        """Do what the session can do without."""
        try:
            await act()
        except Exception as error:  # whatever is wrong with what is installed here
            self._wrong.append(clean(self._redaction.text(f"{type(error).__name__}: {error}")))

    async def _hear(self, listener: socket.socket) -> None:
        """Answer hooks and tools, once what they need is imported; hooks that are refused let everything pass."""
        with listener:
            desk, acts = await anyio.to_thread.run_sync(self._prepared, listener)
            self._desk = desk
            desk.note_start(*self._begun)
            async with anyio.create_task_group() as group:
                for act in acts:
                    group.start_soon(self._run_optional, act)
                async for relaunch in self._relaunches:
                    now = anyio.current_time()
                    if len(self._restarts) < RESTARTS or now - self._restarts[0] > WITHIN:
                        self._restarts.append(now)
                        await anyio.sleep(0.3)  # for the hook to have its answer
                        self._next = relaunch
                        await self._child.end()
                    else:
                        self._wrong.append(f"it was begun anew {RESTARTS} times in a minute, and is left as it is now")
                        desk.settings = desk.settings.model_copy(update=_QUIET)
                        desk.note_start(self._begun[0])

    def _prepared(self, listener: socket.socket) -> "tuple[Desk, list[_Act]]":
        """Make what answers, and what is to run for that; in a thread, for it imports all of it."""
        import uvicorn
        from starlette.applications import Starlette
        from starlette.routing import Route

        from ashep.adapters.system.clock import RealClock
        from ashep.adapters.system.http_server import Connection, Server
        from ashep.extras.foreman import model_endpoints, web_tools
        from ashep.extras.foreman.handoff import command, morning, plan_of, project_of
        from ashep.extras.foreman.hook_server import Desk, routes

        history, settings, environ, directory = self.history, self._settings, self._place.environ, self._directory
        tools = web_tools.WebTools(settings, environ, directory, self._secret, self._redaction)
        small = model_endpoints.Small(settings.model, environ, directory) if settings.model else None
        desk = Desk(history, self._redaction, settings, self._secret, self._sent, RealClock().now, self._wrong.append)
        desk.web, desk.is_new_topic = tools, partial(model_endpoints.is_new_topic, small) if small else None
        desk.hand_over = lambda words: command(project_of(directory), plan_of(history.entries()), words, environ)

        async def greet() -> None:
            desk.morning = await morning(directory, desk.now()) if settings.morning else ""

        app = web_tools.McpApp(tools)
        asgi = Starlette(routes=[*routes(desk), Route("/mcp", app)])
        config = uvicorn.Config(asgi, lifespan="off", ws="none", http=Connection)
        return desk, [app.run, greet, partial(Server(config).serve, [listener])]
