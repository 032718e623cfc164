"""A small model that answers with yes or no, and reads pages: three kinds behind one interface."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from ashep.foreman.entries import Entry
from ashep.foreman.settings import SmallModel


class Small:
    """The small model that a person set."""

    def __init__(self, settings: SmallModel, environ: Mapping[str, str], folder: Path) -> None:
        """`environ`: where its key is, and of the program; `folder`: where `claude` is started."""

    async def yes(self, question: str, timeout: float = 30.0) -> bool | None:
        """Ask a question; None where it is unsure, fails, or says something else. Raises nothing."""
        raise NotImplementedError

    async def answer(self, text: str, limit: int = 4000, timeout: float = 60.0) -> str:
        """Give what it says, of `limit` characters at most. Raises `AshepError` where it fails."""
        raise NotImplementedError


async def is_new_topic(small: Small | None, recent: Sequence[Entry], prompt: str, timeout: float) -> bool:
    """Whether a prompt begins a new topic: unsure, slow and failing are no, and so is nothing to compare with."""
    raise NotImplementedError
