"""The folders of one verification."""

from dataclasses import dataclass
from pathlib import Path

SCRIPTS = ".agent-shepherd"
"""The folder that comes from the base: an agent that edits its gate changes nothing."""


@dataclass(frozen=True, slots=True)
class Folders:
    """The folders of one verification."""

    place: Path
    """The folder around the others but `objects`."""
    tree: Path
    """The checkout, in which programs start."""
    home: Path
    """What programs take for the user's home."""
    tmp: Path
    """What they take for the place of temporary files."""
    objects: Path
    """The repository's objects, which the checkout's git reads."""
