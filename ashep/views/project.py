"""Name of a project and the branch on which its work lands, as the head of the page shows them."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typing_extensions import TypedDict

from ashep.config import settings_in
from ashep.config.files import find_checked_out_branch
from ashep.errors import AshepError
from ashep.store.row_types import doc


class ProjectJson(TypedDict):
    """What all of this is about."""

    name: str
    """Of the folder."""
    base: Annotated[str | None, doc("The branch on which work lands; null: none is checked out.")]


@dataclass
class ProjectReader:
    """Reads them; config.yaml again where it has changed."""

    folder: Path
    """`.agent-shepherd`."""
    _stamp: object = None
    _base: str | None = None

    def read(self) -> ProjectJson:
        """Give them. Where `landing.base` names no branch, or cannot be read, it is the one that is checked out."""
        project, file = self.folder.resolve().parent, self.folder / "config.yaml"
        stamp = (file.stat().st_mtime_ns, file.stat().st_size) if file.exists() else None
        if stamp != self._stamp:
            self._base, self._stamp = None, stamp
            with suppress(AshepError):
                self._base = settings_in(self.folder).landing.base
        return {"name": project.name, "base": self._base or find_checked_out_branch(project)}
