"""Intents of a flow: what is under way, and whether a read is older than what it answers."""

from ashep.core.facts.commands import WRITES, OpenSession, SendPrompt, StopTurn
from ashep.core.facts.runs import TurnSeen
from ashep.core.state.flow import Flow
from ashep.core.state.frozen import replace
from ashep.core.state.run import Run


def stale(flow: Flow, as_of: int) -> bool:
    """Whether a read that began at `as_of` may show what was before our own write."""
    return as_of < flow.write_seq or any(isinstance(command, WRITES) for command in flow.open)


MAX_REPORTS = 40
"""Reports that a flow keeps for its prompts."""


def unfounded(flow: Flow, run: Run, fact: TurnSeen) -> bool:
    """Whether a read says nothing about the present prompt, or began before our last write to the session was done."""
    if run.ended or fact.run != run.id or fact.n != run.prompt.n or not run.prompt.sent:
        return True
    return fact.as_of < run.effect_seq or any(isinstance(command, (SendPrompt, StopTurn)) for command in flow.open)


def done(flow: Flow, key: str | None, seq: int) -> Flow:
    """The effect of this key has an answer: its intent is no longer open, and a row of failures is over."""
    command = next((command for command in flow.open if command.key == key), None)
    if command is None:
        return flow
    flow = replace(
        flow, open=tuple(other for other in flow.open if other.key != key), effect_after=None,
        tries=tuple(item for item in flow.tries if item[0] != key),
    )  # fmt: skip
    if isinstance(command, WRITES):
        flow = replace(flow, write_seq=seq)
    if isinstance(command, (OpenSession, SendPrompt, StopTurn)) and flow.run is not None:
        flow = replace(flow, run=replace(flow.run, effect_seq=seq))
    return replace(flow, infra=0, infra_began=None, lock="")
