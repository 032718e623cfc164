"""The command that tries whether people can be told."""

import typer

from ashep.cli import screen
from ashep.cli.place import configured
from ashep.cli.root import Json, example, notify, project_of
from ashep.errors import AshepError


@notify.command("test", short_help="Send a test message to every target.", epilog=example("ashep notify test"))
def test(context: typer.Context, as_json: Json = False) -> None:
    """Send a test message to every target of `notify` in config.yaml, and say what came of it.

    Quiet hours do not count, and no daemon is needed. The exit code is 1 where a target did not take the message, or
    where there is none.
    """
    from ashep.app import notify_test

    project = project_of(context)
    configured(project)
    found = notify_test(project)
    if as_json:
        screen.data([{"target": name, "told": not error, "error": error} for name, error in found])
    elif not found:
        raise AshepError("nobody is to be told anything: config.yaml has no `notify.targets`")
    for name, error in found if not as_json else ():
        screen.say(f"{name}: {f'not told: {error}' if error else 'told'}")
    if not found or any(error for _, error in found):
        raise typer.Exit(1)
