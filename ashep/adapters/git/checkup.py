"""Checkup of a repository: what would fail for every issue alike is found once, and before one is claimed."""

import os
import shutil
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import asynccontextmanager, nullcontext, suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import anyio
import anyio.to_thread

from ashep.adapters.git.program import LANDING, Git, commit_of
from ashep.adapters.git.repository import Repository
from ashep.adapters.git.trees.worktrees import Worktrees
from ashep.core.state.branches import PREFIX
from ashep.core.text import clean
from ashep.errors import AshepError, ProgramTimedOut, RepositoryLocked
from ashep.ports.repository import Upstream
from ashep.redaction import Redaction

FETCH = 60.0
"""Seconds for a fetch: one that asks somebody, or hangs, is ended then."""

TRIAL = f"{PREFIX}@trial"
"""The branch of a tree that is made to see whether one can be; no issue's is called so."""

ONTO = f"{TRIAL}-base"
"""The branch on which a trial lands."""

_PATIENCE = 600.0  # seconds to wait for another trial
_MOST = 20_000  # entries of git's folders that are looked at
_NAMED = 3
_SMALL = 10_000  # bytes of the index of a pack with a few objects
_FETCHED = "ashep/fetched"
_FOLLOWS = "%(upstream)%00%(upstream:short)%00%(upstream:remotename)%00%(upstream:remoteref)%00%(objectname)"


