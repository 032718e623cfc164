"""bd's database of a project: made where there is none, asked for what is ready, and given a first issue."""

import os
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

import anyio

from ashep.adapters.system import programs
from ashep.config import settings_in
from ashep.core.issues.admission import source_id
from ashep.core.policy.base_types import name_of
from ashep.core.policy.sources import GitHubSource
from ashep.core.text import clean
from ashep.errors import AshepError
from ashep.factories import FOLDER, READER, tracker_of

INIT = ("--quiet", "--non-interactive", "--stealth", "--skip-hooks", "--skip-agents")
"""No hook, no commit and no file for agents: git does not see the database, and runs none of it (facts/beads.md 2)."""

_LONGEST = 300.0  # seconds
_LONGEST_PREFIX = 20


async def has_database(project: Path, bd: Path) -> bool:
    """Whether bd finds a database, here or in the main work tree; one that a kill left half made is none."""
    try:
        folder = Path((await _run_bd(project, bd, "where")).split("\n")[0])
    except AshepError:
        return False
    return await anyio.Path(folder, "metadata.json").is_file()


async def make_database(project: Path, bd: Path) -> None:
    """Make a database in `.beads` that git does not see. Raises `AshepError` with bd's words."""
    prefix = name_of(project.name.lower(), "issue", _LONGEST_PREFIX)
    await _run_bd(project, bd, "init", f"--prefix={prefix}", *INIT)


async def create_issue(project: Path, bd: Path, title: str) -> str:
    """Create a task, in the person's name, and return its id. Raises `AshepError` with bd's words."""
    return (await _run_bd(project, bd, "create", f"--title={title}", "--type=task", "--silent")).strip()


async def _run_bd(project: Path, bd: Path, *words: str) -> str:
    env = {**os.environ, "BD_DISABLE_METRICS": "1", "BD_NON_INTERACTIVE": "1", "BD_NO_PAGER": "1"}
    result = await programs.run([bd, *words], cwd=project, env=env, timeout=_LONGEST)
    if result.returncode:
        message = clean((result.stderr or result.stdout).decode(errors="replace")).strip()[:500]
        raise AshepError(f"bd {words[0]} ended with exit code {result.returncode}: {message}")
    return result.stdout.decode(errors="replace")


@dataclass(frozen=True, slots=True)
class WaitingIssue:
    """An issue that waits for work."""

    id: str
    name: str
    """As people call it: `#12`, or its id."""
    title: str


async def list_waiting(project: Path) -> tuple[WaitingIssue, ...]:
    """List what waits for work: what carries the label at GitHub, else what is ready here. Raises `AshepError`."""
    settings = settings_in(project / FOLDER)
    async with aclosing(tracker_of(project, settings, READER)) as tracker:
        if settings.sources.all:
            return await _list_asked(project, settings.sources.all[0], (await tracker.check()).prefix)
        look = await tracker.look()
    titles = {snapshot.issue.id: snapshot.text.title for snapshot in look.issues if snapshot.issue.type != "epic"}
    return tuple(WaitingIssue(issue, issue, titles[issue]) for issue in look.ready if issue in titles)


async def _list_asked(project: Path, settings: GitHubSource, prefix: str) -> tuple[WaitingIssue, ...]:
    from ashep.adapters.sources import source_of  # few have one

    async with aclosing(await source_of(project, settings)) as source:
        changed = await source.changed() or ()
    labelled = [item for item in changed if item.labelled and item.state == "open"]
    return tuple(
        WaitingIssue(source_id(prefix, source.name, item.number, several=False), f"#{item.number}", item.title)
        for item in sorted(labelled, key=lambda item: item.number)
    )
