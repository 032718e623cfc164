"""Facts of what issues share: agents, servers, providers, budgets, the clock, notices, and findings of the audit."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from ashep.core.facts import Decision, OfIssue, runs
from ashep.core.policy.runner_kinds import OPENCODE
from ashep.core.policy.settings import NoticeKind

Backlog = Literal["", "first", "none", "all"]
"""first: ten of its issues · none · all · empty: it was asked for certain issues, or so many, and holds none."""

# --- the daemon and its rules ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JournalBegun:
    """The first record of a journal: its instance id, which every key and id derives from."""

    instance: str
    secret: str
    """Makes the fences of foreign text in prompts unguessable; never leaves the state folder but in prompts."""
    actor: str = ""
    """The name under which this state folder claims, where the settings give none: kept when the folder moves."""


@dataclass(frozen=True, slots=True)
class DaemonStarted:
    """A daemon took over the journal."""

    pid: int
    version: str
    only: tuple[str, ...] = ()
    """The issues it was asked to work on; empty: all."""
    max_issues: int | None = None
    """How many issues it may take."""
    trees: bool = False
    """Whether it can make work trees of issues' own."""
    bases: bool = False
    """Whether it runs the checks of policies on the base."""
    watches: bool = False
    """Whether it looks at the repository that they are of: nothing begins before that."""
    backlog: Backlog = ""
    """What of a backlog that is there before anything was worked on it may work on."""


@dataclass(frozen=True, slots=True)
class BacklogHeld(Decision):
    """Of the issues that were ready before any was worked on, these wait until somebody lets them go."""

    issues: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class DaemonStopped:
    """A daemon ended in order."""

    why: str


@dataclass(frozen=True, slots=True)
class Adopted:
    """Policies, agents, settings or templates came into force. `content` is their normal form, `text` the blob of the
    file or files; of templates `content` holds their hashes, and `text` is what prompts are made of.
    """

    kind: Literal["policies", "agents", "settings", "prompts"]
    content: str
    text: str
    rules: int


@dataclass(frozen=True, slots=True)
class EditRefused:
    """The user's files were edited so that they cannot be used: what was good stays in force. By difference."""

    problems: tuple[str, ...]
    """What is wrong, each with its place; the first of them."""
    more: int = 0
    """How many more there are."""


@dataclass(frozen=True, slots=True)
class EditMended:
    """The user's files can be used again; what differs in them was adopted."""


@dataclass(frozen=True, slots=True)
class JournalPruned:
    """What precedes a number was given up: those archived files are deleted, and the journal begins there."""

    first: int
    """The sequence number of the first line that is kept."""
    files: tuple[str, ...]
    keep: timedelta | None = None
    """By itself, for all in them is so old (`journal.keep`); None: the owner said so."""


@dataclass(frozen=True, slots=True)
class DiskSeen:
    """How much room there is where the state folder lies. By difference of its state."""

    state: Literal["ok", "low"]


@dataclass(frozen=True, slots=True)
class FolderLeft:
    """A folder cannot be deleted: `why` says which, and where it is left for a person to see to."""

    why: str


@dataclass(frozen=True, slots=True)
class MachineSeen:
    """Whether the machine is behind with its work. By difference of its state."""

    state: Literal["ok", "busy"]
    why: str = ""
    """What was measured."""


@dataclass(frozen=True, slots=True)
class TimerDue:
    """A due time in the World has passed. Ignored where that wait no longer stands."""

    key: str
    due: datetime


@dataclass(frozen=True, slots=True)
class ClockJumped:
    """Wall and monotonic time parted by this much (suspend, clock set): running deadlines move with it."""

    gap: timedelta


@dataclass(frozen=True, slots=True)
class WorkPaused:
    """No run starts and no issue is taken from now on: a person asked for it, or quiet hours began."""

    by: str
    why: str = ""
    until: datetime | None = None
    """None: until somebody resumes."""
    provider: str | None = None
    """Only runs on this provider; None: all."""
    drain: bool = False
    """Somebody waits for the last run to end."""
    window: str = ""
    """The window of the configuration that begins; empty: a person paused."""


@dataclass(frozen=True, slots=True)
class WorkResumed:
    """A person resumed; or a window (by its name) is not in the configuration any more."""

    by: str
    why: str = ""
    provider: str | None = None
    """Only this provider's pause ends; None: every one."""
    window: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that should not be so."""

    code: str
    """Stable, for programs; `ashep.core.analysis.audit.REMEDIES` has them all."""
    issue: str | None
    what: str
    """A sentence for people."""


@dataclass(frozen=True, slots=True)
class AccountAudited:
    """The daemon checked the account (`ashep.core.analysis.audit`). By difference: nothing of what is still so."""

    findings: tuple[Finding, ...] = ()
    more: int = 0
    """How many findings are not listed."""


@dataclass(frozen=True, slots=True)
class QuietSeen:
    """Nobody is to be told anything before this time. By difference; None: the configuration has no such hours now."""

    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class RunnerSeen:
    """The agent server's state and what it lists. By difference."""

    state: Literal["up", "away", "unauthorized", "misconfigured"]
    detail: str = ""
    instance: str = ""
    agents: tuple[str, ...] = ()
    models: tuple[runs.Model, ...] = ()
    default: runs.Model | None = None
    times: int = 0
    """How often it has come back in a row, each time but this one for less than a minute."""
    replaced: str = ""
    """Which version answers where another one did before; empty: the same does."""
    exhaustive: bool = True
    """Whether it has no other agents and models than those that it lists."""
    runner: str = OPENCODE
    """Which of the project's runners it is."""
    patient: bool = False
    """It is away, and alive: it starts, or is busy."""


