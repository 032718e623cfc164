"""Remains of a demonstration that is killed: its place, and its processes, of which the scripted model is one."""

import json
import os
import shlex
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import anyio
import httpx
from anyio import to_thread

from ashep.adapters.system import process_table
from ashep.adapters.system.http_client import make_client
from ashep.errors import AshepError
from ashep.extras.demo.progress import STILL
from ashep.extras.demo.project import DemoProject, run_of
from ashep.extras.demo.scenario import CALC
from ashep.journal import durable_io

LOG = "model.jsonl"
"""One line for each request that the model got."""

Agents = Literal["opencode", "mixed"]
"""Whose agents do the work: OpenCode's alone, or those who implement are Claude Code's."""

PREFIX = "ashep-demo-"
"""How the names of folders begin that no person chose."""

_NAME = "demo.json"

_BEGUN = ("ashep", "serve", "--strict-mcp-config", "ashep.extras.demo")
"""An argument of each process that a demonstration begins: the daemon, servers, turns of Claude Code, the model."""


@dataclass(frozen=True, slots=True)
class DemoState:
    """The content of `demo.json`."""

    url: str
    """Where the model is, also when it has to be started again."""
    built: bool = False
    """Whether project, issues and configuration are complete."""
    failed_before: bool = False
    """Whether the program's test failed before anybody worked on it."""
    agents: Agents = "opencode"
    piece: str = CALC.name
    """What is played."""
    killed: str = ""
    """The run in whose midst the daemon was killed, of a demonstration in which it is."""
    pid: int = 0
    """The process that shows it, or did last."""
    started: int = 0
    """The start time of that process; 0: nobody can tell whether it lives."""

    @staticmethod
    def load_or_begin(folder: Path, agents: Agents = "opencode", piece: str = CALC.name) -> "DemoState":
        """Read what an earlier demonstration left there, or begin a new one of this piece with these agents.

        Raises `AshepError` where the folder holds something else, or a demonstration that is being shown.
        """
        try:
            kept = DemoState(**json.loads((folder / _NAME).read_text()))
            if kept.is_shown():
                raise AshepError(f"process {kept.pid} shows the demonstration in {folder}: wait for it, or stop it")
        except FileNotFoundError:
            if folder.exists() and any(folder.iterdir()):
                raise AshepError(f"{folder} is not empty, and holds no demonstration to go on with") from None
            folder.mkdir(parents=True, exist_ok=True)
            with socket.create_server(("127.0.0.1", 0)) as listener:
                kept = DemoState(f"http://127.0.0.1:{listener.getsockname()[1]}", agents=agents, piece=piece)
        kept = replace(kept, pid=os.getpid(), started=process_table.stat(os.getpid())[1])
        kept.write(folder)
        return kept

    def is_shown(self) -> bool:
        """Whether the process that shows it lives."""
        return process_table.lives(self.pid, self.started)

    def write(self, folder: Path) -> None:
        """Write it, all or nothing."""
        durable_io.replace(folder / _NAME, json.dumps(asdict(self)).encode())


def write_environment(folder: Path, environ: Mapping[str, str], tools: Path) -> None:
    """Write `env`, by which a shell uses the demonstration's home: `. DIR/env`."""
    ours = {name: value for name, value in environ.items() if os.environ.get(name) != value}
    ours["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), str(tools), environ.get("PATH", "")))
    lines = [f"export {name}={shlex.quote(value)}\n" for name, value in sorted(ours.items())]
    (folder / "env").write_text("".join(lines))


async def start_model(stage: DemoProject, url: str) -> None:
    """Have the scripted model at this address: the one that listens there, or a new one."""
    if await _answers(url):
        return
    folder = stage.folder
    python = (sys.executable, "-P", "-m", "ashep.extras.demo")
    words = (*python, "--port", url.rpartition(":")[2], "--log", str(folder / LOG), "--script", stage.piece.name)
    with (folder / "model.err").open("wb") as errors:
        start = partial(  # it outlives the event loop, which would complain of its end
            subprocess.Popen, words, env=stage.environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=errors, start_new_session=True,
        )  # fmt: skip
        process = await anyio.to_thread.run_sync(start)
    process_table.children[process.pid] = process
    with anyio.move_on_after(STILL):
        while process.poll() is None:
            if await _answers(url):
                return
            await anyio.sleep(0.1)
    raise AshepError(f"the scripted model does not listen at {url}: {(folder / 'model.err').read_text()[-500:]}")


async def _answers(url: str) -> bool:
    """Whether the model is there. Where nobody listens that is known at once; else it may be slow."""
    try:
        async with make_client(64 * 1024, timeout=STILL, trust_env=False) as client:
            return "pid" in (await client.get(f"{url}/asks")).json()
    except (httpx.HTTPError, ValueError):
        return False


async def end_processes(folder: Path) -> None:
    """End what a demonstration began that was shown in this folder, and see it gone."""
    for argument in _BEGUN:
        await process_table.end(process_table.ProcessMark("HOME", str(folder / "home"), argument), AshepError)


async def end_abandoned() -> None:
    """End what is left of demonstrations whose own process was killed."""
    for folder in await to_thread.run_sync(_abandoned):
        await end_processes(folder)


def _abandoned() -> list[Path]:
    found = list[Path]()
    for file in Path(tempfile.gettempdir()).glob(f"{PREFIX}{'?' * 8}/{_NAME}"):
        with suppress(OSError, ValueError, TypeError):  # another user's, or another program's
            kept = DemoState(**json.loads(file.read_text()))
            if kept.started and not kept.is_shown():
                found.append(file.parent)
    return found


@dataclass(slots=True)
class ModelUse:
    """What the model was asked for a run."""

    prompt: str
    """The first that it saw."""
    turns: int
    """How many turns began."""
    session: str
    """The session in which it first was."""


def read_model_uses(folder: Path) -> dict[str, ModelUse]:
    """What the model was asked, by run."""
    found: dict[str, ModelUse] = {}
    lines = [json.loads(line) for line in (folder / LOG).read_text(encoding="utf-8").split("\n") if line]
    for line in lines:
        if (run := run_of(line["prompt"])) is None:
            continue
        known = found.setdefault(run, ModelUse(line["prompt"], 0, line["session"]))
        known.turns += line["kind"] == "turn" and not line["repeated"]
    return found


def journal(project: Path) -> Iterator[dict[str, Any]]:
    """Give the records of the journal."""
    for file in sorted((project / ".agent-shepherd" / "state" / "journal").glob("*.jsonl")):
        for text in file.read_text(encoding="utf-8").splitlines():
            yield json.loads(text.rpartition("\t")[0])
