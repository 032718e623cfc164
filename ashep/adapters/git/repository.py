"""A repository and the trees of issues in it: where they are, how git is called in them, and who may touch one now.

A tree's git folder is always named (`GIT_DIR`, `GIT_WORK_TREE`), never looked for: trees lie below the user's checkout,
and in a tree whose `.git` an agent deleted git would find that checkout, and reset it.
"""

import os
import re
import stat
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from ashep.adapters.git.command import ABSENT, LONG, UNFLUSHED, WORK_TREE, Git, How, commit_of, failed
from ashep.adapters.git.locks import linked
from ashep.adapters.git.objects import holds
from ashep.adapters.system import process_table
from ashep.adapters.system.programs import Finished, says_full
from ashep.core.state.branches import BASES, file_of
from ashep.core.text import clean
from ashep.errors import AshepError
from ashep.redaction import Redaction

SEALED = "refs/ashep/sealed/"
"""Below it, by branch: the commit that it had when it was sealed last, so that nobody can take it away."""

_NAMED = 5
_LONGEST, _LONGEST_NAME = 3000, 255  # bytes of a path and of a name: a work tree's own folder takes a part of 4096
PATIENCE = 60.0
"""Seconds to wait for another call on the same branch."""

_WAIT = 0.05

UNDER_WAY = {
    "rebase-merge": ("rebase", "a rebase is"),
    "rebase-apply": ("rebase", "a rebase is"),
    "MERGE_HEAD": ("merge", "a merge is"),
    "CHERRY_PICK_HEAD": ("cherry-pick", "a cherry-pick is"),
    "REVERT_HEAD": ("revert", "a revert is"),
    "sequencer": ("cherry-pick", "several cherry-picks or reverts are"),
    "BISECT_LOG": ("bisect", ""),
}
"""What git leaves in a tree's git folder while something is half done there: which of its commands that is, and
what is told where it keeps files from moving; a bisect does not."""


@dataclass(frozen=True, slots=True)
class WorkspacePaths:
    """A work tree that git knows."""

    path: Path
    """Its top."""
    admin: Path
    """Git's own folder for it, `<repository>/.git/worktrees/<name>` where it is not the main one: its index, HEAD and
    what is half done there."""
    ref: str | None = None
    """The branch that HEAD was on, as a full ref; None: it was detached."""
    away: bool = False
    """It is locked and not there: on a disk that comes back, say."""
    unknown: bool = False
    """Nothing tells where its files are; `path` is git's own folder then."""
    beside: Path | None = None
    """Our own folder for it, where that is not among git's files."""

    @property
    def notes(self) -> Path:
        """Our own folder for it: what was set up, when it was used. It goes when the tree goes."""
        return self.beside or self.admin / "ashep"

    broken: bool = False
    """It should have a git of its own, and has none, or one that may lead elsewhere."""

    @property
    def whole(self) -> bool:
        """It has a repository of its own."""
        return self.admin == self.path / ".git"

    @property
    def folders(self) -> tuple[Path, ...]:
        """What is on the disk for it."""
        return (self.path,) if self.whole else (self.path, self.admin)

    @property
    def env(self) -> dict[str, str]:
        """What sends git to this tree, wherever it is started."""
        return {"GIT_DIR": str(self.admin), "GIT_WORK_TREE": str(self.path)}


