"""`python -m ashep` is the same as `ashep`."""

import sys

from ashep.cli import main

if __name__ == "__main__":
    sys.exit(main())
