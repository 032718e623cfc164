"""One night, by a seed: what becomes of the daemon, its tools, its people."""

import json
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import anyio

from ashep.config import write_starter
from ashep.core.analysis.issue_status import account
from ashep.core.facts.resources import DaemonStopped
from ashep.core.facts.runs import Refusal
from ashep.daemon.control import Control
from ashep.daemon.daemon import RunningDaemon
from ashep.daemon.reload import Reload
from ashep.errors import RunnerUnavailable, TrackerUnavailable
from ashep.extras.simulation.memory.runner import MemoryRunner
from ashep.ports.runner import Turn
from chaos.night import scene
from tests.loop_world import Crash, Points, World

EVENING = datetime.fromisoformat("2026-01-01T20:00:00+00:00")
CHAOS = timedelta(hours=10)
"""How long things go wrong."""
PATIENCE = timedelta(hours=30)
"""In which everything must have come to rest after that: a budget of the day may be used up."""

AT_REST = ("closed", "person", "parked")
OTHERS = ("excluded", "assigned", "dependencies", "status", "status_changed", "paused", "parked_label")
"""Codes of issues that are people's, or wait for another issue: `status` in the morning tells of them, too."""

CALLS = ("look", "issue", "claim", "update", "comment", "commented", "changes", "relabel", "heartbeat", "create")


class Growing(MemoryRunner):
    """An agent server that tells what a running turn has used so far."""

    async def turn(self, session: str, message_id: str, ours: frozenset[str] = frozenset()) -> Turn:
        """Read a turn."""
        turn = await super().turn(session, message_id, ours)
        if turn.state != "running":
            return turn
        works = [m.work for m in self.sessions[session].messages if m.id == message_id and m.work is not None]
        if not works or works[0].ends is None:
            return turn
        passed = (self._clock.now() - works[0].began) / max(works[0].ends - works[0].began, timedelta(seconds=1))
        share = min(max(passed, 0.0), 1.0)
        play = works[0].play
        return replace(turn, tokens=int(play.tokens * share), cost=round(play.cost * share, 6))


@dataclass
class Told:
    """What really happened, for the one who looks at the night in the morning."""

    lives: int = 0
    crashes: int = 0
    takeovers: int = 0
    server_deaths: int = 0
    happened: Counter[str] = field(default_factory=Counter[str])


