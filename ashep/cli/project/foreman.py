"""Claude Code by day, with a memory that outlives its sessions: foreman."""

import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import anyio
import typer
from typer import Option
from typer.core import TyperCommand

from ashep.cli import screen
from ashep.cli.commands import Json, app, example
from ashep.errors import ProgramMissing, UsageError
from ashep.foreman.launch import read, split

if TYPE_CHECKING:
    from ashep.foreman.reading import Place


class _Command(TyperCommand):
    """Leaves what is Claude's as it is."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        own, ctx.meta["ashep.claudes"] = split(args)
        return super().parse_args(ctx, own)


@app.command(
    cls=_Command,
    options_metavar="[OPTIONS] [CLAUDE'S OWN...]",
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
        str | None, Option(metavar="NAME", help="Whose history; else WORKER_NAME, or the folder.")
    ] = None,
    print_prompt: Annotated[bool, Option("--print-prompt", help="Print what a new session would be told.")] = False,
    history: Annotated[bool, Option("--history", help="Print what was said.")] = False,
    search: Annotated[str, Option(metavar="WORD", help="With --history: only what holds this.")] = "",
    as_json: Json = False,
    clear: Annotated[bool, Option("--clear", help="Tell no session any more of what was said.")] = False,
    doctor: Annotated[bool, Option("--doctor", help="Check that everything needed is there.")] = False,
    take_over: Annotated[bool, Option("--take-over", help="Take over ~/.claude/mini-goal-workers/NAME.")] = False,
    hand_over: Annotated[bool, Option("--hand-over", help="Make issues of the last accepted plan.")] = False,
    file: Annotated[str, Option(metavar="PLAN", help="With --hand-over: of this plan; `-`: standard input.")] = "",
    yes: Annotated[bool, Option("--yes", help="With --hand-over: without asking.")] = False,
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
    if sum((print_prompt, history, clear, doctor, take_over, hand_over)) > 1:
        raise UsageError("one of --print-prompt, --history, --clear, --doctor, --take-over and --hand-over at a time")
    if doctor:
        from ashep.cli.project.setting_up import say_checks

        raise typer.Exit(say_checks(reading.doctor(name, os.environ, home, directory), as_json))
    place = reading.place_of(name, os.environ, home)
    if print_prompt:
        screen.say(reading.printed_prompt(place).rstrip("\n"))
    elif history:
        _history(place, search, as_json)
    elif clear:
        screen.say(reading.clear(place))
    elif take_over:
        for line in reading.take_over(place):
            screen.say(line)
    elif hand_over:
        raise typer.Exit(_hand_over(place, directory, file, yes=yes))
    else:
        raise typer.Exit(_sit(place, directory, context.meta["ashep.claudes"]))


def _history(place: "Place", word: str, as_json: bool) -> None:
    from ashep.foreman.history import read as kept_in
    from ashep.views.times import local, stamp

    kept = kept_in(place.folder)
    entries = [entry for entry in kept.entries if word.casefold() in entry.text.casefold()]
    for line in kept.damaged:
        screen.note(f"warning: {line}")
    if as_json:
        screen.data({"entries": [entry.model_dump(mode="json") for entry in entries]})
        return
    for entry in entries:
        screen.say(f"{local(stamp(entry.at))} {entry.kind} {entry.agent}".rstrip())
        for line in entry.text.splitlines():
            screen.say(f"  {line}")


def _hand_over(place: "Place", directory: Path, file: str, *, yes: bool) -> int:
    from ashep.foreman import history, night
    from ashep.redaction import Redaction, guessed

    secrets = Redaction(tuple(guessed(os.environ)))
    plan = night.read_plan(Path(file), secrets) if file else night.plan_of(history.read(place.folder).entries)
    confirm = typer.confirm if sys.stdin.isatty() else None
    told = partial(night.at_the_terminal, yes=yes, say=screen.say, confirm=confirm)
    return anyio.run(told, night.project_of(directory), plan, os.environ)


def _sit(place: "Place", directory: Path, words: list[str]) -> int:
    """Sit with Claude Code; where it begins no session here, become it."""
    from ashep.adapters.programs import find
    from ashep.foreman.sitting import Seat, sit

    if (claude := find("claude")) is None:
        raise ProgramMissing("claude is neither on PATH nor in the tools cache: `ashep foreman --doctor` says more")
    given = read(words)
    if given.elsewhere:
        os.chdir(directory)
        os.execve(claude, [str(claude), *words], os.environ)
    return anyio.run(sit, Seat(place, given, claude, directory, screen.note))
