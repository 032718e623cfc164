"""What people ask the running daemon for, over its socket, and how its files change while it runs."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from ashep.config import Configuration
from ashep.core.policy.budgets import Budgets, ProviderBudget
from ashep.core.policy.settings import Settings
from ashep.daemon.control import Control
from ashep.daemon.daemon import RunningDaemon, adopted
from ashep.journal.writer import Journal

if TYPE_CHECKING:
    from chaos.torture.world import World

PROVIDER = "scripted"


def budgets(world: "World") -> Budgets:
    """Limits, some of which are met: a turn uses 15 tokens a message."""
    dice = world.dice.of("budgets")

    def maybe(*tokens: int) -> ProviderBudget:
        limit = dice.choice((None, *tokens))
        return ProviderBudget(tokens=limit) if limit else ProviderBudget()

    return Budgets(
        warn_at=dice.choice((0.5, 0.8, 1.0)), run=maybe(30, 60), issue=maybe(45, 120), day=maybe(90, 300),
        providers={PROVIDER: maybe(120, 400)}, runs_per_hour=dice.choice((None, 3, 8)),
        writes_per_minute=dice.choice((None, 2, 6)),
    )  # fmt: skip


def with_settings(configuration: Configuration, **sections: Any) -> Configuration:
    """The same files, but for these sections of config.yaml."""
    return replace(configuration, settings=configuration.settings.model_copy(update=sections))


class Orders:
    """People at a terminal beside the daemon."""

    def __init__(self, world: "World") -> None:
        self.world, self.dice = world, world.dice
        self._calm: Configuration = world.configuration
        if self.dice.on("budgets"):
            world.configuration = with_settings(world.configuration, budgets=budgets(world))

    async def pause(self) -> None:
        """Pause, in all or a provider, for a while or until somebody resumes; drain; resume."""
        dice = self.dice.of("hand_pauses")
        until = (self.world.clock.now() + timedelta(seconds=dice.choice((20, 100, 4000)))).isoformat()
        some: tuple[dict[str, Any], ...] = (
            {"do": "pause", "until": until}, {"do": "pause"}, {"do": "pause", "drain": True},
            {"do": "pause", "provider": PROVIDER, "until": until}, {"do": "resume"}, {"do": "resume"},
            {"do": "resume", "provider": PROVIDER},
        )  # fmt: skip
        self._ask(dice.choice(some))

    async def cancel(self) -> None:
        """Cancel an issue, or a run of it."""
        dice, known = self.dice.of("hand_cancels"), self.world.known
        issues = sorted(known.flows)
        if not issues:
            return
        issue = dice.choice(issues)
        run = known.flows[issue].run
        self._ask({"do": "cancel", "target": run.id if run is not None and dice.random() < 0.5 else issue})

    async def edit(self) -> None:
        """The files change: other limits, another number of slots."""
        dice = self.dice.of("files_change")
        worker = self._calm.settings.worker.model_copy(update={"max_concurrent_runs": dice.choice((1, 2, 3))})
        limits = budgets(self.world) if self.dice.on("budgets") and dice.random() < 0.5 else Budgets()
        self.world.configuration = with_settings(self._calm, worker=worker, budgets=limits)
        self.world.tell(f"the files change: {worker.max_concurrent_runs} slots, {limits}")
        self._tell(self._reload)

    def go_on(self) -> None:
        """In the calm nobody pauses any more, and there are no limits; said again until it is heard."""
        self.world.configuration = self._calm
        known = self.world.known
        if any(not pause.lifted for pause in known.pauses):
            self._ask({"do": "resume"})
        if known.policies is not None and _live(known.settings) != _live(self._calm.settings):
            self._tell(self._reload)

    def _ask(self, request: dict[str, Any]) -> None:
        line = json.dumps(request | {"by": "pat"}).encode()
        self.world.tell(f"a person: {request}")

        async def asked(running: RunningDaemon, _: Journal) -> None:
            answer = await Control(running.shepherd).answer(line)
            self.world.tell(f"ashep answers: {answer}")

        self._tell(asked)

    def _tell(self, order: Any) -> None:
        if self.world.life is not None and not self.world.life.dead:
            self.world.life.order(order)

    async def _reload(self, running: RunningDaemon, journal: Journal) -> None:
        fresh = self.world.configuration.settings.model_dump_json()
        running.shepherd.tell(await adopted(self.world.configuration, journal.blobs, "settings", fresh, "config"))


def _live(settings: Settings) -> tuple[object, ...]:
    return settings.worker, settings.budgets
