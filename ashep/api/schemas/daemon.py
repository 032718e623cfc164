"""What is true of everything, as the page and programs are shown it."""

from typing import Literal

from ashep.api.schemas.verification import Answer
from ashep.core.facts.delivery import RepositorySeen


class Pause(Answer):
    """What lets no run start."""

    by: str
    why: str
    since: str
    until: str | None
    """Null: until somebody resumes."""
    provider: str | None
    """Null: all of them."""
    drain: bool


class Budget(Answer):
    """A limit that was passed and still counts."""

    scope: str
    name: str
    unit: str
    used: float
    limit: float
    reached: bool
    """False: only the share `warn_at`."""
    until: str | None


class Notice(Answer):
    """A target of `notify` that was not told something."""

    target: str
    error: str
    failures: int
    given_up: int
    since: str | None
    waiting: int
    due: str | None


class RunnerStands(Answer):
    """How a runner is."""

    runner: str
    state: str
    detail: str
    since: str | None
    failures: int
    start_after: str | None
    recycling: str | None
    replaced: str
    tracker_replaced: str


class Refused(Answer):
    """An edit of the user's files that cannot be used."""

    since: str
    problems: list[str]
    more: int


class Outage(Answer):
    """A provider that takes nothing."""

    provider: str
    state: Literal["limited", "down", "unauthorized"]
    why: str
    since: str
    until: str | None
    tried: bool
    waiting: int
    """How many issues wait for it."""


class QuotaWindow(Answer):
    """A window of a quota."""

    name: str
    used: float
    """The share that is used: 1 is all of it."""
    resets: str
    status: Literal["allowed", "allowed_warning", "rejected"] | None


class Quota(Answer):
    """How much of its quota a login has used, as its provider said last."""

    runner: str
    provider: str
    login: str
    """Where the login comes from; empty: that is not known."""
    status: Literal["allowed", "allowed_warning", "rejected"]
    window: str | None
    """The one that decides the status."""
    resets: str | None
    seen: str
    windows: list[QuotaWindow]


class Kept(Answer):
    """From where on records are kept."""

    first: int
    since: str | None


class Servers(Answer):
    """Agent servers that live."""

    count: int
    bytes: int


class Trees(Answer):
    """Work trees of closed issues that are kept."""

    kept: int
    next: str | None
    """When the next of them goes."""


class Daemon(Answer):
    """What is true of everything, as `ashep status --json` has it."""

    running: bool
    pid: int | None = None
    since: str | None = None
    version: str | None = None
    behind: bool = False
    """It has not drawn everything yet."""
    ended: str | None = None
    why: str | None = None
    """Why it ended."""
    disk: Literal["ok", "low"] = "ok"
    findings: int
    """Of the last audit."""
    pauses: list[Pause]
    budgets: list[Budget]
    """Limits that were passed and still count."""
    notices: list[Notice]
    runners: list[RunnerStands]
    workspace: str | None
    repository: RepositorySeen | None = None
    """None: no daemon runs, or it has not looked yet."""
    edit: Refused | None
    """The last edit of the user's files, where it cannot be used."""
    providers: list[Outage]
    """Those that take nothing."""
    quotas: list[Quota]
    journal: Kept | None
    trees: Trees
    servers: Servers | None = None
