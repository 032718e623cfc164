"""`ashep policy simulate`: one made-up issue step by step, by a script, or thousands of them by chance."""

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from ashep.cli import output
from ashep.cli.commands import Json, example, policies, project_of
from ashep.cli.context import FOLDER
from ashep.cli.output import ProgressLine, counted
from ashep.config import read
from ashep.daemon.daemon import narrator
from ashep.errors import UsageError
from ashep.extras.simulation.actor_moves import ActorStep, Point
from ashep.extras.simulation.probabilities import Chances, Dice
from ashep.extras.simulation.script import ScriptLine, read_script, write_script
from ashep.extras.simulation.simulator import AT_ONCE, Cast, Distribution, SimulatedIssue, Spread, cast_of, live
from ashep.extras.simulation.virtual_time import EPOCH

_MINUTE = 60


@policies.command(
    name="simulate",
    epilog=example(
        "ashep policy simulate standard",
        "ashep policy simulate standard draft.yaml --script night.txt",
        "ashep policy simulate standard --runs 10000 --seed 7 --chance review.approve=0.9",
    ),
)
def policy_simulate(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="A policy of the project, or a preset.")],
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="A draft; by default the project's policies.")
    ] = None,
    script: Annotated[
        Path | None, typer.Option("--script", metavar="FILE", help="What happens, as `phase: move; phase: move`.")
    ] = None,
    runs: Annotated[
        int | None, typer.Option("--runs", min=1, max=1_000_000, metavar="N", help="Live through N issues by chance.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="The same seed gives the same numbers.")] = 1,
    chance: Annotated[
        list[str] | None,
        typer.Option("--chance", metavar="PHASE.MOVE=X", help="How likely a move is; `*` stands for every phase."),
    ] = None,
    chances: Annotated[
        Path | None, typer.Option("--chances", metavar="FILE", help="A YAML file of chances and times.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Let made-up issues live under a policy, in memory and in virtual time, through the daemon's own decisions.

    On a terminal you are asked at each point what the agent or the person does. With --script a file says it. With
    --runs chance does, and how it ended is counted: runs, visits, questions and time of an issue, at least, in the
    middle, for nine of ten, and at most. Nothing of the project is changed, and nothing is started. The exit code is 1
    where an issue came to a state in which nothing can happen to it any more.
    """
    if script is not None and runs is not None:
        raise UsageError("--script and --runs are two ways; take one")
    if runs is None and (chance or chances is not None):
        raise UsageError("--chance and --chances need --runs")
    if script is None and runs is None and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("nobody can be asked here; give --script FILE or --runs N")
    cast = cast_of(project_of(context) / FOLDER, name, file)
    for line in cast.unsound:
        output.note(f"unsound, so that no daemon would run it: {line}")
    if runs is not None:
        odds = (Chances() if chances is None else read(Chances, _text(chances), chances)).but(chance or [])
        stuck = _by_chance(cast, runs, seed, odds, as_json)
    elif script is not None:
        stuck = _by_script(cast, script, as_json)
    else:
        stuck = _by_hand(cast)
    raise typer.Exit(int(stuck))


# --- by chance ----------------------------------------------------------------------------------------------------


def _by_chance(cast: Cast, runs: int, seed: int, chances: Chances, as_json: bool) -> bool:
    dice, lives = Dice(cast.rules, chances, seed), list[SimulatedIssue]()
    with ProgressLine("lived through", "issues") as progress:
        for first in range(0, runs, AT_ONCE):
            issues = [f"sim-{number + 1}" for number in range(first, min(first + AT_ONCE, runs))]
            lives += live(cast, issues, dice)
            dice.forget()
            progress(len(lives))
    told = Distribution.from_lives(lives, [phase.name for phase in cast.rules.phases])
    if as_json:
        output.data({"policy": cast.policy, "seed": seed, **told.as_json()})
    else:
        output.say(f"{told.lives:,} issues under {cast.policy}, seed {seed}")
        output.say()
        rows = [
            _row("agent runs", told.per_issue["runs"]), _row("visits", told.per_issue["visits"]),
            *(_row(f"visits of {name}", spread) for name, spread in told.visits_of.items()),
            _row("questions to people", told.per_issue["questions"]), _row("time", told.per_issue["seconds"], _span),
        ]  # fmt: skip
        output.table(["of an issue", "min", "median", "p90", "max", "mean"], rows)
        output.say()
        ends = [[end, code, f"{count:,}", f"{count / told.lives:.1%}"] for end, code, count in told.ends]
        output.table(["ended", "code", "issues", "share"], ends)
        for script in told.stuck:
            output.note(f"nothing can happen any more after: {script}")
    return bool(told.stuck)


def _row(title: str, spread: Spread, shown: Callable[[float], str] = "{:g}".format) -> list[str]:
    mean = shown(spread.mean) if shown is _span else f"{spread.mean:.2f}"
    return [title, *(shown(value) for value in (spread.min, spread.median, spread.p90, spread.max)), mean]


def _span(seconds: float) -> str:
    """Write a time: `45m`, `2h 05m`, `3d 04h`."""
    minutes = round(seconds / _MINUTE)
    days, hours = minutes // 1440, minutes // 60 % 24
    if days:
        return f"{days}d {hours:02}h"
    return f"{hours}h {minutes % 60:02}m" if hours else f"{minutes}m"


# --- by a script, and by hand -------------------------------------------------------------------------------------


def _by_script(cast: Cast, file: Path, as_json: bool) -> bool:
    script, story = read_script(_text(file), cast.rules, file), list[str]()
    (life,) = live(cast, ["sim-1"], script, _narrator(story.append if as_json else output.say))
    if script.error is not None:
        raise script.error
    if as_json:
        document = {
            "end": life.end, "code": life.code or None, "why": life.why, "runs": life.runs,
            "visits": dict(life.visits), "questions": life.questions, "seconds": round(life.time.total_seconds(), 3),
            "moves": [{"point": point, "move": step.move} for point, step in life.moves],
        }  # fmt: skip
        missed = [_describe_line(line) for line in script.rest()]
        output.data({"policy": cast.policy, **document, "story": story, "not_reached": missed})
    else:
        _sum_up(life)
    for line in script.rest():
        output.note(f"{file}:{line.number}: {_describe_line(line)} was not reached")
    return life.end == "stuck"


def _describe_line(line: ScriptLine) -> str:
    return f"{line.point}: {line.step.move}"


def _by_hand(cast: Cast) -> bool:
    output.say("Name a move, its number, or its beginning; Enter takes the first. Ctrl-C or Ctrl-D ends.")
    with output.interrupted_by(signal.SIGINT):  # the loop's own handler would wait for it, and it for the answer
        (life,) = live(cast, ["sim-1"], _ask, _narrator(output.say))
    _sum_up(life)
    if life.moves:
        output.say(f"as a script: {write_script(life.moves)}")
    return life.end == "stuck"


def _ask(point: Point) -> ActorStep | None:
    said = {"question": "a person is asked", "landing": "its work is brought onto the base"}
    who = said.get(point.kind, f"{point.agent}, visit {point.visit}.{point.attempt}")
    choices = "  ".join(f"{number} {move}" for number, move in enumerate(point.moves, 1))
    output.say_painted((point.name, "bold"), (f"({who}): {choices}", None))
    try:
        while True:
            chosen = _chosen(input("> ").strip(), point.moves)
            if len(chosen) == 1:
                return ActorStep(chosen[0])
            output.say(f"which one: {', '.join(chosen or point.moves)}?")
    except (EOFError, KeyboardInterrupt):
        output.say()
        return None


def _chosen(word: str, moves: tuple[str, ...]) -> list[str]:
    if not word or word in moves:
        return [word or moves[0]]
    if word.isdecimal() and 1 <= int(word) <= len(moves):
        return [moves[int(word) - 1]]
    return [move for move in moves if move.startswith(word)]


def _narrator(say: Callable[[str], Any]) -> Any:
    now = [EPOCH]

    def timed(line: str) -> None:
        say(f"{_span((now[0] - EPOCH).total_seconds()):>7}  {line}")

    tell = narrator(timed)

    def picture(entries: Any, world: Any) -> None:
        now[0] = entries[0].at if entries else now[0]
        tell(entries, world)

    return picture


def _sum_up(life: SimulatedIssue) -> None:
    code = f" ({life.code})" if life.code else ""
    asked = f"{counted(life.runs, 'run')}, {counted(life.questions, 'question')} to people"
    output.say(f"{life.end}{code}: {life.why}")
    output.say(f"{asked}, {_span(life.time.total_seconds())}")


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{file}: cannot be read: {error}") from error
