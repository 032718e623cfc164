"""The port of annotations over bd 1.3.0: acceptance criteria, and metadata next to the daemon's stamp.

bd merges the keys of `--metadata` in its own transaction (facts/beads.md 4), so that a write of ours and one of the
daemon's do not undo each other. Texts come out as they were put in: nothing is taken out of what may be written back.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Self, cast

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, JsonValue

from ashep.adapters.beads import schema
from ashep.adapters.beads.command import AlreadyThere, Bd, UnknownIssue, parse
from ashep.adapters.beads.schema import STAMP_KEY
from ashep.adapters.beads.tracker import ID, csv
from ashep.core.text import clean
from ashep.errors import TrackerRefused, TrackerUnavailable
from ashep.ports.tracker import AnnotatedIssue, IssueDraft, IssuePatch, IssueSummary, Seen
from ashep.redaction import Redaction

LONGEST = 100_000
"""Bytes of a text or of metadata in one write: the kernel takes 131,072 in one argument of a program."""

_FLAGS = {"title": "title", "priority": "priority", "acceptance_criteria": "acceptance"}
"""What stands on a command line, and in which flag; a description is read from the standard input."""

_KINDS = {"blocks": "blocked-by"}
"""How a flag of `create` says that the new issue is the one that waits."""


def _mapping(value: object) -> dict[str, JsonValue]:
    return cast("dict[str, JsonValue]", value) if isinstance(value, dict) else {}


class _Row(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    id: str
    title: str = ""
    description: str = ""
    priority: int = 2
    acceptance_criteria: str = ""
    metadata: Annotated[dict[str, JsonValue], BeforeValidator(_mapping)] = {}
    left_out: tuple[str, ...] = ()

    @classmethod
    def read(cls, row: bytes, left_out: tuple[str, ...]) -> Self:
        told = tuple(one for one in left_out if one.startswith("acceptance_criteria:"))
        return cls.model_validate_json(row).model_copy(update={"left_out": told})


class _Line(_Row):
    title: Annotated[str, AfterValidator(clean)] = ""
    status: Annotated[str, AfterValidator(clean)] = ""
    ephemeral: bool = False


class BeadsAnnotations:
    """Annotations of issues in a Beads database, by way of the program bd."""

    def __init__(self, project: Path, command: tuple[str, ...], actor: str, timeout: float) -> None:
        self._bd = Bd(project, command, actor, timeout, Redaction())  # what is written back keeps every word

    async def read(self, issue: str) -> AnnotatedIssue | None:
        row = await self._row(issue)
        return None if row is None else AnnotatedIssue(row.acceptance_criteria, row.metadata)

    async def listed(self, status: str | None) -> tuple[IssueSummary, ...]:
        """List them without their long texts."""
        which = () if status is None else ("--all",) if status == "all" else (f"--status={status}",)
        rows, _ = await self._bd.rows(_Line.read, "list", "--limit=0", "--brief", *which, "--json")
        found = (IssueSummary(row.id, row.title, row.status, row.metadata) for row in rows if not row.ephemeral)
        return tuple(sorted(found, key=lambda one: one.id))

    async def prefix(self) -> str:
        """Ask where the database is, and how its ids begin."""
        return parse(schema.Where, await self._bd.call("where", "--json")).prefix

    async def marked(self, key: str) -> tuple[tuple[Seen, Mapping[str, JsonValue]], ...]:
        """List them whole."""
        words = ("list", "--limit=0", "--all", f"--has-metadata-key={key}", "--json")
        rows, _ = await self._bd.rows(schema.IssueRow.read, *words)
        found = ((schema.make_snapshot(row), _mapping(row.metadata)) for row in rows if not row.ephemeral)
        return tuple(sorted(found, key=lambda one: one[0].issue.id))

    async def depend(self, issue: str, on: str, *, stands: bool = True) -> None:
        if not ID.fullmatch(issue) or not ID.fullmatch(on):
            raise TrackerRefused(f"{issue!r} or {on!r} is no id")
        edge = parse(
            schema.DependencyRow, await self._bd.call("dep", "add" if stands else "remove", issue, on, "--json")
        )
        if (edge.issue_id, edge.depends_on_id) != (issue, on):
            raise TrackerUnavailable(f"bd's answer does not show how {issue} depends on {on}", unknown=True)

    async def create(self, fresh: IssueDraft) -> bool:
        """Create it in one process and one transaction."""
        if not all(ID.fullmatch(one) for one in (fresh.id, *(dependency.on for dependency in fresh.dependencies))):
            raise TrackerRefused(f"{fresh.id!r}, or an issue that it depends on, is no id")
        flags = [
            f"--id={fresh.id}",
            f"--title={fresh.title}",
            f"--type={fresh.type}",
            f"--priority={fresh.priority}",
            f"--metadata={_json(fresh.metadata)}",
            *([f"--acceptance={fresh.acceptance}"] if fresh.acceptance else []),
            *([f"--labels={','.join(map(csv, fresh.labels))}"] if fresh.labels else []),
            *(f"--deps={_KINDS.get(edge.type, edge.type)}:{edge.on}" for edge in fresh.dependencies),
            *([f"--external-ref={fresh.external_ref}"] if fresh.external_ref else []),
            *(["--stdin"] if fresh.description else []),
        ]
        _refuse_long(*flags)
        try:
            made = await self._bd.call("create", *flags, "--json", stdin=fresh.description or None)
        except AlreadyThere:
            return False
        if parse(_Row, made).id != fresh.id:
            raise TrackerUnavailable(f"bd's answer to the creation of {fresh.id} does not show it", unknown=True)
        return True

    async def rewrite(self, issue: str, words: IssuePatch) -> None:
        """Replace it in one process and one transaction; a long description needs no command line."""
        wanted: dict[str, JsonValue] = {
            "title": None if words.title is None else words.title.strip(),
            "description": words.description,
            "priority": words.priority,
            "acceptance_criteria": words.acceptance,
        }
        wanted = {name: value for name, value in wanted.items() if value is not None}
        flags = [f"--{_FLAGS[name]}={value}" for name, value in wanted.items() if name in _FLAGS]
        if words.description is not None:
            flags += ["--stdin", "--allow-empty-description"]
        if words.metadata:
            assert STAMP_KEY not in words.metadata, "the stamp is the daemon's"
            wanted["metadata"] = dict(words.metadata)
            flags.append(f"--metadata={_json(words.metadata)}")
        flags += [f"--add-label={csv(label)}" for label in words.add_labels]
        flags += [f"--remove-label={csv(label)}" for label in words.remove_labels]
        if flags:
            await self._write(issue, flags, wanted, words.description)

    async def annotate(self, issue: str, values: Mapping[str, JsonValue]) -> None:
        """Merge the keys in one process."""
        assert STAMP_KEY not in values, "the stamp is the daemon's"
        await self._write(issue, [f"--metadata={_json(values)}"], {"metadata": dict(values)})

    async def _row(self, issue: str) -> _Row | None:
        if not ID.fullmatch(issue):
            return None
        try:
            rows = await self._bd.rows_of_one(_Row.read, "show", issue)
        except UnknownIssue:
            return None
        row = next((row for row in rows if row.id == issue), None)
        if row is not None and row.left_out:  # what cannot be read whole must not be written back
            raise TrackerRefused(f"{issue}: too long to be read: {', '.join(row.left_out)}")
        return row

    async def _write(
        self, issue: str, flags: list[str], wanted: Mapping[str, JsonValue], stdin: str | None = None
    ) -> None:
        """Write, and look at the issue once more where bd's answer does not show it."""
        _refuse_long(*flags)
        if await self._row(issue) is None:  # bd takes the beginning of an id for the id (facts/beads.md 8)
            raise TrackerRefused(f"there is no issue {issue}")
        try:
            rows = await self._bd.rows_of_one(_Row.read, "update", issue, *flags, stdin=stdin)
        except TrackerUnavailable:
            row = await self._row(issue)
            if row is None or not _shows(row, wanted):
                raise
            return
        if not any(row.id == issue and _shows(row, wanted) for row in rows):
            raise TrackerUnavailable(f"bd's answer to the write of {issue} does not show it", unknown=True)


def _json(values: Mapping[str, JsonValue]) -> str:
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"))


def _refuse_long(*flags: str) -> None:
    if any(len(flag.encode(errors="replace")) > LONGEST for flag in flags):
        raise TrackerRefused(f"bd takes at most {LONGEST:,} bytes in one write")


def _shows(row: _Row, wanted: Mapping[str, JsonValue]) -> bool:
    values = wanted.get("metadata")
    if any(getattr(row, name) != value for name, value in wanted.items() if name != "metadata"):
        return False
    return not isinstance(values, dict) or all(row.metadata.get(key) == value for key, value in values.items())
