"""A bd of which nearly every second call fails costs some time, and no issue."""

from unittest.mock import patch

import pytest

from ashep.core.facts.issues import IssueClosed
from ashep.core.facts.records import Entry
from chaos.torture import story
from chaos.torture.chaos import Dice
from chaos.torture.story import Story, run, simulated

SHARE = 0.45
SEEDS = range(1, 17)


class Faulty(Dice):
    """Nothing goes wrong but bd, and that often."""

    def roll(self, kind: str, chance: float) -> bool:
        """So often as this."""
        return super().roll(kind, SHARE if kind == "bd_fails" else chance)


def closed(told: Story) -> list[float]:
    """When issues were closed, in seconds from the start."""
    assert told.bad == []
    entries = [(seconds, one.body) for seconds, _, one in told.happened if isinstance(one, Entry)]
    return [seconds - entries[0][0] for seconds, body in entries if isinstance(body, IssueClosed)]


@pytest.mark.promise("E3")
@pytest.mark.slow
def test_where_nearly_every_second_call_of_bd_fails_a_night_does_nearly_what_it_does_without() -> None:
    with patch.object(story, "Dice", Faulty), simulated():
        without = [seconds for seed in SEEDS for seconds in closed(run(seed, frozenset()))]
        beside = [seconds for seed in SEEDS for seconds in closed(run(seed, frozenset({"bd_fails"})))]
    assert len(beside) == len(without)
    # a read that failed cost all looks a pause, and a look both of its reads: three times as long
    assert sum(beside) < 1.9 * sum(without), (sum(beside), sum(without))
