"""Runs git for landing: in the repository itself or in a work tree, obeying nothing but the arguments it gets."""

import os
from functools import partial
from pathlib import Path

import anyio

from ashep.adapters import processes, programs
from ashep.adapters.git import durable, git_program, locks
from ashep.adapters.programs import Finished
from ashep.core.text import clean
from ashep.redaction import Redaction

_SETTINGS = ("core.fsync=committed,reference,index",)
"""What a ref names must be on the disk before the ref is: power may fail at any time."""
WRITING = 600.0
"""Seconds for a call that writes files of a work tree: a filter, of Git LFS say, may have to fetch each of them."""


class Git:
    """The repository that holds the folder `project`; each call of git is bound by `timeout` seconds."""

    def __init__(self, project: Path, timeout: float, redaction: Redaction) -> None:
        self.redaction = redaction
        self.told: list[str] = []
        """Locks that dead gits had left and that were taken away, and what of ours could not be."""
        self._project, self._timeout = project, timeout
        self._program: str | None = None
        self._common: Path | None = None
        self._main: tuple[Path | None] | None = None

    @property
    def mark(self) -> processes.Mark:
        """What tells the calls of git for this project from all other processes."""
        return processes.Mark("ASHEP_LANDING_CALL", str(self._project))

    async def common(self) -> Path:
        """Give the folder that all work trees of the repository share. Raises `AshepError` outside of one."""
        if self._common is None:
            asked = ("rev-parse", "--path-format=absolute", "--git-common-dir")
            self._common = Path(
                os.fsdecode((await self._run(asked, self._project, {}, None, (0,))).stdout).removesuffix("\n")
            )
        return self._common

    async def main(self) -> Path | None:
        """Give the top of the main work tree. None where nothing leads to it: git's folder is not always in it, as
        after `--separate-git-dir`, or in a submodule, and `git worktree list` names that folder instead then.
        """
        if self._main is None:
            asked = ("rev-parse", "--path-format=absolute", "--git-dir")
            own = (await self._run(asked, self._project, {}, None, (0,))).stdout
            common = await self.common()
            if Path(os.fsdecode(own).removesuffix("\n")) == common:
                top = (await self._run(("rev-parse", "--show-toplevel"), self._project, {}, None, (0,))).stdout
                self._main = (Path(os.fsdecode(top).removesuffix("\n")),)
            else:
                named = (await self.bare("config", "-z", "core.worktree", accepted=(0, 1))).stdout
                place = os.fsdecode(named.removesuffix(b"\0"))
                above = common.parent if common.name == ".git" else None
                self._main = (Path(await anyio.Path(common, place).resolve()) if place else above,)
        return self._main[0]

    async def bare(self, *arguments: str, stdin: bytes | None = None, accepted: tuple[int, ...] = (0,)) -> Finished:
        """Run git on the repository, in no work tree: what is checked out somewhere has no say."""
        common = await self.common()
        return await self._run(arguments, common, {"GIT_DIR": str(common)}, stdin, accepted)

    async def word(self, *arguments: str) -> str:
        """Run git on the repository and give what it printed, as one word."""
        return (await self.bare(*arguments)).stdout.decode(errors="replace").strip()

    async def keep(self, new: str, old: str) -> None:
        """See to it that a commit, with all that it reaches and an old one does not, survives a power cut.

        Raises `AshepError` where it is broken already.
        """
        listed = (await self.bare(*durable.REACHED, stdin=durable.reached([new], [old]))).stdout
        await durable.objects(await self.common(), listed)

    async def keep_refs(self, *names: str) -> None:
        """See to it that refs survive a power cut, as they are now."""
        await durable.refs(await self.common(), names)

    async def keep_files(self, tree: Path, old: str, new: str) -> None:
        """See to it that the files of a work tree in which two commits differ survive a power cut."""
        listed = await self.bare("diff-tree", "-r", "-z", "--name-only", "--no-renames", old, new)
        await durable.files(tree, [name for name in listed.stdout.split(b"\0") if name])

    async def within(
        self,
        tree: Path,
        *arguments: str,
        index: Path | None = None,
        stdin: bytes | None = None,
        accepted: tuple[int, ...] = (0,),
        writes: bool = False,
    ) -> Finished:
        """Run git in a work tree, on another index than its own where one is given. `writes`: it writes files there."""
        # who looks may write an index of ours: `read-tree` takes a file that was touched for one that was changed
        steer = {} if index is None else {"GIT_INDEX_FILE": str(index), "GIT_OPTIONAL_LOCKS": "1"}
        return await self._run(arguments, tree, steer, stdin, accepted, max(self._timeout, WRITING) if writes else None)

    async def _run(
        self,
        arguments: tuple[str, ...],
        cwd: Path,
        steer: dict[str, str],
        stdin: bytes | None,
        accepted: tuple[int, ...],
        timeout: float | None = None,
    ) -> Finished:
        if self._program is None:
            self._program = await git_program.program()
        env = git_program.environment({**steer, self.mark.variable: self.mark.value})
        argv = [self._program, *git_program.arguments(_SETTINGS), *arguments]
        limit = timeout or self._timeout
        patience = programs.TO_CLEAN_UP
        call = partial(programs.run, argv, cwd=cwd, env=env, timeout=limit, stdin=stdin, patience=patience)
        done = await locks.past_locks(call, cwd, self.told)
        if done.returncode in accepted:
            return done
        named = next((word for word in arguments if not word.startswith("-") and "=" not in word), "")
        said = self.shown(done.stderr.strip() or done.stdout.strip())
        raise await git_program.failed(named, done.returncode, said, cwd)

    def shown(self, data: bytes) -> str:
        """Give what git printed as text that every file and terminal can hold."""
        return clean(self.redaction.text(data.decode(errors="replace")))
