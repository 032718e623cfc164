"""Commands to the daemon: pause, resume, drain, cancel; and the one that tries whether people can be told."""

import os
import time
from datetime import datetime, timedelta
from typing import Annotated, Any

import anyio
import typer

from ashep.actions.answers import person
from ashep.adapters.system.control_socket import NotListening, ask
from ashep.cli import output
from ashep.cli.commands import Json, app, complete_name, example, group, project_of
from ashep.cli.context import configured, current_time
from ashep.config import settings_in
from ashep.core.policy.base_types import parse_duration
from ashep.errors import AshepError, UsageError
from ashep.journal.lock import holder

notify = group("notify")


@notify.command("test", epilog=example("ashep notify test"))
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
        output.data([{"target": name, "told": not error, "error": error} for name, error in found])
    elif not found:
        raise AshepError("nobody is to be told anything: config.yaml has no `notify.targets`")
    for name, error in found if not as_json else ():
        output.say(f"{name}: {f'not told: {error}' if error else 'told'}")
    if not found or any(error for _, error in found):
        raise typer.Exit(1)


_LOOK = 0.5
"""Seconds between looks at what still runs while it is drained."""

_STARTING = 3.0
"""Seconds that a daemon which has only begun gets to listen."""

For = Annotated[str | None, typer.Option("--for", metavar="TIME", help="How long, such as 30m or 2h.")]

Until = Annotated[
    str | None, typer.Option("--until", metavar="WHEN", help="Until 07:00, or 2026-03-01T07:00, in local time.")
]

Provider = Annotated[str | None, typer.Option("--provider", metavar="NAME", help="Only runs on this provider.")]

Why = Annotated[str, typer.Option("--message", "-m", metavar="TEXT", help="Why; status and holds say so.")]


@app.command(epilog=example("ashep pause", "ashep pause --for 2h", "ashep pause --until 07:00 --provider anthropic"))
def pause(
    context: typer.Context, last: For = None, until: Until = None, provider: Provider = None, message: Why = ""
) -> None:
    """Let no run start, next phases and retries included, and take no issue; what runs goes on to its end.

    Without --for or --until it lasts until `ashep resume`, also over a restart.
    """
    end = _end(last, until, current_time().astimezone())
    told = _pause(context, end, message, provider=provider)
    what = f"{provider} is paused" if provider else "paused"
    output.say(f"{what} {f'until {end:%Y-%m-%d %H:%M}' if end else 'until `ashep resume`'}: no run starts")
    if told["runs"]:
        output.say(f"under way, and brought to an end: {', '.join(told['runs'])}")


@app.command(epilog=example("ashep resume", "ashep resume --provider anthropic"))
def resume(context: typer.Context, provider: Provider = None, message: Why = "") -> None:
    """Go on: end every pause, those of quiet hours until they begin again; or only a provider's."""
    told = _ask_daemon(context, {"do": "resume", "why": message, "provider": provider})
    for one in told["ended"]:
        output.say(f"ended: {one}")
    for one in told["pauses"]:
        output.say(f"still {one}")
    if not told["ended"]:
        output.say("nothing was paused")


@app.command(epilog=example("ashep drain", "ashep drain --for 1h"))
def drain(context: typer.Context, last: For = None, until: Until = None, message: Why = "") -> None:
    """Pause, and end with 0 once the last run has ended; what still runs is said meanwhile.

    Nothing else is stopped: after it the daemon waits, paused, for `ashep resume` or `ashep stop`.
    """
    told = _pause(context, _end(last, until, current_time().astimezone()), message, drain=True)
    shown = None
    while told["runs"]:
        if told["runs"] != shown:
            shown = told["runs"]
            output.progress(f"still under way: {', '.join(shown)}")
        time.sleep(_LOOK)  # noqa: TID251 - a command for people, outside of everything that is replayed
        told = _ask_daemon(context, {"do": "ask"})
        if not told["paused"]:
            raise AshepError("the pause is over before the last run was: runs start again")
    output.say("drained: nothing runs")


@app.command(epilog=example("ashep cancel t-1", "ashep cancel t-1/implement.1.1"))
def cancel(
    context: typer.Context,
    target: Annotated[
        str, typer.Argument(metavar="ISSUE|RUN", callback=complete_name, help="The issue's id, or a run's.")
    ],
) -> None:
    """Stop what is done for an issue: its run is aborted, and the issue parks. `ashep retry` starts it afresh."""
    told = _ask_daemon(context, {"do": "cancel", "target": target})
    output.say(f"{told['issue']}: cancelled and parked; `ashep retry {told['issue']}` starts it afresh")
    if told["run"]:
        stopped = "its session is at rest" if told["stopped"] else "its session is still being stopped"
        output.say(f"{told['run']} is aborted; {stopped}")


def _pause(context: typer.Context, end: datetime | None, why: str, **more: Any) -> dict[str, Any]:
    return _ask_daemon(context, {"do": "pause", "until": end and end.isoformat(), "why": why, **more})


def _end(last: str | None, until: str | None, at: datetime) -> datetime | None:
    """Say when a pause ends; None: it does not by itself."""
    if last is not None and until is not None:
        raise UsageError("--for and --until say the same: give one of them")
    if last is not None:
        try:
            wait = parse_duration(last)
        except ValueError as error:
            raise UsageError(f"--for {last}: {error}") from error
        assert isinstance(wait, timedelta)
        return at + wait
    return None if until is None else _moment(until, at)


def _moment(text: str, at: datetime) -> datetime:
    """Read a time of day, the next there is, or a date and time; local where it names no zone."""
    try:
        if len(text) <= len("00:00"):
            clock = datetime.strptime(text, "%H:%M")
            today = at.replace(hour=clock.hour, minute=clock.minute, second=0, microsecond=0)
            return today if today > at else today + timedelta(days=1)
        return datetime.fromisoformat(text).astimezone()
    except ValueError as error:
        raise UsageError(f"--until {text}: expected 07:00 or 2026-03-01T07:00") from error


def _ask_daemon(context: typer.Context, request: dict[str, Any]) -> dict[str, Any]:
    """Ask the daemon, in this person's name; `AshepError` where none runs, or it refuses."""
    project = project_of(context)
    state = configured(project) / "state"
    if holder(state) is None:
        raise AshepError("ashep is not running: nothing runs and nothing starts; `ashep work` starts it")
    if request["do"] != "ask":
        request = request | {"by": anyio.run(person, project, settings_in(configured(project)), os.environ)}
    until = time.monotonic() + _STARTING  # noqa: TID251 - a command for people, outside of everything that is replayed
    while True:
        try:
            return ask(state, request)
        except NotListening:
            if time.monotonic() > until or holder(state) is None:  # noqa: TID251 - as above
                raise
        time.sleep(0.1)  # noqa: TID251 - as above
