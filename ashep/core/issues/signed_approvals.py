"""Signed approvals: what a person would sign, and whether an approval that was read is signed."""

import hashlib
from dataclasses import asdict
from datetime import timedelta

from ashep.core.facts.approvals import Approval, Signature
from ashep.core.facts.tracker import AnswerRead
from ashep.core.state.flow import Flow
from ashep.core.state.world import World

LASTS = timedelta(days=1)
"""How long a signature counts."""


def approval_of(world: World, flow: Flow) -> Approval | None:
    """Return what a person would sign to approve; None: no approval is asked for."""
    question, policy, own, evidence = flow.question, world.policy(flow), flow.work.own, flow.work.evidence
    if question is None or question.leads_back:
        return None
    rules = policy.model_dump_json() if policy is not None else ""
    lacking = evidence.lacking(flow.work.waived) if evidence and question.about in ("proof", "base") else ()
    onto = world.settings.landing.base or (own and own.onto) or ""
    return Approval(
        repository=world.instance,
        issue=flow.issue.id,
        question=f"{question.phase}, {question.asked.isoformat()}",
        commit=own.head if own else "",
        base=f"{onto} at {own.fits}" if own else onto,
        waived=tuple(sorted({*flow.work.waived, *lacking})),
        policy=hashlib.sha256(rules.encode()).hexdigest(),
        expires=world.now + LASTS,
    )


def find_signature(world: World, flow: Flow, fact: AnswerRead) -> tuple[Signature | None, str]:
    """Return the valid signature of an approval; without one, why the approval does not count.

    What was signed for the question counts only as it was signed, also where no signature is required.
    """
    wanted, against = approval_of(world, flow), ""
    if wanted is None:
        return None, ""
    now = asdict(wanted)
    for signature in fact.signatures:
        approval = signature.approval
        if (approval.issue, approval.question) != (wanted.issue, wanted.question):
            continue
        if not signature.signer:
            against = "has a signature that no key in `people.keys` made"
        elif approval.expires <= world.now:
            against = f"has a signature that expired at {approval.expires:%Y-%m-%d %H:%M}Z"
        elif differing := [
            name for name, value in asdict(approval).items() if name != "expires" and value != now[name]
        ]:
            against = f"has a signature for another {', '.join(differing)}"
        else:
            return signature, ""
    if against or not (fact.signed_only or world.settings.signed_only):
        return None, against
    return None, "has no signature for this question, and `people.signed` requires one"
