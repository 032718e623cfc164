"""A night that was lived, and what was wrong with it."""

import hashlib
import random
import secrets
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import anyio
from anyio import to_thread
from anyio._backends._asyncio import CancelScope  # its sets are walked in the order of addresses

from ashep.store.journal_reader import JournalView
from ashep.store.sqlite_reader import open_read_only
from ashep.store.writer import Store
from ashep.views import report
from ashep.views.times import stamp
from chaos.night.night import EVENING, Night, Told
from chaos.night.recount import Recount, compare, records
from chaos.torture.loop import cancelled_in_order
from tests.loop_world import simulate
from tests.places import made as new_folder


@dataclass
class Lived:
    """A night, in the morning."""

    seed: int
    told: Told
    stands: dict[str, int] = field(default_factory=dict[str, int])
    fates: dict[str, int] = field(default_factory=dict[str, int])
    wrong: list[str] = field(default_factory=list[str])
    entries: int = 0
    digest: str = ""
    """Of the journal's records."""
    lines: int = 0
    """Of the report."""
    seconds: float = 0.0

    @property
    def summary(self) -> str:
        """A line about it."""
        stands = ", ".join(f"{count} {state}" for state, count in sorted(self.stands.items()))
        did = ", ".join(f"{count} {what}" for what, count in sorted(self.told.happened.items()))
        fates = ", ".join(f"{count} {what}" for what, count in sorted(self.fates.items()))
        return (
            f"seed {self.seed}: {stands}; {self.told.lives} lives, {self.told.crashes} crashes, "
            f"{self.told.takeovers} takeovers, {self.told.server_deaths} deaths of the server; {did}; turns: {fates}; "
            f"{self.entries} records, {self.lines} lines of the report, {self.seconds:.0f} s"
        )


def lived(seed: int, issues: int) -> Lived:
    """Live a night in memory, where the machine has such a place, and look at what is left of it."""
    place = new_folder("ashep-night")
    found = Lived(seed, Told())
    began = time.monotonic()

    async def scenario() -> None:
        night = Night(place / ".agent-shepherd", seed, issues)
        try:
            await night.live()
            night.check()
        except AssertionError as error:
            found.wrong.append(str(error))
        finally:
            found.told, found.fates, found.stands = night.told, night.agents.fates, night.stands()
        found.wrong += reported(night, found)

    try:
        with same_each_time(seed):
            simulate(scenario)
    finally:
        found.seconds = time.monotonic() - began
        shutil.rmtree(place, ignore_errors=True)
    return found


@contextmanager
def same_each_time(seed: int) -> Iterator[None]:
    """Let nothing but the seed decide: threads, chance, the process, and the order of sets of tasks."""
    dice = random.Random(f"{seed}/secrets")
    with (
        patch.object(to_thread, "run_sync", _here),
        patch.object(secrets, "token_hex", lambda count: dice.randbytes(count).hex()),
        patch("os.getpid", lambda: 4242),
        patch.object(CancelScope, "__init__", cancelled_in_order(CancelScope.__init__)),
    ):
        yield


async def _here(function: Callable[..., Any], *arguments: Any, **_: Any) -> Any:
    await anyio.sleep(0.002)
    return function(*arguments)


def reported(night: Night, found: Lived) -> list[str]:
    """Compare `ashep report` with the raw records: of the whole night, and of its second half."""
    state = night.world.folder / "state"
    Store.open(state, JournalView(state / "journal")).close()
    rows = list(records(state / "journal"))
    found.entries = len(rows)
    # a refused edit names its file, and the folder has another name each time; so have the checksums then
    told = repr([row for row in rows if row["type"] != "Commit"]).replace(str(night.world.folder), "")
    found.digest = hashlib.sha256(told.encode()).hexdigest()
    wrong: list[str] = []
    half = EVENING + (night.world.clock.now() - EVENING) / 2
    with closing(open_read_only(state)) as database:
        for since in (stamp(EVENING), stamp(half)):
            told: Any = report.report(database, since, night.world.clock.now())
            found.lines += sum(map(len, told["sections"].values()))
            wrong += [f"since {since}: {one}" for one in compare(told, Recount(rows, night.world.issues(), since))]
    return wrong
