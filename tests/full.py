"""How much a test repeats: little in the ordinary run, all of it in `make deep`, which also runs what is marked `full`.

`python -m tests.full tests/core/test_laws.py …` runs tests as `make deep` does.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TypeVar

import pytest

T = TypeVar("T")

TURNS = int(os.environ.get("ASHEP_TESTS_TURNS", "22"))
"""Each commit runs one in so many of the long tests that take turns; with 1 it runs them all."""

IN_FULL = "ASHEP_TESTS_IN_FULL"
"""The environment variable that says that there is time."""


def in_full() -> bool:
    """Whether there is time."""
    return bool(os.environ.get(IN_FULL))


def amount(ordinary: int, full: int) -> int:
    """So many examples, lives or seeds."""
    return full if in_full() else ordinary


def half(items: Iterable[T]) -> list[T]:
    """Every second of these: of one commit the one half, of another the other."""
    return list(items) if in_full() else list(items)[turn(commit(), 2) :: 2]


def turn(text: str, turns: int | None = None) -> int:
    """The turn of a commit or a test, below `turns`; None: as many as the long tests have."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) % (turns or TURNS)


@cache
def commit() -> str:
    """The commit that is tried; "" where there is no git, or no repository of it."""
    git = shutil.which("git")
    if git is None:
        return ""
    words = [git, "rev-parse", "HEAD"]
    return subprocess.run(words, cwd=Path(__file__).parent, capture_output=True, text=True).stdout.strip()


def repeated(*parameters: object) -> list[object]:
    """Parameters whose tests repeat what those of the others see."""
    return [pytest.param(one, marks=pytest.mark.full) for one in parameters]


def take_turns(items: Iterable[pytest.Item]) -> None:
    """Leave the long tests whose turn it is not at this commit to `make deep`.

    Quick tests run always, as does what is marked `always`, and, where no quick test shows a promise, its first real
    and its first long test. The first real test of any other promise runs at every second commit.
    """
    tests = [
        (item, _kind(item), {name for mark in item.iter_markers("promise") for name in mark.args}) for item in items
    ]
    quick = {name for _, kind, promises in tests if kind == "quick" for name in promises}
    shown = {"real": set[str](), "slow": set(quick)}
    for item, kind, promises in tests:
        if kind == "quick" or item.get_closest_marker("full") or item.get_closest_marker("always"):
            continue
        new, shown[kind] = promises - shown[kind], shown[kind] | promises
        turns = 1 if new - quick else min(2, TURNS) if new else TURNS
        if (in_full() and not new) or turn(item.nodeid, turns) != turn(commit(), turns):
            item.add_marker(pytest.mark.full)


def _kind(item: pytest.Item) -> str:
    if item.get_closest_marker("real"):
        return "real"
    return "slow" if item.get_closest_marker("slow") or item.get_closest_marker("costly") else "quick"


def leave_to_deep(items: Iterable[pytest.Item], folder: Path, ordinary: Mapping[str, Collection[str]]) -> None:
    """Leave to `make deep` what these modules of a folder play beside their ordinary tests: a suite that is played in
    full over others.
    """
    for item in items:
        kept = ordinary.get(item.path.stem) if item.path.parent == folder else None
        if kept is not None and item.name.partition("[")[0] not in kept:
            item.add_marker(pytest.mark.full)


if __name__ == "__main__":
    os.environ[IN_FULL] = "1"
    sys.exit(pytest.main(["-n", "2", "-q", "-o", "timeout=3600", *sys.argv[1:]]))
