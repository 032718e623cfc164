"""Commands about the systemd services: `ashep service install`, `status`, `uninstall`."""

import os
from typing import Annotated, Any

import anyio
import typer

from ashep.actions.systemd_unit import Unit, manage, remove, stands, state, unit_of, write
from ashep.cli import output
from ashep.cli.commands import Json, example, group, project_of
from ashep.cli.context import configured
from ashep.errors import AshepError, UsageError

service = group("service")

User = Annotated[bool, typer.Option("--user", help="Your own manager's, not the system's.")]

Serve = Annotated[bool, typer.Option("--serve", help="The unit of `ashep serve`, not of `ashep work`.")]


def _unit(context: typer.Context, *, user: bool, serve: bool, port: int | None = None) -> Unit:
    project = project_of(context)
    configured(project)
    if port is not None and not serve:
        raise UsageError("--port: only `ashep serve` listens; give --serve, too")
    return unit_of(project, os.environ, user=user, serve=serve, port=port)


@service.command(
    epilog=example(
        "ashep service install --user",
        "ashep service install --user --now",
        "ashep service install --serve --user",
        "ashep service install -p",
    )
)
def install(
    context: typer.Context,
    user: User = False,
    serve: Serve = False,
    port: Annotated[
        int | None,
        typer.Option(
            min=1, max=65535, metavar="N", help="With --serve: its port; by default that of the unit, else 8090."
        ),
    ] = None,
    now: Annotated[bool, typer.Option("--now", help="Enable and start it, too.")] = False,
    show: Annotated[bool, typer.Option("--print", "-p", help="Print the unit, and write nothing.")] = False,
) -> None:
    """Write a systemd unit that runs `ashep work` for this project, with a watchdog, restarts and a sandbox.

    The system's unit runs as the project's owner. PATH is that of this command: bd, git and OpenCode must be on it.
    The agent server outlives the service, as it does `ashep stop`; `ashep stop --server` ends it.

    With --serve it is the unit of `ashep serve`, which runs by itself; what it verifies ends with it.
    """
    unit = _unit(context, user=user, serve=serve, port=port)
    if show:
        output.say(unit.text)
        return
    output.say(f"{'wrote' if write(unit) else 'unchanged:'} {unit.path}")
    command = " ".join(unit.systemctl)
    if now:
        anyio.run(manage, unit, "daemon-reload")
        anyio.run(manage, unit, "enable", "--now", unit.name)
        output.say(f"{unit.name} is enabled, and runs")
    else:
        output.say(f"next: {command} daemon-reload && {command} enable --now {unit.name}")
    if user:
        output.say("so that it runs while you are logged out, too: loginctl enable-linger")


@service.command(epilog=example("ashep service status --user"))
def status(context: typer.Context, user: User = False, serve: Serve = False, as_json: Json = False) -> None:
    """Say whether the service is installed, current, enabled and running. The exit code is 1 where it does not run."""
    unit = _unit(context, user=user, serve=serve)
    text = stands(unit)
    told: dict[str, Any] = {"unit": unit.name, "file": str(unit.path), "installed": text is not None}
    told |= {"current": text == unit.text, "manager": None, "error": None}
    if text is not None:
        try:
            told["manager"] = anyio.run(state, unit)
        except AshepError as error:
            told["error"] = str(error)
    if as_json:
        output.data(told)
    else:
        output.say_lines(_lines(told, "--user " if user else "", "--serve " if serve else ""))
    raise typer.Exit(int((told["manager"] or {}).get("ActiveState") not in ("active", "reloading", "activating")))


def _lines(told: dict[str, Any], flag: str, serve: str) -> list[str]:
    command = f"`ashep service install {serve}{flag}".rstrip() + "`"
    if not told["installed"]:
        return [f"{told['file']} is not there: {command}"]
    old = "" if told["current"] else f": it is not what {command} would write now"
    lines = [f"{told['unit']}: {told['file']}{old}"]
    if told["error"]:
        return [*lines, f"systemd does not say how it is: {told['error']}"]
    seen: dict[str, str] = told["manager"]
    since = f" since {seen['ActiveEnterTimestamp']}" if seen.get("ActiveEnterTimestamp") else ""
    process = f", process {seen['MainPID']}" if seen.get("MainPID", "0") != "0" else ""
    state = f"{seen.get('ActiveState', 'unknown')} ({seen.get('SubState', 'unknown')}){since}{process}"
    lines.append(f"{state}; {seen.get('UnitFileState') or 'not loaded'}; restarts: {seen.get('NRestarts', '0')}")
    if seen.get("Result", "success") != "success":
        lines.append(f"it ended with {seen['Result']}: journalctl {flag}-u {told['unit']}")
    if seen.get("StatusText"):
        lines.append(seen["StatusText"])
    if seen.get("NeedDaemonReload") == "yes":
        lines.append(f"its file changed: systemctl {flag}daemon-reload")
    return lines


@service.command(epilog=example("ashep service uninstall --user"))
def uninstall(context: typer.Context, user: User = False, serve: Serve = False) -> None:
    """Disable and stop the service, and delete its unit. The agent server, and all files of the project, stay."""
    unit = _unit(context, user=user, serve=serve)
    if stands(unit) is None:
        raise AshepError(f"{unit.path} is not there")
    try:
        anyio.run(manage, unit, "disable", "--now", unit.name)
    except AshepError as error:
        output.note(str(error))
    remove(unit)
    output.say(f"deleted {unit.path}")
    try:
        anyio.run(manage, unit, "daemon-reload")
    except AshepError as error:
        output.note(str(error))
