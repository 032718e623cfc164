"""What the foreman keeps: nothing that was answered for is lost, nothing stands twice, whatever ends the writer."""

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ashep.errors import AshepError, DiskFailed
from ashep.foreman.history import FILES, LONGEST, PROMPT, RECENT, Entry, History, Kind, WorkerBusy, read
from ashep.redaction import MARK, Redaction
from tests import places

NOW = datetime(2026, 11, 26, 9, tzinfo=UTC)
PLENTY = 20_000_000


def entry(number: int, kind: Kind = "prompt", text: str | None = None) -> Entry:
    return Entry(id=f"id-{number}", at=NOW, session="s", kind=kind, text=f"said {number}" if text is None else text)


def opened(folder: Path, keep: int = PLENTY, *secrets: str) -> History:
    return History.open(folder, Redaction(secrets), keep)


def ids(folder: Path) -> list[str]:
    return [one.id for one in read(folder).entries]


def test_what_was_said_is_there_in_its_order_and_for_this_user_alone(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "worker"
    folder.mkdir(parents=True)
    with opened(folder) as history:
        assert all(history.append(entry(number)) for number in range(5))
        assert not history.append(entry(3, text="told twice"))
        assert [one.text for one in history.entries()] == [f"said {number}" for number in range(5)]
        path = history.keep_prompt("# Rules\n")
    with opened(folder) as history:
        assert not history.append(entry(3))
        assert [one.text for one in history.entries()] == [f"said {number}" for number in range(5)]
    assert path == folder / PROMPT
    assert path.read_text() == "# Rules\n"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}


def test_a_new_topic_ends_what_is_recent_and_clearing_ends_what_is_told(tmp_path: Path) -> None:
    with opened(tmp_path) as history:
        history.append(entry(1))
        history.append(entry(2, "topic"))
        history.append(entry(3))
        assert [one.id for one in history.recent()] == ["id-3"]
        assert [one.id for one in history.entries()] == ["id-1", "id-2", "id-3"]
        assert [one["id"] for one in json.loads((tmp_path / RECENT).read_bytes())] == ["id-3"]
        history.clear(NOW, "s")
        assert [*history.entries(), *history.recent()] == []
        assert json.loads((tmp_path / RECENT).read_bytes()) == []
        history.append(entry(4))
    (tmp_path / RECENT).unlink()
    with opened(tmp_path) as history:
        assert [one.id for one in history.entries()] == [one.id for one in history.recent()] == ["id-4"]
    assert [one["id"] for one in json.loads((tmp_path / RECENT).read_bytes())] == ["id-4"]
    assert [one.kind for one in read(tmp_path).entries] == ["prompt", "topic", "prompt", "cleared", "prompt"]


def test_secrets_and_what_acts_on_a_screen_are_not_written_and_a_text_has_a_bound(tmp_path: Path) -> None:
    with opened(tmp_path, PLENTY, "hunter2-hunter2") as history:
        history.append(entry(1, text="\x1b[31mthe key is hunter2-\u200bhunter2\x07\ud800\nand so on"))
        history.append(entry(2, text="x" * (LONGEST + 7)))
        first, second = history.entries()
    assert first.text == f"[31mthe key is {MARK}\nand so on"
    assert second.text == "x" * LONGEST + "\n[… 7 characters more]"
    assert "hunter2" not in "".join(file.read_text() for file in tmp_path.iterdir())
    assert read(tmp_path).entries == (first, second)


@settings(max_examples=60)
@given(st.data())
def test_any_beginning_of_its_bytes_opens_and_the_next_line_is_not_glued_to_it(
    data: st.DataObject,
) -> None:
    texts = data.draw(st.lists(st.text(max_size=12), min_size=1, max_size=4))
    folder = places.made()
    file = folder / FILES[-1]
    with opened(folder) as history:
        for number, text in enumerate(texts):
            history.append(entry(number, text=text))
        told = list(history.entries())
    whole = file.read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    file.write_bytes(whole[:cut])
    beside = read(folder).entries
    with opened(folder) as history:
        count = whole[: cut + 1].count(b"\n")  # what lacks nothing but its newline is whole
        assert list(history.entries()) == list(beside) == told[:count]
        assert history.torn == (0 if count > whole[:cut].count(b"\n") else cut - (whole[:cut].rfind(b"\n") + 1))
        assert history.append(entry(9))
        assert history.damaged == ()
    assert ids(folder) == [*(one.id for one in told[:count]), "id-9"]
    assert read(folder).damaged == ()
    shutil.rmtree(folder)


def test_a_damaged_line_is_told_and_left_out_and_stays_where_it_is(tmp_path: Path) -> None:
    with opened(tmp_path) as history:
        for number in range(3):
            history.append(entry(number))
    file = tmp_path / FILES[-1]
    lines = file.read_bytes().splitlines(keepends=True)
    lines[1:1] = [b'{"id": "id-7", "at": "yesterday"}\n', b"\xff\x00\n"]
    file.write_bytes(b"".join(lines))
    with opened(tmp_path) as history:
        assert [one.partition(": ")[0] for one in history.damaged] == [f"{file}:2", f"{file}:3"]
        history.append(entry(3))
    assert ids(tmp_path) == ["id-0", "id-1", "id-2", "id-3"]
    assert file.read_bytes().startswith(b"".join(lines))


