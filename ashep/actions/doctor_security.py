"""Where agents run, and what that leaves open: the lines of `ashep install` about it, and `ashep install --security`.

docs/security.md says what each of them means.
"""

import os
import re
import shutil
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import anyio
from anyio import to_thread

from ashep.adapters.sandboxes.bubblewrap import PATH, beside_programs, folders_of_programs, try_out
from ashep.adapters.sandboxes.exec import PlaceSandbox
from ashep.adapters.system import process_table, programs
from ashep.adapters.verifier import probe
from ashep.config import ConfigErrors, load
from ashep.core.policy.checks import TestPass
from ashep.core.policy.isolation_notice import NO_SANDBOX, REMEDY
from ashep.core.policy.runner_kinds import OPENCODE
from ashep.core.policy.settings import Settings
from ashep.core.text import clean
from ashep.errors import AshepError
from ashep.factories import FOLDER, inside_of, opencode_logins, sandboxed

FORGEABLE = "agents run as you and in no sandbox: one that has a shell can forge an answer by any name, named or not"
_IN_SANDBOX = "in their sandbox agents have neither bd nor its files; without it one with a shell can forge any answer"
_WEAKENS = {
    "docker": "by its socket they are you, or root, on this machine",
    "podman": "by its socket they are you on this machine",
    "ssh-agent": "they log in wherever you can",
    "gpg-agent": "they sign as you",
}
_LOOK = 20.0  # seconds for a look at what is there in the sandbox
_SHOWN = 12
Level = Literal["ok", "warning", "error"]


@dataclass(frozen=True, slots=True)
class CheckLine:
    """What a check found."""

    level: Level
    check: str
    what: str
    remedy: str = ""


async def agents(project: Path, settings: Settings) -> list[CheckLine]:
    """Say where agents run that may change files, what weakens it, and what they lack there."""
    runners = settings.runners
    if runners.custom and runners.custom == runners.extra and OPENCODE not in runners.model_fields_set:
        names = ", ".join(runners.custom)
        return [CheckLine("ok", "agents", f"where agents run is the business of the runner {names}")]
    otherwise = await to_thread.run_sync(_otherwise, project, settings)
    if not sandboxed(settings):
        others = ", ".join(settings.runners.unsandboxed)
        line = CheckLine("warning", "agents", NO_SANDBOX, REMEDY)
        if others:
            what = f"{NO_SANDBOX}: with the runner {others} no agent is in a sandbox"
            line = CheckLine("warning", "agents", what, "use OpenCode, Claude Code or ACP for agents that change files")
        return [line, *otherwise]
    async with anyio.TemporaryDirectory(prefix="ashep-install-") as name:
        scratch = await to_thread.run_sync(Path(name).resolve)
        found = await try_out(scratch)
        if isinstance(found, str):
            required = settings.agents.sandbox == "bwrap"
            what = "no agent that changes files runs" if required else NO_SANDBOX
            remedy = "install bubblewrap (`apt install bubblewrap`), or make it usable"
            return [CheckLine("error" if required else "warning", "agents", f"{what}: {found}", remedy), *otherwise]
        done = await programs.ask_version([found.program])
        version = clean(done.stdout.decode(errors="replace")).strip()[:50] or "bubblewrap"
        what = f"agents that change files run in {version}, each issue's in a place of its own"
        lines = [CheckLine("ok", "agents", what), *otherwise, *await to_thread.run_sync(lambda: [*_openings(settings)])]
        place = scratch / "empty"
        await anyio.Path(place).mkdir()
        try:
            inside = await inside_of(project, settings, place, scratch / "server")
            return [*lines, *(await _missing(project, settings, inside) if inside is not None else ())]
        except AshepError as error:
            return [*lines, CheckLine("error", "agents", f"nothing can be started in their sandbox: {error}")]


