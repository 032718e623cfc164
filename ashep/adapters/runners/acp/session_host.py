"""The keeper of a session: a process of its own, which holds the agent, so that the end of Agent Shepherd ends no turn.

`python -m ashep.adapters.runners.acp.session_host FOLDER` keeps the session of a folder until there is nothing to do
for a while; with `--probe DIRECTORY COMMAND …` it says in JSON what an agent can do, and ends. Its own work is small
and its files are, too: it does not mind to wait for the disk.
"""

import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, cast

import anyio
import anyio.abc

from ashep.adapters.runners.acp import permissions
from ashep.adapters.runners.acp.capabilities import (
    CapabilityMissing,
    SessionCapabilities,
    mode_for,
    model_for,
    read_offer,
)
from ashep.adapters.runners.acp.client import (
    ANSWER,
    LONGEST_START,
    STARTS,
    AgentFailed,
    AgentProcess,
    UnknownMethod,
    end_left,
)
from ashep.adapters.runners.acp.mailbox import LIMITS, MARK, Mailbox, name_process
from ashep.adapters.runners.acp.sandbox import wrapped
from ashep.adapters.runners.acp.session_history import SessionHistory, keyed, words_of
from ashep.adapters.runners.foreign_json import JsonObject, as_list, as_object
from ashep.adapters.system import process_table
from ashep.core.facts.runs import Model
from ashep.core.policy.policies import PermissionRule
from ashep.ports.runner import MOST_TEXT, STOPPED, bound_amount

_LIMITS = "_claude/rateLimit"  # where the adapter of Claude Code hands that on
_MOST_LIMITS = 10_000  # characters of it
_FAST, _SLOW = 0.05, 0.25  # seconds between looks into the folder, at work and idle
_CANCEL = 3.0  # seconds for an agent to stop by itself
_AGAIN = 8  # times that an agent is told to go on after it was denied something and stopped
_OPEN = 50  # requests that wait at once
_WAIT = 7 * 86400.0  # seconds for which one waits
_ANOTHER = 20.0  # seconds for another keeper, which is about to end, to do so
_CUT = ("max_tokens", "max_turn_requests")  # reasons by which a limit ends a turn before its work
_LOST = "SessionLost: the agent does not have the session's history any more"


@dataclass(slots=True)
class _Turn:
    message: str
    state: JsonObject
    sent: bool = False
    cancelled: bool = False
    text: str = ""
    speaks: str = ""
    heard: str | None = None
    """When the agent said something last."""
    denied: list[str] = field(default_factory=list[str])


