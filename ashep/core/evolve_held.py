"""How it changes a flow that a person takes its session, works there, and is done: a part of `evolve`."""

import dataclasses
from datetime import datetime
from typing import assert_never

from ashep.core.events import ReleaseWanted, SessionReleased, SessionSeen, SessionTaken
from ashep.core.flow import Flow, Held, Posture
from ashep.core.values import replace

HeldFact = SessionTaken | SessionSeen | ReleaseWanted | SessionReleased


def held_fact(flow: Flow, fact: HeldFact, seq: int, at: datetime) -> Flow:
    """Fold a fact about a taken session."""
    match fact:
        case SessionTaken():
            return _taken(flow, fact, seq, at)
        case SessionSeen():
            return flow if flow.held is None else _theirs(replace(flow, held=_seen(flow.held, fact, at)), fact)
        case ReleaseWanted():
            held = replace(flow.held, ending=True, due=None, fresh_after=seq) if flow.held else None
            return _label_is_gone(replace(flow, held=held, why=fact.why))
        case SessionReleased():
            return _released(flow, fact, seq, at)
        case _:
            assert_never(fact)


def _taken(flow: Flow, fact: SessionTaken, seq: int, at: datetime) -> Flow:
    run, target = flow.run, flow.target
    here = run if run is not None and run.session is not None and run.session == fact.session else None
    busy = here is not None and here.turn == "running"
    held = Held(fact.action, fact.label, fact.cooldown, fact.session, fact.message, here.people if here else (), busy)
    if run is not None and not run.ended:  # it is ended by a read that begins now
        run = replace(run, fresh_after=seq)
    if fact.label == "ours":
        target = Posture(seq, "work", flow.phase, paused=True)
    flow = replace(flow, held=replace(held, due=_due(held, at)), resume=None, run=run, target=target, wanted=True)
    return replace(flow, code="paused", held_by="", why=fact.why, since=at)


def _due(held: Held, at: datetime) -> datetime | None:
    waits = held.session is not None and not held.busy and not held.ending
    return at + held.cooldown if waits and held.cooldown is not None else None


def _seen(held: Held, fact: SessionSeen, at: datetime) -> Held:
    if fact.session != held.session:
        return held
    fresh = 0 if fact.as_of >= held.fresh_after else held.fresh_after
    if (fact.people, fact.busy) == (held.people, held.busy):
        return replace(held, fresh_after=fresh)
    held = replace(held, people=fact.people, busy=fact.busy, fresh_after=fresh)
    return replace(held, due=_due(held, at))


def _theirs(flow: Flow, fact: SessionSeen) -> Flow:
    """A turn that a person's message began is not stopped in place of ours, whose stop is not done."""
    run = flow.run
    if run is None or not run.stop or not fact.people or fact.session != run.session:
        return flow
    return replace(flow, run=replace(run, stop=False))


def _label_is_gone(flow: Flow) -> Flow:
    """What we wrote stands there no more: nothing of it is to be taken off."""
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
    resume = held if held is not None and held.session is not None else None
    return replace(flow, held=None, resume=resume, run=run, wanted=True, code=code, held_by="", why=fact.why, since=at)
