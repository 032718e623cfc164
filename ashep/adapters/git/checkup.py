"""Checkup of a repository: what would fail for every issue alike is found once, and before one is claimed."""

import os
from collections.abc import AsyncGenerator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import anyio
from anyio import to_thread

from ashep.adapters.git.command import LANDING, Git, commit_of
from ashep.adapters.git.objects import holds
from ashep.adapters.git.repository import Repository
from ashep.adapters.git.workspaces.linked import Worktrees
from ashep.adapters.system.folders import delete, walk
from ashep.core.facts.delivery import RepositorySeen
from ashep.core.state.branches import PREFIX, file_of
from ashep.core.text import clean
from ashep.errors import AshepError, ProgramTimedOut, RepositoryLocked
from ashep.ports.workspaces import Prepared
from ashep.redaction import Redaction

FETCH = 60.0  # seconds for a fetch. One that asks somebody, or hangs, ends then
TRIAL, ONTO = f"{PREFIX}@trial", f"{PREFIX}@trial-base"  # branches of a trial, and on which it lands: no issue's
FILE = "ashep-install-trial"  # what a trial commits, with random bytes: nobody else's commits and trees are the same
_PATIENCE = 600.0  # seconds to wait for another trial
_MOST = 20_000  # entries of each of git's folders that are looked at
_SMALL = 10_000  # bytes of the index of a pack with a few objects
_FETCHED = "ashep/fetched"
_FOLLOWS = "%(upstream)%00%(upstream:short)%00%(upstream:remotename)%00%(upstream:remoteref)%00%(objectname)"
_WRITTEN = {"objects": "*", "worktrees": "*", "ashep": "**/", "refs": "**/", "logs": "**/*"}
"""Git's folders, and what in them a tree is written to."""
_MADE = ("ashep", "refs/ashep", "refs/heads/ashep", "logs/refs/ashep", "logs/refs/heads/ashep", "worktrees")
"""Folders that the first tree makes there."""


class _Follows(NamedTuple):
    """A branch of a remote that another follows: its ref and name here, the remote, its ref there.

    `commit`: that of the branch that follows; empty: it is not here.
    """

    ref: str
    name: str
    remote: str
    theirs: str
    commit: str


