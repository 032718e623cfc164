"""Commands about the work trees of issues: trees list, open, remove, gc."""

import json
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import anyio
import anyio.to_thread
import typer

from ashep.actions.replay import recorded
from ashep.adapters.git.workspaces.router import GitWorkspaces
from ashep.adapters.system.control_socket import NotListening, ask
from ashep.cli import output
from ashep.cli.commands import Issue, Json, example, group, project_of
from ashep.cli.context import configured, current_time, picture
from ashep.cli.output import counted
from ashep.config import settings_in
from ashep.core.resources.retention import why_kept
from ashep.core.state.branches import PREFIX, branch_of, issue_of
from ashep.core.state.immutable import replace
from ashep.errors import AshepError
from ashep.factories import worktrees_of
from ashep.journal.archive import aged, look
from ashep.journal.lock import holder
from ashep.journal.reader import path_of
from ashep.ports.workspaces import WorkspaceInfo
from ashep.views.times import local, span

trees = group("trees", alone=True)

COLUMNS = ("BRANCH", "ISSUE", "MiB", "USED", "IN IT", "PATH")

_MIB = 1024**2

Unused = Callable[[], Awaitable[None]]
"""Raises where a run is under way in a tree."""

Ignored = Annotated[
    bool, typer.Option("--drop-ignored", help="Don't save files that git ignores, such as what was built.")
]

DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done, and change nothing.")]


@trees.callback(epilog=example("ashep trees", "ashep trees --json", 'cd "$(ashep trees open t-1)"'))
def everything(context: typer.Context, as_json: Json = False) -> None:
    """Look at the work trees of issues. Without a command: list them."""
    if context.invoked_subcommand is None:
        _list(context, as_json)


@trees.command(name="list", epilog=example("ashep trees list", "ashep trees list --json"))
def list_trees(context: typer.Context, as_json: Json = False) -> None:
    """List the work trees of issues: branch, where its issue stands, MiB on the disk, how long ago it was used, and
    whether something in it is not committed, and whether its commits are all in the base branch (merged), or what they
    bring is (landed: squashed or rebased).
    """
    _list(context, as_json)


@trees.command(name="open", epilog=example("ashep trees open t-1", 'cd "$(ashep trees open t-1)"'))
def open_tree(context: typer.Context, issue: Issue, as_json: Json = False) -> None:
    """Print the path of an issue's tree. One that was taken away is made again, and set up, from its branch.

    ISSUE may be a branch, too. Exit code 1: there is neither a tree nor a branch.
    """
    spaces = _spaces(context)
    branch = _branch(issue)
    if not anyio.run(spaces.knows, branch):
        raise AshepError(
            f"there is no branch {branch}, and no tree: nothing was worked on {issue} in a tree of its own"
        )
    prepared = anyio.run(spaces.prepare, branch, None, 0)
    if as_json:
        output.data({"branch": branch, "path": prepared.path, "base": prepared.base, "head": prepared.head})
    else:
        output.say(prepared.path)


@trees.command(
    epilog=example("ashep trees remove t-1 --dry-run", "ashep trees remove t-1", "ashep trees remove t-1 --json")
)
def remove(
    context: typer.Context, issue: Issue, dry_run: DryRun = False, drop_ignored: Ignored = False, as_json: Json = False
) -> None:
    """Take an issue's tree away. Its branch stays, and what is on no branch is saved below refs/ashep/saved.

    ISSUE may be a branch, too. Exit code 1: there is none, a run is under way in it, or something cannot be saved.
    """
    spaces, branch = _spaces(context), _branch(issue)
    found = next((one for one in anyio.run(spaces.list) if one.branch == branch), None)
    if found is None:
        raise AshepError(f"{branch} has no work tree; `ashep trees` lists those that stand")
    told = _collect(spaces, found, _unused(context, branch), forget=False, dry_run=dry_run, drop_ignored=drop_ignored)
    if as_json:
        output.data({"dry_run": dry_run, **told})
        return
    would = "would be " if dry_run else ""
    output.say(f"{found.path} {would}removed: {_mib(told['bytes'])} MiB; the branch {branch} stays")
    if dry_run and found.dirty:
        output.say(f"what is not committed in it would be saved below refs/ashep/saved/{branch}")
    _say_saved(told["saved"])


