"""The sweep: one life for each boundary, or some of them, and what is to be said of all of them."""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from chaos.killed.place import Life, Place

REFRESH = 60
"""Lives after which a place gets a new agent server: all sessions of one are listed whenever one is looked for."""

SECOND = 101
"""A second kill falls on one of the first so many boundaries after the restart: what is found open is settled there."""


TRIES = 4
"""Lives in which to come by a boundary that only some cross: one of a poll that is due only where a turn takes long."""


@dataclass(frozen=True, slots=True)
class Kill:
    """A boundary to be killed at, and whether that is in a life that has to start its agent server itself."""

    at: str
    cold: bool = False
    again: str | None = None
    """The boundary of the second kill, in the process that was started after the first."""
    both: bool = False
    """What runs of Claude Code is killed with it."""
    place: int = 1
    """How many boundaries of that life were crossed by then, itself included."""

    def __str__(self) -> str:
        return (
            self.at
            + (" (cold)" if self.cold else "")
            + (", both" if self.both else "")
            + (f", then {self.again}" if self.again else "")
        )


def boundaries(place: Place) -> list[Kill]:
    """Every boundary of an undisturbed life, and those that only a life without an agent server crosses."""
    cold = _crossed(place.live(cold=True))
    warmed = _crossed(place.live())  # the cold life ended its server: this one starts it
    warm = _crossed(place.live())
    kinds = {_kind(point) for point in warm}
    alone = [point for point in dict.fromkeys((*cold, *warmed)) if _kind(point) not in kinds]
    after = (Kill(point, place=number) for number, point in enumerate(warm, 1))
    return [*(Kill(point, cold=True, place=1 + (*cold, *warmed).index(point)) for point in alone), *after]


def _crossed(life: Life) -> list[str]:
    return [point for process in life.crossed for point in process]


def _kind(point: str) -> str:
    return point.partition("#")[0]


def twice(kills: Sequence[Kill]) -> list[Kill]:
    """For each boundary one more, soon after the restart: all of the first `SECOND` ones, spread over the kills."""
    return [replace(kill, again=f"+{1 + number * 37 % SECOND}") for number, kill in enumerate(kills)]


def once_or_twice(place: Place, kill: Kill) -> Life:
    """A life that is killed there. Where this boundary is not crossed this time, an earlier one of its kind is.

    Some kinds are crossed only where something took long, as in the first life of all, and perhaps never again: then
    the kill falls on whatever is crossed at its place.
    """
    second = () if kill.again is None else (kill.again,)
    kind, _, number = kill.at.rpartition("#")
    for _ in range(TRIES):
        for earlier in range(int(number), 0, -1):
            life = place.live(f"{kind}#{earlier}", *second, cold=kill.cold, both=kill.both)
            if life.killed:
                return life
    life = place.live(f"+{kill.place}", *second, cold=kill.cold, both=kill.both)
    assert life.killed, f"no life comes by {kill.at}, of {TRIES}, nor by as many boundaries"
    return life


@dataclass(slots=True)
class Sweep:
    """Many lives, on several places at once."""

    places: Sequence[Place]
    say: Callable[[str], None] = print
    bad: int = 0
    done: int = 0

    def run(self, kills: Sequence[Kill]) -> bool:
        """Live all of them; True where each came to the same end."""
        self.bad = self.done = 0
        left = queue.SimpleQueue[Kill]()
        for kill in kills:
            left.put(kill)
        began = time.monotonic()
        threads = [threading.Thread(target=self._work, args=(place, left, len(kills))) for place in self.places]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except BaseException:  # told to stop: the lives that are being lived come to their end
            with suppress(queue.Empty):
                while True:
                    left.get_nowait()
            for thread in threads:
                thread.join()
            raise
        good, took = self.done - self.bad, time.monotonic() - began
        self.say(f"{good}/{len(kills)} came to the same end, in {took / 60:.1f} min")
        return good == len(kills)

    def _work(self, place: Place, left: "queue.SimpleQueue[Kill]", total: int) -> None:
        lives = 0
        with suppress(queue.Empty):
            while True:
                kill = left.get_nowait()
                lives += 1
                if lives % REFRESH == 0:
                    place.stop()
                try:
                    life = once_or_twice(place, kill)
                except Exception as error:  # the sweep goes on, whatever went wrong in one life
                    self.bad += 1
                    result = f"FAILED\n{type(error).__name__}: {error}"
                    place.stop()
                else:
                    result = f"{life.seconds:.1f} s, killed at {' and '.join(life.killed)}"
                self.done += 1
                self.say(f"[{self.done}/{total}] {kill}: {result}")
