"""`ashep impact`: which files a change touches, and which flags it raises."""

from contextlib import suppress
from dataclasses import asdict
from typing import Annotated, Any

import anyio
import typer

from ashep.adapters.git.diffs import GitDiffs
from ashep.cli import output
from ashep.cli.commands import Json, app, complete_name, example, project_of
from ashep.cli.context import configured
from ashep.config import load, settings_in
from ashep.core.impact.changes import Impact
from ashep.core.impact.config_references import named_by
from ashep.core.policy.flags import ALWAYS_ASK, must_ask
from ashep.core.state.branches import BASES, branch_of
from ashep.daemon.effects.work import assess
from ashep.errors import AshepError, UsageError
from ashep.ports.workspaces import Diffs


@app.command(
    epilog=example("ashep impact t-1", "ashep impact --base main --head my-branch", "ashep impact --base v1.2 --json")
)
def impact(
    context: typer.Context,
    issue: Annotated[
        str | None, typer.Argument(help="The issue whose branch it is.", metavar="ISSUE", callback=complete_name)
    ] = None,
    base: Annotated[
        str | None, typer.Option(metavar="REV", help="Where the change began; by default where the issue's branch did.")
    ] = None,
    head: Annotated[
        str | None, typer.Option(metavar="REV", help="The changed commit; by default the issue's branch, or HEAD.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show which files a change creates, modifies and deletes, and its flags with the places that raise them.

    Flags are: rules, agent_instructions, ci (these need a person), secrets, deleted_tests, migrations,
    dependencies, public_api, size. `impact` in config.yaml says what else counts as what. What is looked at is what
    was committed since both commits last were one. A secret is named by its kind and place, and never shown.
    """
    if issue is None and base is None:
        raise UsageError("say which change: an issue, or --base REV")
    project = project_of(context)
    settings = settings_in(configured(project))

    async def assessed() -> Impact:
        diffs, named = GitDiffs(project), named_by(settings)
        with suppress(AshepError):  # policies that cannot be read name nothing
            named = named_by(settings, load(configured(project)).policies)
        began, ended = await _ends(diffs, issue, base, head)
        return await assess(diffs, began, ended, settings.impact, named)

    found = anyio.run(assessed)
    if as_json:
        output.data(serialize_impact(found))
    else:
        _say(found)


async def _ends(diffs: Diffs, issue: str | None, base: str | None, head: str | None) -> tuple[str, str]:
    if issue is None:
        return base or "HEAD", head or "HEAD"
    branch = branch_of(issue)
    if head is None and await diffs.find(f"refs/heads/{branch}") is None:
        raise AshepError(f"{issue} has no branch {branch} here; say where its work is: --base REV --head REV")
    if base is None:
        recorded = f"{BASES}{branch}"
        base = recorded if await diffs.find(recorded) is not None else "HEAD"
    return base, head or f"refs/heads/{branch}"


def serialize_impact(found: Impact) -> dict[str, Any]:
    """Give an impact as JSON."""
    return asdict(found) | {"asks": must_ask(found.raised)}


def _say(found: Impact) -> None:
    files = found.files
    many = output.counted(len(files.created) + len(files.modified) + len(files.deleted) + files.more, "path")
    output.say(f"{many}, +{found.added} -{found.removed}, between {found.base[:10]} and {found.head[:10]}")
    kinds = {"created": files.created, "modified": files.modified, "deleted": files.deleted}
    for kind, paths in kinds.items():
        for path in paths:
            output.say(f"  {kind:8}  {path}")
    _more(files.more)
    for flag in found.flags:
        asks = "; this needs a person" if flag.name in ALWAYS_ASK else ""
        output.say_painted((f"{flag.name}:", "yellow"), (f"{flag.why}{asks}", None))
        for one in flag.evidence:
            place = f"{one.path}:{one.line}" if one.line is not None else one.path
            output.say("  " + ": ".join(part for part in (place, one.what) if part))
        _more(flag.more)
    if not found.flags:
        output.say("no flag is raised")


def _more(count: int) -> None:
    if count:
        output.say(f"  … and {count} more")
