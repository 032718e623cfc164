"""`ashep policy state`: where an issue is, as the session state of its policy's transition table."""

import typer

from ashep.cli import output
from ashep.cli.commands import Issue, example, policies, project_of
from ashep.cli.context import configured, picture
from ashep.errors import AshepError
from ashep.extras.interchange.session_state import session_state


@policies.command(name="state", epilog=example("ashep policy state t-1", "ashep policy state t-1 > state.json"))
def policy_state(context: typer.Context, issue: Issue) -> None:
    """Tell where an issue is in the words of its policy's transition table, with its history, as JSON.

    It is valid against what `ashep policy export --format state-schema` prints for its policy; `ashep init --preset
    multi-tier` writes that schema into .opencode/schemas.
    """
    with picture(configured(project_of(context)) / "state") as seen:
        told = session_state(seen.database, issue)
    if told is None:
        raise AshepError(f"nothing is known of an issue {issue}")
    output.data(told)
