"""Which files an issue's work touches."""

from dataclasses import dataclass

ROOM = 8_000
"""Characters of all the paths that a short one names."""


@dataclass(frozen=True, slots=True)
class FileMap:
    """Which files a change touches. A renamed file is created under its name and deleted under its former one."""

    created: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()
    more: int = 0
    """How many paths are not named, because there are so many."""


def shortened(files: FileMap) -> FileMap:
    """Name files while there is room, and count the others: whoever reads a list of issues reads their maps, too."""
    room, more, named = ROOM, files.more, list[tuple[str, ...]]()
    for paths in (files.created, files.modified, files.deleted):
        shown = list[str]()
        for path in paths:
            room -= len(path)
            if room >= 0:
                shown.append(path)
            else:
                more += 1
        named.append(tuple(shown))
    return FileMap(*named, more=more)
