"""Names of issues as people type them: `#12`, `12`, `gh-12` or a part of the id. It only looks into the database."""

from pathlib import Path


def known_ids(project: Path | None) -> list[str]:
    """Give the ids of all issues that are known; none where nothing was drawn yet."""
    import sqlite3  # the help needs none of it
    from contextlib import closing, suppress

    from ashep.cli.context import FOLDER, find_project
    from ashep.errors import AshepError
    from ashep.store.sqlite_reader import open_read_only

    with suppress(AshepError, sqlite3.Error, OSError):
        state = find_project(project) / FOLDER / "state"
        if (state / "ashep.db").is_file():
            with closing(open_read_only(state)) as database:
                return [row[0] for row in database.execute("SELECT issue FROM issues ORDER BY issue")]
    return []


def whole(project: Path | None, name: str) -> str:
    """Give the id that is meant; a run's id begins with its issue's. Raises `UsageError` where it may be several."""
    from ashep.core.text import issues_named, list_names
    from ashep.errors import UsageError

    issue, slash, run = name.partition("/")
    if slash and issue.isalpha():
        return name  # a branch
    ids = issues_named(issue, known_ids(project))
    if len(ids) > 1:
        raise UsageError(f"{issue} names several issues: {list_names(ids, 10)}. Type the whole id")
    return f"{ids[0]}{slash}{run}"
