"""Reads become facts by difference: what a read shows is compared with the World, and only what differs is a fact.

An unchanged read leaves nothing. `as_of` is the sequence number at which the read began.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from ashep.core.delivery.base_checks import is_checked
from ashep.core.facts import tracker
from ashep.core.facts.commands import AnswerRequest
from ashep.core.facts.delivery import BaseChecked, CriteriaChanged, Tree, TreeSeen
from ashep.core.facts.requests import Request
from ashep.core.facts.resources import DiskSeen, MachineSeen, RunnerSeen, ServerFailed
from ashep.core.facts.runs import Quota, QuotaSeen, RequestGone, RequestOpened, SessionSeen, TurnBegun, TurnSeen
from ashep.core.facts.vocabulary import Fact, ReadRefused
from ashep.core.policy.checks import Criteria, hash_of
from ashep.core.policy.disk_limits import is_low
from ashep.core.policy.load_limits import busy_reason
from ashep.core.reconcile.eligibility import LEASE_GRACE, policy_for
from ashep.core.resources import providers
from ashep.core.resources.budgets import is_worth_telling
from ashep.core.runs.prompt_commands import message_id
from ashep.core.state.flow import Flow
from ashep.core.state.pending_intents import stale
from ashep.core.state.runner_state import flapped, get_server, steadied
from ashep.core.state.world import World

NO_CHECKS = Criteria()
"""What stands for an issue's checks that were taken away, or cannot be read any more."""


def compare_tracker(
    world: World,
    ready: tuple[str, ...] | None,
    issues: Iterable[tracker.Issue],
    tree: Tree | None,
    as_of: int,
    others: Iterable[str] = (),
) -> list[Fact]:
    """Compare a complete view of the tracker, and the work tree, with the World; of `others` no more than that they
    are there.

    `ready` is None where that could not be read: what was known of it stays, and is as fresh as it was.
    """
    facts: list[Fact] = []
    if tree is not None and tree != world.tree:
        facts.append(TreeSeen(tree))
    seen = list(issues)
    facts += issues_read(world, seen, as_of)
    for issue in sorted({*world.indexes.unclosed}.difference((view.id for view in seen), others)):
        flow = world.flows[issue]
        if not flow.look_again and not stale(flow, as_of):
            facts.append(tracker.IssueGone(issue, as_of))
    return facts if ready is None else facts + ready_read(world, ready, as_of)


def checked_policies(world: World) -> list[str]:
    """Name the policies whose checks are run on the base: those of issues that are ready, or worked on."""
    policies, prefix, used = world.policies, world.settings.labels.policy_prefix, set[str | None]()
    names = [name for name in policies.policies if is_checked(world, name)] if policies is not None else []
    for issue in (*world.indexes.live, *world.ready):
        flow = world.flows.get(issue)
        if policies is not None and flow is not None and not used.issuperset(names):
            used.add(flow.policy if flow.active else policy_for(policies, flow.issue, prefix)[1])
    return [name for name in names if name in used]


def base_read(world: World, checked: BaseChecked) -> list[Fact]:
    """Report what checks found on the base; what keeps them from being run takes nothing back."""
    known = world.bases.get(checked.policy)
    return [] if checked.error and known is not None and (known.commit or known.error) else [checked]


def ready_read(world: World, ready: tuple[str, ...], as_of: int) -> list[Fact]:
    """Compare a complete view of what is ready with what is known of it."""
    known = {*world.ready}
    added = tuple(issue for issue in ready if issue not in known)
    removed = tuple(sorted(known.difference(ready)))
    return [tracker.ReadyChanged(added, removed, as_of)] if added or removed or not world.ready_fresh else []


def issues_read(world: World, views: Iterable[tracker.Issue], as_of: int) -> list[Fact]:
    """Compare issues with what is known of them."""
    return [fact for view in views for fact in issue_read(world, view, as_of)]


def issue_read(world: World, view: tracker.Issue, as_of: int) -> list[Fact]:
    """Compare one issue with what is known of it."""
    flow = world.flows.get(view.id)
    unchanged = flow is not None and view == flow.issue and not flow.look_again and flow.stage != "closed"
    if unchanged or (flow is not None and stale(flow, as_of)):
        return []
    return [tracker.IssueSeen(view.id, view, as_of)]


