"""Read regular expressions: `python -I -S` runs this, because a short one can take minutes.

Standard input: patterns as a JSON list. Standard output: what is wrong with each, or null, as a JSON list.
"""

import json
import re
import resource
import signal
import sys
import warnings
from contextlib import suppress

_LONGEST = 5.0  # seconds for all of them
_MEMORY = 1024**3


class _LateError(Exception):
    pass


def _late(number: int, frame: object) -> None:
    raise _LateError


def wrong(pattern: str) -> str | None:
    """Say what is wrong with a pattern."""
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return str(error)
    except _LateError:
        return "it takes too long to be read"
    except MemoryError:
        return "it takes too much memory to be read"
    return None


def _main() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    warnings.simplefilter("ignore")
    patterns: list[str] = json.load(sys.stdin)
    signal.signal(signal.SIGALRM, _late)
    # each has its share of the time, so that none is blamed for what another one takes
    found = list[str | None]()
    for pattern in patterns:
        signal.setitimer(signal.ITIMER_REAL, _LONGEST / len(patterns))
        try:
            said = wrong(pattern)
            signal.setitimer(signal.ITIMER_REAL, 0)
        except _LateError:  # it came just before the bell was taken off
            said = None
        found.append(said)
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    _main()
