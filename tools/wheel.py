"""Hook of the build: a wheel has the page in it, or there is no wheel; and what bd is built by (`ashep get-bd`).

An editable install goes without.
"""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PageInWheel(BuildHookInterface[Any]):
    """Refuses a wheel without a page, and adds what builds bd."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Look whether the page was built, before anything is packed."""
        index = Path(self.root) / "ashep" / "page" / "static" / "index.html"
        if version != "editable" and not index.is_file():
            raise RuntimeError(f"{index} is not there: run `make page` first, which builds it from web/")
        if version != "editable":
            for name in ("setup.py", "beads/go.mod", "beads/go.sum"):
                build_data["force_include"][f"{self.root}/requirements/{name}"] = f"ashep/requirements/{name}"
