"""A clean checkout of a commit, below a scratch folder; the repository is only read, by a git folder of our own.

That folder borrows the repository's objects (git's `alternates`), or for programs those that places borrow, and reads
none of its settings: no hook, filter or file monitor that somebody put there is run, and no index, reference or list of
work trees is written. So what Git LFS would fetch stays a pointer, and a submodule an empty folder.
"""

import fcntl
import os
import re
import shutil
import stat
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio import to_thread

from ashep.adapters.git.program import Git
from ashep.adapters.verifier.sandbox import SCRIPTS, Folders
from ashep.core.policy.disk import LOW_DISK, room
from ashep.core.text import clean
from ashep.errors import AshepError, PrintedTooMuch

MOST_FILES = 500_000
"""Files of a checkout: a few objects of git can name any number of them."""

_BLOCK = 4096  # bytes of a disk that a file takes at least
_GIT = 300.0  # seconds for one call of git
_QUIET = {"GIT_NO_LAZY_FETCH": "1"}
_ALONE = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_ATTR_NOSYSTEM": "1"}
_IDENTITY = "[user]\n\tname = Agent Shepherd\n\temail = ashep@localhost\n"
_ID = re.compile(r"([0-9a-f]{40}(?:[0-9a-f]{24})?) (\w+) \d+")
_PREFIX = "check-"
_MISSING = "unable to read sha1 file"

_FETCH = (
    "The repository does not hold every file of the commit, and nothing is fetched for a check. It may be a partial "
    "clone: `git config --unset remote.origin.partialCloneFilter` and `git fetch --refetch` make it whole"
)


@dataclass(frozen=True, slots=True)
class Commits:
    """A candidate and its base as the repository has them."""

    objects: Path
    """The folder of the repository's objects."""
    commit: str
    tree: str
    scripts: str
    """The tree of the checks' own scripts, from the base where there is one; empty: there are none."""
    own_scripts: str
    """What the candidate itself has in that place, be it a link; empty: nothing."""
    shallow: bytes | None = None
    """Where the history of a shallow clone ends, as git writes it; None: it is whole."""


async def find(repository: Path, commit: str, base: str | None) -> Commits:
    """Look commits up. Raises `AshepError` where there is no such repository or commit."""
    where = await _git(repository, "rev-parse", "--git-path", "objects", env=_QUIET)
    objects = await to_thread.run_sync(Path(repository, os.fsdecode(where.rstrip(b"\n"))).resolve)
    names = [f"{commit}^{{commit}}", f"{commit}^{{tree}}", f"{commit}:{SCRIPTS}"]
    names += [f"{base}^{{commit}}", f"{base}:{SCRIPTS}"] if base else []
    if any(set("\n\0") & set(name) or name.startswith("-") for name in names):
        raise AshepError(f"{clean(commit)!r} is no commit")
    asked = "".join(f"{name}\n" for name in names).encode(errors="surrogateescape")
    said = await _git(repository, "cat-file", "--batch-check", env=_QUIET, stdin=asked)
    found = [_ID.fullmatch(line) for line in said.decode(errors="replace").splitlines()]
    for name, one in ((commit, found[0]), *([(base, found[3])] if base else [])):
        if one is None:
            raise AshepError(f"{repository} has no commit {name}")
    assert found[0] is not None and found[1] is not None
    own = found[2][1] if found[2] is not None else ""
    scripts = found[4] if base else found[2]
    kept = scripts[1] if scripts is not None and scripts[2] == "tree" else ""
    return Commits(objects, found[0][1], found[1][1], kept, own, await to_thread.run_sync(_shallow, objects.parent))


def _shallow(folder: Path) -> bytes | None:
    try:
        return (folder / "shallow").read_bytes()
    except OSError:
        return None


