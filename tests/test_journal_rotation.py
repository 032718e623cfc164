"""A journal of many files is read as one; each file's bytes are vouched for by the next one's header."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import pytest

from ashep.core.facts import records
from ashep.core.facts.issues import IssueHeld
from ashep.core.facts.records import Entry
from ashep.core.facts.resources import JournalBegun
from ashep.errors import DiskFailed, JournalDamaged
from ashep.journal.archive import archive
from ashep.journal.framing import encode, header, parse
from ashep.journal.hash_chain import sealed
from ashep.journal.reader import ARCHIVE, Scan, batches, holds, journal_files
from ashep.journal.writer import Journal, Sizes
from tests.core.laws import entries_of
from tests.golden.story import T0
from tests.places import SHM


@contextmanager
def opened(state: Path, file_size: int = 400, at_once: int = 1 << 20) -> Iterator[Journal]:
    """Open a journal with small files for a moment."""
    journal = Journal.open(state, T0, Sizes(file_size, at_once=at_once))
    try:
        yield journal
    finally:
        journal.close()


def held(seq: int, why: str = "w" * 100) -> Entry:
    """Make a small entry."""
    return Entry(seq, T0, IssueHeld("demo-1", "slots", why))


def written(state: Path, count: int = 10) -> list[list[Entry]]:
    """Write batches into a journal with small files."""
    made: list[list[Entry]] = []
    with opened(state) as journal:
        made.append([Entry(2, T0, JournalBegun("i", "s", "me"))])
        journal.append_now(made[0])
        for _ in range(count):
            first = journal.next_seq
            made.append([held(first), held(first + 1)])
            journal.append_now(made[-1])
    return made


def heads(folder: Path) -> list[tuple[object, object]]:
    """Tell what each file's first line says of the file before it."""
    first = [parse(path.read_bytes().splitlines(keepends=True)[0]) for path in journal_files(folder)]
    return [(one["previous"], one["hash"]) for one in first]


def found(folder: Path) -> list[list[Entry]]:
    return [list(batch.entries) for batch in batches(folder)]


@pytest.mark.promise("J9")
def test_files_are_begun_between_batches_and_vouch_for_the_ones_before(tmp_path: Path) -> None:
    made, folder = written(tmp_path), tmp_path / "journal"
    files = journal_files(folder)
    assert len(files) > 5
    expected = [(path.name, sha256(path.read_bytes()).hexdigest()) for path in files[:-1]]
    assert heads(folder) == [(None, None), *expected]
    assert [int(path.stem) for path in files] == sorted(int(path.stem) for path in files)
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in files)
    assert found(folder) == made
    ends = [batch.end for batch in batches(folder)]
    for number, end in enumerate(ends):
        assert holds(folder, end)
        assert [list(batch.entries) for batch in batches(folder, end)] == made[number + 1 :]


def test_a_journal_that_is_opened_again_goes_on_with_the_hash(tmp_path: Path) -> None:
    written(tmp_path, 1)
    for _ in range(12):  # a daemon that ends after each batch: in the middle of files, and just after a new one
        with opened(tmp_path) as journal:
            assert (journal.cut, journal.instance, journal.unchecked) == (0, "i", False)
            assert journal.begun == JournalBegun("i", "s", "me")
            assert journal.holds(journal.position)
            journal.append_now([held(journal.next_seq)])
    files = journal_files(tmp_path / "journal")
    assert [digest for _, digest in heads(tmp_path / "journal")][1:] == [
        sha256(path.read_bytes()).hexdigest() for path in files[:-1]
    ]
    scan = Scan(tmp_path / "journal", hashing=True)
    assert len(list(scan.records())) == 14


@pytest.mark.parametrize("length", [0, 1, 50, 150])
def test_a_file_that_was_just_begun_is_begun_again(tmp_path: Path, length: int) -> None:
    made, folder = written(tmp_path), tmp_path / "journal"
    last = journal_files(folder)[-1]
    whole = last.read_bytes()
    first = len(whole.splitlines(keepends=True)[0])
    assert whole[first:] == b"", "the last batch filled its file: only a header stands in the last one"
    last.write_bytes(whole[:length])
    with opened(tmp_path) as journal:
        assert journal.cut == length
        assert last.read_bytes() == whole
        journal.append_now([held(journal.next_seq)])
        assert found(folder)[:-1] == made


