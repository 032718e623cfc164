"""The user's work tree, read by way of the git program; nothing here writes to it, its index or its settings."""

import hashlib
import os
import posixpath
import re
import stat
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Literal

import anyio.to_thread

from ashep.adapters.git.command import ABSENT, MOST_COMMITS, MOST_DIFF, PATCH, SHA, STAT, Git, capped, changed, history
from ashep.adapters.git.tree_scan import OWN
from ashep.core.facts.delivery import Tree
from ashep.core.text import clean
from ashep.ports.workspaces import Changes, Commit
from ashep.redaction import Redaction

_FIELDS = {"1": 8, "2": 9, "u": 10}
"""How many fields stand before the path in a line of porcelain v2, by its kind."""


class GitTree:
    """The work tree that holds the folder `project`; each call of git is bound by `timeout` seconds.

    Errors: `ProgramMissing` without git, `ProgramTimedOut`, and `AshepError` with git's words for everything else.
    """

    def __init__(self, project: Path, timeout: float = 30.0, redaction: Redaction | None = None) -> None:
        self._git = Git(project, timeout=timeout, redaction=redaction)
        self._place: tuple[str, str] | None = None

    async def read(self) -> Tree:
        """Read HEAD and what differs from it; ashep's own files and bd's don't count."""
        place = await self._find()
        if place is None:
            return Tree(present=False)
        top, prefix = place
        status = await self._git.redacted(
            "status", "--porcelain=v2", "--branch", "-z", "--untracked-files=normal", "--no-ahead-behind"
        )
        entries = list(_entries(os.fsdecode(status)))
        kept = [(kind, path) for kind, path in entries if kind in ("head", "branch") or not _is_ours(path, prefix)]
        dirty = sorted({path for kind, path in kept if kind == "dirty"})
        hashes = await anyio.to_thread.run_sync(lambda: [_content(Path(top, path)) for path in dirty])
        return Tree(
            present=True,
            head=next((word for kind, word in kept if kind == "head" and SHA.fullmatch(word)), None),
            dirty=tuple((_clean_path(path), content) for path, content in zip(dirty, hashes, strict=True)),
            untracked=tuple(sorted(_clean_path(path) for kind, path in kept if kind == "untracked")),
            branch=next((word for kind, word in kept if kind == "branch" and word != "(detached)"), None),
        )

    async def uncommitted(self, paths: Collection[str]) -> dict[str, Literal["new", "changed"]]:
        """Say of these files below the project which HEAD does not have at all, and which it has otherwise.

        Nothing outside of a repository. One call of git, next to the first, which finds the repository.
        """
        place = await self._find()
        if place is None or not paths:
            return {}
        words = ("--porcelain=v1", "-z", "--untracked-files=all", "--ignored=matching", "--no-renames")
        folders = sorted({posixpath.dirname(path) or "." for path in paths})
        printed = await self._git.raw("--literal-pathspecs", "status", *words, "--", *folders)
        lines = {line[3:]: line[0] for line in os.fsdecode(printed).split("\0") if line}
        within = tuple(line for line in lines if line.endswith("/"))  # folders that are ignored
        told = dict[str, Literal["new", "changed"]]()
        for path in paths:
            whole = place[1] + path
            if (code := "!" if whole.startswith(within) else lines.get(whole)) is not None:
                told[path] = "new" if code in "?!A" else "changed"
        return told

    async def _find(self) -> tuple[str, str] | None:
        """Find the work tree's top and the project's place in it, once: a project's folder stays where it is."""
        if self._place is None or not await anyio.Path(self._place[0], ".git").exists():
            found = await self._git.redacted("rev-parse", "--show-toplevel", "--show-prefix", absent=ABSENT)
            top, prefix = (os.fsdecode(found).split("\n") if found else ["", ""])[:2]
            self._place = (top, prefix) if found else None
        return self._place

    async def head(self) -> str | None:
        """Give HEAD alone, which costs no look at the files; None where there is none, for whatever reason."""
        none = re.compile(rf"^$|{ABSENT.pattern}")
        found = await self._git.redacted("rev-parse", "--verify", "--quiet", "HEAD", absent=none)
        head = found.decode().strip()
        return head if SHA.fullmatch(head) else None

    async def changes(
        self, base: str | None, issue: str, commits: tuple[str, ...], left_over: tuple[str, ...]
    ) -> Changes:
        """Collect the issue's commits and left-over files, and what they changed."""
        head = None if left_over else await self.head()
        tree = Tree(present=True, head=head) if head else await self.read()
        if not tree.present:
            return Changes()
        moved = base is not None and tree.head is not None and base != tree.head and SHA.fullmatch(base)
        after = await self._log(f"{base}..HEAD") if moved else []
        named = [commit for commit, runs in after if any(run.split("/")[0] == issue for run in runs)]
        given = [commit for commit, _ in await self._log("--no-walk=unsorted", *filter(SHA.fullmatch, commits))]
        all_of_them = {commit.sha: commit for commit in [*given, *reversed(named)]}
        left = tuple(path for path, _ in tree.dirty if path in left_over)
        stat = await self._list_changes(STAT, *all_of_them)
        patches = await self._list_changes(PATCH, *all_of_them)
        if left and tree.head:
            paths = [f":(top,literal){path}" for path in left]
            uncommitted = await changed(self._git, PATCH, "diff", "HEAD", paths=paths)
            patches = capped(f"{patches}\n{uncommitted}".strip("\n"), MOST_DIFF)
        return Changes(commits=tuple(all_of_them.values()), stat=stat, left_over=left, diff=patches)

    async def between(self, before: str | None, after: str | None) -> tuple[str, ...]:
        """List the commits after `before` up to `after`, the newest thousand of them."""
        ends = [before or "", after or ""]
        if before == after or not all(map(SHA.fullmatch, ends)):
            return ()
        unknown = re.compile(r"fatal: (?:bad object|Invalid revision range|not a git repository)")
        found = await self._git.redacted(
            "rev-list", "--reverse", f"--max-count={MOST_COMMITS}", f"{before}..{after}", "--", absent=unknown
        )
        return tuple(found.decode().split())

    async def _log(self, *what: str) -> list[tuple[Commit, tuple[str, ...]]]:
        """Give commits with the runs that they name; those that the repository does not have are left out."""
        if what == ("--no-walk=unsorted",):
            return []  # without a revision git would take HEAD
        unknown = re.compile(r"fatal: (?:bad object|Invalid revision range)")
        return await history(self._git, "--ignore-missing", *what, absent=unknown)

    async def _list_changes(self, form: str, *commits: str) -> str:
        what = ("log", "--no-walk=unsorted", "--format=", *commits)
        return await changed(self._git, form, *what) if commits else ""


