"""`python -m chaos.torture.finding`: look for every planted bug from the first seed on; for `make deep`.

The ordinary test command plants each bug in the one story that is known to show it (`known.toml`). `--write` writes
that table anew. 1 where a bug is found in no story, or in its known one no more.
"""

import argparse
import json
import multiprocessing
import os
import sys
import time
import tomllib
from pathlib import Path

from chaos.torture.planted import BUGS
from chaos.torture.story import run, simulated

TABLE = Path(__file__).with_name("known.toml")
SEEDS = 500

HEAD = """\
# The seeds in whose stories the bugs of chaos/torture/planted.py are known to show.
# `python -m chaos.torture.finding --write` writes this file.
"""


def known() -> dict[str, int]:
    """Seeds by the bugs that show in their stories."""
    return tomllib.loads(TABLE.read_text(encoding="utf-8"))["seeds"] if TABLE.exists() else {}


def shows(bug: str, seed: int) -> bool:
    """Whether one of the laws that name the bug is broken in the story of this seed, and only with the bug in it.

    The story without it comes first: its configuration is found to be sound by a core that is right, and kept.
    """
    plant, kinds, laws = BUGS[bug]
    with simulated():
        if run(seed, kinds).bad:
            return False
    with simulated(), plant():
        return any(one.startswith(laws) for one in run(seed, kinds).bad)


def find(bug: str, most: int = SEEDS) -> int | None:
    """The first seed whose story shows it."""
    return next((seed for seed in range(most) if shows(bug, seed)), None)


def main() -> int:
    """Search; 1 where a bug is not found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write what was found into the table")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    began, table, bad = time.monotonic(), known(), 0
    found: dict[str, int] = {}
    with multiprocessing.Pool(asked.jobs, maxtasksperchild=1) as pool:
        for bug, seed in zip(BUGS, pool.imap(find, BUGS, chunksize=1), strict=True):
            print(f"{bug}: {'NOT FOUND' if seed is None else f'seed {seed}'}", flush=True)
            bad += seed is None
            if seed is not None:
                found[bug] = seed
    if asked.write:
        lines = [HEAD, "[seeds]", *(f"{json.dumps(bug)} = {seed}" for bug, seed in found.items())]
        TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    else:
        bad += sum(not shows(bug, seed) for bug, seed in table.items())
        bad += BUGS.keys() != table.keys()
    print(f"{len(found)} of {len(BUGS)} planted bugs found, {time.monotonic() - began:.0f} s on {asked.jobs} processes")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
