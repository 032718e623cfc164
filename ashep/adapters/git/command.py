"""The git program: how it is called, as one of four profiles, and how what it prints is read."""

import os
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TypedDict, Unpack

import anyio.to_thread

from ashep.adapters.git import fsync, locks
from ashep.adapters.system import process_table, programs
from ashep.adapters.system.programs import Finished
from ashep.core.text import clean
from ashep.errors import AshepError
from ashep.ports.workspaces import Commit
from ashep.redaction import Redaction

TRAILER = "Ashep-Run"
"""The trailer by which a commit names the run that made it."""

SHA = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
ABSENT = re.compile(r"fatal: (?:not a git repository|this operation must be run in a work tree)")

LONG = 900.0
"""Seconds for a call that writes a whole tree, or reads one, or the history."""
WRITING = 600.0
"""Seconds for a call that writes files of a person's tree: a filter, of Git LFS say, may have to fetch each of them."""
MOST_COMMITS = 1000
MOST_STAT = 4000  # characters
MOST_DIFF = 60_000
STAT, PATCH = "--stat=100", "--patch"
_FORMAT = f"--format=%H%x1f%(trailers:key={TRAILER},valueonly,separator=%x1e)%x1f%s"
NOTHING = re.compile("^$")
"""What git says that ends with 1 where there is none of what it was asked for."""
_NO_COMMIT = re.compile("^$|fatal: Needed a single revision|warning: ignoring (?:dangling|broken)")

# --- what every call has ----------------------------------------------------------------------------------------------

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
    # a repository may name programs that git then runs, and agents can write them: no hook runs, a person's neither
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    # before git 2.42 a repository's word for it counts more than GIT_NO_REPLACE_OBJECTS
    "core.useReplaceRefs=false",
    # or decorate what git prints, or order it so that what matters lies beyond what is shown
    "color.ui=false",
    "log.showSignature=false",
    "log.mailmap=false",
    "diff.orderFile=/dev/null",
    # nobody is there to type what a key is locked with, and commits that are merged are not signed
    "commit.gpgSign=false",
    "push.gpgSign=false",
    "merge.verifySignatures=false",
    "gc.auto=0",
    "maintenance.auto=false",
    # what is larger is read in pieces and counts as binary; git's own bound of 512 MiB is that of a blob in memory
    "core.bigFileThreshold=16m",
    "advice.graftFileDeprecated=false",
    "advice.detachedHead=false",
)

# --- the profiles -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CallProfile:
    """What one kind of call has next to that: the differences are these, and each has its reason."""

    settings: tuple[str, ...] = ()
    """As `name=value`; they win over the repository's."""
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    mark: str = ""
    """A variable that tells these calls, by their folder, from all other processes, so that a later life ends them."""


READING = CallProfile()
"""To look: what is shown to people and agents, and judged. Nothing lasting is made, so that nothing is flushed; how
files are compared is for the person's settings to say, for the work tree and its index are theirs. A check's checkout
is told by variables to read no settings at all (`ashep.adapters.git.export`)."""

LANDING = CallProfile(("core.fsync=committed,reference,index",), mark="ASHEP_LANDING_CALL")
"""To move bases and push: what a ref names must be on the disk before the ref is, power may fail at any time. What is
written into a person's work tree is flushed by us, the files that changed alone; their settings of files hold there
(line ends, filters, modes, names), as in READING. Marked: one of a dead life may be writing there still, and is ended
before what it did is undone."""

WORK_TREE = CallProfile(
    (
        # what is saved must be there after a power cut too: the tree is deleted next
        "core.fsync=all",
        "core.editor=true",  # nobody is there to write a message
        # an agent can set these in the repository, and hide by them what it changed
        "core.untrackedCache=false",
        "core.ignoreStat=false",
        "core.trustctime=true",
        "core.checkStat=default",
        "core.fileMode=true",
        "core.quotePath=true",
        "merge.autoStash=false",
        "submodule.recurse=false",
        "status.showUntrackedFiles=all",
        # whatever an agent called a file, it is kept; `Repository.unwritable` tells what a person cannot check out
        "core.protectNTFS=false",
        "core.protectHFS=false",
    )
)
"""To seal, save and take away trees of issues, which are ours: settings of files are not a person's wish there, but a
way to hide something. Not marked: nothing of a dead life needs to be ended, locks of git's tell."""