class Night:
    """A night."""

    def __init__(self, folder: Path, seed: int, issues: int) -> None:
        self.seed, self.count = seed, issues
        write_starter(folder)
        (folder / "agents.yaml").write_text(scene.agents())
        self.world = World(folder, seed=seed, policies=scene.policies(), config=scene.config(), begins=EVENING)
        self.agents = scene.Agents(seed)
        self.world.runner = Growing(self.world.clock, self.agents.play, models=scene.MODELS)
        self.told = Told()
        self.running: RunningDaemon | None = None
        self.calm = False
        self.hours = CHAOS.total_seconds() * min(1.0, max(0.2, issues / 200))
        """Seconds of chaos: fewer issues are through sooner."""

    def dice(self, name: str) -> random.Random:
        """Dice of this name."""
        return random.Random(f"{self.seed}/{name}")

    # --- the story ----------------------------------------------------------------------------------------------------

    async def live(self) -> None:
        """Live the night, and the morning after it."""
        self._fill()
        end = self.world.clock.monotonic() + self.hours
        async with anyio.create_task_group() as group:
            for act in (
                self._answers, self._acts, self._takes_over, self._commands, self._reloads, self._server_dies,
                self._server_leaks, self._server_is_away, self._providers_refuse, self._tracker_fails,
                self._pager_fails,
            ):  # fmt: skip
                group.start_soon(act)
            while self.world.clock.monotonic() < end:
                await self._life(end)
            self.calm = True
            self._repair()
            group.cancel_scope.cancel()
        await self._life(None)

    def _fill(self) -> None:
        dice, tracker = self.dice("issues"), self.world.tracker
        names: list[str] = []
        for number in range(self.count):
            blocked_by = tuple(dice.sample(names, 1)) if names and dice.random() < 0.08 else ()
            labels = (f"team:{dice.choice(scene.TEAMS)}",)
            kind, priority = dice.choice(("task", "task", "bug")), dice.randint(0, 4)
            text = f"issue {number} äöü \x1b[31m"
            names.append(tracker.add(text, type=kind, priority=priority, labels=labels, blocked_by=blocked_by))

    async def _life(self, end: float | None) -> None:
        """One life of the daemon: until it crashes, is stopped, or (in the morning) everything has come to rest."""
        dice = self.dice(f"life {self.told.lives}")
        self.told.lives += 1
        crashes = end is not None and dice.random() < 0.7
        points = Points(int(2 ** dice.uniform(7, 14)) if crashes else None)
        lasts = dice.uniform(900, 9000)
        try:
            async with self.world.living(points) as running:
                self.running = running
                if end is None:
                    await self._rest(running)
                else:
                    with anyio.move_on_after(min(lasts, end - self.world.clock.monotonic())):
                        await anyio.sleep_forever()
                    await running.auditor.last()
                if end is None or dice.random() < 0.7:
                    await running.shepherd.stop("asked to")
        except BaseExceptionGroup as group:
            crashed, others = group.split(Crash)
            if others is not None or crashed is None:
                raise
            self.told.crashes += 1
        finally:
            self.running = None
        await anyio.sleep(dice.choice((1.0, 20.0, 400.0)) if end is not None else 0.0)

    async def _rest(self, running: RunningDaemon) -> None:
        await Control(running.shepherd).answer(json.dumps({"do": "resume", "by": "pat"}).encode())
        with anyio.move_on_after(PATIENCE.total_seconds()) as waited:
            while self.restless():
                await running.shepherd.changed()
            while self.world.world.notices.wanted:
                await running.shepherd.changed()
        assert not waited.cancelled_caught, "not at rest:\n" + "\n".join(self.restless())

    def restless(self) -> list[str]:
        """The issues that are neither closed, nor wait for people or another issue, nor are parked."""
        known = self.world.world
        stands = [account(known, issue) for issue in known.flows]
        found = [
            f"{one}" for one in stands
            if one.state not in AT_REST and not (one.state == "not_eligible" and one.code in OTHERS)
        ]  # fmt: skip
        missing = [name for name in self.world.issues() if name not in known.flows]
        busy = [issue for issue in known.indexes.unclosed if known.flows[issue].busy]
        return [*found, *(f"{name} is not known" for name in missing), *(f"{name} is busy" for name in busy)]

    # --- people -------------------------------------------------------------------------------------------------------

    async def _answers(self) -> None:
        """Pat answers most questions, some never, and sets some parked issues free."""
        dice, tracker = self.dice("answers"), self.world.tracker
        while True:
            await anyio.sleep(dice.uniform(200, 1200))
            for name, issue in sorted(self.world.issues().items()):
                if self.dice(f"never {name}").random() < 0.25 or issue.status == "closed":
                    continue
                if "needs:human_approval" in issue.labels and dice.random() < 0.6:
                    answer = "human:approved" if dice.random() < 0.8 else "human:changes_requested"
                    tracker.person_sets(name, "pat", add_labels=(answer,))
                    self.told.happened["answered"] += 1
                elif "needs:human_input" in issue.labels and dice.random() < 0.6:
                    tracker.person_comments(name, "pat", dice.choice(("@ashep yes", "@ashep first", "@ashep no")))
                    self.told.happened["answered an agent"] += 1
                elif "ashep:paused" in issue.labels and dice.random() < 0.2:
                    tracker.person_sets(name, "pat", remove_labels=("ashep:paused",))
                    self.told.happened["released"] += 1
                elif "ashep:parked" in issue.labels and dice.random() < 0.15:
                    tracker.person_sets(name, "pat", remove_labels=("ashep:parked",))
                    self.told.happened["set free"] += 1

    async def _acts(self) -> None:
        """People close, exclude, take, comment on and add issues."""
        dice, tracker = self.dice("acts"), self.world.tracker
        while True:
            await anyio.sleep(dice.uniform(600, 2400))
            names = sorted(name for name, issue in self.world.issues().items() if issue.status != "closed")
            if not names:
                continue
            name = dice.choice(names)
            act = dice.choice(("close", "exclude", "assign", "comment", "comment", "add", "add", "priority"))
            match act:
                case "close":
                    tracker.person_sets(name, "sam", status="closed")
                case "exclude":
                    tracker.person_sets(name, "sam", add_labels=("ashep:excluded",))
                case "assign":
                    tracker.person_sets(name, "sam", assignee="sam")
                case "comment":
                    tracker.person_comments(name, "sam", "a thought")
                case _:
                    tracker.add(f"added in the night {dice.random():.6f}", priority=1, labels=("team:green",))
            self.told.happened[act] += 1

    async def _takes_over(self) -> None:
        """Twice somebody writes in a session that is at work."""
        dice = self.dice("takeovers")
        while self.told.takeovers < 2:
            await anyio.sleep(dice.uniform(0.1, 0.2) * self.hours)
            while not self._write():
                await anyio.sleep(10)
            self.told.takeovers += 1

    def _write(self) -> bool:
        now, runner = self.world.clock.now(), self.world.runner
        for session in sorted(runner.sessions.values(), key=lambda one: one.id, reverse=True):
            work = session.messages[-1].work if session.messages else None
            if work is not None and work.active(now) and work.ends is not None and self.running is not None:
                runner.person_writes(session.id, "let me", delay=30.0)
                return True
        return False

    async def _commands(self) -> None:
        """Somebody pauses, resumes, drains, cancels."""
        dice = self.dice("commands")
        while True:
            await anyio.sleep(dice.uniform(0.05, 0.12) * self.hours)
            live = sorted(self.world.world.indexes.live)
            until = (self.world.clock.now() + timedelta(seconds=dice.uniform(300, 2400))).isoformat()
            asked: dict[str, Any] = dice.choice((
                {"do": "pause", "until": until, "why": "lunch"},
                {"do": "pause", "provider": "globex", "until": until},
                {"do": "pause", "drain": True, "until": until},
                {"do": "resume"},
                {"do": "cancel", "target": dice.choice(live)} if live else {"do": "resume"},
            ))  # fmt: skip
            if await self._ask(lambda running, asked=asked: self._control(running, asked)):
                self.told.happened[asked["do"]] += 1

    async def _control(self, running: RunningDaemon, asked: dict[str, Any]) -> None:
        await Control(running.shepherd).answer(json.dumps(asked | {"by": "pat"}).encode())

    async def _reloads(self) -> None:
        """The files change: less room, more budget, nonsense."""
        dice = self.dice("reloads")
        for text in (scene.config(runs=3), "nonsense: [", scene.config(runs=6, warn_at=0.5), scene.config(day=60.0)):
            await anyio.sleep(dice.uniform(0.15, 0.25) * self.hours)
            (self.world.folder / "config.yaml").write_text(text)
            if await self._ask(self._reload):
                self.told.happened["reloaded"] += 1

    async def _reload(self, running: RunningDaemon) -> None:
        await Reload(self.world.folder, running.shepherd, self.world.said.append).reload_files()

    async def _ask(self, what: Callable[[RunningDaemon], Awaitable[None]]) -> bool:
        """Ask the daemon that runs, if one does; it may die meanwhile."""
        running = self.running
        if running is None:
            return False
        with anyio.move_on_after(60) as waited, suppress(Crash):
            await what(running)
        return not waited.cancelled_caught and running is self.running

    # --- the machine --------------------------------------------------------------------------------------------------

    async def _server_dies(self) -> None:
        dice = self.dice("server")
        while True:
            await anyio.sleep(dice.uniform(0.15, 0.35) * self.hours)
            self.world.runner.kill()
            self.told.server_deaths += 1

    async def _server_leaks(self) -> None:
        """Once in a night the server's memory grows beyond its limit; whoever ends it makes it small again."""
        await anyio.sleep(self.dice("leak").uniform(0.2, 0.6) * self.hours)
        self.world.runner.memory = 3 * 1024**3
        self.told.happened["server leaked"] += 1

    async def _providers_refuse(self) -> None:
        """One provider after the other takes nothing for a while: a limit, an outage."""
        dice = self.dice("providers")
        for model in dice.sample(scene.MODELS, 3):
            await anyio.sleep(dice.uniform(0.05, 0.25) * self.hours)
            lasts = timedelta(seconds=dice.uniform(0.02, 0.15) * self.hours)
            kind = dice.choice(("limited", "limited", "down"))
            again = lasts if kind == "limited" and dice.random() < 0.7 else None
            self.agents.refuses[model.provider] = Refusal(kind, f"429 {kind}", again)
            await anyio.sleep(lasts.total_seconds())
            self.agents.refuses.clear()
            self.told.happened[f"provider {kind}"] += 1

    async def _server_is_away(self) -> None:
        dice = self.dice("away")
        while True:
            await anyio.sleep(dice.uniform(0.25, 0.5) * self.hours)
            self.world.runner.fault = lambda _, when: RunnerUnavailable("no route") if when == "before" else None
            await anyio.sleep(dice.uniform(200, 1500))
            self.world.runner.fault = None
            self.told.happened["server away"] += 1

    async def _tracker_fails(self) -> None:
        dice = self.dice("tracker")
        while True:
            await anyio.sleep(dice.uniform(0.25, 0.5) * self.hours)
            for method in CALLS:
                self.world.tracker.fail(method, TrackerUnavailable("the disk is busy"), times=10_000)
            await anyio.sleep(dice.uniform(60, 900))
            self.world.tracker._failures.clear()  # pyright: ignore[reportPrivateUsage]
            self.told.happened["tracker away"] += 1

    async def _pager_fails(self) -> None:
        dice = self.dice("pager")
        while True:
            await anyio.sleep(dice.uniform(0.1, 0.3) * self.hours)
            self.world.notifier.down["pager"] = "no route to host"
            await anyio.sleep(dice.uniform(0.05, 0.2) * self.hours)
            self.world.notifier.down.clear()
            self.told.happened["pager away"] += 1

    def _repair(self) -> None:
        self.world.runner.fault = None
        self.agents.refuses.clear()
        self.world.tracker._failures.clear()  # pyright: ignore[reportPrivateUsage]
        self.world.notifier.down.clear()
        (self.world.folder / "config.yaml").write_text(scene.config(day=60.0))

    # --- the morning --------------------------------------------------------------------------------------------------

    def stands(self) -> Counter[str]:
        """How many issues stand where."""
        return Counter(account(self.world.world, issue).state for issue in self.world.world.flows)

    def check(self) -> None:
        """What must hold in the morning, beside the report: audit and replay clean, each prompt begun once."""
        assert not self.restless(), self.restless()
        for issue in self.world.world.flows:
            told = account(self.world.world, issue)
            assert told.reason.strip(), f"no reason: {told}"
        assert self.world.runner.memory is None, "a server that leaks is ended"
        deaths = self.told.server_deaths + len(self.world.bodies(DaemonStopped))
        self.world.check(restarts=deaths)
