"""A clean checkout of a commit, below a scratch folder (`ashep.adapters.git.export`), and the folders around it."""

import errno
import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
from anyio import to_thread

from ashep.adapters.git.export import ALONE, QUIET, CommitSource, ExportedFiles, end_of_history, reading
from ashep.adapters.git.submodules import Submodule, fill, find_submodules
from ashep.adapters.system.folders import delete
from ashep.adapters.verifier.sandbox import SCRIPTS, CheckFolders, link_caches
from ashep.core.impact.path_classes import MODULES, shadows
from ashep.core.policy.disk_limits import LOW_DISK
from ashep.core.text import clean
from ashep.errors import AshepError

_IDENTITY = "[user]\n\tname = Agent Shepherd\n\temail = ashep@localhost\n"
_ID = re.compile(r"([0-9a-f]{40}(?:[0-9a-f]{24})?) (\w+) \d+")
_PREFIX = "check-"


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
    shallow: bytes
    """Where the history of a shallow clone ends (`ashep.adapters.git.export.end_of_history`)."""
    submodules: tuple[Submodule, ...] = ()
    shadows: frozenset[str] = frozenset()
    """Files that the base does not have, and that Python imports in the place of a module of its own or a runner."""


async def find(repository: Path, commit: str, base: str | None) -> Commits:
    """Look commits up. Raises `AshepError` where there is no such repository or commit."""
    where = await reading(repository, "rev-parse", "--git-path", "objects", env=QUIET)
    objects = await to_thread.run_sync(Path(repository, os.fsdecode(where.rstrip(b"\n"))).resolve)
    names = [f"{commit}^{{commit}}", f"{commit}^{{tree}}", f"{commit}:{SCRIPTS}"]
    names += [f"{base}^{{commit}}", f"{base}:{SCRIPTS}"] if base else []
    if any(set("\n\0") & set(name) or name.startswith("-") for name in names):
        raise AshepError(f"{clean(commit)!r} is no commit")
    asked = "".join(f"{name}\n" for name in names).encode(errors="surrogateescape")
    said = await reading(repository, "cat-file", "--batch-check", env=QUIET, stdin=asked)
    found = [_ID.fullmatch(line) for line in said.decode(errors="replace").splitlines()]
    for name, one in ((commit, found[0]), *([(base, found[3])] if base else [])):
        if one is None:
            raise AshepError(f"{repository} has no commit {name}")
    assert found[0] is not None and found[1] is not None
    own = found[2][1] if found[2] is not None else ""
    scripts = found[4] if base else found[2]
    kept = scripts[1] if scripts is not None and scripts[2] == "tree" else ""
    shallow = await to_thread.run_sync(end_of_history, objects.parent)
    began = found[3][1] if found[3:] and found[3] is not None else None
    submodules = await find_submodules(objects.parent, found[0][1], began)
    new = await _shadows(repository, commit) - await _shadows(repository, base) if base else frozenset[str]()
    return Commits(objects, found[0][1], found[1][1], kept, own, shallow, submodules, new)


async def _shadows(repository: Path, commit: str) -> frozenset[str]:
    async def list_modes(*paths: str) -> dict[str, str]:
        printed = await reading(repository, "ls-tree", "-z", "--full-tree", commit, *paths, env=QUIET)
        lines = (os.fsdecode(line).partition("\t") for line in printed.split(b"\0")[:-1])
        return {path: about.split()[0] for about, _, path in lines}

    modes = await list_modes()
    if packages := sorted(f"{path}/" for path in MODULES & modes.keys() if modes[path] == "040000"):
        modes |= await list_modes(*packages)
    return frozenset(path for path, mode in modes.items() if shadows(path, linked=mode in ("120000", "160000")))


