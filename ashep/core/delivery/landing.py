"""What follows from evidence, and from what came of landing: work goes on, back to who wrote it, or to a person."""

from __future__ import annotations

import dataclasses
from datetime import datetime, timedelta
from typing import get_args

from ashep.core.delivery import stories
from ashep.core.delivery.pull_request_body import title
from ashep.core.facts import delivery
from ashep.core.facts.commands import Command, IntegrateWork, MoveBase, OpenPullRequest, PrepareTree, VerifyWork
from ashep.core.facts.issues import About, CommentWanted, IssueFinished, IssueParked, PersonAsked, RetryScheduled
from ashep.core.facts.vocabulary import Fact
from ashep.core.issues.routing import abort, ask, enter, park, park_unknown_phase, proven, writer_of
from ashep.core.policy.flags import must_ask
from ashep.core.policy.policies import Verify
from ashep.core.state.delivery import (
    MOST_NAMED,
    MOST_PROOFS,
    UNCHANGED,
    Criteria,
    Evidence,
    Flaw,
    Landing,
    must_change,
    name_failing,
    proof_of,
)
from ashep.core.state.flow import Flow, Folds, with_work
from ashep.core.state.immutable import replace
from ashep.core.state.indexes import turn
from ashep.core.state.pending_intents import at_liberty
from ashep.core.state.world import IssueRules, World
from ashep.core.text import list_names

MOST_FAILED = 5
"""How often in a row git may fail to move a base before a person is to see to it."""


def verified(world: World, earlier: Flow, flow: Flow, fact: delivery.WorkVerified) -> list[Fact]:
    """Say what follows from evidence: of a run's success, or of what is about to land."""
    evidence = flow.work.evidence
    if evidence is None or evidence.commit != fact.commit:
        return []
    if fact.run:
        return _judge_success(world, earlier, flow, evidence) if flow.work.verifying == fact.run else []
    landing, lacking = flow.work.landing, evidence.lacking(flow.work.waived)
    if landing is None:
        return []
    if lacking and not evidence.blamed(flow.work.waived):
        why = f"it cannot land, and no work is to blame for that: {name_failing(evidence.results)}"
        return _ask(world, flow, why, "base")
    if lacking:
        where = f"on {landing.onto or 'its branch'}"
        return back(world, flow, f"{where} it did not hold: {list_names(lacking, MOST_NAMED)}")
    return _announce_landing(flow, landing.commit or fact.commit)


def _judge_success(world: World, earlier: Flow, flow: Flow, evidence: Evidence) -> list[Fact]:
    policy = world.policy(flow)
    phase = policy.phase(flow.phase) if policy and flow.phase else None
    if policy is None or phase is None:
        return park_unknown_phase(world, flow, flow.phase)
    lacking, before = evidence.lacking(flow.work.waived), earlier.work.evidence
    if not lacking:
        return enter(world, flow, proven(flow, policy, phase), f"{flow.why}; {words(evidence)}")
    said, most = dict(flow.counters.passed).get(phase.name, "success"), (phase.verify or Verify()).max_attempts
    failed, blameless = tuple(name for name in lacking if name != UNCHANGED), name_failing(evidence.results)
    parts = ["the work changes nothing"] if UNCHANGED in lacking else []
    parts += [f"these checks do not pass: {list_names(failed, MOST_NAMED)}"] if failed else []
    why = f"{phase.name} says {said}, but {', and '.join(parts)}" + (f" ({blameless})" if blameless else "")
    if not evidence.blamed(flow.work.waived):
        return _ask(world, flow, f"{phase.name} says {said}, and no work is to blame for what fails: {blameless}")
    if flow.run is not None and flow.run.asks.denied:
        tools = ", ".join(flow.run.asks.denied)
        why += f"; all that its session asked for was denied ({tools}), as no rule of `permissions` allows it"
    same = before is not None and (before.tree, before.lacking(flow.work.waived)) == (evidence.tree, lacking)
    if same and flow.work.unproven > 1:
        return _ask(world, flow, f"{why}; nothing has changed since the attempt before")
    if flow.work.unproven >= most:
        return _ask(world, flow, f"{why}; attempt {flow.work.unproven} of {most}, the last")
    again = f"{why}; attempt {flow.work.unproven} of {most}"
    retry = RetryScheduled(flow.issue.id, phase.name, flow.failures, world.now, again, disbelieved=flow.work.verifying)
    return [retry]