def _otherwise(project: Path, settings: Settings) -> list[CheckLine]:
    """Name agents that do not run where all others do."""
    with suppress(ConfigErrors, OSError):  # that is told already
        inside, agents = sandboxed(settings), load(project / FOLDER).agents.agents
        team = [agent for agent in agents if agent.read_write == "write" and agent.sandbox]
        if names := ", ".join(one.id for one in team if (one.sandbox == "none") == inside):
            if not inside:
                return [CheckLine("ok", "agents", f"by their own `sandbox` these run in one: {names}")]
            what = f"by their `sandbox: none` these run in no sandbox, as you, and reach all that you can: {names}"
            return [CheckLine("warning", "agents", what)]
    return []


def _openings(settings: Settings) -> Iterator[CheckLine]:
    for opening in settings.agents.openings:
        yield CheckLine("warning", "openings", f"`agents.openings` lets agents use {opening}: {_WEAKENS[opening]}")
    for path in settings.agents.paths.write:
        why = f"agents may change {path} (`agents.paths.write`): what else reads it reads what an agent wrote"
        yield CheckLine("warning", "openings", why)
    if (cache := settings.verification.cache) is not None:
        folder = Path(cache).expanduser().resolve()
        if Path.home().resolve().is_relative_to(folder):
            reason = f"`verification.cache` is {cache}: checks, which run the work of agents, get a copy of your home"
            yield CheckLine("error", "openings", reason, "name a folder in which there are dependencies alone")
        for path in settings.agents.paths.write:
            place = Path(path).expanduser().resolve()
            if folder.is_relative_to(place) or place.is_relative_to(folder):
                reason = f"agents may change {path}, and `verification.cache` is {cache}"
                reason += ": they write what their checks are given"
                yield CheckLine("error", "openings", reason, "name another folder in one of the two")


async def _missing(project: Path, settings: Settings, inside: PlaceSandbox) -> list[CheckLine]:
    """Name programs of the set-up and of policies' checks that are found out here, and in the sandbox not."""
    wanted = [step.run[0] for step in settings.worker.setup if step.run]
    with suppress(ConfigErrors, OSError):  # that is told already
        policies = (await to_thread.run_sync(load, project / FOLDER)).policies.policies.values()
        found = [check.verify for policy in policies for phase in policy.phases for check in phase.checks]
        wanted += [verify.command[0] for verify in found if isinstance(verify, TestPass)]
    here = {name: found for name in wanted if (found := await to_thread.run_sync(shutil.which, name))}
    script = 'for one; do command -v "$one" >/dev/null || echo "$one"; done'
    done = await inside.run(["sh", "-c", script, "sh", *here], inside.view.at, {}, _LOOK, programs.LONGEST)
    if done.returncode:
        raise AshepError(clean(done.stderr.decode(errors="replace")).strip()[:200])
    lines, home = list[CheckLine](), await to_thread.run_sync(Path.home().resolve)
    for name in done.stdout.decode(errors="surrogateescape").splitlines():
        if name in here:
            real = await to_thread.run_sync(Path(here[name]).resolve)
            path = real if real.parent in (home, *home.parents) else real.parent
            what = f"{name} is {here[name]}, and not there in their sandbox"
            lines.append(CheckLine("warning", "agents", what, f"add {path} to `agents.paths.read`"))
    return lines


def people(settings: Settings) -> list[CheckLine]:
    """Say whose word counts, and whether a name proves anything."""
    everybody = "config.yaml has no `people`: everybody's word counts who is neither ashep nor one of its agents"
    named = settings.people and f"only the word of {', '.join(settings.people.tracker)} counts"
    return [
        CheckLine("ok", "people", named or everybody),
        CheckLine("ok", "people", _IN_SANDBOX if sandboxed(settings) else FORGEABLE),
    ]


# --- all of it --------------------------------------------------------------------------------------------------------


