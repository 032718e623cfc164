"""What crosses the border of a place: calls of git go in, and objects come out.

Whoever worked there wrote its git's settings, so that each call runs in the sandbox of the place, with an environment
that holds none of ours. What it says is believed as little: a pack is looked at before anything of it is taken.
"""

import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio.to_thread

from ashep.adapters.git import fsync
from ashep.adapters.git.command import LONG, NOTHING, PLACE, Git, Started
from ashep.adapters.git.export import CommitSource, ExportedFiles, drafting
from ashep.adapters.git.repository import Repository, RepositoryFolders, TreeRepository, WorkspacePaths
from ashep.adapters.git.workspaces import lfs, packs
from ashep.adapters.git.workspaces.git_config import CONFIG
from ashep.adapters.git.workspaces.shared_objects import LENDER, packed
from ashep.adapters.sandboxes import bubblewrap
from ashep.adapters.sandboxes.bubblewrap import Bubblewrap, View, try_out
from ashep.adapters.system import programs
from ashep.adapters.system.programs import Finished
from ashep.core.text import clean
from ashep.errors import TreeRefused
from ashep.redaction import Redaction

_GIVEN = ("PATH", "LANG", "TZ")
_MEMORY = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
"""Bytes that a git may hold next to the files that it maps: it reads several files whole, however large they are."""
_IDLE = 60.0
"""Seconds for a git that does nothing: one that waits at a pipe which stands for `.gitignore` waits for ever."""

MEMORY, PROCESSOR = 1024**3, 600
"""Bytes, and seconds of a processor, that git may take to look at a pack; of a large file it holds a piece."""


class PlaceRepository(TreeRepository):
    """The repository of a place, as sealing and saving see it."""

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


class IsolatedGit:
    """Calls git in places below the folder `root`, in a sandbox if that is wished for and the machine has one."""

    def __init__(self, root: Path, *, sandbox: bool) -> None:
        self._root = root
        self._sandbox: Bubblewrap | str | None = None if sandbox else "it is not wished for"
        """What a trial gave: bubblewrap, or why there is none; None: it was not tried yet."""
        self._trying = anyio.Lock()

    def open_repository(self, place: WorkspacePaths, prefix: str, redaction: Redaction) -> PlaceRepository:
        """Give the repository of a place. `prefix`: the project's folder in it, with a slash at its end."""
        view = View(place.path, (place.path,), (self._root / LENDER / "objects",))
        git = Git(place.path, PLACE, LONG, redaction, call=partial(self._run, view, ()), common=place.admin)
        folders = RepositoryFolders(place.path, prefix, place.admin)
        return PlaceRepository(place, place.path / prefix, folders, git, redaction)

    async def _run(self, view: View, before: Sequence[str], argv: Sequence[str], how: Started) -> Finished:
        settings, path = self._root / CONFIG, os.environ.get("PATH", bubblewrap.PATH)
        usual = {name: os.environ[name] for name in _GIVEN if name in os.environ}
        usual |= {"HOME": str(settings), "GIT_CONFIG_GLOBAL": str(settings / "config"), "GIT_CONFIG_NOSYSTEM": "1"}
        longest = how["timeout"]
        given: Started = {**how, "env": {**usual, **how["env"]}, "timeout": min(longest, _IDLE)}
        sandbox = await self._tried()
        if isinstance(sandbox, str):
            return await programs.run([*before, *argv], cwd=view.at, longest=longest, **given)
        view = replace(view, readable=(*view.readable, settings), path=path)
        bounds = before or _bounds(f"ulimit -d {_MEMORY // 1024}")
        return await bubblewrap.run(sandbox, view, [*bounds, *argv], longest=longest, **given)

    async def add(self, made: ExportedFiles, brought: bytes, redaction: Redaction) -> set[bytes]:
        """Put a pack that a place's git wrote into a git folder of ours, and give the ids of its objects.

        Git looks at it where it can write nothing, and says no more than whether it takes it. Raises `TreeRefused`.
        """
        width, store = len(made.source.commit), made.folder / "objects"
        index, names = await anyio.to_thread.run_sync(packs.index_of, brought, "sha256" if width == 64 else "sha1")
        pack = store / "pack" / f"pack-{brought[-width // 2 :].hex()}.pack"

        def write() -> None:
            pack.write_bytes(brought)
            pack.with_suffix(".idx").write_bytes(index)

        await made.on_disk(write)
        view = View(made.folder, (), await anyio.to_thread.run_sync(lambda: (made.folder, *fsync.stores(store))))
        bounds = _bounds(f"ulimit -f 0; ulimit -d {MEMORY // 1024}; ulimit -t {PROCESSOR}")
        call = partial(self._run, view, bounds)
        git = Git(made.folder, PLACE, LONG, redaction, call=call, common=made.folder)
        words = ("index-pack", "--verify", "--fsck-objects", "--threads=1", str(pack))
        # by its own word, or by the bound of the processor; else it was not started, or stopped
        done = await git.bare(*words, accepted=(0, 128, 152, -24), timeout=LONG)
        if done.returncode:
            most = f"{MEMORY // 1024**2} MiB of memory and {PROCESSOR} s of processor time"
            raise TreeRefused(f"git, with {most}, refuses what was committed there: {git.redact_stderr(done)[:300]}")
        return {name.hex().encode() for name in names}

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
    repository: Repository,
    inner: TreeRepository,
    sandbox: IsolatedGit,
    new: Collection[str],
    known: Collection[str],
) -> list[str]:
    """Take objects out of a place that the repository lacks, and say what they name and is nowhere.

    Raises `TreeRefused`, and none is taken then.
    """
    common, place = (await repository.folders()).common, inner.place
    folder = common / "ashep" / "taking" / place.notes.name  # whoever calls this holds the branch
    async with drafting(folder):
        made = ExportedFiles(CommitSource(common / "objects", min(new), b""), folder, folder, 0)
        await made.on_disk(made.make_git)
        try:
            # not thin, so that no object of ours is made a part of theirs
            brought = await packed(inner.git, place.env, new, known)
            held = await sandbox.add(made, brought, repository.redaction)
        except TreeRefused as error:
            raise TreeRefused(f"{place.path}: {error}") from error
        beside = {"GIT_DIR": str(common), "GIT_OBJECT_DIRECTORY": str(folder / "objects")}
        words = ("rev-list", "--objects", "--no-object-names", "--stdin")
        asked = fsync.reached(new, known)
        reached = await repository.git.run(*words, cwd=common, env=beside, stdin=asked, timeout=LONG)
        said = "" if not reached.returncode else repository.git.redact_stderr(reached)[:300]
        foreign = {*reached.stdout.split()} - held
        if said or foreign:
            words = said or f"{min(foreign).decode()} is named there, and was never in it"
            raise TreeRefused(f"{place.path}: what was committed there is not whole: {words}")
        lacking = await lfs.take(repository, place, reached.stdout, beside, known)
        await anyio.to_thread.run_sync(_put_packs, folder / "objects" / "pack", common / "objects" / "pack")
        return lacking


def _put_packs(found: Path, target: Path) -> None:
    """Put packs where they belong; the index last, by which git knows a pack."""
    target.mkdir(exist_ok=True)
    for file in sorted(found.iterdir(), key=lambda file: (file.suffix == ".idx", file.suffix)):
        os.rename(file, target / file.name)


def _bounds(limits: str) -> tuple[str, ...]:
    """Return the words that start a program with these limits of the shell."""
    return ("/bin/sh", "-c", f'{{ {limits}; }} 2>/dev/null; exec "$@"', "sh")
