"""Import httpx without its command line, with which click, pygments and rich would come: a fifth of a second of CPU.

Whoever imports httpx first decides that, so each adapter that does imports this before.
"""

import sys
from importlib import import_module
from typing import Any

_COMMAND_LINE = "httpx._main"

_modules: dict[str, Any] = sys.modules
if _modules.setdefault(_COMMAND_LINE) is None:  # httpx does without it where its import fails
    import_module("httpx")
    del _modules[_COMMAND_LINE]
