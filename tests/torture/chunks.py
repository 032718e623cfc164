"""Seeds in portions that the workers of the ordinary test command share."""

from tests.torture.story import run, shrink, simulated

SEEDS = 2000
"""What the ordinary test command lives through; `make torture` goes on for as long as one likes."""
PORTION = 100
FILES = 2


def portions(file: int) -> list[int]:
    """The first seeds of the portions of one test file."""
    return list(range(0, SEEDS, PORTION))[file::FILES]


def live(first: int) -> None:
    """Live through a portion; a story that is bad is shrunk and told."""
    with simulated():
        for seed in range(first, first + PORTION):
            story = run(seed)
            assert not story.bad, shrink(story, 40).tell()
