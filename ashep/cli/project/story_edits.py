"""Commands that write stories' files, or compare them: story shard, compare, plan, learnings."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ashep.actions.story_edits import PlanProposal, compared, moved, planned, taught
from ashep.cli import output
from ashep.cli.commands import Json, example
from ashep.cli.context import current_time
from ashep.cli.reading.stories import stories

COLUMNS = ("ORDER", "PRIORITY", "STORY", "EPIC", "DEPENDS ON", "TITLE")


@stories.command(
    epilog=example("ashep story shard 1-3 --dry-run", "ashep story shard 1-3", "ashep story shard 1-3 --undo")
)
def shard(
    context: typer.Context,
    story: Annotated[str, typer.Argument(metavar="STORY", help="1-3, 1.3, or the path of its file.")],
    undo: Annotated[bool, typer.Option("--undo", help="Put everything back from the archive.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would move, and write nothing.")] = False,
) -> None:
    """Move what is resolved out of a long story, into an archive next to it, and link it.

    Findings that are resolved move, and reviews before the last one in which nothing is open. What is open stays, and
    so does the story's state. --undo puts all of it back, byte for byte.
    """
    archive, made = moved(context.obj or Path.cwd(), story, undo=undo, dry_run=dry_run)
    for line, lines, what in made.moved:
        output.say(f"line {line}: {what}, {output.counted(lines, 'line')}")
    if undo:
        output.say(
            f"put back, but for what {archive.name} still has: {', '.join(made.left)}" if made.left else "put back"
        )
    else:
        output.say(f"{'to be moved' if dry_run else 'moved'} to {archive.name}" if made.moved else "nothing to move")


@stories.command(epilog=example("ashep story compare before.md docs/stories/1-3-login.md"))
def compare(
    before: Annotated[Path, typer.Argument(metavar="BEFORE", help="A story as it was.")],
    after: Annotated[Path, typer.Argument(metavar="AFTER", help="The same story, in another form.")],
    as_json: Json = False,
) -> None:
    """Tell what a story lost when it was put into another form.

    Criteria, tasks, findings, records, status: each must be there, and as it was. Form is free. Lines are those of
    BEFORE. Exit code 1: something is lost.
    """
    lost = compared(before, after)
    if as_json:
        output.data([{"line": one.line, "says": one.said} for one in lost])
    else:
        for one in lost:
            output.say_finding("error", output.one_line(f"{after}, line {one.line} of before: {one.said}"))
        output.say(f"lost or changed: {len(lost)}" if lost else "nothing is lost")
    if lost:
        raise typer.Exit(1)


@stories.command(epilog=example("ashep story plan", "ashep story plan --write", "ashep story plan --write --yes"))
def plan(
    context: typer.Context,
    write: Annotated[bool, typer.Option("--write", help="Add to the sprint status what it lacks, as backlog.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --write: without asking.")] = False,
    as_json: Json = False,
) -> None:
    """Propose the order of the stories that the epics plan, by what they say they depend on.

    Stories of one priority depend on none of each other. Exit code 1: one is planned twice, or depends on what there is
    not, or on itself in a circle; then nothing is written.
    """
    made = planned(context.obj or Path.cwd(), current_time())
    if as_json:
        problems = [{"path": path, "line": one.line, "says": one.said} for path, one in made.problems]
        told = {"sprint": str(made.sprint), "lacks": made.added, "problems": problems}
        output.data({**told, "stories": [asdict(one) for one in made.steps]})
    else:
        output.table(COLUMNS, [
            (str(number), str(one.priority), one.key, one.epic, ", ".join(one.depends) or "-", one.title)
            for number, one in enumerate(made.steps, 1)
        ])  # fmt: skip
        for path, one in made.problems:
            output.say_finding("error", output.one_line(f"{path}:{one.line}: {one.said}"))
    if made.problems:
        raise typer.Exit(1)
    if write and made.added and (yes or _confirmed(made)):
        made.write()
        output.note(f"{made.sprint}: added {', '.join(made.added)}")


def _confirmed(made: PlanProposal) -> bool:
    what = f"{made.sprint.name} lacks {', '.join(made.added)}"
    if sys.stdin.isatty():
        return typer.confirm(f"{what}. Add them?", default=False)
    output.note(f"{what}; nothing was written: --yes writes it")
    return False


@stories.command(epilog=example("ashep story learnings", "ashep story learnings --write"))
def learnings(
    context: typer.Context,
    write: Annotated[
        bool, typer.Option("--write", help="Write them to learnings.md beside the sprint status.")
    ] = False,
) -> None:
    """List what completed stories taught: their lessons, and what reviews found in two or more of them.

    At most 50 lines and 8 kB; the oldest go. In learnings.md only the marked part is written again.
    """
    file, lines = taught(context.obj or Path.cwd(), keep=write)
    output.say_lines(lines)
    output.note(f"written to {file}" if write else f"--write keeps them in {file}")
