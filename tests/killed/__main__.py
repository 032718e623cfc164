"""`make torture-real`: the whole sweep, every boundary once and twice in a row. Ends with 1 where a life went wrong."""

import argparse
import signal
import sys
import time

from anyio.from_thread import start_blocking_portal

from ashep.demo.model import ModelServer
from tests.killed.place import places
from tests.killed.scenario import play
from tests.killed.sweep import Sweep, boundaries, twice


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.killed", description=__doc__)
    parser.add_argument("--workers", type=int, default=2, help="lives at once")
    parser.add_argument("--each", type=int, default=1, help="only each so-manieth boundary")
    parser.add_argument("--first", type=int, default=0, help="leave out so many boundaries at the beginning")
    parser.add_argument("--only", choices=("once", "twice"), help="half of it")
    chosen = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    began, good = time.monotonic(), True
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(ModelServer(play)) as model:
        names = [f"k{chr(ord('a') + number)}" for number in range(chosen.workers)]
        with places(model, names) as made:
            found = boundaries(made[0])
            some = found[chosen.first :: chosen.each]
            _say(f"an undisturbed life crosses {len(found)} boundaries; {len(some)} of them are tried")
            sweep = Sweep(made, _say)
            if chosen.only != "twice":
                _say("killed once")
                good &= sweep.run(some)
            if chosen.only != "once":
                _say("killed twice in a row")
                good &= sweep.run(twice(found)[chosen.first :: chosen.each])
    _say(f"{'good' if good else 'BAD'}, after {(time.monotonic() - began) / 60:.1f} min")
    return 0 if good else 1


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
