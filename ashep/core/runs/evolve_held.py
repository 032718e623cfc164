"""How it changes a flow that a person takes its session, works there, and is done: a part of `evolve`."""

import dataclasses
from datetime import datetime, timedelta
from typing import assert_never

from ashep.core.facts.vocabulary import ReleaseWanted, SessionReleased, SessionSeen, SessionTaken
from ashep.core.state.flow import Flow, Held, Posture
from ashep.core.state.frozen import replace
from ashep.core.state.passing import noted

LEFT_AT_WORK = timedelta(hours=1)
"""What is at work in the session of a person who is done, or says no more, is waited for so long; then it is left."""

HeldFact = SessionTaken | SessionSeen | ReleaseWanted | SessionReleased


def held_fact(flow: Flow, fact: HeldFact, seq: int, at: datetime) -> Flow:
    """Fold a fact about a taken session."""
    match fact:
        case SessionTaken():
            return _taken(flow, fact, seq, at)
        case SessionSeen():
            return flow if flow.held is None else _theirs(replace(flow, held=_seen(flow.held, fact, at)), fact)
        case ReleaseWanted():
            due = at + LEFT_AT_WORK if flow.held and flow.held.session else None
            held = replace(flow.held, ending=True, due=due, fresh_after=seq) if flow.held else None
            return _label_is_gone(replace(flow, held=held, why=fact.why))
        case SessionReleased():
            return _released(flow, fact, seq, at)
        case _:
            assert_never(fact)


def without(sessions: tuple[tuple[str, str], ...], gone: str | None) -> tuple[tuple[str, str], ...]:
    """The last sessions of phases but this one, which nobody goes on in."""
    return tuple(one for one in sessions if one[1] != gone)


def _taken(flow: Flow, fact: SessionTaken, seq: int, at: datetime) -> Flow:
    run, target = flow.run, flow.target
    here = run if run is not None and run.session is not None and run.session == fact.session else None
    busy = here is not None and here.turn == "running"
    held = Held(fact.action, fact.label, fact.cooldown, fact.session, fact.message, here.people if here else (), busy)
    held = replace(held, outcome=fact.outcome)
    if run is not None and not run.ended:  # it is ended by a read that begins now
        run = replace(run, fresh_after=seq)
    if fact.label == "ours":
        target = Posture(seq, "work", flow.phase, paused=True)
    elif held.label == "theirs":
        flow = _label_is_gone(flow)
        target = flow.target
    flow = replace(flow, held=replace(held, due=_due(held, at)), resume=None, run=run, target=target, wanted=True)
    return replace(flow, code="paused", held_by="", why=fact.why, since=at)


def _due(held: Held, at: datetime) -> datetime | None:
    if held.session is None or held.cooldown is None or held.ending:
        return None
    return at + held.cooldown + (LEFT_AT_WORK if held.busy else timedelta())


def _seen(held: Held, fact: SessionSeen, at: datetime) -> Held:
    if fact.session != held.session:
        return held
    fresh = 0 if fact.as_of >= held.fresh_after else held.fresh_after
    if (fact.people, fact.busy) == (held.people, held.busy):
        return replace(held, fresh_after=fresh)
    seen = replace(held, people=fact.people, busy=fact.busy, fresh_after=fresh)
    if held.ending:
        return replace(seen, due=held.due or (at + LEFT_AT_WORK if seen.busy else None))
    return replace(seen, due=_due(seen, at))


def _theirs(flow: Flow, fact: SessionSeen) -> Flow:
    """A turn that a person's message began is not stopped in place of ours, whose stop is not done."""
    run = flow.run
    if run is None or not run.stop or not fact.people or fact.session != run.session:
        return flow
    return replace(flow, run=replace(run, stop=False))


def _label_is_gone(flow: Flow) -> Flow:
    """What we wrote stands there no more, or is a person's: nothing of it is to be taken off."""
    written = dataclasses.replace(flow.written, paused=False) if flow.written else None
    return replace(
        flow, written=written, target=dataclasses.replace(flow.target, paused=False) if flow.target else None
    )


def _released(flow: Flow, fact: SessionReleased, seq: int, at: datetime) -> Flow:
    held, run = flow.held, flow.run
    if run is not None and run.settled and run.before is not None:
        run = replace(run, tree_wanted="again")  # what the person changed meanwhile is the issue's
    code = ""
    if held is not None and held.label == "ours" and fact.by == "quiet":
        flow, code = replace(flow, target=Posture(seq, "work", flow.phase)), "paused"  # until our label is off again
    if held is not None and held.action == "review" and flow.phase:
        flow = replace(flow, passed=noted(flow.passed, flow.phase, "success"))
    resume = held if held is not None and held.session is not None and not fact.leave else None
    if held is not None and fact.leave:
        flow = replace(flow, sessions=without(flow.sessions, held.session))
    return replace(flow, held=None, resume=resume, run=run, wanted=True, code=code, held_by="", why=fact.why, since=at)