class GitCheckup:
    """Looks at the repository that holds the folder `project` (see the port)."""

    def __init__(
        self,
        project: Path,
        spaces: Worktrees,
        *,
        remote: str | None = None,
        redaction: Redaction | None = None,
        writes: bool = True,
    ) -> None:
        """`spaces`: makes the trees of issues, without a set-up. `remote`: what a branch follows that has no upstream.
        `writes`: False asks a remote and fetches nothing, and makes no tree but in a trial.
        """
        self._git, self._repository = Git(project, LANDING, redaction=redaction), Repository(project)
        self.spaces, self._root, self._remote, self._writes = spaces, spaces.root, remote, writes
        self._sound = self._error = ""  # a commit from which a tree can begin; why the last fetch failed

    async def look(self, base: str, merges: Sequence[str] = (), *, thorough: bool = False) -> RepositorySeen:
        try:
            fault = await self._find_fault(thorough=thorough)
        except (ProgramTimedOut, RepositoryLocked):
            raise
        except (AshepError, OSError) as error:
            fault = " ".join(str(error).split())[:1000]
        if (follows := await self._find_upstream(base)) is None or await commit_of(self._git, follows.ref) is None:
            return RepositorySeen(fault, error=self._error)
        there = [commit for commit in merges if await commit_of(self._git, commit) is not None]
        arrived = tuple([commit for commit in there if await holds(self._git, follows.ref, commit)])
        return RepositorySeen(fault, await self._compare(base, follows), self._error, arrived)

    # --- what keeps every issue from a tree ---

    async def _find_fault(self, *, thorough: bool) -> str:
        if (commit := await commit_of(self._git, "HEAD")) is None:
            return ""  # a hold of its own tells that nothing is committed yet
        if obstacle := await self._find_obstacle(commit):
            return obstacle
        if thorough:
            async with self.trial(commit):
                self._sound = commit
        elif commit != self._sound:
            await self.spaces.check(commit, writes=self._writes, reads=not self._sound)
            self._sound = commit
        return ""

    async def _find_obstacle(self, commit: str) -> str:
        common, name = await self._git.common(), PREFIX.rstrip("/")
        if await commit_of(self._git, f"refs/heads/{name}") is not None:
            return (
                f"the branch `{name}` is in the way: git keeps no branch of an issue, `{PREFIX}t-1` say, next to it. "
                f"Give it another name: `git branch -m {name} {name}-old`"
            )
        root = await to_thread.run_sync(_find_above, self._root)
        if closed := await to_thread.run_sync(_find_closed, common, root):
            folders = ", ".join(clean(str(path)) for path in closed[:3]) + (" …" if closed[3:] else "")
            user = f"the user who runs ashep (uid {os.geteuid()})"
            return f"{folders} cannot be written to by {user}. Give the rights back: `chown -R`, or `chmod -R u+rwX`"
        if await to_thread.run_sync(lambda: _is_caseless(common) or _is_caseless(root)):
            listed = await self._git.bare("ls-tree", "-r", "-t", "-z", "--full-tree", "--name-only", commit)
            folded = dict[str, str]()
            for path in listed.stdout.decode(errors="replace").split("\0")[:-1]:
                if (other := folded.setdefault(path.casefold(), path)) != path:
                    both = f"{clean(other)} and {clean(path)}"
                    return f"{both} differ by case alone, which this disk does not tell apart. Rename one of them"
        return ""

    # --- a trial ---

    @asynccontextmanager
    async def trial(self, commit: str) -> AsyncGenerator[Prepared]:
        """Have a tree at a commit, and the branch `ONTO`. All that is made goes, and what a killed trial left."""
        above = await to_thread.run_sync(_find_above, self._root)
        async with self._repository.hold(".trial", _PATIENCE):
            await self._remove()
            try:
                await self._repository.update_refs([f"create refs/heads/{ONTO} {commit}"])
                yield await self.spaces.prepare(TRIAL, commit, 0)
            finally:
                with anyio.CancelScope(shield=True):
                    path = f"{(await self._repository.folders()).prefix}{FILE}"
                    words = ("rev-list", "--objects", "--no-object-names", "--full-history", "--sparse")
                    words += (f"--branches={TRIAL}*", "--not", commit, "--", path)
                    made = await self._git.bare(*words, accepted=None)
                    await self._remove({*made.stdout.decode().split()})
                    if above != self._root:  # nobody had a tree before
                        await to_thread.run_sync(_delete_folders, await self._git.common(), self._root, above)

    async def _remove(self, objects: AbstractSet[str] = frozenset()) -> None:
        """Remove the trees and refs of trials, then objects: loose ones, and packs that hold nothing else."""
        with suppress(AshepError):  # there is no tree
            await self.spaces.remove(TRIAL, forget=True, drop_ignored=True)
        refs = await self._repository.refs(f"refs/heads/{PREFIX}", "refs/ashep/")
        await self._repository.update_refs(f"delete {ref} {commit}" for ref, commit in refs.items() if TRIAL in ref)
        common = await self._git.common()
        store, files = common / "objects", [common / "ashep" / "locks" / file_of(TRIAL)]
        files += [store / name[:2] / name[2:] for name in objects]
        for index in await to_thread.run_sync(lambda: [*(store / "pack").glob("*.idx")]) if objects else ():
            async with await anyio.open_file(index, "rb") as file:
                content = await file.read(_SMALL)
            if len(content) < _SMALL:
                listed = await self._git.raw("show-index", stdin=content)
                if {line.split()[1].decode() for line in listed.splitlines()} <= objects:
                    files += [index.with_suffix(suffix) for suffix in (".idx", ".pack", ".rev")]

        def unlink() -> None:
            for file in files:
                file.unlink(missing_ok=True)
                if len(file.parent.name) == 2:
                    with suppress(OSError):
                        file.parent.rmdir()  # where it was the last

        await to_thread.run_sync(unlink)

    # --- the branch of a remote ---

    async def _compare(self, base: str, follows: _Follows) -> str:
        """Return how far the base is behind the branch that it follows; empty: it is not, or is not here."""
        words = ("rev-list", "--left-right", "--count", f"{follows.commit}...{follows.ref}")
        ahead, behind = (await self._git.word(*words)).split() if follows.commit else ("0", "0")
        if behind == "0":
            return ""
        common = await self._git.common()
        files = [common / name for name in ("FETCH_HEAD", f"logs/{follows.ref}", _FETCHED)]
        times = await to_thread.run_sync(lambda: [file.stat().st_mtime for file in files if file.exists()])
        as_of = f" (as of {datetime.fromtimestamp(max(times), UTC).astimezone():%Y-%m-%d %H:%M})" if times else ""
        apart = f", and {ahead} ahead of it" if ahead != "0" else ""
        return f"{base} is {behind} commit{'s' * (behind != '1')} behind {follows.name}{apart}{as_of}"

    async def fetch(self, base: str) -> str | None:
        if (follows := await self._find_upstream(base)) is None:
            return None
        words = ("ls-remote", "--quiet", "--", follows.remote, follows.theirs)
        if self._writes:  # of a remote's branch alone: whatever is set, no other moves
            words = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--refmap=")
            words += ("--", follows.remote, f"+{follows.theirs}:{follows.ref}")
        try:
            done = await self._git.bare(*words, accepted=None, timeout=FETCH)
            reason = " ".join(self._git.redact_stderr(done).split())[:300] if done.returncode else ""
        except ProgramTimedOut:
            reason = f"it did not answer in {FETCH:g} s, or asked somebody who is not there"
        self._error = f"{follows.remote} cannot be fetched: {reason}" if reason else ""
        if self._writes and not reason:
            marker = anyio.Path(await self._git.common(), _FETCHED)
            with suppress(OSError):  # then nobody knows when it was
                await marker.parent.mkdir(exist_ok=True)
                await marker.touch()
        return await commit_of(self._git, follows.ref)

    async def _find_upstream(self, base: str) -> _Follows | None:
        if not base:
            return None
        printed = await self._git.word("for-each-ref", f"--format={_FOLLOWS}", f"refs/heads/{base}")
        ref, name, remote, theirs, commit = (printed or "\0" * 4).split("\n")[0].split("\0")
        if not ref and self._remote:
            ref, name, remote = f"refs/remotes/{self._remote}/{base}", f"{self._remote}/{base}", self._remote
        follows = _Follows(ref, name, remote, theirs or f"refs/heads/{base}", commit)
        return follows if ref.startswith("refs/remotes/") else None


