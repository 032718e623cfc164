"""Call the git program: how every adapter that speaks with git does it, and how what git prints is read."""

import os
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import anyio.to_thread

from ashep.adapters import programs
from ashep.adapters.git import locks
from ashep.core.text import clean
from ashep.errors import AshepError
from ashep.ports.trees import Commit
from ashep.redaction import Redaction

TRAILER = "Ashep-Run"
"""The trailer by which a commit names the run that made it."""

SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
ABSENT = re.compile(r"fatal: (?:not a git repository|this operation must be run in a work tree)")

MOST_COMMITS = 1000
MOST_STAT = 4000  # characters
MOST_DIFF = 60_000

FORMAT = f"--format=%H%x1f%(trailers:key={TRAILER},valueonly,separator=%x1e)%x1f%s"
"""The form of `git log -z` that `read_commits` reads."""

_KEPT = re.compile(
    r"GIT_(?:CONFIG_(?:GLOBAL|SYSTEM|NOSYSTEM)|(?:AUTHOR|COMMITTER)_(?:NAME|EMAIL)|EXEC_PATH|CEILING_DIRECTORIES"
    r"|DISCOVERY_ACROSS_FILESYSTEM|ASKPASS|SSH|SSH_(?:COMMAND|VARIANT)|SSL_\w+|PROXY_\w+|HTTP_\w+|ALLOW_PROTOCOL)"
)
"""Variables of git's that are a person's: where their settings are, who they are, how a remote is reached. Any other
sends git elsewhere (a hook that started us leaves some), or changes what it sees, makes or prints."""
_OURS = {
    "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_PAGER": "cat", "LC_ALL": "C",
    # an agent can say that a commit, or a parent of one, is another than it is
    "GIT_NO_REPLACE_OBJECTS": "1", "GIT_GRAFT_FILE": os.devnull,
}  # fmt: skip
_SETTINGS = (
    # A repository may name programs that git then runs, agents can write them; or decorate what git prints.
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "color.ui=false",
    "log.showSignature=false",
    "log.mailmap=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.graftFileDeprecated=false",
    # before 2.42 a repository's word for it counts more than GIT_NO_REPLACE_OBJECTS
    "core.useReplaceRefs=false",
)


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Give the environment of every git that we call; `more` is ours, too."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or _KEPT.fullmatch(name)}
    return kept | _OURS | dict(more or {})


def arguments(settings: Sequence[str]) -> list[str]:
    """Give what stands before the command of every git that we call; `settings`, as `name=value`, win."""
    return ["--no-pager", *(part for setting in (*_SETTINGS, *settings) for part in ("-c", setting))]


async def failed(command: str, code: int, said: str, at: Path) -> AshepError:
    """Give the error of a git that failed, in its words; where the disk takes nothing more, that alone, on one line."""
    if (lock := locks.named_in(said, at)) is not None:
        return locks.in_the_way(lock, f"git {command}")
    if full := await programs.full_disk(said, at):
        return AshepError(f"git {command}: {full}")
    return AshepError(f"git {command} ended with exit code {code}: {clean(said)[:300]}")


async def program() -> str:
    """Give the git that is called: the first one on PATH."""
    return str(await anyio.to_thread.run_sync(programs.find, "git") or "git")


class Git:
    """The git program with settings of ours; each call is bound by `timeout` seconds."""

    def __init__(self, timeout: float = 30.0, redaction: Redaction | None = None, settings: Sequence[str] = ()) -> None:
        """`settings`: more of them, as `name=value`; they win over the repository's."""
        self._timeout, self._redaction = timeout, redaction or Redaction()
        self._before = arguments(settings)
        self.told: list[str] = []
        """Locks that dead gits had left, and that were taken away."""

    async def run(
        self,
        *arguments: str,
        cwd: Path,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        timeout: float | None = None,
    ) -> programs.Finished:
        """Run git to its end, whatever its exit code; `env` adds to the environment.

        Raises `ProgramMissing` without git, `ProgramTimedOut`, and `AshepError` where `cwd` is no folder.
        """
        argv = [await program(), *self._before, *arguments]
        bound = self._timeout if timeout is None else timeout
        call = partial(
            programs.run,
            argv, cwd=cwd, env=environment(env), timeout=bound, stdin=stdin, patience=programs.TO_CLEAN_UP,
        )  # fmt: skip
        return await locks.past_locks(call, cwd, self.told)

    async def raw(
        self,
        *arguments: str,
        cwd: Path,
        absent: re.Pattern[str] | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        timeout: float | None = None,
    ) -> bytes | None:
        """Give what git printed, as it is: for ids and paths. None where it said what `absent` expects.

        Raises what `run` does, and `AshepError` with git's words where it failed.
        """
        done = await self.run(*arguments, cwd=cwd, env=env, stdin=stdin, timeout=timeout)
        if done.returncode == 0:
            return done.stdout
        said = self.said(done)
        if absent is not None and absent.search(said):
            return None
        raise await failed(arguments[0], done.returncode, said, cwd)

    async def shown(self, *arguments: str, cwd: Path, absent: re.Pattern[str] | None = None) -> bytes | None:
        """Give what git printed, without secrets: for what people and agents read. Else as `raw`."""
        printed = await self.raw(*arguments, cwd=cwd, absent=absent)
        return None if printed is None else self._redaction.data(printed)

    def said(self, done: programs.Finished) -> str:
        """Give what git said on standard error, without secrets."""
        return self._redaction.text(done.stderr.decode(errors="replace").strip())


def read_commits(printed: bytes | None) -> list[tuple[Commit, tuple[str, ...]]]:
    """Read `git log -z` in the form `FORMAT`: commits with the runs that they name."""
    lines = (printed or b"").decode(errors="replace").split("\0")
    parts = [line.split("\x1f", 2) for line in lines if line]
    return [(Commit(sha, clean(subject)), tuple(runs.split("\x1e"))) for sha, runs, subject in parts]


def text(printed: bytes | None) -> str:
    """Give what git printed as text that a terminal and a prompt can hold."""
    return clean((printed or b"").decode(errors="replace")).strip("\n")


def capped(words: str, most: int) -> str:
    """Cut a text at a line's end, so that it has `most` characters and a mark."""
    return words if len(words) <= most else words[:most].rpartition("\n")[0] + "\n…"