def _entries(status: str) -> Iterator[tuple[str, str]]:
    """Read `git status --porcelain=v2 -z`: pairs of head, dirty or untracked, and the commit or path."""
    fields = iter(status.split("\0"))
    for field in fields:
        kind, _, rest = field.partition(" ")
        if kind in _FIELDS:
            yield "dirty", field.split(" ", _FIELDS[kind])[-1]
            if kind == "2":  # a rename or copy: the former path follows as a field of its own
                yield "dirty", next(fields)
        elif kind == "?":
            yield "untracked", rest
        elif rest.startswith("branch.oid "):
            yield "head", rest.removeprefix("branch.oid ")
        elif rest.startswith("branch.head "):
            yield "branch", rest.removeprefix("branch.head ")


def _is_ours(path: str, prefix: str) -> bool:
    """Say whether a path is of bd's database or of ashep's state; what people edit, the policies, is not."""
    return f"{path.removeprefix(prefix)}/".startswith(tuple(f"{own}/" for own in OWN))


def _content(path: Path) -> str:
    """Hash what stands at a path now: a file's bytes, a link's target; a folder there is a submodule."""
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            return hashlib.sha256(os.fsencode(path.readlink())).hexdigest()
        if not stat.S_ISREG(mode):
            return "folder" if stat.S_ISDIR(mode) else "special"
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        return "deleted"
    except OSError as error:
        return f"unreadable ({error.strerror})"


def _clean_path(path: str) -> str:
    return clean(os.fsencode(path).decode(errors="replace"))
