"""A landing that is killed by SIGKILL at each step lands once, and the person's tree and edits stay whole."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.promise("Z1")
@pytest.mark.slow
@pytest.mark.real
def test_whatever_is_killed_it_lands_once_and_nothing_of_the_persons_is_lost(folder: Path) -> None:
    folder.mkdir()
    environ = os.environ | {"HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    life = (sys.executable, "-m", "tests.landing_life", str(folder))
    done = subprocess.run(life, env=environ, capture_output=True, text=True, timeout=250)
    points = [json.loads(line) for line in done.stdout.splitlines()]
    assert [point for point in points if point["wrong"]] == [], done.stderr
    for kind, late, least in (("effect", 0.0, 15), ("program", 0.1, 5), ("program", 0.4, 5), ("program", 2.0, 5)):
        killed = [point["killed"] for point in points if (point["kind"], point["late"]) == (kind, late)]
        assert killed[-1] is False, "the last one is not killed at all: there are no more steps"
        assert all(killed[:-1])
        assert len(killed) > least