def _ask(world: World, flow: Flow, why: str, about: About = "proof") -> list[Fact]:
    """Ask a person whether work passes that falls short, or (`base`) lands although the base fails, too."""
    policy = world.policy(flow)
    if policy is None or flow.phase is None or policy.phase(flow.phase) is None:
        return park_unknown_phase(world, flow, flow.phase)
    wanted = "May it land all the same?" if about == "base" else "Let it pass?"
    return ask(world, flow, flow.phase, f"{why}. {wanted}"[:2000], why, human=None, about=about)


def words(evidence: Evidence) -> str:
    """Say in a few words what was found, and of what."""
    counted, where = delivery.summary_of(evidence.results), f"in tree {evidence.tree[:12]}"
    nothing = "" if evidence.changed else "; it changes nothing"
    if not evidence.results:
        return f"nothing was to be checked {where}{nothing}"
    skipped = f", {counted.skipped} for a person" if counted.skipped else ""
    green = delivery.green_before(evidence.results)
    before = f", {green} of them before any work, too" if green else ""
    before += f"; {name_failing(evidence.results)}" if evidence.blameless else ""
    return f"{counted.passed} of {counted.total} checks passed{skipped} {where}{before}{nothing}"


# --- landing ------------------------------------------------------------------------------------------------------


def conflicted(world: World, earlier: Flow, flow: Flow, fact: delivery.WorkConflicted) -> list[Fact]:
    """Have the work mended that contradicts the base."""
    landing = flow.work.landing
    if landing is None:
        return []
    where = list_names(fact.paths, MOST_NAMED) or "everything: they have no common history"
    return back(world, flow, f"its work and {landing.onto} contradict each other in {where}")


def refused(world: World, earlier: Flow, flow: Flow, fact: delivery.LandingRefused) -> list[Fact]:
    """Give up what only a person can make possible; what may pass by itself is tried again."""
    if flow.work.landing is None or fact.code in ("moved", "dirty", "locked", "away"):
        return []
    why, code = f"its work cannot land: {fact.why}", fact.code
    if code == "names":
        return back(world, flow, why)
    if code == "failed":
        most = flow.work.landing.failed >= MOST_FAILED
        return park(flow, "landing_unwritten", f"{why} ({MOST_FAILED} tries)") if most else []
    if code in ("theirs", "refused"):
        return park(flow, "landing_theirs" if code == "theirs" else "landing_refused", why)
    return park(flow, "landing_protected" if code == "protected" else "landing_gone", why)


def landed(
    world: World, earlier: Flow, flow: Flow, fact: delivery.WorkLanded | delivery.PullRequestMerged
) -> list[Fact]:
    """Tell people where the work is."""
    notes = fact.told if isinstance(fact, delivery.WorkLanded) else ()
    return _announce_landing(flow, fact.commit, notes)


def _announce_landing(flow: Flow, commit: str, notes: tuple[str, ...] = ()) -> list[Fact]:
    landing, evidence = flow.work.landing, flow.work.evidence
    if landing is None or not landing.is_over:
        return []
    onto = landing.onto or landing.into
    where = (f"Landed on `{onto}`" + (f" as {commit}" if commit else "")) if onto else f"Done at {commit}"
    if flow.work.is_empty:
        where = "Nothing was changed" + (f", and nothing landed on `{onto}`" if onto else "")
    proof = words(evidence) if evidence is not None and landing.verify else "nothing was to be checked"
    waived = f" A person let these pass: {list_names(flow.work.waived, MOST_NAMED)}." if flow.work.waived else ""
    noted = "".join(f"\n\nNote: {note[:1000]}." for note in notes[:MOST_NAMED])
    return [CommentWanted(flow.issue.id, f"landed.{landing.seq}", f"{where}; {proof}.{waived}{noted}")]


def sealed(world: World, earlier: Flow, flow: Flow, fact: delivery.TreeSealed) -> list[Fact]:
    """Tell people what the seal could not take in, and see to what it holds."""
    facts = stories.sealed(world, flow, fact)
    # what is not on the branch would be missed: people are told where it is, and again where a person was there
    if fact.lacking and flow.active:
        listed = "\n".join(f"- {words}" for words in fact.lacking)
        facts.insert(0, CommentWanted(fact.issue, f"lacking.{world.seq}", f"{fact.run} is over, and:\n{listed}"))
    if any(isinstance(follow, (IssueParked, PersonAsked)) for follow in facts):
        return facts
    return [*facts, *(_misnamed(world, flow, fact) or flagged(world, earlier, flow, fact))]


