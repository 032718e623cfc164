"""Killed once at each kind of boundary that only real processes have. All: `make torture-real`, once and twice.

The calls of adapters are crossed by simulated lives, hundreds at every `make test` (chaos/torture). The update of a ref
is in test_workspaces_killed.py, and at each of its steps in tests/test_landing_killed.py; a death within bd is in
test_tracker_killed.py.
"""

import pytest

from chaos.killed.place import Place
from tests.full import repeated

pytestmark = pytest.mark.real

KINDS = {
    "program": "start opencode serve#1",
    "fork": "started opencode serve#1",
    "server record": "server.json.tmp renamed done#1",
    "lock": "lock cut done#1",
    "half a line": "journal torn#20",
    "socket": "runner.send done#1",
}
"""A boundary by its kind: before a program starts, when it runs and its starter is gone, when the record that names it
is there and nobody has read it, in the midst of taking the daemon's lock, of the journal's batch, of a prompt."""

WITHOUT_A_SERVER = {"program", "fork", "server record"}

TWICE = {"half a line": "+30", "socket": "+60"}
"""The second kill: so many boundaries after the restart, while what was found open is settled."""


@pytest.mark.promise("G1")
@pytest.mark.parametrize("kind", [*(one for one in KINDS if one != "program"), *repeated("program")])
def test_killed_at_a_boundary_it_comes_to_the_same_end(place: Place, kind: str) -> None:
    if kind in WITHOUT_A_SERVER:
        place.stop()
    second = [TWICE[kind]] if kind in TWICE else []
    life = place.live(KINDS[kind], *second)
    assert life.killed[0] == KINDS[kind]
    assert len(life.killed) == 1 + len(second)
    print(f"killed at {' and '.join(life.killed)}, {life.seconds:.1f} s")
