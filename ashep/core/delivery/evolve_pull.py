"""How facts about an issue's pull request change its flow: a part of `evolve`."""

import dataclasses
from datetime import datetime

from ashep.core.facts.pull_events import PullRequestMerged, PullRequestOpened, PullRequestReturned, PullRequestSeen
from ashep.core.state.flow import Flow
from ashep.core.state.frozen import replace
from ashep.core.state.proof import Flaw, Pull

MOST_HEADS = 100
"""Commits that a pull request remembers to have been pushed by us, the last ones."""

PullFact = PullRequestOpened | PullRequestSeen | PullRequestReturned | PullRequestMerged


def pull_fact(flow: Flow, fact: PullFact, seq: int, at: datetime) -> Flow:
    """Fold a fact that is about the pull request of this issue."""
    if isinstance(fact, PullRequestOpened):
        return _opened(flow, fact, seq, at)
    pull = flow.pull
    if pull is None or fact.number != pull.number:
        return flow
    match fact:
        case PullRequestSeen():
            if fact.as_of < pull.seq:
                return flow
            told = dataclasses.replace(
                pull, state=fact.state, seen=fact.head, ci=fact.ci, failing=fact.failing, remarks=fact.remarks
            )
            if flow.reviewed and told.theirs and not pull.theirs:
                why = f"somebody pushed {fact.head[:12]} to its pull request: that waits for them, {pull.url}"
                return replace(flow, pull=told, why=why, since=at)
            return replace(flow, pull=told)
        case PullRequestReturned():
            return replace(flow, flaw=Flaw(fact.kind, fact.why, fact.log))
        case PullRequestMerged():
            landing = flow.landing and dataclasses.replace(flow.landing, landed=True, commit=fact.commit)
            where = (pull.base, fact.commit)
            return replace(flow, landing=landing, landed=where, flaw=None, code="", why=fact.why, since=at)


def _opened(flow: Flow, fact: PullRequestOpened, seq: int, at: datetime) -> Flow:
    before, landing = flow.pull, flow.landing
    heads, heard = (fact.head,), frozenset[str]()
    if before is not None and before.number == fact.number:
        heads = tuple(dict.fromkeys((*before.heads, fact.head)))[-MOST_HEADS:]
        heard = before.heard | {one.id for one in before.remarks}
    pull = Pull(fact.number, fact.url, fact.name, fact.base, fact.head, seq, heads, heard, seen=fact.head)
    flow = replace(flow, pull=pull)
    if landing is None or landing.into != fact.base or flow.own is None or flow.own.head != fact.head:
        return flow  # the issue is elsewhere by now
    landing = dataclasses.replace(landing, asked=True, refused=0, due=None)
    why = f"its pull request waits to be merged: {fact.url}"
    return replace(flow, landing=landing, code="pull_request", why=why, since=at)
