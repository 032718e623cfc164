"""What the foreman keeps: nothing that was answered for is lost, nothing stands twice, whatever ends the writer."""

import json
import os
import random
import resource
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ashep.errors import DiskFailed
from ashep.extras.foreman.history import FILES, LONGEST, PROMPT, RECENT, History, HistoryEntry, Kind, WorkerBusy, read
from ashep.redaction import MARK, Redaction

NOW = datetime(2026, 11, 26, 9, tzinfo=UTC)


def entry(number: int, kind: Kind = "prompt", text: str = "said") -> HistoryEntry:
    return HistoryEntry(id=str(number), at=NOW, session="s", kind=kind, text=text)


def opened(folder: Path, keep: int = 20_000_000) -> History:
    return History.open(folder, Redaction(("hunter2-hunter2",)), keep)


def numbers(entries: Sequence[HistoryEntry]) -> list[int]:
    return [int(one.id) for one in entries]


def test_what_was_said_is_there_once_in_its_order_without_secrets_and_for_this_user_alone(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "worker"
    folder.mkdir(parents=True)
    with opened(folder) as history:
        assert history.append(entry(0, text="\x1b[31mthe key is hunter2-\u200bhunter2\x07\ud800\nand so on"))
        assert history.append(entry(1, text="x" * (LONGEST + 7)))
        assert history.append(entry(2))
        with pytest.raises(WorkerBusy, match=f"process {os.getpid()}"):
            opened(folder)
        assert history.keep_prompt("# Rules\n") == folder / PROMPT
    with opened(folder) as history:
        assert not history.append(entry(2))
        assert numbers(history.entries()) == numbers(read(folder).entries) == [0, 1, 2]
    said = [f"[31mthe key is {MARK}\nand so on", "x" * LONGEST + "\n[… 7 characters more]", "said"]
    assert [one.text for one in read(folder).entries] == said
    assert "hunter2" not in "".join(file.read_text() for file in folder.iterdir())
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}


def test_a_new_topic_ends_what_is_recent_and_clearing_ends_what_is_told(tmp_path: Path) -> None:
    with opened(tmp_path) as history:
        for one in (entry(1), entry(2, "topic"), entry(3)):
            history.append(one)
        assert (numbers(history.entries()), numbers(history.recent())) == ([1, 2, 3], [3])
        assert [one["id"] for one in json.loads((tmp_path / RECENT).read_bytes())] == ["3"]
        history.clear(NOW, "s")
        assert [*history.entries(), *history.recent(), *json.loads((tmp_path / RECENT).read_bytes())] == []
    assert [one.kind for one in read(tmp_path).entries] == ["prompt", "topic", "prompt", "cleared"]


@settings(max_examples=60)
@given(st.lists(st.text(max_size=12), min_size=1, max_size=4), st.integers(0, 600))
def test_any_beginning_of_its_bytes_opens(tmp_path_factory: pytest.TempPathFactory, texts: list[str], cut: int) -> None:
    folder = tmp_path_factory.mktemp("history")
    file = folder / FILES[-1]
    with opened(folder) as history:
        for number, text in enumerate(texts):
            history.append(entry(number, text=text))
        told = list(history.entries())
    whole = file.read_bytes()
    left = whole[:cut]
    file.write_bytes(b'\xff\x00\n{"id": "7", "at": "yesterday"}\n' + left)
    count = whole[: cut + 1].count(b"\n")  # what lacks nothing but its newline is whole
    with opened(folder) as history:
        assert list(history.entries()) == list(read(folder).entries) == told[:count]
        assert [one.partition(": ")[0] for one in read(folder).damaged] == [f"{file}:1", f"{file}:2"]
        history.append(entry(9))
    assert numbers(read(folder).entries) == [*range(count), 9]
    torn = left.count(b"\n") == count and left[-1:] not in (b"", b"\n")
    assert len(read(folder).damaged) == 2 + torn


def test_three_files_are_kept_and_a_rotation_that_was_cut_short_loses_nothing(tmp_path: Path) -> None:
    with opened(tmp_path, keep=1000) as history:
        for number in range(61):
            history.append(entry(number))
        told = numbers(history.entries())
    assert told == numbers(read(tmp_path).entries) == list(range(told[0], 61))
    assert 15 < len(told) < 50
    oldest, older, newest = (tmp_path / name for name in FILES)
    rest = told[len(oldest.read_text().splitlines()) :]
    older.rename(oldest)  # killed behind the first step
    assert numbers(read(tmp_path).entries) == rest
    newest.rename(older)  # and behind the second
    newest.write_bytes(older.read_bytes())  # what was renamed between two looks of a reader
    assert numbers(read(tmp_path).entries) == rest
    newest.unlink()
    with opened(tmp_path, keep=1000) as history:
        assert history.prepend([entry(-2), entry(-1), entry(-2), entry(60)]) == 2
        history.append(entry(61))
        assert numbers(history.entries()) == numbers(read(tmp_path).entries) == [-2, -1, *rest, 61]


def test_a_full_disk_an_editor_and_who_moves_the_folder_cost_no_answered_line(tmp_path: Path) -> None:
    folder, before = tmp_path / "worker", resource.getrlimit(resource.RLIMIT_FSIZE)
    file, draft = folder / FILES[-1], folder / "draft"
    with opened(folder) as history:
        history.append(entry(1))
        size = file.stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 50, before[1]))
        try:
            with pytest.raises(DiskFailed, match="File too large"):
                history.append(entry(2))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert file.stat().st_size == size
        draft.write_bytes(file.read_bytes().rstrip(b"\n"))
        draft.replace(file)
        assert history.append(entry(2))
        folder.rename(tmp_path / "moved")
        with pytest.raises(DiskFailed, match="moved, or deleted"):
            history.append(entry(3))
        assert not folder.exists()
    assert numbers(read(tmp_path / "moved").entries) == [1, 2]
    with pytest.raises(DiskFailed, match="cannot be used: Not a directory"):
        read(tmp_path / "moved" / FILES[-1])


def write(folder: str) -> None:
    with opened(Path(folder), 3000) as history:
        for number in range(max(numbers(history.entries()), default=-1) + 1, 10_000):
            history.append(entry(number))
            print(number, flush=True)


def test_a_writer_that_is_killed_loses_no_answered_line_and_doubles_none(tmp_path: Path) -> None:
    seed, here = random.Random(23), Path(__file__).parents[2]
    command = [sys.executable, "-c", f"from tests.foreman.test_history import write; write({str(tmp_path)!r})"]
    for _ in range(8):
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=here) as writer:
            assert writer.stdout is not None
            answered = list(islice(writer.stdout, seed.randrange(1, 60)))
            writer.kill()
            answered += writer.stdout
        kept = numbers(read(tmp_path).entries)
        assert kept == list(range(kept[0], kept[-1] + 1))
        assert int(answered[-1]) <= kept[-1] <= int(answered[-1]) + 1
    assert (tmp_path / FILES[0]).exists()  # rotations were among the moments
