"""The port of annotations: what a tracker keeps of an issue beside its course (see `ashep.ports.tracker` for the others)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue


@dataclass(frozen=True, slots=True)
class Annotated:
    """What stands on an issue."""

    acceptance: str
    """Its acceptance criteria exactly as they stand, control characters included: to be written back, not shown."""
    metadata: Mapping[str, JsonValue]
    """By key; the key `ashep` is the daemon's stamp."""


@dataclass(frozen=True, slots=True)
class Titled:
    """An issue in a list."""

    id: str
    title: str
    status: str
    metadata: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Fresh:
    """An issue that is to be created, under an id that is already known."""

    id: str
    title: str
    description: str
    type: str
    priority: int
    acceptance: str
    metadata: Mapping[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Rewritten:
    """What is to stand on an issue; None: what stands there stays. Spaces around a title are not kept."""

    title: str | None = None
    description: str | None = None
    priority: int | None = None
    acceptance: str | None = None


class Annotations(Protocol):
    """Words and metadata of issues.

    No write to an issue that is there touches status, assignee, labels or the daemon's stamp, so that it may be made
    beside a daemon at any moment. Errors: those of `ashep.ports.tracker.Tracker`.
    """

    async def read(self, issue: str) -> Annotated | None:
        """Read an issue, closed ones too; None where there is none of exactly this id."""
        ...

    async def listed(self, status: str | None) -> tuple[Titled, ...]:
        """List issues with this status, `all` of them, or (None) those that are not closed; by id."""
        ...

    async def create(self, fresh: Fresh) -> bool:
        """Create an issue, with everything at once; False: there is one of this id, which stays as it is.

        Where the error says that its fate is unknown, reading it tells.
        """
        ...

    async def rewrite(self, issue: str, words: Rewritten) -> None:
        """Replace what is given, all of it at once. Idempotent."""
        ...

    async def annotate(self, issue: str, values: Mapping[str, JsonValue]) -> None:
        """Set keys of the metadata; those that are not named stay as they are. Idempotent. Never the key `ashep`."""
        ...
