"""Places of branches: a folder with a git of its own for each, in which nothing leads to the user's repository.

An agent may do there what it likes. Our git looks into a place through `Call` alone, which is its sandbox where there
is one; what comes out is the id of a commit and a pack of objects, and the pack is taken only if it holds all that it
brings: a commit that names a file which the place never had would show that file to whoever reads the branch.
"""

import os
import re
import shutil
import stat
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import anyio
import anyio.to_thread

from ashep.adapters.git.contents import Stat
from ashep.adapters.git.program import LONG, PLACE, SHA, TRAILER, Git
from ashep.adapters.git.repository import SEALED, Place, aside, delete, ref_in, size_of, under_way
from ashep.adapters.git.trees import removing, saving, sealing, settings
from ashep.adapters.git.trees.inside import Inside, PlaceRepository, bring
from ashep.adapters.git.trees.lender import LENDER, Lender, Lent, held, listed, pack
from ashep.adapters.git.trees.set_up import made_by_set_up, set_up
from ashep.adapters.git.trees.worktrees import Worktrees, use
from ashep.core.state.branches import BASES
from ashep.core.text import clean
from ashep.errors import AshepError, TreeRefused
from ashep.ports.trees import Landed, Prepared, Removed, Sealed, Standing

NOTES, MAKING = ".notes", ".making"
"""Beside the places: what we note of each, and those that are being made."""

_NOTHING = re.compile("^$")
_FETCHED = "+refs/heads/*:refs/remotes/origin/*"
_PASSWORD = re.compile(r"(://)[^/@]*@")
_SAVED = re.compile(r"(?P<number>\d+)/(?P<name>[a-z]+(?:-\d+)?)")


