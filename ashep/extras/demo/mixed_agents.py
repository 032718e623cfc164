"""The demonstration with several kinds of agents: Claude Code implements, OpenCode judges, and the daemon is killed."""

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import anyio
from anyio import to_thread
from anyio.abc import Process

from ashep.core.state.run import runner_of
from ashep.errors import AshepError
from ashep.extras.demo.project import DemoProject
from ashep.extras.demo.state_dir import ModelUse, journal, read_model_uses

CLAUDE = "claude"
"""The name of the second runner."""

_OPENCODE_S = "ses_"
"""How sessions of OpenCode's begin in the model's log."""

_SERVERS = "runners:\n"
_BUILDER = "    runner:\n      type: opencode\n      agent_slug: build "
_MAKER = f"    runner:\n      type: {CLAUDE}\n      provider: anthropic\n      model: sonnet\n      agent_slug: null "
_UNSET = "      provider: null          # with `model`; null: the server's default\n      model: null\n"


async def configure(stage: DemoProject) -> None:
    """Add the runner to the files that `ashep init` wrote, and let whoever implements be of it."""
    folder = stage.project / ".agent-shepherd"
    await _changed(folder / "config.yaml", {_SERVERS: f"{_SERVERS}  {CLAUDE}: {{}}\n"})
    await _changed(folder / "agents.yaml", {_BUILDER: _MAKER, _UNSET: ""})


async def _changed(file: Path, words: Mapping[str, str]) -> None:
    text = await to_thread.run_sync(file.read_text)
    for old, new in words.items():
        if old not in text:
            raise AshepError(f"{file} is not as `ashep init` writes it")
        text = text.replace(old, new, 1)
    await to_thread.run_sync(file.write_text, text)


async def kill(stage: DemoProject, process: Process, say: Callable[[str], None]) -> str:
    """Kill the daemon as soon as the model was asked in a turn of Claude Code for each issue; return the last run."""
    runs = list[str]()
    while len({run.partition("/")[0] for run in runs}) < len(stage.piece.issues):
        runs = [run for run in await to_thread.run_sync(read_model_uses, stage.folder) if _writes(run)]
        if process.returncode is not None:
            assert process.stdout is not None
            said = b"".join([part async for part in process.stdout]).decode(errors="replace").strip()
            raise AshepError(f"`ashep work` has ended before Claude Code was asked: {said}")
        await anyio.sleep(0.02)
    process.kill()
    await process.wait()
    say(f"$ kill -9 {process.pid}   (`ashep work`, in the midst of {runs[-1]} on Claude Code)")
    return runs[-1]


def _writes(run: str) -> bool:
    return run.partition("/")[2].startswith("implement.")


def proofs(stage: DemoProject, seen: Mapping[str, ModelUse], killed: str) -> list[tuple[str, bool]]:
    """What each kind did, as the model's log and the journal have it, and what the kill did to a turn."""
    records = [*journal(stage.project)]
    by_claude = sorted(run for run, one in seen.items() if not one.session.startswith(_OPENCODE_S))
    opened = {
        str(record["run"])
        for record in records
        if record["type"] == "SessionOpened" and runner_of(record["session"]) == CLAUDE
    }
    begun = Counter(str(record["run"]) for record in records if record["type"] == "TurnBegun")
    lives = Counter(str(record["type"]) for record in records if record["type"] in ("DaemonStarted", "DaemonStopped"))
    asked_once = killed in by_claude and seen[killed].turns == 1
    others = len(seen) - len(by_claude)
    return [
        (
            f"Claude Code was asked for {len(by_claude)} runs, all that implement; OpenCode for {others}",
            by_claude == sorted(filter(_writes, seen)) and opened == {*by_claude} and bool(by_claude) and others > 0,
        ),
        (
            f"turns of Claude Code that were let begin: {begun.total()}, for {len(by_claude)} prompts",
            begun == Counter(by_claude),
        ),
        (
            f"killed with -9 in the midst of {killed}, of which the model was told once",
            asked_once and lives["DaemonStarted"] > lives["DaemonStopped"],
        ),
    ]
