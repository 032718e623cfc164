"""Moves a base branch, and the work tree in which a person has it checked out.

The order, and what a SIGKILL after each step leaves:

1. The refs `refs/ashep/moving/<base>/{old,new}` say what is to happen. Nothing else did yet.
2. `index.lock` of the work tree, with a line of ours in it: from here on no other git changes its index, and so nobody
   commits or switches there. A later life recognises the line and takes the lock over.
3. Only now it is looked at: the base must be at `old`, and nothing that is to change may differ from it.
4. `git read-tree -m -u old new` on a copy of the index: it checks every file once more before it touches the first.
   Killed here, each file that differs between the two is old, new, missing or the beginning of new.
5. The copy becomes the index. Killed here, files and index are new, the branch is old.
6. The branch moves, with compare-and-swap: the landing. The files come before it, because a branch that is ahead of its
   files looks like a staged revert, which the next `git commit -a` of the person would make real.
7. The lock and the refs of step 1 go away.

A life that finds the refs of step 1 with the branch at `old` undoes steps 4 and 5 (`restoring`); with the branch
elsewhere there is nothing to undo. Where nobody has the branch checked out, only step 6 is done.
"""

import re
from fnmatch import fnmatchcase
from pathlib import Path

import anyio

from ashep.adapters.git import fsync
from ashep.adapters.git.checkouts import checkouts, edited, half_done, hidden_of, obstacle, rebased_in
from ashep.adapters.git.command import LANDING, SHA, Git, failed
from ashep.adapters.git.index_lock import Held, TreeBusy, hold
from ashep.adapters.git.integration import Integration
from ashep.adapters.git.objects import changes, holds, tip
from ashep.adapters.git.repository import WorkspacePaths
from ashep.adapters.git.rollback import restore
from ashep.adapters.system import process_table
from ashep.adapters.system.programs import Finished
from ashep.errors import AshepError, ProgramTimedOut, RepositoryLocked
from ashep.ports.landing import Advanced, Code, MoveRefused
from ashep.redaction import Redaction

_MOVING = "refs/ashep/moving/"
_PERSONS = re.compile(rb"not uptodate|would be overwritten|would be removed|would lose|cannot merge", re.IGNORECASE)
"""What `git read-tree` says of files that differ in a work tree."""


def _code(done: Finished) -> Code:
    """Tell what git says of what stands in a work tree from what it writes to none, and from all else."""
    if b"invalid path '" in done.stderr:
        return "names"
    return "dirty" if _PERSONS.search(done.stderr) else "failed"


