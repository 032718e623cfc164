"""Places of branches: a folder with a git of its own for each, in which nothing leads to the user's repository.

An agent may do there what it likes. Our git looks into a place through `Call` alone, which is its sandbox where there
is one; what comes out is the id of a commit and a pack of objects, and the pack is taken only if it holds all that it
brings: a commit that names a file which the place never had would show that file to whoever reads the branch.
"""

import os
import re
import shutil
import stat
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import anyio.to_thread

from ashep.adapters.git.command import LONG, NOTHING, PLACE, SHA, TRAILER, Git
from ashep.adapters.git.export import CommitSource, ExportedFiles, drafting, end_of_history
from ashep.adapters.git.repository import TreeRepository, WorkspacePaths, move_aside, ref_in
from ashep.adapters.git.submodules import MODULES, find_submodules
from ashep.adapters.git.tree_scan import Stat
from ashep.adapters.git.workspaces import git_config, lfs, missing_objects, salvage, seal
from ashep.adapters.git.workspaces.hooks import KEY, HookPolicy, Hooks, copy_hooks, find_hooks, switch_hooks
from ashep.adapters.git.workspaces.isolated_git import IsolatedGit, PlaceRepository, bring
from ashep.adapters.git.workspaces.linked import NO_COMMIT, Worktrees, path_of
from ashep.adapters.git.workspaces.review_checkout import CLOSED, lay
from ashep.adapters.git.workspaces.shared_objects import (
    LENDER,
    BorrowedObjects,
    ObjectStore,
    find_objects,
    pack,
    packed,
)
from ashep.adapters.git.workspaces.submodules import changed_submodules, fill_place
from ashep.adapters.system.folders import delete
from ashep.core.facts.delivery import Ground
from ashep.core.policy.instructions import Instructions
from ashep.core.state.branches import BASES, branch_in, file_of, folder_of
from ashep.core.text import clean
from ashep.errors import AshepError, TreeRefused
from ashep.journal import durable_io
from ashep.ports.workspaces import Prepared

NOTES, MAKING, GROUND = ".notes", ".making", ".ground"
"""Beside the places: what we note of each, those that are being made, and what judges stand on.

No agent works in the first two, so that a branch is quoted there: a note is found wherever the place of its branch is.
"""

TRIAL = "ashep/+install"
"""The branch that a place for trials is on; no ref of the repository has its name."""


_ELSEWHERE = "commondir"
"""The file in which git looks for where a repository's refs, settings and objects are: a whole one has none."""
_FETCHED = "+refs/heads/*:refs/remotes/origin/*"
_PASSWORD = re.compile(r"\A(https?://)[^/@]*@", re.IGNORECASE)
_SAVED = re.compile(r"(?P<number>\d+)/(?P<name>[a-z]+(?:-\d+)?)")


