"""Remains of a demonstration that is killed: its place, and the scripted model, which is a process of its own."""

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import anyio
import httpx

from ashep.demo.stage import Stage, run_of
from ashep.demo.story import CALC
from ashep.errors import AshepError

LOG = "model.jsonl"
"""One line for each request that the model got."""

Agents = Literal["opencode", "mixed"]
"""Whose agents do the work: OpenCode's alone, or those who implement are Claude Code's."""

_NAME = "demo.json"
_START = 20.0  # seconds until the model listens


@dataclass(frozen=True, slots=True)
class Kept:
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

    @staticmethod
    def of(folder: Path, agents: Agents = "opencode", piece: str = CALC.name) -> "Kept":
        """Read what an earlier demonstration left there, or begin a new one of this piece with these agents.

        Raises `AshepError` where the folder holds something else.
        """
        try:
            kept = Kept(**json.loads((folder / _NAME).read_text()))
        except FileNotFoundError:
            if folder.exists() and any(folder.iterdir()):
                raise AshepError(f"{folder} is not empty, and holds no demonstration to go on with") from None
            folder.mkdir(parents=True, exist_ok=True)
            with socket.create_server(("127.0.0.1", 0)) as listener:
                kept = Kept(f"http://127.0.0.1:{listener.getsockname()[1]}", agents=agents, piece=piece)
            kept.write(folder)
        return kept

    def write(self, folder: Path) -> None:
        """Write it, all or nothing."""
        draft = folder / f"{_NAME}.tmp"
        draft.write_text(json.dumps(asdict(self)))
        draft.rename(folder / _NAME)


def write_environment(folder: Path, environ: Mapping[str, str], tools: Path) -> None:
    """Write `env`, by which a shell uses the demonstration's home: `. DIR/env`."""
    ours = {name: value for name, value in environ.items() if os.environ.get(name) != value}
    ours["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), str(tools), environ.get("PATH", "")))
    lines = [f"export {name}={shlex.quote(value)}\n" for name, value in sorted(ours.items())]
    (folder / "env").write_text("".join(lines))


@asynccontextmanager
async def model(stage: Stage, url: str) -> AsyncGenerator[None]:
    """The scripted model at this address: the one that listens there, or a new one; in the end it is gone."""
    folder = stage.folder
    if await _pid(url) is None:
        port = url.rpartition(":")[2]
        python = (sys.executable, "-P", "-m", "ashep.demo")
        words = (*python, "--port", port, "--log", str(folder / LOG), "--script", stage.piece.name)
        with (folder / "model.err").open("wb") as errors:
            await anyio.open_process(
                words, env=stage.environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors,
                start_new_session=True,
            )  # fmt: skip
        with anyio.move_on_after(_START):
            while await _pid(url) is None:
                await anyio.sleep(0.1)
    if await _pid(url) is None:
        raise AshepError(f"the scripted model does not listen at {url}: {(folder / 'model.err').read_text()[-500:]}")
    try:
        yield
    finally:
        with anyio.move_on_after(_START, shield=True):
            while (pid := await _pid(url)) is not None:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
                await anyio.sleep(0.1)


async def _pid(url: str) -> int | None:
    """Ask the model for its process; None where it does not answer."""
    try:
        async with httpx.AsyncClient(timeout=2, trust_env=False) as client:
            return int((await client.get(f"{url}/asks")).json()["pid"])
    except (httpx.HTTPError, ValueError, KeyError):
        return None


@dataclass(slots=True)
class Asked:
    """What the model was asked for a run."""

    prompt: str
    """The first that it saw."""
    turns: int
    """How many turns began."""
    session: str
    """The session in which it first was."""
    first: int
    """The places in the log of the first and the last request."""
    last: int


def asked(folder: Path) -> dict[str, Asked]:
    """What the model was asked, by run."""
    found: dict[str, Asked] = {}
    lines = [json.loads(line) for line in (folder / LOG).read_text(encoding="utf-8").split("\n") if line]
    for place, line in enumerate(lines):
        if (run := run_of(line["prompt"])) is None:
            continue
        known = found.setdefault(run, Asked(line["prompt"], 0, line["session"], place, place))
        known.turns += line["kind"] == "turn" and not line["repeated"]
        known.last = place
    return found


def journal(project: Path) -> Iterator[dict[str, Any]]:
    """Give the records of the journal."""
    for file in sorted((project / ".agent-shepherd" / "state" / "journal").glob("*.jsonl")):
        for text in file.read_text(encoding="utf-8").splitlines():
            yield json.loads(text.rpartition("\t")[0])
