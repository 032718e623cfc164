r"""Snapshots of the World, so that a start folds only what came after: `state/snapshots/<sequence number>.snapshot`.

A snapshot is a picture of the journal like any other: nothing depends on it, a bad one is dropped, and the one before
it is taken, or the journal from its beginning. It holds for the code that folded it and for no other, by a fingerprint
of that code's text. The exception is `base.snapshot` next to the journal's files: it stands for what was pruned, and is
all that is left of it, so it is read whatever version wrote it.

The first line is written as the journal's lines are: the position in the journal, the fingerprint, the hash of the
bytes before the position in its file. Each further line is a part (`ashep.core.state.snapshot`):
`<name>\t<json>\t<crc32>\n`; the last one is `end\t<number of parts>\t<crc32 of all before it>\n`.
"""

import gc
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import ashep
from ashep.core.facts.records import VERSION, format_time
from ashep.core.state.snapshot import Part, dump, load, of_now
from ashep.core.state.world import World
from ashep.journal.durable_io import make_folder, replace
from ashep.journal.framing import BadLine, checksum, encode, parse
from ashep.journal.reader import BASE, START, Position, damaged, holds

FOLDER = "snapshots"
"""The folder in the state folder."""

KEPT = 2
"""Snapshots that are kept: should one be bad, there is the one before it."""

_KIND = "Snapshot"


class JournalPosition(NamedTuple):
    """A place in the journal, with the hash of all bytes before it in its file."""

    position: Position
    digest: str


class SnapshotHead(NamedTuple):
    """A snapshot's first line."""

    path: Path
    mark: JournalPosition
    fingerprint: str


@cache
def fingerprint() -> str:
    """Sum up the text of the code that folds: a change of it cannot be forgotten, as a number could be."""
    total = sha256()
    for name, text in sorted(_modules(files(ashep).joinpath("core"))):
        total.update(f"{name}\0".encode() + text + b"\0")
    return total.hexdigest()


def _modules(folder: Traversable, above: str = "") -> Iterator[tuple[str, bytes]]:
    for one in folder.iterdir():
        if one.is_dir():
            yield from _modules(one, f"{above}{one.name}/")
        elif one.name.endswith(".py"):
            yield above + one.name, one.read_bytes()


def write(path: Path, world: World, mark: JournalPosition) -> None:
    """Write a snapshot, all of it or none, durably. Blocks; raises OSError."""
    replace(path, _lines(world, mark))


def keep(state: Path, world: World, mark: JournalPosition) -> Path:
    """Write a snapshot into the state folder and delete those before the last two. Blocks; raises OSError."""
    folder = state / FOLDER
    make_folder(folder)
    path = folder / f"{mark.position.seq:012}.snapshot"
    write(path, world, mark)
    for old in _paths(state)[KEPT:]:
        old.unlink()
    return path


def _lines(world: World, mark: JournalPosition) -> Iterator[bytes]:
    file, offset, seq, crc = mark.position
    head = {"v": VERSION, "seq": seq, "at": format_time(world.now), "type": _KIND, "fingerprint": fingerprint()}
    begun = {"instance": world.instance, "secret": world.secret, "actor": world.name}
    line = encode(head | {"file": file, "offset": offset, "crc": crc, "digest": mark.digest, "begun": begun})
    total, count = crc32(line), 0
    yield line
    for name, data in dump(world):
        line = b"%b\t%b\t%b\n" % (name.encode(), data, checksum(data).encode())
        total, count = crc32(line, total), count + 1
        yield line
    yield b"end\t%d\t%08x\n" % (count, total)


def _paths(state: Path) -> list[Path]:
    return sorted((path for path in (state / FOLDER).glob("*.snapshot") if path.stem.isdecimal()), reverse=True)


def usable(state: Path) -> Iterator[SnapshotHead]:
    """Give the snapshots that this version made of this journal, the newest first; whether they are whole is open."""
    for path in _paths(state):
        kept = _read_head(path)
        if kept and kept.fingerprint == fingerprint() and holds(state / "journal", kept.mark.position):
            yield kept


def _read_head(path: Path) -> SnapshotHead | None:
    try:
        with path.open("rb") as file:
            record = parse(file.readline())
        place = Position(record["file"], record["offset"], record["seq"], record["crc"])
        return SnapshotHead(path, JournalPosition(place, record["digest"]), record["fingerprint"])
    except (OSError, BadLine, KeyError):
        return None


def newest(state: Path, until: Position | None = None) -> tuple[World, Position]:
    """Give the World that the newest whole snapshot holds, and where it stands; else those of the beginning. Blocks.

    With `until` snapshots behind that position are left out.

    Raises `JournalDamaged` where the journal was pruned and what stands for the pruned part is bad.
    """
    for kept in usable(state):
        if until is not None and kept.mark.position.seq > until.seq:
            continue
        try:
            return _read(kept.path), kept.mark.position
        except (OSError, ValueError):  # a picture: the one before it, or the journal, will do
            continue
    return beginning(state / "journal")


def beginning(folder: Path) -> tuple[World, Position]:
    """Give the World with which the journal in this folder begins, and its place: empty, unless it was pruned.

    Whoever folds a journal from its beginning starts with these. Raises `JournalDamaged`. Blocks.
    """
    path = folder / BASE
    if not path.exists():
        return World(), START
    kept = _read_head(path)
    try:
        if kept is None:
            raise ValueError("its first line is bad")
        return _read(path, earlier=True), kept.mark.position
    except ValueError as error:
        why = f"it stands for what was pruned, and cannot be read: {error}".replace("\n", " ")
        raise damaged(folder, path, 1, why) from None


def _read(path: Path, *, earlier: bool = False) -> World:
    """Read a snapshot, which an earlier version may have made; ValueError where anything is wrong with it."""
    collects = gc.isenabled()
    gc.disable()  # it would look through all that is made here, many times, and find nothing to throw away
    try:
        parts = _parts(path.read_bytes())
        return load(of_now(parts) if earlier else parts)
    finally:
        if collects:
            gc.freeze()  # nor later: a World has no cycles
            gc.enable()


def _parts(data: bytes) -> Iterator[Part]:
    """Take the lines apart; what they say is checked before any of it counts."""
    end = data.rfind(b"\n", 0, -1) + 1
    lines = data[:end].split(b"\n")[1:-1]
    if data[end:] != b"end\t%d\t%08x\n" % (len(lines), crc32(memoryview(data)[:end])):
        raise ValueError("it does not end as it should")
    for line in lines:
        name, _, rest = line.partition(b"\t")
        yield name.decode(), rest[: rest.rindex(b"\t")]
