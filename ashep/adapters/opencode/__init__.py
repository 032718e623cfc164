"""The runner for OpenCode servers, managed or attached (facts/opencode.md)."""

import sys
from importlib import import_module
from typing import Any

_COMMAND_LINE = "httpx._main"
"""httpx' own command line; with it click and rich would be imported, for a fifth of a second of every start."""

_modules: dict[str, Any] = sys.modules
if _modules.setdefault(_COMMAND_LINE) is None:  # httpx does without it where its import fails
    import_module("httpx")
    del _modules[_COMMAND_LINE]

from ashep.adapters.opencode.runner import OpencodeRunner  # noqa: E402 - behind what is said of httpx

__all__ = ["OpencodeRunner"]