class Clones(Worktrees):
    """Places below the folder `place`, of the repository that holds the folder `project`.

    `sandbox`: our git looks into a place in one, where the machine has it.
    """

    def __init__(
        self,
        project: Path,
        place: Path,
        *,
        sandbox: bool = True,
        leave: Callable[[Path], Awaitable[None]] | None = None,
        forget: Callable[[Path], Awaitable[None]] | None = None,
        hooks: HookPolicy = "run",
        instructions: Sequence[str] = (),
        **options: Any,
    ) -> None:
        """`leave`: ends every process that works in a place, before our git looks into it; `forget`: lets what belongs
        to a place that is gone go, too. Both may be called again. `hooks`: whether an agent's own commits run the
        team's hooks. `instructions`: globs of more files that tell agents how to work. `options`: those of `Worktrees`.
        """
        super().__init__(project, place, **options)
        self._leaving, self._forgetting = leave, forget
        self._hooks: HookPolicy = hooks
        self._instructions = Instructions(instructions)
        self._sandboxed = sandbox
        self._calls: IsolatedGit | None = None
        self._lender = ObjectStore(self._repository, place / LENDER)

    async def stands(self, branch: str) -> bool:
        """Say whether a place was made for the branch, whatever became of it."""
        return await anyio.Path((await self._locate_clone(branch)).notes).exists()

    async def check(self, commit: str, *, writes: bool, reads: bool) -> None:
        """Raise `AshepError` where no place can begin at a commit; what it borrows is lent, where that may be."""
        if writes:
            await self._lent("@trial", commit)
        else:
            await missing_objects.reach(self._repository.git)
        await super().check(commit, writes=writes, reads=reads and not writes)  # what was lent was read

    async def prepare(self, branch: str, base: str | None, slot: int, ground: Ground = "own") -> Prepared:
        """See to it that the branch and its place stand, and that it is set up, or what it holds is laid out."""
        if ground == "sealed":
            async with self._repository.hold(branch, self._patience):
                await self._repository.unname(branch)
                return await self._lay(branch, base)
        if ground == "fresh":
            await self._refuse_elsewhere(branch, None)  # it could not be made again
            # what is built there is built again: saved each time it would fill the repository
            await self.remove(branch, drop_ignored=True)
        return await super().prepare(branch, base, slot)

    async def _leave(self, branch: str) -> None:
        if self._leaving is not None and await self.stands(branch):
            await self._leaving((await self._locate_clone(branch)).path)

    async def _forget(self, branch: str) -> None:
        path = (await self._locate_clone(branch)).path
        await anyio.to_thread.run_sync(delete, await self._ground_of(branch))
        if self._forgetting is not None:
            await self._forgetting(path)

    async def _move(self, place: WorkspacePaths, path: Path) -> None:
        if self._forgetting is not None:  # its server, which is known by its path, ends
            await self._forgetting(place.path)
        await anyio.Path(place.path).rename(path)

    # --- making ---

    async def _make(self, branch: str, base: str | None) -> tuple[WorkspacePaths, str, str]:
        """Make the place, and the branch where there is none; give it with the base and the branch's commit."""
        await self._refuse_elsewhere(branch, None)
        if self._forgetting is not None:  # of one that somebody deleted, too: what worked in it would go on there
            await self._forgetting((await self._locate_clone(branch)).path)
        await anyio.to_thread.run_sync(self._room)
        await anyio.to_thread.run_sync(self._free, branch)
        begun, head = await self._begin(branch, base)
        lent = await self._lent(branch, begun)
        return await self._build(branch, head, lent), begun, head

    async def _lay(self, branch: str, base: str | None) -> Prepared:
        """Lay out what the branch has now, for who only reads; what was laid out before goes."""
        repository, folder = self._repository, await self._ground_of(branch)
        await anyio.to_thread.run_sync(self._room)
        begun, head = await self._begin(branch, base)
        await missing_objects.fill(repository.git, head)
        mine = self._base_branch is None and await repository.main_ref() == f"refs/heads/{branch}"
        onto = begun if mine else await self._base_commit(None) or begun  # a person who looks at it is on no base
        shared = await repository.shared("merge-base", head, onto, absent=NOTHING) or begun
        folders = await repository.folders()
        shallow = await anyio.to_thread.run_sync(end_of_history, folders.common)
        source = CommitSource(folders.common / "objects", head, shallow)
        async with self._drafting(branch) as draft:
            submodules = await find_submodules(folders.common, head, begun)
            contents = await lfs.store_of(self._repository)
            made = await lay(
                source, shared, draft, folders.prefix, self._floor, submodules, self._instructions, contents
            )

            def put() -> None:
                delete(folder)
                folder.parent.mkdir(mode=0o700, exist_ok=True)
                made.rename(folder)
                folder.chmod(CLOSED)

            await anyio.to_thread.run_sync(put)
        return Prepared(str(folder / folders.prefix), begun, head)

    async def _lent(self, branch: str, begun: str) -> BorrowedObjects:
        base = self._base_branch
        if base is None and (ref := await self._repository.main_ref()):
            base = ref.removeprefix("refs/heads/")
        return await self._lender.lend(branch, begun, base)

    async def _build(self, branch: str, head: str, lent: BorrowedObjects) -> WorkspacePaths:
        """Make a place: beside, then put where it belongs, so that a kill leaves nothing half made there."""
        place = await self._locate_clone(branch)
        async with self._draft(branch, head, lent) as draft:

            def put() -> None:
                delete(place.notes)  # of one that went
                _write_given(place, lent.refs)
                if place.path.exists():
                    place.path.rmdir()
                draft.path.rename(place.path)

            await anyio.to_thread.run_sync(put)
        return place

    @asynccontextmanager
    async def _draft(self, branch: str, head: str, lent: BorrowedObjects) -> AsyncGenerator[WorkspacePaths]:
        """Have a place next to the places, with all that a new one has but its notes."""
        place = await self._locate_clone(branch)
        async with self._drafting(branch) as folder:
            draft = replace(place, path=folder, admin=folder / ".git")
            await self._make_git(draft, branch, head, lent)
            git = Git(folder, PLACE, LONG, self._repository.redaction, common=draft.admin)
            await git.raw("read-tree", "--reset", "-u", "HEAD", env=draft.env)
            yield draft

    @asynccontextmanager
    async def trial(self) -> AsyncGenerator[WorkspacePaths]:
        """Have a place of the base to try things in, which goes with all that is in it; nobody knows of it."""
        async with self._repository.hold(TRIAL):
            if (head := await self._base_commit(None)) is None:
                raise AshepError(NO_COMMIT)
            async with self._draft(TRIAL, head, await self._lent(TRIAL, head)) as draft:
                yield draft

    async def hooks(self) -> Hooks:
        """Find the hooks that a place has."""
        user_settings, folders = await git_config.read(self._repository.git), await self._repository.folders()
        return await anyio.to_thread.run_sync(lambda: find_hooks(user_settings, folders, self._hooks))

    @asynccontextmanager
    async def _drafting(self, branch: str) -> AsyncGenerator[Path]:
        """Have a folder next to the places to make something in."""
        root = await anyio.to_thread.run_sync(self._place.resolve)
        folder, ignore = root / MAKING / file_of(branch), anyio.Path(root, ".gitignore")
        async with drafting(folder):
            if not await ignore.exists():
                await ignore.write_text("*\n")
            yield folder

    async def _make_git(self, place: WorkspacePaths, branch: str, head: str, lent: BorrowedObjects) -> None:
        """Make git's folder of a place, which nobody has been in: files, and the branch's own objects."""
        repository = self._repository
        common = (await repository.folders()).common
        said = await self._settings()
        settings = [("core.repositoryformatversion", "0"), ("core.bare", "false"), ("core.logallrefupdates", "true")]
        settings += [(key, value) for key, value in said if key.startswith("core.sparse")]
        settings += git_config.select_settings(said)
        hooks = await self.hooks()
        settings += [(KEY, hooks.path)] if hooks.path is not None else []
        if url := dict(said).get("remote.origin.url"):
            settings += [("remote.origin.url", _PASSWORD.sub(r"\1", url)), ("remote.origin.fetch", _FETCHED)]
        if lent.kind != "sha1":
            settings += [("core.repositoryformatversion", "1"), ("extensions.objectformat", lent.kind)]

        def write() -> None:
            for name in ("objects/info", "objects/pack", "refs/heads", "info", "hooks"):
                (place.admin / name).mkdir(parents=True)
            (place.admin / "HEAD").write_text(f"ref: refs/heads/{branch}\n")
            (place.admin / "config").write_bytes(git_config.format_settings(settings))
            (place.admin / "objects" / "info" / "alternates").write_bytes(os.fsencode(lent.objects) + b"\n")
            refs = {**lent.refs, f"refs/heads/{branch}": head}
            lines = [f"{sha} {ref}\n" for ref, sha in sorted(refs.items())]
            (place.admin / "packed-refs").write_bytes(os.fsencode("".join(lines)))
            if lent.shallow:
                (place.admin / "shallow").write_bytes(lent.shallow)
            for name in ("info/exclude", "info/sparse-checkout", "info/attributes"):
                if (common / name).is_file():
                    shutil.copyfile(common / name, place.admin / name)
            copy_hooks(hooks, place)

        await anyio.to_thread.run_sync(write)
        if head not in lent.tips:
            known = await find_objects(repository, lent.tips)
            await pack(repository, [head], known, place.admin / "objects" / "pack")
        await lfs.give(repository, place, [head])

    async def _settings(self) -> Sequence[tuple[str, str]]:
        """Give the user's settings of git, and write down what of them is told in places."""
        said = await git_config.read(self._repository.git)
        await anyio.to_thread.run_sync(lambda: git_config.write_down(said, self._place.resolve()))
        return said

    async def _refresh(self, inner: TreeRepository, branch: str, begun: str, head: str) -> None:
        """Give a place that stands what the base, the tags and `origin` have now, and the branch what it has."""
        await self._refuse_elsewhere(branch, None)
        place, lent, ours = inner.place, await self._lent(branch, begun), f"refs/heads/{branch}"
        await self._settings()
        await switch_hooks(inner, await self.hooks())
        on = await inner.shared("symbolic-ref", "--quiet", "HEAD", absent=NOTHING)
        given = await anyio.to_thread.run_sync(_read_given, place)
        fresh = {ref: sha for ref, sha in lent.refs.items() if given.get(ref) != sha and ref not in (on, ours)}
        await _update(inner, [f"update {ref} {sha}" for ref, sha in fresh.items()])
        await anyio.to_thread.run_sync(_write_given, place, lent.refs)
        await lfs.give(self._repository, place, [sha for ref, sha in fresh.items() if ref.startswith("refs/heads/")])
        await self._have(inner, branch, head)
        if on == ours and (await inner.refs(ours)).get(ours) != head:  # a person, or a landing, gave the branch more
            await inner.ask("merge", "--quiet", "--ff-only", head)

    async def _fill(self, place: WorkspacePaths, branch: str, begun: str, head: str) -> None:
        submodules = await find_submodules((await self._repository.folders()).common, head, begun)
        await fill_place(place, submodules, partial(self._drafting, branch), self._floor)

    async def _have(self, inner: TreeRepository, branch: str, head: str) -> None:
        """See to it that a place has the branch's commit, and a branch: an agent may have deleted either."""
        if head not in await find_objects(inner, [head]):
            known = await find_objects(inner, [*(await self._repository.refs(f"{BASES}{branch}")).values()])
            brought = await packed(self._repository.git, {}, [head], known)
            await inner.inside("index-pack", "--stdin", stdin=brought)
            await lfs.give(self._repository, inner.place, [head])
        ref = f"refs/heads/{branch}"
        if ref not in await inner.refs(ref):
            await inner.update_refs([f"create {ref} {head}"])

    # --- what comes out ---

    async def _commit(
        self, inner: TreeRepository, branch: str, tip: str, moved: bool, words: tuple[str, str], told: seal.SealReport
    ) -> None:
        """Commit what is in a place, and bring the branch to have it."""
        await self._refuse_elsewhere(branch, None)  # it would change under whoever is there
        told.words += await inner.unname(branch)
        await self._have(inner, branch, tip)
        await seal.seal(inner, branch, tip, *words, told)
        told.words += await anyio.to_thread.run_sync(changed_submodules, inner.place)
        if moved:
            await self._join(inner, branch, tip, words[0])
        told.saved[:] = await self._take(inner, branch, tip, told)

    async def _set_back(
        self, inner: TreeRepository, branch: str, commit: str, mine: tuple[str, str]
    ) -> tuple[str, ...]:
        """Set a place to a commit; everything else is saved, and comes out."""
        await self._refuse_elsewhere(branch, None)
        tip = await self._tip(branch)
        await inner.unname(branch)
        await self._have(inner, branch, commit)
        await seal.restore(inner, branch, commit, mine)
        saved = await self._take(inner, branch, tip)
        return (*saved, *await salvage.save_commits(self._repository, branch, mine, (commit,)))

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
        """Save all that a place holds and the repository does not, and what only its refs that are dropped hold."""
        tip = await self._tip(branch)
        there = await self._find_common_objects(inner, branch, tip)
        lost = [ref for ref, sha in (await inner.refs("refs/")).items() if sha not in there]
        lost = [ref for ref in lost if not ref.startswith(salvage.SAVED)]
        await salvage.save(inner, branch, dropped=lost, reached=sorted(there), ignored=ignored, known=known)
        saved = await self._take(inner, branch, tip)
        return (*saved, *await salvage.save_commits(self._repository, branch, dropped, reached)) if dropped else saved

    async def _join(self, inner: TreeRepository, branch: str, tip: str, run: str) -> None:
        """Merge what others brought to the branch meanwhile. Raises `TreeRefused` where that cannot be."""
        head = (await inner.refs(f"refs/heads/{branch}")).get(f"refs/heads/{branch}", "")
        if not head or await inner.contains(head, tip):
            return
        words = ("merge", "--quiet", "--no-verify", "--no-ff", "-m", "Merge what others brought to the branch")
        env = await seal.identity(inner)
        done = await inner.ask(*words, "-m", f"{TRAILER}: {clean(run)}".replace("\n", " "), tip, env=env)
        if done.returncode:
            await inner.ask("merge", "--abort")
            raise TreeRefused(
                f"{inner.place.path}: {branch} was given commits ({tip[:12]}) that cannot be merged with what was "
                f"worked there. Nothing is lost: go there, `git merge {tip[:12]}`, solve the conflicts, commit."
            )

    async def _find_common_objects(self, inner: TreeRepository, branch: str, tip: str) -> set[str]:
        """Give objects that both have, with all that they reach: the branch's commit, and what was lent."""
        lent = await self._lent(branch, await self._base_of(branch, tip))
        known = await find_objects(self._repository, [tip, *lent.tips])
        return await find_objects(inner, known) & known

    async def _take(
        self, inner: TreeRepository, branch: str, tip: str, told: seal.SealReport | None = None
    ) -> tuple[str, ...]:
        """Bring out what was saved in a place, and what its branch has, to move the user's, if that is `told`; give
        the refs of what was saved.
        """
        repository, ours, prefix = self._repository, f"refs/heads/{branch}", f"{salvage.SAVED}{branch}/"
        there = await inner.refs(ours, prefix)
        head = there.pop(ours, tip) if told else tip
        named = [(ref.removeprefix(prefix), sha) for ref, sha in sorted(there.items()) if ref.startswith(prefix)]
        have = {*(await repository.shared("for-each-ref", "--format=%(objectname) %(parent)", prefix)).split()}
        fresh = [(match, sha) for name, sha in named if (match := _SAVED.fullmatch(name)) and sha not in have]
        if new := {head, *(sha for _, sha in fresh)} - {tip}:
            if wrong := [sha for sha in new if not SHA.fullmatch(sha)]:
                raise TreeRefused(f"{inner.place.path}: git named {clean(wrong[0])[:60]!r} there, which is no commit")
            lacking = await bring(
                repository, inner, await self._isolated_git(), new, await self._find_common_objects(inner, branch, tip)
            )
            if told:
                told.lacking += lacking
        last = max((int(ref.removeprefix(prefix).split("/")[0]) for ref in await repository.refs(prefix)), default=0)
        groups = {*(match["number"] for match, _ in fresh)}
        numbers = {number: last + at for at, number in enumerate(sorted(groups, key=int), 1)}
        refs = {f"{prefix}{numbers[match['number']]}/{match['name']}": sha for match, sha in fresh}
        rest = f"{prefix}{last + len(groups) + 1}/{salvage.REST}"
        refs, more = await salvage.at_most(repository, refs, rest)
        if more and told:
            told.words.append(f"git names much as saved there: {more} more are the parents of {rest}")
        await repository.keep(*new, *refs.values())
        lines = [f"create {ref} {sha}" for ref, sha in refs.items()]
        await repository.update_refs([*lines, *([f"update {ours} {head} {tip}"] if head != tip else [])])
        return tuple(refs)

    async def copy(self, branch: str, begun: str, folder: Path) -> str:
        """Make a repository in an empty folder, with what a place has committed, and give that commit: HEAD.

        Agents may be at work there: git reads it in its sandbox, and we nothing. `begun`: where the branch began.
        Raises `AshepError`, also where there is no sandbox.
        """
        place = await self._locate_clone(branch)
        inner, isolated_git = await self._inside(place), await self._isolated_git()
        if not await isolated_git.isolates():
            raise TreeRefused(f"{place.path}: git can look into it in a sandbox only, while somebody is at work there")
        lent = await self._lent(branch, begun)
        known = await find_objects(inner, lent.tips) & {*lent.tips}
        if (head := await inner.commit_of("HEAD")) is None:
            raise TreeRefused(f"{place.path}: nothing is committed there")
        brought = await packed(inner.git, place.env, [head], known)
        made = ExportedFiles(CommitSource(lent.objects, head, lent.shallow), folder / ".git", folder, self._floor)
        await made.on_disk(made.make_git)
        await isolated_git.add(made, brought, self._repository.redaction)
        await made.git("rev-list", "--objects", "--quiet", head)  # it is whole
        modules = (await self._repository.folders()).common / MODULES  # which are read where this commit is checked
        await anyio.Path(made.folder, MODULES).symlink_to(modules)
        return head

    # --- where they are ---

    async def _ground_of(self, branch: str) -> Path:
        """Say where what a branch holds is laid out."""
        return (await anyio.to_thread.run_sync(self._place.resolve)) / GROUND / folder_of(branch, flat=True)

    async def _locate_clone(self, branch: str) -> WorkspacePaths:
        """Say where the place of a branch is, whether it stands or not."""
        root = await anyio.to_thread.run_sync(self._place.resolve)
        path = await anyio.to_thread.run_sync(path_of, root, branch)
        return WorkspacePaths(path, path / ".git", f"refs/heads/{branch}", beside=root / NOTES / file_of(branch))

    async def _find_tree(self, branch: str, told: seal.SealReport | None = None) -> WorkspacePaths | None:
        """Give the place of a branch, whether its folder is there or not; a git that is gone is made again."""
        if not await self.stands(branch):
            return None
        place = await self._looked_at(await self._locate_clone(branch), branch)
        folder = anyio.Path(place.path)
        if place.broken and await folder.is_dir() and not await folder.is_symlink():
            await self._mend(place, branch, told or seal.SealReport())
            return await self._looked_at(place, branch)
        return place

    async def _looked_at(self, place: WorkspacePaths, branch: str) -> WorkspacePaths:
        """Say which branch HEAD is on in a place, and whether it is broken; it borrows from the lender alone then."""
        ref = await anyio.to_thread.run_sync(_head_of, place, f"refs/heads/{branch}")
        if ref is not None:
            lender = (await anyio.to_thread.run_sync(self._place.resolve)) / LENDER / "objects"
            await anyio.to_thread.run_sync(_borrow, place, lender)
        return replace(place, ref=ref or None, broken=ref is None)

    async def _standing(self, branch: str, told: seal.SealReport | None = None) -> WorkspacePaths | None:
        """Give the place that stands; what stands there instead is moved next to it, and a git that is gone made again.

        `told`: there was one, and what is in its place now is somebody's work; else whoever made it may want it there.
        """
        place, kept = await self._find_tree(branch, told), None
        if place is not None and not place.broken:
            return place
        path = (await self._locate_clone(branch)).path
        if (place is not None or told is not None) and await anyio.to_thread.run_sync(os.path.lexists, path):
            kept = await anyio.to_thread.run_sync(move_aside, path, path)
        if told is not None:
            where = f"what stood there is in {kept}" if kept else "what was not committed there is gone with it"
            told.lacking.append(f"its place is gone: {where}. The next run gets it anew, from {branch}")
        return None

    async def _mend(self, place: WorkspacePaths, branch: str, told: seal.SealReport) -> None:
        """Make the git of a place again, which somebody took away or put something else in place of; its files stay."""
        head, kept = await self._tip(branch), None
        lent = await self._lent(branch, await self._base_of(branch, head))
        if await anyio.to_thread.run_sync(os.path.lexists, place.admin):
            kept = await anyio.to_thread.run_sync(move_aside, place.path, place.admin)
        async with self._drafting(branch) as draft:
            made = replace(place, path=draft, admin=draft / ".git")
            await self._make_git(made, branch, head, lent)
            await anyio.to_thread.run_sync(os.rename, made.admin, place.admin)
        await (await self._inside(place)).inside("reset", "--quiet", "--mixed")
        where = f"; it is in {kept}" if kept else ""
        told.words.append(
            f"the git of the place was gone or another{where}; it was made anew from {branch}, its files stay"
        )

    async def _inside(self, place: WorkspacePaths) -> PlaceRepository:
        """Give the repository of a place, in which git is called where its settings do no harm."""
        folders = await self._repository.folders()
        return (await self._isolated_git()).open_repository(place, folders.prefix, self._repository.redaction)

    async def _isolated_git(self) -> IsolatedGit:
        if self._calls is None:
            self._calls = IsolatedGit(await anyio.to_thread.run_sync(self._place.resolve), sandbox=self._sandboxed)
        return self._calls

    async def _all(self, root: Path) -> Sequence[WorkspacePaths]:
        def names() -> list[str]:
            notes = root / NOTES
            return sorted(unquote(one.name) for one in notes.iterdir()) if notes.is_dir() else []

        branches = await anyio.to_thread.run_sync(names)
        found = [await self._looked_at(await self._locate_clone(branch), branch) for branch in branches]
        return [place for place in found if await anyio.Path(place.path).is_dir()]