def _misnamed(world: World, flow: Flow, fact: delivery.TreeSealed) -> list[Fact]:
    """Have files renamed with which nothing could land, before anything else follows from the work."""
    policy = world.policy(flow)
    writer = writer_of(policy, flow) if policy else None
    mends = flow.stage == "work" and flow.wanted and flow.phase == writer  # its next run is told
    if not fact.unwritable or mends or flow.stage not in ("work", "person", "finishing"):
        return []
    return back(world, flow, f"its work cannot land: {unwritable(fact)}")


def flagged(world: World, earlier: Flow, flow: Flow, fact: IssueFinished | delivery.TreeSealed) -> list[Fact]:
    """Ask a person about work that touches what makes later work trusted, unless this very work was approved."""
    own, run, policy = flow.work.own, flow.run, world.policy(flow)
    if flow.stage != "finishing" or own is None or flow.phase is None:
        return []
    flags = must_ask(own.flags, pushed=flow.work.landing is not None and bool(flow.work.landing.into))
    signed = flow.work.signed.approval.commit if flow.work.signed is not None else ""
    moved = signed not in ("", own.head)
    if not (flags or moved) or own.approved == own.head or (run is not None and not run.forgettable):
        return []
    phase = policy.phase(flow.phase) if policy else None
    if phase is None:
        return park_unknown_phase(world, flow, flow.phase)
    reasons = [f"it touches {', '.join(flags)}, about which a person is always asked"] if flags else []
    reasons += [f"the approval was signed for {signed[:12]}, and its work is at {own.head[:12]} now"] if moved else []
    why = "; ".join(reasons)
    lands = flow.work.landing is not None and (flow.work.landing.onto or flow.work.landing.into)
    asked = "May this land" if lands else "May this be closed"
    return ask(world, flow, phase.name, f"{asked}? {why[0].upper()}{why[1:]}.", why, human=None, about="change")


def criteria(world: World, earlier: Flow, flow: Flow, fact: delivery.CriteriaAdopted) -> list[Fact]:
    """Give an issue up whose checks cannot be read: its author is to put them right before anybody works on it."""
    if not flow.active:
        return []
    if fact.left_out:
        why = f"too long to be read: {', '.join(fact.left_out)}; shorten that, then `ashep retry {flow.issue.id}`"
        return [*abort(flow, "its words are too long"), *park(flow, "too_long", why)]
    if not fact.error:
        return []
    why = f"the checks in its acceptance criteria cannot be read: {fact.error[:1000]}"
    return [*abort(flow, "its checks cannot be read"), *park(flow, "criteria", why)]


def back(world: World, flow: Flow, why: str) -> list[Fact]:
    """Have those mend the work who wrote it, within what the policy allows them."""
    policy = world.policy(flow)
    writer = writer_of(policy, flow) if policy else None
    if writer is None:
        return park(flow, "not_landed", why)
    return enter(world, flow, writer, why)


DIRTY_AGAIN, DIRTY_LONGEST = timedelta(minutes=1), timedelta(minutes=10)
"""How long a base whose checkout is in the way is left alone, at first and at last, unless that is seen to change."""

MOVED_AGAIN = timedelta(minutes=1)
"""How long a base is left alone that keeps moving."""

OFTEN = 3
"""How often in a row it may have moved before that."""

AWAY_AGAIN = timedelta(minutes=1)
"""How long a forge is left alone that does not answer, at first."""

MOST_DOUBLED = 5
"""How often that time doubles, at most."""


def fold_criteria(flow: Flow, fact: delivery.CriteriaAdopted, seq: int, time: datetime) -> Flow:
    """Keep which checks there are; those that cannot be read are not none: they are read again."""
    criteria = None if fact.error or fact.left_out else Criteria(fact.hash, fact.blob, fact.manual)
    return with_work(flow, criteria=criteria)


def fold_edit(flow: Flow, fact: delivery.CriteriaChanged, seq: int, time: datetime) -> Flow:
    """Keep what the checks say by now; those that count are as they were."""
    return with_work(flow, criteria=flow.work.criteria and dataclasses.replace(flow.work.criteria, seen=fact.hash))


