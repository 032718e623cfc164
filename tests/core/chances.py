"""How often things happen in the made-up world, and what agents say in it."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ashep.core.facts.requests import Request
from ashep.core.facts.runs import Refusal


@dataclass(frozen=True)
class Chances:
    """How often things happen in a step of the made-up world."""

    infra: float = 0.0
    """An effect fails; half of the time it has happened all the same."""
    refused: float = 0.0
    person: float = 0.0
    crash: float = 0.0
    server_death: float = 0.0
    away: float = 0.0
    """The server goes away for a while."""
    never_begun: float = 0.0
    """A prompt that is stored and never answered."""
    slow: float = 0.0
    """A turn that outlives its deadline; half of those show no sign of life."""
    hint: float = 0.0
    stale: float = 0.0
    """A look that took long: its facts arrive after other facts."""
    lease: float = 0.0
    """Heartbeats are refused, for whatever reason."""
    disk: float = 0.0
    """There is little room on the disk for a while."""
    asks: float = 0.0
    """An agent's session asks for leave to use a tool, or a question. Not in every wild life."""
    pause: float = 0.0
    """A person pauses, in all or a provider, or quiet hours begin; and cancels. Not in every wild life."""
    leak: float = 0.0
    """The agent server grows beyond its memory limit, or beyond twice as much. Not in every wild life."""
    limit: float = 0.0
    """A provider refuses for a while. Not in every wild life."""
    edit: float = 0.0
    """The policies are edited. Not in every wild life."""
    landing: float = 0.0
    """Work falls short, contradicts the base, or touches what a person is asked about; the base moves, or somebody is
    in its way. In lives with own work trees."""
    source: float = 0.0
    """Somebody does or says something at the source. In lives with a source."""
    resists: float = 0.0
    """A tree that is never sealed. In lives with own work trees."""
    unforeseen: float = 0.0
    """An effect fails in a way that nobody foresaw; half of the time it has happened all the same."""


CALM = Chances()
WILD = Chances(0.08, 0.01, 0.05, 0.01, 0.01, 0.01, 0.05, 0.03, 0.02, 0.15, 0.01, 0.01)


@dataclass
class Turn:
    """What follows one prompt."""

    n: int
    left: int
    began: datetime
    silent: bool = False
    state: str = "stored"
    never: bool = False
    block: str | None = None
    error: str | None = None
    people: tuple[str, ...] = ()
    asks: tuple[Request, ...] = ()
    """What it waits for an answer to."""
    tokens: int = 0
    refused: Refusal | None = None


def said(chance: random.Random, verdicts: Sequence[str]) -> str | None:
    """What an agent mostly says: that it went well; sometimes not, and sometimes nonsense."""
    verdict = f', "verdict": "{chance.choice(verdicts)}"' if verdicts else ""
    roll = chance.random()
    if roll < 0.04:
        return None
    if roll < 0.08:
        return '{"result": "success", "summary": "x", "verdict": "undeclared"}'
    if roll < 0.14:
        return '{"result": "failed", "summary": "could not"}'
    if roll < 0.17:
        return '{"result": "partial", "summary": "half", "created_issues": [{"title": "the rest"}]}'
    if roll < 0.20:
        return '{"result": "success", "summary": "which one?", "needs_human": true' + verdict + "}"
    more = ', "created_issues": [{"title": "more"}]' if roll < 0.23 else ""
    return '{"result": "success", "summary": "done"' + more + verdict + "}"
