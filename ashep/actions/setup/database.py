"""bd's database of a project: made where there is none, asked for what is ready, and given a first issue."""

import os
from contextlib import aclosing
from pathlib import Path

from ashep.adapters.system import programs
from ashep.config import settings_in
from ashep.core.policy.base_types import name_of
from ashep.core.text import clean
from ashep.errors import AshepError
from ashep.factories import FOLDER, READER, tracker_of

INIT = ("--quiet", "--non-interactive", "--stealth", "--skip-hooks", "--skip-agents")
"""No hook, no commit and no file for agents: git does not see the database, and runs none of it (facts/beads.md 2)."""

_LONGEST = 300.0  # seconds
_LONGEST_PREFIX = 20


async def make_database(project: Path, bd: Path) -> None:
    """Make a database in `.beads` that git does not see. Raises `AshepError` with bd's words."""
    prefix = name_of(project.name.lower(), "issue", _LONGEST_PREFIX)
    await _run_bd(project, bd, "init", f"--prefix={prefix}", *INIT)


async def create_issue(project: Path, bd: Path, title: str) -> str:
    """Create a task, in the name of whoever asks, and return its id. Raises `AshepError` with bd's words."""
    return (await _run_bd(project, bd, "create", f"--title={title}", "--type=task", "--silent")).strip()


async def _run_bd(project: Path, bd: Path, *words: str) -> str:
    env = {**os.environ, "BD_DISABLE_METRICS": "1", "BD_NON_INTERACTIVE": "1", "BD_NO_PAGER": "1"}
    result = await programs.run([bd, *words], cwd=project, env=env, timeout=_LONGEST)
    if result.returncode:
        said = clean((result.stderr or result.stdout).decode(errors="replace")).strip()[:500]
        raise AshepError(f"bd {words[0]} ended with exit code {result.returncode}: {said}")
    return result.stdout.decode(errors="replace")


async def list_ready(project: Path) -> tuple[tuple[str, str], ...]:
    """List what waits for work: ids and titles, in the tracker's order. Raises `AshepError`."""
    async with aclosing(tracker_of(project, settings_in(project / FOLDER), READER)) as tracker:
        look = await tracker.look()
    titles = {seen.issue.id: seen.text.title for seen in look.issues if seen.issue.type != "epic"}
    return tuple((issue, titles[issue]) for issue in look.ready if issue in titles)
