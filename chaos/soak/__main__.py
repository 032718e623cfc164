"""`python -m chaos.soak --virtual 24h` or `--real 30m`: prints the figures; 1 where something grew."""

import argparse
import sys
import time
from datetime import timedelta

from ashep.core.policy.base_types import parse_duration
from chaos.soak import real, virtual
from chaos.soak.figures import HEADER


def main() -> int:
    """Do what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--virtual", metavar="TIME", help="of virtual time, in memory: 24h")
    parser.add_argument("--real", metavar="TIME", help="on the real tools: 30m")
    asked = parser.parse_args()
    if not asked.virtual and not asked.real:
        parser.error("--virtual or --real?")
    bad = 0
    for kind, text in (("virtual", asked.virtual), ("real", asked.real)):
        if text:
            lasts, began = parse_duration(text), time.monotonic()
            assert isinstance(lasts, timedelta)
            seconds = lasts.total_seconds()
            found = virtual.soak(seconds / 3600) if kind == "virtual" else real.soak(seconds)
            print(f"{text} {kind}, which took {time.monotonic() - began:.0f} s\n{HEADER}")
            for figure in found:
                print(figure)
            bad += sum(not figure.good for figure in found)
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
