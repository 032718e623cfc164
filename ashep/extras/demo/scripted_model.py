"""A scripted model on loopback, which OpenCode and Claude Code ask as they would ask a provider.

Each in its own protocol (`ashep/extras/demo/protocols.py`; facts/opencode.md, "A local model, offline"); what it
answers is decided by a *script*, a function from the conversation to a reply. It counts what it was asked, so that a
test can prove that a model saw a prompt exactly once, and that nothing else was asked.

In a program::

    async with ModelServer(script) as model:
        config = opencode_config(model.url)
        environ = claude_environment(model.url, home)

As a process, which prints `{"url": …}` as its first line: `python -m ashep.extras.demo.scripted_model --port 0 --script
outcome`.
"""

import argparse
import json
import os
import re
import socket
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal, Self, TextIO, cast

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from ashep.adapters.system import programs
from ashep.adapters.system.http_server import Server
from ashep.extras.demo.protocols import SESSION_HEADERS, Chat, Json, Messages, Wire, text_of


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request to the model."""

    kind: Literal["turn", "step", "helper"]
    """turn: the last message is a user's · step: it is a tool's result · helper: no tools are offered, as when OpenCode
    makes a title or a summary (facts 15, 25)."""
    session: str
    """The header `x-session-id` (fact 22), or Claude Code's of its own."""
    model: str
    prompt: str
    """The text of the last user message."""
    results: tuple[str, ...]
    """What tools answered since then."""
    messages: tuple[Json, ...]
    tools: tuple[str, ...]
    offered: tuple[Json, ...] = ()
    """The tools in full: their descriptions name agents and skills."""
    repeated: bool = False
    """It is asked again by itself because the last answer was an error or broke off (fact 20)."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of the request, by their names in small letters: whose key it comes with, say."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of one of OpenCode's tools, or of the one of Claude Code that does the same."""

    tool: str
    arguments: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model answers."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    status: int = 200
    """Another status is an error, with `text` as its message."""
    retry_after: int | None = None
    delay: float = 0.0
    """Seconds before the first byte."""
    hang: bool = False
    """Never answer."""
    pings: bool = False
    """Begin to answer, and then send signs of life that say nothing for ever."""
    drip: float = 0.0
    """Seconds between pieces of the text; 0 sends it as one."""
    drop: bool = False
    """Break off in the middle of the stream."""
    cut: bool = False
    """Say that the answer has reached its greatest length."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """More headers of the answer: what is left of a quota, say."""
    tokens: tuple[int, int] | None = None
    """What it claims to have used, in and out; by default a guess from the lengths."""


Script = Callable[[ModelRequest], Reply]


def outcome_text(verdict: str | None = None, result: str = "success", summary: str = "done") -> str:
    """A final message that ends with a valid outcome."""
    body: dict[str, object] = {"result": result, "summary": summary}
    if verdict is not None:
        body["verdict"] = verdict
    return f"{summary}\n\n```json\n{json.dumps(body)}\n```\n"


_GOOD = ("approve", "approved", "pass", "passed", "accept", "ok", "success")


def verdict_asked(prompt: str) -> str | None:
    """The verdict that a willing agent gives: the contract's first good one, else its first; None where it has none."""
    lines = [line for line in prompt.splitlines() if re.search(r"\bverdict\b", line)]
    if not lines:
        return None
    line = ([line for line in lines if "one of" in line] or lines)[-1]
    after = line[line.index("verdict") + len("verdict") :].lstrip("\"`':")
    quoted = [word for group in re.findall(r'["`]([^"`]+)["`]', after) for word in re.findall(r"[A-Za-z][\w-]*", group)]
    words = [word for word in quoted if word not in {"verdict", "success", "result", "null"}]
    return next((word for word in words if word in _GOOD), words[0] if words else None)


def outcome_script(ask: ModelRequest) -> Reply:
    """Answer every turn at once with a valid outcome."""
    return Reply(outcome_text(verdict_asked(ask.prompt)))


SCRIPTS: dict[str, Script] = {"outcome": outcome_script}
"""The scripts that the command line knows."""

MODELS: Mapping[str, int] = {"default": 200_000, "other": 200_000, "small": 14_000}
"""Model ids and their context; `small` is full soon, which forces a compaction (fact 25)."""

_PLUGIN = {"dependencies": {"@opencode-ai/plugin": programs.OPENCODE_VERSION}}


