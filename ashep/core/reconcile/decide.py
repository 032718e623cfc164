"""The rules of one issue: what follows from a fact. A rule never starts a run; it makes a phase wanted."""

from datetime import timedelta

from ashep.core.delivery import pulls, resting
from ashep.core.delivery.landing import conflicted, criteria, flagged, landed, misnamed, refused, verified
from ashep.core.delivery.trees import after, tree_rules
from ashep.core.facts.commands import ClaimIssue, ReadAnswer, ReadAuthors, ReadIssue, SealTree, WriteIssue
from ashep.core.facts.delivery import (
    CriteriaAdopted,
    LandingRefused,
    PullRequestMerged,
    PullRequestOpened,
    PullRequestSeen,
    TreeKept,
    TreeSealed,
    TreeSeen,
    WorkConflicted,
    WorkLanded,
    WorkVerified,
)
from ashep.core.facts.issues import (
    CommentWanted,
    IssueAdopted,
    IssueCancelled,
    IssueClosed,
    IssueFinished,
    IssueLeft,
    RetryScheduled,
)
from ashep.core.facts.resources import Adopted, BudgetReached, ServerFailed, ServerMemorySeen, TimerDue
from ashep.core.facts.runs import (
    OutcomeRejected,
    PromptAbandoned,
    RequestAnswered,
    RequestGone,
    RequestJudged,
    RequestOpened,
    RunEnded,
    RunPlanned,
    SessionReleased,
    SessionSeen,
    TurnDied,
    TurnSeen,
)
from ashep.core.facts.tracker import (
    AnswerRead,
    ClaimRefused,
    EffectFailed,
    GuardRefused,
    IssueClaimed,
    IssueGone,
    IssueReclaimed,
    IssueSeen,
    IssueWritten,
    LeaseExpired,
    LeaseLost,
    WriteRefused,
)
from ashep.core.facts.vocabulary import AuthorsRead, ChangeDoubted, ChangeJudged, Fact, ReadRefused, TreeLeft
from ashep.core.issues.people import TIMER, after_policies, after_reminder, answered, cancelled
from ashep.core.issues.routing import abort, after_deadline, after_run, park
from ashep.core.reconcile import changes
from ashep.core.reconcile.intake import lease_expired, reclaimed
from ashep.core.resources import server
from ashep.core.resources.budgets import after_settings, after_start, after_turn, reached
from ashep.core.resources.providers import after_read
from ashep.core.runs import requests
from ashep.core.runs.takeover import released, session_seen
from ashep.core.runs.turns import read_refused, turn_seen
from ashep.core.state.flow import Flow
from ashep.core.state.intents import stale
from ashep.core.state.run import Run
from ashep.core.state.timers import flow_dues, split_timer
from ashep.core.state.world import World

CLAIM_AGAIN = timedelta(minutes=1)
"""After a refused claim: a tracker that lists as ready what it lets nobody claim is not asked once a second."""


INFRA_LIMIT = 10
"""Infrastructure failures in a row after which an issue parks, never earlier than `INFRA_TIME` after the first."""


INFRA_SECONDS = 120.0


LOCK_TIME = timedelta(minutes=15)
"""How long an effect is tried again that another git's lock keeps from happening."""


def decide(before: World, world: World, fact: Fact) -> list[Fact]:
    """Say what follows from a fact for its issue; `world` has the fact folded in, `before` has not."""
    match fact:
        case TimerDue():
            return _timer(before, world, fact)
        case TreeSeen():
            return tree_rules(world, fact)
        case IssueCancelled():
            flow = world.flows.get(fact.issue)
            return cancelled(flow, fact) if flow else []
        case BudgetReached():
            return reached(world, fact)
        case RunPlanned():
            return after_start(world)
        case ServerFailed():
            return server.failed(before, fact, world.now)
        case ServerMemorySeen():
            return server.memory_seen(world, fact)
        case SessionSeen() | SessionReleased():
            flow = world.flows.get(fact.issue)
            return _held(world, before.flows.get(fact.issue, flow), flow, fact) if flow else []
        case Adopted(kind="settings"):
            return [*after_settings(world), *resting.after_settings(world)]
        case Adopted(kind="policies"):
            return after_policies(world)
        case IssueClosed():
            flow = world.flows.get(fact.issue)
            return resting.begins(world, flow) if flow else []
        case TreeKept():
            flow = world.flows.get(fact.issue)
            return resting.kept(world, flow, fact) if flow else []
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
        case ReadRefused():
            flow = world.flows.get(fact.issue)
            return read_refused(flow, fact) if flow else []
        case LeaseLost() | LeaseExpired() | IssueReclaimed() | IssueAdopted():
            flow = world.flows.get(fact.issue)
            return _orphan(before, world, flow, fact) if flow else []
        case (
            IssueSeen() | IssueGone() | IssueClaimed() | IssueWritten() | AnswerRead() | TurnSeen() | RunEnded()
            | ClaimRefused() | WriteRefused() | EffectFailed() | GuardRefused() | AuthorsRead()
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
    | WriteRefused | EffectFailed | GuardRefused | AuthorsRead,
) -> list[Fact]:  # fmt: skip
    earlier = before.flows.get(fact.issue, flow)
    match fact:
        case IssueSeen():
            if stale(earlier, fact.as_of) and fact.key is None:
                return []
            return _judged(world, flow, changes.seen(world, earlier, flow)) or _leased_again(world, earlier, flow)
        case IssueClaimed() | IssueWritten():
            return changes.seen(world, earlier, flow)
        case AuthorsRead():
            return _judged(world, flow, changes.read(world, flow, fact))
        case IssueGone():
            return _gone(earlier, flow, fact)
        case AnswerRead():
            heard = answered(world, flow, fact) or requests.told(world, flow, fact)
            return changes.seen(world, earlier, flow) or heard
        case TurnSeen():
            judged = [*after_read(world, flow, fact), *turn_seen(world, earlier, flow, fact)]
            return judged if flow.spent == earlier.spent else judged + after_turn(world, flow, judged)
        case RunEnded():
            return [*requests.over(flow, "its run is over"), *after_run(world, flow, fact)]
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
            return requests.opened(world, flow, fact)
        case RequestGone() | RequestJudged() | RequestAnswered():
            return requests.advance(world, flow)
        case OutcomeRejected() | TurnDied() | PromptAbandoned():
            return requests.over(flow, "the turn in which it asked is over")


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
            return refused(world, flow, fact)
        case CriteriaAdopted():
            return criteria(flow, fact)
        case IssueFinished():
            return flagged(world, flow)
        case TreeSealed():
            return [*_lacking(world, flow, fact), *(misnamed(world, flow, fact) or flagged(world, flow))]


