"""The lender: a repository of ours that holds the history of the base and nothing else; places borrow its objects.

The user's own repository lends nothing: whoever reads its objects reads what was saved of other issues, secrets with
it. The lender is never collected, so that what a place borrows stays there whatever the user prunes.
"""

import os
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import anyio.to_thread

from ashep.adapters.git.command import LONG, WORK_TREE, Git
from ashep.adapters.git.export import end_of_history
from ashep.adapters.git.fsync import reached
from ashep.adapters.git.repository import Repository
from ashep.adapters.git.workspaces import missing_objects
from ashep.core.state.branches import file_of
from ashep.errors import AshepError, TreeRefused
from ashep.journal import durable_io

LENDER = ".lender"
"""Its folder, next to the places."""

MOST_BROUGHT = 256 * 1024**2
"""Bytes of a pack that goes in or out of a place at once."""

PINS = "refs/pins/"
"""Below it, by branch: the commit that it began from, which the base branch need not have any more."""

_WHOLE = ("HEAD", "config", "objects", "refs")
_LENT = ("refs/tags/", "refs/remotes/origin/")


@dataclass(frozen=True, slots=True)
class BorrowedObjects:
    """What a place is given of the repository next to its own branch."""

    objects: Path
    """The folder that its objects are borrowed from."""
    refs: dict[str, str]
    """The base branch, the tags, and the branches of `origin`, with their objects."""
    shallow: bytes
    """Where the history of a shallow clone ends (`ashep.adapters.git.export.end_of_history`)."""
    kind: str
    """The format of objects, `sha1` or `sha256`."""

    @property
    def tips(self) -> list[str]:
        """Objects that a place has, with all that they reach."""
        return sorted({*self.refs.values()})


class ObjectStore:
    """Keeps a lender in a folder, for a repository. Errors as those of `Repository`."""

    def __init__(self, repository: Repository, folder: Path) -> None:
        self._repository, self.folder = repository, folder
        self._kind: str | None = None
        self._git = Git(folder, WORK_TREE, LONG, common=folder)

    async def lend(self, branch: str, begun: str, base: str | None) -> BorrowedObjects:
        """Bring the lender to hold what the repository has now, and where a branch began; give what is lent.

        `base`: the base branch; None: HEAD is on none.
        """
        repository = self._repository
        async with repository.hold(".lender"):
            if self._kind is None:
                await missing_objects.reach(repository.git)
                self._kind = await repository.shared("rev-parse", "--show-object-format")
            if not all([await anyio.Path(self.folder, name).exists() for name in _WHOLE]):
                await anyio.Path(self.folder.parent).mkdir(mode=0o700, parents=True, exist_ok=True)
                words = ("init", "--quiet", "--bare", "--template=", f"--object-format={self._kind}", str(self.folder))
                await self._git.raw(*words, cwd=self.folder.parent)
            own = (f"refs/heads/{base}",) if base else ()
            lent = await repository.refs(*_LENT, *own)
            lent = {ref: sha for ref, sha in lent.items() if ref.startswith(_LENT) or ref in own}
            listed = await self._git.bare("for-each-ref", "--format=%(refname)%00%(objectname)")
            there = dict(line.split("\0") for line in os.fsdecode(listed.stdout).split("\n") if line)
            pins = {ref: sha for ref, sha in there.items() if ref.startswith(PINS)}
            if begun not in {*lent.values(), *pins.values()}:
                pins[f"{PINS}{file_of(branch)}"] = begun
            shallow = await anyio.to_thread.run_sync(end_of_history, (await repository.folders()).common)
            ends = await anyio.to_thread.run_sync(end_of_history, self.folder)
            if lent | pins != there or shallow != ends:  # with another end of history nothing is known to be whole
                await missing_objects.fill(repository.git, begun)
                await self._bring(lent | pins, there, [] if shallow != ends else there.values(), begun)
                await anyio.to_thread.run_sync(self._end_at, shallow)
            return BorrowedObjects(self.folder / "objects", lent, shallow, self._kind)

    async def _bring(self, wanted: dict[str, str], there: dict[str, str], known: Iterable[str], begun: str) -> None:
        """Pack what is not there yet, then name it: a kill in between costs a pack that nobody names.

        What only the history has and nobody can read stays out; what the commit `begun` has must be there.
        """
        if new := {*wanted.values()} - {*known}:
            await self._pack(new, await find_objects(self._repository, known), begun)
        gone = [ref for ref in there if ref not in wanted]
        changed = [(ref, sha) for ref, sha in wanted.items() if there.get(ref) != sha]
        for lines in ([f"delete {ref}" for ref in gone], [f"update {ref} {sha}" for ref, sha in changed]):
            if lines:  # one after the other: a branch may stand where a folder of branches was
                await self._git.bare("update-ref", "--stdin", stdin=os.fsencode("".join(f"{line}\n" for line in lines)))

    async def _pack(self, new: Collection[str], known: Collection[str], begun: str) -> None:
        git, folder = self._repository.git, self.folder / "objects" / "pack"
        if await missing_objects.find_promisor(git) is None:  # else all of it would be fetched
            with suppress(AshepError):
                await pack(self._repository, new, known, folder)
                return
        lacking = await missing_objects.pack_readable(git, new, known, folder)
        await missing_objects.check_tree(git, begun, lacking)

    def _end_at(self, shallow: bytes) -> None:
        if shallow:
            durable_io.replace(self.folder / "shallow", shallow)
        else:
            (self.folder / "shallow").unlink(missing_ok=True)


async def find_objects(repository: Repository, objects: Iterable[str]) -> set[str]:
    """Give those of the objects that the repository has."""
    asked = "".join(f"{one}\n" for one in objects)
    said = await repository.shared("cat-file", "--batch-check=%(objectname)", "--buffer", stdin=asked.encode())
    return {line for line in said.splitlines() if not line.endswith(" missing")}


async def packed(git: Git, env: Mapping[str, str], new: Iterable[str], known: Iterable[str]) -> bytes:
    """Give what is reached from objects, and not from known ones, as a pack of whole objects.

    Raises `TreeRefused`, in git's words, or where it would have more than `MOST_BROUGHT` bytes.
    """
    brought, size = bytearray(), 0

    def take(piece: bytes) -> None:
        nonlocal size
        size += len(piece)
        if size <= MOST_BROUGHT:
            brought.extend(piece)

    # no delta is made, taken over, or in a part of a pack that is taken over as it is
    words = ("pack-objects", "--revs", "--stdout", "--quiet", "--window=0", "--no-reuse-delta", "--no-use-bitmap-index")
    where = dict(env) or {"GIT_DIR": str(await git.common())}
    done = await git.run(*words, cwd=await git.common(), env=where, stdin=reached(new, known), take=take, timeout=LONG)
    if done.returncode:
        raise TreeRefused(f"git cannot pack what is there: {git.redact_stderr(done)[:300]}")
    if size > MOST_BROUGHT:
        most = f"{MOST_BROUGHT // 1024**2} MiB"
        raise TreeRefused(f"what was committed is more than {most}; take out of the commits what does not belong there")
    return bytes(brought)


async def pack(repository: Repository, new: Iterable[str], known: Iterable[str], folder: Path) -> None:
    """Write what is reached from objects of the user's, and not from known ones, into a folder of packs of ours."""
    words = ("pack-objects", "--revs", "--quiet", "--delta-base-offset", str(folder / "pack"))
    await repository.git.bare(*words, stdin=reached(new, known), timeout=LONG)
