"""The rules of one issue: what follows from a fact. A rule never starts a run; it makes a phase wanted."""

from datetime import timedelta

from ashep.core import asking, pull_requests, recycling
from ashep.core.adopting import after_policies
from ashep.core.breaker import after_read
from ashep.core.budgets import after_settings, after_start, after_turn, reached
from ashep.core.cancelling import cancelled
from ashep.core.closing import conflicted, criteria, flagged, landed, refused, verified
from ashep.core.commands import ClaimIssue, ReadAnswer, ReadIssue, WriteIssue
from ashep.core.events import (
    Adopted,
    AnswerRead,
    BudgetReached,
    ClaimRefused,
    CriteriaAdopted,
    EffectFailed,
    Fact,
    GuardRefused,
    IssueAdopted,
    IssueCancelled,
    IssueClaimed,
    IssueClosed,
    IssueFinished,
    IssueGone,
    IssueLeft,
    IssueReclaimed,
    IssueSeen,
    IssueWritten,
    LandingRefused,
    LeaseExpired,
    LeaseLost,
    OutcomeRejected,
    PromptAbandoned,
    PullRequestMerged,
    PullRequestOpened,
    PullRequestSeen,
    RequestAnswered,
    RequestGone,
    RequestJudged,
    RequestOpened,
    RetryScheduled,
    RunEnded,
    RunPlanned,
    RunWithdrawn,
    ServerFailed,
    ServerMemorySeen,
    SessionReleased,
    SessionSeen,
    TimerDue,
    TreeSealed,
    TreeSeen,
    TurnDied,
    TurnSeen,
    WorkConflicted,
    WorkLanded,
    WorkVerified,
    WriteRefused,
)
from ashep.core.evolve_flow import stale
from ashep.core.flow import Flow
from ashep.core.orphans import lease_expired, reclaimed
from ashep.core.people import answered, obey, unparked
from ashep.core.reminding import TIMER, after_reminder
from ashep.core.routing import abort, after_deadline, after_run, park
from ashep.core.takeover import labelled, released, session_seen
from ashep.core.timers import flow_dues, split_timer
from ashep.core.turns import turn_seen
from ashep.core.world import World

CLAIM_AGAIN = timedelta(minutes=1)
"""After a refused claim: a tracker that lists as ready what it lets nobody claim is not asked once a second."""

INFRA_LIMIT = 10
"""Infrastructure failures in a row after which an issue parks, never earlier than `INFRA_TIME` after the first."""

INFRA_SECONDS = 120.0


def decide(before: World, world: World, fact: Fact) -> list[Fact]:
    """Say what follows from a fact for its issue; `world` has the fact folded in, `before` has not."""
    match fact:
        case TimerDue():
            return _timer(before, world, fact)
        case TreeSeen():
            return _tree(world, fact)
        case IssueCancelled():
            flow = world.flows.get(fact.issue)
            return cancelled(flow, fact) if flow else []
        case BudgetReached():
            return reached(world, fact)
        case RunPlanned():
            return after_start(world)
        case ServerFailed():
            return recycling.failed(before, fact, world.now)
        case ServerMemorySeen():
            return recycling.memory_seen(world, fact)
        case SessionSeen() | SessionReleased():
            flow = world.flows.get(fact.issue)
            return _held(world, before.flows.get(fact.issue, flow), flow, fact) if flow else []
        case Adopted(kind="settings"):
            return after_settings(world)
        case Adopted(kind="policies"):
            return after_policies(world)
        case (
            RequestOpened() | RequestGone() | RequestJudged() | RequestAnswered() | OutcomeRejected() | TurnDied()
            | PromptAbandoned()
        ):  # fmt: skip
            flow = world.flows.get(fact.issue)
            return _request(world, flow, fact) if flow else []
        case (
            WorkVerified() | WorkConflicted() | WorkLanded() | LandingRefused() | CriteriaAdopted() | IssueFinished()
            | TreeSealed() | PullRequestMerged()
        ):  # fmt: skip
            flow = world.flows.get(fact.issue)
            return _work(world, before.flows.get(fact.issue, flow), flow, fact) if flow else []
        case PullRequestOpened() | PullRequestSeen():
            flow = world.flows.get(fact.issue)
            return _pull(world, before.flows.get(fact.issue, flow), flow, fact) if flow else []
        case LeaseLost() | LeaseExpired() | IssueReclaimed() | IssueAdopted():
            flow = world.flows.get(fact.issue)
            return _orphan(before, world, flow, fact) if flow else []
        case (
            IssueSeen() | IssueGone() | IssueClaimed() | IssueWritten() | AnswerRead() | TurnSeen() | RunEnded()
            | ClaimRefused() | WriteRefused() | EffectFailed() | GuardRefused()
        ):  # fmt: skip
            flow = world.flows.get(fact.issue)
            return _issue(before, world, flow, fact) if flow else []
        case _:
            return []


