"""Which worker runs which tests, and in which order: the longest first, so that all workers end together.

What talks to real tools waits for most of its time, and what does not computes: one worker of four begins with what
computes, so that the cores have something to do all the while.

A file stays on one worker, since its tests may share a server or a database that takes seconds to make. Files of
`APART` share nothing: each of their tests goes where there is room. How long each takes stands in `durations.json`,
which `DURATIONS=write make test` writes again; a file that is not there is taken for a short one. The same run writes
which tests are `costly`, by processor time: it is steadier than the clock.
"""

import json
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

KEPT = Path(__file__).with_name("durations.json")
COSTLY = Path(__file__).with_name("costly.json")
"""Tests without real tools that take more than `QUICK` seconds of processor time, or wait for longer than `PATIENT`
seconds: `make quick` leaves them out."""
QUICK, PATIENT = 0.035, 0.8

TOGETHER = ("tests/e2e/", "chaos/killed/")
"""Folders whose files share a server: they come first and stand together, so that it ends with the last of them."""

APART = (
    "tests/core/test_mutants.py",
    "tests/test_demo.py",
    "tests/test_isolated.py",
    "tests/test_landing_checked_out.py",
    "tests/test_loop_landing.py",
    "tests/test_managed_server.py",
    "tests/test_odd_repositories.py",
    "tests/test_simulate.py",
    "tests/test_stale_locks.py",
    "tests/test_store.py",
    "tests/test_testing.py",
)
"""Files that take long, and whose tests share nothing."""

WIDER = ("class", "module", "package")
"""Scopes of fixtures that several tests of a file share."""

PROCESSOR = "processor"
"""The property of a report that says how much processor time its test took."""

LEAST = 1.0
"""Seconds below which no duration is kept."""


def scope_of(test: str) -> str:
    """What stays together with this test: its file, or the test alone."""
    file = test.partition("::")[0]
    return test if file in APART else file


class Spread(LoadScopeScheduling):
    """Hands out whole files, and tests of `APART` one by one, from both ends of their order."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        if self.nodes.index(node) % 4 == 3:
            self.workqueue.move_to_end(next(reversed(self.workqueue)), last=False)
        super()._assign_work_unit(node)


def processor_time() -> float:
    """Seconds that this process, and what it started and waited for, have used."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


def costly() -> Collection[str]:
    """Tests that are too dear for `make quick`, as they were last measured."""
    return frozenset(json.loads(COSTLY.read_text())) if COSTLY.exists() else ()


def kept() -> Mapping[str, float]:
    """Seconds by file and by test, as they were last measured."""
    return json.loads(KEPT.read_text()) if KEPT.exists() else {}


def sort(items: list[pytest.Item]) -> None:
    """Put the longest of those that wait first, and of those that compute last; tests of a file keep their order."""
    seconds = kept()
    waiting = {scope_of(item.nodeid) for item in items if item.get_closest_marker("real")}

    def rank(item: pytest.Item) -> tuple[int, float, str]:
        scope = scope_of(item.nodeid)
        took, file = seconds.get(scope, 0.0), scope.partition("::")[0]
        if scope not in waiting:
            return len(TOGETHER) + 1, took, file
        return (
            next((number for number, word in enumerate(TOGETHER) if file.startswith(word)), len(TOGETHER)),
            -took,
            file,
        )

    items.sort(key=rank)


def sharing(items: Sequence[pytest.Item]) -> list[str]:
    """Tests of `APART` that share something all the same."""
    return [item.nodeid for item in items if item.nodeid.partition("::")[0] in APART and _shared(item)]


def _shared(item: pytest.Item) -> bool:
    fixtures = getattr(item, "_fixtureinfo", None)
    if fixtures is None:
        return False
    return any(found[-1].scope in WIDER for found in fixtures.name2fixturedefs.values())


class Durations:
    """Adds up how long each test and each file takes, and keeps it."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._used: dict[str, float] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count set-up and end in: they take most of the time where something is shared."""
        for name in {report.nodeid, report.nodeid.partition("::")[0]}:
            self._seconds[name] = self._seconds.get(name, 0.0) + report.duration
        used = dict(report.user_properties).get(PROCESSOR)
        if isinstance(used, float) and not {"real", "slow"} & {*report.keywords}:
            self._used[report.nodeid] = used

    def pytest_sessionfinish(self) -> None:
        """Write those that are worth it; files that were not run keep what is known of them."""
        ran = {name for name in self._seconds if "::" not in name}
        before = {name: seconds for name, seconds in kept().items() if name.partition("::")[0] not in ran}
        new = {
            name: round(seconds, 1)
            for name, seconds in self._seconds.items()
            if seconds >= LEAST and (scope_of(name) == name or "::" not in name)
        }
        KEPT.write_text(json.dumps(before | new, indent=0, sort_keys=True) + "\n")
        known = {name for name in costly() if name not in self._used}
        dear = known | {name for name, used in self._used.items() if used > QUICK or self._seconds[name] > PATIENT}
        COSTLY.write_text(json.dumps(sorted(dear), indent=0) + "\n")
