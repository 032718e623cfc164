"""What crosses the border of a place: calls of git go in, and objects come out.

Whoever worked there wrote its git's settings, so that each call runs in the sandbox of the place, with an environment
that holds none of ours. What it says is believed as little: a pack is looked at before anything of it is taken.
"""

import os
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

import anyio
import anyio.to_thread

from ashep.adapters import bubblewrap, programs
from ashep.adapters.bubblewrap import Bubblewrap, View, try_out
from ashep.adapters.git import durable
from ashep.adapters.git.clean import drafting
from ashep.adapters.git.program import LONG, NOTHING, PLACE, Git, Started
from ashep.adapters.git.repository import Folders, Place, Repository
from ashep.adapters.git.trees import lfs
from ashep.adapters.git.trees.lender import LENDER, packed
from ashep.adapters.git.trees.settings import CONFIG
from ashep.adapters.programs import Finished
from ashep.core.text import clean
from ashep.errors import TreeRefused
from ashep.redaction import Redaction

_GIVEN = ("PATH", "LANG", "TZ")
_MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
"""Bytes that a git may hold beside the files that it maps: it reads several files whole, however large they are."""
_BOUNDED = 'ulimit -d "$0" 2>/dev/null; exec "$@"'
_IDLE = 60.0
"""Seconds for a git that does nothing: one that waits at a pipe which stands for `.gitignore` waits for ever."""


class PlaceRepository(Repository):
    """The repository of a place, as sealing and saving see it."""

    def __init__(self, place: Place, prefix: str, redaction: Redaction, git: Git) -> None:
        super().__init__(place.path / prefix, redaction=redaction, git=git)
        self._folders = Folders(place.path, prefix, place.admin)

    async def update_refs(self, lines: Iterable[str]) -> None:
        """Change refs, all or none; they last no longer than the place."""
        if words := "".join(f"{line}\n" for line in lines):
            await self.shared("update-ref", "--no-deref", "--create-reflog", "--stdin", stdin=os.fsencode(words))

    async def keep(self, *commits: str) -> None:
        """Do nothing: what lasts is what comes out of the place."""

    async def unname(self, branch: str) -> tuple[str, ...]:
        """See to it that a branch is no symbolic ref, by git alone: who wrote its files may have made links of them."""
        ref = f"refs/heads/{branch}"
        if not (target := await self.shared("symbolic-ref", "--quiet", ref, absent=NOTHING)):
            return ()
        commit = await self.commit_of(ref)
        await self.shared("symbolic-ref", "--delete", ref)
        if commit is not None:
            await self.update_refs([f"update {ref} {commit}"])
        return (f"{branch} had become a symbolic ref to {clean(target)}; it is a branch again",)


class Inside:
    """Calls git in places below the folder `root`, in a sandbox if that is wished for and the machine has one."""

    def __init__(self, root: Path, *, sandbox: bool) -> None:
        self._root = root
        self._sandbox: Bubblewrap | str | None = None if sandbox else "it is not wished for"
        """What a trial gave: bubblewrap, or why there is none; None: it was not tried yet."""
        self._trying = anyio.Lock()

    def of(self, place: Place, prefix: str, redaction: Redaction) -> PlaceRepository:
        """Give the repository of a place. `prefix`: the project's folder in it, with a slash at its end."""
        settings, path = self._root / CONFIG, os.environ.get("PATH", bubblewrap.PATH)
        view = View(place.path, (place.path,), (self._root / LENDER / "objects", settings), path=path)
        usual = {name: os.environ[name] for name in _GIVEN if name in os.environ}
        usual |= {"HOME": str(settings), "GIT_CONFIG_GLOBAL": str(settings / "config"), "GIT_CONFIG_NOSYSTEM": "1"}

        async def call(argv: Sequence[str], how: Started) -> Finished:
            longest, bound = how["timeout"], min(how["timeout"], _IDLE)
            given: Started = {**how, "env": {**usual, **how["env"]}, "timeout": bound}
            sandbox = await self._tried()
            if isinstance(sandbox, str):
                return await programs.run(argv, cwd=place.path, longest=longest, **given)
            bounded = ("/bin/sh", "-c", _BOUNDED, str(_MEMORY // 1024), *argv)
            return await bubblewrap.run(sandbox, view, bounded, longest=longest, **given)

        git = Git(place.path, PLACE, LONG, redaction, call=call, common=place.admin)
        return PlaceRepository(place, prefix, redaction, git)

    async def isolates(self) -> bool:
        """Say whether it calls git in a sandbox."""
        return isinstance(await self._tried(), Bubblewrap)

    async def _tried(self) -> Bubblewrap | str:
        async with self._trying:
            if self._sandbox is None:
                self._sandbox = await try_out()
        return self._sandbox


# --- what comes out ---


async def bring(
    repository: Repository, inner: PlaceRepository, place: Place, new: Collection[str], known: Collection[str]
) -> list[str]:
    """Take objects out of a place that the repository lacks, and say what they name and is nowhere.

    Raises `TreeRefused`, and none is taken then.
    """
    try:
        brought = await packed(inner.git, place.env, new, known)
    except TreeRefused as error:
        raise TreeRefused(f"{place.path}: {error}") from error
    common = (await repository.folders()).common
    folder = common / "ashep" / "taking" / place.notes.name  # whoever calls this holds the branch
    async with drafting(folder):
        beside = {"GIT_DIR": str(common), "GIT_OBJECT_DIRECTORY": str(folder)}
        beside["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = _quoted(common / "objects")
        # not thin, so that no object of ours is made a part of theirs
        words = ("index-pack", "--stdin", "--fsck-objects")
        done = await repository.git.run(*words, cwd=common, env=beside, stdin=brought, timeout=LONG)
        if done.returncode:
            raise TreeRefused(f"{place.path}: git refuses what was committed there: {repository.git.said(done)[:300]}")
        words = ("rev-list", "--objects", "--no-object-names", "--stdin")
        asked = durable.reached(new, known)
        reached = await repository.git.run(*words, cwd=common, env=beside, stdin=asked, timeout=LONG)
        said = "" if not reached.returncode else repository.git.said(reached)[:300]
        index = await anyio.to_thread.run_sync(lambda: next((folder / "pack").glob("*.idx")).read_bytes())
        held = await repository.git.raw("show-index", cwd=common, env=beside, stdin=index) or b""
        foreign = {*reached.stdout.split()} - {line.split()[1] for line in held.splitlines()}
        if said or foreign:
            words = said or f"{min(foreign).decode()} is named there, and was never in it"
            raise TreeRefused(f"{place.path}: what was committed there is not whole: {words}")
        lacking = await lfs.take(repository, place, reached.stdout, beside, known)
        await anyio.to_thread.run_sync(_put_packs, folder / "pack", common / "objects" / "pack")
        return lacking


def _put_packs(found: Path, target: Path) -> None:
    """Put packs where they belong; the index last, by which git knows a pack."""
    target.mkdir(exist_ok=True)
    for file in sorted(found.iterdir(), key=lambda file: (file.suffix == ".idx", file.suffix)):
        os.rename(file, target / file.name)


def _quoted(path: Path) -> str:
    """Write a path as git reads it in a list of folders."""
    return '"' + str(path).replace("\\", "\\\\").replace('"', '\\"') + '"'
