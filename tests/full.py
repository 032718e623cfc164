"""How much a test repeats: little in the ordinary run, all of it in `make deep`, which also runs what is marked `full`.

`python -m tests.full tests/core/test_laws.py …` runs tests as `make deep` does.
"""

import os
import sys

import pytest

IN_FULL = "ASHEP_TESTS_IN_FULL"
"""The environment variable that says that there is time."""


def in_full() -> bool:
    """Whether there is time."""
    return bool(os.environ.get(IN_FULL))


def amount(ordinary: int, full: int) -> int:
    """So many examples, lives or seeds."""
    return full if in_full() else ordinary


def repeated(*parameters: object) -> list[object]:
    """Parameters whose tests repeat what those of the others see."""
    return [pytest.param(one, marks=pytest.mark.full) for one in parameters]


if __name__ == "__main__":
    os.environ[IN_FULL] = "1"
    sys.exit(pytest.main(["-n", "2", "-q", "-o", "timeout=3600", *sys.argv[1:]]))
