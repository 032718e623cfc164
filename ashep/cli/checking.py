"""Commands that check what ashep says of itself: replay."""

import sys
import time
from typing import Annotated, Any

import typer

from ashep.cli import screen
from ashep.cli.place import configured
from ashep.cli.root import Json, app, example, project_of
from ashep.errors import AshepError

SILENCE = 2.0
"""Seconds after which a person at a terminal is told how far it has got."""

SHOWN = 100
"""Differences that are printed for people; `--json` holds all."""


class Progress:
    """Tells a person at a terminal how far a long command has got, on one line that is written over."""

    def __init__(self, what: str) -> None:
        self._what, self._due, self._told = what, _seconds() + SILENCE, False

    def __call__(self, records: int) -> None:
        """Say it, if there is somebody to tell and it is time."""
        if sys.stderr.isatty() and _seconds() > self._due:
            self._due, self._told = _seconds() + 0.5, True
            sys.stderr.write(f"\rashep: {self._what} {records:,} records")
            sys.stderr.flush()

    def end(self) -> None:
        """Take the line away."""
        if self._told:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _seconds() -> float:
    return time.monotonic()  # noqa: TID251 - a command for people, outside of everything that is replayed


@app.command(
    short_help="Derive every decision again, and compare.",
    epilog=example("ashep replay", "ashep replay t-1", "ashep replay --json"),
)
def replay(
    context: typer.Context,
    issue: Annotated[str | None, typer.Argument(metavar="ISSUE", help="Compare only what is about this issue.")] = None,
    as_json: Json = False,
) -> None:
    """Derive every decision again from the facts in the journal, those not to start an issue included, and compare.

    Only the journal is read, and nothing is written; a daemon may run. What differs is printed as a diff with its
    number in the journal, and the exit code is 1. Decisions that were made under other rules than this version's are
    folded and counted.
    """
    from ashep.core.replay import Replay
    from ashep.replay import replay as derive

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
