"""The world in which the port `Runner` is tried over the real Claude Code with a scripted model."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from ashep.adapters.runners.claude import Apart, ClaudeRunner, transcript
from ashep.adapters.runners.foreign_json import parse_object
from ashep.adapters.sandboxes.exec import find_program_folders
from ashep.adapters.sandboxes.logins import CLAUDE, Logins
from ashep.adapters.sandboxes.profiles import SandboxProfiles
from ashep.adapters.sandboxes.session_sandboxes import SessionSandboxes
from ashep.adapters.system import process_table, programs
from ashep.core.facts.runs import Model
from ashep.core.policy.settings import AgentsSettings
from ashep.extras.demo.scripted_model import Call, ModelRequest, ModelServer, Reply, claude_environment
from ashep.extras.testing.worlds import FETCHED, Act
from tests.conformance import unsupported
from tests.conformance.runners import EVERYTHING, act_for

AGENT = "---\nname: {0}\ndescription: made for a test\n---\nDo as you are told.\n"


def claude() -> str:
    found = programs.find("claude")
    assert found is not None, "make claude installs it"
    return str(found)


class ClaudeWorld:
    """Claude Code in a home of its own, with a scripted model; people run it in the same home, without our settings."""

    can, agents = EVERYTHING - unsupported.CLAUDE.keys(), ("build", "plan")
    models = (Model("anthropic", "claude-sonnet-4-5"), Model("anthropic", "claude-haiku-4-5"))

    def __init__(self, folder: Path) -> None:
        self.acts: dict[str, Act] = {}
        self.steps: dict[str, list[Call]] = {}
        """Tools that an agent calls one after the other before it answers, by a word in the prompt."""
        self.results: dict[str, list[str]] = {}
        """What came of them, as far as the model was told."""
        self.folder, self.directory, self.home = folder, folder / "work", folder / "home"
        self.config, self.kept = self.home / ".claude", folder / "kept"
        self.model = ModelServer(self._reply)
        self.begun: list[tuple[str, str]] = []
        """Sessions and messages that passed the gate."""
        self.may_begin = True
        self.people: list[subprocess.Popen[bytes]] = []
        for made in (self.directory, self.config / "agents"):
            made.mkdir(parents=True)
        for name in self.agents:
            (self.config / "agents" / f"{name}.md").write_text(AGENT.format(name))
        (self.directory / "secret.env").write_text("SECRET=1\n")
        self.program = claude()
        self._runner: ClaudeRunner | None = None

    @property
    def environ(self) -> dict[str, str]:
        others = ("ANTHROPIC", "CLAUDE", "XDG_", "ASHEP")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(others)}
        return kept | claude_environment(self.model.url, self.home)

    @property
    def runner(self) -> ClaudeRunner:
        if self._runner is None:
            self._runner = self.another()
        return self._runner

    def another(self, **given: object) -> ClaudeRunner:
        """Another runner over the same folder, as a second daemon would have one."""
        known: Mapping[str, object] = {
            "directory": self.directory, "folder": self.kept, "environ": self.environ, "begin": self._begin,
            "config": self.config, "models": self.models, "default": self.models[0],
        }  # fmt: skip
        return ClaudeRunner((self.program,), **{**known, **given})  # pyright: ignore[reportArgumentType] - a test's

    async def _begin(self, session: str, message: str, why: str) -> bool:
        assert why
        if self.may_begin:
            self.begun.append((session, message))
        return self.may_begin

    def _reply(self, ask: ModelRequest) -> Reply:
        act = act_for(self.acts, ask.prompt)
        if act.does == "fails":
            return Reply("no", status=401)
        if act.does == "waits" and not ask.repeated:
            return Reply("slow down", status=429, retry_after=1)
        word = next((word for word in self.steps if word in ask.prompt), "")
        calls, self.results[word] = self.steps.get(word, []), list(ask.results)
        if act.does == "asks":
            calls = [Call("read", {"filePath": str(self.directory / "secret.env")})]
        if act.does == "fetches":
            calls = [Call("webfetch", {"url": FETCHED, "prompt": "what does it say?"})]
        if act.does == "questions":
            options = [{"label": label, "description": "d"} for label in ("first", "second")]
            asked = {"question": "Which one?", "header": "h", "multiSelect": False, "options": options}
            calls = [Call("askuserquestion", {"questions": [asked]})] * 2
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
        """Resume it as a person would, by a process that knows nothing of ours."""
        self._starts_person([self.program, "-p", "--resume", session, "--", text])
        with anyio.fail_after(60):
            while not (new := await anyio.to_thread.run_sync(self._written, session, text)):
                await anyio.sleep(0.05)
        return new[-1]

    def _starts_person(self, argv: list[str]) -> None:
        with (self.folder / "person.log").open("ab") as log:
            environ = {**self.environ, "CLAUDE_CONFIG_DIR": str(self.config)}
            given = {"cwd": self.directory, "env": environ, "stdin": subprocess.DEVNULL}
            self.people.append(subprocess.Popen(argv, **given, stdout=log, stderr=log))  # pyright: ignore[reportCallIssue, reportArgumentType] - as given

    def _written(self, session: str, words: str) -> list[str]:
        file = transcript.file_of(self.config, session)
        lines = file.read_bytes().splitlines() if file is not None else []
        events = [event for line in lines if (event := parse_object(line)) is not None]
        return [event["uuid"] for event in events if transcript.is_prompt(event) and words in str(event["message"])]

    def running(self) -> list[tuple[int, int]]:
        """Processes of turns that live, by pid and start."""
        found = [json.loads(one.read_text()) for one in self.kept.glob("sessions/*/turns/*/*/process.json")]
        return [(one["pid"], one["started"]) for one in found if process_table.lives(one["pid"], one["started"])]

    async def kill(self, by: int = signal.SIGKILL) -> None:
        for pid, _ in await anyio.to_thread.run_sync(self.running):
            os.kill(pid, by)
        while await anyio.to_thread.run_sync(self.running):
            await anyio.sleep(0.02)

    async def end(self) -> None:
        """End all that this world started."""
        for one in self.people:
            one.kill()
            one.wait()
        await self.kill()
        await self.runner.aclose()


class ApartWorld(ClaudeWorld):
    """The same in a place, in a sandbox."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.places = folder / "project" / ".agent-shepherd" / "places"
        self.places.mkdir(parents=True)
        self.directory = self.directory.rename(self.places / "t-1")
        self.things, self.read = folder / "things", set[Path]()
        settings = AgentsSettings(sandbox="bwrap")
        quarters = SessionSandboxes(
            SandboxProfiles(folder / "project", self.places, (), settings, self.environ),
            place_of=self._place_of, folder_of=lambda place: self.things.with_name(f"things-{place.name}")
            if place != self.directory else self.things,
            needs=lambda: find_program_folders(Path(self.program)) | self.read,
        )  # fmt: skip
        self.apart = Apart(
            quarters, Logins(self.home / ".claude" / ".credentials.json", lambda: folder / "login", CLAUDE)
        )
        self.user, self.config = self.config, self.things / "claude"

    def _place_of(self, directory: str | None) -> Path | None:
        at = Path(directory or self.directory)  # the suite names a folder where it means another one than the world's
        return self.places / at.relative_to(self.places).parts[0] if at.is_relative_to(self.places) else None

    def another(self, **given: object) -> ClaudeRunner:
        """As above, in a sandbox."""
        return super().another(**{"apart": self.apart, "config": self.user, **given})


def in_folder(world: ClaudeWorld) -> Iterator[ClaudeWorld]:
    """A world in which nothing runs yet; its folder is gone in the end."""
    yield world
    shutil.rmtree(world.folder, ignore_errors=True)


async def standing(world: ClaudeWorld) -> AsyncIterator[ClaudeWorld]:
    """The same once its model and its gate are open."""
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(world.model)
        stack.push_async_callback(world.end)
        await world.runner.start()
        yield world


@pytest.fixture(scope="module")
def claude_place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClaudeWorld]:
    yield from in_folder(ClaudeWorld(tmp_path_factory.mktemp("claude")))


@pytest.fixture(scope="module")
async def claude_world(claude_place: ClaudeWorld) -> AsyncIterator[ClaudeWorld]:
    async for world in standing(claude_place):
        yield world
