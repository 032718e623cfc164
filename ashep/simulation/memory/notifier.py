"""A Notifier in memory: it keeps what it was told, and fails where it is told to."""

from collections import defaultdict

import anyio.lowlevel

from ashep.core.policy.settings import NotifyTarget
from ashep.errors import NotSent
from ashep.ports.notifier import Message


class MemoryNotifier:
    """Whoever is told, by the target's name (or its program's)."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Message]] = []
        self.down: defaultdict[str, str] = defaultdict(str)
        """Why a target does not take messages; empty: it does."""
        self.delay = 0.0
        """Seconds that a delivery takes."""

    async def send(self, target: NotifyTarget, message: Message) -> None:
        """Hand a message to a target. Raises `NotSent`."""
        name = name_of(target)
        await anyio.lowlevel.checkpoint()
        if self.delay:
            await anyio.sleep(self.delay)
        if self.down[name]:
            raise NotSent(self.down[name])
        self.told.append((name, message))


def name_of(target: NotifyTarget) -> str:
    """Say how a target is called in memory."""
    return target.name or (target.command or ("apprise",))[0]
