"""Facts of landing by pull request: it stands at the forge, what people and CI did there, and what follows."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Remark:
    """That somebody said something of a pull request; their words are kept apart."""

    id: str
    """Stable, and of this remark alone."""
    kind: Literal["comment", "approved", "changes_requested"]
    by: str
    bot: bool = False


@dataclass(frozen=True, slots=True)
class PullRequestOpened:
    """The branch is pushed, and a pull request asks for it: a new one, or the one that stood."""

    issue: str
    key: str
    number: int
    url: str
    name: str
    """By which it is found again."""
    base: str
    """The branch that it asks to be merged into."""
    head: str
    """The commit that was pushed."""


@dataclass(frozen=True, slots=True)
class PullRequestSeen:
    """What became of a pull request that waits for people. By difference."""

    issue: str
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
    """What was said since the work was last pushed, oldest first; `ashep.ports.forge` bounds how much that is."""
    log: str = ""
    """The blob of all of it: the checks that failed, and what was said."""


@dataclass(frozen=True, slots=True)
class PullRequestReturned:
    """What CI or a person says of the work sends it back to who wrote it."""

    issue: str
    number: int
    kind: Literal["ci", "review"]
    why: str
    log: str = ""
    """The blob of what they say."""


@dataclass(frozen=True, slots=True)
class PullRequestMerged:
    """Somebody merged it: the base has the work."""

    issue: str
    number: int
    commit: str
    """The base's commit; empty: the forge does not say."""
    why: str