def criteria_read(flow: Flow, criteria: Criteria | None) -> list[Fact]:
    """Compare an issue's checks with those that were adopted, and tell others once; None: there are none."""
    known = flow.work.criteria
    if known is None or not flow.active:
        return []
    now = hash_of(criteria or NO_CHECKS)
    if now == (known.seen or known.hash or hash_of(NO_CHECKS)):
        return []
    why = "somebody changed the checks in the acceptance criteria; those that were adopted go on to count"
    return [CriteriaChanged(flow.issue.id, now, why)]


def expired_leases(world: World, leases: Iterable[tuple[tracker.Issue, datetime | None]], now: datetime) -> list[Fact]:
    """Find the issues whose holder, another daemon, must be dead: each lease is told of once."""
    return [
        tracker.LeaseExpired(view.id, view.assignee, expired)
        for view, expired in leases
        if expired is not None
        and expired <= now - LEASE_GRACE  # the other way round a lease at the end of time overflows
        and view.stamp is not None
        and view.assignee not in (None, world.actor)
        and (flow := world.flows.get(view.id)) is not None
        and flow.expired != (view.assignee, expired)
    ]


def lease_lost(world: World, issue: str, why: str, as_of: int) -> list[Fact]:
    """A heartbeat was refused: that says nothing where our own write has changed the issue meanwhile."""
    flow = world.flows.get(issue)
    if flow is None or not flow.leased or flow.lease_lost or stale(flow, as_of):
        return []
    return [tracker.LeaseLost(issue, why)]


def hinted(world: World) -> list[Fact]:
    """Something may have changed: worth a fact only where a start could come from the present view."""
    return [tracker.ChangeHinted()] if world.ready_fresh else []


def tracker_read(world: World, seen: tracker.TrackerSeen, tried: str = "") -> list[Fact]:
    """Compare what the tracker is, and what of it cannot be read, with what is known; `tried` as in `replaced_by`."""
    known = world.tracker
    if known is not None:
        seen = replace(seen, replaced=replaced_by(known.version, seen.version, tried))
        known = replace(known, lacks=seen.lacks if known.lacks and seen.lacks else known.lacks, replaced="")
    return [] if known == seen and not world.tracker_error else [seen]


def replaced_by(before: str, now: str, tried: str) -> str:
    """Say that another version answers than before, and, where that is none, which one ashep is `tried` with."""
    if "" in (before, now) or before == now:
        return ""
    return f"{now} answers where {before} did" + ("" if tried in ("", now) else f"; ashep is tried with {tried}")


def runner_read(world: World, seen: RunnerSeen, now: datetime) -> list[Fact]:
    """Compare a runner's state with what is known of it.

    One that comes and goes is away, until it has answered for longer than it does: that is one fact with a count.
    """
    server = get_server(world.servers, seen.runner)
    last, known = world.seen.get(seen.runner), server.instance
    if is_known(last, seen):
        return []
    if seen.state == "up" and last is not None and last.state != "up":
        other = world.dies(seen.runner) and seen.instance != known  # its starts have pauses of their own
        times = 0 if other else flapped(server)
        since = server.away
        if since is not None and since <= now < since + steadied(times):  # a clock that was set back tells nothing
            return []
        seen = replace(seen, times=times + 1)
    if seen.state == "up" and world.dies(seen.runner) and known not in ("", seen.instance):
        why = "it ended by itself, or did not answer any more and was ended"
        return [ServerFailed(known, why, seen.runner), seen]
    return [seen]


def is_known(last: RunnerSeen | None, seen: RunnerSeen) -> bool:
    """Whether a look shows the server as it was; why exactly it does not answer is no news."""
    if last is None:
        return False
    same = (last.state, last.patient) == (seen.state, seen.patient) and seen.state != "up"
    return same or seen == replace(last, times=0, replaced="")


def turn_read(world: World, seen: TurnSeen) -> list[Fact]:
    """Compare a read of a session with what is known of the turn; a verdict that waits for a fresh read gets it."""
    flow = world.flows.get(seen.issue)
    run = flow.run if flow else None
    if flow is None or run is None or run.id != seen.run or run.ended or seen.n != run.prompt.n or not run.prompt.sent:
        return []
    if seen.as_of < run.effect_seq or seen.as_of < run.watch.fresh_after:
        return []
    same = (seen.state, seen.people, seen.instance) == (run.turn, run.people, run.turn_instance)
    same = same and seen.starting == (run.watch.starting_since is not None) and not seen.not_started
    looked_into = run.watch.doubted and seen.life is not None and seen.state == "running"
    told = same and run.watch.fresh_after == 0 and not looked_into
    if told and not is_worth_telling(world, flow, run, seen) and not providers.is_worth_telling(world, run, seen):
        return []
    return [seen]