class SessionHost:
    """Keeps one session."""

    def __init__(self, folder: Mailbox) -> None:
        self._folder, self._me = folder, name_process(os.getpid())
        self._session = folder.read("session.json") or {}
        self._directory = Path(str(self._session.get("directory")))
        self._access: Literal["read", "write"] = "write" if self._session.get("access") == "write" else "read"
        self._rules = [PermissionRule.model_validate(one) for one in self._session.get("permissions", ())]
        self._agent: AgentProcess | None = None
        self._id, self._offer, self._cost = "", SessionCapabilities(), 0.0
        self._foreign = ""
        self._turn: _Turn | None = None
        self._replay: SessionHistory | None = None
        self._calls = dict[str, JsonObject]()
        self._allowed = set[str]()
        self._waiting = dict[str, tuple[anyio.Event, JsonObject]]()
        self._asked, self._ends = 0, False

    # --- the folder -----------------------------------------------------------------------------------------------

    async def keep(self) -> None:
        """Do what is put into the folder, until nothing was for a while."""
        await end_left(self._folder.path)
        for name in ("now", *(f"questions/{name}" for name in self._folder.names("questions"))):
            self._folder.remove(name)
        idle = float(self._session.get("idle", 300))
        async with anyio.create_task_group() as group:
            group.start_soon(self._until_signal)
            last = anyio.current_time()
            while not self._ends:
                names = self._folder.names("in")
                for name in names:
                    self._take(name, group)
                prompts = [name for name in names if name.startswith("prompt.")]
                if self._turn is None and prompts:
                    self._accept(prompts[0], group)
                now = anyio.current_time()
                last = now if self._turn is not None or names else last
                if now - last > idle and self._leave():
                    break
                await anyio.sleep(_FAST if now - last < 2 else _SLOW)
            group.cancel_scope.cancel()
        if self._agent is not None:
            await self._agent.end()
        await end_left(self._folder.path)

    async def _until_signal(self) -> None:
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for _ in signals:
                self._ends = True

    def _leave(self) -> bool:
        """Whether nothing was put in, so that whoever puts something in from now on starts another keeper."""
        with self._folder.door():
            if self._folder.names("in"):
                return False
            self._folder.write("keeper.json", {"keeper": f"{self._me} left"})
        return True

    def _take(self, name: str, group: anyio.abc.TaskGroup) -> None:
        kind, _, what = name.removesuffix(".json").partition(".")
        if kind == "answer":
            event, given = self._waiting.get(what) or (None, JsonObject())
            given |= self._folder.read(f"in/{name}") or {}
            self._folder.remove(f"questions/{what}.json")
            self._folder.remove(f"in/{name}")
            if event is not None:
                event.set()
        elif kind == "cancel":
            self._folder.remove(f"in/{name}")
            if self._turn is not None and self._turn.message == what and not self._turn.cancelled:
                self._turn.cancelled = True
                if self._turn.sent:
                    group.start_soon(self._stop)
                else:
                    self._ended(self._turn, STOPPED)
        elif kind != "prompt":
            self._folder.remove(f"in/{name}")

    async def _stop(self) -> None:
        turn, agent = self._turn, self._agent
        if turn is None or agent is None:
            return
        for event, given in self._waiting.values():
            given["verdict"] = "cancel"
            event.set()
        await agent.tell("session/cancel", {"sessionId": self._id})
        with anyio.move_on_after(_CANCEL):
            while self._turn is turn:
                await anyio.sleep(_FAST)
        if self._turn is turn:
            await agent.end()
            await end_left(self._folder.path)

    # --- turns ----------------------------------------------------------------------------------------------------

    def _accept(self, name: str, group: anyio.abc.TaskGroup) -> None:
        """Take a prompt, durably; from here on it is known."""
        message = name.removeprefix("prompt.").removesuffix(".json")
        with self._folder.door():
            prompt, before = self._folder.read(f"in/{name}"), self._folder.read(f"turns/{message}.json") or {}
            if prompt is None:
                return self._folder.remove(f"in/{name}")
            doubtful = before.get("state") == "sent" or before.get("doubtful") is True
            state = {"state": "accepted", "keeper": self._me, "doubtful": doubtful, "people": before.get("people", [])}
            self._turn = _Turn(message, state)
            self._folder.write(f"turns/{message}.json", state)
            self._folder.write("keeper.json", {"keeper": self._me})
            self._folder.write("now", {"message": message})
            self._folder.remove(f"in/{name}")
        group.start_soon(self._play, self._turn, prompt)
        return None

    async def _play(self, turn: _Turn, prompt: JsonObject) -> None:
        try:
            agent = await self._ready(turn)
            turn.state["ready"] = True
            self._folder.write(f"turns/{turn.message}.json", turn.state)
            answered = (
                self._replay.answer(turn.message) if turn.state["doubtful"] and self._replay is not None else None
            )
            self._replay = None
            if answered is not None:
                turn.text = answered
                return self._ended(turn, None)
            await self._choose(agent, prompt)
            if turn.state["state"] == "ended":
                return None
            text = str(prompt.get("text", ""))
            self._note({"k": "user", "m": turn.message, "x": text})
            self._folder.write(f"turns/{turn.message}.json", turn.state | {"state": "sent"})
            turn.sent = True
            await self._converse(agent, turn, text)
        except (AgentFailed, CapabilityMissing) as error:
            if isinstance(error, AgentFailed) and error.gone:
                self._agent = None
            if isinstance(error, AgentFailed) and error.name in STARTS and not turn.state.get("ready"):
                await self._not_started(turn, error)
            elif turn.cancelled:
                self._ended(turn, STOPPED)
            elif turn.sent and self._agent is None:  # what it did is not known
                self._note({"k": "died", "x": str(error)})
                self._folder.remove("now")
                self._ends = True
            else:
                self._ended(turn, str(error), "unauthorized" if getattr(error, "code", 0) == -32000 else "")
        finally:
            self._turn, self._replay = None, None
            self._allowed.clear()
            self._calls.clear()
        return None

    async def _not_started(self, turn: _Turn, error: AgentFailed) -> None:
        """End an agent that did not come to a session: no turn began, and nothing of the agent must begin one."""
        agent, self._agent = self._agent, None
        if agent is not None:
            await agent.end()
        await end_left(self._folder.path)
        if turn.cancelled:
            return self._ended(turn, STOPPED)
        self._folder.write(f"turns/{turn.message}.json", turn.state | {"state": "unstarted", "error": str(error)})
        self._note({"k": "unstarted", "x": str(error)})
        return self._folder.remove("now")

    async def _converse(self, agent: AgentProcess, turn: _Turn, text: str) -> None:
        for _ in range(_AGAIN):
            content = [{"type": "text", "text": keyed(turn.message, text)}]
            answer = await agent.ask("session/prompt", {"sessionId": self._id, "prompt": content}, None)
            total: object = as_object(answer.get("usage")).get("totalTokens")
            turn.state["tokens"] = turn.state.get("tokens", 0) + round(bound_amount(total))
            stop = str(answer.get("stopReason", ""))
            if stop == "end_turn" and turn.denied and not turn.text and not turn.cancelled:
                text = "\n".join(["You were denied something. Go on without it.", *turn.denied[-20:]])
                turn.denied = []
                continue
            why = {"end_turn": None, "cancelled": STOPPED, "refusal": "ModelRefused: the model refuses to go on"}
            why |= dict.fromkeys(_CUT)
            turn.state["cut"] = stop in _CUT
            return self._ended(turn, why.get(stop, f"StopReason: {stop[:100]}"))
        return self._ended(turn, "StopReason: it stops at whatever it is denied")

    def _ended(self, turn: _Turn, error: str | None, refused: str = "") -> None:
        if turn.state["state"] == "ended":
            return
        turn.state |= {"state": "ended", "error": error, "text": turn.text, "model": self._offer.models.current}
        turn.state |= {"refused": refused, "heard": turn.heard}
        turn.state["cost"] = max(0.0, self._cost - turn.state.pop("cost_before", self._cost))
        self._folder.write(f"turns/{turn.message}.json", turn.state)
        self._note({"k": "end", "m": turn.message, "x": error or ""})
        if self._id:
            self._folder.write("agent.json", {"session": self._id, "cost": self._cost})
        self._folder.remove("now")

    # --- the agent ------------------------------------------------------------------------------------------------

    async def _ready(self, turn: _Turn) -> AgentProcess:
        """An agent that has the session: the one that runs, or another that loads it."""
        if self._agent is not None and self._agent.lives:
            turn.state["cost_before"] = self._cost
            return self._agent
        mark, command = {MARK: str(self._folder.path)}, cast("list[str]", self._session.get("command", []))
        wrap = wrapped(self._folder)
        failed = sum(one.get("state") == "unstarted" for one in self._turns())
        bound = float(self._session.get("start", ANSWER)) * 2 ** min(failed, 10)
        agent = self._agent = await AgentProcess.begin(
            command, self._directory, mark, self._hear, self._asks, wrap, bound
        )
        known = self._folder.read("agent.json") or {}
        place: dict[str, object] = {"cwd": str(self._directory), "mcpServers": []}
        answer: Mapping[str, Any] | None = None
        if known and (agent.can("loadSession") or agent.can("sessionCapabilities", "resume")):
            loads = agent.can("loadSession")
            self._id, self._replay = str(known.get("session")), SessionHistory() if loads else None
            with suppress(AgentFailed):
                answer = await agent.start(
                    "session/load" if loads else "session/resume", {"sessionId": self._id, **place}
                )
            self._cost = float(known.get("cost", 0.0))
            for message, person in self._replay.people() if self._replay is not None else ():
                self._person(turn, message, person)
        if answer is None:
            lost = turn.state["doubtful"] and agent.can("loadSession")  # it may have ended: it is not asked again
            if known and (lost or any(one.get("state") == "ended" for one in self._turns() if not one.get("error"))):
                raise CapabilityMissing(_LOST)
            self._replay = None
            answer = await agent.start("session/new", place)
            self._id, self._cost = str(answer.get("sessionId")), 0.0
            self._folder.write("agent.json", {"session": self._id, "cost": 0.0})
        self._offer, turn.state["cost_before"] = read_offer(answer), self._cost
        return agent

    def _turns(self) -> list[JsonObject]:
        return [self._folder.read(f"turns/{name}") or {} for name in self._folder.names("turns")]

    def _person(self, turn: _Turn, message: str, person: str) -> None:
        state = turn.state if message == turn.message else self._folder.read(f"turns/{message}.json")
        if state is not None and person not in state.get("people", []):
            state["people"] = [*state.get("people", []), person]
            self._folder.write(f"turns/{message}.json", state)

    async def _choose(self, agent: AgentProcess, prompt: JsonObject) -> None:
        named, configured = prompt.get("model"), cast("Mapping[str, str]", self._session.get("modes") or {})
        model = Model(*cast("list[str]", named)) if named else None
        wanted = (
            (self._offer.modes, mode_for(self._offer, self._access, configured, prompt.get("agent")), "mode"),
            (self._offer.models, model_for(self._offer, model), "model"),
        )
        for choice, value, what in wanted:
            if value is None or (what == "model" and value == choice.current):
                continue
            if choice.option:
                more = {"configId": choice.option, "value": value}
                await agent.ask("session/set_config_option", {"sessionId": self._id, **more})
            else:
                await agent.ask(f"session/set_{what}", {"sessionId": self._id, f"{what}Id": value})
            choice.current = value

    def _hear(self, params: JsonObject) -> None:
        told, turn = as_object(params.get("update")), self._turn
        if params.get("sessionId") != self._id:
            return None
        kind = str(told.get("sessionUpdate"))[:60]
        if self._replay is not None:
            return self._replay.hear(told)
        if kind == "agent_message_chunk":
            words, speaks = words_of(told), str(told.get("messageId") or "")
            self._note({"k": "agent", "x": words})
            if turn is not None and turn.sent:
                turn.heard = datetime.now(UTC).isoformat()
                turn.text = (words if speaks != turn.speaks else turn.text + words)[-MOST_TEXT:]
                turn.speaks = speaks
        elif kind in ("tool_call", "tool_call_update"):
            self._hear_tool(told, turn)
        elif kind == "usage_update":
            cost = as_object(told.get("cost"))
            amount, currency = cost.get("amount"), str(cost.get("currency") or "USD")[:20]
            if currency.upper() == "USD":
                self._cost = float(bound_amount(amount)) if isinstance(amount, int | float) else self._cost
            elif currency != self._foreign:  # what it is in dollars nobody knows: it counts as nothing, said once
                self._foreign = currency
                self._note({"k": "cost", "x": f"{currency}: not counted, for budgets and reports are in US dollars"})
            limits = as_object(as_object(told.get("_meta")).get(_LIMITS))
            if limits and len(str(limits)) <= _MOST_LIMITS:
                self._folder.write(LIMITS, limits)
            self._note({"k": kind})
        else:
            self._note({"k": kind})
        return None

    def _hear_tool(self, told: JsonObject, turn: _Turn | None) -> None:
        ident = str(told.get("toolCallId"))
        if ident not in self._calls and turn is not None:
            turn.text = ""
        call = self._calls.setdefault(ident, {})
        call |= {name: told[name] for name in ("kind", "title", "rawInput", "locations", "status") if told.get(name)}
        kind, status = str(call.get("kind") or "other"), str(call.get("status") or "")
        title = permissions.read_tool_use(call, self._directory).tool
        self._note({"k": "tool", "id": ident[:100], "name": title, "status": status})
        if (
            self._access == "read"
            and kind in permissions.WRITES
            and status == "completed"
            and ident not in self._allowed
        ):
            self._allowed.add(ident)
            if turn is not None and turn.sent:
                self._ended(turn, f"ReaderWrote: {title} changed a file unasked in a session that may only read")
                self._folder.write(f"in/cancel.{turn.message}", {})

    def _note(self, entry: JsonObject) -> None:
        with suppress(OSError):
            self._folder.record(entry)

    # --- what it asks ---------------------------------------------------------------------------------------------

    async def _asks(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        if method == "session/request_permission":
            call = as_object(params.get("toolCall"))
            known = self._calls.get(str(call.get("toolCallId")), {})
            given = {name: value for name, value in call.items() if value}
            merged = {**known, **given}
            asks = permissions.read_tool_use(merged, self._directory)
            said = await self._leave_for(asks)
            if said == "allow":
                self._allowed |= {str(call.get("toolCallId")), *((asks.patterns) if asks.tool == "edit" else ())}
            return {"outcome": _chosen(params.get("options"), said)}
        if method == "fs/write_text_file" and self._folder.things() is None:  # else nothing is done out here for it
            path, content = str(params.get("path", "")), str(params.get("content", ""))
            call = {"kind": "edit", "title": "edit", "rawInput": {"path": path}}
            asks = permissions.read_tool_use(call, self._directory)  # what leave was given for is not asked once more
            if not self._allowed.issuperset(asks.patterns) and await self._leave_for(asks) != "allow":
                raise ValueError(f"{path} must not be written")
            _write(self._directory, path, content)
            return {}
        raise UnknownMethod(method)

    async def _leave_for(self, asks: permissions.ToolUse) -> str:
        said, why = permissions.verdict(asks, self._access, self._rules)
        turn = self._turn
        if turn is None or turn.cancelled:
            return "cancel"
        if said == "ask":
            said, why = await self._wait_for(asks)
        if said == "deny":
            turn.denied.append(f"{asks.tool} {asks.detail[:200]}: {why}")
        return said

    async def _wait_for(self, asks: permissions.ToolUse) -> tuple[str, str]:
        """Ask by a file, and wait for the answer to it."""
        if len(self._waiting) >= _OPEN:
            return "deny", "too much is asked at once"
        self._asked += 1
        ident, event, given = f"per_{self._me}.{self._asked}", anyio.Event(), JsonObject()
        self._waiting[ident] = event, given
        question = {"tool": asks.tool, "patterns": asks.patterns, "detail": asks.detail, "keeper": self._me}
        self._folder.write(f"questions/{ident}.json", question)
        try:
            with anyio.move_on_after(_WAIT):
                await event.wait()
        finally:
            del self._waiting[ident]
            self._folder.remove(f"questions/{ident}.json")
        return str(given.get("verdict", "deny")), str(given.get("message") or "it was denied")


def _chosen(options: object, verdict: str) -> JsonObject:
    """The option that says so once; where there is none, none is chosen."""
    option_kind = {"allow": "allow_once", "deny": "reject_once"}.get(verdict)
    for one in map(as_object, as_list(options)):
        if option_kind is not None and one.get("kind") == option_kind:
            return {"outcome": "selected", "optionId": one.get("optionId")}
    return {"outcome": "cancelled"}


def _write(directory: Path, path: str, content: str) -> None:
    """Write a file that lies in the folder, by its real path, and is no link."""
    home, target = os.path.realpath(directory), directory / path
    parent = os.path.realpath(target.parent)
    if not f"{parent}/".startswith(f"{home}/") or target.name in ("", ".", ".."):
        raise ValueError(f"{path} is not in the session's folder")
    folder = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK
        with os.fdopen(os.open(target.name, flags, 0o666, dir_fd=folder), "wb") as file:
            file.write(content.encode(errors="replace"))
    finally:
        os.close(folder)


async def probe(directory: Path, command: Sequence[str]) -> JsonObject:
    """What an agent can do. Raises AgentFailed."""

    async def nothing(method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        raise UnknownMethod(method)

    mark = {MARK: f"probe {os.getpid()}"}
    agent = await AgentProcess.begin(command, directory, mark, lambda _: None, nothing, start_bound=LONGEST_START)
    try:
        offer = read_offer(await agent.start("session/new", {"cwd": str(directory), "mcpServers": []}))
    finally:
        await agent.end()
    info = as_object(agent.about.get("agentInfo"))
    names = {"name": str(info.get("name", "")), "version": str(info.get("version", ""))}
    choices = {"modes": offer.modes.values, "models": offer.models.values, "model": offer.models.current}
    return {**names, "loads": agent.can("loadSession"), **choices}


async def _keep(path: Path) -> None:
    with (path / "keeper").open("ab") as file:
        until = anyio.current_time() + _ANOTHER
        while not process_table.locked(file.fileno()):
            if anyio.current_time() > until:
                return
            await anyio.sleep(_FAST)
        await SessionHost(Mailbox(path)).keep()


def main(arguments: Sequence[str]) -> int:
    """Keep a session, or probe an agent."""
    if arguments[0] != "--probe":
        anyio.run(_keep, Path(arguments[0]))
        return 0
    try:
        about = anyio.run(probe, Path(arguments[1]), arguments[2:])
    except AgentFailed as error:
        about = {"error": str(error), "code": error.code}
    sys.stdout.write(json.dumps(about))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
