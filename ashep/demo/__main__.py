"""The demonstration's scripted model as a process: `python -m ashep.demo --port 0 --script demo`."""

import sys
from functools import partial

from ashep.demo.model import SCRIPTS, main
from ashep.demo.stage import script
from ashep.demo.stories import STORIES
from ashep.demo.story import CALC

if __name__ == "__main__":
    SCRIPTS.update({one.name: partial(script, piece=one) for one in (CALC, STORIES)})
    sys.exit(main())
