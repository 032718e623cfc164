"""An agent's process, and what is asked of it over ACP: the one place that imports the protocol's library."""

import asyncio
import os
import signal
from asyncio import subprocess
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from ashep.adapters.runners.acp.mailbox import MARK
from ashep.adapters.runners.acp.sandbox import Wrap
from ashep.adapters.runners.acp.stdio import StdioTransport
from ashep.adapters.runners.foreign_json import as_object
from ashep.adapters.sandboxes.bubblewrap import filter_file
from ashep.adapters.system import process_table
from ashep.errors import RunnerUnavailable

ANSWER = 90.0
"""Seconds for an agent to answer anything but a prompt, once it has a session."""

LONGEST_START = 600.0
"""Seconds after which an agent that has no session yet is ended, whatever it uses."""

_TAIL = 4000  # characters of what it printed on standard error
_PATIENCE = 2.0  # seconds for it to end by itself, once its line is closed
_ABILITIES = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}

Hear = Callable[[dict[str, Any]], None]
Handle = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]


class AgentFailed(Exception):
    """It answered with an error, not in time, or not at all. As text: `Name: message`."""

    def __init__(self, name: str, message: str, code: int = 0) -> None:
        super().__init__(f"{name}: {message}")
        self.code, self.name = code, name
        self.gone = name == "AgentDied"


STARTS = ("AgentNotStarted", "AgentSilent", "AgentDied")
"""Names of the errors of an agent that did not come to a session: nothing that it answered."""


class UnknownMethod(Exception):
    """A method that this client does not have."""