class Checkout:
    """The files of a commit in a folder of their own, with the checks' scripts of the base in their place."""

    def __init__(
        self,
        place: Path,
        commits: Commits,
        floor: int = LOW_DISK,
        lender: Path | None = None,
        cache: Path | None = None,
    ) -> None:
        """`floor`: bytes that are to stay free on the disk. `lender`: a repository from which programs have all that
        they read of the history, next to what is the commit's own; None: they have all objects of the repository.
        `cache`: a folder of dependencies, of which the private home has a copy, where there is one.
        """
        self._commits, self._lender = commits, lender
        objects = lender / "objects" if lender else commits.objects
        self.folders = CheckFolders(place, place / "tree", place / "home", place / "tmp", objects)
        self.tree = self.folders.tree
        self._files = ExportedFiles(
            CommitSource(commits.objects, commits.commit, commits.shallow), place / "git", self.tree, floor
        )
        self._floor, self._submodules, self._cache = floor, list[ExportedFiles](), cache
        self.lacking: list[Submodule] = []
        """Submodules whose files are not there."""
        self.shadows = commits.shadows

    async def fill(self) -> None:
        """Write the files, those of submodules as far as they are here. Raises `AshepError`."""
        files, commits = self._files, self._commits

        def make_folders() -> None:
            self.folders.tmp.mkdir()
            if self._cache is not None and self._cache.is_dir():
                _copy(self._cache, self.folders.home)
            self.folders.home.mkdir(exist_ok=True)
            link_caches(self.folders.home)

        await files.on_disk(make_folders)
        await files.begin(*filter(None, (commits.tree, commits.scripts)))
        if commits.scripts != commits.own_scripts:
            if commits.own_scripts:
                await files.git("rm", "-r", "-f", "-q", "--cached", "--ignore-unmatch", "--", SCRIPTS)
            if commits.scripts:
                await files.git("read-tree", f"--prefix={SCRIPTS}/", commits.scripts)
        await files.write()
        place = self._files.folder.parent
        self._submodules, self.lacking = await fill(commits.submodules, self.tree, place, self._floor)

    async def open_to_programs(self) -> None:
        """Give the checkout a repository of its own, for programs that ask git, and folders that they may write to."""
        await self._files.on_disk(self._make_repository)
        if self._lender is not None:
            listed = [self._commits.commit, self._commits.scripts, *await self._lent(self._lender)]
            words = ("--revs", "--quiet", "--delta-base-offset", str(self.tree / ".git" / "objects" / "pack" / "pack"))
            await self._files.git("pack-objects", *words, stdin="".join(f"{one}\n" for one in listed if one).encode())

    async def _lent(self, lender: Path) -> list[str]:
        """Say what needs no packing: what the lender has, with all that it reaches, and the repository too."""
        if await to_thread.run_sync(end_of_history, lender) != self._commits.shallow:
            return []  # it has less than the repository, or more
        refs = await reading(lender, "for-each-ref", "--format=%(objectname)", env=ALONE | {"GIT_DIR": str(lender)})
        said = await self._files.git("cat-file", "--batch-check=%(objectname)", stdin=refs)
        return [f"^{line}" for line in said.decode().splitlines() if not line.endswith(" missing")]

    async def restore(self) -> None:
        """Put back what a program changed in files of the commit, in the scripts and in the checkout's repository; what
        else it made stays.
        """
        for name in (SCRIPTS, ".git"):
            await to_thread.run_sync(delete, self.tree / name)
        for files in (self._files, *self._submodules):
            await files.git("checkout-index", "-a", "-f", "-u", "-q")
        await self.open_to_programs()

    def _make_repository(self) -> None:
        self._files.make_git(self.tree / ".git", _IDENTITY, self.folders.objects)
        shutil.copy2(self._files.folder / "index", self.tree / ".git" / "index")


# --- the scratch folder -----------------------------------------------------------------------------------------------


def _copy(cache: Path, home: Path) -> None:
    """Copy a cache, its links as links. Blocks; raises `OSError` that names the first file that cannot be copied."""
    try:
        shutil.copytree(cache, home, symlinks=True)
    except shutil.Error as error:  # a file is gone, say, as it is being replaced
        name, _, reason = error.args[0][0]
        raise OSError(errno.EIO, f"{name} of the cache cannot be copied: {reason}") from error


@asynccontextmanager
async def make_checkout_folder(scratch: Path) -> AsyncGenerator[Path]:
    """Have a folder for one verification; one that an ashep which was killed left is removed when the next is made.

    Raises `AshepError` where the disk does not let us.
    """
    folder, lock = scratch, -1
    with anyio.CancelScope(shield=True):
        try:
            folder, lock = await to_thread.run_sync(_make_folder, scratch)
        except OSError as error:
            raise AshepError(f"{scratch}: no folder can be made for a checkout: {error.strerror}") from error
    try:
        yield folder
    finally:  # whoever is being cancelled
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(delete, folder)
            os.close(lock)


def _make_folder(scratch: Path) -> tuple[Path, int]:
    scratch.mkdir(parents=True, exist_ok=True, mode=0o700)
    own = os.open(scratch, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(own, fcntl.LOCK_EX)  # nobody takes a folder that is being made for one that was left
        for left in sorted(scratch.glob(f"{_PREFIX}*")):
            with suppress(OSError):
                lock = _locked(left)
                try:
                    delete(left)
                finally:
                    os.close(lock)
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=scratch)).resolve()
        return folder, _locked(folder)
    finally:
        os.close(own)


def _locked(folder: Path) -> int:
    """Hold a folder as long as this process lives; raises `BlockingIOError` where another one does."""
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(number)
        raise
    return number