def fold_verified(flow: Flow, fact: delivery.WorkVerified, seq: int, time: datetime) -> Flow:
    """Fold what a verification came to, if it is of what is looked into now."""
    if fact.run != flow.work.verifying or not (fact.run or fact.commit == about_to_land(flow)):
        return flow  # somebody had it otherwise meanwhile
    evidence = Evidence(
        fact.commit, fact.tree, fact.results, fact.changed, fact.isolated, fact.log, fact.run, fact.checks,
        fact.must_change, fact.ignore,
    )  # fmt: skip
    lacking, blamed = evidence.lacking(flow.work.waived), evidence.blamed(flow.work.waived)
    onto = flow.work.landing.onto if flow.work.landing is not None else ""
    flaw = Flaw("checks", f"did not hold: {', '.join(lacking)}", fact.log, onto) if lacking else None
    flow = with_work(flow, flaw=flaw, evidence=evidence)
    if evidence.results:  # noted where anything was checked
        branch = flow.work.own.branch if flow.work.own is not None else ""
        criteria = flow.work.criteria.hash if flow.work.criteria is not None else ""
        proof = proof_of(time, branch, evidence.commit, evidence.tree, criteria, evidence.results)
        flow = with_work(flow, proofs=(*flow.work.proofs, proof)[-MOST_PROOFS:])
    if fact.run:
        return with_work(flow, unproven=flow.work.unproven + 1) if blamed else flow
    landing = flow.work.landing
    if landing is None or lacking:
        return flow
    return with_work(flow, landing=dataclasses.replace(landing, verified=True), flaw=None)


_Step = delivery.WorkIntegrated | delivery.WorkConflicted | delivery.WorkLanded | delivery.LandingRefused


def fold_landing(flow: Flow, fact: _Step, seq: int, time: datetime) -> Flow:
    """Fold a step of landing."""
    landing, own = flow.work.landing, flow.work.own
    if own is not None and not isinstance(fact, delivery.LandingRefused):
        since = fact.commit if isinstance(fact, delivery.WorkLanded) else fact.base
        flow = with_work(flow, own=dataclasses.replace(own, since=since))
    if isinstance(fact, delivery.WorkLanded):
        onto = landing.base if landing is not None and not fact.already else ""
        flow = with_work(flow, landed=(fact.base_branch, fact.commit), landed_onto=onto, empty=fact.empty)
    if landing is None:
        return flow
    match fact:
        case delivery.WorkIntegrated():
            landing = dataclasses.replace(landing, base=fact.base, commit=fact.commit, verified=False)
            return with_work(flow, landing=landing)
        case delivery.WorkConflicted():
            why = f"contradicts {landing.onto} in {', '.join(fact.paths[:5]) or 'everything'}"
            return with_work(flow, flaw=Flaw("conflict", why, fact.log, landing.onto))
        case delivery.WorkLanded():
            landing = dataclasses.replace(landing, landed=True, commit=landing.commit or fact.commit, refused=0)
            why = f"landed on {fact.base_branch} as {fact.commit[:12]}"
            why = f"nothing was changed, and nothing landed on {fact.base_branch}" if fact.empty else why
            return replace(flow, work=replace(flow.work, landing=landing, flaw=None), code="", why=why, since=time)
        case delivery.LandingRefused():
            refused = landing.refused + 1
            wait = MOVED_AGAIN if refused > OFTEN else None
            if fact.code in ("dirty", "locked"):
                wait = min(DIRTY_AGAIN * 2 ** min(refused - 1, MOST_DOUBLED), DIRTY_LONGEST)
            failed = landing.failed + 1 if fact.code == "failed" else 0
            if failed:
                wait = DIRTY_AGAIN * 2 ** min(failed - 1, MOST_DOUBLED)
            if fact.code == "away":
                wait = max(AWAY_AGAIN * 2 ** min(refused - 1, MOST_DOUBLED), fact.wait)
            landing = dataclasses.replace(landing, refused=refused, failed=failed, due=time + wait if wait else None)
            if fact.code == "moved":
                landing = dataclasses.replace(landing, round=landing.round + 1, commit="", base="", verified=False)
            if fact.code == "names":
                flow = with_work(flow, flaw=Flaw("names", fact.why, ""))
            code = f"landing_{fact.code}"
            since = flow.since if flow.code == code else time
            return replace(flow, work=replace(flow.work, landing=landing), code=code, why=fact.why, since=since)


def checkout_changed(flow: Flow) -> Flow:
    """What stood in the way of a base may be gone: its next try need not wait."""
    landing = flow.work.landing
    if landing is None or landing.due is None or flow.code != "landing_dirty":
        return flow
    return with_work(flow, landing=dataclasses.replace(landing, due=None))


# --- a tree of its own --------------------------------------------------------------------------------------------


def unwritable(fact: delivery.TreeSealed) -> str:
    """Say which of the files that a run left land nowhere."""
    return f"git writes to no work tree what is called {', '.join(fact.unwritable)}"


