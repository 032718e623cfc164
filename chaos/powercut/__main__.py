"""`python -m chaos.powercut [--each N] [--seeds N]`: cut the power at every moment, and leave each flush out once."""

import argparse
import sys
import tempfile
from pathlib import Path

from chaos.powercut.check import BUGS, losses, recorded, unusable
from tests import places

MANY = 40
"""Files of an agent's commit: with so many the file system is flushed at once."""


def main() -> int:
    """Give 1 where something was lost, or a flush that was left out was not found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=1, help="only each n-th moment")
    parser.add_argument("--seeds", type=int, default=4, help="so many ways to lose anything at random")
    given = parser.parse_args()
    if why := unusable():
        print(why, file=sys.stderr)
        return 2
    bad = 0
    places.memory().mkdir(exist_ok=True)
    for files, each in ((1, given.each), (MANY, 8 * given.each)):
        with tempfile.TemporaryDirectory(dir=places.memory()) as name:
            folder = Path(name).resolve()
            recording = recorded(folder, files)
            cuts = recording.cuts(each)
            found = list(losses(recording, folder, cuts, given.seeds))
            bad += len(found)
            print(
                f"{files} files a commit: {len(recording.steps)} steps, {len(cuts)} cuts: {len(found)} lost something"
            )
            for one in found[:20]:
                print(f"  {one}")
            for bug, (paths, folders) in BUGS.items() if files == 1 else ():
                broken = recording.without(paths, folders=folders)
                loss = next(losses(broken, folder, broken.cuts(10)), None)
                bad += loss is None
                print(f"  without flushing {bug}: {loss.what[:100] if loss else 'NOT FOUND'}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
