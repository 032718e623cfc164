"""Claude Code by day, with a memory that outlives its sessions: foreman."""

import os
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import typer
from typer.core import TyperCommand

from ashep.cli import screen
from ashep.cli.commands import Json, app, example
from ashep.errors import ProgramMissing, UsageError
from ashep.foreman.launch import read, split

if TYPE_CHECKING:
    from ashep.foreman.reading import Place

_CLAUDES = "ashep.claudes"


class _Command(TyperCommand):
    """Leaves what is Claude's as it is."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        own, ctx.meta[_CLAUDES] = split(args)
        return super().parse_args(ctx, own)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[CLAUDE'S OWN...]"]


@app.command(
    cls=_Command,
    epilog=example(
        "ashep foreman",
        "ashep foreman --model opus --permission-mode plan",
        "ashep foreman --worker api -- 'look at the tests'",
        "ashep foreman --history --search cache",
    ),
)
def foreman(
    context: typer.Context,
    worker: Annotated[
        str | None,
        typer.Option(
            "--worker", metavar="NAME", help="Whose history it is; by default WORKER_NAME, or the folder's name."
        ),
    ] = None,
    print_prompt: Annotated[
        bool, typer.Option("--print-prompt", help="Print what a session that begins now would be told.")
    ] = False,
    history: Annotated[bool, typer.Option("--history", help="Print what was said.")] = False,
    search: Annotated[
        str | None, typer.Option("--search", metavar="WORD", help="With --history: only what holds this.")
    ] = None,
    as_json: Json = False,
    clear: Annotated[bool, typer.Option("--clear", help="Tell no session any more of what was said.")] = False,
    doctor: Annotated[bool, typer.Option("--doctor", help="Check that everything needed is there.")] = False,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Take over the history in ~/.claude/mini-goal-workers/NAME.")
    ] = False,
    hand_over: Annotated[
        bool, typer.Option("--hand-over", help="Make issues of the last plan that was accepted.")
    ] = False,
    file: Annotated[
        str | None, typer.Option("--file", metavar="PLAN", help="With --hand-over: of this plan; `-`: standard input.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="With --hand-over: without asking.")] = False,
) -> None:
    """Start Claude Code with a memory that outlives its sessions: what is said is kept, a session that grew too long or
    turned to another topic is begun anew, and is told what was said before.

    All that is no option of ours is Claude's, and so is everything behind `--`. The terminal, Ctrl-C, Ctrl-Z and the
    exit code are as with `claude` itself. With an option that only prints or changes the history no session begins.

    Exit codes: Claude's; 2 where the words or the settings cannot be used, 3 where another one has this worker.
    """
    from ashep.foreman import reading, settings

    directory, home = Path(context.obj or ".").absolute(), Path.home()
    name = settings.worker_name(worker, os.environ, directory)
    asked = sum((print_prompt, history, clear, doctor, take_over, hand_over))
    if asked > 1:
        raise UsageError("one of --print-prompt, --history, --clear, --doctor, --take-over and --hand-over at a time")
    if doctor:
        raise typer.Exit(_doctor(name, home, as_json))
    place = reading.place_of(name, os.environ, home)
    if not asked:
        raise typer.Exit(_sit(place, directory, context.meta[_CLAUDES]))
    if hand_over:
        raise typer.Exit(_hand_over(place, directory, file, yes=yes))
    if print_prompt:
        screen.say(reading.printed_prompt(place).rstrip("\n"))
    elif clear:
        from ashep.adapters.clock import RealClock

        screen.say(reading.clear(place, RealClock().now()))
    elif take_over:
        _take_over(place)
    else:
        told = reading.history(place, search)
        for warning in told.warnings:
            screen.note(f"warning: {warning}")
        if as_json:
            screen.data({"entries": told.data()})
        else:
            for line in told.lines():
                screen.say(line)


def _sit(place: "Place", directory: Path, words: list[str]) -> int:
    """Sit with Claude Code; where it begins no session here, become it."""
    from ashep.adapters.programs import find
    from ashep.foreman.sitting import Seat, sit

    claude = find("claude")
    if claude is None:
        raise ProgramMissing("claude is neither on PATH nor in the tools cache: `ashep foreman --doctor` says more")
    given = read(words)
    if given.elsewhere:
        sys.stdout.flush()
        os.chdir(directory)
        os.execve(claude, [str(claude), *words], os.environ)
    return anyio.run(sit, Seat(place, given, claude, directory, screen.note))


def _doctor(name: str, home: Path, as_json: bool) -> int:
    from ashep.foreman import reading

    lines = anyio.run(reading.doctor, name, os.environ, home)
    failed = any(line.level == "error" for line in lines)
    if as_json:
        screen.data({"ok": not failed, "checks": [asdict(line) for line in lines]})
        return int(failed)
    for line in lines:
        screen.say_painted((line.level, None), (f"{line.check}: {line.what}", None))
        if line.remedy:
            screen.say(f"        {line.remedy}")
    return int(failed)


def _take_over(place: "Place") -> None:
    from ashep.foreman import reading
    from ashep.redaction import Redaction, guessed

    taken = reading.take_over(place, Redaction(tuple(guessed(os.environ))))
    for line in taken.unread:
        screen.note(f"warning: {line}")
    screen.say(f"{taken.new} of {taken.found} entries are new")


def _hand_over(place: "Place", directory: Path, file: str | None, *, yes: bool) -> int:
    from ashep.foreman import history, night
    from ashep.redaction import Redaction, guessed

    if file is None:
        plan = night.plan_of(history.read(place.folder).entries)
    else:
        plan = night.read_plan(Path(file), Redaction(tuple(guessed(os.environ))))
    confirm = typer.confirm if sys.stdin.isatty() else None
    project = night.project_of(directory)
    return anyio.run(
        partial(night.at_the_terminal, project, plan, os.environ, yes=yes, say=screen.say, confirm=confirm)
    )