@trees.command(epilog=example("ashep trees gc --dry-run", "ashep trees gc", "ashep trees gc --json"))
def gc(context: typer.Context, dry_run: DryRun = False, drop_ignored: Ignored = False, as_json: Json = False) -> None:
    """Take away the tree, and the branch, of each issue that is closed and whose branch the base branch holds.

    What landed squashed or rebased counts, if nothing in its tree is uncommitted. Everything else is saved first, below
    refs/ashep/saved. What is kept is said, and why; and what the daemon takes away by itself, and when (`trees.keep`);
    with --dry-run the files of the journal, too, where `journal.keep` is a duration.
    Exit code 1: a tree that should have gone could not be saved.
    """
    spaces = _spaces(context)
    states, landed, due = _read_states(context)
    standing = anyio.run(spaces.list, landed)
    gone, kept, failed = list[dict[str, Any]](), list[dict[str, str]](), False
    for one in standing:
        if why := _explain_keeping(one, states):
            kept.append({"branch": one.branch, "why": why})
            continue
        try:
            unused = _unused(context, one.branch)
            gone.append(_collect(spaces, one, unused, forget=True, dry_run=dry_run, drop_ignored=drop_ignored))
        except AshepError as error:
            failed = True
            kept.append({"branch": one.branch, "why": str(error)})
    told: dict[str, Any] = {"dry_run": dry_run, "removed": gone, "kept": kept}
    told["bytes"] = sum(one["bytes"] for one in gone)
    went = {one["branch"] for one in gone} if not dry_run else set[str]()
    told["by_itself"] = [one for one in due if one["branch"] not in went]
    told["journal"] = _journal(context) if dry_run else None
    if as_json:
        output.data(told)
    else:
        _say_collected(told)
    raise typer.Exit(1 if failed else 0)


def _collect(
    spaces: GitWorkspaces, one: WorkspaceInfo, unused: Unused, *, forget: bool, dry_run: bool, drop_ignored: bool
) -> dict[str, Any]:
    if dry_run:
        anyio.run(unused)
        return {"branch": one.branch, "path": one.path, "bytes": one.size, "saved": []}
    removed = anyio.run(partial(spaces.remove, one.branch, forget=forget, drop_ignored=drop_ignored, unless=unused))
    return {"branch": one.branch, "path": one.path, "bytes": removed.freed, "saved": list(removed.saved)}


def _say_collected(told: dict[str, Any]) -> None:
    word = "would go" if told["dry_run"] else "removed"
    for one in told["removed"]:
        output.say(
            f"{word}: {one['branch']}, {_mib(one['bytes'])} MiB, with its branch; its issue is closed and merged"
        )
        _say_saved(one["saved"])
    for one in told["kept"]:
        output.say(f"kept: {one['branch']}: {one['why']}")
    for one in told["by_itself"]:
        before = f"; it was kept before: {one['why']}" if one["why"] else ""
        output.say(f"by itself: {one['branch']} is to go {local(one['due'])}, if nothing is lost by that{before}")
    if told["journal"] is not None:
        _say_journal(told["journal"])
    output.say(f"{counted(len(told['removed']), 'tree')} {word}, {_mib(told['bytes'])} MiB; {len(told['kept'])} kept")


# --- what is there ---


def _spaces(context: typer.Context) -> GitWorkspaces:
    project = project_of(context)
    return worktrees_of(project, settings_in(configured(project)))


def _branch(issue: str) -> str:
    return issue if issue.startswith(PREFIX) else branch_of(issue)


def _read_states(context: typer.Context) -> tuple[dict[str, str], dict[str, str], list[dict[str, str]]]:
    """Say where each issue stands, as the picture of the journal shows it; which commits landed, each with the base's
    commit that held its work then; and which trees the daemon is to take away, when, and why it did not before.
    """
    with picture(configured(project_of(context)) / "state") as seen:
        if seen.database is None:
            return {}, {}, []
        issues = seen.database.execute("SELECT issue, state, body FROM issues").fetchall()
        facts = seen.database.execute("SELECT body FROM facts WHERE type = 'WorkLanded' ORDER BY seq")
        landed = {body["head"]: body["commit"] for body in (json.loads(row["body"]) for row in facts)}
    trees = (json.loads(row["body"]).get("tree") for row in issues)
    due = sorted((tree for tree in trees if tree and tree["due"]), key=lambda one: (one["due"], one["branch"]))
    return {row["issue"]: row["state"] for row in issues}, landed, due


