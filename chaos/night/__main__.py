"""`python -m chaos.night --seed N`: one night, told; `--seeds M`: so many from there on, on several processes."""

import argparse
import multiprocessing
import os
import sys
from functools import partial

from chaos.night.lived import lived


def main() -> int:
    """Live what was asked for; 1 where a night went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first night")
    parser.add_argument("--seeds", type=int, default=1, help="how many nights")
    parser.add_argument("--issues", type=int, default=200, help="in the evening")
    parser.add_argument("--jobs", type=int, default=min(os.cpu_count() or 1, 2))
    asked = parser.parse_args()
    seeds, bad = range(asked.seed, asked.seed + asked.seeds), 0
    with multiprocessing.Pool(min(asked.jobs, len(seeds))) as pool:
        for night in pool.imap(partial(lived, issues=asked.issues), seeds):
            print(night.summary, flush=True)
            for wrong in night.wrong:
                print(f"WRONG seed {night.seed}: {wrong[:1000]}", flush=True)
            bad += bool(night.wrong)
    print(f"{len(seeds)} nights of {asked.issues} issues, {bad} bad")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
