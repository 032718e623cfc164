"""What a flow waits for a time for, how such a timer is called, and what changes when its time has come."""

import dataclasses
from datetime import datetime, timedelta

from ashep.core.state.delivery import Rest
from ashep.core.state.flow import Flow, idled, with_work
from ashep.core.state.immutable import replace
from ashep.core.state.run import Run, with_watch


def flow_dues(flow: Flow) -> list[tuple[str, datetime]]:
    """Everything that this flow waits for a time for, by the timer's name."""
    run, work = flow.run, flow.work
    question = flow.question if flow.stage == "person" else None
    rest = work.own.rest if flow.stage == "closed" and work.own is not None else None
    dues = [
        ("wait", flow.not_before),
        ("question", question and question.due),
        ("remind", question and question.remind),
        ("effect", flow.effect_after),
        ("write", flow.write_after),
        ("quiet", flow.takeover and flow.takeover.due),
        ("landing", work.landing and work.landing.due),
        ("tree", rest and rest.due),
        ("stop", run and run.stop_due),
    ]
    if run is not None and not run.ended:
        if flow.stage == "work" and flow.takeover is None:
            asked = (pending.due for pending in run.asks.requests if pending.verdict == "ask" and pending.due)
            dues.append(("input", min(asked, default=None)))
        if not flow.waits_for_input:
            watch = run.watch
            deadline = run.deadline if watch.starting_since is None and not watch.overdue else None
            dues += [("deadline", deadline), ("sign", watch.sign_due), ("stall", watch.stall_due)]
    return [(name, due) for name, due in dues if due is not None]


def split_timer(key: str) -> tuple[str, str]:
    """Take a timer's key apart: its name and its issue."""
    name, _, issue = key.partition(":")
    return name, issue


def expire_timer(flow: Flow, name: str, seq: int, time: datetime) -> Flow:
    """A wait of this flow is over."""
    run = flow.run
    match name, run:
        case "question", _ if flow.question is not None:
            return idled(flow, time - flow.question.asked)
        case "wait", _:
            return replace(flow, not_before=None)
        case "effect", _:
            return replace(flow, effect_after=None)
        case "write", _:
            return replace(flow, write_after=None)
        case "quiet", _ if flow.takeover is not None:
            return replace(flow, takeover=replace(flow.takeover, due=None, fresh_after=seq))
        case "landing", _ if flow.work.landing is not None:
            return with_work(flow, landing=dataclasses.replace(flow.work.landing, due=None))
        case "tree", _ if flow.work.own is not None and flow.work.own.rest is not None:
            return rested(flow, dataclasses.replace(flow.work.own.rest, due=None, asked=seq))
        case "deadline", Run():
            return replace(flow, run=with_watch(run, overdue=True, fresh_after=seq))
        case "stop", Run():
            return replace(flow, run=replace(run, stop_due=None))
        case "stall", Run():
            return replace(flow, run=with_watch(run, doubted=True, stall_due=None, fresh_after=seq))
        case "sign", Run():
            return replace(flow, run=with_watch(run, sign_due=None, probation="suspect", fresh_after=seq))
        case _:
            return flow


def rested(flow: Flow, rest: Rest | None) -> Flow:
    """Give the tree of a closed issue this time, or none."""
    return with_work(flow, own=flow.work.own and dataclasses.replace(flow.work.own, rest=rest))


def shifted(flow: Flow, gap: timedelta) -> Flow:
    """The clock jumped: a running deadline moves with it, and the gap is no working time of the cycle."""
    run = flow.run
    if flow.waits_for_input:  # its times stand still as it is, and go on by what will have passed
        return flow
    if flow.stage == "work" and not flow.on_pause:
        flow = idled(flow, gap)
    if flow.takeover is not None and flow.takeover.due is not None:
        flow = replace(flow, takeover=replace(flow.takeover, due=flow.takeover.due + gap))
    if run is None:
        return flow
    watch, dues = run.watch, (run.deadline, run.stop_due, run.watch.sign_due, run.watch.stall_due)
    deadline, stop_due, sign_due, stall_due = (due + gap if due else None for due in dues)
    watch = replace(watch, sign_due=sign_due, stall_due=stall_due)
    return replace(flow, run=replace(run, deadline=deadline, stop_due=stop_due, watch=watch))
