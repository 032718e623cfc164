"""Commands that work on stories: story sync, story run."""

import json
import os
import re
import sqlite3
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import anyio
import typer

from ashep.actions.answers import person
from ashep.actions.story_catalog import FoundStory
from ashep.actions.story_sync import Mirrored, mirror_of
from ashep.bmad.sync_plan import IssueToCreate, StoryWarning
from ashep.cli import output
from ashep.cli.commands import Json, example, project_of
from ashep.cli.context import configured, picture
from ashep.cli.reading.stories import stories
from ashep.cli.running.work import progress
from ashep.config import load
from ashep.errors import AlreadyRunning, UsageError
from ashep.journal.lock import holder, refuse_held

EVERY = 1.0
"""Seconds between looks at what another process does."""

PATIENCE = 60.0
"""Seconds after which an issue that nobody takes is one that nobody will take."""

_WAITED_FOR = ("not_asked", "dependencies", "not_ready", "unseen")
"""Reasons of another kind: who works has been asked for other issues, has some to do before, or is slow to look."""

Named = Annotated[list[str] | None, typer.Argument(metavar="[STORY]...", help="1-3, 1.3, or the path of its file.")]


@stories.command(epilog=example("ashep story sync", "ashep story sync --dry-run", "ashep story sync 1-3 1-4"))
def sync(
    context: typer.Context,
    names: Named = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be written, and write nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Keep an issue of each story: new ones are created, and what is new in a file is written.

    What a person changed in the tracker stays, and is told. Stories that are done and have no issue get none, unless
    they are named; those that are planned get one once they have a file.
    """
    done = _sync_stories(context, names or [], None, dry=dry_run)
    paths = {issue: path for path, issue in done.plan.issues.items()}
    if as_json:
        made = [{"issue": one.id, "path": paths.get(one.id), "title": one.words.title} for one in done.plan.made]
        changed = [{"issue": one.id, "path": one.path} for one in done.plan.changed]
        told = [{"path": one.path, "says": one.says, "refuses": one.refuses} for one in done.told]
        output.data({"created": made, "changed": changed, "told": told, "issues": done.plan.issues,
                     "done": done.plan.finished, "planned": [one.id for _, one in done.stories.planned]})  # fmt: skip
        return
    would = "would be " if dry_run else ""
    for one in (*done.plan.made, *done.plan.changed):
        what = f"{would}created" if isinstance(one, IssueToCreate) else f"{would}brought up to date"
        name = paths.get(one.id) or (one.words.title if isinstance(one, IssueToCreate) else one.id)
        output.say(output.one_line(f"{name}: {one.id} {what}"))
    _say_told(done.told)
    finished, planned = len(done.plan.finished), len(done.stories.planned)
    more = f"; {finished} done without one" * bool(finished) + f"; {planned} planned, without a file" * bool(planned)
    count = len(done.plan.issues)
    output.say(f"{count} {'story has' if count == 1 else 'stories have'} an issue{more}")


@stories.command(epilog=example("ashep story run 1-3", "ashep story run 1-3 1-4 --json", "ashep story run --epic 1"))
def run(
    context: typer.Context,
    names: Named = None,
    epic: Annotated[str | None, typer.Option("--epic", metavar="N", help="All stories of this epic.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All stories.")] = False,
    as_json: Json = False,
) -> None:
    """Work on stories until they end, and show how it goes; where ashep works already, look on.

    Exit code 0: all of them are done. 1: one is parked, waits for a person, or cannot be worked on.
    """
    if [bool(names), epic is not None, everything].count(True) != 1:
        raise UsageError("say which stories: their ids, --epic N, or --all")
    if load(configured(project_of(context))).settings.worker.workspace == "shared":
        lacking = "stories are worked on in work trees of their own: set worker.workspace: place in config.yaml"
        raise UsageError(lacking)
    done = _sync_stories(context, names or [], epic)
    state = configured(project_of(context)) / "state"
    refused = {one.path: one.says for one in done.told if one.refuses}
    chosen = [_Chosen(one, done.plan.issues.get(one.path), refused.get(one.path)) for one in done.chosen]
    left = {
        one.issue: one.name for one in chosen if one.issue and not one.refused and one.issue not in done.plan.closed
    }
    if not as_json:
        _say_told(done.told)
    if left:
        _work(project_of(context), state, left, output.note if as_json else progress)
    with picture(state) as seen:
        rows = _rows(seen.database)
    ended = [one.ended(rows, done) for one in chosen if one.issue or one.refused]
    if as_json:
        output.data(ended)
    else:
        for one in ended:
            output.say(output.one_line(f"{one['id']}: {one['state']}{': ' * bool(one['why'])}{one['why'] or ''}"))
        if len(ended) < len(chosen):
            output.say(f"{len(chosen) - len(ended)} were done before, and have no issue")
    raise typer.Exit(any(one["state"] != "closed" for one in ended))


@dataclass(frozen=True)
class _Chosen:
    found: FoundStory
    issue: str | None
    refused: str | None

    @property
    def name(self) -> str:
        story = self.found.story
        return (story.id or story.key) if story is not None else self.found.path

    def ended(self, rows: Mapping[str, sqlite3.Row], done: Mirrored) -> dict[str, Any]:
        row, closed = rows.get(self.issue or ""), self.issue in done.plan.closed
        state, why = (row["state"], row["reason"]) if row else ("not_eligible", "nobody has worked on it")
        state, why = ("closed", None) if closed or state == "closed" else (state, why)
        state, why = ("refused", self.refused) if self.refused else (state, why)
        return {"id": self.name, "path": self.found.path, "issue": self.issue, "state": state, "why": why}


def _sync_stories(context: typer.Context, names: list[str], epic: str | None, *, dry: bool = False) -> Mirrored:
    project = project_of(context)
    configuration = load(configured(project))
    known = configuration.policies.policies

    async def write_issues() -> Mirrored:
        name = await person(project, configuration.settings, os.environ)
        return await mirror_of(project, configuration.settings, name, known).sync(names, epic, dry=dry, finished=True)

    return anyio.run(write_issues)


def _say_told(told: tuple[StoryWarning, ...]) -> None:
    for one in told:
        output.say_finding("error" if one.refuses else "warning", output.one_line(f"{one.path}: {one.says}"))


# --- until they end -----------------------------------------------------------------------------------------------


def _work(project: Path, state: Path, issues: Mapping[str, str], say: Callable[[str], None]) -> None:
    """Work on these issues, by their stories' names, or follow who does, until they end."""
    ids = re.compile(rf"(?<![\w.-])(?:{'|'.join(map(re.escape, issues))})(?![\w-])")
    while not _follow(state, issues, say):
        try:
            refuse_held(state)
            from ashep import app as daemon  # it takes long, and who follows does not need it

            options = daemon.WorkOptions(tuple(issues), until_idle=True)
            daemon.work(project, options, lambda line: say(ids.sub(lambda found: issues[found[0]], line)))
        except AlreadyRunning:
            continue
        return


def _follow(state: Path, issues: Mapping[str, str], say: Callable[[str], None]) -> bool:
    """Tell how it goes with them while another process works; True once they have ended, False: nobody works."""
    shown, since = dict[str, str](), time.monotonic()  # noqa: TID251 - for people, outside of what is replayed
    while holder(state) is not None:
        with picture(state) as seen:
            rows = _rows(seen.database)
        for issue, name in issues.items():
            row = rows.get(issue)
            told = f"{row['phase'] or ''} {row['state']}: {row['reason']}".strip() if row else "not seen yet"
            if shown.get(issue) != told:
                shown[issue], since = told, time.monotonic()  # noqa: TID251 - as above
                say(f"{name} {told}")
        waited = time.monotonic() - since > PATIENCE  # noqa: TID251 - as above
        if all(_has_ended(rows, issue, waited=waited) for issue in issues):
            return True
        time.sleep(EVERY)  # noqa: TID251 - as above
    return False


def _rows(database: sqlite3.Connection | None) -> dict[str, sqlite3.Row]:
    query = "SELECT issue, state, code, reason, phase, body FROM issues"
    return {row["issue"]: row for row in database.execute(query)} if database else {}


def _has_ended(rows: Mapping[str, sqlite3.Row], issue: str, *, waited: bool, deep: int = 0) -> bool:
    row = rows.get(issue)
    if row is None or row["state"] != "not_eligible":
        return row is not None and row["state"] in ("closed", "parked", "person")
    if row["code"] == "dependencies" and deep < len(rows):
        before = [
            one for one in json.loads(row["body"])["blocked_by"] if one in rows and rows[one]["state"] != "closed"
        ]
        return any(_has_ended(rows, one, waited=waited, deep=deep + 1) for one in before)
    return waited and row["code"] not in _WAITED_FOR