def test_three_files_are_kept_and_a_rotation_that_was_cut_short_loses_nothing(tmp_path: Path) -> None:
    with opened(tmp_path, keep=1000) as history:
        for number in range(60):
            history.append(entry(number))
        told = [one.id for one in history.entries()]
    assert told == [f"id-{number}" for number in range(60 - len(told), 60)]
    assert ids(tmp_path) == told
    assert len(told) > 15
    assert sorted(file.name for file in tmp_path.glob("*.jsonl")) == sorted(FILES)
    assert all(file.stat().st_size <= 1000 for file in tmp_path.glob("*.jsonl"))
    oldest, older, newest = (tmp_path / name for name in FILES)
    oldest_ids = [json.loads(line)["id"] for line in oldest.read_text().splitlines()]
    rest = told[len(oldest_ids) :]
    older.rename(oldest)  # killed behind the first step
    assert ids(tmp_path) == rest
    newest.rename(older)  # and behind the second
    assert ids(tmp_path) == rest
    newest.write_bytes(older.read_bytes())  # what was renamed between two looks of a reader
    assert ids(tmp_path) == rest
    newest.unlink()
    with opened(tmp_path, keep=1000) as history:
        history.append(entry(60))
        assert [one.id for one in history.entries()] == [*rest, "id-60"]


def test_a_disk_that_takes_half_a_line_leaves_all_as_it_was(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with opened(tmp_path) as history:
        history.append(entry(1))
        size = (tmp_path / FILES[-1]).stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 50, before[1]))
        try:
            with pytest.raises(DiskFailed, match="cannot be kept: File too large"):
                history.append(entry(2))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert (tmp_path / FILES[-1]).stat().st_size == size
        assert [one.id for one in history.entries()] == ["id-1"]
        assert history.append(entry(2))
    assert ids(tmp_path) == ["id-1", "id-2"]


def test_a_second_wrapper_is_told_the_process_of_the_first_and_readers_are_not_kept_out(tmp_path: Path) -> None:
    with opened(tmp_path) as history:
        history.append(entry(1))
        with pytest.raises(WorkerBusy, match=f"process {os.getpid()}") as caught:
            opened(tmp_path)
        assert caught.value.pid == os.getpid()
        assert ids(tmp_path) == ["id-1"]
    opened(tmp_path).close()


def test_what_takes_the_file_or_the_folder_away_costs_no_answered_line(tmp_path: Path) -> None:
    folder = tmp_path / "worker"
    with opened(folder) as history:
        history.append(entry(1))
        file = folder / FILES[-1]
        (folder / "draft").write_bytes(file.read_bytes().rstrip(b"\n"))  # as an editor saves
        (folder / "draft").replace(file)
        assert history.append(entry(2))
        assert ids(folder) == ["id-1", "id-2"]
        folder.rename(tmp_path / "moved")
        with pytest.raises(DiskFailed, match="moved, or deleted"):
            history.append(entry(3))
        assert not folder.exists()
    assert ids(tmp_path / "moved") == ["id-1", "id-2"]


def test_older_entries_come_first_each_once(tmp_path: Path) -> None:
    with opened(tmp_path, keep=700) as history:
        for number in range(9):
            history.append(entry(number))
        first = int(history.entries()[0].id[3:])
        older = [entry(number) for number in (20, 21, 20, 8)]
        assert history.prepend(older) == 2
        assert history.prepend(older) == 0
        told = ["id-20", "id-21", *(f"id-{number}" for number in range(first, 9))]
        assert [one.id for one in history.entries()] == ids(tmp_path) == told
        assert history.append(entry(9))


def test_what_cannot_be_read_or_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DiskFailed, match="cannot be kept"):
        opened(tmp_path / "file" / "worker")
    (tmp_path / FILES[-1]).mkdir()
    with pytest.raises(AshepError, match="cannot be read"):
        read(tmp_path)
    assert read(tmp_path / "none").entries == ()


WRITER = """
import os, signal, sys
from datetime import datetime, UTC
from pathlib import Path
from ashep.foreman.history import Entry
from ashep.foreman.history import History, read
from ashep.redaction import Redaction

folder = Path(sys.argv[1])
for _ in sys.stdin:
    if (child := os.fork()) == 0:
        with History.open(folder, Redaction(), 6000) as history:
            entries = history.entries()
            number = int(entries[-1].id) + 1 if entries else 0
            for number in range(number, number + 40):
                text, now = f"said {number} " * (1 + number % 7), datetime.now(UTC)
                assert history.append(Entry(id=str(number), at=now, session="s", kind="prompt", text=text))
                os.write(1, b"%d\\n" % number)
            signal.pause()  # it is slow to be killed
    os.write(1, b"pid %d\\n" % child)
    os.waitpid(child, 0)
    os.write(1, b"dead\\n")
"""


def test_a_writer_that_is_killed_loses_no_answered_line_and_doubles_none(tmp_path: Path) -> None:
    seed = random.Random(23)
    answered, moments = -1, 20
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        for _ in range(moments):
            writer.stdin.write("\n")
            writer.stdin.flush()
            many, pid, killed = seed.randrange(12), 0, False
            for line in writer.stdout:
                word, _, rest = line.strip().partition(" ")
                if word == "dead":
                    break
                if word == "pid":
                    pid = int(rest)
                else:
                    answered, many = int(word), many - 1
                if pid and many < 0 and not killed:
                    time.sleep(seed.random() / 200)
                    os.kill(pid, signal.SIGKILL)
                    killed = True
            assert killed
            numbers = [int(one) for one in ids(tmp_path)]
            assert numbers == list(range(numbers[0], numbers[-1] + 1))
            assert answered <= numbers[-1] <= answered + 1
            assert numbers[0] == 0 or (tmp_path / FILES[0]).exists()
            assert read(tmp_path).damaged == ()
        writer.stdin.close()
        assert writer.wait(60) == 0
    assert answered > 3 * moments
    assert (tmp_path / FILES[0]).exists()  # rotations were among the moments
