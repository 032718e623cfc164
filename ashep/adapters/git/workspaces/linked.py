"""Work trees of issues, by way of git: `ashep.ports.workspaces.Workspaces` over `git worktree`."""

import os
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import anyio.to_thread

from ashep.adapters.git import command
from ashep.adapters.git.repository import (
    PATIENCE,
    SEALED,
    Repository,
    TreeRepository,
    WorkspacePaths,
    move_aside,
    moved_aside_path,
    size_of,
)
from ashep.adapters.git.tree_scan import Stat
from ashep.adapters.git.workspaces import amend, missing_objects, remove, seal
from ashep.adapters.git.workspaces.salvage import save, save_commits
from ashep.adapters.git.workspaces.seal import SealReport
from ashep.adapters.git.workspaces.setup_steps import Inside, made_by_set_up, refuse_links, set_up
from ashep.adapters.git.workspaces.submodules import is_filled_by
from ashep.core.facts.delivery import Amendment, Ground
from ashep.core.policy.disk_limits import FILE, room
from ashep.core.policy.settings import SetupStep
from ashep.core.state.branches import BASES, branch_in, folder_of
from ashep.core.text import clean
from ashep.errors import AshepError
from ashep.ports.workspaces import Amended, Changes, Landed, Prepared, Removed, SealedBranch, WorkspaceInfo
from ashep.redaction import Redaction

_ELSEWHERE = re.compile(r"'(?P<branch>[^']+)' is already (?:checked out|used by worktree) at '(?P<path>[^']+)'")
_AT_ONCE = 4
NO_COMMIT = "this repository has no commit yet: make one, for a branch must begin somewhere"


