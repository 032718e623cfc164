"""The user's files once more, on SIGHUP and when one of them changes: good ones come into force, mistakes are told.

Policies, agents, `worker`, `budgets`, `notify`, `permissions` and `questions` count at once, for whatever is decided
from then on; a session that stands keeps the rules that it was opened with. What the daemon's parts were made of
(the tracker, the agent server, labels, …) counts from the next start, and that is said.
"""

import signal
from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.to_thread
from watchfiles import Change, awatch  # pyright: ignore[reportUnknownVariableType] - a part of its type is not shipped

from ashep.config import ConfigErrors, load
from ashep.core.events import Adopted
from ashep.daemon import adopted
from ashep.journal.log import Journal
from ashep.shepherd import Shepherd

FILES = ("config.yaml", "policies.yaml", "agents.yaml")

LIVE = ("worker", "budgets", "notify", "permissions", "questions")
"""The sections of config.yaml that count at once."""

SETTLE = 500
"""Milliseconds in which further changes of the files are taken together."""

HEED = 1000
"""Milliseconds: a watch that is to end does so within them (it waits in a thread, which nothing can interrupt)."""


class Reload:
    """Reads the files again, for as long as the daemon runs."""

    def __init__(self, folder: Path, journal: Journal, shepherd: Shepherd, say: Callable[[str], None]) -> None:
        self._folder, self._journal, self._shepherd, self._say = folder, journal, shepherd, say
        self._told: tuple[str, ...] = ()

    async def run(self) -> None:
        """Wait for SIGHUP and for changes, for ever."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._on_signal)
            group.start_soon(self._on_change)

    async def _on_signal(self) -> None:
        with anyio.open_signal_receiver(signal.SIGHUP) as signals:
            async for _ in signals:
                await self.again()

    async def _on_change(self) -> None:
        try:
            watch = awatch(self._folder, watch_filter=_is_ours, debounce=SETTLE, rust_timeout=HEED, recursive=False)
            async for _ in watch:
                await self.again()
        except OSError as error:  # the machine has no more watches to give
            self._say(f"changes of {self._folder} are not seen ({error}): send SIGHUP after one")

    async def again(self) -> None:
        """Read the files, and adopt what differs; a mistake is told once, and what was good stays in force."""
        try:
            fresh = await anyio.to_thread.run_sync(load, self._folder)
        except ConfigErrors as errors:
            self._tell(*map(str, errors.errors), "the configuration stays as it was")
            return
        world = self._shepherd.world
        settings = world.settings.model_copy(update={key: getattr(fresh.settings, key) for key in LIVE})
        facts: list[Adopted] = []
        for kind, name, wanted, known in (
            ("settings", "config", settings, world.settings),
            ("agents", "agents", fresh.agents, world.agents),
            ("policies", "policies", fresh.policies, world.policies),
        ):
            if wanted != known:
                facts.append(await adopted(fresh, self._journal, kind, wanted.model_dump_json(), name))
        later = [key for key in type(settings).model_fields if getattr(settings, key) != getattr(fresh.settings, key)]
        if facts:
            self._shepherd.tell(*facts)
            self._say(f"read again, and in force now: {', '.join(fact.kind for fact in facts)}")
        self._tell(*([f"config.yaml: {', '.join(later)} will count from the next start"] if later else []))

    def _tell(self, *lines: str) -> None:
        if lines != self._told:
            for line in lines:
                self._say(line)
        self._told = lines


def _is_ours(_: Change, path: str) -> bool:
    return Path(path).name in FILES