@dataclass(frozen=True, slots=True)
class ServerFailed:
    """The managed agent server ended by itself, did not answer any more and was ended, or did not start."""

    instance: str
    """The life that is over; empty: none began."""
    why: str
    runner: str = OPENCODE


@dataclass(frozen=True, slots=True)
class ServerEnded:
    """ashep ended its agent server of its own accord."""

    instance: str
    why: Literal["idle", "recycled"]
    runner: str = OPENCODE


@dataclass(frozen=True, slots=True)
class ServerMemorySeen:
    """How much memory the managed agent server holds. By difference of how often its limit goes into that."""

    instance: str
    used: int
    """Bytes."""
    limit: int
    runner: str = OPENCODE


@dataclass(frozen=True, slots=True)
class BudgetWarned(Decision):
    """A share of a limit is used up: once for each scope, period and limit."""

    scope: str
    """run, issue, provider, day or total."""
    name: str
    """Which run, issue, provider and day, or day."""
    unit: str
    """tokens or cost."""
    used: float
    limit: float
    why: str
    until: datetime | None = None
    """When its period is over."""
    issue: str | None = None


@dataclass(frozen=True, slots=True)
class BudgetReached(Decision):
    """A limit is used up: what is under way of that scope is stopped, or no more starts."""

    scope: str
    """run, issue, provider, day, total or runs_per_hour."""
    name: str
    unit: str
    """tokens, cost or runs."""
    used: float
    limit: float
    why: str
    until: datetime | None = None
    """When there is budget again by itself."""
    issue: str | None = None


@dataclass(frozen=True, slots=True)
class WriteDelayed(OfIssue, Decision):
    """A write to the tracker waits: as many were made as may be in a minute."""

    write: str
    """The key of the command."""
    due: datetime
    why: str


@dataclass(frozen=True, slots=True)
class ProviderRefused(Decision):
    """A provider takes nothing: nothing starts on it until it may be tried, then one run before the rest."""

    provider: str
    kind: Literal["limited", "down", "unauthorized"]
    why: str
    """Its words."""
    until: datetime | None
    """When it may be tried; None: when its credentials may be others."""
    refusals: int
    """How often in a row it refused one that tried."""
    run: str
    """The run that it refused."""


@dataclass(frozen=True, slots=True)
class ProviderRecovered(Decision):
    """A provider takes again what it is asked."""

    provider: str
    why: str
    run: str
    """The run that shows it."""


@dataclass(frozen=True, slots=True)
class NoticeWanted(Decision):
    """Something happened that is worth a person."""

    event: NoticeKind
    text: str
    to: tuple[str, ...]
    """The targets of `notify` that are to be told."""
    issue: str | None = None
    about: str = ""
    """What it is about, where that is no issue: a server, say."""
    cause: int = 0
    """The sequence number of what happened."""


@dataclass(frozen=True, slots=True)
class NoticesGathered(Decision):
    """What a target is told now, in one message; what is over by now is left out."""

    target: str
    notices: tuple[int, ...]
    why: str
    left_out: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class NoticesDelayed(Decision):
    """A target could not be told: it is tried again, with whatever is to be told by then."""

    target: str
    due: datetime
    why: str


@dataclass(frozen=True, slots=True)
class NoticesGivenUp(Decision):
    """A target is not told of these any more."""

    target: str
    notices: tuple[int, ...]
    why: str


@dataclass(frozen=True, slots=True)
class ServerRestartPlanned(Decision):
    """An agent server that failed is started again, not before a time where it did so several times in a row."""

    failures: int
    due: datetime
    why: str
    runner: str = OPENCODE


@dataclass(frozen=True, slots=True)
class RecycleWanted(Decision):
    """The agent server is to be ended and begun again: between turns, or at once."""

    instance: str
    until: datetime
    """Until then no run starts on it; then this is given up for a while."""
    at_once: bool
    why: str
    runner: str = OPENCODE


@dataclass(frozen=True, slots=True)
class NoticeSent:
    """A target took the message."""

    key: str
    target: str


@dataclass(frozen=True, slots=True)
class NoticeFailed:
    """A target did not take the message, or cannot be told to have."""

    key: str
    target: str
    error: str


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that people are to be told."""

    id: int
    """The sequence number of the decision."""
    noted: datetime
    event: NoticeKind
    text: str
    issue: str | None = None
    about: str = ""
    """What it is about, where that is no issue."""
    cause: int = 0
    """The sequence number of what happened."""
    to: tuple[str, ...] = ()
    """The targets that were not told yet."""