ELSEWHERE = CallProfile(
    ("protocol.ext.allow=never",),
    {"GIT_ASKPASS": "true", "SSH_ASKPASS": "true", "GIT_SSH_COMMAND": "ssh -oBatchMode=yes"},
)
"""To fetch a repository that somebody names, and look into it: its address starts no program, and no question is asked
of a person who is not there. Not flushed: it can be fetched again. A person's own remotes may do both (LANDING)."""

PLACE = CallProfile(
    (
        *(setting for setting in WORK_TREE.settings if not setting.startswith("core.fsync=")),
        "core.fsync=none",
        # a repository within starts programs of its own settings when git looks into it
        "diff.ignoreSubmodules=all",
        # git believes it where it says which commits a commit has for parents
        "core.commitGraph=false",
    )
)
"""To seal and save the place of a branch, whose git folder an agent has written to: as in WORK_TREE, but nothing is
flushed there, since what lasts is what comes out of it. Always with a `Call` that keeps what the agent's settings start
from everything else."""

UNFLUSHED = ("-c", "core.fsync=none")
"""Before a command: what it makes can be made again, or the whole disk is flushed after it."""


class Started(TypedDict):
    """What a git is started with, as `programs.run` takes it."""

    env: Mapping[str, str]
    timeout: float
    stdin: bytes | None
    take: Callable[[bytes], None] | None
    patience: float


Call = Callable[[Sequence[str], Started], Awaitable[Finished]]
"""How a git is started that must not be started here: in the sandbox of whoever wrote its settings. `env` is next to
its own environment; errors are those of `programs.run`.
"""


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Give the environment of every git that we call; `more` is ours, too."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or _KEPT.fullmatch(name)}
    kept.pop("GPG_TTY", None)  # by which gpg finds a terminal to ask at, though our programs have none
    return kept | _OURS | dict(more or {})


async def failed(command: str, code: int, said: str, at: Path) -> AshepError:
    """Give the error of a git that failed, in its words; where the disk takes nothing more, that alone, on one line."""
    if (lock := locks.named_in(said, at)) is not None:
        return locks.in_the_way(lock, f"git {command}")
    if full := await programs.full_disk(said, at):
        return AshepError(f"git {command}: {full}")
    return AshepError(f"git {command} ended with exit code {code}: {clean(said)[:300]}")


class How(TypedDict, total=False):
    """Where git is called, what it is given, and who takes what it prints as it comes."""

    cwd: Path
    env: Mapping[str, str]
    stdin: bytes | None
    timeout: float
    take: Callable[[bytes], None] | None