def settle(config: Path, content: Json) -> None:
    """Make OpenCode's configuration folder as a first start with a network leaves it, and this its `opencode.json`.

    Without its plugin library there each start asks a registry for it, in vain on loopback: 3 of its 5 s of processor.
    """
    (config / "node_modules").mkdir(parents=True)
    lock = {"lockfileVersion": 3, "packages": {"": _PLUGIN}}
    files = {"package.json": _PLUGIN, "package-lock.json": lock, MODELS_FILE: {}, "opencode.json": content}
    for name, value in files.items():
        (config / name).write_text(json.dumps(value))


MODELS_FILE = "models.json"
"""An empty list of the world's models, which `OPENCODE_MODELS_PATH` names: another second of each start."""


def opencode_config(base_url: str, models: Mapping[str, int] = MODELS) -> Json:
    """The content of an `opencode.json` whose provider `scripted` is the server at this address."""
    return {
        "$schema": "https://opencode.ai/config.json",
        "model": "scripted/default",
        "small_model": "scripted/default",
        "share": "disabled",
        "autoupdate": False,
        "enabled_providers": ["scripted"],
        "provider": {
            "scripted": {
                "name": "Scripted",
                "npm": "@ai-sdk/openai-compatible",
                "options": {"baseURL": f"{base_url}/v1", "apiKey": "none"},
                "models": {
                    name: {
                        "name": name,
                        "tool_call": True,
                        "limit": {"context": context, "output": 2_000},
                        "cost": {"input": 1, "output": 2},
                    }
                    for name, context in models.items()
                },
            }
        },
    }


def claude_environment(base_url: str, home: Path) -> dict[str, str]:
    """Variables with which Claude Code asks the server at this address and nobody else, in a home of its own."""
    return {
        "HOME": str(home),
        "CLAUDE_CONFIG_DIR": str(home / ".claude"),
        "CLAUDE_CODE_TMPDIR": str(home),
        "ANTHROPIC_BASE_URL": base_url,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
    }


def read_ask(body: Json, session: str) -> ModelRequest:
    """Understand a request in the form of `POST /v1/chat/completions`."""
    messages = cast("list[Json]", body.get("messages", []))
    tools = tuple(str(tool["function"]["name"]) for tool in cast("list[Json]", body.get("tools") or []))
    last_user = max((i for i, message in enumerate(messages) if message["role"] == "user"), default=-1)
    results = tuple(
        text_of(message.get("content")) for message in messages[last_user + 1 :] if message["role"] == "tool"
    )
    role = messages[-1]["role"] if messages else "user"
    return ModelRequest(
        kind="helper" if not tools else "turn" if role == "user" else "step",
        session=session,
        model=str(body.get("model", "")),
        prompt=text_of(messages[last_user].get("content")) if last_user >= 0 else "",
        results=results,
        messages=tuple(messages),
        tools=tools,
        offered=tuple(cast("list[Json]", body.get("tools") or [])),
    )