class GitLanding(Integration):
    """Lands in the repository that holds the folder `project`; each call of git is bound by `timeout` seconds.

    No hook of the repository runs: agents can write them, and one that fails or hangs would stand between a branch and
    its files. Ways of merging that `.gitattributes` of the base and the person's settings name are kept.
    `protected` are patterns of branches that only people move, `by_key` globs of files that are merged by key.
    """

    def __init__(
        self,
        project: Path,
        timeout: float = 60.0,
        redaction: Redaction | None = None,
        protected: tuple[str, ...] = (),
        by_key: tuple[str, ...] = (),
    ) -> None:
        super().__init__(Git(project, LANDING, timeout, redaction), by_key)
        self._protected = protected

    async def tip(self, base_branch: str) -> str | None:
        return await tip(self._git, base_branch)

    async def advance(self, base_branch: str, old: str, new: str) -> Advanced | MoveRefused:
        base = base_branch
        if not (SHA.fullmatch(old) and SHA.fullmatch(new)):
            raise AshepError(f"{base} can only be moved between full ids of commits")
        marks = await self._refs(f"refs/heads/{base}", f"{_MOVING}{base}/")
        now = marks.pop(f"refs/heads/{base}", None)
        if marks and (busy := await self._settle(base)):
            return MoveRefused("dirty", busy)
        moved = await self._advance(base, now, old, new)
        told, self._git.told = tuple(self._git.told), []
        return Advanced(moved.base, (*moved.told, *told)) if isinstance(moved, Advanced) else moved

    async def _advance(self, base: str, now: str | None, old: str, new: str) -> Advanced | MoveRefused:
        if now is None:
            return MoveRefused("gone", f"there is no branch {base}")
        if now == new or (now != old and await holds(self._git, now, new)):
            await self._git.keep_refs(f"refs/heads/{base}")
            return Advanced(now)
        if now != old:
            # what is in the way is so wherever the base is by now: it would be brought there, and verified, in vain
            if len(trees := await checkouts(self._git, base)) == 1 and not (trees[0].away or trees[0].unknown):
                touched = await changes(self._git, old, new)
                if why := await half_done(trees[0]) or await edited(self._git, trees[0].path, None, touched):
                    return MoveRefused("dirty", f"{base} is checked out in {trees[0].path}, and {why}")
            return MoveRefused("moved", f"{base} is at {now[:12]}, not at {old[:12]} any more")
        if any(fnmatchcase(base, pattern) for pattern in self._protected):
            return MoveRefused("protected", f"{base} is protected: only people move it")
        if not await holds(self._git, new, old):
            return MoveRefused("moved", f"{new[:12]} does not hold {old[:12]}: {base} is never forced")
        await self._git.keep([new], [old])
        return await self._move(base, old, new)

    async def _move(self, base: str, old: str, new: str) -> Advanced | MoveRefused:
        if place := await rebased_in(self._git, base):
            return MoveRefused("dirty", f"{base} is being rebased in {place}")
        trees = await checkouts(self._git, base)
        if not trees:
            return await self._swap(base, old, new)
        if len(trees) > 1:
            places = f"{trees[0].path}, {trees[1].path}"
            return MoveRefused(
                "failed",
                f"{base} is checked out in {len(trees)} work trees: {places}; switch all but one of them to "
                "another branch (`git switch --detach`)",
            )
        if trees[0].away:
            return MoveRefused("dirty", f"{base} is checked out in {trees[0].path}, which is locked and not there now")
        if trees[0].unknown:
            return MoveRefused(
                "dirty",
                f"{base} is checked out in a work tree of {trees[0].path}, and nothing there says where it is: set it "
                f"with `git --git-dir={trees[0].path} config core.worktree <folder>`, or switch it to another branch",
            )
        result = None
        with anyio.CancelScope(shield=True):  # a stop in order must not leave a person's tree half moved
            result = await self._move_checked_out(trees[0], base, old, new)
        assert result is not None  # the shield lets nothing but errors through
        return result

    async def _swap(self, base: str, old: str, new: str) -> Advanced | MoveRefused:
        """Move the branch itself. Git compares under its own lock."""
        moved = ("update-ref", "-m", f"ashep: landed {new[:12]}", f"refs/heads/{base}", new, old)
        done = await self._git.bare(*moved, accepted=(0, 1, 128))
        if done.returncode == 0:
            await self._git.keep_refs(f"refs/heads/{base}")
            return Advanced(new)
        now = await tip(self._git, base)
        if now != old:
            return MoveRefused("moved", f"{base} is at {(now or 'nothing')[:12]}, not at {old[:12]} any more")
        failure = await failed(
            "update-ref", done.returncode, self._git.redact_stderr(done)[:300], await self._git.common()
        )
        code = "locked" if isinstance(failure, RepositoryLocked) else "failed"
        return MoveRefused(code, f"git does not move {base} now: {failure}")

    async def _move_checked_out(self, tree: WorkspacePaths, base: str, old: str, new: str) -> Advanced | MoveRefused:
        lines = (f"update {_MOVING}{base}/{name} {commit}\n" for name, commit in (("old", old), ("new", new)))
        await self._git.bare("update-ref", "--no-deref", "--stdin", stdin="".join(lines).encode())
        await self._git.keep_refs(f"{_MOVING}{base}/old", f"{_MOVING}{base}/new")
        try:
            async with hold(tree) as held:
                result = await self._follow(tree, held, base, old, new)
        except TreeBusy as busy:
            result = MoveRefused("dirty", f"{base} is checked out in {tree.path}, and {busy}")
        await self._unmark(base, new)  # after the lock is gone: who finds no refs looks for no lock
        return result

    async def _follow(self, tree: WorkspacePaths, held: Held, base: str, old: str, new: str) -> Advanced | MoveRefused:
        """Move files, index and branch, in this order, under the lock of the index."""
        here = f"{base} is checked out in {tree.path}"
        why = await half_done(tree) or await obstacle(self._git, tree.path, held.copy, old, new)
        if why:
            return MoveRefused("dirty", f"{here}, and {why}")
        move = ("-m", "-u", old, new)
        tried = await self._git.run_in_tree(tree.path, "read-tree", "-n", *move, index=held.copy, accepted=(0, 1, 128))
        if tried.returncode:  # git saw what we did not, a file that it was told to take for unchanged say
            hidden = await hidden_of(self._git, tree.path, held.copy, old, new)
            return MoveRefused(_code(tried), f"{here}, and git says: {self._git.redact_stderr(tried)[:300]}{hidden}")
        try:
            done = await self._git.run_in_tree(
                tree.path, "read-tree", *move, index=held.copy, accepted=(0, 1, 128), writes=True
            )
            if not done.returncode:
                # they look like a person's changes if half of them is lost
                await fsync.files(tree.path, [change.path for change in await changes(self._git, old, new)])
                await held.publish()
        except AshepError as error:  # git was killed, the disk does not take it
            await restore(self._git, tree.path, held, old, new)
            if isinstance(error, ProgramTimedOut):
                return MoveRefused("failed", f"{here}, where git takes too long: {error}")
            raise
        if done.returncode:  # a filter failed, the disk is full, a folder may not be written to: some files have moved
            moved = MoveRefused(_code(done), f"{here}, where git failed: {self._git.redact_stderr(done)[:300]}")
        else:
            moved = await self._swap(base, old, new)
        if isinstance(moved, MoveRefused):  # or the branch was, without the index's lock: by `git update-ref` say
            await restore(self._git, tree.path, held, old, new)
        return moved

    # --- what an earlier life left ------------------------------------------------------------------------------------

    async def settle(self) -> None:
        """Undo what earlier lives left half done, of all branches."""
        # a git of a dead life may still be about to write what it is to do, over what we write of ours
        await process_table.end(self._git.mark, AshepError)
        names = await self._refs(_MOVING)
        for base in sorted({name.removeprefix(_MOVING).rpartition("/")[0] for name in names}):
            await self._settle(base)

    async def _settle(self, base: str) -> str | None:
        """Undo what was left half done of a branch; say what keeps us from it."""
        place = f"{_MOVING}{base}/"
        marks = {name.removeprefix(place): commit for name, commit in (await self._refs(place)).items()}
        # what we ran outlives us: it may be writing files at this moment
        await process_table.end(self._git.mark, AshepError)
        now = await tip(self._git, base)
        for tree in await checkouts(self._git, base):
            if tree.away or tree.unknown or not {"old", "new"} <= set(marks) or marks["old"] == marks["new"]:
                continue
            try:
                async with hold(tree) as held:
                    if now == marks["old"]:
                        await restore(self._git, tree.path, held, marks["old"], marks["new"])
            except TreeBusy as busy:
                return f"{base} is checked out in {tree.path}, where a landing was cut off, and {busy}"
        await self._unmark(base, marks.get("new", ""))
        return None

    async def _unmark(self, base: str, new: str) -> None:
        """Take the refs away. Where that fails what they are about is done all the same: they say so then."""
        lines = (f"delete {_MOVING}{base}/{name}\n" for name in ("old", "new"))
        try:
            await self._git.bare("update-ref", "--no-deref", "--stdin", stdin="".join(lines).encode())
        except AshepError as error:
            if new:
                await self._git.bare("update-ref", "--no-deref", f"{_MOVING}{base}/old", new)
            self._git.told.append(f"{_MOVING}{base} stays until the next landing: {error}")

    async def _refs(self, *places: str) -> dict[str, str]:
        printed = await self._git.word("for-each-ref", "--format=%(refname) %(objectname)", *places)
        lines = (line.rpartition(" ") for line in printed.split("\n") if line)
        return {name: commit for name, _, commit in lines}
