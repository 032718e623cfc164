"""The demonstration's scripted model as a process: `python -m ashep.demo --port 0 --script demo`."""

import sys

from ashep.demo.model import SCRIPTS, main
from ashep.demo.stage import script

if __name__ == "__main__":
    SCRIPTS["demo"] = script
    sys.exit(main())
