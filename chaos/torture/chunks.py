"""Seeds in portions that the workers of the ordinary test command share.

Which seeds they are, the commit says: each commit lives through other stories, and one and the same always through the
same. `make deep` lives through all of them.
"""

import hashlib

from chaos.torture.story import run, shrink, simulated
from tests.full import commit

SEEDS = 100
"""What the ordinary test command lives through; `make torture` goes on for as long as one likes."""
ALL = 20_000
"""What `make deep` lives through; the windows of the commits lie in it."""
PORTION = 25
FILES = 2


def window(of: str) -> int:
    """The first seed of this commit."""
    windows = ALL // SEEDS
    return int(hashlib.sha256(of.encode()).hexdigest(), 16) % windows * SEEDS


def portions(file: int) -> list[int]:
    """The portions of one test file, by their numbers: the tests' names are the same for every commit."""
    return list(range(SEEDS // PORTION))[file::FILES]


def live(portion: int) -> None:
    """Live through a portion; a story that is bad is shrunk and told."""
    begin = window(commit())
    first = begin + portion * PORTION
    with simulated():
        for seed in range(first, first + PORTION):
            story = run(seed)
            assert not story.bad, (
                f"of the seeds {begin} to {begin + SEEDS - 1}, which are those of commit {commit() or 'none'}, "
                f"{seed} is bad\n{shrink(story, 40).tell()}"
            )