class Checkout:
    """The files of a commit in a folder of their own, with the checks' scripts of the base in their place."""

    def __init__(self, place: Path, commits: Commits, floor: int = LOW_DISK, lender: Path | None = None) -> None:
        """`floor`: bytes that are to stay free on the disk. `lender`: a repository from which programs have all that
        they read of the history, beside what is the commit's own; None: they have all objects of the repository.
        """
        self._commits, self._git_folder, self._floor, self._lender = commits, place / "git", floor, lender
        objects = lender / "objects" if lender else commits.objects
        self.folders = Folders(place, place / "tree", place / "home", place / "tmp", objects)
        self.tree = self.folders.tree

    async def fill(self) -> None:
        """Write the files. Raises `AshepError`."""
        await self._on_disk(self._prepare)
        await self._ask_for_room()
        await self._git("read-tree", self._commits.tree)
        if self._commits.scripts != self._commits.own_scripts:
            if self._commits.own_scripts:
                await self._git("rm", "-r", "-f", "-q", "--cached", "--ignore-unmatch", "--", SCRIPTS)
            if self._commits.scripts:
                await self._git("read-tree", f"--prefix={SCRIPTS}/", self._commits.scripts)
        try:
            await self._git("checkout-index", "-a", "-f", "-u", "-q")
        except AshepError as error:
            if _MISSING in str(error):
                raise AshepError(f"{error}. {_FETCH}") from error
            raise

    async def _ask_for_room(self) -> None:
        """Count what would be written, before anything is. Raises `AshepError` where that is too much."""
        blobs: Counter[bytes] = Counter()
        for tree in filter(None, (self._commits.tree, self._commits.scripts)):
            try:
                listed = await self._git("ls-tree", "-r", "-z", tree)
            except PrintedTooMuch as error:
                raise AshepError(_too_many(self._commits.commit)) from error
            blobs.update(entry.partition(b"\t")[0].split()[-1] for entry in listed.split(b"\0")[:-1])
        if (files := blobs.total()) > MOST_FILES:
            raise AshepError(_too_many(self._commits.commit))
        asked = b"".join(blob + b"\n" for blob in blobs)
        sizes = (await self._git("cat-file", "--batch-check=%(objectsize)", stdin=asked)).split(b"\n")
        # what is not there has no size: the checkout says so
        known = zip(blobs.values(), sizes, strict=False)
        size = sum(count * max(int(one), _BLOCK) for count, one in known if one.isdigit())
        found = await to_thread.run_sync(os.statvfs, self.tree)
        free = room(found.f_bavail * found.f_frsize, found.f_files, max(found.f_favail - files, 0))
        if free < size + self._floor:
            raise AshepError(
                f"the checkout of {self._commits.commit[:12]} has {files} files and takes {_mib(size)} MiB, and "
                f"{_mib(self._floor)} MiB are to stay free; there is room for {_mib(free)} MiB where {self.tree} is"
            )

    async def open_to_programs(self) -> None:
        """Give the checkout a repository of its own, for programs that ask git, and folders that they may write to."""
        await self._on_disk(self._make_repository)
        if self._lender is not None:
            listed = [self._commits.commit, self._commits.scripts, *await self._lent(self._lender)]
            words = ("--revs", "--quiet", "--delta-base-offset", str(self.tree / ".git" / "objects" / "pack" / "pack"))
            await self._git("pack-objects", *words, stdin="".join(f"{one}\n" for one in listed if one).encode())

    async def _lent(self, lender: Path) -> list[str]:
        """Say what needs no packing: what the lender has, with all that it reaches, and the repository too."""
        if await to_thread.run_sync(_shallow, lender) != self._commits.shallow:
            return []  # it has less than the repository, or more
        env = _QUIET | _ALONE | {"GIT_DIR": str(lender)}
        refs = await _git(lender, "for-each-ref", "--format=%(objectname)", env=env)
        said = await self._git("cat-file", "--batch-check=%(objectname)", stdin=refs)
        return [f"^{line}" for line in said.decode().splitlines() if not line.endswith(" missing")]

    async def restore(self) -> None:
        """Put back what a program changed in files of the commit and in the scripts; what else it made stays."""
        await to_thread.run_sync(_remove, self.tree / SCRIPTS)
        await self._git("checkout-index", "-a", "-f", "-u", "-q")

    async def _on_disk(self, work: Callable[[], None]) -> None:
        """Write what we write ourselves. Raises `AshepError`, on a full disk say."""
        try:
            await to_thread.run_sync(work)
        except OSError as error:
            raise AshepError(f"{self.folders.tree}: the checkout cannot be made: {error.strerror}") from error

    def _prepare(self) -> None:
        for folder in (self.folders.tree, self.folders.home, self.folders.tmp):
            folder.mkdir()
        self._make_git(self._git_folder, "", self._commits.objects)

    def _make_git(self, folder: Path, more: str, objects: Path) -> None:
        for name in ("objects/info", "objects/pack", "refs/heads"):
            (folder / name).mkdir(parents=True)
        kind = "sha256" if len(self._commits.tree) == 64 else ""
        extension = f"\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = {kind}\n" if kind else ""
        (folder / "config").write_text(f"[core]\n\tbare = false\n{extension}{more}")
        (folder / "HEAD").write_text(f"{self._commits.commit}\n")
        (folder / "objects" / "info" / "alternates").write_bytes(os.fsencode(objects) + b"\n")
        if self._commits.shallow is not None:
            (folder / "shallow").write_bytes(self._commits.shallow)

    def _make_repository(self) -> None:
        self._make_git(self.tree / ".git", _IDENTITY, self.folders.objects)
        shutil.copy2(self._git_folder / "index", self.tree / ".git" / "index")

    async def _git(self, *arguments: str, stdin: bytes | None = None) -> bytes:
        where = {"GIT_DIR": str(self._git_folder), "GIT_WORK_TREE": str(self.tree)}
        return await _git(self.tree, *arguments, env=_QUIET | _ALONE | where, stdin=stdin)


