"""After a power cut nothing that was told is lost, and the base is never broken: on what real git wrote and flushed."""

from pathlib import Path

import pytest

from chaos.powercut.check import BUGS, losses, recorded, unusable
from chaos.powercut.disk import Entry, Flush, Recording, Told, Write
from tests import places

EACH = 25
"""Of so many moments one is tried, beside those at which something is told; `make powercut` tries all."""


@pytest.fixture(scope="module")
def folder() -> Path:
    """A folder in memory, for all cuts one after the other."""
    return places.made("powercut").resolve()


@pytest.fixture(scope="module")
def recording(folder: Path) -> Recording:
    """What was written in a life in which two issues are sealed, verified, pushed and landed."""
    if why := unusable():
        pytest.skip(why)
    return recorded(folder)


@pytest.mark.promise("Z1")
@pytest.mark.slow
def test_after_a_power_cut_nothing_that_was_told_is_lost(recording: Recording, folder: Path) -> None:
    told = [words.split()[0] for words in recording.told(len(recording.steps))]
    assert told == ["sealed", "integrated", "verified", "pushed", "landed"] * 2
    assert list(losses(recording, folder, recording.cuts(EACH))) == []


@pytest.mark.promise("Z1")
@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS)
def test_a_flush_that_is_left_out_is_found(recording: Recording, folder: Path, bug: str) -> None:
    paths, folders = BUGS[bug]
    broken = recording.without(paths, folders=folders)
    assert len(broken.steps) < len(recording.steps)
    assert next(losses(broken, folder, broken.cuts(len(broken.steps))), None) is not None


def test_what_is_not_flushed_may_be_gone_empty_or_half() -> None:
    steps = [
        Entry(0, "old", 1), Write(1, 0, b"abcd"), Flush(1), Flush(0), Write(1, 4, b"efgh"), Entry(0, "new", 3),
        Write(3, 0, b"1234"), Entry(0, "newer", 3, (0, "new")), Told("done"),
    ]  # fmt: skip
    made = Recording({0: {}}, {}, list(steps))
    end = len(steps)
    assert made.after(end, "lost") == {"old": b"abcd"}
    assert made.after(end, "empty") == {"old": b"abcd", "newer": b""}
    assert made.after(end, "zeros") == {"old": b"abcd" + bytes(4), "newer": bytes(4)}
    assert made.after(end, "kept") == {"old": b"abcdefgh", "newer": b"1234"}
    some = {tuple(sorted(made.after(end, "any", seed))) for seed in range(40)}
    assert some == {("old",), ("new", "old"), ("newer", "old")}
    assert {made.after(end, "any", seed)["old"] for seed in range(40)} == {b"abcd", b"abcdef", b"abcdefgh"}
    assert made.after(3, "lost") == {}
    assert made.told(end) == ["done"]
