"""One half of the stories of the ordinary test command (`chaos.torture` says what they are)."""

import pytest

from chaos.torture.chunks import live, portions


@pytest.mark.slow
@pytest.mark.parametrize("portion", portions(1))
def test_whatever_happens(portion: int) -> None:
    live(portion)
