"""Facts of verifying and landing: what is adopted to be checked, what checks found, and where work went."""

from dataclasses import dataclass, field
from datetime import timedelta

from ashep.core.facts.evidence import CheckResult

# --- what is seen -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CriteriaAdopted:
    """The checks in an issue's acceptance criteria, as they stood when it was taken: those are what counts."""

    issue: str
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
class CriteriaChanged:
    """Somebody changed the checks of an issue that is being worked on. That changes nothing about what counts."""

    issue: str
    hash: str
    why: str


# --- decisions ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class VerificationWanted:
    """A run says that it succeeded; whether its work holds is to be seen before anything follows from that."""

    issue: str
    run: str
    phase: str
    why: str


# --- answers of effects -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WorkVerified:
    """What checks found in a tree. `run`: whose success was to be verified; empty: it was about to land."""

    issue: str
    key: str
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


@dataclass(frozen=True, slots=True)
class WorkIntegrated:
    """The work stands on the newest base, as a commit that nothing points to yet."""

    issue: str
    key: str
    head: str
    base: str
    """The base's commit then."""
    commit: str
    tree: str


@dataclass(frozen=True, slots=True)
class WorkConflicted:
    """The work and the newest base contradict each other."""

    issue: str
    key: str
    head: str
    base: str
    paths: tuple[str, ...]
    log: str = ""
    """The blob of what contradicts what."""


@dataclass(frozen=True, slots=True)
class WorkLanded:
    """The base holds the work. `already`: it did before, or there was nothing to bring."""

    issue: str
    key: str
    base_branch: str
    head: str
    commit: str
    """The base's commit."""
    already: bool = False
    told: tuple[str, ...] = ()
    """What was found out of order in the repository, and what was done about it."""


@dataclass(frozen=True, slots=True)
class LandingRefused:
    """The base was not moved: see `ashep.ports.landing.Refused`."""

    issue: str
    key: str
    code: str
    """`ashep.ports.landing.Code`; of a pull request: protected · theirs · refused · away (`ashep.ports.forge`)"""
    why: str
    wait: timedelta = timedelta()
    """How long it wants to be left alone, at least."""
