"""Modules of a project, imported without its folder on `sys.path`.

Agents write files there. With the folder on `sys.path` any of them can become a module of the daemon, one that a
library looks for and that is not installed, say (`brotli.py`). Here a name leads into the project only where
config.yaml names it, or where a module that came from there asks for it; and only if nothing installed has that name.
"""

import inspect
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

_MACHINERY = ("importlib", "_frozen_importlib", "_frozen_importlib_external")


class Projects:
    """A finder of modules for `sys.meta_path`, the last one there."""

    def __init__(self) -> None:
        self._named: dict[str, str] = {}
        self._found: dict[str, str] = {}

    def name(self, module: str, project: Path) -> None:
        """Let a module, or a package by the name of one in it, be found in a project."""
        self._named[module.partition(".")[0]] = str(project)
        if self not in sys.meta_path:
            sys.meta_path.append(self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module of the first level; what is in a package is found in that package's folder."""
        if path is not None:
            return None
        folder = self._named.get(fullname) or self._found.get(_asking())
        spec = PathFinder.find_spec(fullname, [folder]) if folder is not None else None
        if spec is not None and folder is not None:
            self._found[fullname] = folder
        return spec


def _asking() -> str:
    """Name the module, of the first level, whose code imports something now."""
    frame = inspect.currentframe()
    while frame is not None:
        name = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if name not in _MACHINERY and frame.f_globals is not globals():
            return name
        frame = frame.f_back
    return ""


PROJECTS = Projects()
"""Those of this process."""
