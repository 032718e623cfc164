"""Commands that check what ashep says of itself: replay and audit."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ashep.cli import screen
from ashep.cli.place import configured
from ashep.cli.root import Json, app, example, project_of, settings_of
from ashep.cli.screen import SHOWN, Progress
from ashep.errors import AshepError, NotChecked, UsageError

if TYPE_CHECKING:
    from ashep.config import Finding
    from ashep.core.policy.agents import Agents
    from ashep.core.policy.policies import Policies
    from ashep.core.state.world import World


MOST_NAMED = 10
"""Issues that a line names."""


LAST = 500
"""Issues that are compared with another policy, unless somebody says how many."""


@app.command(
    short_help="Derive every decision again, and compare.",
    epilog=example(
        "ashep replay",
        "ashep replay t-1",
        "ashep replay --json",
        "ashep replay --policy draft.yaml",
        "ashep replay --policy draft.yaml --agents cheap.yaml --last 500 --json",
    ),
)
def replay(
    context: typer.Context,
    issue: Annotated[str | None, typer.Argument(metavar="ISSUE", help="Compare only what is about this issue.")] = None,
    policy: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Say what these policies would have done instead.")
    ] = None,
    agents: Annotated[Path | None, typer.Option(metavar="FILE", help="… and these agents.")] = None,
    last: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="… in the issues with the last records. [default: 500]")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="… and no person's answer counts that was given after runs left out.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Derive every decision again from the facts in the journal, those not to start an issue included, and compare.

    Only the journal is read, and nothing is written; a daemon may run. What differs is printed as a diff with its
    number in the journal, and the exit code is 1. Decisions that were made under other rules than this version's are
    folded and counted.

    With --policy or --agents the recorded outcomes are led by other policies, or given to other agents. Each issue goes
    the same way, or differs from a decision on, or is unknown from there, because it would have needed an outcome that
    was never observed. Runs and questions are summed up, with bounds where the unknown begins. The exit code is 0.
    """
    if policy or agents:
        where = configured(project_of(context))
        compare(where, policy, agents, issue=issue, last=last or LAST, strict=strict, as_json=as_json)
        return
    if last is not None or strict:
        raise UsageError(f"{'--last' if last is not None else '--strict'} goes with --policy or --agents")
    from ashep.actions.replay import replay as derive
    from ashep.core.analysis.replay import Replay

    again, progress = Replay(issue=issue), Progress("derived again")
    found: list[dict[str, Any]] = []
    count = 0
    try:
        for one in derive(configured(project_of(context)) / "state", again, progress):
            count += 1
            if as_json or count <= SHOWN:
                found.append(one.as_json())
    finally:
        progress.end()
    if issue is not None and issue not in again.world.flows:
        raise AshepError(f"nothing is known of an issue {issue}")
    if as_json:
        folded = sum(again.folded.values())
        screen.data({"decisions": again.decisions, "folded": folded, "differences": found})
    else:
        for one in found:
            _print(one)
        _sum_up(again.decisions, dict(again.folded), count)
        if again.covers > 1:
            screen.say(f"what was before {again.covers} was pruned from the journal, and is not covered")
    raise typer.Exit(int(count > 0))


def _print(difference: dict[str, Any]) -> None:
    screen.say_painted((f"#{difference['seq']}", "bold"), (difference["issue"] or "", None))
    for sign, side, colour in (("-", "recorded", "red"), ("+", "derived", "green")):
        if difference[side] is not None:
            screen.say_painted((f"{sign} {_record(difference[side])}", colour))


def _record(data: dict[str, Any]) -> str:
    fields = {name: value for name, value in data.items() if name not in ("v", "seq", "type", "issue")}
    return " ".join([data["type"], *(f"{name}={value!r}" for name, value in fields.items())])


def _sum_up(decisions: int, folded: dict[int, int], differences: int) -> None:
    if differences > SHOWN:
        screen.say(f"… and {differences - SHOWN} more")
    verdict = f"{differences} differences" if differences else "all as recorded"
    screen.say(f"{decisions} decisions derived again: {verdict}")
    for rules, count in sorted(folded.items()):
        screen.say(f"{count} folded, {f'rules {rules}' if rules else 'made before any rules were adopted'}")