def _find_above(folder: Path) -> Path:
    """Return the folder, or the nearest above it that exists."""
    return next(path for path in (folder, *folder.parents) if path.exists())


def _find_closed(common: Path, root: Path) -> list[Path]:
    """Return the folders, and logs of refs, that must be written to and may not be."""
    paths = [root, common]
    for name, pattern in _WRITTEN.items():
        paths += [common / name, *islice((common / name).glob(pattern), _MOST)]
    rights = {True: os.R_OK | os.W_OK | os.X_OK, False: os.W_OK}
    return [path for path in dict.fromkeys(paths) if path.exists() and not os.access(path, rights[path.is_dir()])]


def _is_caseless(folder: Path) -> bool:
    """Whether a disk takes names for the same that differ by case alone."""
    other = folder.with_name(folder.name.swapcase())
    return other != folder and other.exists() and other.samefile(folder)


def _delete_folders(common: Path, root: Path, above: Path) -> None:
    """Delete what a trial left where there was no tree before, unless somebody made one meanwhile."""
    if root.is_dir() and any(not name.startswith(".") for name in os.listdir(root)):
        return
    delete(root)
    for name in (".trial", ".lender"):
        (common / "ashep" / "locks" / name).unlink(missing_ok=True)
    made = [Path(folder) for top in _MADE for folder, _, _ in reversed([*walk(str(common / top))])]
    for folder in (*root.parents[: root.parents.index(above)], *made):
        with suppress(OSError):
            folder.rmdir()  # where it is empty
