"""Commands about stories of the BMAD method: story list, show, status, check."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from ashep.actions.story_catalog import FoundStory, Stories, beside_issues, dump_planned, dump_story, look
from ashep.bmad.story import StoryProblem
from ashep.cli import output
from ashep.cli.commands import Json, example, group, project_of
from ashep.cli.context import FOLDER, configured, find_project, picture
from ashep.errors import AshepError

stories = group("story")

COLUMNS = ("STORY", "STATUS", "STATE", "TASKS", "OPEN", "ISSUE", "TITLE")


Tracker = Annotated[bool, typer.Option("--tracker", help="Ask the tracker for the issues of stories, too.")]


def _find_stories(context: typer.Context, *, tracker: bool = False, paths: Sequence[Path] = ()) -> Stories:
    """Look; the issues are those that the daemon knows, unless the tracker is asked."""
    seen = look(context.obj or Path.cwd(), paths)
    state = find_project(context.obj) / FOLDER / "state"
    if tracker:
        import anyio

        from ashep.actions.story_sync import issues_of
        from ashep.config import settings_in

        project = configured(project_of(context)).parent
        return beside_issues(seen, anyio.run(issues_of, project, settings_in(project / FOLDER)))
    return seen if paths else beside_issues(seen, read_known_issues(state))


def read_known_issues(state: Path) -> dict[str, tuple[str, bool]]:
    """Give the issues of stories that the daemon knows, by path, each with whether it is closed."""
    if not state.is_dir():
        return {}
    from ashep.config import settings_in

    rows, prefix = list[Any](), ""
    with suppress(AshepError):  # then this is told by whatever needs it
        prefix = settings_in(state.parent).labels.story_prefix
        with picture(state) as seen:
            rows = seen.database.execute("SELECT issue, state, body FROM issues").fetchall() if seen.database else []
    labelled = [(row, label) for row in rows for label in json.loads(row["body"])["labels"] if label.startswith(prefix)]
    return {label.removeprefix(prefix): (row["issue"], row["state"] == "closed") for row, label in labelled}


def _get_kept(seen: Stories) -> list[FoundStory]:
    return [one for one in seen.found if one.may_be_story]


@stories.command(name="list", epilog=example("ashep story list", "ashep story list --json"))
def list_stories(context: typer.Context, tracker: Tracker = False, as_json: Json = False) -> None:
    """List the stories with their status, the state that follows, tasks done of all, open findings, and their issues.

    Those that `stories.yaml` or the epics plan, and that have no file, come last.
    """
    seen = _find_stories(context, tracker=tracker)
    if as_json:
        output.data(
            [*(dump_story(one) for one in _get_kept(seen)), *(dump_planned(path, one) for path, one in seen.planned)]
        )
        return
    planned = [(one.id, "-", "planned", "-", "-", "-", one.title) for _, one in seen.planned]
    output.table(COLUMNS, [*(_row(one) for one in _get_kept(seen)), *planned])


def _row(found: FoundStory) -> tuple[str, ...]:
    story = found.story
    if story is None:
        return found.path, "-", "unreadable", "-", "-", "-", found.problems[0].said
    status = story.status.word or story.status.said[:20] if story.status else "-"
    tasks = f"{sum(task.done for task in story.tasks)}/{len(story.tasks)}"
    name = story.id or story.key
    issue = found.issue[0] if found.issue else "-"
    return name, status, story.state, tasks, str(len(story.unresolved)), issue, story.title or story.key


@stories.command(epilog=example("ashep story show 1-3", "ashep story show docs/stories/1-3-login.md --json"))
def show(
    context: typer.Context,
    story: Annotated[str, typer.Argument(metavar="STORY", help="1-3, 1.3, or the path of its file.")],
    as_json: Json = False,
) -> None:
    """Show what a story's file says, each with its line."""
    found = _find_stories(context).find_story(story)
    if as_json:
        output.data(dump_story(found))
        return
    output.say_lines(_describe_story(found))


