"""A repository and the trees of issues in it: where they are, how git is called in them, and who may touch one now.

A tree's git folder is always named (`GIT_DIR`, `GIT_WORK_TREE`), never looked for: trees lie below the user's checkout,
and in a tree whose `.git` an agent deleted git would find that checkout, and reset it.
"""

import fcntl
import os
import re
import shutil
import stat
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import anyio
import anyio.to_thread

from ashep.adapters.git_program import ABSENT, SHA, Git
from ashep.adapters.programs import Finished
from ashep.errors import AshepError
from ashep.redaction import Redaction

LONG = 900.0
"""Seconds for a call of git that writes a whole tree, or reads one."""

PATIENCE = 60.0
"""Seconds to wait for another call on the same branch."""

_SETTINGS = (
    "core.hooksPath=/dev/null",
    "commit.gpgSign=false",
    "core.editor=true",
    "advice.detachedHead=false",
    "gc.auto=0",
    "maintenance.auto=false",
    # an agent can set these in the repository, and hide by them what it changed
    "core.untrackedCache=false",
    "core.ignoreStat=false",
    "core.trustctime=true",
    "core.checkStat=default",
    "core.fileMode=true",
    "core.protectNTFS=false",
    "core.protectHFS=false",
    "core.quotePath=true",
    "merge.autoStash=false",
    "submodule.recurse=false",
    "status.showUntrackedFiles=all",
)
_LASTING = "core.fsync=all"
"""What is saved must be there after a power cut too: the tree is deleted next."""
_WAIT = 0.05


@dataclass(frozen=True, slots=True)
class Place:
    """A tree that git knows."""

    path: Path
    """Its top."""
    admin: Path
    """Its git folder, `<repository>/.git/worktrees/<name>`."""
    ref: str | None = None
    """The branch that HEAD was on, as a full ref; None: it was detached."""

    @property
    def notes(self) -> Path:
        """Our own folder beside git's files: what was set up, when it was used. It goes when the tree goes."""
        return self.admin / "ashep"

    @property
    def env(self) -> dict[str, str]:
        """What sends git to this tree, wherever it is started."""
        return {"GIT_DIR": str(self.admin), "GIT_WORK_TREE": str(self.path)}


@dataclass(frozen=True, slots=True)
class Folders:
    """Where a repository is."""

    top: Path
    """The user's checkout that holds the project."""
    prefix: str
    """The project's place in it, with a slash at its end; empty at the top."""
    common: Path
    """The git folder that all work trees share."""