class AgentProcess:
    """One agent that runs."""

    def __init__(self, process: subprocess.Process, hear: Hear, handle: Handle) -> None:
        from acp import PROTOCOL_VERSION, RequestError  # a second of processor: the agent starts meanwhile
        from acp.connection import Connection

        async def handler(method: str, params: object, notification: bool) -> Any:
            if notification:
                return None
            try:
                return await handle(method, as_object(params))
            except UnknownMethod:
                raise RequestError.method_not_found(method) from None
            except (OSError, ValueError) as error:
                raise RequestError(-32602, str(error)) from None

        self._error, self._version = RequestError, PROTOCOL_VERSION
        self.process, self._stderr = process, ""
        self.connection = Connection(handler, StdioTransport(process, hear))
        self._reading = asyncio.create_task(self._read_errors())
        self.about: Mapping[str, Any] = {}
        self.start_bound = ANSWER

    @classmethod
    async def begin(
        cls,
        command: Sequence[str],
        directory: Path,
        mark: Mapping[str, str],
        hear: Hear,
        handle: Handle,
        wrap: Wrap | None = None,
        start_bound: float = ANSWER,
    ) -> "AgentProcess":
        """Start it in a group of its own, and say hello. `wrap`: puts it into its sandbox.

        `start_bound`: seconds until it must show that it works (`start`). Raises AgentFailed.
        """
        environ = {**os.environ, **mark}
        try:
            with filter_file() if wrap is not None else nullcontext(()) as descriptors:
                argv = wrap(command, descriptors) if wrap is not None else command
                process = await asyncio.create_subprocess_exec(
                    *argv, cwd=directory if wrap is None else "/", env=environ, start_new_session=True,
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=descriptors,
                )  # fmt: skip
        except OSError as error:
            raise AgentFailed("AgentNotStarted", f"{command[0]} in {directory}: {error.strerror}") from error
        process_table.restrain(process.pid, 0)
        agent = cls(process, hear, handle)
        agent.start_bound = start_bound
        try:
            client = {"name": "ashep", "title": "Agent Shepherd", "version": "1"}
            asks = {"protocolVersion": agent._version, "clientCapabilities": _ABILITIES, "clientInfo": client}
            agent.about = await agent.start("initialize", asks)
            for one in process_table.below(process.pid) if wrap is not None else ():
                for pid in (one, *process_table.below(one)):  # it is there by now, and what it starts is as it is
                    process_table.restrain(pid, 0)
        except AgentFailed:
            await agent.end()
            raise
        return agent

    @property
    def lives(self) -> bool:
        """Whether its process has not ended."""
        return self.process.returncode is None

    def can(self, *path: str) -> bool:
        """Whether it says that it can do something."""
        abilities: object = self.about.get("agentCapabilities")
        for name in path:
            abilities = as_object(abilities).get(name)
        return abilities not in (None, False)

    async def start(self, method: str, params: Mapping[str, object]) -> Mapping[str, Any]:
        """Ask it something that belongs to its start. Raises AgentFailed.

        One that has not answered at its bound, and used no processor time, is silent. Else it is given twice as long,
        up to `LONGEST_START`.
        """
        answer, failed = dict[str, Any](), list[AgentFailed]()

        async def asking(scope: anyio.CancelScope) -> None:
            try:
                answer.update(await self.ask(method, params, None))
            except AgentFailed as error:
                failed.append(error)
            scope.cancel()

        began, bound, before = anyio.current_time(), min(self.start_bound, LONGEST_START), 0.0
        async with anyio.create_task_group() as group:
            group.start_soon(asking, group.cancel_scope)
            while True:
                await anyio.sleep(began + bound - anyio.current_time())
                used = await anyio.to_thread.run_sync(process_table.processor_time, self.process.pid)
                if bound >= LONGEST_START or used <= before + process_table.IDLE:
                    life = f"it had used {used:.0f} s of CPU, and was ended"
                    failed.append(AgentFailed("AgentSilent", f"no answer to {method} within {bound:g} s; {life}"))
                    group.cancel_scope.cancel()
                bound, before = min(bound * 2, LONGEST_START), used
        if failed:
            raise failed[0]
        return answer

    async def ask(self, method: str, params: Mapping[str, object], bound: float | None = ANSWER) -> Mapping[str, Any]:
        """Ask it something. Raises AgentFailed."""
        try:
            with anyio.fail_after(bound):
                answer = await self.connection.send_request(method, params)
        except TimeoutError:
            raise AgentFailed("AgentSilent", f"no answer to {method} within {bound:g} s") from None
        except (ConnectionError, RuntimeError):
            with anyio.move_on_after(_PATIENCE):
                await self.process.wait()
            with anyio.move_on_after(0.2):
                await self._reading
            stderr = " ".join(self._stderr.split())[-1000:]
            reason = f"it ended with {self.process.returncode}{': ' if stderr else ''}{stderr}"
            raise AgentFailed("AgentDied", reason) from None
        except self._error as error:
            data = as_object(error.data)
            name = data.get("errorName") or data.get("name")
            name = str(name)[:60] if name else "AuthRequired" if error.code == -32000 else "AgentError"
            words = str(error).removeprefix("Internal error: ") or "it does not say why"
            more = data.get("details") or data.get("message")
            raise AgentFailed(name, f"{words}: {more}" if more else words, error.code) from None
        return as_object(answer)

    async def tell(self, method: str, params: Mapping[str, object]) -> None:
        """Tell it something, if it still listens."""
        with suppress(ConnectionError, RuntimeError):
            await self.connection.send_notification(method, params)

    async def end(self) -> None:
        """End it: by the end of its line, by SIGTERM, by SIGKILL; and all that it started."""
        with suppress(Exception):
            await self.connection.close()
        for number in (0, signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError, PermissionError):
                if number:
                    os.killpg(self.process.pid, number)
            with anyio.move_on_after(_PATIENCE):
                await self.process.wait()
            if not self.lives:
                break
        self._reading.cancel()

    async def _read_errors(self) -> None:
        assert self.process.stderr is not None
        while data := await self.process.stderr.read(65536):
            self._stderr = (self._stderr + data.decode(errors="replace"))[-_TAIL:]


async def end_left(folder: Path) -> None:
    """End agents of this session that an earlier keeper left, and what they started."""
    await process_table.end(process_table.ProcessMark(MARK, str(folder)), RunnerUnavailable)
