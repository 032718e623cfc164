"""The program bd, as a process that takes its time, lies and is killed; and the real adapter over it.

Every lie is a kind of `chaos.torture.chaos`, which cites the line of the facts that it comes from.
"""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import anyio

from ashep.adapters.beads.command import Bd, TimedOut
from ashep.adapters.beads.tracker import BeadsTracker
from ashep.adapters.system.programs import Finished
from ashep.redaction import Redaction
from chaos.torture.loop import START
from chaos.torture.store import Row

if TYPE_CHECKING:
    from chaos.torture.life import Life

TIMEOUT = 30.0
WRITES = ("update", "comment", "create", "heartbeat", "reclaim")
HELP = Finished(0, b"Usage:\n  bd [command]\n", b"")

Standing = tuple[str, str | None]


@dataclass(eq=False)
class Process:
    """One bd."""

    life: "Life"
    actor: str
    arguments: tuple[str, ...]
    stdin: str | None
    done: anyio.Event = field(default_factory=anyio.Event)
    answer: Finished | None = None
    killed: bool = False
    asked: datetime = START
    shown: dict[str, Standing] = field(default_factory=dict[str, Standing])

    async def run(self) -> None:
        """Wait for the store, do it, and say so."""
        world, command = self.life.world, self.arguments[0]
        dice = world.dice.of("bd")
        wait, rest = dice.uniform(0.02, 0.15), dice.uniform(0.02, 0.15)
        if world.dice.roll("bd_slow", 0.08):
            wait = world.dice.of("bd_slow").choice((1.0, 4.0, 16.0))
        await anyio.sleep(wait)
        if self.killed:
            return
        self.answer = self._lie(command)
        await anyio.sleep(rest)
        if not self.killed and self.answer is not None:
            self.done.set()

    def _lie(self, command: str) -> Finished | None:
        roll, tell = self.life.world.dice.roll, self.life.world.tell
        writes = command in WRITES
        for kind, chance, answer in (
            ("bd_hangs", 0.004, None),
            ("bd_killed", 0.02, Finished(-9, b"", b"")),
            ("bd_fails", 0.02, Finished(1, b"", b"Error: dolt: something nobody has seen before\n")),
            ("bd_help", 0.02, HELP),
            ("bd_gate", 0.02, _gate(command)),
        ):
            if roll(kind, chance):
                tell(f"{kind}: bd {' '.join(self.arguments)[:120]}")
                return answer
        answer = self._execute()
        for kind, chance in (("bd_killed_late", 0.05), ("bd_fails_late", 0.05), ("bd_cut", 0.05)):
            if writes and roll(kind, chance):
                tell(f"{kind}: bd {' '.join(self.arguments)[:120]}")
                cut = Finished(0, answer.stdout[: len(answer.stdout) // 2], b"")
                late = {"bd_killed_late": Finished(-9, b"", b""), "bd_cut": cut}
                return late.get(kind, Finished(1, b"", b"Error: commit: cannot tell what happened\n"))
        return answer

    def _execute(self) -> Finished:
        world, store = self.life.world, self.life.world.store
        command, issue = self.arguments[0], self.arguments[1] if len(self.arguments) > 1 else ""
        if command == "update" and world.dice.roll("people_between", 0.06):
            world.people.act_between(issue)
        row = store.rows.get(issue)
        before = None if row is None else (row.standing, row.by, frozenset(row.labels), dict(row.stamp))
        answer = store.run(self.actor, self.arguments, self.stdin)
        if answer.returncode == 0 and command in WRITES:
            world.laws.landed(self, before)
        self.shown = {found.id: found.standing for found in self._rows(command, issue)}
        return answer

    def _rows(self, command: str, issue: str) -> list[Row]:
        store = self.life.world.store
        if command in ("list", "ready"):
            return list(store.rows.values())
        row = store.rows.get(issue)
        return [row] if row is not None and command in ("show", "update") else []


def _gate(command: str) -> Finished:
    text = b"a maintenance operation is running on this workspace; retry when it completes"
    return Finished(1, b'{"error":"' + text + b'"}', b"") if command == "ready" else Finished(1, b"", text)


class SimulatedBd(Bd):
    """Starts processes in the simulated world."""

    def __init__(self, life: "Life", actor: str) -> None:
        super().__init__(Path("/p"), ("bd",), actor, TIMEOUT, Redaction())
        self.life = life

    async def argv(self, *arguments: str) -> list[str]:
        """Nothing is looked for: the program is a simulated one."""
        return list(arguments)

    async def _run(self, argv: list[str], stdin: bytes | None, take: Callable[[bytes], None] | None) -> Finished:
        life, world = self.life, self.life.world
        life.reach(f"bd {argv[0]} asked")
        process = Process(life, self.actor, tuple(argv), None if stdin is None else stdin.decode())
        process.asked = world.clock.now()
        world.calls.append(process)
        world.spawn(process.run)
        try:
            with anyio.move_on_after(TIMEOUT):
                await process.done.wait()
        finally:
            # whoever stops waiting kills it; only a killed ashep can do nothing about it
            if not process.done.is_set() and not (life.dead and world.leaves_orphans(life)):
                process.killed = True
        life.reach(f"bd {argv[0]} answered")
        if process.killed or process.answer is None:
            raise TimedOut(f"bd had not ended after {TIMEOUT:g} s; it was killed")
        world.laws.read(self.actor, process.shown)
        if take is not None:
            take(process.answer.stdout)
            return replace(process.answer, stdout=b"")
        return process.answer


class SimulatedTracker(BeadsTracker):
    """The real adapter."""

    def __init__(self, life: "Life", actor: str) -> None:
        super().__init__(Path("/p"), ("bd",), actor, TIMEOUT)
        self._bd = SimulatedBd(life, actor)
        self._life = life
        self._changed = anyio.Event()
        life.world.watchers.append(self)

    async def settle(self) -> None:
        """End the processes that an earlier life left."""
        self._life.reach("processes asked")
        for process in self._life.world.calls:
            process.killed |= process.actor == self.actor and process.life is not self._life
        self._life.world.calls.clear()

    def note(self, actor: str) -> None:
        """Something was written by somebody."""
        if actor != self.actor and not self._life.dead:
            self._changed.set()

    async def hints(self) -> AsyncIterator[None]:
        """Hint at changes, as the watch of the real adapter does, and lie about it."""
        dice = self._life.world.dice
        if dice.on("hints_none"):
            return
        while True:
            await self._changed.wait()
            self._changed = anyio.Event()
            if dice.roll("hints_lost", 0.5):
                continue
            if dice.roll("hints_late", 0.5):
                await anyio.sleep(dice.of("hints_late").random())
                yield
            yield
