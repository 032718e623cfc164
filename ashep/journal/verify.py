"""Verification of a whole journal, archive included; and saving what can be read of one that is damaged.

Both only read the journal. A torn end is no damage: it is a batch that was never acted on, or that a daemon is writing.
"""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from ashep.errors import JournalDamaged, UsageError
from ashep.journal import durable_io, framing, snapshots
from ashep.journal.heads import HASHED, head_at
from ashep.journal.reader import BASE, START, Position, Scan, Told, journal_files, nobody, open_file, path_of

REST = "rest.jsonl"
"""The file of a salvage that holds what stands behind the damage."""

_HEAD = re.compile(rf"\d+:[0-9a-f]{{{HASHED}}}")

NAMED = 100
"""Places that a salvage names; it counts all."""


@dataclass(slots=True)
class VerifyReport:
    """What was looked through."""

    first: int
    """The first sequence number: 1, or what follows the pruned part."""
    last: int = 0
    entries: int = 0
    batches: int = 0
    files: int = 0
    archived: int = 0
    """How many of the files are in the archive."""
    torn: int = 0
    """Bytes behind the last batch: never acted on, or being written."""
    head: str = ""
    """The head of its chain."""
    contains: bool | None = None
    """Whether it holds the head that was asked for, unchanged; None: none was, or what it stands for was pruned."""


def verify(folder: Path, told: Told = nobody, head: str = "") -> VerifyReport:
    """Read every line and batch, and compare each file with its hash; raises `JournalDamaged` at the first bad place,
    and `UsageError` where `head` is no head. Blocks.
    """
    if head and not _HEAD.fullmatch(head):
        raise UsageError(f"--head {head}: expected SEQ:HASH, as `ashep report` and `ashep journal verify` print it")
    files = journal_files(folder)
    _, begin = snapshots.beginning(folder)
    found = VerifyReport(first=begin.seq or 1, last=begin.seq, files=len(files))
    found.archived = sum(path.parent != folder for path in files)
    scan = Scan(folder, hashing=True)
    scan.seq = int(head.partition(":")[0] or 0)
    for end, entries in scan.batches():
        found.last, found.entries, found.batches = end.seq, found.entries + len(entries), found.batches + 1
        told(end.seq)
    found.last, found.torn = scan.position.seq, scan.torn
    found.head = head_at(found.last, scan.digest.hexdigest())
    if head and scan.seq >= begin.seq:
        found.contains = head == head_at(scan.seq, scan.reached)
    return found


@dataclass(slots=True)
class Salvaged:
    """What became of a journal that is damaged."""

    damage: str = ""
    """What is wrong with it; empty: nothing is."""
    last: int = 0
    """The new folder's journal is good up to this record."""
    rest: int = 0
    """Entries behind the damage that are in `rest.jsonl`."""
    bad: int = 0
    """Lines that cannot be read."""
    places: list[str] = field(default_factory=list[str])
    """The first of them, `file:line`."""
    blobs: int = 0
    bad_blobs: list[str] = field(default_factory=list[str])
    """Texts that are not what was kept."""


def salvage(state: Path, target: Path, told: Told = nobody) -> Salvaged:
    """Write what can be read of a state folder into a new one, and touch nothing of the old one. Blocks.

    `journal/` gets everything up to the damage, as a journal that a daemon can go on with; `rest.jsonl` what stands
    behind it, for people; `blobs/` the texts. UsageError where the new folder holds something, or lies in the old one.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise UsageError(f"{target} is not an empty folder")
    if target.resolve().is_relative_to((state / "journal").resolve()):
        raise UsageError(f"{target} lies in the journal that is to be saved")
    folder, done = state / "journal", Salvaged()
    for path in (target, target / "journal"):
        durable_io.make_folder(path)
    scan: Scan | None = None
    try:
        _, begin = snapshots.beginning(folder)
        scan = Scan(folder, begin, hashing=True)
        for end, _ in scan.batches():
            told(end.seq)
    except JournalDamaged as damage:
        done.damage = str(damage)
    good = scan.position if scan else START  # else not even what it begins with is good
    if scan:
        done.last = good.seq
        _copy_good(folder, target / "journal", good)
    if done.damage:
        durable_io.replace(target / REST, _read_rest(folder, good, done))
    _copy_blobs(state / "blobs", target / "blobs", done)
    return done


def _copy_good(folder: Path, target: Path, good: Position) -> None:
    """Copy whole files up to the damage, and the good part of the file where it is."""
    if (folder / BASE).exists():
        durable_io.copy(folder / BASE, target / BASE)
    for path in journal_files(folder):
        if path.name < good.file:
            durable_io.copy(path, target / path.name)
        elif path.name == good.file and good.offset:
            durable_io.copy(path, target / path.name, good.offset)


def _read_rest(folder: Path, good: Position, done: Salvaged) -> Iterator[bytes]:
    """Give the entries behind a position whose own checksum is right, as lines."""
    for name in (path.name for path in journal_files(folder) if path.name >= good.file):
        with open_file(folder, name) as file:
            skipped = file.read(good.offset if name == good.file else 0).count(b"\n")
            for number, raw in enumerate(file, skipped + 1):
                try:
                    record = framing.parse(raw)
                except framing.BadLine:
                    done.bad += 1
                    if len(done.places) < NAMED:
                        done.places.append(f"{path_of(folder, name)}:{number}")
                    continue
                if record["type"] not in (framing.HEADER, framing.COMMIT):
                    done.rest += 1
                    yield as_line(record)


def _copy_blobs(folder: Path, target: Path, done: Salvaged) -> None:
    for path in sorted(folder.glob("*/*")):
        with suppress(OSError):
            data = path.read_bytes()
            if sha256(data).hexdigest() != path.name:
                done.bad_blobs.append(path.name)
                continue
            (target / path.parent.name).mkdir(mode=0o700, parents=True, exist_ok=True)
            durable_io.copy(path, target / path.parent.name / path.name)
            done.blobs += 1


def exported(folder: Path, issue: str | None = None, since: int = 0) -> Iterator[framing.Record]:
    """Give every entry as plain JSON data, as it stands in the journal, without its secret; raises `JournalDamaged`.

    `issue`: only what is about this issue; `since`: only from this sequence number on.
    """
    for _, end, records in Scan(folder).records():
        if end.seq < since:
            continue
        for record in records:
            if record["seq"] >= since and (issue is None or record.get("issue") == issue):
                record.pop("secret", None)
                yield record


def as_line(record: framing.Record) -> bytes:
    """Write a record as a line of JSON that holds nothing but ASCII, so that no terminal acts on it."""
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"
