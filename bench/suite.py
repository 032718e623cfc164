"""How long the tests take; they are run as `make test` and `make quick` run them."""

import subprocess
import sys
import time

from bench.figures import Figure
from bench.place import ROOT, say


def measure() -> list[Figure]:
    """Run both, one after the other."""
    return [
        _timed("the quick tests (make quick)", 60, "-m", "not real and not slow"),
        _timed("all tests (make test), the tools being there", 12 * 60),
    ]


def _timed(name: str, bound: float, *flags: str) -> Figure:
    say(f"suite: {name}")
    begin = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "4", "--dist", "loadfile", *flags], cwd=ROOT,
        stdin=subprocess.DEVNULL, capture_output=True,
    )  # fmt: skip
    last = done.stdout.decode().strip().splitlines()[-1:]
    return Figure(name, time.monotonic() - begin, "s", bound, " ".join(last).strip("= "))
