"""The same seed is the same story, to the byte, in whatever process it is told."""

import hashlib
import os
import subprocess
import sys

import pytest

from tests.torture.story import run, simulated

SEEDS = (3, 8, 1071)


@pytest.mark.slow
def test_the_same_seed_is_the_same_story_in_another_process() -> None:
    program = (
        "import hashlib\nfrom tests.torture.story import run, simulated\nwith simulated():\n"
        f"    for seed in {SEEDS}:\n"
        "        print(hashlib.sha256(run(seed, keep_journal=True).journal).hexdigest())\n"
    )
    told = [
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": number},
            check=True,
            capture_output=True,
            text=True,
        ).stdout.split()
        for number in ("1", "2")
    ]
    with simulated():
        here = [hashlib.sha256(run(seed, keep_journal=True).journal).hexdigest() for seed in SEEDS]
    assert told == [here, here]