class Places(Worktrees):
    """Places below the folder `place`; what is under way in a linked tree of an earlier release ends there.

    `sandbox`: our git looks into a place in one, where the machine has it.
    """

    def __init__(
        self,
        project: Path,
        place: Path,
        *,
        linked: Path | None = None,
        anew: bool = True,
        sandbox: bool = True,
        **options: Any,
    ) -> None:
        """`linked`: where linked trees stand; `anew`: what is made is a place. `options`: those of `Worktrees`."""
        super().__init__(project, place, **options)
        self._linked, self._anew = Worktrees(project, linked or place, **options), anew
        self._sandboxed = sandbox
        self._calls: Inside | None = None
        self._told: Sequence[tuple[str, str]] = ()
        self._lender = Lender(self._repository, place / LENDER)

    async def prepare(self, branch: str, base: str | None, slot: int) -> Prepared:
        """See to it that the branch and its place stand, that it has the base as it is now, and is set up."""
        if await self._is_linked(branch):
            return await self._linked.prepare(branch, base, slot)
        async with self._repository.hold(branch, self._patience):
            await self._repository.unname(branch)
            await self._refuse_elsewhere(branch, None)
            begun, head = await self._begin(branch, base)
            lent = await self._lent(branch, begun)
            self._told = await settings.read(self._repository.git)
            await settings.write_down(self._told, await anyio.to_thread.run_sync(self._place.resolve))
            place = await self._standing_place(branch, head, lent)
            if place is None:
                await anyio.to_thread.run_sync(self._room)
                place = await self._build(branch, head, lent)
            else:
                await self._refresh(place, branch, head, lent)
            folder = place.path / (await self._repository.folders()).prefix
            await anyio.Path(folder).mkdir(parents=True, exist_ok=True)
            await set_up(self._repository, place, self._setup, folder, slot)
            await anyio.to_thread.run_sync(use, place, self._repository.project)
            return Prepared(str(folder), begun, head)

    async def seal(self, branch: str, run: str, message: str) -> Sealed:
        """Commit what is uncommitted in the place, and bring the branch to have what is there."""
        if await self._is_linked(branch):
            return await self._linked.seal(branch, run, message)
        repository = self._repository
        async with repository.hold(branch, self._patience):
            before = (await repository.refs(f"{SEALED}{branch}")).get(f"{SEALED}{branch}")
            await self._refuse_elsewhere(branch, None)  # what comes out would change under whoever is there
            own = await repository.unname(branch)
            tip, told = await self._tip(branch), sealing.Told()
            base = await self._base_of(branch, tip)
            lent = await self._lent(branch, base)
            place = await self._standing_place(branch, tip, lent, told)
            if place is not None:
                inner = await self._inside(place)
                told.words += await inner.unname(branch)
                await self._have(inner, place, branch, tip)
                await sealing.seal(inner, place, branch, tip, run, message, told)
                if tip != before:
                    await self._join(inner, place, branch, tip, run)
                told.saved[:] = await self._take(inner, place, branch, tip, lent)
                await anyio.to_thread.run_sync(use, place)
            told.words += [*own, *repository.told()]
            return await self._sealed(branch, before, told)

    async def restore(self, branch: str, head: str) -> tuple[str, ...]:
        """Set branch and place to a commit; everything else is saved first."""
        if await self._is_linked(branch):
            return await self._linked.restore(branch, head)
        repository, ours = self._repository, f"refs/heads/{branch}"
        async with repository.hold(branch, self._patience):
            commit = await repository.commit_of(head)
            if commit is None:
                raise AshepError(f"{clean(head)} is no commit of this repository")
            await repository.unname(branch)
            tip = await self._tip(branch)
            lent, told = await self._lent(branch, await self._base_of(branch, tip)), sealing.Told()
            place = await self._standing_place(branch, tip, lent)
            if place is None:
                raise AshepError(f"the branch {branch} has no place; it must be prepared first")
            inner = await self._inside(place)
            await inner.unname(branch)
            await self._have(inner, place, branch, commit)
            await sealing.unlock(place, told)
            await saving.save(inner, place, branch, dropped=(ours,), reached=(commit,), onto=("HEAD", commit))
            state, _ = await under_way(place)
            if state is not None:
                await sealing.end(inner, place, state)
            await sealing.set_back(inner, place, branch, commit)
            saved = await self._take(inner, place, branch, tip, lent, moves=False)
            gone = await saving.save_commits(repository, branch, (ours, f"{SEALED}{branch}"), (commit,))
            await repository.update_refs([f"update {ours} {commit}", f"update {SEALED}{branch} {commit}"])
            return (*saved, *gone)

    async def remove(
        self,
        branch: str,
        *,
        forget: bool = False,
        drop_ignored: bool = False,
        unless: Callable[[], Awaitable[None]] | None = None,
    ) -> Removed:
        """Save the place and take it away. `unless`: raises where it must not be; asked while the branch is held."""
        if await self._is_linked(branch):
            return await self._linked.remove(branch, forget=forget, drop_ignored=drop_ignored, unless=unless)
        repository = self._repository
        async with repository.hold(branch, self._patience):
            if unless is not None:
                await unless()
            refs = (f"refs/heads/{branch}", f"{BASES}{branch}", f"{SEALED}{branch}") if forget else ()
            if forget:
                await self._refuse_elsewhere(branch, None)
            saved, freed = (), 0
            if (place := await self._stands_as(branch)) is not None:
                known = await anyio.to_thread.run_sync(made_by_set_up, place)
                saved = await self._save(place, branch, known, ignored=not drop_ignored)
                freed = await anyio.to_thread.run_sync(size_of, place.path)
                await removing.take_away(repository, self._place, place)
            if forget:
                saved += await saving.save_commits(repository, branch, refs)
            there = await repository.refs(*refs) if forget else {}
            await repository.update_refs(f"delete {ref} {sha}" for ref, sha in there.items())
            return Removed(saved, freed)

    async def retire(self, landed: Landed, quiet: timedelta) -> Removed:
        """Take a place and its branch away, where the base holds all that is in them and nobody uses them."""
        if await self._is_linked(landed.branch):
            return await self._linked.retire(landed, quiet)
        async with self._repository.hold(landed.branch, self._patience):
            await self._refuse_elsewhere(landed.branch, None)
            place = await self._stands_as(landed.branch)
            inner = await self._inside(place) if place is not None else None
            if inner is not None:
                await self._refuse_unsealed(inner, landed.branch)

            async def save(known: Mapping[bytes, Stat]) -> tuple[str, ...]:
                return await self._save(place, landed.branch, known, ignored=True) if place is not None else ()

            return await removing.retire(
                self._repository, self._place, place, landed, self._base_branch, quiet, inner=inner, save=save
            )

    async def list(self, landed: Mapping[str, str] | None = None) -> tuple[Standing, ...]:
        """Give every place and every linked tree, by branch."""
        found = (*await self._linked.list(landed), *await super().list(landed))
        return tuple(sorted(found, key=lambda standing: standing.branch))

    async def knows(self, branch: str) -> bool:
        """Say whether there is such a branch, or a place or tree of it."""
        return await self._stands_as(branch) is not None or await self._linked.knows(branch)

    async def _is_linked(self, branch: str) -> bool:
        """Say whether a branch has a linked tree, or is to have one."""
        return await self._linked.stands(branch) or (not self._anew and await self._stands_as(branch) is None)

    # --- making ---

    async def _begin(self, branch: str, base: str | None) -> tuple[str, str]:
        """Give where the branch began and what it has; it is made where there is none."""
        repository, ref, sealed, begun = (
            self._repository,
            f"refs/heads/{branch}",
            f"{SEALED}{branch}",
            f"{BASES}{branch}",
        )
        there = await repository.refs(ref, sealed, begun)
        if ref in there or sealed in there:
            head = there.get(ref) or await self._tip(branch)  # an agent deleted it, or a person did
            return there.get(begun) or await self._base_of(branch, head), head
        await anyio.to_thread.run_sync(self._room)
        await anyio.to_thread.run_sync(self._free, branch)
        head = await self._base_commit(base)
        if head is None:
            raise AshepError("this repository has no commit yet: make one, for a branch must begin somewhere")
        await repository.update_refs([f"update {begun} {head}", f"create {ref} {head}"])
        return head, head

    async def _base_name(self) -> str | None:
        """Give the name of the base branch; None: HEAD is on none."""
        if self._base_branch is not None:
            return self._base_branch
        ref = await self._repository.main_ref()
        return ref.removeprefix("refs/heads/") if ref else None

    async def _lent(self, branch: str, begun: str) -> Lent:
        return await self._lender.lend(branch, begun, await self._base_name())

    async def _build(self, branch: str, head: str, lent: Lent) -> Place:
        """Make a place: beside, then put where it belongs, so that a kill leaves nothing half made there."""
        own = f"refs/heads/{branch}"
        async with self._drafting(branch) as made:
            draft = Place(made, made / ".git", own)
            await self._make_git(draft, branch, head, lent)
            git = Git(made, PLACE, LONG, self._repository.redaction, common=draft.admin)
            await git.raw("read-tree", "--reset", "-u", "HEAD", env=draft.env)
            path, place = await anyio.to_thread.run_sync(self._free, branch), await self._at(branch)

            def put() -> None:
                if place.notes.exists():
                    shutil.rmtree(place.notes)  # of one that went
                place.notes.mkdir(mode=0o700, parents=True)
                if not (ignore := self._place / ".gitignore").exists():
                    ignore.write_text("*\n")
                if path.exists():
                    path.rmdir()
                made.rename(path)

            await anyio.to_thread.run_sync(put)
            await anyio.to_thread.run_sync(_write_given, place, lent.refs)
        return place

    @asynccontextmanager
    async def _drafting(self, branch: str) -> AsyncGenerator[Path]:
        """Have a folder beside the places to make something in; what a call that was killed left there goes first."""
        root = await anyio.to_thread.run_sync(self._place.resolve)
        folder = root / MAKING / quote(branch, safe="")

        def begin() -> None:
            delete(folder)
            folder.mkdir(mode=0o700, parents=True)

        try:
            await anyio.to_thread.run_sync(begin)
            yield folder
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(delete, folder)

    async def _make_git(self, place: Place, branch: str, head: str, lent: Lent) -> None:
        """Make git's folder of a place, which nobody has been in: files, and the branch's own objects."""
        repository = self._repository
        common, prefix = (await repository.folders()).common, "remote.origin."
        said = self._told or await settings.read(repository.git)
        made = [("core.repositoryformatversion", "0"), ("core.bare", "false"), ("core.logallrefupdates", "true")]
        made += [(key, value) for key, value in said if key.startswith("core.sparse")] + settings.kept(said)
        if url := dict(said).get(f"{prefix}url"):
            made += [
                (f"{prefix}url", _PASSWORD.sub(r"\1", url)),
                (f"{prefix}fetch", "+refs/heads/*:refs/remotes/origin/*"),
            ]
        if lent.kind != "sha1":
            made += [("core.repositoryformatversion", "1"), ("extensions.objectformat", lent.kind)]

        def write() -> None:
            for name in ("objects/info", "objects/pack", "refs/heads", "info", "hooks"):
                (place.admin / name).mkdir(parents=True)
            (place.admin / "HEAD").write_text(f"ref: refs/heads/{branch}\n")
            (place.admin / "config").write_bytes(settings.written(made))
            (place.admin / "objects" / "info" / "alternates").write_bytes(os.fsencode(lent.objects) + b"\n")
            refs = {**lent.refs, f"refs/heads/{branch}": head}
            lines = [f"{sha} {ref}\n" for ref, sha in sorted(refs.items())]
            (place.admin / "packed-refs").write_bytes(os.fsencode("".join(lines)))
            if lent.shallow:
                (place.admin / "shallow").write_bytes(lent.shallow)
            for name in ("info/exclude", "info/sparse-checkout", "info/attributes"):
                if (common / name).is_file():
                    shutil.copyfile(common / name, place.admin / name)
            for hook in sorted((common / "hooks").glob("*")) if (common / "hooks").is_dir() else ():
                if hook.suffix != ".sample" and hook.is_file() and os.access(hook, os.X_OK):
                    shutil.copy(hook, place.admin / "hooks" / hook.name)

        await anyio.to_thread.run_sync(write)
        if head not in lent.tips:
            known = await held(repository, lent.tips)
            await pack(repository, [head], known, place.admin / "objects" / "pack")

    async def _refresh(self, place: Place, branch: str, head: str, lent: Lent) -> None:
        """Give a place that stands what the base, the tags and `origin` have now, and the branch what it has."""
        inner = await self._inside(place)
        there, ours = await inner.refs("refs/"), f"refs/heads/{branch}"
        on = await inner.shared("symbolic-ref", "--quiet", "HEAD", absent=_NOTHING)
        given = await anyio.to_thread.run_sync(_read_given, place)
        changed = [(ref, sha) for ref, sha in lent.refs.items() if given.get(ref) != sha and ref not in (on, ours)]
        await inner.update_refs(f"update {ref} {sha}" for ref, sha in changed if there.get(ref) != sha)
        await anyio.to_thread.run_sync(_write_given, place, lent.refs)
        await self._have(inner, place, branch, head)
        if on == ours and there.get(ours) != head:  # a person, or a landing, gave the branch more
            await inner.ask(place, "merge", "--quiet", "--ff-only", head)

    async def _have(self, inner: PlaceRepository, place: Place, branch: str, head: str) -> None:
        """See to it that a place has the branch's commit, and a branch: an agent may have deleted either."""
        if head not in await held(inner, [head]):
            known = await held(inner, [*(await self._repository.refs(f"{BASES}{branch}")).values()])
            words = ("pack-objects", "--revs", "--stdout", "--quiet", "--delta-base-offset")
            brought = await self._repository.git.bare(*words, stdin=listed([head], known), timeout=LONG)
            await inner.inside(place, "index-pack", "--stdin", stdin=brought.stdout)
        ref = f"refs/heads/{branch}"
        if ref not in await inner.refs(ref):
            await inner.update_refs([f"create {ref} {head}"])

    async def _join(self, inner: PlaceRepository, place: Place, branch: str, tip: str, run: str) -> None:
        """Merge what others brought to the branch meanwhile. Raises `TreeRefused` where that cannot be."""
        head = (await inner.refs(f"refs/heads/{branch}")).get(f"refs/heads/{branch}", "")
        if not head or await inner.contains(head, tip):
            return
        words = ("merge", "--quiet", "--no-verify", "--no-ff", "-m", "Merge what others brought to the branch")
        env = await sealing.identity(inner, place)
        done = await inner.ask(place, *words, "-m", f"{TRAILER}: {clean(run)}".replace("\n", " "), tip, env=env)
        if done.returncode:
            await inner.ask(place, "merge", "--abort")
            raise TreeRefused(
                f"{place.path}: {branch} was given commits ({tip[:12]}) that cannot be merged with what was worked "
                f"there. Nothing is lost: go there, `git merge {tip[:12]}`, solve the conflicts, commit."
            )

    async def _refuse_unsealed(self, inner: PlaceRepository, branch: str) -> None:
        """Raise where the branch has commits in its place that never came out of it."""
        ours = (f"refs/heads/{branch}", f"{SEALED}{branch}")
        head, known = (await inner.refs(ours[0])).get(ours[0]), {*(await self._repository.refs(*ours)).values()}
        if head is not None and head not in known and not any([await inner.contains(one, head) for one in known]):
            raise AshepError(f"{branch} has commits that the base branch does not hold")

    # --- what comes out ---

    async def _take(
        self, inner: PlaceRepository, place: Place, branch: str, tip: str, lent: Lent, *, moves: bool = True
    ) -> tuple[str, ...]:
        """Bring out what was saved in a place, and what its branch has, if that `moves` the user's; give the refs."""
        repository, ours, prefix = self._repository, f"refs/heads/{branch}", f"{saving.SAVED}{branch}/"
        there = await inner.refs(ours, prefix)
        head = there.pop(ours, tip) if moves else tip
        named = [(ref.removeprefix(prefix), sha) for ref, sha in sorted(there.items()) if ref.startswith(prefix)]
        have = {*(await repository.refs(prefix)).values()}
        fresh = [(match, sha) for name, sha in named if (match := _SAVED.fullmatch(name)) and sha not in have]
        if new := {head, *(sha for _, sha in fresh)} - {tip}:
            if wrong := [sha for sha in new if not SHA.fullmatch(sha)]:
                raise TreeRefused(f"{place.path}: git named {clean(wrong[0])[:60]!r} there, which is no commit")
            known = await held(repository, [tip, *lent.tips])
            await bring(repository, inner, place, new, await held(inner, known) & known)
        last = max((int(ref.removeprefix(prefix).split("/")[0]) for ref in await repository.refs(prefix)), default=0)
        numbers = {
            number: last + at for at, number in enumerate(dict.fromkeys(match["number"] for match, _ in fresh), 1)
        }
        refs = {f"{prefix}{numbers[match['number']]}/{match['name']}": sha for match, sha in fresh}
        await repository.keep(*new)
        lines = [f"create {ref} {sha}" for ref, sha in refs.items()]
        await repository.update_refs([*lines, *([f"update {ours} {head} {tip}"] if head != tip else [])])
        return tuple(refs)

    async def _save(self, place: Place, branch: str, known: Mapping[bytes, Stat], *, ignored: bool) -> tuple[str, ...]:
        """Save all that a place holds and the repository does not; give the refs."""
        tip = await self._tip(branch)
        lent, inner = await self._lent(branch, await self._base_of(branch, tip)), await self._inside(place)
        here = await held(self._repository, [tip, *lent.tips])
        reached = await held(inner, here) & here
        dropped = [ref for ref, sha in (await inner.refs("refs/")).items() if sha not in reached]
        dropped = [ref for ref in dropped if not ref.startswith(saving.SAVED)]
        await saving.save(inner, place, branch, dropped=dropped, reached=sorted(reached), ignored=ignored, known=known)
        return await self._take(inner, place, branch, tip, lent, moves=False)

    # --- where they are ---

    async def _at(self, branch: str) -> Place:
        """Say where the place of a branch is, whether it stands or not."""
        root = await anyio.to_thread.run_sync(self._place.resolve)
        path = root / branch
        return Place(path, path / ".git", f"refs/heads/{branch}", beside=root / NOTES / quote(branch, safe=""))

    async def _stands_as(self, branch: str) -> Place | None:
        """Give the place of a branch where its folder stands and has a git of its own."""
        place = await self._at(branch)
        ref = await anyio.to_thread.run_sync(_head_of, place, f"refs/heads/{branch}")
        if ref is not None:
            lender = (await anyio.to_thread.run_sync(self._place.resolve)) / LENDER / "objects"
            await anyio.to_thread.run_sync(_borrow, place, lender)
        return replace(place, ref=ref or None) if ref is not None else None

    async def _standing_place(
        self, branch: str, head: str, lent: Lent, told: sealing.Told | None = None
    ) -> Place | None:
        """Give the place that stands; what stands there instead is moved beside it, and a git that is gone made anew.

        `told`: there was one, and what is in its place now is somebody's work; else whoever made it may want it there.
        """
        if (place := await self._stands_as(branch)) is not None:
            return place
        place = await self._at(branch)
        path, known = anyio.Path(place.path), await anyio.Path(place.notes).exists()
        if known and await path.is_dir() and not await path.is_symlink():
            await self._mend(place, branch, head, lent, told or sealing.Told())
            return place
        kept = None
        if (known or told is not None) and await anyio.to_thread.run_sync(os.path.lexists, path):
            kept = await anyio.to_thread.run_sync(aside, place.path, place.path)
        if told is not None:
            where = f"what stood there is in {kept}" if kept else "what was not committed there is gone with it"
            told.lacking.append(f"its place is gone: {where}. The next run gets it anew, from {branch}")
        return None

    async def _mend(self, place: Place, branch: str, head: str, lent: Lent, told: sealing.Told) -> None:
        """Make the git of a place anew, which somebody took away or put something else in place of; its files stay."""
        kept = None
        if await anyio.to_thread.run_sync(os.path.lexists, place.admin):
            kept = await anyio.to_thread.run_sync(aside, place.path, place.admin)
        async with self._drafting(branch) as draft:
            made = Place(draft, draft / ".git", place.ref)
            await self._make_git(made, branch, head, lent)
            await anyio.to_thread.run_sync(os.rename, made.admin, place.admin)
        await (await self._inside(place)).inside(place, "reset", "--quiet", "--mixed")
        where = f"; it is in {kept}" if kept else ""
        told.words.append(
            f"the git of the place was gone or another{where}; it was made anew from {branch}, its files stay"
        )

    async def _inside(self, place: Place) -> PlaceRepository:
        """Give the repository of a place, in which git is called where its settings do no harm."""
        if self._calls is None:
            self._calls = Inside(await anyio.to_thread.run_sync(self._place.resolve), sandbox=self._sandboxed)
        return self._calls.of(place, (await self._repository.folders()).prefix, self._repository.redaction)

    async def _all(self, root: Path) -> Sequence[Place]:
        """Give every place."""

        def names() -> list[str]:
            notes = root / NOTES
            return sorted(unquote(one.name) for one in notes.iterdir()) if notes.is_dir() else []

        own = [await self._stands_as(branch) for branch in await anyio.to_thread.run_sync(names)]
        return [place for place in own if place is not None]


