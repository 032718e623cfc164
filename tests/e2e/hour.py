"""One kind of agents is away for an hour, and the others work on. A part of `make deep`: `python -m chaos.deep hour`.

A server of OpenCode that hangs is the worst of it: nothing says that it is gone, and each question to it waits.
"""

import json
import os
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.site import Site
from tests.e2e.test_mixed import mixed, writes  # noqa: F401  (a fixture)

HOUR = float(os.environ.get("ASHEP_TESTS_HOUR", 3600))
"""Seconds; less is for trying this file out."""

EVERY = HOUR / 12
"""Seconds between the issues of the kind that works on."""

ALONE = """
  alone:
    match: null
    phases:
      - {name: make, access: write, timeout: 2m, retry: {max_attempts: 1}, next: {success: close}}
"""
WORK = ("Commit", "ChangeHinted", "TreeSeen", "ReadyChanged")
"""Lines of the journal that come of an issue's work without naming it."""

TOLD = 12
"""The other lines of that hour but for the worked issues' own: the journal says what changes, and no more."""


def memory(pid: int) -> float:
    """What a process holds of its own, in MB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_")) / 1024


@pytest.mark.timeout(2 * HOUR + 600)
def test_one_kind_is_away_for_an_hour_and_the_other_works_on(mixed: Site) -> None:  # noqa: F811
    policies = mixed.project / ".agent-shepherd" / "policies.yaml"
    policies.write_text(policies.read_text() + ALONE)
    server, ended, held = mixed.shared_server, time.monotonic() + HOUR, mixed.add("all of it on what hangs")
    worked, codes, memories, closed = list[str](), Counter[str](), list[float](), list[float]()
    os.kill(server, signal.SIGSTOP)
    try:
        with mixed.working() as working:
            first = mixed.add("on what works", "policy:alone", behaves=writes)
            working.says(f"{first} closed by shepherd", 120)
            before = len(mixed.journal_all())
            while (now := time.monotonic()) < ended:
                issue = mixed.add("on what works", "policy:alone", behaves=writes)
                working.says(f"{issue} closed by shepherd", 120)
                closed.append(time.monotonic() - now)
                listed: list[dict[str, Any]] = json.loads(mixed.ashep("status", "--json"))["issues"]
                codes.update(one["code"] for one in listed if one["issue"] == held)
                worked.append(issue)
                memories.append(memory(working.process.pid))
                time.sleep(max(0.0, now + EVERY - time.monotonic()))
            told = [
                one
                for one in mixed.journal_all()[before:]
                if one.get("issue") not in worked and one["type"] not in WORK
            ]
            goes_on = time.monotonic()
            os.kill(server, signal.SIGCONT)
            back = working.says(f"{held} closed by shepherd", 300) - goes_on
    finally:
        os.kill(server, signal.SIGCONT)
    kinds = Counter(str(one["type"]) for one in told)
    print(
        f"{len(worked)} issues closed meanwhile, in {min(closed):.1f} to {max(closed):.1f} s; the held one "
        f"{back:.1f} s after; {len(told)} other lines: {dict(kinds)}; {memories[0]:.0f} to {memories[-1]:.0f} MB"
    )
    assert set(codes) == {"runner_away"}, codes
    assert len(told) <= TOLD, kinds
    for issue in (held, *worked):
        (run,) = mixed.runs(issue)
        assert (run["state"], mixed.prompts(run["run"])) == ("succeeded", 1), run
    mixed.check()
