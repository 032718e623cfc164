"""Providers of the made-up world that take nothing for a while."""

import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal

from ashep.core.facts.runs import Refusal
from tests.core import given


@dataclass
class Shut:
    """Which providers refuse, how and until when."""

    chance: random.Random
    known: dict[str, tuple[Literal["limited", "down", "unauthorized"], datetime]] = field(default_factory=dict)

    def some(self, now: datetime) -> None:
        """A provider begins to refuse."""
        provider = self.chance.choice((given.LARGE.provider, given.SMALL.provider))
        kind: Literal["limited", "down", "unauthorized"] = self.chance.choice(("limited", "down", "unauthorized"))
        self.known[provider] = (kind, now + timedelta(seconds=self.chance.choice((5, 40, 600, 20_000))))

    def refusal(self, provider: str, now: datetime, attempt: int) -> Refusal | None:
        """What a turn that asks it now hears."""
        kind, until = self.known.get(provider, ("down", now))
        if until <= now:
            return None
        said = kind == "limited" and self.chance.random() < 0.7
        again = until - now if said else timedelta(seconds=2**attempt) if kind != "unauthorized" else None
        return Refusal(kind, "no", again, attempt)
