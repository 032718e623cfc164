r"""One line of the journal: JSON, a tab, the CRC of the JSON's bytes, a newline.

JSON strings never hold a raw tab or newline, so both are unambiguous; lines are split at b"\n" only, because a string
may well hold U+2028 and its like.
"""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast
from zlib import crc32

from pydantic_core import from_json as from_json_text

from ashep.core.facts.records import VERSION, Entry, format_time, from_json, to_text

HEADER = "JournalFile"
"""The type of a file's first line."""

COMMIT = "Commit"
"""The type of a batch's last line."""

Record = dict[str, Any]


class BadLine(ValueError):
    """The bytes are not a line of a journal."""


def checksum(data: bytes, start: int = 0) -> str:
    """Give zlib's CRC as it stands in the journal."""
    return f"{crc32(data, start):08x}"


def encode(record: Record) -> bytes:
    """Write a line; raises ValueError where a string or number in it has no JSON (a lone surrogate, NaN)."""
    return _line(json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode())


def _line(text: bytes) -> bytes:
    return b"%b\t%08x\n" % (text, crc32(text))


def parse(raw: bytes) -> Record:
    """Read a line; raises `BadLine`, which says what is wrong with it."""
    if not raw.endswith(b"\n"):
        raise BadLine("the line does not end")
    text, tab, crc = raw[:-1].rpartition(b"\t")
    if not tab:
        raise BadLine("the line has no checksum")
    if checksum(text).encode() != crc:
        raise BadLine("the checksum does not match")
    try:
        data: object = from_json_text(text)
    except ValueError as error:
        raise BadLine(f"the line is not JSON: {error}") from None
    if not isinstance(data, dict):
        raise BadLine("the line is not a JSON object")
    record = cast(Record, data)
    for key, kind in (("v", int), ("seq", int), ("at", str), ("type", str)):
        if not isinstance(record.get(key), kind):
            raise BadLine(f"the line has no `{key}`")
    return record


def header(seq: int, at: datetime, previous: str | None, digest: str | None = None) -> bytes:
    """Write a file's first line: the name of the file before it, and the SHA-256 of that file's bytes."""
    head = {"v": VERSION, "seq": seq, "at": format_time(at), "type": HEADER}
    return encode(head | {"previous": previous, "hash": digest})


def encode_entry(entry: Entry) -> bytes:
    """Write an entry; raises ValueError where it would not come back as it is.

    A record that the next start cannot read, or reads as something else, would strand every issue: so each one is read
    back before it is written.
    """
    text = to_text(entry)
    if from_json(from_json_text(text)) != entry:
        raise ValueError(f"record {entry.seq} would not come back from the journal as it is: {entry.body}")
    return _line(text)


def encode_batch(entries: Sequence[Entry]) -> bytes:
    """Write a batch with its commit record; raises ValueError as `encode_entry` does."""
    lines = b"".join(map(encode_entry, entries))
    last = entries[-1]
    head = {"v": VERSION, "seq": last.seq + 1, "at": format_time(last.at), "type": COMMIT}
    return lines + encode(head | {"count": len(entries), "crc": checksum(lines)})