class Git:
    """Git, called in the folder `at` where no other is named; each call is bound by `timeout` seconds.

    Errors: `ProgramMissing` without git, `ProgramTimedOut`, and `AshepError`: with git's words where it failed, and
    where the folder is none.
    """

    def __init__(
        self,
        at: Path,
        profile: CallProfile = READING,
        timeout: float = 30.0,
        redaction: Redaction | None = None,
        call: Call | None = None,
        common: Path | None = None,
    ) -> None:
        """`call`: how it is started; None: as a program of ours. `common`: the repository's folder, if it is known."""
        self.settings = (*_SETTINGS, *profile.settings)
        self.mark = process_table.ProcessMark(profile.mark, str(at))
        """What tells these calls from all other processes, where the profile has a mark."""
        self.told: list[str] = []
        """Locks that dead gits had left and that were taken away, and what of ours could not be."""
        self._at, self._timeout, self._redaction = at, timeout, redaction or Redaction()
        self._variables = {**profile.variables, **({profile.mark: str(at)} if profile.mark else {})}
        self._program: str | None = None
        self._call = call
        self._common = common
        self._main: tuple[Path | None] | None = None

    async def run(
        self,
        *arguments: str,
        accepted: Collection[int] | None = None,
        absent: re.Pattern[str] | None = None,
        **how: Unpack[How],
    ) -> Finished:
        """Run git to its end. It has failed where it neither ends with one of `accepted` (None: any) nor says what
        `absent` expects. `env` adds to the environment.
        """
        if self._program is None:
            self._program = str(await anyio.to_thread.run_sync(programs.find, "git") or "git")
        where = how.get("cwd", self._at)
        before = ("--no-pager", *(part for setting in self.settings for part in ("-c", setting)))
        argv = [self._program, *before, *arguments]
        how_started = Started(
            env=_OURS | self._variables | dict(how.get("env", {})),
            timeout=how.get("timeout", self._timeout),
            stdin=how.get("stdin"),
            take=how.get("take"),
            patience=programs.TO_CLEAN_UP,
        )
        if self._call is not None:
            call = partial(self._call, argv, how_started)
        else:
            ours = environment(how_started["env"])
            call = partial(programs.run, argv, cwd=where, longest=LONG, **{**how_started, "env": ours})
        done = await locks.past_locks(call, where, self.told)
        if accepted is None or done.returncode in accepted:
            return done
        said = self.redact_stderr(done)
        if absent is not None and absent.search(said):
            return done
        named = next((word for word in arguments if not word.startswith("-") and "=" not in word), "")
        raise await failed(named, done.returncode, said or self.redact_bytes(done.stdout.strip()), where)

    async def raw(self, *arguments: str, absent: re.Pattern[str] | None = None, **how: Unpack[How]) -> bytes:
        """Give what git printed, as it is: for ids and paths. Empty where it said what `absent` expects."""
        done = await self.run(*arguments, accepted=(0,), absent=absent, **how)
        return done.stdout if done.returncode == 0 else b""

    async def redacted(self, *arguments: str, absent: re.Pattern[str] | None = None, **how: Unpack[How]) -> bytes:
        """Give what git printed, without secrets: for what people and agents read. Else as `raw`."""
        return self._redaction.data(await self.raw(*arguments, absent=absent, **how))

    def redact_bytes(self, data: bytes) -> str:
        """Give what git printed as text that every file and terminal can hold, without secrets."""
        return clean(self._redaction.text(data.decode(errors="replace")))

    def redact_stderr(self, done: Finished) -> str:
        """Give what git said on standard error, in the same way."""
        return self.redact_bytes(done.stderr).strip()

    # --- the repository that holds the folder ---

    async def common(self) -> Path:
        """Give the folder that all work trees of the repository share. Raises `AshepError` outside of one."""
        if self._common is None:
            self._common = await self._path("--git-common-dir")
        return self._common

    async def main(self) -> Path | None:
        """Give the top of the main work tree. None where nothing leads to it: git's folder is not always in it, as
        after `--separate-git-dir`, or in a submodule, and `git worktree list` names that folder instead then.
        """
        if self._main is None:
            common = await self.common()
            if await self._path("--git-dir") == common:
                self._main = (await self._path("--show-toplevel"),)
            else:
                named = (await self.bare("config", "-z", "core.worktree", accepted=(0, 1))).stdout
                place = os.fsdecode(named.removesuffix(b"\0"))
                above = common.parent if common.name == ".git" else None
                self._main = (Path(await anyio.Path(common, place).resolve()) if place else above,)
        return self._main[0]

    async def _path(self, which: str) -> Path:
        return Path(os.fsdecode(await self.raw("rev-parse", "--path-format=absolute", which)).removesuffix("\n"))

    async def bare(
        self,
        *arguments: str,
        accepted: Collection[int] | None = (0,),
        absent: re.Pattern[str] | None = None,
        **how: Unpack[How],
    ) -> Finished:
        """Run git on the repository, in no work tree: what is checked out somewhere has no say."""
        return await self.run(*arguments, accepted=accepted, absent=absent, **(await self.in_no_tree() | how))

    async def in_no_tree(self, timeout: float | None = None) -> How:
        """Give the options of a call on the repository alone.

        They always name the folder: git looks for no repository in it then, which fails in somebody else's checkout
        and with `safe.bareRepository` (facts/git.md 1).
        """
        common = await self.common()
        return How(cwd=common, env={"GIT_DIR": str(common)}, timeout=timeout or self._timeout)

    async def word(self, *arguments: str) -> str:
        """Run git on the repository and give what it printed, as one word."""
        return (await self.bare(*arguments)).stdout.decode(errors="replace").strip()

    async def run_in_tree(
        self,
        tree: Path,
        *arguments: str,
        index: Path | None = None,
        stdin: bytes | None = None,
        accepted: Collection[int] = (0,),
        writes: bool = False,
    ) -> Finished:
        """Run git in a work tree, on another index than its own where one is given. `writes`: it writes files there."""
        # who looks may write an index of ours: `read-tree` takes a file that was touched for one that was changed
        steer = {} if index is None else {"GIT_INDEX_FILE": str(index), "GIT_OPTIONAL_LOCKS": "1"}
        limit = max(self._timeout, WRITING) if writes else self._timeout
        return await self.run(*arguments, accepted=accepted, cwd=tree, env=steer, stdin=stdin, timeout=limit)

    async def keep(self, new: Iterable[str], old: Iterable[str]) -> None:
        """See to it that commits, with all that they reach and old ones do not, survive a power cut.

        Raises `AshepError` where something is broken already.
        """
        listed = await self.bare(*fsync.REACHED, stdin=fsync.reached(new, old), timeout=LONG)
        await fsync.objects(await self.common(), listed.stdout)

    async def keep_refs(self, *names: str) -> None:
        """See to it that refs survive a power cut, as they are now; those that were deleted, too."""
        await fsync.refs(await self.common(), names)


