"""Runs git for landing: in the repository itself or in a work tree, obeying nothing but the arguments it gets."""

import os
import re
from pathlib import Path

import anyio
import anyio.to_thread

from ashep.adapters import processes, programs
from ashep.adapters.programs import Finished
from ashep.core.text import clean
from ashep.errors import AshepError
from ashep.redaction import Redaction

SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_STEERING = re.compile(
    r"GIT_(?:DIR|WORK_TREE|INDEX_FILE|COMMON_DIR|OBJECT_DIRECTORY|NAMESPACE|PREFIX|EXTERNAL_DIFF|ALTERNATE_\w+"
    r"|REPLACE_\w+|ATTR_\w+|CONFIG\w*|AUTHOR_\w+|COMMITTER_\w+|TRACE\w*)"
)
"""Variables by which a hook that started us would send git elsewhere, or change what it makes."""
_OURS = {"GIT_TERMINAL_PROMPT": "0", "GIT_PAGER": "cat", "LC_ALL": "C", "GIT_NO_REPLACE_OBJECTS": "1"}
_SETTINGS = (
    # Agents can write into the repository's hooks: none of them runs in the daemon's own process tree.
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "color.ui=false",
    "log.showSignature=false",
    "gc.auto=0",
    "maintenance.auto=false",
    # What a ref names must be on the disk before the ref is: power may fail at any time.
    "core.fsync=committed,reference,index",
)
WRITING = 600.0
"""Seconds for a call that writes files of a work tree: a filter, of Git LFS say, may have to fetch each of them."""


class Git:
    """The repository that holds the folder `project`; each call of git is bound by `timeout` seconds."""

    def __init__(self, project: Path, timeout: float, redaction: Redaction) -> None:
        self.redaction = redaction
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

    async def prefix(self) -> bytes:
        """Give the project's place in its work tree, with a slash at its end; empty at the top."""
        asked = ("rev-parse", "--show-prefix")
        return (await self._run(asked, self._project, {}, None, (0,))).stdout.removesuffix(b"\n")

    async def bare(self, *arguments: str, stdin: bytes | None = None, accepted: tuple[int, ...] = (0,)) -> Finished:
        """Run git on the repository, in no work tree: what is checked out somewhere has no say."""
        common = await self.common()
        return await self._run(arguments, common, {"GIT_DIR": str(common)}, stdin, accepted)

    async def word(self, *arguments: str) -> str:
        """Run git on the repository and give what it printed, as one word."""
        return (await self.bare(*arguments)).stdout.decode(errors="replace").strip()

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
        steer = {} if index is None else {"GIT_INDEX_FILE": str(index)}
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
            self._program = str(await anyio.to_thread.run_sync(programs.find, "git") or "git")
        settings = [part for setting in _SETTINGS for part in ("-c", setting)]
        env = {name: value for name, value in os.environ.items() if not _STEERING.fullmatch(name)} | _OURS | steer
        env[self.mark.variable] = self.mark.value
        argv = [self._program, "--no-pager", *settings, *arguments]
        limit = timeout or self._timeout
        done = await programs.run(argv, cwd=cwd, env=env, timeout=limit, stdin=stdin, patience=programs.TO_CLEAN_UP)
        if done.returncode in accepted:
            return done
        named = next((word for word in arguments if not word.startswith("-") and "=" not in word), "")
        said = self.shown(done.stderr.strip() or done.stdout.strip())
        raise AshepError(f"git {named} ended with exit code {done.returncode}: {said[:300]}")

    def shown(self, data: bytes) -> str:
        """Give what git printed as text that every file and terminal can hold."""
        return clean(self.redaction.text(data.decode(errors="replace")))
