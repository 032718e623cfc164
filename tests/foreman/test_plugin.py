"""The plugin in the real Claude Code, asked by a scripted model: what its hooks tell is what the rules expect."""

import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest
from anyio import to_thread
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
from tests.foreman.serving import serving

pytestmark = pytest.mark.real

SECRET = "a-secret-of-this-start"
SESSION = "5e0f7f0e-0000-4000-8000-000000000001"
NOBODY = "http://127.0.0.1:9"


async def run(folder: Path, url: str, *words: str) -> str:
    """Run Claude Code in a home of its own, and give what it prints."""
    await anyio.Path(folder / "work").mkdir(exist_ok=True)
    others = ("ANTHROPIC", "CLAUDE", "XDG_", "ASHEP")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(others)}
    environ = kept | claude_environment(url, folder / "home")
    argv = [await to_thread.run_sync(claude), *words]
    return (await programs.run(argv, cwd=folder / "work", env=environ, timeout=200)).stdout.decode()


def script(ask: Ask) -> Reply:
    """Two subagents, the second in the background, for a prompt that says so; else an answer."""
    if ask.prompt.startswith("unit"):
        return Reply(f"did {ask.prompt}")
    if "two units" in ask.prompt and "task-notification" not in ask.prompt and len(ask.results) < 2:
        unit = f"unit {len(ask.results) + 1}"
        asked = {"description": unit, "prompt": unit, "subagent_type": f"{NAME}:{AGENT}"}
        return Reply(calls=(Call("Agent", {**asked, "run_in_background": unit == "unit 2"}),))
    return Reply("heard of it" if "task-notification" in ask.prompt else "answered")


@asynccontextmanager
async def wing(
    folder: Path, settings: ForemanSettings
) -> AsyncIterator[tuple[Desk, ModelServer, Callable[..., Awaitable[str]], Callable[[], Relaunch]]]:
    """Answer hooks; give the desk, the model, what runs Claude Code with a prompt, and what tells of a relaunch."""

    async def topic(recent: Sequence[Entry], prompt: str, seconds: float) -> bool:
        return "boat" in prompt

    async def says(prompt: str, *options: str) -> str:
        return await run(folder, model.url, "-p", "--plugin-dir", str(folder / "plugin"), *options, "--", prompt)

    send, receive = anyio.create_memory_object_stream[Relaunch](1)
    redaction, log = Redaction(), list[str]()
    history = await to_thread.run_sync(History.open, folder / "state", redaction, 1_000_000)
    desk = Desk(history, redaction, settings, SECRET, send, lambda: datetime.now(UTC), log.append, topic)
    desk.begun(SESSION)
    async with serving(Starlette(routes=routes(desk))) as url, ModelServer(script) as model:
        await to_thread.run_sync(write_plugin, folder / "plugin", url, SECRET, 'of "mine"')
        with send, receive:
            yield desk, model, says, receive.receive_nowait
    await to_thread.run_sync(history.close)
    assert log == []


async def test_claude_is_content_with_the_plugin_and_nobody_else_reads_its_secret(tmp_path: Path) -> None:
    plugin = tmp_path / "plugin"
    for _ in range(2):  # it is written anew at each start
        await to_thread.run_sync(write_plugin, plugin, NOBODY, SECRET, "a\nworker")
    assert plugin.stat().st_mode & 0o777 == 0o700
    hooks = json.loads(await anyio.Path(plugin / "hooks" / "hooks.json").read_text())
    calls = [call for some in hooks["hooks"].values() for one in some for call in one["hooks"]]
    assert {call["onFailure"] for call in calls} == {"continue"}
    printed = await run(tmp_path, NOBODY, "plugin", "validate", str(plugin))
    for named in (
        "Validation passed",
        f"{NAME}:{AGENT}",
        f"{NAME}:clear-worker-history",
        f"{NAME}:hand-over",
        "web http",
    ):
        assert named in printed


async def test_what_is_said_is_kept_with_subagents_of_both_kinds(tmp_path: Path) -> None:
    async with wing(tmp_path, ForemanSettings()) as (desk, _, says, _):
        assert "answered" in await says("please do two units", "--session-id", SESSION)
        entries = desk.history.entries()
        one, two = (entry for entry in entries if entry.kind == "asked")
        assert (one.agent, two.agent, one.call != two.call) == (f"{NAME}:{AGENT}", f"{NAME}:{AGENT}", True)
        kept = [(entry.kind, entry.text, entry.call) for entry in entries]
        assert kept[:3] == [
            ("prompt", "please do two units", ""), ("asked", "unit 1", one.call), ("result", "did unit 1", one.call),
        ]  # fmt: skip
        # when the second ends is open: Claude hears of it before its answer, or behind it and answers again
        assert sorted(some for some in kept[3:] if some[0] != "answer") == [
            ("asked", "unit 2", two.call), ("result", "did unit 2", two.call),
        ]  # fmt: skip
        assert {some[1] for some in kept if some[0] == "answer"} - {"heard of it"} == {"answered"}
        assert {entry.session for entry in entries} == {desk.session} == {SESSION}


async def test_a_long_session_asks_no_subagent_and_a_new_topic_no_model(tmp_path: Path) -> None:
    async with wing(tmp_path, ForemanSettings(restart=Restart(bytes=1))) as (desk, model, says, relaunch):
        await says("good morning", "--session-id", SESSION)  # at its first tool a session may have no transcript
        await says("please do two units", "--resume", SESSION)
        assert [one.text for one in desk.history.entries()][2:4] == ["please do two units", f"{UNBEGUN}unit 1"]
        assert relaunch().prompt == CONTINUE
        assert model.prompts_seen("unit 1") == 0
        assert any("begun anew" in result for ask in model.asks for result in ask.results)

        desk.begun(SESSION)
        await desk.hear("UserPromptSubmit", {"session_id": SESSION, "prompt_id": "p", "prompt": "the roof"})
        before = len(model.asks)
        assert "new topic" in await says("paint the boat", "--resume", SESSION)
        assert relaunch().prompt == "paint the boat"
        assert [(one.kind, one.text) for one in desk.history.recent()] == [("prompt", "paint the boat")]
        assert "history is cleared" in await says(f"/{NAME}:clear-worker-history", "--resume", SESSION)
        assert (list(desk.history.entries()), len(model.asks)) == ([], before)


async def test_without_the_wrapper_all_passes(tmp_path: Path) -> None:
    await to_thread.run_sync(write_plugin, tmp_path / "plugin", NOBODY, SECRET, "w")  # refused
    async with ModelServer(script) as model:
        words = ("-p", "--plugin-dir", str(tmp_path / "plugin"), "--", "please do two units")
        assert "answered" in await run(tmp_path, model.url, *words)
        assert model.prompts_seen("unit 1") == 1