@dataclass(frozen=True, slots=True)
class RepositoryFolders:
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

    def __init__(
        self, project: Path, timeout: float = 60.0, redaction: Redaction | None = None, git: Git | None = None
    ) -> None:
        """`git`: how it is called; None: as for a repository of the user's."""
        self.project, self.redaction = project, redaction or Redaction()
        self.git = git or Git(project, WORK_TREE, timeout, redaction)
        self._folders: RepositoryFolders | None = None

    async def folders(self) -> RepositoryFolders:
        """Find the repository, once."""
        if self._folders is None:
            found = await self.git.raw("rev-parse", "--show-toplevel", "--show-prefix", absent=ABSENT)
            if not found:
                raise AshepError(f"{self.project} is in no git repository; work trees of issues need one")
            common, lines = await self.git.common(), os.fsdecode(found).split("\n")
            if "\n" in f"{self.project}{common}" or len(lines) != 3:
                raise AshepError(
                    f"{str(self.project)!r}: work trees cannot be made below a folder with a line break in its name"
                )
            self._folders = RepositoryFolders(Path(lines[0]), lines[1], common)
            if not await anyio.Path(common, "head").exists():  # the disk tells HEAD from head, whatever is set
                # git must not take `readme` for `README`, and not commit it: a copied repository may say so
                self.git.settings += ("core.ignoreCase=false",)
        return self._folders

    def take_lock_notices(self) -> list[str]:
        """Give which locks of dead gits were taken away since this was asked last."""
        words, self.git.told = self.git.told, []
        return words

    async def shared(self, *arguments: str, stdin: bytes | None = None, absent: re.Pattern[str] | None = None) -> str:
        """Call git for what all work trees share, refs and objects; "" where it said what `absent` expects."""
        await self.folders()
        done = await self.git.bare(*arguments, stdin=stdin, absent=absent, timeout=LONG)
        return "" if done.returncode else os.fsdecode(done.stdout).strip("\n")

    async def open_tree(self, place: WorkspacePaths) -> "TreeRepository":
        """Give the repository as it is seen from one of its trees."""
        return TreeRepository(place, self.project, await self.folders(), self.git, self.redaction)

    async def unwritable(self, base: str, head: str) -> tuple[str, ...]:
        """Name the first files between two commits that git, as the user has it, writes to no work tree; or none."""
        common = (await self.folders()).common
        env = {"GIT_DIR": str(common), "GIT_INDEX_FILE": str(common / "ashep" / f"names.{head}")}
        made = await self.shared("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=d", base, head)
        paths = [os.fsencode(path) for path in made.split("\0") if path]
        too_long = [path for path in paths if len(path) > _LONGEST or max(map(len, path.split(b"/"))) > _LONGEST_NAME]
        listed = b"".join(b"100644 %s 0\t%s\0" % (head.encode(), path) for path in paths)
        try:
            done = await Git(common, timeout=LONG).run("update-index", "-z", "--index-info", env=env, stdin=listed)
        finally:
            await anyio.Path(env["GIT_INDEX_FILE"]).unlink(missing_ok=True)
        ignored = re.findall(r"Ignoring path (.+)", self.git.redact_stderr(done))
        return tuple(clean(one)[:200] for one in (*ignored, *map(os.fsdecode, too_long)))[:_NAMED]

    async def refs(self, *names: str) -> dict[str, str]:
        """Give the refs that are named, or lie below what is named, with their commits."""
        listed = await self.shared("for-each-ref", "--format=%(refname)%00%(objectname)", *names)
        return dict(line.split("\0") for line in listed.split("\n") if line)

    async def commit_of(self, revision: str) -> str | None:
        """Give the commit that a revision is; None: there is none."""
        return await commit_of(self.git, revision, **await self.git.in_no_tree(LONG))

    async def contains(self, commit: str, ancestor: str) -> bool:
        """Say whether a commit holds another one in its history."""
        return await holds(self.git, commit, ancestor)

    async def has(self, onto: str, commit: str, seen: str | None) -> bool:
        """Say whether a commit holds one that was seen to have what another brings, or merging that changes nothing.

        Where git cannot merge them (in conflict, or git is older than 2.38) that is not known, and False.
        """
        if seen is not None and await self.commit_of(seen) is not None and await self.contains(onto, seen):
            return True
        words = (*UNFLUSHED, "merge-tree", "--write-tree", onto, commit)
        done = await self.git.bare(*words, accepted=None, timeout=LONG)
        tree = await self.shared("rev-parse", f"{onto}^{{tree}}")
        return done.returncode == 0 and done.stdout.decode().strip() == tree

    async def main_ref(self) -> str | None:
        """Give the branch that the main work tree is on, as a full ref."""
        return ref_in(await anyio.Path((await self.folders()).common, "HEAD").read_text())

    async def update_refs(self, lines: Iterable[str]) -> None:
        """Change refs, all or none: lines of `git update-ref --stdin`. A symbolic one is changed, and not followed."""
        if listed := list(lines):
            words = "".join(f"{line}\n" for line in listed)
            await self.shared("update-ref", "--no-deref", "--create-reflog", "--stdin", stdin=os.fsencode(words))
            await self.git.keep_refs(*(line.split(" ")[1] for line in listed))

    async def keep(self, *commits: str) -> None:
        """See to it that commits, with all that they reach, survive a power cut: who made them may have flushed none.

        What the bases of branches and what was sealed reach is there already. Raises `AshepError` where it is broken.
        """
        old = await self.refs(BASES, SEALED)
        await self.git.keep(commits, set(old.values()))

    async def unname(self, branch: str) -> tuple[str, ...]:
        """See to it that a branch is no symbolic ref: what is committed on one lands on another branch at once.

        It is where the other one is; gone, if that is no commit. Gives what there is to tell.
        """
        ref = f"refs/heads/{branch}"
        file = (await self.folders()).common / ref
        if (target := await anyio.to_thread.run_sync(_symbolic, file)) is None:
            return ()
        commit = await self.commit_of(ref)
        await anyio.Path(file).unlink()  # git changes none that leads to itself
        if commit is not None:
            await self.update_refs([f"update {ref} {commit}"])
        return (f"{branch} had become a symbolic ref to {target}; it is a branch again, and {target} as it was",)

    async def places(self) -> list[WorkspacePaths]:
        """List every work tree that git knows next to the main one, whoever made it."""
        common = (await self.folders()).common

        def read_heads() -> Iterator[WorkspacePaths]:
            for admin, top in linked(common):
                with suppress(OSError, UnicodeDecodeError):
                    yield WorkspacePaths(top, admin, ref_in((admin / "HEAD").read_text()))

        return await anyio.to_thread.run_sync(lambda: list(read_heads()))

    @asynccontextmanager
    async def hold(self, branch: str, patience: float = PATIENCE) -> AsyncGenerator[None]:
        """Hold a branch: nobody else, in no process, calls anything for it meanwhile.

        Raises `AshepError` after `patience` seconds of waiting.
        """
        locks = (await self.folders()).common / "ashep" / "locks"

        def open_lock() -> int:
            locks.mkdir(parents=True, exist_ok=True)
            return os.open(locks / file_of(branch), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

        file = -1
        try:
            file = await anyio.to_thread.run_sync(open_lock)
            held = process_table.locked(file)
            with anyio.move_on_after(patience):
                while not held:
                    await anyio.sleep(_WAIT)
                    held = process_table.locked(file)
            if not held:
                raise AshepError(f"another ashep is busy with the work tree of {branch}; try again when it is done")
            yield
        except OSError as error:
            why = f"{error}; it is tried again, so see to that: a full disk, say"
            raise AshepError(f"the work tree of {branch}: {why}") from error
        finally:
            if file >= 0:
                os.close(file)


class TreeRepository(Repository):
    """A repository as it is seen from one of its trees."""

    def __init__(
        self, place: WorkspacePaths, project: Path, folders: RepositoryFolders, git: Git, redaction: Redaction
    ) -> None:
        super().__init__(project, redaction=redaction, git=git)
        self.place, self._folders = place, folders

    async def ask(self, *arguments: str, env: Mapping[str, str] | None = None, stdin: bytes | None = None) -> Finished:
        """Call git in the tree, whatever its exit code. Raises `AshepError` where the disk took nothing more."""
        how = await self._prepare_call(env, stdin)
        done = await self.git.run(*arguments, **how)
        if done.returncode and says_full(said := self.git.redact_stderr(done)):
            raise await failed(arguments[0], done.returncode, said, how.get("cwd", self.place.path))
        return done

    async def inside(
        self,
        *arguments: str,
        stdin: bytes | None = None,
        env: Mapping[str, str] | None = None,
        absent: re.Pattern[str] | None = None,
    ) -> bytes:
        """Call git in the tree and give what it printed; nothing where it said what `absent` expects."""
        return await self.git.raw(*arguments, absent=absent, **await self._prepare_call(env, stdin))

    async def _prepare_call(self, env: Mapping[str, str] | None, stdin: bytes | None) -> How:
        """Say how git is called in the tree, whose folder may be gone."""
        cwd = self.place.path if await anyio.Path(self.place.path).is_dir() else self.place.admin
        return How(cwd=cwd, env=self.place.env | dict(env or {}), stdin=stdin, timeout=LONG)


async def under_way(place: WorkspacePaths) -> tuple[str, str] | tuple[None, None]:
    """Give what `UNDER_WAY` has of what git is in the midst of in a tree; None, twice: of nothing."""
    for name, state in UNDER_WAY.items():
        if await anyio.Path(place.admin, name).exists():
            return state
    return None, None


def ref_in(head: str) -> str | None:
    """Give the full ref that a file HEAD names; None: it is detached."""
    said = head.strip()
    return said.removeprefix("ref: ") if said.startswith("ref: ") else None


def _symbolic(file: Path) -> str | None:
    """Say where a ref leads; None: it has a commit of its own, or there is none."""
    try:
        said = os.readlink(file) if file.is_symlink() else file.read_text(errors="replace")
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    return clean(said.removeprefix("ref:").strip()) if file.is_symlink() or said.startswith("ref:") else None


def move_aside(place: Path, what: Path) -> Path:
    """Move what stands in the way in a tree, or in its place, next to the tree, as it is, and give where it is then."""
    left = moved_aside_path(place)
    left.mkdir(mode=0o700, exist_ok=True)
    number = max((int(one.name.split("-")[0]) for one in left.iterdir() if one.name[:1].isdecimal()), default=0) + 1
    target = left / f"{number}-{what.name.lstrip('.')}"
    with suppress(OSError):
        if what.is_dir() and not what.is_symlink():
            what.chmod(stat.S_IRWXU)  # a folder that may not be written to cannot be moved
    os.rename(what, target)
    return target


def moved_aside_path(place: Path) -> Path:
    """Say where what stood in the way of a tree lies next to it."""
    return place.parent / f".{place.name}.left"  # no part of a branch's name begins with a dot


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