def _too_many(commit: str) -> str:
    return f"the tree of commit {commit[:12]} has more than {MOST_FILES} files: nothing of it is written"


def _mib(size: int) -> int:
    return -(-size // 1024**2)


async def _git(cwd: Path, *arguments: str, env: dict[str, str], stdin: bytes | None = None) -> bytes:
    return await Git(cwd, timeout=_GIT).raw(*arguments, env=env, stdin=stdin) or b""


# --- the scratch folder -----------------------------------------------------------------------------------------------


class Place:
    """A folder for one verification; one that an ashep which was killed left is removed when the next is made."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._lock = -1
        self.path = scratch

    async def __aenter__(self) -> Path:
        """Make it. Raises `AshepError` where the disk does not let us."""
        with anyio.CancelScope(shield=True):
            try:
                await to_thread.run_sync(self._make)
            except OSError as error:
                raise AshepError(f"{self._scratch}: no folder can be made for a checkout: {error.strerror}") from error
        return self.path

    async def __aexit__(self, *_: object) -> None:
        """Remove it, whoever is being cancelled."""
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(self._end)

    def _make(self) -> None:
        self._scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
        own = os.open(self._scratch, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(own, fcntl.LOCK_EX)  # nobody takes a folder that is being made for one that was left
            for left in sorted(self._scratch.glob(f"{_PREFIX}*")):
                with suppress(OSError):
                    _remove_left(left)
            self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=self._scratch)).resolve()
            self._lock = _locked(self.path)
        finally:
            os.close(own)

    def _end(self) -> None:
        _remove(self.path)
        os.close(self._lock)


def _locked(folder: Path) -> int:
    """Hold a folder as long as this process lives; raises `BlockingIOError` where another one does."""
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(number)
        raise
    return number


def _remove_left(folder: Path) -> None:
    lock = _locked(folder)
    try:
        _remove(folder)
    finally:
        os.close(lock)


def _remove(path: Path) -> None:
    """Remove whatever stands there, also folders that a program has closed to us; links are not followed."""
    try:
        if not stat.S_ISDIR(path.lstat().st_mode):
            path.unlink()
            return
    except FileNotFoundError:
        return
    shutil.rmtree(path, ignore_errors=True)
    if path.exists():
        _open_all(path)
        shutil.rmtree(path, ignore_errors=True)  # what does not go now is left to the next time


def _open_all(path: Path) -> None:
    """Give ourselves leave to change a folder and all below it, each before it is gone into."""
    with suppress(OSError):
        path.chmod(0o700)
    for folder, names, _ in os.walk(path):
        for name in names:
            below = os.path.join(folder, name)
            with suppress(OSError):
                if stat.S_ISDIR(os.lstat(below).st_mode):
                    os.chmod(below, 0o700)
