"""The plugin in the real Claude Code, asked by a scripted model: what its hooks tell is what the rules expect."""

import json
import os
import socket
from collections.abc import AsyncIterator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest
import uvicorn
from anyio import to_thread
from anyio.streams.memory import MemoryObjectReceiveStream
from starlette.applications import Starlette

from ashep.adapters import programs
from ashep.demo.model import Ask, Call, ModelServer, Reply, claude_environment
from ashep.foreman.history import Entry, History
from ashep.foreman.hooks import Desk, routes
from ashep.foreman.launch import AGENT, NAME, write_plugin
from ashep.foreman.rules import CONTINUE, UNBEGUN, Relaunch
from ashep.foreman.settings import ForemanSettings, Restart
from ashep.redaction import Redaction
from tests.conformance.claudes import claude

pytestmark = pytest.mark.real

SECRET = "a-secret-of-this-start"
SESSION = "5e0f7f0e-0000-4000-8000-000000000001"


class Server(uvicorn.Server):
    """One that leaves signals to the tests."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


def script(ask: Ask) -> Reply:
    """Two subagents, the second in the background, for a prompt that says so; else an answer."""
    if ask.prompt.startswith("unit"):
        return Reply(f"did {ask.prompt}")
    if "two units" in ask.prompt and "task-notification" not in ask.prompt and len(ask.results) < 2:
        number = len(ask.results) + 1
        unit = {
            "description": f"unit {number}", "prompt": f"unit {number}", "subagent_type": f"{NAME}:{AGENT}",
            "run_in_background": number == 2,
        }  # fmt: skip
        return Reply(calls=(Call("Agent", unit),))
    return Reply("heard of it" if "task-notification" in ask.prompt else "answered")


class Wing:
    """Hooks that are answered, and Claude Code that has the plugin."""

    def __init__(
        self, folder: Path, model: ModelServer, desk: Desk, relaunches: MemoryObjectReceiveStream[Relaunch]
    ) -> None:
        self.folder, self.model, self.desk, self.relaunches = folder, model, desk, relaunches
        self.work = folder / "work"
        self.work.mkdir()

    async def says(self, prompt: str, *options: str) -> str:
        """Run it headless with a prompt, and give what it prints."""
        others = ("ANTHROPIC", "CLAUDE", "XDG_", "ASHEP")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(others)}
        argv = [
            await to_thread.run_sync(claude),
            "-p",
            "--plugin-dir",
            str(self.folder / "plugin"),
            *options,
            "--",
            prompt,
        ]
        environ = kept | claude_environment(self.model.url, self.folder / "home")
        done = await programs.run(argv, cwd=self.work, env=environ, timeout=200)
        return done.stdout.decode()

    def kept(self) -> list[tuple[str, str, str]]:
        return [(one.kind, one.text, one.call) for one in self.desk.history.entries()]


@asynccontextmanager
async def wing(folder: Path, settings: ForemanSettings | None = None) -> AsyncIterator[Wing]:
    async def topic(recent: Sequence[Entry], prompt: str, seconds: float) -> bool:
        return "boat" in prompt

    send, receive = anyio.create_memory_object_stream[Relaunch](1)
    redaction, log = Redaction(), list[str]()
    history = await to_thread.run_sync(History.open, folder / "state", redaction, 1_000_000)
    desk = Desk(
        history, redaction, settings or ForemanSettings(), SECRET, send, lambda: datetime.now(UTC), log.append, topic
    )
    desk.begun(SESSION)
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else each answer waits 40 ms for its own head
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    await to_thread.run_sync(write_plugin, folder / "plugin", url, SECRET, 'of "mine"')
    server = Server(uvicorn.Config(Starlette(routes=routes(desk)), log_level="critical", lifespan="off", ws="none"))
    with listener, send, receive:
        async with ModelServer(script) as model, anyio.create_task_group() as group:
            group.start_soon(server.serve, [listener])
            try:
                yield Wing(folder, model, desk, receive)
            finally:
                server.should_exit = True
    await to_thread.run_sync(history.close)
    assert log == []


async def test_claude_is_content_with_the_plugin_and_nobody_else_reads_its_secret(tmp_path: Path) -> None:
    for _ in range(2):  # it is written anew at each start
        await to_thread.run_sync(write_plugin, tmp_path / "plugin", "http://127.0.0.1:9", SECRET, "a\nworker")
    assert (tmp_path / "plugin").stat().st_mode & 0o777 == 0o700
    given = claude_environment("http://127.0.0.1:9", tmp_path)
    argv = [await to_thread.run_sync(claude), "plugin", "validate", str(tmp_path / "plugin")]
    done = await programs.run(argv, cwd=tmp_path, env={**os.environ, **given}, timeout=120)
    printed = done.stdout.decode()
    assert (done.returncode, "Validation passed" in printed) == (0, True), printed
    for named in (f"{NAME}:{AGENT}", f"{NAME}:clear-worker-history", f"{NAME}:hand-over", "mcpServers: web http"):
        assert named in printed


async def test_what_is_said_is_kept_with_subagents_of_both_kinds(tmp_path: Path) -> None:
    async with wing(tmp_path) as here:
        printed = await here.says("please do two units", "--session-id", SESSION)
        assert "answered" in printed
        kept, entries = here.kept(), here.desk.history.entries()
        asked = [one for one in entries if one.kind == "asked"]
        assert [(one.text, one.agent) for one in asked] == [(f"unit {n}", f"{NAME}:{AGENT}") for n in (1, 2)]
        assert kept[:3] == [
            ("prompt", "please do two units", ""), ("asked", "unit 1", asked[0].call),
            ("result", "did unit 1", asked[0].call),
        ]  # fmt: skip
        # when the second ends is open: Claude hears of it before its answer, or behind it and answers again
        assert sorted(one for one in kept[3:] if one[0] != "answer") == [
            ("asked", "unit 2", asked[1].call), ("result", "did unit 2", asked[1].call),
        ]  # fmt: skip
        assert {one[1] for one in kept if one[0] == "answer"} - {"heard of it"} == {"answered"}
        assert {one.session for one in entries} == {here.desk.session} == {SESSION}


async def test_a_long_session_asks_no_subagent_and_a_new_topic_no_model(tmp_path: Path) -> None:
    async with wing(tmp_path, ForemanSettings(restart=Restart(bytes=1))) as here:
        await here.says("good morning", "--session-id", SESSION)  # at its first tool a session may have no transcript
        await here.says("please do two units", "--resume", SESSION)
        assert [(kind, text) for kind, text, _ in here.kept()][2:4] == [
            ("prompt", "please do two units"), ("asked", f"{UNBEGUN}unit 1"),
        ]  # fmt: skip
        assert here.relaunches.receive_nowait().prompt == CONTINUE
        assert here.model.prompts_seen("unit 1") == 0
        assert any("begun anew" in result for ask in here.model.asks for result in ask.results)

        here.desk.begun(SESSION)
        await here.desk.hear("UserPromptSubmit", {"session_id": SESSION, "prompt_id": "p", "prompt": "the roof"})
        before = len(here.model.asks)
        printed = await here.says("paint the boat", "--resume", SESSION)
        assert "new topic" in printed
        assert here.relaunches.receive_nowait().prompt == "paint the boat"
        assert [(kind, text) for kind, text, _ in here.kept()][-2:] == [
            ("topic", "a new topic"), ("prompt", "paint the boat"),
        ]  # fmt: skip
        cleared = await here.says(f"/{NAME}:clear-worker-history", "--resume", SESSION)
        assert "history is cleared" in cleared
        assert (here.kept(), len(here.model.asks)) == ([], before)


async def test_without_the_wrapper_all_passes(tmp_path: Path) -> None:
    async with wing(tmp_path) as here:
        hooks = json.loads(await anyio.Path(tmp_path / "plugin" / "hooks" / "hooks.json").read_text())
        calls = [call for some in hooks["hooks"].values() for one in some for call in one["hooks"]]
        assert {call["onFailure"] for call in calls} == {"continue"}
        await to_thread.run_sync(write_plugin, tmp_path / "plugin", "http://127.0.0.1:9", SECRET, "w")  # refused
        assert "answered" in await here.says("please do two units")
        assert here.model.prompts_seen("unit 1") == 1
        assert here.kept() == []
