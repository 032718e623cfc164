"""What happens to the work tree of an issue that is closed: records for `ashep.core.facts.vocabulary`."""

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class TreeRests:
    """The tree of an issue that is closed, and its branch, stand until a time; then they are looked at, and may go."""

    issue: str
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
class TreeRemoved:
    """A tree and its branch are gone, for the base holds all that was in them."""

    issue: str
    key: str
    branch: str
    freed: int = 0
    """Bytes on the disk."""
    saved: tuple[str, ...] = ()
    """Refs that hold what was beside the branch: its past, and what had been moved out of the way."""


@dataclass(frozen=True, slots=True)
class TreeKept:
    """A tree was to go, and something in it, or on its branch, is nowhere else, or somebody uses it."""

    issue: str
    key: str
    branch: str
    why: str
