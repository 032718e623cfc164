"""Name of a project and the branch on which its work lands, as the head of the page shows them."""

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from typing_extensions import TypedDict

from ashep.config import settings_in
from ashep.config.files import find_checked_out_branch
from ashep.config.page_colours import read_colours
from ashep.core.policy.settings import Settings
from ashep.errors import AshepError
from ashep.store.row_types import doc


class OwnPageJson(TypedDict):
    """What of the page is the user's own (`page` of config.yaml)."""

    colours: dict[str, list[str]]
    """Those that differ from the page's: light and dark."""
    refused: Annotated[str | None, doc("Why the file of colours changes nothing; null: it does, or there is none.")]
    panel: Annotated[str | None, doc("The address of what is shown in a frame.")]
    title: str
    """Of the panel."""


class ProjectJson(TypedDict):
    """What all of this is about."""

    name: str
    """Of the folder."""
    base: Annotated[str | None, doc("The branch on which work lands; null: none is checked out.")]
    page: OwnPageJson


@dataclass
class ProjectReader:
    """Reads them; config.yaml again where it has changed."""

    folder: Path
    """`.agent-shepherd`."""
    _stamp: object = None
    _settings: Settings = field(default_factory=Settings)

    def read_settings(self) -> Settings:
        """Give the settings; the defaults where config.yaml cannot be read."""
        file = self.folder / "config.yaml"
        stamp = (file.stat().st_mtime_ns, file.stat().st_size) if file.exists() else None
        if stamp != self._stamp:
            self._settings, self._stamp = Settings(), stamp
            with suppress(AshepError):
                self._settings = settings_in(self.folder)
        return self._settings

    def read(self) -> ProjectJson:
        """Give them. Where `landing.base` names no branch, or cannot be read, it is the one that is checked out."""
        project, settings = self.folder.resolve().parent, self.read_settings()
        page, base = settings.page, settings.landing.base or find_checked_out_branch(project)
        colours, refused = read_colours(self.folder) if page.colours else ({}, [])
        view: OwnPageJson = {
            "colours": colours, "refused": str(refused[0]) if refused else None, "panel": page.panel,
            "title": page.title,
        }  # fmt: skip
        return {"name": project.name, "base": base, "page": view}
