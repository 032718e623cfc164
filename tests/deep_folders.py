"""Folders in folders, deeper than a path can say."""

import os
from pathlib import Path


def dig(top: Path, depth: int, name: str = "d") -> int:
    """Make so many folders in one another, and give the last of them, open."""
    top.mkdir(parents=True)
    at = os.open(top, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=at)
        below = os.open(name, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    return at