def _head_of(place: Place, own: str) -> str | None:
    """Give the branch that HEAD is on; empty: it is on none; None: no folder with a git of its own stands there.

    A link in it may lead to another git: to the user's, say. `own`: the ref that our git writes to.
    """
    below = [place.admin / above for above in (*reversed(Path(own).parents), "objects/info", "objects/pack", "logs")]
    try:
        for folder in (place.path, place.admin, place.admin / "objects", place.admin / "refs"):
            if not stat.S_ISDIR(folder.lstat().st_mode):
                return None
        if any(folder.is_symlink() for folder in below) or not stat.S_ISREG((place.admin / "config").lstat().st_mode):
            return None
        file = os.open(place.admin / "HEAD", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            said = os.read(file, 4096) if stat.S_ISREG(os.fstat(file).st_mode) else b""
        finally:
            os.close(file)
    except OSError:
        return None
    return ref_in(said.decode(errors="replace")) or ""


def _borrow(place: Place, lender: Path) -> None:
    """See to it that a place borrows from the lender and from nobody else. Its folders are no links."""
    file, wanted = place.admin / "objects" / "info" / "alternates", os.fsencode(lender) + b"\n"
    with suppress(OSError):
        if stat.S_ISREG(file.lstat().st_mode) and file.read_bytes() == wanted:
            return
    file.parent.mkdir(exist_ok=True)
    draft = file.with_name("alternates.new")
    draft.unlink(missing_ok=True)
    draft.write_bytes(wanted)
    draft.replace(file)


def _read_given(place: Place) -> dict[str, str]:
    try:
        lines = (place.notes / "given").read_text(errors="surrogateescape").splitlines()
    except OSError:
        return {}
    return {ref: sha for ref, _, sha in (line.partition(" ") for line in lines)}


def _write_given(place: Place, refs: Mapping[str, str]) -> None:
    place.notes.mkdir(mode=0o700, parents=True, exist_ok=True)
    text = "".join(f"{ref} {sha}\n" for ref, sha in sorted(refs.items()))
    (place.notes / "given").write_text(text, errors="surrogateescape")
