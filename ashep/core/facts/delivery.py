"""Facts of the way to the base: work trees, verification and its evidence, integration, landing and pull requests.

Evidence is bound to the hash of a git tree, so that it holds for exactly that.
"""

from collections.abc import Container, Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal

from ashep.core.facts import Answer, Decision, OfIssue, OfRun, RunAnswer

Ground = Literal["own", "fresh", "sealed"]
"""What a run stands on. own: the branch's tree as it is · fresh: that tree, made again · sealed: what was committed, in
a folder that nobody writes to, with the instructions of the base."""


@dataclass(frozen=True, slots=True)
class Tree:
    """The user's work tree at one moment.

    `dirty` holds tracked files that are changed or staged, each with a hash of its present content; `untracked` is
    only warned about. `head` is None in a repository without a commit, and `present` False outside of one.
    """

    present: bool
    head: str | None = None
    dirty: tuple[tuple[str, str], ...] = ()
    untracked: tuple[str, ...] = ()
    branch: str | None = None
    """The branch that is checked out; None: none is, or nobody looked."""


@dataclass(frozen=True, slots=True)
class TreeSeen:
    """The user's work tree. By difference at a look; always before and after a write run, with that run's id."""

    tree: Tree
    moment: Literal["look", "before", "after"] = "look"
    issue: str | None = None
    run: str | None = None
    commits: tuple[str, ...] = ()
    """After a run: the commits made since it began, oldest first."""


@dataclass(frozen=True, slots=True)
class RepositorySeen:
    """What was seen of the repository that issues have trees of. By difference."""

    fault: str = ""
    """What keeps every issue from a tree, and what to do; empty: nothing."""
    behind: str = ""
    """How far the base is behind the remote's branch that it follows, as fetched last; empty: it is not."""
    error: str = ""
    """Why that could not be fetched now."""
    merges: tuple[str, ...] = ()
    """Commits of merged pull requests that others wait for, and that the remote's branch holds."""


@dataclass(frozen=True, slots=True)
class TreePrepared(RunAnswer):
    """The issue's own work tree stands, for a run to begin in it."""

    branch: str
    path: str
    base: str
    """The commit that the branch began from."""
    head: str
    ground: Ground = "own"
    seals: bool = False
    """The branch is sealed when the run is over, also where that only reads."""


@dataclass(frozen=True, slots=True)
class FileMap:
    """Which files a change touches. A renamed file is created under its name and deleted under its former one."""

    created: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    more: int = 0
    """How many paths are not named, because there are so many."""
    lines: tuple[int, int] | None = None
    """How many lines it adds and removes; None: nobody counted."""


@dataclass(frozen=True, slots=True)
class Amendment:
    """What ashep itself does to the files that a run left, before anything follows from them."""

    since: str
    """The commit on which the run began."""
    fits: str = ""
    """The commit with which the issue's work is compared."""
    onto: str = ""
    """The branch that it is to land on, which its agents may have merged; empty: none is known."""
    may: tuple[str, ...] | None = None
    """The files that the run was allowed to change; None: all. What else it changed is put back."""
    story: str = ""
    """The file of the issue's story, from the project's folder; empty: it has none."""
    status: str = ""
    """What it is to say as its status; empty: what it says."""
    remains: str = ""
    """What is to be done still: points for it, a line each."""
    person: bool = False
    """A person worked in it, and may have said again what is to be fulfilled."""


@dataclass(frozen=True, slots=True)
class StoryLeft:
    """How a run left the issue's story."""

    status: str = ""
    """The documented word for its status; empty: it says no known one."""
    state: str = ""
    lacking: str = ""
    """Why its status could not be written."""
    blocked: str = ""
    """Why whoever worked on it stopped, in its words."""
    put_off: tuple[str, ...] = ()
    """Findings that were left for later when it was completed."""


