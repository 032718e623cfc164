"""The schemas next to the files that name them, so that an editor helps while somebody types.

The first line of each starter file says `schemas/<name>.schema.json`: editors look for that next to the file. An
address into the installed package breaks with the next upgrade, and one on the net is of no use offline.
"""

import os
from contextlib import suppress
from importlib import resources
from pathlib import Path

FOLDER = "schemas"
_EVERYTHING = "*\n"


def put_schemas(folder: Path) -> None:
    """Write the schemas of this release into `.agent-shepherd/schemas`, where those there differ.

    Git ignores them, as they belong to who installed ashep and not to the project; a `.gitignore` that is there stays.
    A file that cannot be written is left out: nothing but an editor reads it.
    """
    place = folder / FOLDER
    with suppress(OSError):
        if place.is_symlink():
            return  # somebody else's folder
        place.mkdir(exist_ok=True)
        if not os.path.lexists(place / ".gitignore"):
            _put(place / ".gitignore", _EVERYTHING)
        for source in (resources.files("ashep.config") / FOLDER).iterdir():
            _put(place / source.name, source.read_text(encoding="utf-8"))


def _put(file: Path, text: str) -> None:
    """Give a file this text; a link in its place is not followed."""
    with suppress(OSError, UnicodeDecodeError):
        if not file.is_symlink() and file.read_text(encoding="utf-8") == text:
            return
    draft = file.with_name(f".{file.name}.new")
    draft.unlink(missing_ok=True)
    with draft.open("x", encoding="utf-8", newline="\n") as stream:
        stream.write(text)
    draft.replace(file)
