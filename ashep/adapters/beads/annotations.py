"""The port of annotations over bd 1.3.0: acceptance criteria, and metadata beside the daemon's stamp.

bd merges the keys of `--metadata` in its own transaction (facts/beads.md 4), so that a write of ours and one of the
daemon's do not undo each other. Texts come out as they were put in: nothing is taken out of what may be written back.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated as With
from typing import cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, JsonValue, TypeAdapter

from ashep.adapters.beads.command import Bd, UnknownIssue, parse_with
from ashep.adapters.beads.tracker import ID
from ashep.adapters.beads.wire import STAMP_KEY
from ashep.annotations import Annotated
from ashep.errors import TrackerRefused, TrackerUnavailable
from ashep.redaction import Redaction

LONGEST = 100_000
"""Bytes of a text or of metadata in one write: the kernel takes 131,072 in one argument of a program."""


def _mapping(value: object) -> object:
    return cast("object", value) if isinstance(value, dict) else {}


class _Row(BaseModel):
    """An issue, as far as it concerns us here."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    id: str
    acceptance_criteria: str = ""
    metadata: With[dict[str, JsonValue], BeforeValidator(_mapping)] = {}


_ROWS = TypeAdapter(tuple[_Row, ...])


class BeadsAnnotations:
    """Annotations of issues in a Beads database, by way of the program bd."""

    def __init__(self, project: Path, command: tuple[str, ...], actor: str, timeout: float) -> None:
        self._bd = Bd(project, command, actor, timeout, Redaction())  # what is written back keeps every word

    async def read(self, issue: str) -> Annotated | None:
        """Show the issue."""
        row = await self._row(issue)
        return None if row is None else Annotated(row.acceptance_criteria, row.metadata)

    async def set_acceptance(self, issue: str, text: str) -> None:
        """Replace the text in one process."""
        await self._write(issue, f"--acceptance={text}", {"acceptance_criteria": text})

    async def annotate(self, issue: str, values: Mapping[str, JsonValue]) -> None:
        """Merge the keys in one process."""
        assert STAMP_KEY not in values, "the stamp is the daemon's"
        given = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
        await self._write(issue, f"--metadata={given}", {"metadata": dict(values)})

    async def _row(self, issue: str) -> _Row | None:
        if not ID.fullmatch(issue):
            return None
        try:
            rows = parse_with(_ROWS, await self._bd.call("show", issue, "--json"))
        except UnknownIssue:
            return None
        return next((row for row in rows if row.id == issue), None)

    async def _write(self, issue: str, flag: str, wanted: Mapping[str, JsonValue]) -> None:
        """Write, and look at the issue once more where bd's answer does not show it."""
        if len(flag.encode(errors="replace")) > LONGEST:
            raise TrackerRefused(f"bd takes at most {LONGEST:,} bytes in one write")
        if await self._row(issue) is None:  # bd takes the beginning of an id for the id (facts/beads.md 8)
            raise TrackerRefused(f"there is no issue {issue}")
        try:
            rows = parse_with(_ROWS, await self._bd.call("update", issue, flag, "--json"))
        except TrackerUnavailable:
            row = await self._row(issue)
            if row is None or not _shows(row, wanted):
                raise
            return
        if not any(row.id == issue and _shows(row, wanted) for row in rows):
            raise TrackerUnavailable(f"bd's answer to the write of {issue} does not show it", unknown=True)


def _shows(row: _Row, wanted: Mapping[str, JsonValue]) -> bool:
    text, values = wanted.get("acceptance_criteria"), wanted.get("metadata")
    if isinstance(text, str) and row.acceptance_criteria != text:
        return False
    return not isinstance(values, dict) or all(row.metadata.get(key) == value for key, value in values.items())