async def security(project: Path, settings: Settings) -> list[CheckLine]:
    """Say line by line what of docs/security.md holds for a project on this machine."""
    lines = await agents(project, settings)
    if settings.isolated:
        lines.append(CheckLine("ok", "judges", "who reviews has a server of its own, and reads what was committed"))
    else:
        lines.append(CheckLine("warning", "judges", "who reviews shares the server and the files of who made it"))
    async with anyio.TemporaryDirectory(prefix="ashep-install-") as scratch:
        checks = await probe(settings.verification, [project / FOLDER / "state"], Path(scratch))
    lines.append(CheckLine("ok" if checks.sandbox.isolated else "warning", "checks", checks.lines[0]))
    named = settings.people is not None
    lines.append(CheckLine("ok" if named else "warning", "people", people(settings)[0].what))
    if counted := settings.forge and settings.forge.people:
        lines.append(CheckLine("ok", "forge", f"at the forge only the word of {', '.join(counted)} counts"))
    elif settings.landing.forge is not None:
        everybody = "at the forge everybody's word counts: `people.forge` names who may"
        lines.append(CheckLine("warning", "forge", everybody))
    visible = await to_thread.run_sync(lambda: [*_visible(settings)])
    return [*lines, *visible, *await to_thread.run_sync(_reached, project)]


def _visible(settings: Settings) -> Iterator[CheckLine]:
    """Say what of the user's files agents and checks see in their sandboxes, and what beside programs is covered."""
    path = os.environ.get("PATH", PATH)
    given = (*settings.agents.paths.read, *settings.verification.paths)
    seen = _some([*map(str, folders_of_programs(path)), *given])
    yield CheckLine("ok", "files", f"of your files agents and checks see in a sandbox: {seen or 'none'}")
    if names := opencode_logins().lasting():
        what = "in a sandbox nobody renews these logins of OpenCode, and ashep cannot ask who gives them"
        remedy = "where agents are refused, use them once outside, which renews them"
        yield CheckLine("warning", "logins", f"{what}: {_some(names)}", remedy)
    if covered := beside_programs(path):
        what = "files beside your programs hold secrets, or are sockets, and are covered in a sandbox"
        remedy = "move them: who runs without a sandbox reads them"
        yield CheckLine("warning", "files", f"{what}: {_some(covered)}", remedy)


def _some(found: Collection[object]) -> str:
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return clean(", ".join(map(str, [*found][:_SHOWN]))) + more


def _reached(project: Path) -> list[CheckLine]:
    """Say what agents, in a sandbox or not, reach of this machine by its network."""
    lines = list[CheckLine]()
    if (services := process_table.services()) is None:
        lines.append(CheckLine("warning", "network", "what listens on this machine cannot be told, without /proc"))
    elif services:
        named = _some([f"{port}{f' ({name})' if name else ''}" for port, name in services])
        lines.append(CheckLine("warning", "network", f"agents reach what listens on this machine: {named}"))
    else:
        lines.append(CheckLine("ok", "network", "nothing listens on loopback"))
    if count := process_table.abstract_sockets():
        lines.append(CheckLine("warning", "sockets", f"agents reach {count} abstract sockets of this machine"))
    return [*lines, *_database(project / ".beads")]


def _database(beads: Path) -> list[CheckLine]:
    """Say whether bd's database has a server: who reaches that writes into it by any name."""
    with suppress(OSError):
        about = (beads / "metadata.json").read_text(encoding="utf-8", errors="replace")
        if (mode := re.search(r'"dolt_mode":\s*"([\w-]{1,20})"', about)) is None or mode[1] == "embedded":
            return [CheckLine("ok", "database", "bd opens its database by itself: no server of it can be reached")]
        file = beads / "dolt-server.port"
        said = file.read_text(errors="replace") if file.exists() else about.partition('"dolt_server_port":')[2]
        at = f" at port {port[1]}" if (port := re.match(r"\s*(\d{1,5})", said)) else ""
        what = f"bd uses a server of Dolt's{at} ({mode[1]}): agents that reach it write answers by any name"
        return [CheckLine("warning", "database", what)]
    return []
