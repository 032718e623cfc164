"""What a flow waits for a time for, how such a timer is called, and what changes when its time has come."""

import dataclasses
from datetime import datetime, timedelta

from ashep.core.state.delivery import Rest
from ashep.core.state.flow import Flow, idled, with_work
from ashep.core.state.immutable import replace
from ashep.core.state.run import Run, with_watch


def flow_dues(flow: Flow) -> list[tuple[str, datetime]]:
    """Everything that this flow waits for a time for, by the timer's name."""
    dues: list[tuple[str, datetime]] = []
    if flow.not_before is not None:
        dues.append(("wait", flow.not_before))
    if flow.question is not None and flow.stage == "person":
        dues.append(("question", flow.question.due))
        if flow.question.remind is not None:
            dues.append(("remind", flow.question.remind))
    if flow.effect_after is not None:
        dues.append(("effect", flow.effect_after))
    if flow.write_after is not None:
        dues.append(("write", flow.write_after))
    if flow.takeover is not None and flow.takeover.due is not None:
        dues.append(("quiet", flow.takeover.due))
    if flow.work.landing is not None and flow.work.landing.due is not None:
        dues.append(("landing", flow.work.landing.due))
    rest = flow.work.own.rest if flow.stage == "closed" and flow.work.own is not None else None
    if rest is not None and rest.due is not None:
        dues.append(("tree", rest.due))
    run = flow.run
    if run is not None and run.stop_due is not None:
        dues.append(("stop", run.stop_due))
    if run is None or run.ended:
        return dues
    if run.asks.requests and flow.stage == "work" and flow.takeover is None:
        asked = [pending.due for pending in run.asks.requests if pending.verdict == "ask" and pending.due is not None]
        if asked:
            dues.append(("input", min(asked)))
    watch = run.watch
    if not flow.waits_for_input:
        if run.deadline is not None and not watch.overdue and watch.starting_since is None:
            dues.append(("deadline", run.deadline))
        if watch.sign_due is not None:
            dues.append(("sign", watch.sign_due))
        if watch.stall_due is not None:
            dues.append(("stall", watch.stall_due))
    return dues


def split_timer(key: str) -> tuple[str, str]:
    """Take a timer's key apart: its name and its issue."""
    name, _, issue = key.partition(":")
    return name, issue


def over(flow: Flow, name: str, seq: int, at: datetime) -> Flow:
    """A wait of this flow is over."""
    run = flow.run
    match name, run:
        case "question", _ if flow.question is not None:
            return idled(flow, at - flow.question.asked)
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
    run = with_watch(
        replace(
            run,
            deadline=run.deadline + gap if run.deadline else None,
            stop_due=run.stop_due + gap if run.stop_due else None,
        ),
        sign_due=run.watch.sign_due + gap if run.watch.sign_due else None,
        stall_due=run.watch.stall_due + gap if run.watch.stall_due else None,
    )
    return replace(flow, run=run)
