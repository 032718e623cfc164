"""A backlog that is there before ashep works on anything: asked about at a terminal, once."""

import os
import sys
from pathlib import Path

import pytest

from ashep.adapters.system import programs
from ashep.config import write_starter
from tests.conformance.trackers import Beads, BeadsWorld
from tests.first_hour.terminal import Terminal

pytestmark = pytest.mark.real


def test_a_person_is_asked_once_how_much_of_it_is_worked_on(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    beads = Beads.make(tmp_path_factory.getbasetemp() / "beads")
    world = BeadsWorld(beads, project := tmp_path / "project")
    write_starter(project / ".agent-shepherd")
    for number in range(1, 12):
        world.add(f"issue {number}")
    cache = str(programs.tools_cache().parent.parent)
    environ = dict(beads.env) | {"XDG_CACHE_HOME": cache, "PATH": f"{beads.program.parent}:{os.environ['PATH']}"}
    argv = [sys.executable, "-m", "ashep", "work"]
    terminal = Terminal(argv, project, environ)
    terminal.says("11 issues are ready. Work on all of them? a: all, t: the first ten, n: none [t]: ")
    terminal.types("some")
    terminal.says("Work on all of them?")
    terminal.types("none")
    terminal.says(
        "11 issues are ready, and none was worked on before: 11 of them wait. `ashep work --all` lets them go"
    )
    terminal.says("idle: 11 not eligible")
    terminal.says("look: ashep ui")
    assert terminal.ends() == 0
    terminal = Terminal([*argv, "--until-idle"], project, environ)
    assert terminal.ends(120) == 0
    assert "idle: 11 not eligible" in terminal.text
    assert "Work on all of them" not in terminal.text
