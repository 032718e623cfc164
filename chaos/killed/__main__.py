"""`make torture-real`: every boundary once and twice, a bd that dies, a race, and a daemon that outsleeps its lease.

Ends with 1 where anything went wrong.
"""

import argparse
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from anyio.from_thread import start_blocking_portal

from ashep.extras.demo.scripted_model import ModelRequest, ModelServer, Reply
from chaos.killed import race
from chaos.killed.dying import killed
from chaos.killed.place import Place, places
from chaos.killed.scenario import play
from chaos.killed.sweep import Sweep, boundaries, twice

PARTS = ("once", "twice", "bd", "race", "lease")

SEEDS = (1, 7, 13, 29)
"""Of the moments at which bd dies."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m chaos.killed", description=__doc__)
    parser.add_argument("--workers", type=int, default=2, help="lives at once")
    parser.add_argument("--each", type=int, default=1, help="only each so-manieth boundary")
    parser.add_argument("--first", type=int, default=0, help="leave out so many boundaries at the beginning")
    parser.add_argument("--only", choices=PARTS, help="a part")
    parser.add_argument("--worktree", action="store_true", help="each issue in a work tree of its own")
    parser.add_argument("--place", action="store_true", help="each issue in a place of its own")
    parser.add_argument("--sandbox", action="store_true", help="and who makes in a sandbox, who judges on clean ground")
    parser.add_argument("--claude", action="store_true", help="who makes is of Claude Code")
    parser.add_argument("--both", action="store_true", help="what runs of that is killed with each daemon")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    began, good = time.monotonic(), True
    for part in PARTS:
        if chosen.only in (None, part):
            good &= (
                _sweep(part, chosen) if part in ("once", "twice") else _dying() if part == "bd" else _race(part, chosen)
            )
    _say(f"{'good' if good else 'BAD'}, after {(time.monotonic() - began) / 60:.1f} min")
    return 0 if good else 1


@contextmanager
def _places(agents: Callable[[ModelRequest], Reply], names: Sequence[str], **options: Any) -> Iterator[list[Place]]:
    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal())
        model = stack.enter_context(portal.wrap_async_context_manager(ModelServer(agents)))
        yield stack.enter_context(places(model, names, **options))


def _sweep(part: str, chosen: argparse.Namespace) -> bool:
    names = [f"k{chr(ord('a') + number)}" for number in range(chosen.workers)]
    own = "sandbox" if chosen.sandbox else "place" if chosen.place else "worktree" if chosen.worktree else "shared"
    agents = partial(play, commits=own == "shared")
    with _places(agents, names, workspace=own, claude=chosen.claude or chosen.both) as made:
        found = [replace(one, both=chosen.both) for one in boundaries(made[0])]
        kills = (twice(found) if part == "twice" else found)[chosen.first :: chosen.each]
        _say(f"killed {part}: {len(kills)} of the {len(found)} boundaries that an undisturbed life crosses")
        return Sweep(made, _say).run(kills)


def _dying() -> bool:
    _say(f"bd is killed in the middle of every write, at the moments of {len(SEEDS)} seeds")
    with _places(play, ["k"]) as (place,):
        try:
            for seed in SEEDS:
                killed(place, place.folder / "hit", seed)
        except AssertionError as error:
            _say(f"FAILED: {error}")
            return False
    return True


def _race(part: str, chosen: argparse.Namespace) -> bool:
    own = "sandbox" if chosen.sandbox else "shared"
    with _places(race.willing, ["r"], policies=race.POLICIES, workspace=own) as (place,):
        try:
            if part == "race":
                _say("four daemons and 40 issues")
                race.race(place, 4, 40)
            else:
                _say("a daemon that sleeps until its lease is gone (a quarter of an hour)")
                took = race.wake_too_late(place, by_hand=False)
                _say(f"the issue was closed by another after {took / 60:.1f} min, and the first did no harm")
        except AssertionError as error:
            _say(f"FAILED: {error}")
            return False
    return True


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
