"""`python -m tests.policies.sound --seeds 5000`: the checker of policies against brute force; for `make deep`."""

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter

from tests.policies.test_soundness import CODES, demanding, differences, verdict_of

FLOOR = 20
"""More often than that each code is found in 2,000 policies: a search that finds nothing proves nothing."""


def looked_at(seed: int) -> tuple[int, list[str], list[str]]:
    """What differs in the policy of this seed, and what was found in it."""
    case = demanding(seed)
    return seed, differences(case), [one.code for one in verdict_of(case).findings]


def main() -> int:
    """Compare; 1 where anything differs, or where too little is found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    began, bad, codes = time.monotonic(), 0, Counter[str]()
    with multiprocessing.Pool(asked.jobs) as pool:
        seeds = range(asked.first, asked.first + asked.seeds)
        for seed, wrong, found in pool.imap_unordered(looked_at, seeds, chunksize=20):
            codes.update(found)
            if wrong:
                bad += 1
                print(f"BAD seed {seed}: {wrong}", flush=True)
    print(", ".join(f"{code} {count}" for code, count in sorted(codes.items())))
    rare = sorted(CODES - {code for code, count in codes.items() if count > FLOOR * asked.seeds / 2000})
    strange = sorted(codes.keys() - CODES)
    if rare or strange:
        print(f"found too seldom: {rare}; not known: {strange}")
    seconds = time.monotonic() - began
    print(f"{asked.seeds} policies, {codes.total()} findings, {bad} bad, {seconds:.0f} s on {asked.jobs} processes")
    return int(bool(bad or rare or strange))


if __name__ == "__main__":
    sys.exit(main())
