"""Whatever happens to the bytes: a journal is read right, repaired as torn, or refused; it never tells a wrong fact."""

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from ashep.core.facts.issues import IssueHeld
from ashep.core.facts.records import Entry
from ashep.core.facts.resources import JournalBegun
from ashep.core.state.world import World
from ashep.errors import JournalDamaged
from ashep.journal.reader import journal_files
from ashep.journal.writer import Journal, Sizes
from tests.core.laws import folded, of_batches
from tests.golden.story import T0

PAGE = 4096

pytestmark = pytest.mark.slow


def make(state: Path, size: int, text: str, count: int) -> list[list[Entry]]:
    """Write a journal of several files, with a snapshot in the middle and one before the last batch."""
    made, world = list[list[Entry]](), World()
    journal = Journal.open(state, T0, Sizes(file=size))
    for number in range(count):
        first = journal.next_seq
        bodies = [JournalBegun("i", "s")] if not number else [IssueHeld("t-1", "slot", f"{number} {text}")] * 2
        made.append([Entry(first + place, T0, body) for place, body in enumerate(bodies)])
        journal.append_now(made[-1])
        world = folded(made[-1], world)
        if number in (count // 2, count - 2):
            journal.keep_now(world, journal.mark)
    journal.close()
    return made


@pytest.fixture
def small(tmp_path: Path) -> tuple[Path, list[list[Entry]]]:
    return tmp_path / "state", make(tmp_path / "state", 330, "w", 5)


@pytest.fixture
def paged(tmp_path: Path) -> tuple[Path, list[list[Entry]]]:
    return tmp_path / "state", make(tmp_path / "state", 3 * PAGE, "w" * 300, 30)


def start(state: Path) -> tuple[list[list[Entry]], World, int]:
    """What the journal says, what a start knows, and how many bytes were cut."""
    journal = Journal.open(state, T0, Sizes(file=1 << 20))
    try:
        world, after = journal.load_world()
        world = of_batches(journal.batches(after), world)
        return [list(batch.entries) for batch in journal.batches()], world, journal.cut
    finally:
        journal.close()


def damages(state: Path, change: Iterator[tuple[Path, bytes]], made: list[list[Entry]]) -> dict[str, int]:
    """Try each changed file; count what became of the journal."""
    kept = {path: path.read_bytes() for path in state.rglob("*") if path.is_file()}
    last = journal_files(state / "journal")[-1]
    worlds = [folded(chain.from_iterable(made[:count])) for count in range(len(made) + 1)]
    became = {"right": 0, "torn": 0, "refused": 0}
    for path, data in change:
        path.write_bytes(data)
        refused, outcome = "", None
        try:
            outcome = start(state)
        except JournalDamaged as damage:
            refused = str(damage)
        if outcome is None:
            became["refused"] += 1
            assert re.match(rf".*/{path.name}:\d+: ", refused), refused
        else:
            found, world, cut = outcome
            assert found == made[: len(found)], "a prefix that ends with a batch"
            assert len(found) == len(made) or path == last, "only the last file loses anything"
            assert world == worlds[len(found)], "what a start knows is what the journal says"
            became["torn" if cut or len(found) < len(made) else "right"] += 1
        for changed in {path, last}:
            changed.write_bytes(kept[changed])
    return became


@pytest.mark.promise("J3")
def test_each_byte_flipped(small: tuple[Path, list[list[Entry]]]) -> None:
    state, made = small
    files = journal_files(state / "journal")
    assert len(files) >= 3

    def flipped() -> Iterator[tuple[Path, bytes]]:
        for path in files:
            whole = path.read_bytes()
            for place in range(len(whole)):
                yield path, whole[:place] + bytes([whole[place] ^ (1 << place % 8)]) + whole[place + 1 :]

    became = damages(state, flipped(), made)
    assert became["right"] <= len(files[-1].read_bytes()), "of a bare header nothing is lost but its text"
    sealed = sum(path.stat().st_size for path in files[:-1])
    assert became["refused"] >= sealed, "no byte of a sealed file is passed over"


@pytest.mark.promise("J3")
def test_each_length(small: tuple[Path, list[list[Entry]]]) -> None:
    state, made = small

    def truncated() -> Iterator[tuple[Path, bytes]]:
        for path in journal_files(state / "journal"):
            whole = path.read_bytes()
            for length in range(len(whole)):
                yield path, whole[:length]

    became = damages(state, truncated(), made)
    assert became["refused"] >= sum(path.stat().st_size for path in journal_files(state / "journal")[:-1])


@pytest.mark.promise("J3")
@pytest.mark.parametrize("fill", [b"", b"\0" * PAGE, b"\xff" * PAGE], ids=["dropped", "zeroed", "ones"])
def test_each_page_lost(paged: tuple[Path, list[list[Entry]]], fill: bytes) -> None:
    state, made = paged
    files = journal_files(state / "journal")
    assert sum(path.stat().st_size for path in files) > 4 * PAGE

    def lost() -> Iterator[tuple[Path, bytes]]:
        for path in files:
            whole = path.read_bytes()
            for begin in range(0, len(whole), PAGE):
                yield path, whole[:begin] + fill[: len(whole) - begin] + whole[begin + PAGE :]

    became = damages(state, lost(), made)
    assert sum(became.values()) > 4
    assert became["refused"] > 2


def test_snapshots_lose_bytes_and_pages(paged: tuple[Path, list[list[Entry]]]) -> None:
    state, made = paged

    def changed() -> Iterator[tuple[Path, bytes]]:
        for path in sorted((state / "snapshots").iterdir()):
            whole = path.read_bytes()
            for place in range(0, len(whole), 41):
                yield path, whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]
                yield path, whole[:place]
            yield path, bytes(len(whole))

    became = damages(state, changed(), made)
    assert became["refused"] == became["torn"] == 0
