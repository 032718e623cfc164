"""`python -m tests.policies --lives 10000`: live under policies that pass the check, and look for what is wrong."""

import argparse
import sys
import time

from tests.policies.lives import lived, subjects


def main() -> int:
    """Give 1 where something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lives", type=int, default=10_000, help="how many lives, in all")
    parser.add_argument("--each", type=int, default=20, help="how many under a policy")
    parser.add_argument("--seed", type=int, default=0, help="the first made-up policy's")
    wanted = parser.parse_args()
    done, policies, found, began = 0, 0, list[str](), time.process_time()
    for subject in subjects(wanted.seed):
        count = min(wanted.each, wanted.lives - done)
        if count <= 0:
            break
        found += lived(subject, wanted.seed, count)
        done, policies = done + count, policies + 1
        if policies % 50 == 0:
            print(f"{done} lives under {policies} policies, {len(found)} wrong", file=sys.stderr, flush=True)
    spent = time.process_time() - began
    for one in found[:20]:
        print(f"{one}\n")
    print(f"{done} lives under {policies} policies: {len(found)} wrong; {spent:.0f} s of one core")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
