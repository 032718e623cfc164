"""Commands that set a project up: init, install, sync-agents."""

import os
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import anyio
import typer

from ashep.actions.doctor import all_offers, checks, settings_of
from ashep.actions.doctor_security import CheckLine
from ashep.actions.doctor_security import security as contained
from ashep.actions.issue_sources import check_sources
from ashep.actions.runners.opencode import describe_configuration
from ashep.cli import output
from ashep.cli.commands import Json, app, example, project_of
from ashep.cli.context import FOLDER, configured, find_project
from ashep.config import put_schemas, settings_in, write_starter
from ashep.errors import UsageError
from ashep.extras.interchange.transition_table import files_of_preset
from ashep.extras.interchange.yaml_writer import refuse_others, write_files
from ashep.journal.durable_io import replace


@app.command(epilog=example("ashep init", "ashep init --preset planned", "ashep -C ~/project init --force"))
def init(
    context: typer.Context,
    preset: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="The policy to begin with: standard, quick, planned, multi-tier, bmad-story or cross-reviewed.",
        ),
    ] = "standard",
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that are there.")] = False,
) -> None:
    """Write the files of a new project, with comments, into .agent-shepherd.

    The preset multi-tier has a table of its transitions and a schema of its states, too, in .opencode/schemas.
    """
    project = find_project(context.obj or Path())
    beside = files_of_preset(preset)
    refuse_others({project / name: text for name, text in beside.items()}, force=force)
    written = write_starter(project / FOLDER, preset, force=force)
    for file in [*written, *write_files(project, beside, force=force)]:
        output.say(f"wrote {file}")
    put_schemas(project / FOLDER)
    lines = [line for line in _checked(project) if line.check in ("bd", "database", "git") and line.level != "ok"]
    for line in lines:
        output.note(f"{line.what}; {line.remedy}" if line.remedy else line.what)
    output.say("next: `ashep install` checks what is needed, `ashep work --dry-run` says what would start")


def _checked(project: Path, *, server: bool = False) -> list[CheckLine]:
    return anyio.run(partial(checks, project, os.environ, server=server, say=output.note))


@app.command("doctor", epilog=example("ashep doctor", "ashep doctor --security", "ashep doctor --json"))
@app.command(epilog=example("ashep install", "ashep install --security", "ashep install --json"))
def install(
    context: typer.Context,
    security: Annotated[
        bool, typer.Option("--security", help="Say what of docs/security.md holds here instead; exit code 0.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Check that everything needed is there: bd, what runs the agents, the models that they name, git, disk; and say
    where agents run, and which programs of the set-up and of checks they lack there.

    In the repository a tree is made, committed to, checked and landed on a branch of its own, and all of it is taken
    away. Nothing else is changed. An OpenCode server that does not run is started to be asked, and ended again; no
    model is.
    """
    project = project_of(context)
    if security:
        settings = settings_of(project)
        lines = [*anyio.run(contained, project, settings), *check_sources(project, settings)]
        if as_json:
            output.data({"lines": [asdict(line) for line in lines]})
        else:
            output.table(("LEVEL", "WHAT", "HOW IT IS"), [(line.level, line.check, line.what) for line in lines])
            output.say_look()
        return
    code = say_checks(_checked(project, server=True), as_json)
    if not as_json:
        output.say_look()
    raise typer.Exit(code)


def say_checks(lines: list[CheckLine], as_json: bool) -> int:
    """Print what checks found, and give the exit code."""
    failed = any(line.level == "error" for line in lines)
    if as_json:
        output.data({"ok": not failed, "checks": [asdict(line) for line in lines]})
        return int(failed)
    for line in lines:
        output.say_painted((line.level, None), (f"{line.check}: {line.what}", None))
        if line.remedy:
            output.say(f"        {line.remedy}")
    return int(failed)


@app.command(name="sync-agents", epilog=example("ashep sync-agents --dry-run", "ashep sync-agents"))
def sync_agents(
    context: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
) -> None:
    """Add the server's agents to agents.yaml, and list its providers and models there in a comment; where agents are of
    Claude Code, add those that you and the base commit have in .claude/agents, and of one over ACP list the models.

    Comments and entries that are there stay as they are. What a new agent can do is guessed
    from its kind, and marked so.
    """
    from ashep.config.sync_agents import sync

    project = project_of(context)
    file = configured(project) / "agents.yaml"
    settings = settings_in(configured(project))
    try:
        before = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: cannot be read: {error}") from error
    found = anyio.run(all_offers, project, settings, output.note)
    result = sync(before, found.agents, found.models, found.default, file=file, beside=found.beside)
    output.say(result.diff.rstrip("\n") or "agents.yaml names everything that the server has")
    for line in describe_configuration(project, settings, os.environ):
        output.note(f"{line.what}; {line.remedy}" if line.remedy else line.what)
    for gone in result.vanished:
        output.note(f"{gone.agent}: its runner has no {gone.key.replace('_', ' ')} {gone.value} any more; it was kept")
    if result.diff and not dry_run:
        replace(file, result.text.encode())
        output.say(f"wrote {file}")
