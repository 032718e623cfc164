"""Moves of agents and people at a point of a policy, by name, and what an agent says who makes one."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from ashep.core.issues.verification import claims, is_looked_into
from ashep.core.policy.base_types import format_duration
from ashep.core.policy.policies import Phase
from ashep.core.runs.turns import ASK_PERSON, CHANGE_AGENT, RETRY
from ashep.extras.simulation.memory.scripted_sessions import Play

SUCCESS, FAILED, PARTIAL, NEED_HUMAN = "success", "failed", "partial", "need_human"
NO_OUTCOME, STALLED, TIMED_OUT = "no_outcome", "stalled", "timed_out"
APPROVED, CHANGES_REQUESTED, SILENCE = "approved", "changes_requested", "silence"
FALLS_SHORT, LANDS, CONFLICT = "falls_short", "lands", "conflict"
TOUCHES = "touches:"
"""Begins a success whose work touches what a flag of the phase's `when_flags` stands for."""

SUGGEST = "suggest:"
"""Begins a success that suggests a phase of `allow_suggested`."""

TROUBLES = (FAILED, PARTIAL, NEED_HUMAN, NO_OUTCOME, STALLED, TIMED_OUT)
"""What can become of any run that comes to no success."""

ANSWERS = (APPROVED, CHANGES_REQUESTED, SILENCE)
"""What a person does who is asked; `silence` lasts beyond the deadline."""

DIAGNOSES = (RETRY, CHANGE_AGENT, ASK_PERSON, NO_OUTCOME)
"""What comes of looking into a stalled turn, where `stall.action` is `diagnose`."""

DIAGNOSIS = "/diagnosis"
"""Ends the name of a point at which a stalled turn of a phase is looked into; no phase is called so."""

LANDINGS = (LANDS, CONFLICT)
"""What comes of bringing work onto the base; a check that fails there leads where a conflict does."""

LANDING = "/landing"
"""Ends the name of a point at which the work of an issue is brought onto the base that a phase closes."""

IN_TIME = 0.9
"""Where nobody says how long, a run takes at most so much of its timeout, an answer so much of its question's time."""

Kind = Literal["run", "diagnosis", "question", "landing"]

_OF_KIND: Mapping[Kind, tuple[str, ...]] = {"question": ANSWERS, "diagnosis": DIAGNOSES, "landing": LANDINGS}


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a life at which an agent or a person does something."""

    issue: str
    phase: Phase
    kind: Kind
    within: timedelta
    """How long it may take: the timeout of the run, the deadline of the question."""
    visit: int = 1
    attempt: int = 1
    agent: str = ""

    @property
    def name(self) -> str:
        """How a script calls it."""
        return self.phase.name + {"diagnosis": DIAGNOSIS, "landing": LANDING}.get(self.kind, "")

    @property
    def moves(self) -> tuple[str, ...]:
        """What is possible here."""
        return moves(self.phase, self.kind)

    def in_time(self, wish: timedelta) -> timedelta:
        """As long as is wished, but not so long that time would be up."""
        return min(wish, self.within * IN_TIME)


@dataclass(frozen=True, slots=True)
class ActorStep:
    """What is done, and how long it takes; with `None` as long as such a thing takes by default, in time."""

    move: str
    after: timedelta | None = None

    def __str__(self) -> str:
        return self.move if self.after is None else f"{self.move} in {format_duration(self.after)}"


Act = Callable[[Point], ActorStep | None]
"""Says what is done at a point; None ends the life there."""


def moves(phase: Phase, kind: Kind) -> tuple[str, ...]:
    """All that can be done at a point of this kind."""
    return _OF_KIND.get(kind) or (*successes(phase), *proofs(phase), *TROUBLES)


def proofs(phase: Phase) -> tuple[str, ...]:
    """The ways in which a success of a phase that is looked into does not go on as one."""
    if not is_looked_into(phase):
        return ()
    return (FALLS_SHORT, *(TOUCHES + flag for flag in phase.when_flags))


def successes(phase: Phase) -> tuple[str, ...]:
    """The ways in which a run of a phase succeeds."""
    if phase.verdicts:
        return phase.verdicts
    suggested = () if SUCCESS in phase.next else phase.allow_suggested
    return (SUCCESS, *(SUGGEST + target for target in suggested))


def play(move: str, phase: Phase, takes: timedelta, within: timedelta) -> Play:
    """What the agent of a phase does who makes this move, and has so much time."""
    seconds = takes.total_seconds()
    if move == STALLED:
        return Play(fate="hangs")
    if move == TIMED_OUT:
        return Play(delay=2 * within.total_seconds())  # at work all the time, so that nothing else ends it
    if move == NO_OUTCOME:
        return Play(text="I am done.", delay=seconds, tokens=0, cost=0.0)
    outcome: dict[str, object] = {"result": SUCCESS, "summary": "simulated"}
    if move in (FAILED, PARTIAL):
        outcome["result"] = move
    elif move.startswith(SUGGEST):
        outcome["suggested_next_phase"] = move.removeprefix(SUGGEST)
    elif move == NEED_HUMAN:
        outcome |= {"result": PARTIAL, "needs_human": True}
    elif move == FALLS_SHORT or move.startswith(TOUCHES):
        outcome |= {"verdict": claims(phase)[0]} if phase.verdicts else {}
    elif move != SUCCESS:
        outcome["verdict"] = move
    return Play(text=f"```json\n{json.dumps(outcome)}\n```\n", delay=seconds, tokens=0, cost=0.0)
