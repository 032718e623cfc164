"""The record of a run as people and programs read it (`runs.jsonl`, `state/ashep.db`): a fold of the run's own facts.

It needs no World, so that one run can be told again from its facts alone.
"""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from ashep.core.facts import runs
from ashep.core.facts.issues import PersonAsked, RetryScheduled
from ashep.core.facts.outcome import Outcome
from ashep.core.facts.records import Entry
from ashep.core.state.run import Turns, used


class RunRecord(BaseModel):
    """A line of `.agent-shepherd/runs.jsonl`: one finished run."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    run: str
    """The run's id: `<issue>/<phase>.<visit>.<attempt>`."""
    issue: str
    """The issue's id."""
    phase: str
    """The policy's phase."""
    visit: int
    """How often the issue had entered the phase."""
    attempt: int
    """Which try inside the visit."""
    agent: str
    """The agent's id in agents.yaml."""
    runner: str
    """What executed it."""
    provider: str | None = None
    """The provider that answered; before that, the one that was asked for."""
    model: str | None = None
    """The model that answered; before that, the one that was asked for."""
    capability: str
    """What the phase needed; several are joined by commas."""
    access: Literal["read", "write"]
    """Whether it might change the work tree."""
    state: Literal[
        "planned", "running", "succeeded", "failed", "timed_out", "stalled", "aborted", "lost", "withdrawn"
    ] = "planned"
    """How it stands; a run in runs.jsonl is neither planned, running nor withdrawn (before it began)."""
    planned_at: datetime
    """When its agent was chosen."""
    started_at: datetime | None = None
    """When its first prompt was delivered."""
    ended_at: datetime | None = None
    """When it was over."""
    last_agent_message_at: datetime | None = None
    """When its agent wrote last, by the clock of the agent's server; null: that is not known."""
    last_human_message_at: datetime | None = None
    """When a person wrote last in its session, behind a prompt of the run; null: nobody did, or that is not known."""
    session: str | None = None
    """The agent server's session."""
    outcome: Outcome | None = None
    """What the agent reported."""
    why: str
    """Why it was planned; once it is over, why it ended as it did."""
    error: str | None = None
    """What went wrong; also why a success that was reported was not believed, of a run that then counts as failed."""
    tokens: int = 0
    """Tokens of all its turns, an extraction's included."""
    cost: float = 0.0
    """Cost of all its turns, in the provider's currency."""
    restarts: int = 0
    """Turns that had to be started again because the agent server died."""
    trace: int
    """The journal's sequence number of the decision that led to it."""

    @property
    def is_over(self) -> bool:
        """Whether nothing changes any more."""
        return self.ended_at is not None


@dataclass(frozen=True, slots=True)
class Tally:
    """A run while its facts come in."""

    record: RunRecord
    turns: Turns = ()
    """Number, tokens and cost of each prompt's turn, as last seen."""
    ended: int | None = None
    """The sequence number of its end."""
    extracting: bool = False
    """The turns from now on are another agent's, which reads the outcome out of the run's words."""


def run_of(entry: Entry) -> str | None:
    """Name the run that an entry is about."""
    return getattr(entry.body, "run", None) or getattr(entry.body, "disbelieved", None)


_DOUBTS = (RetryScheduled, PersonAsked)


def changes_what_is_over(entry: Entry) -> bool:
    """Whether an entry may say something of a run that is over."""
    body = entry.body
    return isinstance(body, _DOUBTS) or (isinstance(body, runs.TurnStopped) and body.n > 0)


def tell(tally: Tally | None, entry: Entry) -> Tally | None:
    """Fold an entry about a run; nothing is added once it is over, but that its success was not believed and what its
    turn had used where it was stopped, nor before it was planned.
    """
    body = entry.body
    if isinstance(body, runs.RunPlanned):
        return Tally(_planned(body, entry)) if tally is None else tally
    if isinstance(body, _DOUBTS):
        doubted = tally is not None and tally.record.state == "succeeded"
        return _with(tally, state="failed", error=body.why) if tally is not None and doubted else tally
    if isinstance(body, runs.TurnStopped):
        return _used(tally, body) if tally is not None and body.n > 0 else tally
    if tally is None or tally.record.is_over:
        return tally
    record = tally.record
    match body:
        case runs.SessionOpened() if not tally.extracting:
            return _with(tally, session=body.session)
        case runs.PromptSent():
            return _with(tally, state="running", started_at=record.started_at or entry.at)
        case runs.TurnSeen():
            return _add_turn(tally, body)
        case runs.TurnDied():
            return _with(tally, restarts=record.restarts + 1)
        case runs.DiagnosisWanted():
            return replace(tally, extracting=True)
        case runs.OutcomeRejected():
            return replace(tally, extracting=body.then == "extract")
        case runs.RunWithdrawn():
            return replace(_with(tally, state="withdrawn", why=body.why, ended_at=entry.at), ended=entry.seq)
        case runs.RunEnded():
            end = {"state": body.state, "why": body.why, "outcome": body.outcome, "error": body.error}
            return replace(_with(tally, **end, ended_at=entry.at), ended=entry.seq)
        case _:
            return tally


def _planned(fact: runs.RunPlanned, entry: Entry) -> RunRecord:
    return RunRecord(
        run=fact.run, issue=fact.issue, phase=fact.phase, visit=fact.visit, attempt=fact.attempt, agent=fact.agent,
        runner=fact.runner, provider=fact.model.provider if fact.model else None,
        model=fact.model.model if fact.model else None, capability=",".join(fact.capabilities), access=fact.access,
        planned_at=entry.at, why=fact.why, trace=entry.seq,
    )  # fmt: skip


def _with(tally: Tally, **values: Any) -> Tally:
    return replace(tally, record=tally.record.model_copy(update=values))


def _add_turn(tally: Tally, fact: runs.TurnSeen) -> Tally:
    tally = _used(tally, fact)
    human = fact.human_message_at or tally.record.last_human_message_at
    if tally.extracting:  # what an extraction writes is no message of the run's agent
        return _with(tally, last_human_message_at=human)
    agent = fact.agent_message_at or tally.record.last_agent_message_at
    tally = _with(tally, last_agent_message_at=agent, last_human_message_at=human)
    return _with(tally, provider=fact.provider, model=fact.model) if fact.model is not None else tally


def _used(tally: Tally, fact: runs.TurnSeen | runs.TurnStopped) -> Tally:
    turns = used(tally.turns, fact)
    tokens, cost, known = sum(turn[1] for turn in turns), round(sum(turn[2] for turn in turns), 9), tally.record
    return replace(_with(tally, tokens=max(tokens, known.tokens), cost=max(cost, known.cost)), turns=turns)
