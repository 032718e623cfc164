"""The same seed is the same story, to the byte, in whatever process it is told."""

import hashlib
import os
import subprocess
import sys

import pytest

from chaos.torture.chunks import ALL, FILES, PORTION, portions, window
from chaos.torture.chunks import SEEDS as SEEDS_A_RUN
from chaos.torture.story import run, simulated

SEEDS = (3, 8, 1071)


@pytest.mark.slow
def test_the_same_seed_is_the_same_story_in_another_process() -> None:
    program = (
        "import hashlib\nfrom chaos.torture.story import run, simulated\nwith simulated():\n"
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


def test_each_commit_has_seeds_of_its_own_and_always_the_same() -> None:
    first = [window(f"{number:040x}") for number in range(500)]
    assert first == [window(f"{number:040x}") for number in range(500)]
    assert len(set(first)) > ALL // SEEDS_A_RUN * 0.9, "in time all are lived through"
    assert all(number % SEEDS_A_RUN == 0 and number + SEEDS_A_RUN <= ALL for number in first)
    lived = [number for file in range(FILES) for number in portions(file)]
    assert sorted(lived) == list(range(SEEDS_A_RUN // PORTION))
