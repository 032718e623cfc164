"""Policies in the forms of other set-ups: `ashep policy import` and `export`."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ashep.cli import output as screen
from ashep.cli.commands import Json, example, policies, project_of
from ashep.cli.context import configured
from ashep.cli.policy.graph import Name
from ashep.config import ConfigErrors, errors_of, examine
from ashep.core.policy.base_types import is_name, name_of
from ashep.errors import UsageError
from ashep.extras.interchange.import_report import Imported, grouped
from ashep.extras.interchange.policy_tables import imported, table_of
from ashep.extras.interchange.symphony import read_workflow
from ashep.extras.interchange.transition_table import read_table, schema_of
from ashep.extras.interchange.webboty import read_webboty
from ashep.extras.interchange.yaml_writer import write_files
from ashep.views.policies import policy_named

FORMATS = ("transitions", "state-schema")


@policies.command(
    name="import",
    epilog=example(
        "ashep policy import coding-workflow-transitions.json",
        "ashep policy import ../other/.agent-shepherd --output draft",
        "ashep policy import WORKFLOW.md --output draft",
    ),
)
def policy_import(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .json, .yaml or .md file, or a folder.")],
    output: Annotated[
        Path | None, typer.Option("--output", metavar="DIR", help="Write the files into this folder; else print them.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="NAME", help="The policy's name; by default the table's, else the file's.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that are there.")] = False,
    as_json: Json = False,
) -> None:
    """Make a policy that means the same of a transition table (.json), of the files of webboty/agent-shepherd (.yaml,
    or their folder), or of a workflow for Symphony (.md).

    What could not be carried over is named with its key and line, at the top of the file and on standard error; nothing
    is dropped silently. Check the result with `ashep policy check`.
    """
    made = _imported(file, name)
    if as_json:
        notes = [asdict(note) | {"file": note.file or None} for note in made.notes]
        screen.data({"files": made.files, "notes": notes})
    elif output is None:
        for index, (place, text) in enumerate(made.files.items()):
            if len(made.files) > 1:
                screen.say(f"{chr(10) if index else ''}# --- {place} ---")
            screen.say(text.rstrip("\n"))
    if output is not None:
        for written in write_files(output, made.files, force=force):
            (screen.note if as_json else screen.say)(f"wrote {written}")
    for line in grouped(made.notes) if not as_json else ():
        screen.note(line)


def _imported(file: Path, name: str | None) -> Imported:
    if not file.exists():
        raise UsageError(f"{file}: there is no such file")
    if file.suffix == ".json":
        document = read_table(file)
        return imported(document, _name(name, document.table.policy or file.stem))
    if file.suffix in (".yaml", ".yml") or file.is_dir():
        if name is not None:
            raise UsageError(
                "--name goes with a transition table or a workflow; other files say how their policies are called"
            )
        return read_webboty(file)
    if file.suffix == ".md":
        return read_workflow(file, _name(name, file.stem.lower()))
    raise UsageError(f"{file}: its form is not known; expected a .json, .yaml or .md file, or a folder")


def _name(given: str | None, otherwise: str) -> str:
    """Give the policy's name: what was asked for must be one, what it is made of need not."""
    if given is None:
        return name_of(otherwise, "imported")
    if not is_name(given):
        raise UsageError(f"--name {given}: expected a letter, then letters, digits, _ or - (64 at most)")
    return given


@policies.command(
    name="export",
    epilog=example(
        "ashep policy export",
        "ashep policy export multi-tier > table.json",
        "ashep policy export --format state-schema",
    ),
)
def policy_export(
    context: typer.Context,
    name: Name = None,
    form: Annotated[
        str, typer.Option("--format", metavar="FORM", help="transitions, or state-schema (of `ashep policy state`).")
    ] = "transitions",
) -> None:
    """Write a policy as a transition table: from, event, to, route_to, as JSON.

    What a table has no place for, such as bounds, is named on standard error.
    """
    if form not in FORMATS:
        raise UsageError(f"--format {form}: it is one of {', '.join(FORMATS)}")
    found = examine(configured(project_of(context)))
    if found.policies is None:  # what a search finds in one is no matter here
        raise ConfigErrors(errors_of(found.findings))
    name, policy = policy_named(found.policies, name)
    table, unsaid = table_of(name, policy)
    if form == "state-schema":
        screen.say(json.dumps(schema_of(table), indent=2, ensure_ascii=False))
        return
    screen.say(table.as_json().rstrip("\n"))
    for what in unsaid:
        screen.note(f"a table cannot say: {what}")
