"""The plugin in the real Claude Code, asked by a scripted model: what its hooks tell is what the rules expect."""

import os
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest
from anyio import to_thread
from starlette.applications import Starlette

from ashep.adapters.system import programs
from ashep.extras.demo.scripted_model import Call, ModelRequest, ModelServer, Reply, claude_environment
from ashep.extras.foreman.history import History
from ashep.extras.foreman.hook_rules import Relaunch
from ashep.extras.foreman.hook_server import Desk, routes
from ashep.extras.foreman.launch_args import AGENT, NAME, write_plugin
from ashep.extras.foreman.settings import ForemanSettings
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


def script(ask: ModelRequest) -> Reply:
    """Two subagents, the second in the background, for a prompt that says so; else an answer."""
    if ask.prompt.startswith("unit"):
        return Reply(f"did {ask.prompt}")
    if "two units" in ask.prompt and "task-notification" not in ask.prompt and len(ask.results) < 2:
        unit = f"unit {len(ask.results) + 1}"
        asked = {"description": unit, "prompt": unit, "subagent_type": f"{NAME}:{AGENT}"}
        return Reply(calls=(Call("Agent", {**asked, "run_in_background": unit == "unit 2"}),))
    return Reply("heard of it" if "task-notification" in ask.prompt else "answered")


async def test_claude_is_content_with_the_plugin_and_nobody_else_reads_its_secret(tmp_path: Path) -> None:
    plugin = tmp_path / "plugin"
    await to_thread.run_sync(write_plugin, plugin, NOBODY, SECRET, "w")
    assert plugin.stat().st_mode & 0o777 == 0o700
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
    send, receive = anyio.create_memory_object_stream[Relaunch](1)
    redaction, log = Redaction(), list[str]()
    history = await to_thread.run_sync(History.open, tmp_path / "state", redaction, 1_000_000)
    desk = Desk(history, redaction, ForemanSettings(), SECRET, send, lambda: datetime.now(UTC), log.append)
    desk.note_start(SESSION)
    with send, receive:
        async with serving(Starlette(routes=routes(desk))) as url, ModelServer(script) as model:
            await to_thread.run_sync(write_plugin, tmp_path / "plugin", url, SECRET, 'of "mine"')
            plugin = ("--plugin-dir", str(tmp_path / "plugin"), "--session-id", SESSION)
            assert "answered" in await run(tmp_path, model.url, "-p", *plugin, "--", "please do two units")
    entries = history.entries()
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
    assert ({entry.session for entry in entries}, desk.session, log) == ({SESSION}, SESSION, [])
    await to_thread.run_sync(history.close)


async def test_without_the_wrapper_all_passes(tmp_path: Path) -> None:
    await to_thread.run_sync(write_plugin, tmp_path / "plugin", NOBODY, SECRET, "w")  # refused
    async with ModelServer(script) as model:
        words = ("-p", "--plugin-dir", str(tmp_path / "plugin"), "--", "please do two units")
        assert "answered" in await run(tmp_path, model.url, *words)
        assert model.prompts_seen("unit 1") == 1