class Repository:
    """The repository that holds the folder `project`.

    Errors: `ProgramMissing` without git, `ProgramTimedOut`, and `AshepError` with git's words.
    """

    def __init__(self, project: Path, timeout: float = 60.0, redaction: Redaction | None = None) -> None:
        self.project, self.redaction = project, redaction or Redaction()
        self._timeout = timeout
        self.git = Git(timeout, redaction, (*_SETTINGS, _LASTING))
        self.quick = Git(timeout, redaction, _SETTINGS)
        """Git without `fsync`: for a checkout, which git can make again."""
        self._folders: Folders | None = None

    async def folders(self) -> Folders:
        """Find the repository, once."""
        if self._folders is None:
            asked = ("--show-toplevel", "--show-prefix", "--path-format=absolute", "--git-common-dir")
            found = await self.git.raw("rev-parse", *asked, cwd=self.project, absent=ABSENT)
            if found is None:
                raise AshepError(f"{self.project} is in no git repository; work trees of issues need one")
            top, prefix, common = os.fsdecode(found).split("\n")[:3]
            if "\n" in str(self.project) or not os.path.isabs(common):
                raise AshepError(
                    f"{str(self.project)!r}: work trees cannot be made below a folder with a line break in its name"
                )
            self._folders = Folders(Path(top), prefix, Path(common))
            if not await anyio.Path(common, "head").exists():  # the disk tells HEAD from head, whatever is set
                self._tell_cases_apart()
        return self._folders

    def _tell_cases_apart(self) -> None:
        """Keep git from taking `readme` for `README`, and not committing it: a copied repository may say so."""
        settings = (*_SETTINGS, "core.ignoreCase=false")
        self.git = Git(self._timeout, self.redaction, (*settings, _LASTING))
        self.quick = Git(self._timeout, self.redaction, settings)

    async def shared(self, *arguments: str, stdin: bytes | None = None, absent: re.Pattern[str] | None = None) -> str:
        """Call git for what all work trees share, refs and objects; "" where it said what `absent` expects."""
        common = (await self.folders()).common
        env = {"GIT_DIR": str(common)}
        out = await self.git.raw(*arguments, cwd=common, env=env, stdin=stdin, absent=absent, timeout=LONG)
        return os.fsdecode(out or b"").strip("\n")

    async def ask(self, place: Place, *arguments: str, env: Mapping[str, str] | None = None) -> Finished:
        """Call git in a tree, whatever its exit code."""
        cwd = place.path if await anyio.Path(place.path).is_dir() else place.admin
        return await self.git.run(*arguments, cwd=cwd, env=place.env | dict(env or {}), timeout=LONG)

    async def inside(
        self,
        place: Place,
        *arguments: str,
        stdin: bytes | None = None,
        env: Mapping[str, str] | None = None,
        absent: re.Pattern[str] | None = None,
    ) -> bytes:
        """Call git in a tree and give what it printed; nothing where it said what `absent` expects."""
        cwd = place.path if await anyio.Path(place.path).is_dir() else place.admin
        named = place.env | dict(env or {})
        return (await self.git.raw(*arguments, cwd=cwd, env=named, stdin=stdin, absent=absent, timeout=LONG)) or b""

    async def refs(self, *names: str) -> dict[str, str]:
        """Give the refs that are named, or lie below what is named, with their commits."""
        listed = await self.shared("for-each-ref", "--format=%(refname)%00%(objectname)", *names)
        return dict(line.split("\0") for line in listed.splitlines())

    async def commit_of(self, revision: str) -> str | None:
        """Give the commit that a revision is; None: there is none."""
        none = re.compile("^$|fatal: Needed a single revision")
        found = await self.shared(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}", absent=none
        )
        return found if SHA.fullmatch(found) else None

    async def contains(self, commit: str, ancestor: str) -> bool:
        """Say whether a commit holds another one in its history."""
        common = (await self.folders()).common
        done = await self.git.run(
            "merge-base", "--is-ancestor", ancestor, commit, cwd=common, env={"GIT_DIR": str(common)}
        )
        if done.returncode not in (0, 1):
            raise AshepError(f"git merge-base: {self.git.said(done)[:300]}")
        return done.returncode == 0

    async def main_ref(self) -> str | None:
        """Give the branch that the main work tree is on, as a full ref."""
        head = (await self.folders()).common / "HEAD"
        text = (await anyio.Path(head).read_text()).strip()
        return text.removeprefix("ref: ") if text.startswith("ref: ") else None

    async def update_refs(self, lines: Iterable[str]) -> None:
        """Change refs, all or none: lines of `git update-ref --stdin`."""
        if words := "".join(f"{line}\n" for line in lines):
            await self.shared("update-ref", "--create-reflog", "--stdin", stdin=os.fsencode(words))

    async def places(self) -> list[Place]:
        """List every work tree that git knows beside the main one, whoever made it."""
        common = (await self.folders()).common
        return await anyio.to_thread.run_sync(lambda: list(_places(common)))

    @asynccontextmanager
    async def hold(self, branch: str, patience: float = PATIENCE) -> AsyncGenerator[None]:
        """Hold a branch: nobody else, in no process, calls anything for it meanwhile.

        Raises `AshepError` after `patience` seconds of waiting.
        """
        file = await anyio.to_thread.run_sync(_lock_file, (await self.folders()).common, branch)
        try:
            held = _locked(file)
            with anyio.move_on_after(patience):
                while not held:
                    await anyio.sleep(_WAIT)
                    held = _locked(file)
            if not held:
                raise AshepError(f"another ashep is busy with the work tree of {branch}; try again when it is done")
            try:
                yield
            except OSError as error:  # of a full disk say
                raise AshepError(f"the work tree of {branch}: {error}") from error
        finally:
            os.close(file)


def _places(common: Path) -> Iterator[Place]:
    with suppress(FileNotFoundError, NotADirectoryError):
        for entry in sorted((common / "worktrees").iterdir()):
            with suppress(OSError, UnicodeDecodeError):
                head = (entry / "HEAD").read_text().strip()
                ref = head.removeprefix("ref: ") if head.startswith("ref: ") else None
                link = os.path.normpath(entry / (entry / "gitdir").read_text().rstrip("\n"))  # relative since git 2.48
                yield Place(Path(link).parent, entry, ref)


def _lock_file(common: Path, branch: str) -> int:
    folder = common / "ashep" / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    return os.open(folder / quote(branch, safe=""), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def size_of(*folders: Path) -> int:
    """Count the bytes on the disk below folders; links are not followed."""
    total, left = 0, [os.fspath(folder) for folder in folders]
    while left:
        with suppress(OSError), os.scandir(left.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    total += entry.stat(follow_symlinks=False).st_blocks * 512
                    if entry.is_dir(follow_symlinks=False):
                        left.append(entry.path)
    return total


def delete(folder: Path) -> None:
    """Delete a folder with all that is in it, also where somebody took its rights away; what resists stays."""
    for path, folders, _ in os.walk(folder):
        for name in folders:
            with suppress(OSError):
                if not os.path.islink(os.path.join(path, name)):
                    os.chmod(os.path.join(path, name), stat.S_IRWXU)
    shutil.rmtree(folder, ignore_errors=True)
