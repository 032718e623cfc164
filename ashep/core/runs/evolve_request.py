"""How a session's requests change a flow and its run: a part of `evolve`."""

import dataclasses
from datetime import datetime, timedelta
from typing import assert_never

from ashep.core.facts.requests import Pending
from ashep.core.facts.vocabulary import (
    InputEnded,
    InputWanted,
    ReadRefused,
    RequestAnswered,
    RequestGone,
    RequestJudged,
    RequestOpened,
)
from ashep.core.runs.folding import MAX_REPORTS, done
from ashep.core.state.flow import Flow, Posture, Run
from ashep.core.state.frozen import replace

RequestFact = RequestOpened | RequestGone | ReadRefused | RequestJudged | InputWanted | InputEnded | RequestAnswered

INPUT = "input."
"""How the names of comments begin that put a request to a person."""


def request_fact(flow: Flow, fact: RequestFact, seq: int, at: datetime) -> Flow:
    """Fold a fact about a session's requests."""
    if isinstance(fact, RequestAnswered):
        flow = done(flow, fact.key, seq)
    run = flow.run
    if run is None or run.id != fact.run:
        return flow
    if isinstance(fact, InputEnded):
        flow = replace(_ended(flow, run, at), why=fact.why, since=at)
        asks = flow.target is not None and flow.target.input
        return replace(flow, target=Posture(seq, "work", run.phase)) if asks else flow
    if run.ended:
        return flow
    match fact:
        case RequestOpened():
            pending = Pending(fact.request, seq)
            return replace(flow, run=replace(run, requests=(*run.requests, pending)))
        case ReadRefused():
            fresh = 0 if fact.what == "turn" and fact.as_of >= run.fresh_after else run.fresh_after
            unshown = tuple(dict.fromkeys((*run.unshown, fact.what)))
            return replace(flow, run=replace(run, unshown=unshown, fresh_after=fresh))
        case RequestGone() | RequestAnswered():
            return _over(flow, run, fact.request)
        case RequestJudged():
            return replace(flow, run=_judged(run, fact))
        case InputWanted():
            run = replace(run, shown=fact.request, waits_since=run.waits_since or at)
            flow = replace(flow, run=run, target=Posture(seq, "ask", run.phase, input=True))
            return replace(flow, why=fact.why, since=at)
        case _:
            assert_never(fact)


def _over(flow: Flow, run: Run, request: str) -> Flow:
    left = tuple(pending for pending in run.requests if pending.request.id != request)
    known = (*flow.requests, request)[-MAX_REPORTS:]
    return replace(flow, run=replace(run, requests=left), requests=known)


def _judged(run: Run, fact: RequestJudged) -> Run:
    def judged(pending: Pending) -> Pending:
        if pending.request.id != fact.request:
            return pending
        return dataclasses.replace(
            pending, verdict=fact.verdict, answers=fact.answers, message=fact.message, due=fact.due
        )

    return replace(run, requests=tuple(map(judged, run.requests)), used=(*run.used, *fact.used))


def _ended(flow: Flow, run: Run, at: datetime) -> Flow:
    """Nobody is waited for any more: the run's times go on where they stood, and what was to be said is over."""
    waited = at - run.waits_since if run.waits_since is not None else timedelta()
    left = tuple(pending for pending in run.requests if pending.verdict != "ask")
    over = (*flow.requests, *(one.request.id for one in run.requests if one.verdict == "ask"))[-MAX_REPORTS:]
    run = replace(
        run, requests=left, shown="", waits_since=None, doubted=False,
        deadline=run.deadline + waited if run.deadline else None,
        sign_due=run.sign_due + waited if run.sign_due else None,
        stall_due=at + run.stall_after if run.stall_after is not None else None,
    )  # fmt: skip
    comments = tuple(comment for comment in flow.comments if not comment[0].startswith(INPUT))
    return replace(flow, run=run, thought=flow.thought + waited, comments=comments, requests=over)