def test_a_torn_end_is_cut_and_the_hash_is_of_what_remains(tmp_path: Path) -> None:
    written(tmp_path)
    folder = tmp_path / "journal"
    last = journal_files(folder)[-1]
    with last.open("ab") as file:
        file.write(b"torn")
    with opened(tmp_path) as journal:
        assert journal.cut == 4
        journal.append_now([held(journal.next_seq), held(journal.next_seq + 1)])
    assert heads(folder)[-1] == (last.name, sha256(last.read_bytes()).hexdigest())
    assert b"torn" not in last.read_bytes()


@pytest.mark.promise("J9")
def test_a_flipped_byte_in_a_sealed_file_is_refused_with_file_and_line(tmp_path: Path) -> None:
    written(tmp_path)
    for path in journal_files(tmp_path / "journal")[:-1]:
        whole = path.read_bytes()
        for place in range(0, len(whole), 37):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
            with pytest.raises(JournalDamaged) as caught:
                Journal.open(tmp_path, T0)
            line = whole.count(b"\n", 0, place) + 1
            assert f"{path.name}:{line}: " in str(caught.value), (path.name, place)
        path.write_bytes(whole)


@pytest.mark.may_block
async def test_much_that_is_sealed_is_checked_beside_the_work(tmp_path: Path) -> None:
    written(tmp_path)
    with opened(tmp_path, at_once=100) as journal:
        assert journal.unchecked
        await journal.check_sealed()
        assert not journal.unchecked
    path = journal_files(tmp_path / "journal")[2]
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"w", b"W", 1))
    with opened(tmp_path, at_once=100) as journal, pytest.raises(JournalDamaged, match=f"{path.name}:2: the checksum"):
        await journal.check_sealed()


def test_a_sealed_file_put_together_anew_is_noticed(tmp_path: Path) -> None:
    """Every line and batch of it is good, only that it is not the file that was written."""
    written(tmp_path)
    files = journal_files(tmp_path / "journal")
    lines = files[0].read_bytes().splitlines(keepends=True)
    files[0].write_bytes(encode(parse(lines[0]) | {"at": "2020-01-01T00:00:00.000000Z"}) + b"".join(lines[1:]))
    with pytest.raises(JournalDamaged, match=f"{files[0].name}:1: its bytes are not those whose hash stands in"):
        Journal.open(tmp_path, T0)
    with pytest.raises(JournalDamaged, match=f"{files[1].name}:1: the hash of {files[0].name} is not the one"):
        list(Scan(tmp_path / "journal", hashing=True).records())


@pytest.mark.promise("J9")
@pytest.mark.parametrize("number", [0, 1, 3, -2])
def test_a_sealed_file_that_is_missing_is_noticed(tmp_path: Path, number: int) -> None:
    written(tmp_path)
    journal_files(tmp_path / "journal")[number].unlink()
    with pytest.raises(JournalDamaged, match="not the file before it"):
        Journal.open(tmp_path, T0)


def test_files_without_a_hash_are_read_line_by_line(tmp_path: Path) -> None:
    written(tmp_path)
    files = journal_files(tmp_path / "journal")
    second = files[1].read_bytes().splitlines(keepends=True)
    files[1].write_bytes(header(parse(second[0])["seq"], T0, files[0].name) + b"".join(second[1:]))
    for path in files[2:]:
        path.unlink()
    with opened(tmp_path):
        pass
    whole = files[0].read_bytes()
    files[0].write_bytes(whole.replace(b"w", b"W", 1))
    with pytest.raises(JournalDamaged, match=f"{files[0].name}:4: the checksum"):
        Journal.open(tmp_path, T0)