def _describe_story(found: FoundStory) -> Iterator[str]:
    story = found.story
    assert story is not None  # what cannot be read has no name to be found by
    yield f"{story.id or story.key}: {story.title or ''}".rstrip(": ")
    yield f"  file      {found.path}"
    said = f"{story.status.said} (line {story.status.line})" if story.status else "none"
    yield f"  status    {said}"
    yield f"  state     {story.state}{f': {story.why}' if story.why else ''}"
    yield f"  sprint    {f'{found.sprint.said.said} (line {found.sprint.said.line})' if found.sprint else 'not named'}"
    if found.issue:
        yield f"  issue     {found.issue[0]}{' (closed)' if found.issue[1] else ''}"
    yield f"  criteria  {len(story.criteria)}"
    yield f"  tasks     {sum(one.done for one in story.tasks)} of {len(story.tasks)} done"
    for review in story.reviews:
        yield f"  review    line {review.line}: {review.title}{f': {review.outcome}' if review.outcome else ''}"
    if run := story.run:
        yield f"  run       {run.result.said if run.result else 'none'}{f': {run.blocking}' if run.blocking else ''}"
        yield f"  sent back {run.iteration or 0} times"
        yield from (f"  warned    {one}" for one in run.warnings)
        yield from (f"  deferred  {one}" for one in run.deferred)
    for one in story.unresolved:
        yield f"  open      line {one.line}: {' '.join(one.text.split())}"
    for problem in found.problems:
        yield f"  wrong     line {problem.line}: {problem.said}"


@stories.command(epilog=example("ashep story status", "ashep story status --json"))
def status(context: typer.Context, tracker: Tracker = False, as_json: Json = False) -> None:
    """Say how many stories are in which state, and what contradicts what: file, sprint status and issue."""
    seen = _find_stories(context, tracker=tracker)
    counts = Counter("unreadable" if one.story is None else one.story.state for one in _get_kept(seen))
    if as_json:
        issues = {one.path: one.issue[0] for one in seen.found if one.issue}
        problems = [
            {"path": path, "line": one.line, "says": one.said, "disagrees": one.disagrees}
            for path, one in _all_problems(seen)
        ]
        told = {"states": dict(counts), "sprint": seen.sprint, "issues": issues, "problems": problems}
        output.data(told)
        return
    for state, count in sorted(counts.items()):
        output.say(f"{count:5}  {state}")
    output.say(f"sprint status: {seen.sprint or 'none'}")
    if issues := sum(one.issue is not None for one in seen.found):
        output.say(f"{issues} of them have an issue")
    _say_problems(seen)


@stories.command(
    epilog=example("ashep story check", "ashep story check docs/stories", "ashep story check 1-3-login.md --json")
)
def check(
    context: typer.Context,
    paths: Annotated[
        list[Path] | None, typer.Argument(metavar="[PATH]...", help="Files or folders; by default the project's.")
    ] = None,
    tracker: Tracker = False,
    as_json: Json = False,
) -> None:
    """Read stories and their sprint status, and tell what is wrong with them; nothing is written.

    It works outside of projects, too, without --tracker. Exit code 1: something contradicts something else.
    """
    given = paths or ()
    seen = _find_stories(context, tracker=True, paths=given) if tracker else look(context.obj or Path.cwd(), given)
    if as_json:
        output.data([dump_story(one) for one in seen.found])
    else:
        _say_problems(seen)
        kept = _get_kept(seen)
        output.say(f"{len(kept)} {'story' if len(kept) == 1 else 'stories'} of {len(seen.found)} files read")
    if seen.disagrees:
        raise typer.Exit(1)


def _all_problems(seen: Stories) -> Iterator[tuple[str, StoryProblem]]:
    yield from seen.problems
    for one in _get_kept(seen):
        yield from ((one.path, problem) for problem in one.problems)
        if one.story is not None and one.story.why not in ("", *(problem.said for problem in one.problems)):
            yield one.path, StoryProblem(one.story.status.line if one.story.status else 1, one.story.why)


def _say_problems(seen: Stories) -> None:
    for path, one in _all_problems(seen):
        output.say_finding("error" if one.disagrees else "warning", output.one_line(f"{path}:{one.line}: {one.said}"))
