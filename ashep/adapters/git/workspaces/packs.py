"""Packs that come out of places: read here, so that no git outside of a sandbox parses what an agent's git packed.

The place's git is asked for whole objects. Each is unpacked, hashed and forgotten, within bounds, and the index is made
of that: no id in it is anybody's word, no delta is left to be applied, and nothing is larger than its head says.
"""

import hashlib
import struct
import zlib
from bisect import bisect_right
from collections.abc import Iterator

from ashep.errors import TreeRefused

MOST_OBJECTS = 1_000_000
MOST_UNPACKED = 4 * 1024**3
"""Bytes of all objects, unpacked: packed they may be a thousandth of that."""
LARGEST, LARGEST_FILE = 64 * 1024**2, 512 * 1024**2
"""Bytes of a commit, a tree or a tag, and of a file: outside git holds one in memory to show what is new."""

_KINDS = {1: b"commit", 2: b"tree", 3: b"blob", 4: b"tag"}
_PIECE, _LONGEST = 1024**2, 25  # bytes; bits, beyond which no size goes on


def index_of(pack: bytes, algorithm: str) -> tuple[bytes, list[bytes]]:
    """Give the index (version 2) of a pack of whole objects, and their ids. Blocks; raises `TreeRefused`."""
    try:
        found = sorted(_objects(pack, algorithm))
    except (IndexError, ValueError, struct.error, zlib.error) as error:
        raise TreeRefused(f"what its git packed is damaged: {error}") from error
    names = [name for name, _, _ in found]
    numbers = [*(checksum for _, checksum, _ in found), *(offset for _, _, offset in found)]
    counts = [bisect_right(names, bytes([first]) + b"\xff" * 64) for first in range(256)]
    index = b"\377tOc" + struct.pack(">257I", 2, *counts) + b"".join(names) + struct.pack(f">{len(numbers)}I", *numbers)
    index += pack[-hashlib.new(algorithm).digest_size :]
    return index + hashlib.new(algorithm, index).digest(), names


def _objects(pack: bytes, algorithm: str) -> Iterator[tuple[bytes, int, int]]:
    """Give the id of each object, the checksum of what is packed of it, and where that begins."""
    whole, names = hashlib.new(algorithm), set[bytes]()
    body, at, left = memoryview(pack)[: -whole.digest_size], 12, MOST_UNPACKED
    whole.update(body)
    begin, version, count = struct.unpack_from(">4sII", body)
    for _ in range(count):
        offset, kind, size, shift = at, _KINDS.get(body[at] >> 4 & 7), body[at] & 15, 4
        while body[at] & 128 and shift <= _LONGEST:
            at += 1
            size, shift = size | (body[at] & 127) << shift, shift + 7
        if kind is None or body[at] & 128:
            raise ValueError("a delta, or a size without end; `git repack -adF` makes whole objects of deltas")
        left, at = left - size, at + 1
        if left < 0 or count > MOST_OBJECTS or size > (LARGEST_FILE if kind == b"blob" else LARGEST):
            raise TreeRefused(
                f"what was committed is more than {MOST_OBJECTS} objects, {MOST_UNPACKED >> 20} MiB unpacked, "
                f"{LARGEST_FILE >> 20} MiB in a file or {LARGEST >> 20} MiB in a commit or a tree; take out "
                "of the commits what does not belong there"
            )
        digest, unpacker, unpacked = hashlib.new(algorithm, b"%s %d\0" % (kind, size)), zlib.decompressobj(), 0
        while not unpacker.eof and unpacked <= size:
            given = unpacker.unconsumed_tail or body[at : at + min(size + 64, _PIECE)]
            at += 0 if unpacker.unconsumed_tail else len(given)
            piece = unpacker.decompress(given, _PIECE)
            if not (given or piece):
                break
            digest.update(piece)
            unpacked += len(piece)
        if unpacked != size or not unpacker.eof:
            raise ValueError("an object has another size than it says")
        at -= len(unpacker.unused_data)
        names.add(name := digest.digest())
        yield name, zlib.crc32(body[offset:at]), offset
    if (begin, version, len(names), at, whole.digest()) != (b"PACK", 2, count, len(body), pack[len(body) :]):
        raise ValueError("it has another checksum, more than it says, or an object twice")
