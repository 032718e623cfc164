"""The worlds in which the port `Runner` is tried: a runner in memory, and a real OpenCode with a scripted model."""

import json
import os
import shutil
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from ashep.adapters.runners.opencode import OpencodeRunner
from ashep.adapters.runners.opencode.server import ManagedServer
from ashep.adapters.system import programs
from ashep.core.facts.runs import Model, Refusal
from ashep.extras.demo.scripted_model import (
    MODELS_FILE,
    Call,
    ModelRequest,
    ModelServer,
    Reply,
    opencode_config,
    settle,
)
from ashep.extras.simulation.memory.runner import MemoryRunner, Play, Prompted
from ashep.extras.testing.worlds import FETCHED, Act
from ashep.ports.runner_router import PrefixedRunner


class SystemClock:
    """Real time, for the runner in memory."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return anyio.current_time()

    async def sleep_until(self, when: datetime) -> None:
        await anyio.sleep(max(0.0, (when - self.now()).total_seconds()))


CLAUDES = "Output token limit hit"
"""How the prompt begins by which Claude Code goes on by itself, three times, where its answer was cut off."""


def act_for(acts: Mapping[str, Act], prompt: str) -> Act:
    if prompt.startswith(CLAUDES):
        return Act(does="cut")
    return next((act for word, act in acts.items() if word in prompt), Act())


REFUSALS = {"waits": Refusal("limited", "slow down", timedelta(seconds=1)), "fails": Refusal("unauthorized", "no")}


EVERYTHING = frozenset(
    {
        "answers", "hangs", "waits", "asks", "fetches", "questions", "fails", "drips", "works",
        "counts", "people", "dies", "serves", "unlists", "words", "cut", "times",
    }
)  # fmt: skip
SCRIPTED = Model("scripted", "default")
OTHER = Model("scripted", "other")


class MemoryWorld:
    """A runner in memory."""

    can, agents, models = EVERYTHING, ("build", "plan"), (SCRIPTED, OTHER)

    def __init__(self) -> None:
        self.acts: dict[str, Act] = {}
        self.runner = MemoryRunner(SystemClock(), self._play)

    def _play(self, asked: Prompted) -> Play:
        act = act_for(self.acts, asked.text)
        return Play(
            text="" if act.does == "fails" else act.text, error="APIError: no" if act.does == "fails" else None,
            delay={"waits": 1.0, "drips": 3.0, "works": 3.0}.get(act.does, act.delay),
            pulse=0.3 if act.does == "drips" else None if act.does == "works" else 1.0,
            tool="bash" if act.does == "works" else None, fate="hangs" if act.does == "hangs" else "ends",
            asks="permission" if act.does in ("asks", "fetches") else "question" if act.does == "questions" else None,
            times=2 if act.does == "questions" else 1, refused=REFUSALS.get(act.does), cut=act.does == "cut",
            **({"tool_asked": "webfetch", "wants": FETCHED, "listed": False} if act.does == "fetches" else {}),
        )  # fmt: skip

    def seen(self, text: str) -> int:
        return self.runner.prompts_seen(text)

    async def person_writes(self, session: str, text: str) -> str:
        hangs = act_for(self.acts, text).does == "hangs"
        return self.runner.person_writes(session, text, delay=None if hangs else 0.0)

    async def kill(self) -> None:
        self.runner.kill()


class NamedWorld:
    """The same as one of several runners of a project: its sessions have its name before their ids."""

    can, agents, models = EVERYTHING, ("build", "plan"), (SCRIPTED, OTHER)

    def __init__(self) -> None:
        self._inner = MemoryWorld()
        self.acts, self.seen, self.kill = self._inner.acts, self._inner.seen, self._inner.kill
        self.runner = PrefixedRunner("second", self._inner.runner)

    async def person_writes(self, session: str, text: str) -> str:
        return await self._inner.person_writes(session.removeprefix("second:"), text)


SPY = """#!/bin/sh
echo "$(basename "$0") $@" >> "$(dirname "$0")/../ran.log"
"""


class RealWorld:
    """A managed OpenCode server and a scripted model, in folders of their own."""

    can, agents, models = EVERYTHING, ("build", "plan"), (SCRIPTED, OTHER)

    def __init__(self, folder: Path) -> None:
        self.acts: dict[str, Act] = {}
        self.steps: dict[str, list[Call]] = {}
        """Tools that an agent calls one after the other before it answers, by a word in the prompt."""
        self.folder = folder
        self.config = folder / "home" / ".config" / "opencode"
        self.directory = folder / "work"
        self.state = folder / "state"
        self.model = ModelServer(self._reply)
        for made in (self.directory, self.state, folder / "home", folder / "bin"):
            made.mkdir(parents=True)
        for name in ("bd", "ashep"):
            (folder / "bin" / name).write_text(SPY)
            (folder / "bin" / name).chmod(0o755)
        settle(self.config, {})
        self.environ = private_environment(folder / "home", folder / "bin")
        self.server = self.new_server()
        self.runner = OpencodeRunner(self.server, directory=self.directory)

    def new_server(self) -> ManagedServer:
        """Another handle of the same server, as a second ashep would have one."""
        return ManagedServer(command=(opencode(),), directory=self.directory, state=self.state, environ=self.environ)

    @property
    def ran(self) -> str:
        """What the spies that stand for bd and ashep noted."""
        log = self.folder / "ran.log"
        return log.read_text() if log.exists() else ""

    @property
    def record(self) -> dict[str, Any]:
        """The content of server.json."""
        return json.loads((self.server.folder / "server.json").read_text())

    def http(self) -> httpx.AsyncClient:
        """A client beside the runner, as a person's would be."""
        record = self.record
        return httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{record['port']}", auth=("opencode", record["password"]),
            params={"directory": str(self.directory)}, trust_env=False, timeout=20,
        )  # fmt: skip

    def _reply(self, ask: ModelRequest) -> Reply:
        act = act_for(self.acts, ask.prompt)
        if act.does == "fails":
            return Reply("no", status=401)
        if act.does == "waits" and not ask.repeated:
            return Reply("slow down", status=429, retry_after=1)
        calls = next((calls for word, calls in self.steps.items() if word in ask.prompt), [])
        if act.does == "asks":
            calls = [Call("read", {"filePath": str(self.directory / "secret.env")})]
        if act.does == "fetches":
            calls = [Call("webfetch", {"url": FETCHED, "format": "text"})]  # and no timeout, which it may have
        if act.does == "questions":
            options = [{"label": label, "description": "d"} for label in ("first", "second")]
            asking = Call("question", {"questions": [{"question": "Which one?", "header": "h", "options": options}]})
            calls = [asking, asking]
        if act.does == "works":
            calls = [Call("bash", {"command": "sleep 3", "description": "wait"})]
        if act.does == "drips":
            return Reply("drip " * 10, drip=0.3)
        if len(ask.results) < len(calls):
            return Reply(calls=(calls[len(ask.results)],))
        return Reply(act.text, hang=act.does == "hangs", delay=act.delay, cut=act.does == "cut")

    def seen(self, text: str) -> int:
        return self.model.prompts_seen(text)

    async def person_writes(self, session: str, text: str) -> str:
        async with self.http() as http:
            before = {entry["info"]["id"] for entry in (await http.get(f"/session/{session}/message")).json()}
            body = {"parts": [{"type": "text", "text": text}]}
            assert (await http.post(f"/session/{session}/prompt_async", json=body)).status_code == 204
            for _ in range(100):
                entries = (await http.get(f"/session/{session}/message")).json()
                new = [
                    e["info"]["id"] for e in entries if e["info"]["role"] == "user" and e["info"]["id"] not in before
                ]
                if new:
                    return new[0]
                await anyio.sleep(0.05)
        raise AssertionError("the person's message never came up")

    async def kill(self) -> None:
        os.kill(self.record["pid"], 9)
        await anyio.sleep(0.2)


def opencode() -> str:
    found = programs.find("opencode")
    assert found is not None, "make setup installs opencode"
    return str(found)


def private_environment(home: Path, bin: Path) -> dict[str, str]:
    """The environment of a user who has nothing but this home."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "OPENCODE", "ASHEP"))}
    path = f"{bin}:{kept['PATH']}"
    models = {
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_MODELS_PATH": str(home / ".config" / "opencode" / MODELS_FILE),
    }
    return kept | models | {"HOME": str(home), "PATH": path}


@pytest.fixture(scope="module")
def real_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealWorld]:
    """A real world in which nothing runs yet."""
    world = RealWorld(tmp_path_factory.mktemp("opencode"))
    yield world
    shutil.rmtree(world.folder, ignore_errors=True)


@pytest.fixture(scope="module")
async def real_world(real_place: RealWorld) -> AsyncIterator[RealWorld]:
    """A real world whose model and server run."""
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(real_place.model)
        for folder in (real_place.directory, real_place.config):  # a session in another folder has this model, too
            (folder / "opencode.json").write_text(json.dumps(opencode_config(real_place.model.url)))
        stack.push_async_callback(real_place.runner.stop_server)
        await real_place.runner.start()
        yield real_place
