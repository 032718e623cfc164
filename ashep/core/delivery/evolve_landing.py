"""How what was found about an issue's work, and its way to the base, change its flow: a part of `evolve`."""

import dataclasses
from datetime import datetime, timedelta
from typing import assert_never

from ashep.core.delivery.evolve_pull import PullFact, pull_fact
from ashep.core.facts.vocabulary import (
    CriteriaAdopted,
    CriteriaChanged,
    LandingRefused,
    VerificationWanted,
    WorkConflicted,
    WorkIntegrated,
    WorkLanded,
    WorkVerified,
)
from ashep.core.runs.folding import done
from ashep.core.state.flow import Flow
from ashep.core.state.frozen import replace
from ashep.core.state.proof import MOST_PROOFS, Criteria, Evidence, Flaw, Proof, about_to_land, proof_of

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

WorkFact = (
    CriteriaAdopted | CriteriaChanged | VerificationWanted | WorkVerified | WorkIntegrated | WorkConflicted
    | WorkLanded | LandingRefused | PullFact
)  # fmt: skip


def work_fact(flow: Flow, fact: WorkFact, seq: int, at: datetime) -> Flow:
    """Fold a fact that is about the work of this issue."""
    flow = done(flow, getattr(fact, "key", None), seq)
    if isinstance(fact, PullFact):
        return pull_fact(flow, fact, seq, at)
    match fact:
        case CriteriaAdopted():
            # those that cannot be read are not none: they are read again before anything rests on them
            return replace(
                flow, criteria=None if fact.error or fact.left_out else Criteria(fact.hash, fact.blob, fact.manual)
            )
        case CriteriaChanged():
            return replace(flow, criteria=flow.criteria and dataclasses.replace(flow.criteria, seen=fact.hash))
        case VerificationWanted():
            # a person who let it go left the phase wanted: their outcome is looked into first
            return replace(flow, verifying=fact.run, wanted=False, why=fact.why, since=at)
        case WorkVerified():
            return fold_verified(flow, fact, at)
        case _:
            return fold_landing(flow, fact, at)


def fold_verified(flow: Flow, fact: WorkVerified, at: datetime) -> Flow:
    if fact.run != flow.verifying or not (fact.run or fact.commit == about_to_land(flow)):
        return flow  # somebody had it otherwise meanwhile
    evidence = Evidence(
        fact.commit, fact.tree, fact.results, fact.changed, fact.isolated, fact.log, fact.run, fact.checks,
        fact.must_change,
    )  # fmt: skip
    lacking = evidence.lacking(flow.waived)
    onto = flow.landing.onto if flow.landing is not None else ""
    flaw = Flaw("checks", f"did not hold: {', '.join(lacking)}", fact.log, onto) if lacking else None
    flow = replace(flow, evidence=evidence, flaw=flaw, proofs=_noted(flow, evidence, at))
    if fact.run:
        return replace(flow, unproven=flow.unproven + 1) if lacking else flow
    landing = flow.landing
    if landing is None or lacking:
        return flow
    return replace(flow, landing=dataclasses.replace(landing, verified=True), flaw=None)


def _noted(flow: Flow, evidence: Evidence, at: datetime) -> tuple[Proof, ...]:
    """Note what was found, where anything was checked."""
    if not evidence.results:
        return flow.proofs
    branch = flow.own.branch if flow.own is not None else ""
    criteria = flow.criteria.hash if flow.criteria is not None else ""
    made = proof_of(at, branch, evidence.commit, evidence.tree, criteria, evidence.results)
    return (*flow.proofs, made)[-MOST_PROOFS:]


def fold_landing(flow: Flow, fact: WorkIntegrated | WorkConflicted | WorkLanded | LandingRefused, at: datetime) -> Flow:
    landing, own = flow.landing, flow.own
    if own is not None and not isinstance(fact, LandingRefused):
        since = fact.commit if isinstance(fact, WorkLanded) else fact.base
        flow = replace(flow, own=dataclasses.replace(own, since=since))
    if isinstance(fact, WorkLanded):
        flow = replace(flow, landed=(fact.base_branch, fact.commit))
    if landing is None:
        return flow
    match fact:
        case WorkIntegrated():
            landing = dataclasses.replace(landing, base=fact.base, commit=fact.commit, verified=False)
            return replace(flow, landing=landing)
        case WorkConflicted():
            why = f"contradicts {landing.onto} in {', '.join(fact.paths[:5]) or 'everything'}"
            return replace(flow, flaw=Flaw("conflict", why, fact.log, landing.onto))
        case WorkLanded():
            landing = dataclasses.replace(landing, landed=True, commit=landing.commit or fact.commit, refused=0)
            why = f"landed on {fact.base_branch} as {fact.commit[:12]}"
            return replace(flow, landing=landing, flaw=None, code="", why=why, since=at)
        case LandingRefused():
            refused = landing.refused + 1
            wait = MOVED_AGAIN if refused > OFTEN else None
            if fact.code in ("dirty", "locked"):
                wait = min(DIRTY_AGAIN * 2 ** min(refused - 1, MOST_DOUBLED), DIRTY_LONGEST)
            failed = landing.failed + 1 if fact.code == "failed" else 0
            if failed:
                wait = DIRTY_AGAIN * 2 ** min(failed - 1, MOST_DOUBLED)
            if fact.code == "away":
                wait = max(AWAY_AGAIN * 2 ** min(refused - 1, MOST_DOUBLED), fact.wait)
            landing = dataclasses.replace(landing, refused=refused, failed=failed, due=at + wait if wait else None)
            if fact.code == "moved":
                landing = dataclasses.replace(landing, round=landing.round + 1, commit="", base="", verified=False)
            if fact.code == "names":
                flow = replace(flow, flaw=Flaw("names", fact.why, ""))
            code = f"landing_{fact.code}"
            return replace(
                flow, landing=landing, code=code, why=fact.why, since=flow.since if flow.code == code else at
            )
        case _:
            assert_never(fact)


def checkout_changed(flow: Flow) -> Flow:
    """What stood in the way of a base may be gone: its next try need not wait."""
    landing = flow.landing
    if landing is None or landing.due is None or flow.code != "landing_dirty":
        return flow
    return replace(flow, landing=dataclasses.replace(landing, due=None))


def answered(flow: Flow, answer: str) -> Flow:
    """A person answered: what was approved is this very work, and what may fail is known."""
    own, question = flow.own, flow.question
    if answer != "approved" or question is None:
        return flow
    if own is not None and (question.human_phase or question.about != "phase"):
        flow = replace(flow, own=dataclasses.replace(own, approved=own.head))
    if question.about == "proof" and flow.evidence is not None:
        flow = replace(flow, waived=tuple(sorted({*flow.waived, *flow.evidence.lacking(flow.waived)})), flaw=None)
    return flow
