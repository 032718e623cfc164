"""What a journal keeps, on the disk or in memory: `ashep.ports.journal`."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ashep.core.facts.records import Entry
from ashep.core.facts.resources import JournalBegun
from ashep.core.facts.tracker import ChangeHinted
from ashep.core.policy.disk_limits import LOW_DISK
from ashep.extras.simulation.virtual_time import MemoryJournal, open_now
from ashep.journal.writer import Journal as Written
from ashep.ports.journal import START, Journal
from tests.golden.story import T0

KINDS: dict[str, Callable[[Path], Journal]] = {
    "written": lambda state: Written.open(state, T0),
    "written at once": lambda state: open_now(state, T0),
    "in memory": lambda _: MemoryJournal(),
}

pytestmark = pytest.mark.may_block  # opening and reading one does


@pytest.mark.parametrize("kind", KINDS)
async def test_entries_are_numbered_on_and_a_batch_is_all_or_nothing(kind: str, tmp_path: Path) -> None:
    journal = KINDS[kind](tmp_path)
    first = journal.next_seq
    await journal.append([])
    assert journal.next_seq == first, "an empty batch is nothing"
    bodies = JournalBegun("i", "s", "me"), ChangeHinted()
    batch = [Entry(first + number, T0, body) for number, body in enumerate(bodies)]
    await journal.append(batch)
    assert journal.next_seq >= first + len(batch)
    world, place = journal.load_world()
    assert (world.seq, place) == (0, START), "nothing stands for what was written a moment ago"
    assert [[*one.entries] for one in journal.batches(place)] in ([batch], []), "whole, in order; or it was forgotten"
    assert journal.room() > LOW_DISK
    journal.close()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_text_is_kept_under_the_hash_of_what_it_is(kind: str, tmp_path: Path) -> None:
    journal = KINDS[kind](tmp_path)
    names = [await journal.blobs.keep(text) for text in ("said", "said", "other", "half of a pair: \ud83d")]
    assert (names[0] == names[1], len(set(names))) == (True, 3)
    assert [journal.blobs.text(name) for name in names[1:3]] == ["said", "other"]
    assert journal.blobs.has(names[3])
    assert not journal.blobs.has("0" * 64)
    assert journal.blobs.redact("said") == "said"
    journal.close()
