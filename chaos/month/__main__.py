"""`python -m chaos.month`: a month of 500 issues, and what `ashep replay --policy` says of it."""

import argparse
import sys
import tempfile
from pathlib import Path

from chaos.month.compared import lived, printed


def main() -> int:
    """Live it; 1 where the recount comes to something else."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--issues", type=int, default=500)
    parser.add_argument("--keep", type=Path, help="a folder for the project, which is left there")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ashep-month-") as scratch:
        month = lived(asked.keep or Path(scratch), asked.seed, asked.issues)
        print(month.summary, flush=True)
        print(printed(month.project, month.other), end="")
        for wrong in month.wrong:
            print(f"WRONG {wrong}")
    return int(bool(month.wrong))


if __name__ == "__main__":
    sys.exit(main())
