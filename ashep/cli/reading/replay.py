"""`ashep replay`: every decision derived again, or what another policy had decided."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ashep.actions import replay as derive
from ashep.cli import output
from ashep.cli.commands import Json, app, complete_name, example, project_of
from ashep.cli.context import configured
from ashep.cli.output import SHOWN, ProgressLine
from ashep.config import check, errors_of, load_other
from ashep.core.analysis.replay import Replay
from ashep.errors import AshepError, UsageError
from ashep.views import Data, policy_comparison

LAST = 500
"""Issues that are compared with another policy, unless somebody says how many."""


@app.command(
    epilog=example(
        "ashep replay",
        "ashep replay t-1",
        "ashep replay --json",
        "ashep replay --policy draft.yaml",
        "ashep replay --policy draft.yaml --agents cheap.yaml --last 500 --json",
    )
)
def replay(
    context: typer.Context,
    issue: Annotated[
        str | None,
        typer.Argument(metavar="ISSUE", callback=complete_name, help="Compare only what is about this issue."),
    ] = None,
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
    again, count = Replay(issue=issue), 0
    found: list[dict[str, Any]] = []
    with ProgressLine("derived again") as progress:
        for one in derive.replay(configured(project_of(context)) / "state", again, progress):
            count += 1
            if as_json or count <= SHOWN:
                found.append(one.as_json())
    if issue is not None and issue not in again.world.flows:
        raise AshepError(f"nothing is known of an issue {issue}")
    if as_json:
        folded = sum(again.folded.values())
        output.data({"decisions": again.decisions, "folded": folded, "differences": found})
    else:
        for one in found:
            _print(one)
        _sum_up(again.decisions, dict(again.folded), count)
        if again.covers > 1:
            output.say(f"what was before {again.covers} was pruned from the journal, and is not covered")
    raise typer.Exit(int(count > 0))


def _print(difference: dict[str, Any]) -> None:
    output.say_painted((f"#{difference['seq']}", "bold"), (difference["issue"] or "", None))
    for sign, side, colour in (("-", "recorded", "red"), ("+", "derived", "green")):
        if (data := difference[side]) is not None:
            names = [name for name in data if name not in ("v", "seq", "type", "issue")]
            fields = " ".join([data["type"], *(f"{name}={data[name]!r}" for name in names)])
            output.say_painted((f"{sign} {fields}", colour))


def _sum_up(decisions: int, folded: dict[int, int], differences: int) -> None:
    if differences > SHOWN:
        output.say(f"… and {differences - SHOWN} more")
    verdict = f"{differences} differences" if differences else "all as recorded"
    output.say(f"{decisions} decisions derived again: {verdict}")
    for rules, count in sorted(folded.items()):
        output.say(f"{count} folded, {f'rules {rules}' if rules else 'made before any rules were adopted'}")


def compare(
    folder: Path, policy: Path | None, agents: Path | None, *, issue: str | None, last: int, strict: bool, as_json: bool
) -> None:
    """Print it; `folder` is `.agent-shepherd`. Raises `ConfigErrors` for files that cannot be used."""
    others = load_other(folder, policy, agents)
    with ProgressLine("compared") as progress:
        made, covers = derive.compare(folder, *others, progress, strict=strict)
    found = made.compared(None if issue else last)
    if issue is not None:
        found = [one for one in found if one.issue == issue]
        if issue not in made.world.flows:
            raise AshepError(f"nothing is known of an issue {issue}")
    policies, registry = others[0] or made.world.policies, others[1] or made.world.agents
    unsound = errors_of(check(policies, registry, made.world.settings))  # with what the record has of the rest
    refused: list[Data] = [{"code": one.code, "key": one.key, "message": one.message} for one in unsound]
    if as_json:
        output.data(policy_comparison.as_json(found, strict=strict, covers=covers, refused=refused))
        return
    rows = policy_comparison.rows(found)
    output.table(policy_comparison.COLUMNS, rows[-SHOWN:])
    if len(rows) > SHOWN:
        output.say(f"… and {len(rows) - SHOWN} before these; --json holds all")
    output.say_lines(policy_comparison.summary(found, strict=strict))
    if covers > 1:
        output.say(f"what was before {covers} was pruned from the journal, and is not covered")
    for one in refused:
        output.note(f"ashep would refuse to work so: {one['key']}: {one['message']}")