class Worktrees:
    """Trees below the folder `place`, of the repository that holds the folder `project`.

    Errors: those of the port; `ProgramMissing` without git and `ProgramTimedOut` are `AshepError`s too.
    """

    def __init__(
        self,
        project: Path,
        place: Path,
        *,
        setup: Sequence[SetupStep] = (),
        disk_floor: int = 0,
        base_branch: str | None = None,
        redaction: Redaction | None = None,
        enter: Callable[[Path], Awaitable[Inside | None]] | None = None,
    ) -> None:
        """`disk_floor`: bytes that must be free where a tree is made; `base_branch`: None is the checkout's HEAD;
        `enter`: gives where the agents of a tree run; None: as we do.
        """
        self._repository = Repository(project, redaction=redaction)
        self.root = self._place = place
        self._setup = tuple(setup)
        self._floor, self._base_branch, self._enter = disk_floor, base_branch, enter
        self._patience = PATIENCE + sum(step.timeout.total_seconds() for step in self._setup)

    async def prepare(self, branch: str, base: str | None, slot: int, ground: Ground = "own") -> Prepared:
        """See to it that the branch and its tree stand, and that it is set up; it is the same for every ground."""
        async with self._repository.hold(branch, self._patience):
            await self._repository.unname(branch)
            place = await self._standing(branch)
            if place is None:
                place, begun, head = await self._make(branch, base)
            else:
                head = await self._tip(branch)
                begun = await self._base_of(branch, head)
                await self._refresh(await self._inside(place), branch, begun, head)
                place = await self._moved(place, branch)
            folder = place.path / (await self._repository.folders()).prefix
            await anyio.to_thread.run_sync(refuse_links, place.path, folder)
            await anyio.Path(folder).mkdir(parents=True, exist_ok=True)
            inner = await self._inside(place)
            if not is_filled_by(self._setup):  # it finds them filled, else
                await self._fill(place, branch, begun, head)
            await set_up(self._repository, inner, self._setup, folder, slot, self._enter)
            await self._fill(place, branch, begun, head)
            await anyio.to_thread.run_sync(use, place, self._repository.project)
            return Prepared(str(folder), begun, head)

    async def check(self, commit: str, *, writes: bool, reads: bool) -> None:
        """Raise `AshepError` where no tree can begin at a commit. `writes`: what it needs may be fetched, and lent;
        `reads`: each file is read.
        """
        git = self._repository.git
        if writes:
            await missing_objects.fill(git, commit)
        if writes or await missing_objects.find_promisor(git) is None:
            await missing_objects.check_tree(git, commit, reads=reads)

    async def seal(self, branch: str, run: str, message: str) -> SealedBranch:
        """Commit what is uncommitted, and bring the branch to contain HEAD."""
        async with self._repository.hold(branch, self._patience):
            before = (await self._repository.refs(f"{SEALED}{branch}")).get(f"{SEALED}{branch}")
            own = await self._repository.unname(branch)
            tip, told = await self._tip(branch), SealReport()
            await self._leave(branch)
            place = await self._standing(branch, told)
            if place is not None:
                await self._commit(await self._inside(place), branch, tip, tip != before, (run, message), told)
            told.words += [*own, *self._repository.take_lock_notices()]
            head = await self._tip(branch)
            if before is not None and not await self._repository.contains(head, before):
                told.saved += await save_commits(self._repository, branch, (f"{SEALED}{branch}",))
                told.words.append(f"{branch} had {before[:12]}, which is not on it any more; it is saved")
            await self._repository.keep(head)
            ref = f"refs/heads/{branch}"
            await self._repository.update_refs([f"update {SEALED}{branch} {head}", f"verify {ref} {head}"])
            base = await self._base_of(branch, head)
            if place is not None:
                await anyio.to_thread.run_sync(use, place)
            tree = await self._repository.shared("rev-parse", f"{head}^{{tree}}")
            commits = (await self.changes(branch, base)).commits if head != base else ()
            lacking = tuple(told.lacking)
            names = await self._repository.unwritable(base, head) if head != base else ()
            return SealedBranch(head, tree, commits, (*told.words, *lacking), tuple(told.saved), lacking, names)

    async def amend(self, branch: str, run: str, head: str, wanted: Amendment) -> Amended:
        amended = await amend.amended(self._repository, run, head, wanted)
        if amended.head != head:
            await self.restore(branch, amended.head)
        return amended

    async def changes(self, branch: str, base: str) -> Changes:
        git, how = self._repository.git, await self._repository.git.in_no_tree()
        ref = f"refs/heads/{branch}"
        log = ("--reverse", "--topo-order", f"{base}..{ref}")
        return Changes(
            commits=tuple(commit for commit, _ in await command.history(git, *log, **how)),
            stat=await command.changed(git, command.STAT, "diff", base, ref, **how),
            diff=await command.changed(git, command.PATCH, "diff", base, ref, **how),
        )

    async def restore(self, branch: str, head: str) -> tuple[str, ...]:
        repository = self._repository
        async with repository.hold(branch, self._patience):
            await self._leave(branch)
            inner = await self._inside(await self._stands(branch))
            commit = await repository.commit_of(head)
            if commit is None:
                raise AshepError(f"{clean(head)} is no commit of this repository")
            await repository.unname(branch)
            mine = (f"refs/heads/{branch}", f"{SEALED}{branch}")
            saved = await self._set_back(inner, branch, commit, mine)
            await repository.update_refs([f"update {ref} {commit}" for ref in mine])
            return saved

    async def stands(self, branch: str) -> bool:
        """Say whether git knows a tree of the branch here, whether its folder is there or not."""
        return await self._find_tree(branch) is not None

    async def knows(self, branch: str) -> bool:
        """Say whether there is such a branch, or a tree of it."""
        ref = f"refs/heads/{branch}"
        return ref in await self._repository.refs(ref) or await self.stands(branch)

    async def remove(
        self,
        branch: str,
        *,
        forget: bool = False,
        drop_ignored: bool = False,
        unless: Callable[[], Awaitable[None]] | None = None,
    ) -> Removed:
        """Save the tree and take it away. `unless`: raises where it must not be; asked while the branch is held."""
        repository = self._repository
        async with repository.hold(branch, self._patience):
            if unless is not None:
                await unless()
            await self._leave(branch)
            refs = (f"refs/heads/{branch}", f"{BASES}{branch}", f"{SEALED}{branch}") if forget else ()
            place = await self._find_tree(branch)
            if forget:
                await self._refuse_elsewhere(branch, place)
            saved, freed = (), 0
            if place is not None:
                known, inner = await anyio.to_thread.run_sync(made_by_set_up, place), await self._inside(place)
                saved = await self._save(inner, branch, refs, (), known, ignored=not drop_ignored)
                freed = await anyio.to_thread.run_sync(size_of, *place.folders)
                await remove.take_away(self._repository, self._place, place)
            elif forget:
                saved = await save_commits(repository, branch, refs)
            there = await repository.refs(*refs) if forget else {}
            await repository.update_refs(f"delete {ref} {sha}" for ref, sha in there.items())
            await self._forget(branch)
            return Removed(saved, freed)

    async def retire(self, landed: Landed, quiet: timedelta) -> Removed:
        async with self._repository.hold(landed.branch, self._patience):
            await self._leave(landed.branch)
            place = await self._find_tree(landed.branch)
            await self._refuse_elsewhere(landed.branch, place)
            inner, save = await self._inside(place) if place else None, partial(self._save, ignored=True)
            removed = await remove.retire(self._repository, self._place, inner, save, landed, self._base_branch, quiet)
            await self._forget(landed.branch)
            return removed

    async def list(self, landed: Mapping[str, str] | None = None) -> tuple[WorkspaceInfo, ...]:
        repository = self._repository
        refs = await repository.refs("refs/heads/", BASES)
        root = await anyio.to_thread.run_sync(self._place.resolve)
        places = await self._all(root)
        merged = set[str]()
        if (onto := await self._base_commit(None)) is not None:
            listed = await repository.shared("for-each-ref", "--format=%(refname)", f"--merged={onto}", "refs/heads/")
            merged = set(listed.split("\n"))
        found = list[WorkspaceInfo]()
        limit = anyio.CapacityLimiter(_AT_ONCE)

        async def describe_tree(place: WorkspacePaths) -> None:
            async with limit:
                if not (place.broken or await anyio.Path(place.admin).is_dir()):
                    return  # somebody took it away meanwhile
                branch = branch_in(place.path.relative_to(root).as_posix())
                ref = f"refs/heads/{branch}"
                size = await anyio.to_thread.run_sync(size_of, *place.folders)
                files = (place.notes / "used", place.admin)
                times = await anyio.to_thread.run_sync(lambda: [one.stat().st_mtime for one in files if one.exists()])
                used = datetime.fromtimestamp(next(iter(times), 0), UTC)
                base, head = refs.get(f"{BASES}{branch}", ""), refs.get(ref, "")
                dirty = place.broken or place.ref != ref
                dirty = dirty or await remove.uncommitted(await self._inside(place)) is not None
                holds, seen = ref in merged, (landed or {}).get(head)
                has = bool(onto and head) and not holds and await repository.has(onto or "", head, seen)
                found.append(WorkspaceInfo(branch, str(place.path), base, head, dirty, size, used, holds, has))

        async with anyio.create_task_group() as group:
            for place in places:
                group.start_soon(describe_tree, place)
        return tuple(sorted(found, key=lambda standing: standing.branch))

    # --- what differs where a tree has a git of its own ---

    async def _leave(self, branch: str) -> None:
        """Have whoever works in the tree leave it, before our git looks into it."""

    async def _forget(self, branch: str) -> None:
        """Let what belongs to a tree that is gone go, too; also where a call that was killed took the tree away."""

    async def _refresh(self, inner: TreeRepository, branch: str, begun: str, head: str) -> None:
        """Bring a tree that stands to be as its branch and the base are."""
        await seal.repair(inner.place, SealReport())

    async def _fill(self, place: WorkspacePaths, branch: str, begun: str, head: str) -> None:
        """Fill the submodules of a tree; a linked one shares the settings by which git itself does so."""

    async def _move(self, place: WorkspacePaths, path: Path) -> None:
        """Move a tree; what git does not move, one with submodules say, stays where it is."""
        move = ("worktree", "move", str(place.path), str(path))
        await self._repository.git.run(*move, cwd=(await self._repository.folders()).top, timeout=command.LONG)

    async def _commit(
        self, inner: TreeRepository, branch: str, tip: str, moved: bool, words: tuple[str, str], told: SealReport
    ) -> None:
        """Commit what is in a tree. `moved`: others gave the branch its commit `tip`; `words`: the run, its message."""
        await seal.seal(inner, branch, tip, *words, told)

    async def _set_back(
        self, inner: TreeRepository, branch: str, commit: str, mine: tuple[str, str]
    ) -> tuple[str, ...]:
        """Set a tree to a commit; everything else is saved. `mine`: the refs that will have it."""
        return await seal.restore(inner, branch, commit, mine)

    async def _save(
        self,
        inner: TreeRepository,
        branch: str,
        dropped: Collection[str],
        reached: Collection[str],
        known: Mapping[bytes, Stat],
        *,
        ignored: bool,
    ) -> tuple[str, ...]:
        return await save(inner, branch, dropped=dropped, reached=reached, ignored=ignored, known=known)

    # --- where a tree is ---

    async def _all(self, root: Path) -> Sequence[WorkspacePaths]:
        return [place for place in await self._repository.places() if place.path.is_relative_to(root)]

    async def _inside(self, place: WorkspacePaths) -> TreeRepository:
        return await self._repository.open_tree(place)

    async def _find_tree(self, branch: str) -> WorkspacePaths | None:
        """Give the tree of a branch as git knows it, whether its folder is there or not."""
        root, places = await anyio.to_thread.run_sync(self._place.resolve), await self._repository.places()
        paths = (root / folder_of(branch), root / branch)
        return next((place for path in paths for place in places if place.path == path), None)

    async def _moved(self, place: WorkspacePaths, branch: str) -> WorkspacePaths:
        """Give a tree, or a place, that stands in a folder of before `folder_of` the one that it would have now."""
        path = (await anyio.to_thread.run_sync(self._place.resolve)) / folder_of(branch)
        if place.path == path or await anyio.to_thread.run_sync(os.path.lexists, path):
            return place
        await anyio.Path(path.parent).mkdir(mode=0o700, parents=True, exist_ok=True)
        await self._move(place, path)
        moved, left = await self._stands(branch), anyio.Path(moved_aside_path(place.path))
        if moved.path == path and await left.is_dir():
            await left.rename(moved_aside_path(path))
        return moved

    async def _refuse_elsewhere(self, branch: str, own: WorkspacePaths | None) -> None:
        """Raise where the branch is checked out in another work tree: without it that would be on no commit."""
        ref = f"refs/heads/{branch}"
        others = [place for place in await self._repository.places() if own is None or place.admin != own.admin]
        where = next((place.path for place in others if place.ref == ref), None)
        folders = await self._repository.folders()
        if where is None and await self._repository.main_ref() == ref:
            where = folders.common.parent
        if where is not None:
            raise AshepError(f"{branch} is checked out at {where}; switch that to another branch first")

    async def _stands(self, branch: str) -> WorkspacePaths:
        place = await self._find_tree(branch)
        if place is None or not await anyio.Path(place.path).is_dir():
            raise AshepError(f"the branch {branch} has no work tree; it must be prepared first")
        return place

    async def _standing(self, branch: str, told: SealReport | None = None) -> WorkspacePaths | None:
        """Give the tree that stands; what is left of one that was begun, or whose folder is gone, is cleared away.

        `told`: there was one, and what is in its place now is somebody's work; else whoever made it may want it there.
        """
        place = await self._find_tree(branch)
        lock = ""
        with suppress(OSError):  # git removes the file when the tree is complete
            lock = await anyio.Path(place.admin, "locked").read_text() if place is not None else ""
        if place is not None and lock.strip() == "initializing":
            # git had not made it when it was killed: nobody was in it
            await remove.take_away(self._repository, self._place, place)
            return None
        root = await anyio.to_thread.run_sync(self._place.resolve)
        path = anyio.Path(place.path if place else await anyio.to_thread.run_sync(path_of, root, branch))
        folder = await path.is_dir() and not await path.is_symlink()
        if place is not None and folder:
            return place
        kept = None
        if (place is not None or told is not None) and await anyio.to_thread.run_sync(os.path.lexists, path):
            kept = await anyio.to_thread.run_sync(move_aside, Path(path), Path(path))
        saved = await save(await self._inside(place), branch) if place else ()  # what was staged is not gone
        if place is not None:
            await remove.take_away(self._repository, self._place, place)
        if told is not None:
            told.saved += saved
            where = f"what stood in its place is in {kept}" if kept else "what was not committed there is gone with it"
            more = f", what was staged in {', '.join(saved)}" if saved else ""
            told.lacking.append(f"its work tree is gone: {where}{more}. The next run gets it anew, from {branch}")
        return None

    # --- making ---

    async def _make(self, branch: str, base: str | None) -> tuple[WorkspacePaths, str, str]:
        """Make the tree, and the branch where there is none; give them with the base and the branch's commit."""
        repository = self._repository
        await anyio.to_thread.run_sync(self._room)
        path = await anyio.to_thread.run_sync(self._free, branch)
        begun, head = await self._begin(branch, base)
        add = (*command.UNFLUSHED, "worktree", "add", "--quiet", str(path), branch)
        done = await repository.git.run(*add, cwd=(await repository.folders()).top, timeout=command.LONG)
        if done.returncode:
            said = repository.git.redact_stderr(done)
            if elsewhere := _ELSEWHERE.search(said):
                raise AshepError(
                    f"{branch} is checked out at {clean(elsewhere['path'])}; switch that to another branch, so that "
                    "the issue can be worked on in a tree of its own"
                )
            raise await command.failed(f"worktree add {branch}", done.returncode, said, path.parent)
        place = await self._find_tree(branch)
        if place is None:
            raise AshepError(f"git made the tree of {branch}, and does not know it")
        return place, begun, head

    async def _begin(self, branch: str, base: str | None) -> tuple[str, str]:
        """Make the branch where there is none; give its base and its commit."""
        repository, ref, sealed = self._repository, f"refs/heads/{branch}", f"{SEALED}{branch}"
        there = await repository.refs(ref, sealed, f"{BASES}{branch}")
        if ref in there or sealed in there:
            head = there.get(ref) or await self._tip(branch)  # an agent deleted it, or a person did
            begun = there.get(f"{BASES}{branch}") or await self._base_of(branch, head)
        else:
            head = begun = await self._base_commit(base)
            if head is None or begun is None:
                raise AshepError(NO_COMMIT)
            await repository.update_refs([f"update {BASES}{branch} {begun}", f"create {ref} {head}"])
        return begun, head

    def _room(self) -> None:
        """Raise where the disk has less room than there must be."""
        self._place.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = os.statvfs(self._place)
        free = found.f_bavail * found.f_frsize
        if room(free, found.f_files, found.f_favail) < self._floor:
            few = f"{free // 1024**2} MiB are free" if free < self._floor else f"only {found.f_favail} more files fit"
            raise AshepError(
                f"no new work tree: {few} where {self._place} is, and worker.disk_floor asks for "
                f"{self._floor // 1024**2} MiB, and {self._floor // FILE} files; see `ashep trees` for what could go"
            )

    def _free(self, branch: str) -> Path:
        """Give where the tree goes, which must be free."""
        path = path_of(self._place.resolve(), branch)
        if (path.is_dir() and any(path.iterdir())) or (os.path.lexists(path) and not path.is_dir()):
            raise AshepError(f"{path} is in the way of a new work tree, and git does not know it as one; move it away")
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path

    async def _base_commit(self, base: str | None) -> str | None:
        """Give the commit to begin from: the given one, else the base branch's; None: there is no commit yet.

        Raises `AshepError` where the given one, or the base branch, does not exist.
        """
        repository = self._repository
        name = base or self._base_branch
        if name is not None:
            found = await repository.commit_of(name)
            if found is None:
                raise AshepError(f"{clean(name)} is no commit of this repository: nothing can begin there")
            return found
        return await command.commit_of(repository.git, "HEAD")

    async def _tip(self, branch: str) -> str:
        """Give the branch's commit; one that an agent deleted is made again where it was sealed last."""
        ref, kept = f"refs/heads/{branch}", (f"{SEALED}{branch}", f"{BASES}{branch}")
        refs = await self._repository.refs(ref, *kept)
        if ref not in refs:
            last = next((refs[one] for one in kept if one in refs), None)
            if last is None:
                raise AshepError(f"there is no branch {branch}")
            await self._repository.update_refs([f"create {ref} {last}"])
            return last
        return refs[ref]

    async def _base_of(self, branch: str, head: str) -> str:
        """Give the recorded base; of a branch that somebody else made, where it left the base branch."""
        ref = f"{BASES}{branch}"
        if found := (await self._repository.refs(ref)).get(ref):
            return found
        base = await self._base_commit(None)
        common = await self._repository.shared("merge-base", head, base or head, absent=command.NOTHING)
        await self._repository.update_refs([f"update {ref} {common or head}"])
        return common or head


def path_of(root: Path, branch: str) -> Path:
    """Say where below `root` a branch is worked on: in a folder of before `folder_of`, as long as only that is there.

    When it is prepared next it is moved. Blocks.
    """
    path, before = root / folder_of(branch), root / branch
    return before if before.is_dir() and not os.path.lexists(path) else path


def use(place: WorkspacePaths, project: Path | None = None) -> None:
    """Note that a tree is used now, and whose it is: a command that is called in it is meant for that project."""
    place.notes.mkdir(mode=0o700, exist_ok=True)
    (place.notes / "used").touch()
    if project is not None:
        (place.notes / "project").write_text(f"{project.resolve()}\n")