@pytest.mark.promise("J9")
def test_archived_files_are_read_wherever_they_are(tmp_path: Path) -> None:
    made, folder = written(tmp_path), tmp_path / "journal"
    (folder / ARCHIVE).mkdir()
    names = [path.name for path in journal_files(folder)]
    reading, read = batches(folder), list[list[Entry]]()
    for name in names[:-1]:  # one after the other, under the eyes of a reader
        (folder / name).rename(folder / ARCHIVE / name)
        read.append(list(next(reading).entries))
    read += [list(batch.entries) for batch in reading]
    assert read == found(folder) == made
    assert [path.name for path in journal_files(folder)] == names
    with opened(tmp_path) as journal:
        assert journal.begun == JournalBegun("i", "s", "me")
        assert len(list(entries_of(journal.batches()))) == sum(map(len, made))


def test_files_beyond_what_is_kept_are_archived_oldest_first(tmp_path: Path) -> None:
    made, folder = written(tmp_path), tmp_path / "journal"
    names = [path.name for path in journal_files(folder)]
    sizes = {path.name: path.stat().st_size for path in journal_files(folder)}
    assert archive(folder, sum(sizes.values())) == []
    assert archive(folder, sizes[names[-2]] + sizes[names[-3]]) == names[:-3]
    assert sealed(folder) == names[-3:]
    assert archive(folder, 0) == names[-3:-1], "the last one stays"
    assert [path.name for path in journal_files(folder)] == names
    with opened(tmp_path) as journal:
        assert [list(batch.entries) for batch in journal.batches()] == made


def test_an_archive_on_another_disk_takes_copies(tmp_path: Path) -> None:
    disks = [one for one in (SHM, Path(tempfile.gettempdir())) if one.is_dir()]
    other = next((one for one in disks if one.stat().st_dev != tmp_path.stat().st_dev), None)
    if other is None:
        pytest.skip("there is no other disk")
    made, folder = written(tmp_path), tmp_path / "journal"
    with tempfile.TemporaryDirectory(dir=other) as disk:
        (folder / ARCHIVE).symlink_to(disk)
        assert archive(folder, 0)
        assert found(folder) == made
        assert all(path.stat().st_mode & 0o777 == 0o600 for path in Path(disk).iterdir())
        with opened(tmp_path):
            pass


def test_a_new_file_that_cannot_be_made_ends_it(tmp_path: Path) -> None:
    made, folder = written(tmp_path), tmp_path / "journal"
    with opened(tmp_path) as journal:
        (folder / f"{journal.next_seq + 3:012}.jsonl").mkdir()
        last = [held(journal.next_seq), held(journal.next_seq + 1)]
        with pytest.raises(DiskFailed, match="is safe"):
            journal.append_now(last)
        with pytest.raises(DiskFailed, match="takes no more"):
            journal.append_now([held(journal.next_seq)])
    (folder / f"{last[0].seq + 3:012}.jsonl").rmdir()
    assert found(folder) == [*made, last]


# --- records of an older form -----------------------------------------------------------------------------------------


def test_a_record_of_an_older_form_is_read_as_it_is_written_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """A made-up past: holds were `Held` with a `reason`, then `IssueHeld` with a `reason`, then as now."""

    def renamed(data: dict[str, object]) -> dict[str, object]:
        return data | {"type": "IssueHeld"}

    def worded(data: dict[str, object]) -> dict[str, object]:
        reason = data.pop("reason")
        return data | {"why": reason, "code": "slots"}

    monkeypatch.setitem(records.UPCASTS, ("Held", 1), renamed)
    monkeypatch.setitem(records.UPCASTS, ("IssueHeld", 1), worded)
    monkeypatch.setitem(records.FORMS, "IssueHeld", 2)
    old = {"v": 1, "seq": 7, "at": "2026-01-01T00:00:00.000000Z", "type": "Held", "issue": "t-1", "reason": "full"}
    kept = dict(old)
    entry = records.from_json(old)
    assert entry.body == IssueHeld("t-1", "slots", "full")
    assert old == kept, "what was read is not changed"
    now = records.to_json(entry)
    assert (now["v"], now["type"]) == (2, "IssueHeld")
    assert records.from_json(now) == entry
    known = [("Held", 1), ("Held", 2), ("IssueHeld", 1), ("IssueHeld", 2), ("IssueHeld", 3), ("IssueSeen", 1), ("", 1)]
    assert [records.is_known(*one) for one in known] == [True, False, True, True, False, True, True]
