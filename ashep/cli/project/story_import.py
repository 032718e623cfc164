"""Commands for who comes from the plugin foreman: story import, story install-commands."""

from pathlib import Path
from typing import Annotated

import typer

from ashep.cli import output
from ashep.cli.commands import example, project_of
from ashep.cli.context import FOLDER
from ashep.cli.reading.stories import stories
from ashep.config import put_schemas, write_starter
from ashep.config.findings import read_text
from ashep.config.starter import FILES, starter, write_all
from ashep.config.sync_agents import diff
from ashep.errors import UsageError
from ashep.extras.interchange import foreman_plugin

PLUGINS = Path("~/.config/opencode/foreman.json")


@stories.command(
    name="import", epilog=example("ashep story import --dry-run", "ashep story import ~/.config/opencode/foreman.json")
)
def import_foreman(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The plugin's foreman.json.")] = PLUGINS,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would change.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Change values that are there, too.")] = False,
) -> None:
    """Take the configuration of the plugin foreman over: its roles become agents, its iterations bound the policy
    bmad-story, its contexts are read by the arbiter.

    What is there stays, with its comments; where it says something else that is told. What could not be carried
    over is told, too.
    """
    project = project_of(context)
    folder = project / FOLDER
    said = foreman_plugin.read_foreman(file.expanduser())
    before = {folder / name: read_text(folder / name) for name in FILES if (folder / name).exists()}
    begun = {folder / name: starter(name, foreman_plugin.POLICY) for name in FILES if folder / name not in before}
    new, kept = foreman_plugin.taken_over(said, before, begun, force=force)
    changed = {one: text for one, text in new.items() if text != before.get(one)}
    for one in changed:
        output.say(diff(before.get(one, ""), new[one], one).rstrip("\n"))
    for line in (*said.told, *kept):
        output.note(line)
    if not changed and not kept:
        output.say("all of it is there")
    if dry_run or not changed:
        return
    if not before:
        write_starter(folder, foreman_plugin.POLICY)
        put_schemas(folder)
    try:
        write_all(changed)
    except OSError as error:
        raise UsageError(f"{folder}: cannot be written: {error}") from error
    for one in changed:
        output.say(f"wrote {one}")


@stories.command(
    name="install-commands", epilog=example("ashep story install-commands", "ashep story install-commands --remove")
)
def install_commands(
    context: typer.Context, remove: Annotated[bool, typer.Option("--remove", help="Take them away.")] = False
) -> None:
    """Write /foreman as a command of OpenCode and of Claude Code: `/foreman run 1-3`, `/foreman status`.

    It calls `ashep story`. A file of that name that somebody else wrote or changed stays as it is; then the exit code
    is 1.
    """
    project, others = project_of(context), False
    for name, text in foreman_plugin.commands().items():
        ours = foreman_plugin.is_ours(project, name)
        try:
            if ours is False:
                others = True
                output.note(f"{project / name}: somebody else's, or changed; it stays as it is")
            elif remove and ours:
                (project / name).unlink()
                output.say(f"removed {project / name}")
            elif not remove:
                write_all({project / name: text})
                output.say(f"wrote {project / name}")
        except OSError as error:
            raise UsageError(f"{project / name}: cannot be written: {error}") from error
    raise typer.Exit(int(others))
