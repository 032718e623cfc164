"""`ashep audit`: the account of every issue computed again, and what is left over."""

import typer

from ashep.actions import audit as actions
from ashep.cli import output
from ashep.cli.commands import Json, app, example, project_of
from ashep.cli.context import configured
from ashep.cli.output import ProgressLine
from ashep.config import settings_in
from ashep.core.analysis.audit import REMEDIES
from ashep.errors import NotChecked

MOST_NAMED = 10
"""Issues that a line names."""


@app.command(epilog=example("ashep audit", "ashep audit --json"))
def audit(context: typer.Context, as_json: Json = False) -> None:
    """Compute the account of every issue again from the journal and from bd, and print what is left over.

    Each issue stands in one state with its reason, each claim has an owner, each run an end or a living session, each
    wait an end, each closed issue its evidence. What was closed unverified because nothing was to be checked is named,
    and what was closed although nothing was changed; neither is a finding. Nothing is written or started; a daemon may
    run. The exit code is 1 where something is left over, and 69 where nothing is but bd could not be asked.
    """
    project = project_of(context)
    folder = configured(project)
    with ProgressLine("audited") as progress:
        account = actions.audit(project, folder / "state", settings_in(folder), progress, output.note)
    not_asked = {"tracker": account.no_tracker, "server": account.no_server, "signatures": account.no_signatures}
    found = [
        {"code": finding.code, "issue": finding.issue, "what": finding.what, "remedy": REMEDIES[finding.code]}
        for finding in account.findings
    ]
    if as_json:
        closed = {"unverified": account.unverified, "unchanged": account.unchanged}
        output.data({"issues": account.issues, "findings": found, **closed, "not_asked": not_asked})
    else:
        for one in found:
            output.say_painted((one["code"] or "", "red"), (f"{one['issue'] or 'ashep'} {one['what']}", None))
            output.say(f"    {one['remedy']}")
        left = f"{len(found)} findings" if found else "nothing is left over"
        where = "in the journal alone, " if account.no_tracker else ""
        output.say(f"{account.issues} issues: {where}{left}")
        for what, issues in (
            ("with nothing that shows that their work holds", account.unverified),
            ("although nothing was changed", account.unchanged),
        ):
            more = f" and {len(issues) - MOST_NAMED} more" if len(issues) > MOST_NAMED else ""
            if issues:
                output.note(f"closed {what} (`ashep why ISSUE`): {', '.join(issues[:MOST_NAMED])}{more}")
        for who, why in not_asked.items():
            if why and (found or who != "tracker"):
                output.note(f"the {who} could not be asked: {why}")
    if found:
        raise typer.Exit(1)
    if account.no_tracker:
        raise NotChecked(f"nothing was checked against the tracker: {account.no_tracker}")