class ModelServer(AsyncExitStack):
    """The server: an async context manager that listens on loopback while it is open."""

    def __init__(self, script: Script = outcome_script, *, port: int = 0, log: Path | None = None) -> None:
        super().__init__()
        self.script = script
        """May be replaced at any time."""
        self.asks: list[ModelRequest] = []
        """Every request, in order."""
        self._port = port
        self._log_path = log
        self._log: TextIO | None = None
        self._failed: dict[tuple[str, str], bool] = {}
        """Whether the last answer to a session's prompt was an error, or broke off."""
        self._closing = anyio.Event()
        self.url = ""
        """`http://127.0.0.1:<port>`, once it is open."""

    # --- what tests ask -------------------------------------------------------------------------------------------

    def prompts_seen(self, run_id: str) -> int:
        """How many turns began with a prompt that holds this text.

        OpenCode's own repetitions after an error of the model do not count, nor do the steps after a tool's result.
        """
        return sum(1 for ask in self.asks if ask.kind == "turn" and not ask.repeated and run_id in ask.prompt)

    def requests_seen(self, text: str) -> int:
        """How many requests there were, of any kind, whose last user message holds this text."""
        return sum(1 for ask in self.asks if text in ask.prompt)

    # --- life -----------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        listener = self.enter_context(socket.create_server(("127.0.0.1", self._port)))
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        if self._log_path is not None:
            self._log = self.enter_context(self._log_path.open("a", encoding="utf-8"))
        app = Starlette(
            routes=[
                Route("/v1/chat/completions", partial(self._answer, Chat), methods=["POST"]),
                Route("/v1/messages", partial(self._answer, Messages), methods=["POST"]),
                Route("/v1/messages/count_tokens", _count, methods=["POST"]),
                Route("/v1/models", _nothing),
                Route("/", _nothing),
                Route("/asks", self._asks),
            ]
        )
        config = uvicorn.Config(app, log_level="critical", lifespan="off", timeout_graceful_shutdown=1, ws="none")
        server = Server(config)
        group = await self.enter_async_context(anyio.create_task_group())
        self.callback(setattr, server, "should_exit", True)
        self.callback(self._closing.set)
        group.start_soon(server.serve, [listener])
        with anyio.fail_after(10):
            while not server.started:
                await anyio.sleep(0.01)
        return self

    # --- answering ------------------------------------------------------------------------------------------------

    async def _asks(self, request: Request) -> Response:
        """How many turns began with a prompt that holds `?text=`, for tests in another process."""
        text = request.query_params.get("text", "")
        counts = {"prompts": self.prompts_seen(text), "requests": self.requests_seen(text)}
        return JSONResponse(counts | {"pid": os.getpid()})

    def _note(self, ask: ModelRequest, reply: Reply) -> None:
        self.asks.append(ask)
        self._failed[ask.session, ask.prompt] = reply.status != 200 or reply.drop
        if self._log is not None:
            line = {
                "kind": ask.kind,
                "repeated": ask.repeated,
                "session": ask.session,
                "model": ask.model,
                "results": len(ask.results),
                "prompt": ask.prompt[:20_000],
                "status": reply.status,
            }
            self._log.write(json.dumps(line) + "\n")
            self._log.flush()

    async def _answer(self, read: Callable[[Json], Wire], request: Request) -> Response:
        wire = read(cast("Json", await request.json()))
        ask = read_ask(wire.asked, next(filter(None, map(request.headers.get, SESSION_HEADERS)), ""))
        repeated = self._failed.get((ask.session, ask.prompt), False)
        ask = replace(ask, repeated=repeated, headers=dict(request.headers))
        reply = Reply("A summary of the conversation.") if ask.kind == "helper" else self.script(ask)
        self._note(ask, reply)
        await self._pause(float("inf") if reply.hang else reply.delay)
        if reply.status != 200:
            after = {} if reply.retry_after is None else {"retry-after": str(reply.retry_after)}
            headers = {**reply.headers, **after}
            return JSONResponse(wire.error(reply.status, reply.text), status_code=reply.status, headers=headers)
        stream = self._stream(wire, ask, reply)
        return StreamingResponse(stream, media_type="text/event-stream", headers=dict(reply.headers))

    async def _pause(self, seconds: float) -> None:
        if seconds > 0:
            with anyio.move_on_after(seconds):
                await self._closing.wait()

    async def _stream(self, wire: Wire, ask: ModelRequest, reply: Reply) -> AsyncIterator[bytes]:
        tokens = reply.tokens or (sum(len(text_of(m.get("content"))) for m in ask.messages) // 4, len(reply.text) // 4)
        if begun := wire.begin(tokens[0]):
            yield begun
        while reply.pings and not self._closing.is_set():
            yield wire.ping
            await self._pause(1)
        pieces = re.findall(r"\S*\s*", reply.text) if reply.drip else [reply.text]
        for piece in filter(None, pieces):
            yield wire.text(piece)
            await self._pause(reply.drip)
        for index, call in enumerate(reply.calls):
            yield wire.call(f"call_{len(self.asks)}_{index}", call.tool, call.arguments)
        if reply.drop:
            raise ConnectionResetError("the script breaks off here")
        yield wire.end(tokens, calls=bool(reply.calls), cut=reply.cut)


async def _count(request: Request) -> Response:
    return JSONResponse({"input_tokens": len(await request.body()) // 4})


async def _nothing(_: Request) -> Response:
    """What answers whoever looks whether there is a server."""
    return JSONResponse({"data": []})


# --- as a program --------------------------------------------------------------------------------------------------


async def _serve(script: Script, port: int, log: Path | None) -> None:
    async with ModelServer(script, port=port, log=log) as model:
        print(json.dumps({"url": model.url}), flush=True)
        await anyio.sleep_forever()


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until a signal comes."""
    parser = argparse.ArgumentParser(
        prog="python -m ashep.extras.demo.scripted_model", description="A scripted model on loopback."
    )
    parser.add_argument("--port", type=int, default=0, help="0: any free port")
    parser.add_argument("--log", type=Path, default=None, help="a JSONL file, one line a request")
    parser.add_argument("--script", choices=sorted(SCRIPTS), default="outcome")
    chosen = parser.parse_args(arguments)
    try:
        anyio.run(_serve, SCRIPTS[chosen.script], chosen.port, chosen.log)
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
