"""The worlds in which the port `Runner` is tried over agents that speak ACP: a real one, with a scripted model."""

import json
import os
from datetime import timedelta
from pathlib import Path

import anyio
import anyio.to_thread

from ashep.adapters.runners.acp import AcpRunner
from ashep.adapters.runners.acp.mailbox import MARK, Mailbox, keeper_lives
from ashep.adapters.sandboxes.exec import find_program_folders
from ashep.adapters.sandboxes.profiles import SandboxProfiles
from ashep.adapters.sandboxes.session_sandboxes import SessionSandboxes
from ashep.adapters.system import process_table, programs
from ashep.core.facts.runs import Model
from ashep.core.policy.settings import AgentsSettings
from ashep.errors import RunnerUnavailable
from ashep.extras.demo.scripted_model import MODELS_FILE, claude_environment, opencode_config, settle
from ashep.extras.testing.worlds import Act
from tests.conformance import unsupported
from tests.conformance.runners import EVERYTHING, OTHER, SCRIPTED, RealWorld, opencode

QWEN = programs.tools_cache() / "qwen-code" / "node_modules" / ".bin" / "qwen"
"""One more agent that speaks ACP: `npm install @qwen-code/qwen-code` in that folder has it tried, too."""
IDLE = timedelta(seconds=10)
"""After which an agent is ended: dozens of them would be much for a machine."""


class OpencodeWorld:
    """`opencode acp` in a home of its own."""

    can, agents, models = EVERYTHING - unsupported.OPENCODE_OVER_ACP.keys(), ("build", "plan"), (SCRIPTED, OTHER)
    quarters: SessionSandboxes | None = None

    def __init__(self, folder: Path) -> None:
        self.place = RealWorld(folder)
        self.acts: dict[str, Act] = self.place.acts
        self.steps, self.model, self.directory = self.place.steps, self.place.model, self.place.directory
        self.kept = folder / "kept"
        self.runner = self.another()

    def another(self) -> AcpRunner:
        """Another runner over the same folder, as a second daemon would have one."""
        return AcpRunner(
            (opencode(), "acp"),
            directory=self.directory,
            folder=self.kept,
            environ=self.place.environ,
            name="opencode",
            idle=IDLE,
            quarters=self.quarters,
        )

    def configure(self) -> None:
        """Let every agent know the model, and ask: by itself it asks for next to nothing."""
        asks = {"permission": dict.fromkeys(("bash", "edit", "webfetch"), "ask")}
        for folder in (self.directory, self.place.config):
            (folder / "opencode.json").write_text(json.dumps(opencode_config(self.model.url) | asks))

    def seen(self, text: str) -> int:
        return self.model.prompts_seen(text)

    async def person_writes(self, session: str, text: str) -> str:
        raise NotImplementedError

    async def kill(self) -> None:
        await kill_keepers(self.kept)

    async def aclose(self) -> None:
        """End all that runs."""
        await end_all(self.kept)


