"""`python -m chaos.torture --seeds 20000`: many stories, on all processors; `--seed N`: one of them, told."""

import argparse
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator

from chaos.torture.chaos import KINDS, Kinds
from chaos.torture.story import Story, run, shrink, simulated

CHUNK = 20


def main() -> int:
    """Run what was asked for; 1 where a story is bad."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--seed", type=int, help="only this one, with its whole story")
    parser.add_argument("--kinds", help="only these kinds of chaos, with commas; -: none")
    parser.add_argument("--shrink", action="store_true", help="leave out what a bad story does not need")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    kinds = None if asked.kinds is None else frozenset(asked.kinds.split(",")) & KINDS.keys()
    if asked.seed is not None:
        return _one(asked.seed, kinds, shrinks=asked.shrink)
    return _many(asked.first, asked.seeds, kinds, asked.jobs)


def _one(seed: int, kinds: Kinds | None, *, shrinks: bool) -> int:
    with simulated():
        story = run(seed, kinds)
        if story.bad and shrinks:
            story = shrink(story)
    print(story.tell())
    return int(bool(story.bad))


def _chunk(work: tuple[int, int, Kinds | None]) -> tuple[int, list[Story], int]:
    first, count, kinds = work
    bad: list[Story] = []
    lives = 0
    with simulated():
        for seed in range(first, first + count):
            story = run(seed, kinds)
            lives += story.lives
            if story.bad:
                bad.append(story)
    return count, bad, lives


def _chunks(first: int, seeds: int, kinds: Kinds | None) -> Iterator[tuple[int, int, Kinds | None]]:
    for start in range(first, first + seeds, CHUNK):
        yield start, min(CHUNK, first + seeds - start), kinds


def _many(first: int, seeds: int, kinds: Kinds | None, jobs: int) -> int:
    began, done, lives, shown = time.monotonic(), 0, 0, 0.0
    bad: list[Story] = []
    with multiprocessing.Pool(jobs) as pool:
        for count, found, lived in pool.imap_unordered(_chunk, _chunks(first, seeds, kinds)):
            done, lives = done + count, lives + lived
            for story in found:
                bad.append(story)
                print(f"BAD seed {story.seed}: {story.bad[0][:400]}", flush=True)
            seconds = time.monotonic() - began
            if seconds - shown > 10 or done == seeds:
                shown = seconds
                print(f"{done}/{seeds} seeds, {lives} lives, {len(bad)} bad, {done / seconds:.1f} seeds/s", flush=True)
    if bad:
        with simulated():
            print(shrink(min(bad, key=lambda story: len(story.happened))).tell())
    print(f"{seeds} seeds, {lives} lives, {len(bad)} bad, {time.monotonic() - began:.0f} s on {jobs} processes")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
