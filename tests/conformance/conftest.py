"""Fixtures of the conformance suites."""

from pathlib import Path

import pytest

from ashep.extras.testing.worlds import TrackerWorld
from tests.conformance.trackers import Beads, BeadsWorld, MemoryWorld


@pytest.fixture(params=["memory", pytest.param("beads", marks=pytest.mark.real)])
def world(
    request: pytest.FixtureRequest, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> TrackerWorld:  # fmt: skip
    """A database of each kind."""
    if request.param == "memory":
        return MemoryWorld()
    beads = Beads.make(tmp_path_factory.getbasetemp() / "beads")
    monkeypatch.setenv("HOME", str(beads.home))
    return BeadsWorld(beads, tmp_path / "project")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the tests of a suite that ashep ships: it is for users too, and knows nothing of promises."""
    proves = getattr(getattr(item, "module", None), "PROVES", {})
    if ids := proves.get(getattr(item, "originalname", "")):
        item.add_marker(pytest.mark.promise(*ids))