def place_at(root: Path, directory: str | Path | None) -> Path | None:
    """Give the place that a folder is in, of those below `root`; None: it is in none. Blocks."""
    if directory is None:
        return None
    root, found = Path(os.path.realpath(root)), Path(os.path.realpath(directory))
    if not found.is_relative_to(root):
        return None
    inner = found.relative_to(root)
    above = (
        root / one
        for one in (inner, *inner.parents)
        if one.parts and (root / NOTES / file_of(branch_in(str(one)))).is_dir()
    )
    return next(above, None)


async def _update(inner: TreeRepository, lines: list[str]) -> None:
    """Change refs, all but those that cannot be: an agent made a branch where ours has a folder of branches, say."""
    waiting = [lines]
    for _ in range(seal.MOST_TRIES):
        if not waiting:
            return
        group = waiting.pop()
        try:
            await inner.update_refs(group)
        except AshepError:
            if len(group) > 1:
                waiting += [group[len(group) // 2 :], group[: len(group) // 2]]


def _head_of(place: WorkspacePaths, own: str) -> str | None:
    """Give the branch that HEAD is on; empty: it is on none; None: no folder with a git of its own stands there.

    A link in it may lead to another git: to the user's, say. `own`: the ref that our git writes to.
    """
    below = [place.admin / above for above in (*reversed(Path(own).parents), "objects/info", "objects/pack", "logs")]
    files = [place.admin / name for name in ("HEAD", "config", "index", "packed-refs", "shallow", _ELSEWHERE)]
    try:
        for folder in (place.path, place.admin, place.admin / "objects", place.admin / "refs"):
            if not stat.S_ISDIR(folder.lstat().st_mode):
                return None
        if any(folder.is_symlink() for folder in below):
            return None
        if any(os.path.lexists(file) and not stat.S_ISREG(file.lstat().st_mode) for file in files):
            return None  # who reads a pipe waits for ever
        with (place.admin / "HEAD").open("rb") as file:
            return ref_in(file.read(4096).decode(errors="replace")) or ""
    except OSError:
        return None


def _borrow(place: WorkspacePaths, lender: Path) -> None:
    """See to it that a place borrows from the lender and from nobody else. Its folders are no links."""
    (place.admin / _ELSEWHERE).unlink(missing_ok=True)
    file, wanted = place.admin / "objects" / "info" / "alternates", os.fsencode(lender) + b"\n"
    with suppress(OSError):
        about = file.lstat()
        if stat.S_ISREG(about.st_mode) and about.st_size == len(wanted) and file.read_bytes() == wanted:
            return
    file.parent.mkdir(exist_ok=True)
    draft = file.with_name("alternates.new")
    draft.unlink(missing_ok=True)
    draft.write_bytes(wanted)
    draft.replace(file)


def _read_given(place: WorkspacePaths) -> dict[str, str]:
    with suppress(OSError):
        lines = (place.notes / "given").read_text(errors="surrogateescape").splitlines()
        return {ref: sha for ref, _, sha in (line.partition(" ") for line in lines)}
    return {}


def _write_given(place: WorkspacePaths, refs: Mapping[str, str]) -> None:
    place.notes.mkdir(mode=0o700, parents=True, exist_ok=True)
    durable_io.replace(
        place.notes / "given", os.fsencode("".join(f"{ref} {sha}\n" for ref, sha in sorted(refs.items())))
    )
