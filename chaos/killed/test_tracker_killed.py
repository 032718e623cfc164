"""bd dies in the middle of a write, or stops there: what became of it is found out, and nothing is done twice."""

from pathlib import Path

import pytest

from chaos.killed.dying import dying, killed, signalled
from chaos.killed.place import Place

pytestmark = pytest.mark.real


@pytest.mark.promise("G2")
def test_bd_is_killed_in_the_middle_of_every_write(place: Place, tmp_path: Path) -> None:
    """At moments of one seed; `make torture-real` has more of them."""
    killed(place, tmp_path / "hit", seed=1)


@pytest.mark.full
def test_bd_is_stopped_in_the_middle_of_every_write_for_longer_than_its_time(place: Place, tmp_path: Path) -> None:
    with dying(place, tmp_path / "hit", signal="STOP", seed=3, longest=180, timeout=3):
        place.live()
        signalled(tmp_path / "hit")