@dataclass(frozen=True, slots=True)
class TreeSealed(RunAnswer):
    """What a run left in the issue's own work tree is committed on its branch."""

    head: str
    tree: str
    """The git tree hash of `head`."""
    commits: tuple[str, ...]
    """All after the base, oldest first."""
    told: tuple[str, ...] = ()
    """What was found out of order, and what was done about it."""
    flags: tuple[str, ...] = ()
    """What all its changes since the base touch (`ashep.core.policy.flags`)."""
    files: FileMap | None = None
    """The files that they touch; None: it is not known."""
    lacking: tuple[str, ...] = ()
    """Of what was told, what its branch lacks, where that is, and what to do."""
    unwritable: tuple[str, ...] = ()
    """Files among them that git would write to no work tree: with them it cannot land."""
    refused: tuple[str, ...] = ()
    """What a run changed that it may not, and that was put back: a sentence each."""
    story: StoryLeft | None = None
    """How it left the issue's story."""


CheckStatus = Literal["passed", "failed", "skipped", "error"]
"""skipped: it is a person's · error: it could not run, which proves nothing."""

FAILING: tuple[CheckStatus, ...] = ("failed", "error")
"""Those that do not pass; a check that could not run proves nothing."""

UNTESTED = "No test ran: nobody but an agent says that this works."
"""What a person reads first about work on which no check ran."""

Status = Literal["passing", "failing", "blocked"]
"""passing: something was checked, and nothing failed · failing: a check failed · blocked: one could not run,
or nothing was checked at all."""

Cause = Literal["", "network", "program", "submodule", "memory", "time", "setup"]
"""Why a check likely failed where the machine is to blame, and not the files."""

CAUSES: dict[Cause, tuple[str, str]] = {
    "": ("", ""),
    "network": ("no network in checks", "Fill your home's caches of dependencies, or set `verification.network: true`"),
    "program": ("a program is not found", "Install it, or name its folder in `verification.paths` and on PATH"),
    "submodule": ("a submodule is an empty folder", "Run `git submodule update --init --recursive` in your checkout"),
    "memory": ("out of memory", "Raise `verification.memory_limit` in config.yaml"),
    "time": ("out of time", "Raise the check's `timeout`"),
    "setup": ("it cannot be carried out here", ""),
}
"""The same in words, and what a person can do about it."""


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one check found."""

    check_id: str
    status: CheckStatus
    message: str
    """One line: what was expected and what was found."""
    duration_ms: int
    output: str = ""
    """The blob of what it printed, capped and without secrets; empty where it printed nothing."""
    proves_nothing: bool = False
    """It passed on the base already, before any work."""
    cause: Cause = ""
    """Why it likely failed; empty: it passed, or the files are to blame."""
    on_base: bool = False
    """It failed on the base, too, before any work, and in the same way: no work is to blame."""

    @property
    def fails(self) -> bool:
        """Whether it did not pass."""
        return self.status in FAILING

    @property
    def blame(self) -> str:
        """Say what it does on the base where no work is to blame; empty: that is not known."""
        likely = f" (likely cause: {CAUSES[self.cause][0]})" if self.cause else ""
        return f"fails on the base, too{likely}" if self.on_base else ""


@dataclass(frozen=True, slots=True)
class Summary:
    """Results, counted; an error counts as failed."""

    total: int
    passed: int
    failed: int
    skipped: int


@dataclass(frozen=True, slots=True)
class Verification:
    """What the checks of one list found in one tree."""

    commit: str
    tree: str
    """The git tree's hash: what was verified, whatever commit brings it."""
    checks: str
    """The hash of the list of checks and of all that their answer depends on next to the tree: the scripts of the base,
    the sandbox, the network, the environment, the classes of the user's own. With the same tree and hash nothing is
    verified twice."""
    results: tuple[CheckResult, ...]
    isolated: bool | None
    """Whether their programs ran in a sandbox; None: none of them ran a program."""


def passed_before(found: Verification, base: Verification) -> Verification:
    """Flag the checks that passed on the base already: they say nothing about the work."""
    green = {result.check_id for result in base.results if result.status == "passed"}
    same = {result.check_id for result in found.results if result.status == "passed"} & green
    return _flagged(found, same, proves_nothing=True)


def failed_before(found: Verification, base: Verification, excusable: Container[str]) -> Verification:
    """Flag the excusable failures that the base has, too, for the same likely cause."""
    there = {(result.check_id, result.cause) for result in base.results if result.fails}
    same = (result for result in found.results if result.fails and (result.check_id, result.cause) in there)
    return _flagged(found, {result.check_id for result in same if result.check_id in excusable}, on_base=True)