@app.command(
    short_help="Check that every issue is accounted for.",
    epilog=example("ashep audit", "ashep audit --json"),
)
def audit(context: typer.Context, as_json: Json = False) -> None:
    """Compute the account of every issue anew from the journal and from bd, and print what is left over.

    Each issue stands in one state with its reason, each claim has an owner, each run an end or a living session, each
    wait an end, each closed issue its evidence. What was closed unverified because nothing was to be checked is named,
    and is no finding. Nothing is written or started; a daemon may run. The exit code is 1 where something is left over,
    and 69 where nothing is but bd could not be asked.
    """
    from ashep.actions.audit import audit as examine
    from ashep.core.analysis.audit import REMEDIES

    project, progress = project_of(context), Progress("audited")
    state = configured(project) / "state"
    try:
        account = examine(project, state, settings_of(project), progress)
    finally:
        progress.end()
    not_asked = {"tracker": account.no_tracker, "server": account.no_server}
    found = [
        {"code": one.code, "issue": one.issue, "what": one.what, "remedy": REMEDIES[one.code]}
        for one in account.findings
    ]
    if as_json:
        told = {"issues": account.issues, "findings": found, "unverified": account.unverified}
        screen.data(told | {"not_asked": not_asked})
    else:
        for one in found:
            screen.say_painted((one["code"] or "", "red"), (f"{one['issue'] or 'ashep'} {one['what']}", None))
            screen.say(f"    {one['remedy']}")
        left = f"{len(found)} findings" if found else "nothing is left over"
        where = "in the journal alone, " if account.no_tracker else ""
        screen.say(f"{account.issues} issues: {where}{left}")
        if account.unverified:
            some, more = account.unverified[:MOST_NAMED], len(account.unverified) - MOST_NAMED
            named = ", ".join(some) + (f" and {more} more" if more > 0 else "")
            screen.note(f"closed with nothing that shows that their work holds (`ashep why ISSUE`): {named}")
        for who, why in not_asked.items():
            if why and (found or who == "server"):
                screen.note(f"the {who} could not be asked: {why}")
    if found:
        raise typer.Exit(1)
    if account.no_tracker:
        raise NotChecked(f"nothing was checked against the tracker: {account.no_tracker}")


def compare(
    folder: Path,
    policy: Path | None,
    agents: Path | None,
    *,
    issue: str | None,
    last: int,
    strict: bool,
    as_json: bool,
) -> None:
    """Print it; `folder` is `.agent-shepherd`. Raises `ConfigErrors` for files that cannot be used."""
    from ashep.actions.replay import compare as derive
    from ashep.config import load_other
    from ashep.views import comparison

    others, progress = load_other(folder, policy, agents), Progress("compared")
    try:
        made, covers = derive(folder, *others, progress, strict=strict)
    finally:
        progress.end()
    found = made.compared(None if issue else last)
    if issue is not None:
        found = [one for one in found if one.issue == issue]
        if issue not in made.world.flows:
            raise AshepError(f"nothing is known of an issue {issue}")
    refused = _refused(made.world, *others)
    if as_json:
        screen.data(comparison.as_json(found, strict=strict, covers=covers, refused=refused))
        return
    rows = comparison.rows(found)
    screen.table(comparison.COLUMNS, rows[-SHOWN:])
    if len(rows) > SHOWN:
        screen.say(f"… and {len(rows) - SHOWN} before these; --json holds all")
    for line in comparison.summary(found, strict=strict):
        screen.say(line)
    if covers > 1:
        screen.say(f"what was before {covers} was pruned from the journal, and is not covered")
    for one in refused:
        screen.note(f"ashep would refuse to work so: {one.key}: {one.message}")


def _refused(world: "World", policies: "Policies | None", agents: "Agents | None") -> "list[Finding]":
    """Say why no daemon would run under these: with what the record has of the rest."""
    from ashep.config import check

    found = check(policies or world.policies, agents or world.agents, world.settings)
    return [one for one in found if one.severity == "error"]
