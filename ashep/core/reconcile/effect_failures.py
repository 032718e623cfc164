"""Failed effects: what follows where the tracker, git or the agent server refuses, or fails again and again."""

from datetime import timedelta

from ashep.core.delivery import repository
from ashep.core.delivery.workspaces import make_after_key
from ashep.core.facts.command_descriptions import WORDS
from ashep.core.facts.commands import ClaimIssue, Command, ReadAnswer, ReadAuthors, ReadIssue, SealTree, WriteIssue
from ashep.core.facts.issues import IssueClosed, IssueLeft
from ashep.core.facts.runs import RunEnded
from ashep.core.facts.tracker import ClaimRefused, EffectFailed, IssueGone, WriteRefused
from ashep.core.facts.vocabulary import Fact, TreeLeft
from ashep.core.issues.routing import abort, park
from ashep.core.reconcile.attribution import unread
from ashep.core.state.flow import Flow
from ashep.core.state.pending_intents import INFRA_LIMIT, is_exhausted, stale
from ashep.core.state.run import Run
from ashep.core.state.world import IssueRules, World

CLAIM_AGAIN = timedelta(minutes=1)
"""After a refused claim: a tracker that lists as ready what it lets nobody claim is not asked once a second."""

LOCK_TIME = timedelta(minutes=15)
"""How long an effect is tried again that another git's lock keeps from happening."""


def claim_refused(world: World, earlier: Flow, flow: Flow, fact: ClaimRefused) -> list[Fact]:
    """Leave what the tracker lets us not claim, for a while."""
    left = IssueLeft(fact.issue, "claim_lost", fact.error[:300], not_before=world.now + CLAIM_AGAIN)
    return [*abort(flow, "the claim was lost"), left]


def write_refused(world: World, earlier: Flow, flow: Flow, fact: WriteRefused | EffectFailed) -> list[Fact]:
    """Give up what the tracker lets us not write."""
    if flow.stage == "finishing":
        return park(flow, "close_refused", f"the tracker refuses to close it: {fact.error[:300]}")
    why = f"the tracker refuses our write: {fact.error[:300]}"
    return [*abort(flow, why), IssueLeft(fact.issue, "write_refused", why)]


def close_missing(world: World, earlier: Flow, flow: Flow, fact: IssueGone) -> list[Fact]:
    """Close what the tracker has no more."""
    if flow.stage == "closed" or (fact.key is None and (flow.active or stale(earlier, fact.as_of))):
        return []
    if fact.key is not None:
        why = "the tracker has no such issue any more"
        return [*abort(flow, why), IssueClosed(fact.issue, "somebody", why)]
    return [IssueClosed(fact.issue, "somebody", "no longer listed among the issues that are not closed")]


def effect_failed(world: World, earlier: Flow, flow: Flow, fact: EffectFailed) -> list[Fact]:
    """Give up what is refused for good, or fails too often; all else is tried again."""
    run, asked = flow.run, next((command for command in earlier.open if command.key == fact.key), None)
    if asked is None:
        return []
    if isinstance(asked, ReadAuthors) and (facts := unread(world, flow, fact)):
        return facts
    if fact.unforeseen:
        return _unforeseen(flow, asked, fact)
    if fact.lock and flow.infra_began is not None and world.now - flow.infra_began < LOCK_TIME:
        return []  # by then it is taken away, unless a git runs there
    if run is not None and fact.key == make_after_key(run.id) and (fact.infra or isinstance(asked, SealTree)):
        return _tree_failed(earlier, flow, run, fact)
    if not fact.infra and not isinstance(asked, (ReadIssue, ReadAnswer, ReadAuthors)):
        if isinstance(asked, (ClaimIssue, WriteIssue)):
            return write_refused(world, earlier, flow, fact)
        if run is not None and not run.ended and fact.key.startswith(run.id + "/"):
            return [RunEnded(fact.issue, run.id, "failed", f"the agent server refuses: {fact.error[:300]}", abort=True)]
        return []
    if flow.stage == "parked" or not flow.active or not is_exhausted(flow.infra, flow.infra_began, world.now):
        return []
    if isinstance(asked, repository.CALLS) and repository.hold_of(world) is not None:
        return []  # that is no issue's fault: it goes on once the repository is mended
    why = f"cannot {flow.failing} (failed {flow.infra} times in a row): {flow.error}"
    return [*abort(flow, why), *park(flow, "infrastructure", why)]


def _unforeseen(flow: Flow, asked: Command, fact: EffectFailed) -> list[Fact]:
    """Park what we work on. What is still due of an issue that is parked is tried again, and then given up."""
    run = flow.run
    unsealed = run is not None and fact.key == make_after_key(run.id) and run.tree_wanted == "no"
    left: list[Fact] = [TreeLeft(fact.issue, run.id, fact.error[:300])] if run is not None and unsealed else []
    what = f"cannot {WORDS[type(asked).__name__]}, and nobody foresaw why"
    why = f"{what}: {' '.join(fact.error.split())[:300]} (the daemon's log has the traceback)"
    if flow.stage == "giving_back" and flow.given_up:
        return [*left, IssueLeft(fact.issue, "unforeseen", why)]
    if not flow.active or flow.stage in ("parked", "giving_back"):
        return left
    return [*left, *abort(flow, why), *park(flow, "unforeseen", why)]


def _tree_failed(earlier: Flow, flow: Flow, run: Run, fact: EffectFailed) -> list[Fact]:
    """What a run left cannot be sealed: after so many tries it stays as it is, and whoever goes on is told so."""
    tries = dict(earlier.tries).get(fact.key, 0) + 1
    if fact.infra and tries < INFRA_LIMIT:
        return []
    left = TreeLeft(fact.issue, run.id, fact.error[:300])
    if flow.stage not in ("work", "person", "finishing"):
        return [left]
    own = flow.work.own
    where = f"in {own.path}, as it is" if own is not None and own.path else "in the work tree"
    why = f"what {run.id} left cannot be sealed: {fact.error[:300]}. It is {where}; see to it there"
    return [left, *park(flow, "unsealed", f"{why}, then `ashep retry {fact.issue}`")]


RULES: IssueRules = {
    ClaimRefused: claim_refused,
    WriteRefused: write_refused,
    IssueGone: close_missing,
    EffectFailed: effect_failed,
}
