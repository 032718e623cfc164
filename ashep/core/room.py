"""How much room on the disk is too little. It imports nothing: reading commands ask, too."""

LOW_DISK = 8 * 1024 * 1024
"""Bytes: where fewer are free, nothing new is taken. It ends when twice as many are, so that it does not flutter."""


def is_low(free: int, *, was_low: bool = False) -> bool:
    """Whether so many bytes are too few."""
    return free < (2 * LOW_DISK if was_low else LOW_DISK)
