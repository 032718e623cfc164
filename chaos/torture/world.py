"""The world of one story: its clock, disk, tracker, server, agents and people, and what becomes of the daemon in it."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import yaml
from anyio.abc import TaskGroup

from ashep.config import Configuration, load, write_starter
from ashep.core.analysis.issue_status import account
from ashep.core.delivery.workspaces import waits_for_person
from ashep.core.state.world import World as Known
from ashep.extras.simulation.memory.work_tree import MemoryTree
from chaos.torture import landing
from chaos.torture.agents import Agents
from chaos.torture.bd import Process, SimulatedTracker
from chaos.torture.chaos import Dice
from chaos.torture.disk import Disk
from chaos.torture.laws import RIVAL, Laws
from chaos.torture.life import ACTOR, Life
from chaos.torture.loop import LIFE, TortureLoop, WorldClock
from chaos.torture.orders import Orders
from chaos.torture.people import People
from chaos.torture.server import Server
from chaos.torture.store import Store

PATIENCE = 4 * 3600.0
"""Virtual seconds in which everything must have come to rest after the chaos."""

IMPLEMENT: dict[str, Any] = {"name": "implement", "access": "write", "timeout": "3m", "retry": {"max_attempts": 2}}
REVIEW: dict[str, Any] = {
    "name": "review", "access": "read", "timeout": "3m", "verdicts": ["approve", "needs_changes"],
    "next": {"approve": "sign_off", "needs_changes": "implement"},
}  # fmt: skip
LOOKED_INTO: dict[str, Any] = {"stall": {"after": "1m", "tool_timeout": "90s", "action": "diagnose"}}
SIGN_OFF: dict[str, Any] = {
    "name": "sign_off",
    "human": {"ask": "Fine?", "deadline": "2h", "changes_requested": "implement"},
}
FIRST: dict[str, Any] = {
    "name": "sign_on",
    "human": {"ask": "Begin?", "deadline": "2h", "approved": "implement", "changes_requested": "sign_on"},
}
POLICIES: tuple[tuple[list[dict[str, Any]], dict[str, Any], str], ...] = (
    ([IMPLEMENT, REVIEW, SIGN_OFF], {}, ""),
    ([IMPLEMENT | LOOKED_INTO], {"limits": {"max_runs": 4}, "takeover": {"action": "resume", "cooldown": "2m"}}, ""),
    (
        [IMPLEMENT, REVIEW | {"session": "reuse"}, SIGN_OFF],
        {"takeover": {"action": "review"}},
        "worker: {max_concurrent_runs: 1}\n",
    ),
    (
        [IMPLEMENT | {"session": "reuse"}, SIGN_OFF],
        {"limits": {"max_depth": 0}, "takeover": {"action": "resume"}},
        "worker: {lock_work_tree: false}\n",
    ),
    ([FIRST, IMPLEMENT], {"takeover": {"action": "pause", "cooldown": "5m"}}, ""),
)

ASKING = """questions: {deadline: 90s}
permissions:
  - {tool: bash, pattern: "npm *", action: ask}
  - {tool: webfetch, action: allow}