def _issue(
    before: World,
    world: World,
    flow: Flow,
    fact: IssueSeen | IssueGone | IssueClaimed | IssueWritten | AnswerRead | TurnSeen | RunEnded | ClaimRefused
    | WriteRefused | EffectFailed | GuardRefused,
) -> list[Fact]:  # fmt: skip
    earlier = before.flows.get(fact.issue, flow)
    match fact:
        case IssueSeen():
            if stale(earlier, fact.as_of) and fact.key is None:
                return []
            obeyed = unparked(world, earlier, flow) or _obey(world, flow) or asking.withdrawn(world, flow)
            return obeyed or _leased_again(world, earlier, flow)
        case IssueClaimed() | IssueWritten():
            return _obey(world, flow)
        case IssueGone():
            return _gone(earlier, flow, fact)
        case AnswerRead():
            heard = answered(world, flow, fact) or asking.told(world, flow, fact)
            return obey(world, flow) or heard or asking.withdrawn(world, flow)
        case TurnSeen():
            judged = [*after_read(world, flow, fact), *turn_seen(world, earlier, flow, fact)]
            return judged if flow.spent == earlier.spent else judged + after_turn(world, flow, judged)
        case RunEnded():
            return [*asking.over(flow, "its run is over"), *after_run(world, flow, fact)]
        case ClaimRefused():
            again = world.now + CLAIM_AGAIN
            left = IssueLeft(fact.issue, "claim_lost", fact.error[:300], not_before=again)
            return [*abort(flow, "the claim was lost"), left]
        case WriteRefused():
            return _write_refused(flow, fact)
        case EffectFailed():
            return _effect_failed(world, earlier, flow, fact)
        case GuardRefused():
            return []


def _request(
    world: World,
    flow: Flow,
    fact: RequestOpened | RequestGone | RequestJudged | RequestAnswered | OutcomeRejected | TurnDied | PromptAbandoned,
) -> list[Fact]:
    match fact:
        case RequestOpened():
            return asking.opened(world, flow, fact)
        case RequestGone() | RequestJudged() | RequestAnswered():
            return asking.advance(world, flow)
        case OutcomeRejected() | TurnDied() | PromptAbandoned():
            return asking.over(flow, "the turn in which it asked is over")


def _work(
    world: World,
    earlier: Flow | None,
    flow: Flow,
    fact: WorkVerified | WorkConflicted | WorkLanded | LandingRefused | CriteriaAdopted | IssueFinished | TreeSealed
    | PullRequestMerged,
) -> list[Fact]:  # fmt: skip
    match fact:
        case WorkVerified():
            return verified(world, earlier or flow, flow, fact)
        case WorkConflicted():
            return conflicted(world, flow, fact)
        case WorkLanded() | PullRequestMerged():
            return landed(flow, fact)
        case LandingRefused():
            return refused(flow, fact)
        case CriteriaAdopted():
            return criteria(flow, fact)
        case IssueFinished() | TreeSealed():
            return flagged(world, flow)


def _pull(world: World, earlier: Flow | None, flow: Flow, fact: PullRequestOpened | PullRequestSeen) -> list[Fact]:
    if isinstance(fact, PullRequestOpened):
        return pull_requests.opened(earlier or flow, flow, fact)
    return pull_requests.seen(world, earlier or flow, flow, fact)


def _orphan(
    before: World, world: World, flow: Flow, fact: LeaseLost | LeaseExpired | IssueReclaimed | IssueAdopted
) -> list[Fact]:
    match fact:
        case LeaseLost():
            return abort(flow, f"the lease was lost: {fact.why}") if before.flows[fact.issue].leased else []
        case LeaseExpired():
            asked = world.daemon is None or not world.daemon.only or fact.issue in world.daemon.only
            return lease_expired(world, flow, fact, asked)
        case IssueReclaimed():
            return reclaimed(flow, fact, world.seq)
        case IssueAdopted():
            return _obey(world, flow)


def _obey(world: World, flow: Flow) -> list[Fact]:
    return obey(world, flow) or labelled(world, flow)