class GitCheckup:
    """Looks at the repository that holds the folder `project` (see the port)."""

    def __init__(
        self,
        project: Path,
        spaces: Worktrees,
        root: Path,
        *,
        remote: str | None = None,
        redaction: Redaction | None = None,
        writes: bool = True,
    ) -> None:
        """`spaces`: makes the trees of issues below `root`, without a set-up. `remote`: what a branch follows that does
        not say. `writes`: what a tree needs may be fetched and lent.
        """
        self._git, self._repository = Git(project, LANDING, redaction=redaction), Repository(project)
        self.spaces, self._root, self._remote, self._writes = spaces, root, remote, writes
        self._counted = ("", "", 0, 0)
        self._sound = ""
        """The commit from which a tree can be made, as far as was looked."""
        self.error = ""

    # --- what keeps every issue from a tree ---

    async def find_fault(self, *, thorough: bool = False) -> str:
        """Say what keeps every issue from a tree (see the port)."""
        try:
            if (commit := await commit_of(self._git, "HEAD")) is None:
                return ""  # a hold of its own says that nothing is committed yet
            if obstacle := await self._find_obstacle(commit):
                return obstacle
            async with self.trial() if thorough else nullcontext():
                if commit != self._sound:
                    await self.spaces.check(commit, writes=self._writes, reads=not self._sound)
                    self._sound = commit
                if thorough:
                    await self.spaces.prepare(TRIAL, commit, 0)
        except (ProgramTimedOut, RepositoryLocked):
            raise
        except (AshepError, OSError) as error:
            return " ".join(str(error).split())[:1000]
        return ""

    async def _find_obstacle(self, commit: str) -> str:
        common, name = await self._git.common(), PREFIX.rstrip("/")
        words = ("show-ref", "--verify", "--quiet", f"refs/heads/{name}")
        if (await self._git.bare(*words, accepted=(0, 1, 128))).returncode == 0:
            return (
                f"the branch `{name}` is in the way: git keeps no branch of an issue, `{PREFIX}t-1` say, next to it. "
                f"Give it another name: `git branch -m {name} {name}-old`"
            )
        root = await anyio.to_thread.run_sync(_nearest, self._root)
        closed = await anyio.to_thread.run_sync(lambda: list(islice(_closed(common, root), _NAMED + 1)))
        if closed:
            named = ", ".join(clean(str(one)) for one in closed[:_NAMED]) + (" …" if len(closed) > _NAMED else "")
            who = f"the user who runs ashep (uid {os.geteuid()})"
            return f"{named} cannot be written to by {who}. Give the rights back: `chown -R`, or `chmod -R u+rwX`"
        if await anyio.to_thread.run_sync(lambda: _is_caseless(common) or _is_caseless(root)):
            printed = (await self._git.bare("ls-tree", "-r", "-t", "-z", "--full-tree", "--name-only", commit)).stdout
            if same := _same_but_for_case(printed.decode(errors="replace").split("\0")[:-1]):
                return f"{same} differ by case alone, which this disk does not tell apart. Rename one of them"
        return ""

    @asynccontextmanager
    async def trial(self) -> AsyncGenerator[None]:
        """Have the branches of a trial alone; what is made there goes afterwards, what a killed one left before."""
        above = await anyio.to_thread.run_sync(_nearest, self._root)
        fresh = above if above != self._root else None
        async with self._repository.hold(".trial", _PATIENCE):
            await self._clean_up(None)
            try:
                yield
            finally:
                with anyio.CancelScope(shield=True):
                    await self._clean_up(fresh)

    async def _clean_up(self, fresh: Path | None) -> None:
        with suppress(AshepError):  # it was not made
            await self.spaces.remove(TRIAL, forget=True, drop_ignored=True)
        listed = await self._git.word("for-each-ref", "--format=%(refname)", f"refs/heads/{PREFIX}", "refs/ashep/")
        if lines := [f"delete {ref}\n" for ref in listed.splitlines() if TRIAL in ref]:
            await self._git.bare("update-ref", "--no-deref", "--stdin", stdin=os.fsencode("".join(lines)))
        common = await self._git.common()

        await anyio.to_thread.run_sync(_forget, common, self._root, fresh)

    # --- the branch of a remote ---

    async def read_upstream(self, base: str) -> Upstream | None:
        """Compare a branch with the one that it follows (see the port)."""
        follows = await self._follows(base)
        if follows is None or not follows.commit or (theirs := await commit_of(self._git, follows.ref)) is None:
            return None
        if self._counted[:2] != (follows.commit, theirs):
            counted = await self._git.word("rev-list", "--left-right", "--count", f"{follows.commit}...{theirs}")
            ahead, behind = map(int, counted.split())
            self._counted = (follows.commit, theirs, ahead, behind)
        common = await self._git.common()
        files = [common / name for name in ("FETCH_HEAD", f"logs/{follows.ref}", _FETCHED)]
        times = await anyio.to_thread.run_sync(lambda: [one.stat().st_mtime for one in files if one.exists()])
        at = datetime.fromtimestamp(int(max(times)), UTC) if times else None
        return Upstream(follows.name, *self._counted[2:], at)

    async def fetch(self, base: str) -> str | None:
        """Fetch what a branch follows (see the port)."""
        if (follows := await self._follows(base)) is None:
            return None
        words = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--refmap=", "--")
        refspec = f"+{follows.theirs}:{follows.ref}"  # of a remote's branch alone: whatever is set, no other moves
        try:
            done = await self._git.bare(*words, follows.remote, refspec, accepted=None, timeout=FETCH)
            said = " ".join(self._git.said(done).split())[:300] if done.returncode else ""
        except ProgramTimedOut:
            said = f"it did not answer in {FETCH:g} s, or asked somebody who is not there"
        self.error = f"{follows.remote} cannot be fetched: {said}" if said else ""
        if not said:
            marker = anyio.Path(await self._git.common(), _FETCHED)
            with suppress(OSError):  # then nobody knows when it was
                await marker.parent.mkdir(exist_ok=True)
                await marker.touch()
        return await commit_of(self._git, follows.ref)

    async def has_fetched(self, base: str, commit: str) -> bool:
        """Whether what a branch follows holds a commit (see the port)."""
        follows = await self._follows(base)
        words = ("merge-base", "--is-ancestor", commit)
        return follows is not None and (await self._git.bare(*words, follows.ref, accepted=None)).returncode == 0

    async def find_remote(self, base: str) -> str | None:
        """Give the remote of the branch that another follows; None: it follows none."""
        follows = await self._follows(base)
        return None if follows is None else follows.remote

    async def begin(self, branch: str, commit: str) -> None:
        """Make the branch of a trial."""
        await self._repository.update_refs([f"create refs/heads/{branch} {commit}"])

    async def new_objects(self, file: str) -> set[str]:
        """Name the commits of a trial, and what in them holds its file: nobody else's are the same, as it is random."""
        parts = f"{(await self._repository.folders()).prefix}{file}".split("/")
        paths = ["/".join(parts[:number]) for number in range(len(parts) + 1)]
        branches = [f"refs/heads/{TRIAL}", f"refs/heads/{ONTO}"]
        names = [f"{branch}:{path}" for branch in branches for path in paths]
        return {*(await self._git.word("rev-parse", *branches, *names)).split()}

    async def delete(self, objects: set[str]) -> None:
        """Delete objects that no ref names any more, loose ones and packs that hold nothing else."""
        store, files = await self._git.common() / "objects", list[Path]()

        def read_small() -> list[tuple[Path, bytes]]:
            found = (store / "pack").glob("*.idx")
            return [(one, one.read_bytes()) for one in found if one.stat().st_size <= _SMALL]

        for index, content in await anyio.to_thread.run_sync(read_small):
            listed = await self._git.raw("show-index", stdin=content) or b""
            if {line.split()[1].decode() for line in listed.splitlines()} <= objects:
                files += [index.with_suffix(suffix) for suffix in (".idx", ".pack", ".rev")]
        files += [store / one[:2] / one[2:] for one in objects]

        def unlink() -> None:
            for file in files:
                file.unlink(missing_ok=True)
                if file.parent.name != "pack":
                    with suppress(OSError):
                        file.parent.rmdir()

        await anyio.to_thread.run_sync(unlink)

    async def _follows(self, base: str) -> "_Follows | None":
        printed = await self._git.word("for-each-ref", f"--format={_FOLLOWS}", f"refs/heads/{base}") if base else ""
        if not base or not (printed or self._remote):
            return None
        ref, name, remote, theirs, commit = (printed.splitlines() or ["\0" * 4])[0].split("\0")
        if not ref and self._remote:
            ref, name, remote = f"refs/remotes/{self._remote}/{base}", f"{self._remote}/{base}", self._remote
        theirs = theirs or f"refs/heads/{base}"
        return _Follows(ref, name, remote, theirs, commit) if ref.startswith("refs/remotes/") else None


