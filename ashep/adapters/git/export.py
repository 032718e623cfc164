"""The files of a commit in a folder of their own; the repository is only read, by a git folder of our own.

That folder borrows the repository's objects (git's `alternates`) and reads none of its settings: no hook, filter or
file monitor that somebody put there is run, and no index, reference or list of work trees is written. So what Git LFS
would fetch stays a pointer, and a submodule an empty folder, unless `ashep.adapters.git.submodules` fills it.
"""

import os
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from anyio import CancelScope, to_thread

from ashep.adapters.git.command import Git
from ashep.adapters.system.folders import delete
from ashep.core.policy.disk_limits import room
from ashep.errors import AshepError, PrintedTooMuch

MOST_FILES = 500_000
"""Files of a checkout: a few objects of git can name any number of them."""

QUIET = {"GIT_NO_LAZY_FETCH": "1"}
"""What keeps git from fetching what a partial clone lacks."""
ALONE = QUIET | {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_ATTR_NOSYSTEM": "1"}
"""And what keeps it from reading anybody's settings."""

_BLOCK = 4096  # bytes of a disk that a file takes at least
_GIT = 300.0  # seconds for one call of git
_MISSING = "unable to read sha1 file"

_FETCH = (
    "The repository does not hold every file of the commit, and nothing is fetched for a check. It may be a partial "
    "clone: `git config --unset remote.origin.partialCloneFilter` and `git fetch --refetch` make it whole"
)


@dataclass(frozen=True, slots=True)
class CommitSource:
    """A commit, and where its objects are."""

    objects: Path
    """The folder of the repository's objects."""
    commit: str
    shallow: bytes
    """Where the history of a shallow clone ends (`end_of_history`)."""


class ExportedFiles:
    """Files of a commit in the folder `tree`, by way of the git folder `folder`; neither of them is there yet."""

    def __init__(self, source: CommitSource, folder: Path, tree: Path, floor: int) -> None:
        """`floor`: bytes that are to stay free on the disk."""
        self.source, self.folder, self._tree, self._floor = source, folder, tree, floor

    async def on_disk(self, work: Callable[[], None]) -> None:
        """Write what we write ourselves. Raises `AshepError`, on a full disk say."""
        try:
            await to_thread.run_sync(work)
        except OSError as error:
            raise AshepError(f"{self._tree}: the checkout cannot be made: {error.strerror}") from error

    async def begin(self, *trees: str) -> None:
        """Make the folder and ours of git, with the first of the trees in the index, if there is room for all of them.

        Raises `AshepError`.
        """

        def make() -> None:
            self._tree.mkdir(parents=True, exist_ok=True)
            self.make_git()

        await self.on_disk(make)
        await self._ask_for_room(*trees)
        await self.git("read-tree", trees[0])

    def make_git(self, folder: Path | None = None, more: str = "", objects: Path | None = None) -> None:
        """Make a git folder that has the commit; None: ours. `more`: lines of its settings. `objects`: whose it
        borrows; None: the repository's.
        """
        folder = folder or self.folder
        for name in ("objects/info", "objects/pack", "refs/heads"):
            (folder / name).mkdir(parents=True)
        kind = "sha256" if len(self.source.commit) == 64 else ""
        extension = f"\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = {kind}\n" if kind else ""
        (folder / "config").write_text(f"[core]\n\tbare = false\n{extension}{more}")
        (folder / "HEAD").write_text(f"{self.source.commit}\n")
        (folder / "objects" / "info" / "alternates").write_bytes(os.fsencode(objects or self.source.objects) + b"\n")
        if self.source.shallow:
            (folder / "shallow").write_bytes(self.source.shallow)

    async def _ask_for_room(self, *trees: str) -> None:
        """Count what would be written, before anything is. Raises `AshepError` where that is too much."""
        blobs: Counter[bytes] = Counter()
        for tree in trees:
            try:
                listed = await self.git("ls-tree", "-r", "-z", tree)
            except PrintedTooMuch as error:
                raise AshepError(_too_many(self.source.commit)) from error
            blobs.update(entry.partition(b"\t")[0].split()[-1] for entry in listed.split(b"\0")[:-1])
        if (files := blobs.total()) > MOST_FILES:
            raise AshepError(_too_many(self.source.commit))
        asked = b"".join(blob + b"\n" for blob in blobs)
        sizes = (await self.git("cat-file", "--batch-check=%(objectsize)", stdin=asked)).split(b"\n")
        # what is not there has no size: the checkout says so
        known = zip(blobs.values(), sizes, strict=False)
        size = sum(count * max(int(one), _BLOCK) for count, one in known if one.isdigit())
        found = await to_thread.run_sync(os.statvfs, self._tree)
        free = room(found.f_bavail * found.f_frsize, found.f_files, max(found.f_favail - files, 0))
        if free < size + self._floor:
            raise AshepError(
                f"the checkout of {self.source.commit[:12]} has {files} files and takes {_mib(size)} MiB, and "
                f"{_mib(self._floor)} MiB are to stay free; there is room for {_mib(free)} MiB where {self._tree} is"
            )

    async def write(self) -> None:
        """Write the files that the index of our git folder has. Raises `AshepError`."""
        try:
            await self.git("checkout-index", "-a", "-f", "-u", "-q")
        except AshepError as error:
            if _MISSING in str(error):
                raise AshepError(f"{error}. {_FETCH}") from error
            raise

    async def git(self, *arguments: str, stdin: bytes | None = None) -> bytes:
        """Call git where it sees our folder alone, and give what it printed."""
        where = {"GIT_DIR": str(self.folder), "GIT_WORK_TREE": str(self._tree)}
        return await reading(self._tree, *arguments, env=ALONE | where, stdin=stdin)


def end_of_history(git: Path) -> bytes:
    """Say where the history of a shallow clone ends, as its git folder has it; empty: it is whole. Blocks."""
    with suppress(FileNotFoundError):
        return (git / "shallow").read_bytes()
    return b""


async def reading(cwd: Path, *arguments: str, env: dict[str, str], stdin: bytes | None = None) -> bytes:
    """Call git on a repository that is only read."""
    return await Git(cwd, timeout=_GIT).raw(*arguments, env=env, stdin=stdin)


def _too_many(commit: str) -> str:
    return f"the tree of commit {commit[:12]} has more than {MOST_FILES} files: nothing of it is written"


def _mib(size: int) -> int:
    return -(-size // 1024**2)


@asynccontextmanager
async def drafting(folder: Path) -> AsyncGenerator[None]:
    """Have an empty folder to make something in; what a call that was killed left there goes first."""

    def begin() -> None:
        delete(folder)
        folder.mkdir(mode=0o700, parents=True)

    try:
        await to_thread.run_sync(begin)
        yield
    finally:
        with CancelScope(shield=True):
            await to_thread.run_sync(delete, folder)