def _held(world: World, earlier: Flow | None, flow: Flow, fact: SessionSeen | SessionReleased) -> list[Fact]:
    if earlier is None:
        return []
    if isinstance(fact, SessionSeen):
        return session_seen(world, earlier, flow, fact)
    return released(world, flow, earlier.held, fact.why) if earlier.held else []


def _leased_again(world: World, earlier: Flow, flow: Flow) -> list[Fact]:
    """After a refused heartbeat a fresh read shows the issue as ours all the same: that was no agent's fault."""
    if not earlier.lease_lost or flow.lease_lost or flow.stage != "work" or flow.wanted or flow.phase is None:
        return []
    if flow.verifying:
        return []  # its run had succeeded
    if flow.run is not None and not flow.run.ended:
        return []
    why = "the tracker refused a heartbeat, and shows the issue as ours"
    return [RetryScheduled(flow.issue.id, flow.phase, flow.failures, world.now, why)]


def _timer(before: World, world: World, fact: TimerDue) -> list[Fact]:
    name, issue = split_timer(fact.key)
    earlier, flow = before.flows.get(issue), world.flows.get(issue)
    if earlier is None or flow is None or (name, fact.due) not in flow_dues(earlier):
        return []
    if name == "question" and flow.question is not None:
        return after_deadline(world, flow, flow.question)
    if name == TIMER and flow.question is not None:
        return after_reminder(world, flow, flow.question)
    return asking.expired(world, flow) if name == "input" else []


def _tree(world: World, fact: TreeSeen) -> list[Fact]:
    flow = world.flows.get(fact.issue) if fact.issue else None
    if fact.moment != "before" or flow is None or flow.run is None or flow.run.id != fact.run or flow.run.ended:
        return []
    foreign = foreign_changes(world)
    if not foreign or world.settings.worker.allow_dirty or _other_writers(world, flow):
        return []
    why = f"the work tree has changes that are not ashep's: {', '.join(foreign[:5])}"
    return [RunWithdrawn(flow.issue.id, flow.run.id, "tree_dirty", why)]


def foreign_changes(world: World) -> list[str]:
    """Tracked paths that are changed or staged by other than our own runs."""
    dirty = world.tree.dirty if world.tree else ()
    return [path for path, content in dirty if world.left_over.get(path, ("", ""))[0] != content]


def _other_writers(world: World, flow: Flow) -> bool:
    runs = (world.flows[issue].run for issue in world.live if issue != flow.issue.id)
    return any(run is not None and run.access == "write" for run in runs)


def _gone(earlier: Flow, flow: Flow, fact: IssueGone) -> list[Fact]:
    if flow.stage == "closed" or (fact.key is None and stale(earlier, fact.as_of)):
        return []
    if fact.key is not None:
        why = "the tracker has no such issue any more"
        return [*abort(flow, why), IssueClosed(fact.issue, "somebody", why)]
    if flow.active:
        return []
    return [IssueClosed(fact.issue, "somebody", "no longer listed among the issues that are not closed")]


def _write_refused(flow: Flow, fact: WriteRefused | EffectFailed) -> list[Fact]:
    if flow.stage == "finishing":
        return park(flow, "close_refused", f"the tracker refuses to close it: {fact.error[:300]}")
    why = f"the tracker refuses our write: {fact.error[:300]}"
    return [*abort(flow, why), IssueLeft(fact.issue, "write_refused", why)]


def _effect_failed(world: World, earlier: Flow, flow: Flow, fact: EffectFailed) -> list[Fact]:
    run, asked = flow.run, next((command for command in earlier.open if command.key == fact.key), None)
    if asked is None:
        return []
    if not fact.infra and not isinstance(asked, (ReadIssue, ReadAnswer)):
        if isinstance(asked, (ClaimIssue, WriteIssue)):
            return _write_refused(flow, fact)
        if run is not None and not run.ended and fact.key.startswith(run.id + "/"):
            return [RunEnded(fact.issue, run.id, "failed", f"the agent server refuses: {fact.error[:300]}", abort=True)]
        return []
    if flow.infra < INFRA_LIMIT or flow.infra_began is None or flow.stage == "parked" or not flow.active:
        return []
    if (world.now - flow.infra_began).total_seconds() < INFRA_SECONDS:
        return []
    why = f"{flow.infra} infrastructure failures in a row, the last: {fact.error[:300]}"
    return [*abort(flow, why), *park(flow, "infrastructure", why)]