"""


@cache
def configuration(number: int, mode: str = "", verifies: bool = False, apart: bool = False) -> Configuration:
    """The configuration of a kind of story: read once, for that costs more than a life. `mode`: how work lands that is
    done in trees of issues' own; empty: all work in one.
    """
    phases, more, config = POLICIES[number]
    if mode:
        phases, more = landing.phases(phases, verifies=verifies), landing.limits(more)
    match = {"types": ["task", "bug", "feature", "chore"]}
    policy = {"version": 1, "default_policy": None, "policies": {"standard": {"match": match, "phases": phases} | more}}
    with TemporaryDirectory() as folder:
        write_starter(Path(folder))
        Path(folder, "policies.yaml").write_text(yaml.safe_dump(policy, sort_keys=False))
        Path(folder, "config.yaml").write_text(f"version: 1\n{ASKING}{config}")
        read = load(Path(folder))
    if mode:
        keep = timedelta(minutes=1) if number % 2 else timedelta(days=7)  # within the story, or long after it
        return replace(read, settings=landing.with_landing(read.settings, mode, keep, apart=apart))
    worker = read.settings.worker.model_copy(update={"workspace": "shared"})
    return replace(read, settings=read.settings.model_copy(update={"worker": worker}))


class World:
    """Everything outside of the daemon, which outlives it."""

    def __init__(self, dice: Dice, root: Path) -> None:
        self.dice, self.root, self.state = dice, root, root / "state"
        self.clock = WorldClock()
        self.loop: TortureLoop = asyncio.get_running_loop()  # pyright: ignore[reportAttributeAccessIssue]
        self.loop.order = dice.of("order") if dice.on("order") else None
        self.story: list[tuple[float, datetime, object]] = []
        self.actor = ACTOR
        self.laws = Laws(self)
        self.disk = Disk(root)
        self.store = Store(self.clock.now)
        self.store.changed = self._changed
        self.watchers: list[SimulatedTracker] = []
        self.calls: list[Process] = []
        """What was started of bd since the last start."""
        self.tree = MemoryTree()
        self.tree.write("calc.py", "1")
        self.tree.write("notes.md", "1")
        self.tree.commit("first")
        self.agents = Agents(dice)
        self.server = Server(self)
        self.people = People(self)
        number = dice.of("policy").randrange(len(POLICIES))
        owns = dice.of("workspace").random() < 0.3 or landing.has_own(dice.seed)
        self.own = landing.Repository(self) if owns else None
        """Where issues have work trees of their own."""
        self.configuration = configuration(
            number, *((self.own.mode, self.own.verifies, self.own.apart) if self.own else ())
        )
        self.orders = Orders(self)
        self.phases_of_policy = self.configuration.policies.policies["standard"].phases
        self.phases = [str(phase["name"]) for phase in POLICIES[number][0]]
        self.group: TaskGroup
        self.life: Life | None = None
        self._awake = anyio.Event()
        """Set where no process is stopped."""
        self._awake.set()
        self.lives = 0

    @property
    def known(self) -> Known:
        """What the present daemon knows."""
        return self.life.known if self.life else Known()

    def tell(self, what: object) -> None:
        """Note what happens, for the story: a text, or an entry of the journal."""
        self.story.append((self.loop.time(), self.clock.now(), what))

    def spawn(self, main: Callable[[], Awaitable[object]]) -> None:
        """Start something that belongs to no daemon."""

        async def outside() -> None:
            LIFE.set(None)
            await main()

        self.group.start_soon(outside)

    def _changed(self, actor: str) -> None:
        for watcher in self.watchers:
            watcher.note(actor)

    def leaves_orphans(self, life: Life) -> bool:
        """Whether the bds of a killed ashep go on alone."""
        if life.orphans is None:
            life.orphans = self.dice.roll("bd_orphan", 0.5)
        return life.orphans

    def edit(self, run: str) -> None:
        """An agent edits the work tree that it is in."""
        if self.own is not None:
            self.own.edit(run)
            return
        self.tree.write("calc.py", run)
        if self.dice.of("edit").random() < 0.7:
            self.tree.commit(f"work of {run}", run)

    # --- the story ---

    async def play(self) -> None:
        """Chaos first, then calm: everything must come to rest, and in the end to its end."""
        dice = self.dice.of("story")
        for number in range(dice.randint(1, 3)):
            self.store.add(f"issue {number}", priority=dice.randint(0, 3))
        async with anyio.create_task_group() as self.group:
            self.spawn(self.people.act)
            if self.own is not None:
                self.own.begin()
            self.spawn(self._trouble)
            await self._chaos(self.loop.time() + dice.choice((20, 50, 100, 200, 400)))
            await self._calm()
            self.group.cancel_scope.cancel()

    async def _chaos(self, end: float) -> None:
        dice = self.dice.of("crash")
        soon = False
        while self.loop.time() < end and not self.laws.bad:
            crash_at = None
            if soon and self.dice.on("crash_again") and dice.random() < 0.5:
                crash_at = dice.randint(1, 90)
            elif self.dice.on("crash") or self.dice.on("power"):
                crash_at = int(2 ** dice.uniform(0, 11))
            life = self._start(crash_at)
            with anyio.move_on_after(min(end - self.loop.time(), self._term())):
                await life.over.wait()
            if self.loop.time() >= end:
                await self._awake.wait()  # a stopped process sleeps as long as it sleeps
            if self.loop.time() < end or dice.random() < 0.6:
                await self._end(life)
                await anyio.sleep(dice.choice((0.05, 1.0, 5.0, 20.0)))
            soon = True

    def _term(self) -> float:
        """How long a life may last before it is stopped in order."""
        return self.dice.of("stop").uniform(10, 200) if self.dice.on("stop") else 3600.0

    def _start(self, crash_at: int | None) -> Life:
        self.lives += 1
        self.life = life = Life(self, self.lives, crash_at)
        self.group.start_soon(life.run)
        return life

    async def _end(self, life: Life) -> None:
        """Stop it in order, or, where it is dead already, let the power go off with it."""
        if not life.over.is_set():
            self.loop.continue_life(life)
            if self.dice.of("crash").random() < 0.6:
                self.tell("ashep is told to stop")
                life.leave.set()
                with anyio.move_on_after(60):
                    await life.over.wait()
            if not life.over.is_set():
                life.end("killed")
        await life.over.wait()
        killed = life.why.startswith("killed")
        if killed and self.dice.on("power") and (not self.dice.on("crash") or self.dice.of("power").random() < 0.5):
            life.orphans = False
            self.server.kill()
            self.tell(f"the power fails: {self.disk.cut(self.dice.of('power'))}")
        if self.dice.roll("state_lost", 0.3):
            self.tell("the state folder is deleted")
            self.laws.forget()
            self.disk.delete(self.state)
        self.watchers.clear()
        self.server.listeners.clear()

    async def _trouble(self) -> None:
        """What happens to the machine and the server by itself."""
        async with anyio.create_task_group() as group:
            for kind, mean, act in (
                ("server_killed", 40, self._kill_server),
                ("clock", 60, self._set_clock),
                ("suspend", 40, self._suspend),
                ("paused", 60, self._pause),
                ("bd_damaged", 60, self._damage),
                ("git", 60, self._touch),
                ("rival", 8, self._rival),
                ("server_leaks", 40, self._leak),
                ("server_wedged", 60, self._wedge),
                ("server_broken", 60, self._break_server),
                ("hand_pauses", 40, self.orders.pause),
                ("hand_cancels", 60, self.orders.cancel),
                ("files_change", 50, self.orders.edit),
                *(
                    (("base_moves", 15, self.own.move), ("base_dirty", 40, self.own.work_in_checkout))
                    if self.own
                    else ()
                ),
                *((("forge_away", 60, self.own.site.fail),) if self.own and self.own.site else ()),
            ):
                if self.dice.on(kind):
                    group.start_soon(self._now_and_then, kind, mean, act)

    async def _now_and_then(self, kind: str, mean: float, act: Callable[[], Awaitable[None]]) -> None:
        dice = self.dice.of(kind)
        while not self.dice.calm:
            await anyio.sleep(dice.expovariate(1 / mean))
            if not self.dice.calm:
                await act()

    async def _kill_server(self) -> None:
        self.server.kill()

    async def _leak(self) -> None:
        self.server.used = self.dice.of("server_leaks").choice((3, 5, 5, 9)) * 1024**3
        self.tell(f"the agent server has grown to {self.server.used >> 30} GiB")

    async def _wedge(self) -> None:
        self.server.wedged = self.server.sessions.up
        self.tell("the agent server does not answer any more")

    async def _break_server(self) -> None:
        self.tell("the agent server ends at its start from now on")
        self.server.broken = True
        await anyio.sleep(self.dice.of("server_broken").choice((5, 30, 120)))
        self.server.broken = False

    async def _set_clock(self) -> None:
        seconds = self.dice.of("clock").choice((-7200, -90, -30, 30, 90, 7200))
        self.tell(f"the wall clock is set by {seconds} s")
        self.clock.jump(timedelta(seconds=seconds))

    async def _suspend(self) -> None:
        seconds = self.dice.of("suspend").choice((70, 900, 40000))
        self.tell(f"the machine slept {seconds} s")
        self.clock.jump(timedelta(seconds=seconds))

    async def _pause(self) -> None:
        life = self.life
        if life is None or life.dead:
            return
        dice = self.dice.of("paused")
        seconds = dice.choice((5, 40, 200, 1500) if dice.random() < 0.5 else (1500,))
        if seconds == 1500:  # in the midst of a turn, and long enough for another daemon to take the issue over
            while not any(session.turn for session in self.server.sessions.all.values()) and not self.dice.calm:
                await anyio.sleep(0.5)
        if life is not self.life or life.dead or self.dice.calm:
            return
        self.tell(f"SIGSTOP for {seconds} s")
        self._awake = anyio.Event()
        self.loop.stop_life(life)
        with anyio.move_on_after(seconds):
            await life.over.wait()
        self.loop.continue_life(life)
        self._awake.set()
        self.tell("SIGCONT")

    async def _damage(self) -> None:
        self.tell("bd's data file is cut short")
        self.store.damaged = True
        await anyio.sleep(self.dice.of("bd_damaged").uniform(1, 60))
        self.store.damaged = False
        self.tell("bd's data file is whole again")

    async def _rival(self) -> None:
        """Another daemon frees what nobody keeps alive, works on it for a while, and gives it back."""
        free = {row.id for row in self.store.rows.values() if row.status == "in_progress"}
        self.store.run(RIVAL, ("reclaim", "--older-than=10m"))
        for issue in sorted(free & self.store.rows.keys()):
            if self.store.rows[issue].standing == ("open", None):
                self.tell(f"{RIVAL} takes {issue} over")
                self.store.run(RIVAL, ("update", issue, "--claim"))
        await anyio.sleep(self.dice.of("rival").choice((20, 90, 900, 900)))
        for row in self.store.rows.values():
            if row.assignee == RIVAL:
                self.store.set(row.id, RIVAL, status="open", assignee="")

    async def _touch(self) -> None:
        self.tell("a person edits notes.md")
        self.tree.write("notes.md", f"{self.loop.time()}")
        await anyio.sleep(self.dice.of("git").uniform(5, 60))
        self.tree.commit("a person's notes")

    # --- the end ---

    async def _calm(self) -> None:
        self.dice.calm = True
        self.server.broken = False
        self.orders.go_on()
        self.store.damaged = False
        self.tree.commit("a person's notes")
        if self.own is not None:
            self.own.calm()
        self.tell("--- the chaos is over ---")
        if self.laws.bad:
            return
        if self.life is not None:
            self.loop.continue_life(self.life)
        if self.life is None or self.life.dead:
            self._start(None)
        await self._rest("comes to rest")
        self.laws.at_rest(await self.life.audit() if self.life else ())
        if not self.laws.bad:
            self.people.put_right()
            if self.own is not None:
                self.own.put_right()
            await self._rest("comes to its end", closed=True)
            self.laws.audited(await self.life.audit() if self.life else ())
        if self.life is not None:
            self.life.crash_at = None  # killed at its last word it would know less than its journal, and may
            self.life.leave.set()
            await self.life.over.wait()
        if not self.laws.bad:
            self.laws.at_end()

    async def _rest(self, what: str, *, closed: bool = False) -> None:
        """Wait until nothing more can happen by itself, or until patience ends."""
        end, still = self.loop.time() + PATIENCE, 0
        while still < 5:  # a look comes every 10 s at the latest, every 30 s where hints work
            await anyio.sleep(8)
            still = still + 1 if self._rests(closed=closed) else 0
            if self.life is None or self.life.dead:
                self._start(None)  # what made it end is over
            self.orders.go_on()
            if self.loop.time() > end:
                self.laws.broken(f"everything {what}", self.laws.standing())
                return

    def _rests(self, *, closed: bool) -> bool:
        known, rows = self.known, self.store.rows
        if closed and any(row.status != "closed" for row in rows.values()):
            return False
        if any(row.assignee == RIVAL for row in rows.values()):
            return False  # it gives back what it holds
        if known.tracker_error or not set(rows) <= {
            *known.flows,
            *(r.id for r in rows.values() if r.status == "closed"),
        }:
            return False
        live = [issue for issue in known.indexes.live if not waits_for_person(known, known.flows[issue])]
        return all(map(self._issue_rests, known.flows)) and not live

    def _issue_rests(self, issue: str) -> bool:
        """Whether only a person can make it go on; what waits for a paused issue's work tree waits for that person."""
        known = self.known
        told, flow = account(known, issue), known.flows[issue]
        tree = flow.work.own.rest.due if flow.work.own is not None and flow.work.own.rest is not None else None
        if known.indexes.dues.get(issue, tree) != tree or flow.open or flow.look_again:
            return False  # that a closed issue's tree goes in a week is no news of it
        if flow.takeover is not None and flow.takeover.fresh_after:
            return False  # a server that starts will say whether people are done in its sessions
        if told.code == "branch":
            return True  # whoever is at work on it does not rest
        lock_paused = known.lock is not None and account(known, known.lock).code == "paused"
        waits = told.code == "paused" or (told.code == "work_tree" and lock_paused)
        return told.state in ("closed", "parked", "not_eligible") or waits
