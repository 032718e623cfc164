"""`python -m ashep` is the same as `ashep`."""

import os
import sys

if __name__ == "__main__":
    # python puts first where it was called, the project as a rule: it would look there for all that ashep needs
    if not sys.flags.safe_path and sys.path[0] != os.path.dirname(os.path.dirname(os.path.realpath(__file__))):
        del sys.path[0]
    from ashep.cli import main

    sys.exit(main())
