"""Night to day: the first lines of the morning report, and what waits for a person, as the first prompt may carry it."""

from datetime import datetime
from pathlib import Path


async def morning(folder: Path, now: datetime) -> str:
    """Tell it, fenced as data, in at most 40 lines and a second; empty where there is no project of ashep.

    `folder`: the session's. Raises nothing. Asked for where the settings say `morning`.
    """
    raise NotImplementedError
