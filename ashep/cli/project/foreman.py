"""Claude Code by day, with a memory that outlives its sessions: foreman."""

import os
import sys
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import anyio
import typer
from typer import Option
from typer.core import TyperCommand

from ashep.adapters.system.programs import find
from ashep.cli import output
from ashep.cli.commands import Json, app, example
from ashep.errors import ProgramMissing, UsageError
from ashep.extras.foreman import launch_args, queries
from ashep.extras.foreman.history import read
from ashep.extras.foreman.session import Seat, sit
from ashep.extras.foreman.settings import worker_name
from ashep.redaction import Redaction, guessed


class _Command(TyperCommand):
    """Leaves what is Claude's as it is."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        own, ctx.meta["ashep.claudes"] = launch_args.split(args)
        return super().parse_args(ctx, own)


@app.command(
    cls=_Command,
    options_metavar="[OPTIONS] [CLAUDE'S OWN...]",
    epilog=example("ashep foreman --worker api -- 'look at the tests'", "ashep foreman --history --search cache"),
)
def foreman(
    context: typer.Context,
    worker: Annotated[str | None, Option(metavar="NAME", help="Default: WORKER_NAME, or the folder's name.")] = None,
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
    turned to another topic is begun again, and is told what was said before.

    All that is no option of ours is Claude's, and so is everything behind `--`; the terminal and the exit code are as
    with `claude` itself. 2: the words or the settings cannot be used; 3: another one has this worker.
    """
    directory, home = Path(context.obj or ".").absolute(), Path.home()
    name = worker_name(worker, os.environ, directory)
    if sum((print_prompt, history, clear, doctor, take_over, hand_over)) > 1:
        raise UsageError("one of --print-prompt, --history, --clear, --doctor, --take-over and --hand-over at a time")
    if doctor:
        from ashep.cli.project.init import say_checks

        raise typer.Exit(say_checks(queries.doctor(name, os.environ, home, directory), as_json))
    place = queries.place_of(name, os.environ, home)
    if print_prompt:
        output.say(queries.printed_prompt(place).rstrip("\n"))
    elif history:
        _history(place.folder, search, as_json)
    elif clear:
        output.say(queries.clear(place))
    elif take_over:
        output.say_lines(queries.take_over(place))
    elif hand_over:
        raise typer.Exit(_hand_over(place.folder, directory, file, yes=yes))
    else:
        given = launch_args.read(words := context.meta["ashep.claudes"])
        if (claude := find("claude")) is None:
            raise ProgramMissing("claude is neither on PATH nor in the tools cache: `ashep foreman --doctor` says more")
        if given.elsewhere:  # no session begins here
            os.chdir(directory)
            os.execve(claude, [str(claude), *words], os.environ)
        raise typer.Exit(anyio.run(sit, Seat(place, given, claude, directory, output.note)))


def _history(folder: Path, word: str, as_json: bool) -> None:
    from ashep.views.times import local, stamp

    kept = read(folder)
    entries = [entry for entry in kept.entries if word.casefold() in entry.text.casefold()]
    for line in kept.damaged:
        output.note(f"warning: {line}")
    if as_json:
        output.data({"entries": [entry.model_dump(mode="json") for entry in entries]})
        return
    for entry in entries:
        output.say(f"{local(stamp(entry.at))} {entry.kind} {entry.agent}".rstrip())
        for line in entry.text.splitlines():
            output.say(f"  {line}")


def _hand_over(folder: Path, directory: Path, file: str, *, yes: bool) -> int:
    from ashep.extras.foreman import handoff

    if file:
        plan = handoff.read_plan(Path(file), Redaction(tuple(guessed(os.environ))))
    else:
        plan = handoff.plan_of(read(folder).entries)
    confirm = typer.confirm if sys.stdin.isatty() else None
    told = partial(handoff.at_the_terminal, yes=yes, say=output.say, confirm=confirm)
    return anyio.run(told, handoff.project_of(directory), plan, os.environ)
