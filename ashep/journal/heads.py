"""Heads of the journal's chain: `SEQ:HASH`, of a record and of its file's bytes up to the end of its batch.

Each file begins with the hash of the one before, so that a head stands for all that precedes. Whoever has one from
elsewhere (a message, a commit, the tracker) can tell whether the journal was written again since. Nothing heavy is
imported: commands that only look print it.
"""

import json
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

HASHED = 32
"""Digits of the hash: nobody finds another journal that has them."""

_ENDS = ("Commit", "JournalFile")


def head_at(seq: int, digest: str) -> str:
    """Write a head: the hash of the file of a record, up to the end of its batch."""
    return f"{seq}:{digest[:HASHED]}"


def head(folder: Path) -> str:
    """Give the head of a journal as it is now, whatever is being written to it; empty: there is none. Blocks."""
    name = max((path.name for path in folder.glob("*.jsonl") if path.stem.isdecimal()), default=None)
    data = (folder / name).read_bytes() if name else b""
    end = data.rfind(b"\n") + 1
    while end:
        start = data.rfind(b"\n", 0, end - 1) + 1
        with suppress(ValueError):
            record = json.loads(data[start:end].rpartition(b"\t")[0])
            if record.get("type") in _ENDS:
                return head_at(record["seq"], sha256(data[:end]).hexdigest())
        end = start
    return ""
