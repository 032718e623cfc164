"""What the doctors and readers of all kinds of runners share."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from anyio import to_thread

from ashep.actions.doctor_security import CheckLine
from ashep.actions.runner_wait import Say, silent
from ashep.adapters.system import programs
from ashep.config import ConfigErrors, read
from ashep.config.sync_agents import ServerAgent
from ashep.core.facts.runs import Model
from ashep.core.policy.agents import Agents
from ashep.core.policy.base_types import Document
from ashep.core.policy.runner_kinds import OPENCODE, Guarantee, rules_of
from ashep.core.policy.settings import Settings
from ashep.core.text import clean
from ashep.errors import AshepError, ConfigError, RunnerRefused
from ashep.factories import FOLDER, NamedRunner, sandboxed
from ashep.ports.transcripts import TranscriptStep
from ashep.redaction import Redaction

ONCE = "guarantee: once, no turn is begun twice"
AT_LEAST_ONCE = "guarantee: at least once, a turn that dies with its agent may be run a second time"
AS_YOU = "its agents run as you, outside any sandbox"

_TWICE = "it cannot load a session (`loadSession`): give it work that may be done twice, or take an agent that can"
_VERSION = re.compile(r"\d+\.\d+\.\d+\S*")
_Kind = TypeVar("_Kind", bound=Document)


@dataclass(frozen=True, slots=True)
class Examination(NamedRunner):
    """What `ashep install` asks of a runner."""

    environ: Mapping[str, str] = field(default_factory=dict[str, str])
    ask: bool = False
    """Start the agent, or the server, and ask what it can do."""
    say: Say = silent


@dataclass(frozen=True, slots=True)
class SessionReference(NamedRunner):
    """A session of a runner."""

    session: str
    """Its id, which the runner's name is not part of."""
    folder: str | None
    """The folder of the tree that its run was in; None: the shared one."""

    @property
    def directory(self) -> Path:
        """The folder that the session works in."""
        return Path(self.folder) if self.folder else self.project


@dataclass(frozen=True, slots=True)
class ServerCatalog:
    """What a runner has."""

    agents: tuple[ServerAgent, ...]
    models: tuple[Model, ...]
    default: Model | None
    beside: Mapping[str, tuple[Model, ...]] = field(default_factory=dict[str, tuple[Model, ...]])
    """Models of runners next to it, by the runner's name; they have more."""


def read_file(kind: type[_Kind], file: Path) -> _Kind | None:
    """Read a file of the user's; None where it cannot be used."""
    try:
        return read(kind, file.read_text(encoding="utf-8"), file)
    except (ConfigErrors, OSError, UnicodeDecodeError):
        return None


def runners_used(project: Path) -> set[str]:
    """Name the runners that agents are of; where agents.yaml cannot be used, OpenCode."""
    registry = read_file(Agents, project / FOLDER / "agents.yaml")
    if registry is None:
        return {OPENCODE}
    return {agent.runner.type for agent in registry.agents if not agent.is_human}


def missing_program(settings: Settings, name: str) -> str:
    """Return that the program of a runner is not on this machine; empty: it is, or the runner needs none here."""
    opencode, chosen = settings.runners.opencode, settings.runners.extra.get(name)
    command = opencode.command if name == OPENCODE and opencode.ours else ()
    if chosen is not None and name not in settings.runners.custom:
        command = chosen.command or rules_of(settings.runners.kind(name)).command
    return programs.lack_of(command[0]) if command else ""


def describe_guarantee(name: str, guarantee: Guarantee, settings: Settings) -> CheckLine:
    """Say how often a turn may run that dies with its agent, and where agents run as you."""
    where = "" if sandboxed(settings) else f"; {AS_YOU}"
    if guarantee == "once":
        return CheckLine("ok", name, f"{ONCE}{where}")
    return CheckLine("warning", name, f"{AT_LEAST_ONCE}{where}", _TWICE)


async def read_version(check: str, program: str, command: Sequence[str], by_hand: str) -> str | CheckLine:
    """Give the version that a program says, or what is wrong with it."""
    try:
        done = await programs.ask_version(command)
    except AshepError as error:
        return CheckLine("error", check, f"{program}: {error}", by_hand)
    match = _VERSION.search(done.stdout.decode(errors="replace"))
    if done.returncode == 0 and match is not None:
        return match[0]
    said = clean(done.stderr.decode(errors="replace")).strip()[:200] or "it does not say its version"
    return CheckLine("error", check, f"{program}: {said}", by_hand)


def judge_version(check: str, what: str, version: str, tried: str) -> CheckLine:
    """Say whether it is the version that ashep is tried with."""
    if version == tried:
        return CheckLine("ok", check, what)
    return CheckLine("warning", check, f"{what}; ashep is tried with {tried}", f"install {tried} if anything is odd")


# --- what is done with a class of the user's, and where a kind has nothing better -----------------------------------


async def examine_own(runner: Examination) -> list[CheckLine]:
    """Look whether its class can be used. It is not started."""
    try:
        await to_thread.run_sync(runner.make)
    except ConfigError as error:
        return [CheckLine("error", "runner", str(error), "docs/extending.md says what a runner is")]
    what = f"{runner.name} is {runner.chosen.type}, which is a runner; it was not started"
    return [CheckLine("ok", "runner", what)]


async def name_session(reference: SessionReference, issue: str, begins: bool) -> str:
    """Name the session: there is no command that opens it."""
    return f"Its session is {reference.session}, of the runner {reference.name}."


async def refuse_link(reference: SessionReference) -> str:
    """Raise `RunnerRefused`."""
    raise RunnerRefused(f"a session of {reference.name} has no page")


async def refuse_steps(reference: SessionReference, redaction: Redaction) -> tuple[TranscriptStep, ...]:
    """Raise `RunnerRefused`."""
    name = reference.name
    known = name in reference.settings.runners.extra
    raise RunnerRefused(f"{name} is a runner of your own: only the daemon asks it" if known else f"{name} is gone")
