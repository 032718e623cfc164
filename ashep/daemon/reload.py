"""Reload of the user's files, on SIGHUP and when one of them changes: good ones come into force, mistakes are told.

Policies, agents, templates of prompts, `worker`, `budgets`, `notify`, `people`, `permissions` and `questions` count at
once, for whatever is decided from then on; a session that stands keeps the rules that it was opened with, and a run the
phase that it began with. What the daemon's parts were made of (the tracker, the agent server, labels, …) counts from
the next start, and that is said.
"""

import signal
from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.to_thread
from watchfiles import Change, awatch  # pyright: ignore[reportUnknownVariableType] - a part of its type is not shipped

from ashep.config import ConfigErrors
from ashep.config.policy_files import FOLDER as POLICIES
from ashep.core.facts.resources import Adopted, EditMended, EditRefused
from ashep.core.facts.vocabulary import Fact
from ashep.core.state.world import World
from ashep.daemon.daemon import adopted, adopted_templates
from ashep.daemon.shepherd import Shepherd
from ashep.prompt import user_files

FILES = ("config.yaml", "policies.yaml", "agents.yaml")

FOLDERS = (POLICIES, user_files.PROMPTS)
"""What lies in these counts, too."""

KEPT = 10
"""Mistakes of an edit that are kept in the journal; of the rest only the number."""

LIVE = ("worker", "budgets", "notify", "people", "permissions", "questions")
"""The sections of config.yaml that count at once."""

SETTLE = 500
"""Milliseconds in which further changes of the files are taken together."""

BEGUN = 1000
"""Milliseconds after which a watch without a change has begun for certain."""


class Reload:
    """Reads the files again, for as long as the daemon runs."""

    def __init__(self, folder: Path, shepherd: Shepherd, say: Callable[[str], None]) -> None:
        self._folder, self._shepherd, self._say = folder, shepherd, say
        self._told: tuple[str, ...] = ()
        self._refused = False
        self._ending = anyio.Event()
        """It tells the watch, which waits in a thread that nothing can interrupt."""

    async def run(self) -> None:
        """Wait for SIGHUP and for changes, for ever."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._on_signal)
            group.start_soon(self._on_change)
            try:
                await anyio.sleep_forever()
            finally:
                self._ending.set()

    async def _on_signal(self) -> None:
        with anyio.open_signal_receiver(signal.SIGHUP) as signals:
            async for _ in signals:
                await self.reload_files()

    async def _on_change(self) -> None:
        while True:
            folders = await anyio.to_thread.run_sync(self._folders)
            try:
                await self._watch(folders)
            except FileNotFoundError as error:  # one of them went away at this moment
                if not await anyio.to_thread.run_sync(self._folder.is_dir):
                    return self._blind(error)
            except OSError as error:  # the machine has no more watches to give
                return self._blind(error)

    def _blind(self, error: OSError) -> None:
        self._say(f"changes of {self._folder} are not seen ({error}): send SIGHUP after one")

    def _folders(self) -> tuple[Path, ...]:
        """What is to be watched: folders that come or go are a change of the first."""
        return self._folder, *(path for name in FOLDERS if (path := self._folder / name).is_dir())

    async def _watch(self, folders: tuple[Path, ...]) -> None:
        """Read after each change, and once when the watch has begun, for as long as these are the folders."""
        watch = awatch(
            *folders,
            watch_filter=self._is_ours,
            debounce=SETTLE,
            rust_timeout=BEGUN,
            stop_event=self._ending,
            yield_on_timeout=True,
            recursive=False,
        )
        seen = False
        async for changes in watch:
            if changes or not seen:
                await self.reload_files()
                seen = True
                if await anyio.to_thread.run_sync(self._folders) != folders:
                    return

    async def reload_files(self) -> None:
        """Read the files, and adopt what differs; a mistake is told once, and what was good stays in force."""
        try:
            files = await anyio.to_thread.run_sync(user_files.read, self._folder)
        except ConfigErrors as errors:
            self._refuse([str(error) for error in errors.errors])
            return
        fresh, world = files.configuration, self._shepherd.world
        settings = world.settings.model_copy(update={key: getattr(fresh.settings, key) for key in LIVE})
        if settings.isolated != world.settings.isolated:  # the agent server was made for where agents work now
            worker = settings.worker.model_copy(update={"workspace": world.settings.worker.workspace})
            settings = settings.model_copy(update={"worker": worker})
        facts: list[Adopted] = []
        runners = {agent.runner.type for agent in fresh.agents.agents if not agent.is_human}
        # an agent is of a runner that comes with the next start only
        another = any(fresh.settings.runners.kind(name) != world.settings.runners.kind(name) for name in runners)
        for kind, name, wanted, known in (
            ("settings", "config", settings, world.settings),
            ("agents", "agents", world.agents if another and world.agents else fresh.agents, world.agents),
            ("policies", "policies", fresh.policies, world.policies),
        ):
            if wanted != known:
                facts.append(await adopted(fresh, self._shepherd.blobs, kind, wanted.model_dump_json(), name))
        prompts = await adopted_templates(files.templates, self._shepherd.blobs)
        if prompts.text != world.files.prompts:
            facts.append(prompts)
        later = [key for key in type(settings).model_fields if getattr(settings, key) != getattr(fresh.settings, key)]
        self._shepherd.tell(*facts, lambda world: [EditMended()] if world.files.refused else [])
        if facts:
            self._say(f"read again, and in force now: {', '.join(fact.kind for fact in facts)}")
        elif self._refused:
            self._say("read again, and nothing is wrong any more: what is in force stays so")
        self._refused = False
        message = f"config.yaml: {', '.join(later)}{', and with them agents.yaml,' if another else ''}"
        self._tell(*([f"{message} will count from the next start"] if later else []))

    def _refuse(self, problems: list[str]) -> None:
        fact = EditRefused(tuple(problems[:KEPT]), len(problems[KEPT:]))
        self._shepherd.tell(lambda world: _refused(world, fact))
        self._refused = True
        self._tell(*problems, "the configuration stays as it was")

    def _tell(self, *lines: str) -> None:
        if lines != self._told:
            for line in lines:
                self._say(line)
        self._told = lines

    def _is_ours(self, _: Change, path: str) -> bool:
        place = Path(path)
        if place.parent == self._folder:
            return place.name in (*FILES, *FOLDERS)
        return place.parent.name in FOLDERS and not place.name.startswith(".")


def _refused(world: World, fact: EditRefused) -> list[Fact]:
    known = world.files.refused
    return [] if known is not None and (known.problems, known.more) == (fact.problems, fact.more) else [fact]
