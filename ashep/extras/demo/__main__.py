"""The demonstration's scripted model as a process: `python -m ashep.extras.demo --port 0 --script demo`."""

import sys
from functools import partial

from ashep.extras.demo.project import script
from ashep.extras.demo.scenario import CALC
from ashep.extras.demo.scripted_model import SCRIPTS, main
from ashep.extras.demo.story_scenario import STORIES

if __name__ == "__main__":
    SCRIPTS.update({one.name: partial(script, piece=one) for one in (CALC, STORIES)})
    sys.exit(main())
