"""What each answer to an open question leads to: what the rules would decide of it, told before it is given."""

from dataclasses import dataclass
from typing import Literal

from ashep.core.facts import issues
from ashep.core.facts.vocabulary import Fact
from ashep.core.issues.routing import after_answer, after_deadline
from ashep.core.policy.policies import CLOSE
from ashep.core.runs.requests import get_open_request
from ashep.core.state.flow import Flow
from ashep.core.state.world import World

Reply = Literal["approved", "changes_requested", "answered", "deadline"]


@dataclass(frozen=True, slots=True)
class AnswerEffect:
    """Where an answer leads."""

    answer: Reply
    kind: Literal["phase", "person", "close", "park", "run"]
    """run: the run that asked goes on."""
    target: str
    """The phase, `close` or `park`."""
    visit: int | None = None
    """The how manieth of the phase that would be."""
    times: int | None = None
    """The how manieth of the cycle."""
    most: int | None = None
    """How many a cycle may have."""
    afresh: bool = False
    """A cycle begins with it: limits and visits count from one."""
    onto: str | None = None
    """The branch that the work is to land on."""
    by_pull_request: bool = False
    why: str | None = None
    """Of parking."""


def answer_effects(world: World, flow: Flow) -> tuple[AnswerEffect, ...]:
    """Say where each answer to what is asked now leads, by the policy as it is; nothing where nothing is asked."""
    if get_open_request(flow) is not None and flow.run is not None:
        return tuple(AnswerEffect(answer, "run", flow.run.phase) for answer in ("answered", "deadline"))
    question = flow.question
    if question is None or flow.stage != "person":
        return ()
    replies: dict[Reply, bool] = {"approved": True, "changes_requested": False}
    if question.leads_back:
        replies = {"answered": True}
    found: dict[Reply, list[Fact]] = {
        reply: after_answer(world, flow, question, yes, "an answer is given") for reply, yes in replies.items()
    }
    found["deadline"] = after_deadline(world, flow, question)
    return tuple(way for answer, facts in found.items() if (way := _way(world, flow, answer, facts)) is not None)


def _way(world: World, flow: Flow, answer: Reply, facts: list[Fact]) -> AnswerEffect | None:
    afresh = any(isinstance(fact, issues.CycleBegan) for fact in facts)
    for fact in facts:
        match fact:
            case issues.PhaseEntered():
                policy = world.policy(flow)
                phase = policy.phase(fact.phase) if policy else None
                times = 1 if afresh else flow.cycle_times(fact.phase) + 1
                most = phase.max_visits if phase else None
                return AnswerEffect(answer, "phase", fact.phase, fact.visit, times, most, afresh)
            case issues.PersonAsked():
                return AnswerEffect(answer, "person", fact.phase, afresh=afresh)
            case issues.IssueFinished():
                onto = fact.onto or fact.into or None
                return AnswerEffect(answer, "close", CLOSE, onto=onto, by_pull_request=bool(fact.into))
            case issues.IssueParked():
                return AnswerEffect(answer, "park", "park", why=fact.why)
            case _:
                pass
    return None
