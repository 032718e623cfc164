"""`ashep replay --policy`: what other policies, or agents, would have done with the recorded outcomes."""

from pathlib import Path
from typing import TYPE_CHECKING

from ashep.cli import screen
from ashep.cli.checking import SHOWN, Progress
from ashep.errors import AshepError

if TYPE_CHECKING:
    from ashep.config import Finding
    from ashep.core.policy.agents import Agents
    from ashep.core.policy.policies import Policies
    from ashep.core.state.world import World


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
    from ashep.actions.comparison import compare as derive
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