# --- what it prints ---------------------------------------------------------------------------------------------------


async def commit_of(git: Git, revision: str, *, absent: re.Pattern[str] = _NO_COMMIT, **how: Unpack[How]) -> str | None:
    """Give the full id of the commit that a revision names; None where it names none, or git says what is `absent`."""
    if not revision or {"\n", "\0"} & {*revision}:
        return None
    asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    found = (await git.raw(*asked, absent=absent, **how)).decode(errors="replace").strip()
    return found if SHA.fullmatch(found) else None


async def history(
    git: Git, *what: str, absent: re.Pattern[str] | None = None, **how: Unpack[How]
) -> list[tuple[Commit, tuple[str, ...]]]:
    """List commits with the runs that they name; none where git said what `absent` expects."""
    listed = ("log", "-z", f"--max-count={MOST_COMMITS}", _FORMAT, *what, "--")
    lines = (await git.redacted(*listed, absent=absent, **how)).decode(errors="replace").split("\0")
    parts = [line.split("\x1f", 2) for line in lines if line]
    return [(Commit(sha, clean(subject)), tuple(runs.split("\x1e"))) for sha, runs, subject in parts]


async def changed(git: Git, form: str, *command: str, paths: Iterable[str] = (), **how: Unpack[How]) -> str:
    """Show what a `diff` or `log` changes, as `STAT` or `PATCH`, cut to its most; no program that is named runs."""
    printed = await git.redacted(*command, form, "--no-ext-diff", "--no-textconv", "--", *paths, **how)
    shown = clean(printed.decode(errors="replace")).strip("\n")
    return capped(shown, MOST_STAT if form == STAT else MOST_DIFF)


def capped(words: str, most: int, mark: str = "…") -> str:
    """Cut a text at a line's end, so that it has `most` characters and a mark."""
    return words if len(words) <= most else words[:most].rpartition("\n")[0] + f"\n{mark}"
