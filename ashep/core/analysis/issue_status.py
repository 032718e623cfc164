"""The account of an issue: exactly one of six states, with a reason (promise 3). Every picture is drawn from it."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from ashep.core.delivery import repository
from ashep.core.delivery.workspaces import waits_for_person
from ashep.core.policy.runner_kinds import OPENCODE, spoken
from ashep.core.resources.notices import is_to_be_told
from ashep.core.runs.requests import get_open_request, question_of
from ashep.core.state import holds, pauses, providers
from ashep.core.state.flow import Flow
from ashep.core.state.indexes import turn
from ashep.core.state.pending_intents import is_exhausted
from ashep.core.state.run import Asks, Run
from ashep.core.state.runner_state import get_server
from ashep.core.state.world import World

State = Literal["running", "person", "time", "parked", "not_eligible", "closed"]

TIMED = (
    "slot", "work_tree", "cooldown", "runner_away", "runner_unauthorized", "runner_misconfigured", "tracker_away",
    "retry", "tree_dirty", "branch", "no_base", "base_fails", "base_unchecked", "base_behind", "no_repository",
    "repository", "tree_unseen", "no_agent", "disk_low", *holds.CAPS, *holds.WITHHELD,
)  # fmt: skip
"""Holds that end by themselves or once the machine is put right; the others are about the issue."""


@dataclass(frozen=True, slots=True)
class IssueStatus:
    """Where an issue stands, for people."""

    issue: str
    title: str
    state: State
    reason: str
    code: str
    since: datetime | None
    phase: str | None
    policy: str | None
    run: str | None
    due: datetime | None = None


def account(world: World, issue: str) -> IssueStatus:
    """Say where an issue that the daemon knows stands; raises KeyError for one that it does not."""
    flow = world.flows[issue]
    state, code, reason = _finishing(world, flow) if flow.stage == "finishing" else _state(world, flow)
    seen = world.seen.get(flow.run.session_runner) if flow.run and not flow.run.ended else None
    if state == "running" and flow.run and seen and seen.state != "up":
        state, code = "time", f"runner_{seen.state}"
        reason = f"{flow.run.id} waits for {spoken(seen.runner)}: {seen.detail or 'it does not answer'}"
    elif code in ("runner_away", "runner_unauthorized") and (seen := world.seen.get(flow.held_by or OPENCODE)):
        reason = f"{reason.partition(': ')[0]}: {seen.detail[:300]}" if seen.detail else reason  # as it is by now
    run = flow.run.id if flow.run and (state == "running" or code == "input") else None
    phase = flow.phase if flow.active else None
    due = (_shared_due(world, flow, code) if state == "time" else None) or world.indexes.dues.get(issue)
    due = None if state == "closed" else due  # that is its tree's
    return IssueStatus(issue, flow.issue.title, state, reason, code, flow.since, phase, flow.policy, run, due)


def _shared_due(world: World, flow: Flow, code: str) -> datetime | None:
    """When it may go on, where that is no due time of the issue's own: a pause's end, a provider's, the budget's."""
    if code in holds.PAUSED:
        return pauses.until(world.pauses, flow.held_by)
    if code in holds.NO_PROVIDER:
        outage = providers.outage_of(world.outages, flow.held_by)
        return outage.until if outage is not None else None
    scope = {"budget": "day", "budget_provider": "provider"}.get(code, code)
    marks = (mark for mark in world.spending.marks if mark.hard and mark.scope == scope)
    return min((mark.until for mark in marks if mark.until is not None), default=None)


def _state(world: World, flow: Flow) -> tuple[State, str, str]:
    match flow.stage:
        case "closed" | "parked":
            return flow.stage, flow.code, flow.why
        case "person":
            asked = flow.question.text if flow.question else flow.why
            return "person", "question", f"asked: {asked[:200]}"
        case "work" if flow.code == "paused" and (
            flow.run is None or flow.run.settled or waits_for_person(world, flow)
        ):
            return "person", "paused", f"a person has the session: {flow.why}" if flow.takeover else flow.why
        case "work" if (asked := get_open_request(flow)) is not None:
            return "person", "input", f"asked: {question_of(asked.request)[:200]}"
        case "work" if (
            flow.run is not None and flow.run.stop and (flow.run.abort_unseen or flow.run.stop_due is not None)
        ):
            return "time", "turn_unsure", _unsure(flow, flow.run)
        case "work" if flow.effect_after is not None:
            return "time", "effect", _tried(world, flow)
        case "work" if flow.run is not None and not flow.run.ended:
            doubts = f"; prompts that came to no turn, in a row: {flow.doubts}" if flow.doubts else ""
            why = f"{flow.run.id} by {flow.run.agent}: {flow.why}{doubts}{_unseen(flow.run.asks)}"
            return "running", flow.run.state, why
        case "work" if flow.work.verifying:
            return "running", "verify", f"what {flow.work.verifying} made is being verified: {flow.why}"
        case "work":
            return "time", flow.code or "wanted", flow.why
        case "giving_back":
            return "running", flow.stage, flow.why
        case "idle" | "left" if flow.code in TIMED:
            return "time", flow.code, flow.why
        case _:
            return "not_eligible", flow.code or "unseen", flow.why or "not looked into yet"


def _unsure(flow: Flow, run: Run) -> str:
    if run.stop_due is not None:
        return f"the prompt of {run.id} in session {run.session} may still begin a turn: it is stopped once more then"
    return (
        f"nobody knows whether the turn of {run.id} in session {run.session} has stopped: {flow.infra} calls to stop "
        "it failed; nothing begins in its tree until the session is seen idle. Stop it there, or end its server"
    )


def _unseen(asks: Asks) -> str:
    words = {"requests": "what its session asks", "turn": "how its turn stands"}
    seen = " and ".join(words[what] for what in asks.unshown)
    return f"; the agent server refuses to show {seen}" if seen else ""


def _finishing(world: World, flow: Flow) -> tuple[State, str, str]:
    """Where an issue is whose work is done: in the queue, on its way to the base, or about to be closed."""
    landing = flow.work.landing
    if flow.effect_after is not None:
        return "time", "effect", _tried(world, flow)
    if landing is None or landing.is_over:
        return "running", "finishing", flow.why
    if landing.due is not None:
        return "time", flow.code, flow.why
    if flow.reviewed:
        url = flow.work.pull.url if flow.work.pull else ""
        return "person", "pull_request", f"its pull request waits to be merged: {url}"
    if (first := find_landing_ahead(world, flow)) is not None:
        return "time", "landing_queue", f"waits for {first}, which lands first: {landing.onto} takes one at a time"
    if landing.verify and not landing.verified and (landing.commit or not landing.onto):
        return "running", "landing_verify", f"what would land on {landing.onto or 'its branch'} is being verified"
    if landing.into:
        return "running", "landing", f"its pull request into {landing.into} is being opened"
    return "running", "landing", f"its work is being brought onto {landing.onto}"


def _tried(world: World, flow: Flow) -> str:
    if repository.is_in_trouble(flow) and (fault := repository.hold_of(world)) is not None:
        return f"cannot {flow.failing}, as no issue can now: {fault.why}"
    times = "once" if flow.infra == 1 else f"{flow.infra} times"
    return f"cannot {flow.failing} (failed {times}, tried again): {flow.error}"


def find_landing_ahead(world: World, flow: Flow) -> str | None:
    """Give the issue that lands first where another one waits for it; None: it waits for none."""
    waits = flow.work.landing is not None and flow.work.landing.onto and not flow.work.landing.landed
    first = turn(world.indexes) if waits else None
    return first if first != flow.issue.id else None


def is_idle(world: World, soon: timedelta = timedelta()) -> bool:
    """Nothing runs, nothing could start, and no timer is due within `soon`: people and parked issues are no work.

    What a pause keeps waiting is work where the pause has an end; else only a person can go on with it. Work is also to
    tell people what is due by then.
    """
    due = next((due for due, _ in world.indexes.due_order), None)
    soon_at = world.now + soon
    busy = any(not waits_for_person(world, world.flows[issue]) for issue in world.indexes.busy)
    saying = any(record.open is not None for record in world.sources.values())
    if busy or saying or (due is not None and due <= soon_at):
        return False
    is_behind = repository.is_behind(world) and not (world.repository and world.repository.error)
    if is_behind or repository.is_awaited(world):
        return False
    ends = any(pause.until for pause in world.pauses)
    outages = (outage for outage in world.outages if outage.tried_since or (outage.until and outage.until <= soon_at))
    tried = {outage.provider for outage in outages}  # by then
    for flow in (world.flows[issue] for issue in (world.indexes.unclosed if ends or tried else ())):
        if flow.code in holds.PAUSED and pauses.until(world.pauses, flow.held_by) is not None:
            return False
        if flow.code in holds.NO_PROVIDER and flow.held_by in tried:
            return False
    return not is_to_be_told(world, soon_at)


def is_held_up(world: World) -> bool:
    """Whether something could go on if only something outside answered or had room, or a person put it right.

    What a tracker has to show that does not answer nobody knows.
    """
    return bool(obstacle(world))


def obstacle(world: World) -> str:
    """Returns what keeps issues from going on that neither time nor another issue ends, and what a person can do."""
    if world.tracker_error:
        return f"the tracker does not answer: {world.tracker_error[:300]}"
    held = dict[str, list[Flow]]()
    for flow in _held_up(world):
        held.setdefault(flow.code, []).append(flow)
    words = list[str]()
    for code, flows in held.items():
        others = f" and {len(flows) - 1} more wait" if flows[1:] else " waits"
        remedy = f" ({holds.FREED_BY[code]})" if code in holds.FREED_BY else ""
        words.append(f"{flows[0].issue.id}{others}: {account(world, flows[0].issue.id).reason}{remedy}")
    return "; ".join(words)


def needs_person(world: World) -> bool:
    """Whether nothing that is held up can go on before a person has put something right."""
    return not world.tracker_error and all(flow.code in holds.FREED_BY for flow in _held_up(world))


def _held_up(world: World) -> list[Flow]:
    flows = (world.flows[issue] for issue in sorted(world.indexes.unclosed))
    codes, stages = (*holds.FREED_BY, *holds.AWAY), ("idle", "left", "work", "finishing")
    return [flow for flow in flows if flow.code in codes and flow.stage in stages]


def has_patience(world: World) -> bool:
    """Whether a runner that is away, and that something waits for, may still come back by itself.

    One that starts or is busy may, and a managed server that has not failed as often as infrastructure may.
    """
    flows = (world.flows[issue] for issue in world.indexes.unclosed)
    for name in {flow.held_by or OPENCODE for flow in flows if flow.code == "runner_away"}:
        seen, server = world.seen.get(name), get_server(world.servers, name)
        is_failing = server.failures > 0 and not is_exhausted(server.failures, server.away, world.now)
        if (seen is not None and seen.patient) or (is_failing and world.dies(name)):
            return True
    return False