def _flagged(found: Verification, ids: Container[str], **flag: bool) -> Verification:
    results = (replace(result, **flag) if result.check_id in ids else result for result in found.results)
    return replace(found, results=tuple(results))


def status_of(results: tuple[CheckResult, ...]) -> Status:
    """Say what results come to."""
    found = {result.status for result in results}
    if "failed" in found:
        return "failing"
    return "passing" if "passed" in found and "error" not in found else "blocked"


def has_run(statuses: Iterable[CheckStatus]) -> bool:
    """Whether a check ran: one that is left to people did not, and neither did one that could not run."""
    return any(status in ("passed", "failed") for status in statuses)


def green_before(results: tuple[CheckResult, ...]) -> int:
    """Count those that passed, and did so before any work: they prove nothing about it."""
    return sum(result.status == "passed" and result.proves_nothing for result in results)


def summary_of(results: tuple[CheckResult, ...]) -> Summary:
    """Count results."""
    passed, skipped = (sum(result.status == status for result in results) for status in ("passed", "skipped"))
    return Summary(len(results), passed, len(results) - passed - skipped, skipped)


ROOM = 8_000
"""Characters of all the paths that a short one names."""


def shortened(files: FileMap) -> FileMap:
    """Name files while there is room, and count the others: whoever reads a list of issues reads their maps, too."""
    room, more, named = ROOM, files.more, list[tuple[str, ...]]()
    for paths in (files.created, files.modified, files.deleted):
        shown = list[str]()
        for path in paths:
            room -= len(path)
            if room >= 0:
                shown.append(path)
            else:
                more += 1
        named.append(tuple(shown))
    return FileMap(*named, more=more, lines=files.lines)


# --- what is seen -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CriteriaAdopted(OfIssue):
    """The checks in an issue's acceptance criteria, as they stood when it was taken: those are what counts."""

    hash: str
    """`ashep.core.policy.checks.hash_of`; empty: it has none."""
    blob: str = ""
    """Their normal form."""
    checks: int = 0
    manual: tuple[str, ...] = ()
    """Questions to a person."""
    error: str = ""
    """Why they cannot be read."""
    left_out: tuple[str, ...] = ()
    """Which of the issue's own words are too long to be read, with their sizes; its checks may be among them."""


@dataclass(frozen=True, slots=True)
class CriteriaChanged(OfIssue):
    """Somebody changed the checks of an issue that is being worked on. That changes nothing about what counts."""

    hash: str
    why: str


# --- decisions ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class VerificationWanted(OfRun, Decision):
    """A run says that it succeeded; whether its work holds is to be seen before anything follows from that."""

    phase: str
    why: str


# --- answers of effects -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WorkVerified(Answer):
    """What checks found in a tree. `run`: whose success was to be verified; empty: it was about to land."""

    commit: str
    tree: str
    """The git tree hash of `commit`: what the results hold for."""
    changed: bool
    """Whether the work differs from what it began from. Until rules 5 it was looked at only where it is to differ, and
    true elsewhere."""
    run: str = ""
    checks: str = ""
    """The hash of what was checked; empty: there was nothing to check."""
    results: tuple[CheckResult, ...] = ()
    isolated: bool | None = False
    """Whether the programs of checks ran in a sandbox; None: no program ran."""
    log: str = field(default="")
    """The blob of what failed, for whoever is to mend it."""
    must_change: bool = True
    """Whether work that changes nothing falls short."""
    ignore: bool = False
    """Whether a check that fails on the base, too, counts for nothing (the policy's `on_base_failure`)."""


@dataclass(frozen=True, slots=True)
class BaseChecked:
    """What the checks of a policy found on the branch where its work lands, before any work."""

    policy: str
    branch: str
    commit: str
    """Empty, without an error: nobody has looked since the daemon began, or the policy was another."""
    found: Verification | None = None
    """Results with `on_base` cannot pass here, whatever an agent does."""
    error: str = ""
    """Why nothing was checked."""