def quota_read(world: World, issue: str, run_id: str, quota: Quota | None) -> list[Fact]:
    """Compare what a run's session shows of a quota with what it showed before: what other runs show may be newer."""
    run = flow.run if (flow := world.flows.get(issue)) else None
    if quota is None or run is None or run.id != run_id or run.ended or quota == run.quota:
        return []
    return [QuotaSeen(issue, run_id, run.session_runner, quota)]


def turn_asked(world: World, session: str, message: str) -> list[Fact]:
    """Say that the turn of a prompt begins, where its runner asks whether it may; nothing: it may not.

    It may where the prompt is one that is to be answered now, and once: what died is begun again by a decision only.
    """
    for issue in sorted(world.indexes.live):
        flow = world.flows[issue]
        run = flow.run
        if run is None or run.session != session or message_id(world, run) != message:
            continue
        if run.ended or run.stop or run.prompt.begun or flow.takeover is not None or flow.stage != "work":
            return []
        return [TurnBegun(issue, run.id, run.prompt.n, message)]
    return []


def turn_refused(world: World, issue: str, run_id: str, why: str, as_of: int, *, away: bool = False) -> list[Fact]:
    """A read of a session was refused: told once, and where a verdict waits for a read, which this one is.

    `away`: the session's own server did not answer.
    """
    flow = world.flows.get(issue)
    run = flow.run if flow else None
    if run is None or run.id != run_id or run.ended or not run.prompt.sent:
        return []
    waits = run.watch.fresh_after != 0 and as_of >= run.watch.fresh_after
    is_news = waits or "turn" not in run.asks.unshown
    return [ReadRefused(issue, run_id, "turn", why[:1000], as_of, away)] if is_news else []


def session_read(world: World, seen: SessionSeen) -> list[Fact]:
    """Compare a read of a session that a person took with what is known; whether they are quiet is said when asked."""
    flow = world.flows.get(seen.issue)
    takeover = flow.takeover if flow else None
    if flow is None or takeover is None:
        back = flow.resume if flow else None
        return [seen] if back is not None and not set(seen.people) <= set(back.people) else []
    asked = takeover.fresh_after != 0 and seen.as_of >= takeover.fresh_after
    return [seen] if asked or (seen.people, seen.busy) != (takeover.people, takeover.busy) else []


def requests_read(world: World, listed: Iterable[Request], as_of: int) -> list[Fact]:
    """Compare what the server lists as unanswered with what is known of each run's requests."""
    found: dict[str, list[Request]] = {}
    for request in listed:
        found.setdefault(request.session, []).append(request)
    facts: list[Fact] = []
    for issue in sorted(world.indexes.live):
        flow, run = world.flows[issue], world.flows[issue].run
        if run is None or run.ended or run.session is None or not run.prompt.sent or flow.takeover is not None:
            continue
        said = found.get(run.session, [])
        mine, unlisted = [one for one in said if one.id], next((one.unlisted for one in said if one.unlisted), "")
        if unlisted and "requests" not in run.asks.unshown:
            facts.append(ReadRefused(issue, run.id, "requests", unlisted[:1000], as_of))
        known = {*flow.requests, *(pending.request.id for pending in run.asks.requests)}
        facts += (RequestOpened(issue, run.id, one, as_of) for one in mine if one.id not in known)
        under_way = {command.request for command in flow.open if isinstance(command, AnswerRequest)}
        listed_now = {one.id for one in mine}
        left = () if unlisted else (one for one in run.asks.requests if one.request.id not in listed_now)
        gone = (pending for pending in left if pending.seq <= as_of)
        facts += (RequestGone(issue, run.id, one.request.id, as_of) for one in gone if one.request.id not in under_way)
    return facts


def machine_read(world: World, pressure: float | None, lag: float) -> list[Fact]:
    """Compare the machine's load with what is known of it: another state is a fact, and another figure is none."""
    why = busy_reason(pressure, lag, was_busy=bool(world.machine_busy))
    return [] if bool(why) == bool(world.machine_busy) else [MachineSeen("busy" if why else "ok", why)]


def disk_read(world: World, free: int) -> list[Fact]:
    """Compare the room on the disk with what is known of it."""
    low = is_low(free, was_low=world.disk_low)
    return [] if low == world.disk_low else [DiskSeen("low" if low else "ok")]