def _journal(context: typer.Context) -> dict[str, Any] | None:
    """Say which files of the journal the daemon would delete now, and why it keeps the next one that is old enough."""
    project, at = project_of(context), current_time()
    settings, state = settings_in(configured(project)), configured(project) / "state"
    keep = settings.journal.keep
    if not isinstance(keep, timedelta) or not (state / "journal").is_dir():
        return None
    world = replace(recorded(state), settings=settings)  # as the next start has them
    folder, gone, size, why = state / "journal", list[str](), 0, ""
    for name in aged(folder, at - keep):
        if why := why_kept(world, look(folder, name), at):
            why = f"{name}: {why}"
            break
        gone.append(name)
        size += path_of(folder, name).stat().st_size
    return {"files": gone, "bytes": size, "kept": why}


def _say_journal(told: dict[str, Any]) -> None:
    if told["files"]:
        more = f" to {told['files'][-1]}" if len(told["files"]) > 1 else ""
        names = f"{told['files'][0]}{more}, {_mib(told['bytes'])} MiB"
        output.say(f"by itself: the journal's {names}, with the texts, rows and lines that belong to them alone")
    if told["kept"]:
        output.say(f"kept: the journal from {told['kept']}")


def _explain_keeping(one: WorkspaceInfo, states: dict[str, str]) -> str:
    """Say why a tree is kept; empty: it can go."""
    issue = issue_of(one.branch)
    if issue is None or issue not in states:
        return "no issue of that name is known here"
    if states[issue] != "closed":
        return f"its issue is not closed ({states[issue]})"
    if one.landed:
        return "it landed, but something in its tree is not committed" if one.dirty else ""
    return "" if one.merged else "its branch has commits that the base branch does not hold"


def _list(context: typer.Context, as_json: bool) -> None:
    states, landed, _ = _read_states(context)
    standing = anyio.run(_spaces(context).list, landed)
    if as_json:
        output.data({"trees": [_as_json(one, states) for one in standing], "bytes": sum(one.size for one in standing)})
        return
    if not standing:
        output.note("there are no work trees of issues")
        return
    at, size = current_time(), _mib(sum(one.size for one in standing))
    output.table(COLUMNS, [_row(one, states, at) for one in standing])
    output.say(f"{counted(len(standing), 'tree')}, {size} MiB; `ashep trees gc --dry-run` says what could go")


def _as_json(one: WorkspaceInfo, states: dict[str, str]) -> dict[str, Any]:
    issue = issue_of(one.branch)
    return {
        "branch": one.branch, "issue": issue, "state": states.get(issue or ""), "path": one.path, "base": one.base,
        "head": one.head, "dirty": one.dirty, "merged": one.merged, "landed": one.landed, "bytes": one.size,
        "used": one.used.isoformat(),
    }  # fmt: skip


def _row(one: WorkspaceInfo, states: dict[str, str], at: datetime) -> tuple[str, ...]:
    words = ["uncommitted"] if one.dirty else []
    words += ["merged"] if one.merged else ["landed"] if one.landed else []
    age = f"{span(max(0.0, (at - one.used).total_seconds()))} ago"
    return (one.branch, states.get(issue_of(one.branch) or "", ""), _mib(one.size), age, ", ".join(words), one.path)


def _mib(size: int) -> str:
    return f"{size / _MIB:.1f}"


def _say_saved(refs: list[str]) -> None:
    for ref in refs:
        output.say(f"  saved: {ref}")


# --- who works in it ---


def _unused(context: typer.Context, branch: str) -> Unused:
    """Give what raises where a run is under way in a branch's tree; asked while the branch is held, it stays true."""
    state = configured(project_of(context)) / "state"

    async def ask() -> None:
        for run in await anyio.to_thread.run_sync(_runs, state):
            if issue_of(branch) in (run.rsplit("/", 1)[0], None):
                raise AshepError(
                    f"{run} is under way, and may work in the tree of {branch}; wait for its end (`ashep drain`), or "
                    f"`ashep cancel` it"
                )

    return ask


def _runs(state: Path) -> list[str]:
    if holder(state) is None:
        return []
    try:
        return [str(run) for run in ask(state, {"do": "ask"})["runs"]]
    except NotListening as error:
        raise AshepError("the daemon has only begun, and does not say what is under way; try again") from error