class ApartWorld(OpencodeWorld):
    """The same in a place, in a sandbox."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.places = folder / "project" / ".agent-shepherd" / "places"
        self.places.mkdir(parents=True)
        self.directory = self.place.directory = self.directory.rename(self.places / "t-1")
        self.things, self.home = folder / "things", folder / "home"
        models = self.place.config / MODELS_FILE
        settle(self.things / "home" / ".config" / "opencode", {})
        self.quarters = SessionSandboxes(
            SandboxProfiles(
                folder / "project", self.places, (), AgentsSettings(sandbox="bwrap"), self.place.environ
            ),
            place_of=self._place_of, folder_of=lambda place: self.things,
            needs=lambda: {*find_program_folders(Path(opencode())), models},
        )  # fmt: skip
        self.runner = self.another()

    def _place_of(self, directory: str | None) -> Path | None:
        at = Path(directory or self.directory)  # the suite names a folder where it means another one than the world's
        return self.directory if at.is_relative_to(self.places) else None


class ClaudeWorld(OpencodeWorld):
    """Claude Code behind its adapter, in a home of its own."""

    can, agents = EVERYTHING - unsupported.CLAUDE_OVER_ACP.keys(), ("default", "plan")
    models = (Model("claude", "default"), Model("claude", "haiku"))

    def another(self) -> AcpRunner:
        adapter, program = programs.find("claude-agent-acp"), programs.find("claude")
        assert adapter is not None, "make claude installs it"
        assert program is not None, "make claude installs it"
        strange = ("ANTHROPIC", "CLAUDE", "XDG_", "ASHEP", "OPENCODE")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(strange)}
        told = {"CLAUDE_CODE_EXECUTABLE": str(program), "IS_SANDBOX": "1"}
        environ = kept | claude_environment(self.model.url, self.place.folder / "home") | told
        return AcpRunner(
            (str(adapter),), directory=self.directory, folder=self.kept, environ=environ, name="claude", idle=IDLE
        )

    def configure(self) -> None:
        """Have the runner know where the model is."""
        self.runner = self.another()


class JudgeWorld(ApartWorld):
    """An agent of a kind that judges, in a sandbox: it says where it was started, in `started` in its home."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.kind = kind
        super().__init__(folder)

    def another(self) -> AcpRunner:
        """The runner of this kind's agents, over the same folder."""
        environ, home = self.place.environ, self.place.folder / "home"
        if self.kind == "claude":
            adapter, program = programs.find("claude-agent-acp"), programs.find("claude")
            assert adapter is not None, "make claude installs it"
            assert program is not None, "make claude installs it"
            command, needs = (str(adapter),), {*find_program_folders(adapter), *find_program_folders(program)}
            environ = environ | claude_environment(self.model.url, home)
            environ |= {"CLAUDE_CODE_EXECUTABLE": str(program), "IS_SANDBOX": "1"}
        elif self.kind == "qwen":
            command, needs = (str(QWEN), "--acp", "--auth-type", "openai"), {*find_program_folders(QWEN)}
            model = {"OPENAI_BASE_URL": f"{self.model.url}/v1", "OPENAI_API_KEY": "none", "OPENAI_MODEL": "default"}
            environ = environ | model
        else:
            command, needs = (
                (opencode(), "acp"),
                {*find_program_folders(Path(opencode())), self.place.config / MODELS_FILE},
            )
        if self.quarters is not None:
            self.quarters = SessionSandboxes(
                SandboxProfiles(self.places.parents[1], self.places, (), AgentsSettings(sandbox="bwrap"), environ),
                place_of=self._place_of, folder_of=lambda place: self.things, needs=lambda: needs,
            )  # fmt: skip
        start = ("sh", "-c", 'pwd >>~/started; exec "$0" "$@"')
        return AcpRunner(
            (*start, *command), directory=self.directory, folder=self.kept, environ=environ, name=self.kind, idle=IDLE,
            quarters=self.quarters,
        )  # fmt: skip

    def home_of(self, session: str) -> Path:
        """What stands where the agent of a session has its home."""
        return folder_of(self.kept, session).path / "apart" / "home"

    def settle(self, session: str) -> None:
        """Let OpenCode know the model there; the others have it from their environment."""
        home = self.home_of(session)
        settle(home / ".config" / "opencode", opencode_config(self.model.url))
        (home / ".qwen").mkdir(parents=True)
        (home / ".qwen" / "settings.json").write_text('{"privacy": {"usageStatisticsEnabled": false}}')


def folder_of(kept: Path, session: str) -> Mailbox:
    return Mailbox(kept / "sessions" / session)


def keepers(kept: Path) -> list[str]:
    """Keepers that live, by pid and start."""
    found = [json.loads(one.read_text())["keeper"] for one in kept.glob("sessions/*/keeper.json")]
    return [one for one in found if keeper_lives(one)]


async def kill_keepers(kept: Path) -> None:
    """End all keepers with SIGKILL."""
    for keeper in await anyio.to_thread.run_sync(keepers, kept):
        os.kill(int(keeper.split(".")[0]), 9)
    while await anyio.to_thread.run_sync(keepers, kept):
        await anyio.sleep(0.02)


async def end_all(kept: Path) -> None:
    """End all keepers, and what they leave."""
    await kill_keepers(kept)
    for session in kept.glob("sessions/*"):
        await process_table.end(process_table.ProcessMark(MARK, str(session)), RunnerUnavailable)
