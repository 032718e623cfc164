"""Room on a disk: how much is little. It imports nothing, since whoever only reads asks for it, too."""

LOW_DISK = 8 * 1024 * 1024
"""Bytes: where fewer are free, nothing new is taken. It ends when twice as many are, so that it does not flutter."""

FILE = 16 * 1024
"""Bytes that a file counts as which may still be made: ext4 makes room for one in so many."""


def room(free: int, files: int, files_free: int) -> int:
    """Give the bytes that may still be written: fewer where files (inodes) run out first. `files`: 0 is no bound."""
    return min(free, files_free * FILE) if files else free


def is_low(free: int, *, was_low: bool = False) -> bool:
    """Whether so many bytes are too few."""
    return free < (2 * LOW_DISK if was_low else LOW_DISK)