def _forget(common: Path, root: Path, fresh: Path | None) -> None:
    """Take away what is left of a trial. `fresh`: nobody had a tree before, so that all of ours below it may go."""
    (common / "ashep" / "locks" / quote(TRIAL, safe="")).unlink(missing_ok=True)
    if fresh is None or (root.is_dir() and any(not one.startswith(".") for one in os.listdir(root))):
        return
    for name in (".trial", ".lender"):
        (common / "ashep" / "locks" / name).unlink(missing_ok=True)
    shutil.rmtree(root, ignore_errors=True)
    for folder in root.parents[: root.parents.index(fresh)]:
        with suppress(OSError):
            folder.rmdir()
    for top in ("ashep", "refs/ashep", "refs/heads/ashep", "logs/refs/ashep", "logs/refs/heads/ashep", "worktrees"):
        for folder, _, _ in os.walk(common / top, topdown=False):
            with suppress(OSError):
                os.rmdir(folder)


class _Follows(NamedTuple):
    """A branch, and the branch of a remote that it follows."""

    ref: str
    """Where that is kept here."""
    name: str
    remote: str
    theirs: str
    """The ref at the remote."""
    commit: str
    """The branch's own; empty: it is not here."""


def _closed(common: Path, root: Path) -> Iterator[Path]:
    """Give the folders, and logs of refs, that a tree needs to be written to and that may not be."""
    yield from (one for one in (root, common) if not os.access(one, os.R_OK | os.W_OK | os.X_OK))
    left = _MOST
    for top in ("objects", "refs", "logs", "ashep", "worktrees"):
        for folder, below, files in os.walk(common / top):
            left -= 1 + len(files)
            if left < 0:
                return
            if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
                yield Path(folder)
            if top == "logs":
                yield from (file for name in files if not os.access(file := Path(folder, name), os.W_OK))
            if top in ("objects", "worktrees") and folder != str(common / top):
                below.clear()


def _nearest(folder: Path) -> Path:
    return next(one for one in (folder, *folder.parents) if one.exists())


def _is_caseless(folder: Path) -> bool:
    """Whether a disk takes names for the same that differ by case alone."""
    other = folder.with_name(folder.name.swapcase())
    return other != folder and other.exists() and other.samefile(folder)


def _same_but_for_case(paths: Iterable[str]) -> str:
    known = dict[str, str]()
    pairs = ((known.setdefault(path.casefold(), path), path) for path in paths)
    return next((f"{clean(one)} and {clean(other)}" for one, other in pairs if one != other), "")