def _pull(world: World, earlier: Flow | None, flow: Flow, fact: PullRequestOpened | PullRequestSeen) -> list[Fact]:
    if isinstance(fact, PullRequestOpened):
        return pulls.opened(earlier or flow, flow, fact)
    return pulls.seen(world, earlier or flow, flow, fact)


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
            return changes.seen(world, before.flows.get(fact.issue, flow), flow)


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
    return _again(world, flow, "the tracker refused a heartbeat, and shows the issue as ours")


def _again(world: World, flow: Flow, why: str) -> list[Fact]:
    """Go on with the phase of an issue whose run was ended by nobody's fault."""
    if flow.verifying or flow.phase is None:
        return []  # its run had succeeded
    if flow.run is not None and not flow.run.ended:
        return []
    return [RetryScheduled(flow.issue.id, flow.phase, flow.failures, world.now, why)]


def _judged(world: World, flow: Flow, facts: list[Fact]) -> list[Fact]:
    """Where a change had cost the lease, and with it the run, the issue goes on once it is known to move nothing."""
    undoubted = ChangeDoubted(flow.issue.id, ())  # it is as it was before anybody knew who had changed it
    moved = not all(isinstance(one, (ChangeJudged, CommentWanted)) or one == undoubted for one in facts)
    if not facts or moved or flow.stage != "work" or flow.wanted or flow.held is not None:
        return facts
    undone = any(isinstance(one, ChangeJudged) for one in facts)
    return facts + _again(world, flow, "what an agent changed is put back" if undone else "it is as it was before")


def _timer(before: World, world: World, fact: TimerDue) -> list[Fact]:
    name, issue = split_timer(fact.key)
    earlier, flow = before.flows.get(issue), world.flows.get(issue)
    if earlier is None or flow is None or (name, fact.due) not in flow_dues(earlier):
        return []
    if name == "question" and flow.question is not None:
        return after_deadline(world, flow, flow.question)
    if name == TIMER and flow.question is not None:
        return after_reminder(world, flow, flow.question)
    if name == "tree":
        return resting.due(world, flow)
    return requests.expired(world, flow) if name == "input" else []


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


def _lacking(world: World, flow: Flow, fact: TreeSealed) -> list[Fact]:
    """What is not on the branch would be missed: people are told where it is, and again where a person was there."""
    if not fact.lacking or not flow.active:
        return []
    listed = "\n".join(f"- {words}" for words in fact.lacking)
    return [CommentWanted(fact.issue, f"lacking.{world.seq}", f"{fact.run} is over, and:\n{listed}")]


def _tree_failed(earlier: Flow, flow: Flow, run: Run, fact: EffectFailed) -> list[Fact]:
    """What a run left cannot be sealed: after so many tries it stays as it is, and whoever goes on is told so."""
    tries = dict(earlier.tries).get(fact.key, 0) + 1
    if fact.infra and tries < INFRA_LIMIT:
        return []
    left = TreeLeft(fact.issue, run.id, fact.error[:300])
    if flow.stage not in ("work", "person", "finishing"):
        return [left]
    where = f"in {flow.own.path}, as it is" if flow.own is not None and flow.own.path else "in the work tree"
    why = f"what {run.id} left cannot be sealed: {fact.error[:300]}. It is {where}; see to it there"
    return [left, *park(flow, "unsealed", f"{why}, then `ashep retry {fact.issue}`")]


def _effect_failed(world: World, earlier: Flow, flow: Flow, fact: EffectFailed) -> list[Fact]:
    run, asked = flow.run, next((command for command in earlier.open if command.key == fact.key), None)
    if asked is None:
        return []
    if isinstance(asked, ReadAuthors) and (facts := changes.unread(world, flow, fact)):
        return _judged(world, flow, facts)
    if fact.lock and flow.infra_began is not None and world.now - flow.infra_began < LOCK_TIME:
        return []  # by then it is taken away, unless a git runs there
    if run is not None and fact.key == after(run.id) and (fact.infra or isinstance(asked, SealTree)):
        return _tree_failed(earlier, flow, run, fact)
    if not fact.infra and not isinstance(asked, (ReadIssue, ReadAnswer, ReadAuthors)):
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
