"""The port of annotations: what a tracker keeps of an issue beside its course (see `ashep.ports` for the others)."""

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


class Annotations(Protocol):
    """Acceptance criteria and metadata of issues.

    No write here touches status, assignee, labels or the daemon's stamp, so that it may be made beside a daemon at any
    moment. Errors: those of `ashep.ports.Tracker`.
    """

    async def read(self, issue: str) -> Annotated | None:
        """Read an issue, closed ones too; None where there is none of exactly this id."""
        ...

    async def set_acceptance(self, issue: str, text: str) -> None:
        """Replace the acceptance criteria. Idempotent."""
        ...

    async def annotate(self, issue: str, values: Mapping[str, JsonValue]) -> None:
        """Set keys of the metadata; those that are not named stay as they are. Idempotent. Never the key `ashep`."""
        ...