@dataclass(frozen=True, slots=True)
class WorkIntegrated(Answer):
    """The work stands on the newest base, as a commit that nothing points to yet."""

    head: str
    base: str
    """The base's commit then."""
    commit: str
    tree: str


@dataclass(frozen=True, slots=True)
class WorkConflicted(Answer):
    """The work and the newest base contradict each other."""

    head: str
    base: str
    paths: tuple[str, ...]
    log: str = ""
    """The blob of what contradicts what."""


@dataclass(frozen=True, slots=True)
class WorkLanded(Answer):
    """The base holds the work. `already`: it did before, or there was nothing to bring."""

    base_branch: str
    head: str
    commit: str
    """The base's commit."""
    already: bool = False
    told: tuple[str, ...] = ()
    """What was found out of order in the repository, and what was done about it."""
    empty: bool = False
    """There was nothing to bring: the issue changed nothing."""


@dataclass(frozen=True, slots=True)
class LandingRefused(Answer):
    """The base was not moved: see `ashep.ports.landing.Refused`."""

    code: str
    """`ashep.ports.landing.Code`; of a pull request: protected · theirs · refused · away (`ashep.ports.landing`)"""
    why: str
    wait: timedelta = timedelta()
    """How long it wants to be left alone, at least."""


@dataclass(frozen=True, slots=True)
class Remark:
    """That somebody said something of a pull request; their words are kept apart."""

    id: str
    """Stable, and of this remark alone."""
    kind: Literal["comment", "approved", "changes_requested"]
    by: str
    bot: bool = False


@dataclass(frozen=True, slots=True)
class PullRequestOpened(Answer):
    """The branch is pushed, and a pull request asks for it: a new one, or the one that stood."""

    number: int
    url: str
    name: str
    """By which it is found again."""
    base: str
    """The branch that it asks to be merged into."""
    head: str
    """The commit that was pushed."""


@dataclass(frozen=True, slots=True)
class PullRequestSeen(OfIssue):
    """What became of a pull request that waits for people. By difference."""

    number: int
    as_of: int
    """The number of the last record when the read began."""
    state: Literal["open", "merged", "closed", "gone"]
    """gone: the forge shows no such pull request any more."""
    head: str = ""
    """The newest commit of its branch at the forge."""
    by: str = ""
    """Who merged or closed it."""
    merged_as: str = ""
    """The commit by which the base has it."""
    ci: Literal["none", "pending", "passing", "failing"] = "none"
    failing: tuple[str, ...] = ()
    """The forge's checks that failed."""
    remarks: tuple[Remark, ...] = ()
    """What was said since the work was last pushed, oldest first; `ashep.ports.landing` bounds how much that is."""
    log: str = ""
    """The blob of all of it: the checks that failed, and what was said."""


@dataclass(frozen=True, slots=True)
class PullRequestReturned(OfIssue, Decision):
    """What CI or a person says of the work sends it back to who wrote it."""

    number: int
    kind: Literal["ci", "review"]
    why: str
    log: str = ""
    """The blob of what they say."""


@dataclass(frozen=True, slots=True)
class PullRequestMerged(OfIssue, Decision):
    """Somebody merged it: the base has the work."""

    number: int
    commit: str
    """The base's commit; empty: the forge does not say."""
    why: str


@dataclass(frozen=True, slots=True)
class TreeRests(OfIssue, Decision):
    """The tree of an issue that is closed, and its branch, stand until a time; then they are looked at, and may go."""

    branch: str
    due: datetime | None
    """None: they stand for ever."""
    keep: timedelta | None
    """`trees.keep`, by which the time was set."""
    tries: int = 0
    """How often they were to go, and were kept."""
    why: str = ""
    """Why they were kept then."""


@dataclass(frozen=True, slots=True)
class TreeRemoved(Answer):
    """A tree and its branch are gone, for the base holds all that was in them."""

    branch: str
    freed: int = 0
    """Bytes on the disk."""
    saved: tuple[str, ...] = ()
    """Refs that hold what was next to the branch: its past, and what had been moved out of the way."""


@dataclass(frozen=True, slots=True)
class TreeKept(Answer):
    """A tree was to go, and something in it, or on its branch, is nowhere else, or somebody uses it."""

    branch: str
    why: str
