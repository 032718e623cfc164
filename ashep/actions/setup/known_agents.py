"""Agents whose programs are looked for on PATH: those with a runner of their own, and those that speak ACP."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from ashep.adapters.system.tool_sources import how_to_get
from ashep.config.starter.setup_files import ChosenAgent
from ashep.core.policy.runner_kinds import ACP, CLAUDE, OPENCODE
from ashep.core.policy.settings import OtherRunner, Runners, Settings
from ashep.errors import RunnerUnauthorized
from ashep.factories import NamedRunner, opencode_logins

Login = Literal["yes", "no", "unknown"]


@dataclass(frozen=True, slots=True)
class KnownAgent:
    """An agent as its vendor, or the registry of ACP, describes it."""

    name: str
    title: str
    program: str
    kind: str = ACP
    command: tuple[str, ...] = ()
    """What speaks ACP, where that is not the program itself with these arguments."""
    package: str = ""
    """The npm package that has the `command`, where that is another program."""
    keys: tuple[str, ...] = ()
    """Environment variables each of which is a login."""
    read: tuple[str, ...] = ()
    """Files in the user's home by which it is set up."""
    write: tuple[str, ...] = ()
    """Files in the user's home that are its login."""


KNOWN_AGENTS = (
    KnownAgent("claude", "Claude Code", "claude", CLAUDE),
    KnownAgent("opencode", "OpenCode", "opencode", OPENCODE),
    KnownAgent(
        "codex", "Codex", "codex", ACP, ("codex-acp",), "@agentclientprotocol/codex-acp",
        ("OPENAI_API_KEY", "CODEX_API_KEY"), ("~/.codex/config.toml",), ("~/.codex/auth.json",),
    ),
    KnownAgent(
        "gemini", "Gemini CLI", "gemini", ACP, ("gemini", "--acp"), "",
        ("GEMINI_API_KEY", "GOOGLE_API_KEY"), ("~/.gemini/settings.json",), ("~/.gemini/oauth_creds.json",),
    ),
    KnownAgent("qwen", "Qwen Code", "qwen", ACP, ("qwen", "--acp"), write=("~/.qwen/oauth_creds.json",)),
    KnownAgent("copilot", "GitHub Copilot", "copilot", ACP, ("copilot", "--acp"), keys=("COPILOT_GITHUB_TOKEN",)),
    KnownAgent("cursor", "Cursor", "cursor-agent", ACP, ("cursor-agent", "acp"), keys=("CURSOR_API_KEY",)),
    KnownAgent("goose", "goose", "goose", ACP, ("goose", "acp"), read=("~/.config/goose/config.yaml",)),
    KnownAgent("cline", "Cline", "cline", ACP, ("cline", "--acp")),
    KnownAgent("auggie", "Auggie", "auggie", ACP, ("auggie", "--acp"), write=("~/.augment/session.json",)),
)  # fmt: skip
"""In the order in which they are proposed. Of those behind Gemini CLI none was tried with ashep: their commands are
those of the registry of ACP.
"""


@dataclass(frozen=True, slots=True)
class AgentFact:
    """An agent that is on this machine."""

    name: str
    title: str
    program: str
    """Its path."""
    chosen: ChosenAgent
    login: Login
    lack: str = ""
    """Why it cannot be used as it is, and what to do; empty: it can."""

    @property
    def is_usable(self) -> bool:
        """Whether it can be proposed."""
        return not self.lack and self.login != "no"


def find_agents(project: Path, environ: Mapping[str, str]) -> tuple[AgentFact, ...]:
    """Find the agents on PATH, with their logins; nothing is started. Blocks."""
    facts = list[AgentFact]()
    for entry in KNOWN_AGENTS:
        path = shutil.which(entry.program)
        if path is None:
            continue
        login, lack = _LOGINS.get(entry.kind, _login_of_acp)(project, entry, environ)
        home = [tuple(name for name in names if _is_file(name)) for names in (entry.read, entry.write)]
        chosen = ChosenAgent(entry.name, entry.kind, entry.command, *home)
        facts.append(AgentFact(entry.name, entry.title, path, chosen, login, lack.removeprefix(f"{entry.title} is ")))
    return tuple(facts)


def describe_no_agent() -> str:
    """Say how a person gets an agent."""
    return f"no agent is on PATH that could work: {how_to_get(CLAUDE)}; or {how_to_get(OPENCODE)}"


def _is_file(name: str) -> bool:
    return Path(name).expanduser().is_file()


def _login_of_claude(project: Path, entry: KnownAgent, environ: Mapping[str, str]) -> tuple[Login, str]:
    from ashep.adapters.runners.claude import ClaudeRunner  # few have one

    runners = Runners().model_copy(update={entry.name: OtherRunner()})
    runner = NamedRunner(project, Settings(runners=runners), entry.name).make()
    assert isinstance(runner, ClaudeRunner)
    try:
        runner.check_login()
    except (RunnerUnauthorized, OSError) as error:
        return "no", str(error)
    return "yes", ""


def _login_of_opencode(project: Path, entry: KnownAgent, environ: Mapping[str, str]) -> tuple[Login, str]:
    """OpenCode has models without a login, too, so that having none is no lack."""
    try:
        has_login = opencode_logins().file.stat().st_size > len("{}\n")
    except OSError:
        has_login = False
    return "yes" if has_login else "unknown", ""


def _login_of_acp(project: Path, entry: KnownAgent, environ: Mapping[str, str]) -> tuple[Login, str]:
    login: Login = "yes" if any(environ.get(key) for key in entry.keys) else "unknown"
    if login == "unknown" and entry.write:
        login = "yes" if any(map(_is_file, entry.write)) else "no"
    if not shutil.which(entry.command[0]):
        return login, f"{entry.command[0]} is not on PATH: run `npm install -g {entry.package}`"
    if find_spec("acp") is None:
        return login, "an agent that speaks ACP takes the extra `acp`: install `ashep[acp]`"
    return login, f"log in: run `{entry.program}`" if login == "no" else ""


_LOGINS = {CLAUDE: _login_of_claude, OPENCODE: _login_of_opencode}