def next_of_work(world: World, flow: Flow) -> Command | None:
    """Give the next step; None: there is none, or not now."""
    own, landing = flow.work.own, flow.work.landing
    if own is None or not at_liberty(flow):
        return None
    if flow.stage == "work" and flow.work.verifying:
        policy = world.policy(flow)
        phase = policy.phase(flow.phase) if policy and flow.phase else None
        change = phase is not None and phase.verify is not None
        return _verify(flow, f"{flow.work.verifying}/verify", own.head, own.base, flow.work.verifying, change=change)
    if flow.stage == "finishing" and landing is not None and landing.due is None:
        return _landing_step(world, flow, landing)
    return None


def is_wanted(flow: Flow, command: VerifyWork) -> bool:
    """Whether anything would still follow from what a verification finds."""
    return flow.work.verifying == command.run if command.run else about_to_land(flow) == command.commit


def may_close(flow: Flow) -> bool:
    """Whether nothing stands between the issue and its being closed."""
    return flow.work.landing is None or flow.work.landing.is_over


def _landing_step(world: World, flow: Flow, landing: Landing) -> Command | None:
    issue, own = flow.issue.id, flow.work.own
    assert own is not None
    if landing.is_over:
        return None
    step, change = f"{landing.seq}.{landing.round}", must_change(world.policy(flow))
    if not own.base:  # an earlier journal's
        return PrepareTree(f"{issue}/tree/{step}", issue, "", own.branch, None, own.slot)
    if landing.into and (landing.verified or not landing.verify):
        return _ask_for_merge(world, flow, landing)
    if not landing.onto:
        return _verify(flow, f"{issue}/verify/{step}", own.head, own.base, change=change)
    if not landing.landed and turn(world.indexes) != issue:
        return None
    if not landing.commit:
        message = f"{flow.issue.title} ({issue})"
        method = world.settings.landing.method
        key = f"{issue}/integrate/{step}"
        return IntegrateWork(key, issue, own.branch, own.head, landing.onto, method, message)
    if landing.verify and not landing.verified:
        return _verify(flow, f"{issue}/verify/{step}", landing.commit, landing.base or own.base, change=change)
    key = f"{issue}/land/{step}.{landing.refused}"
    return MoveBase(key, issue, own.branch, own.head, landing.onto, landing.base, landing.commit)


def _ask_for_merge(world: World, flow: Flow, landing: Landing) -> Command | None:
    issue, own, pull = flow.issue.id, flow.work.own, flow.work.pull
    if landing.asked or own is None:
        return None
    goes_on = pull is not None and pull.state == "open" and pull.base == landing.into
    name = pull.name if pull is not None and goes_on else f"{world.instance}/{issue}/{landing.seq}"
    key = f"{issue}/pull/{landing.seq}.{landing.refused}"
    head = title(issue, flow.issue.title)
    return OpenPullRequest(key, issue, own.branch, own.head, own.base, landing.into, name, head)


def _verify(flow: Flow, key: str, commit: str, base: str, run: str = "", *, change: bool) -> VerifyWork:
    criteria = flow.work.criteria
    phase = flow.phase if run else None
    blob = criteria.blob if criteria is not None else ""
    return VerifyWork(
        key, flow.issue.id, commit, base, run, flow.policy or "", phase or "", blob, criteria is None, change
    )


def about_to_land(flow: Flow) -> str:
    """Give the commit that is on its way, or done where it lands nowhere; empty: none is, or it was not made yet."""
    own, landing = flow.work.own, flow.work.landing
    if landing is None:
        return ""
    return landing.commit if landing.onto else own.head if own is not None else ""


def found_before(flow: Flow) -> tuple[delivery.Verification | None, bool]:
    """Give what is known of the work already, and whether even that is to be found afresh: a person wants it again."""
    known = flow.work.evidence
    if known is None or not known.checks:
        return None, flow.counters.cycle > 1
    return delivery.Verification(known.commit, known.tree, known.checks, known.results, known.isolated), False


RULES: IssueRules = {
    delivery.WorkVerified: verified,
    delivery.WorkConflicted: conflicted,
    delivery.WorkLanded: landed,
    delivery.PullRequestMerged: landed,
    delivery.LandingRefused: refused,
    delivery.CriteriaAdopted: criteria,
    IssueFinished: flagged,
    delivery.TreeSealed: sealed,
}

FOLDS: Folds = {
    delivery.CriteriaAdopted: fold_criteria,
    delivery.CriteriaChanged: fold_edit,
    # a person who let it go left the phase wanted: their outcome is looked into first
    delivery.VerificationWanted: lambda flow, fact, seq, time: replace(
        flow, work=replace(flow.work, verifying=fact.run), wanted=False, why=fact.why, since=time
    ),
    delivery.WorkVerified: fold_verified,
    **dict.fromkeys(get_args(_Step), fold_landing),
}
