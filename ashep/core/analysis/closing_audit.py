"""Whether what ashep closed was to be closed: a decision led there, the work landed, and what landed was verified.

A part of the audit: it is concluded from the journal's facts, and nothing that the rules concluded is believed.
"""

from collections import defaultdict
from dataclasses import dataclass

from ashep.core.facts import commands, delivery, issues, resources
from ashep.core.facts.vocabulary import Fact
from ashep.core.state.delivery import UNCHANGED, failing
from ashep.core.state.flow import Flow
from ashep.core.state.world import World


@dataclass(slots=True)
class _Work:
    """What the journal says of the work of an issue since it was finished."""

    onto: str
    """The branch that it was to land on, or to be merged into; empty: on none."""
    verify: bool
    asked: bool = False
    """People were to merge it: what the base got is their commit."""
    landed: str = ""
    """The commit that the base got."""
    verified: str = ""
    """The commit that was verified last."""
    lacking: frozenset[str] = frozenset()
    """What did not hold there, and no person let pass."""


class Closings:
    """Takes the facts of a journal, and says which of our own closings they do not account for."""

    def __init__(self, world: World) -> None:
        """Begin where the journal does, with what was known there."""
        self.found: list[resources.Finding] = []
        self._finished: dict[str, _Work] = {}
        self._failed: defaultdict[str, frozenset[str]] = defaultdict(frozenset)
        self._asked: set[str] = set()
        """Issues of which a person is asked whether their work may pass."""
        self._waived: defaultdict[str, frozenset[str]] = defaultdict(frozenset)
        self._checks = {issue for issue, flow in world.flows.items() if flow.work.criteria and flow.work.criteria.hash}
        """Issues with checks of their own that are not a person's."""
        self._own = {issue for issue, flow in world.flows.items() if flow.work.own is not None}
        """Issues that were worked on in trees of their own: elsewhere nothing is checked."""
        for issue, flow in world.flows.items():
            self._waived[issue] = frozenset(flow.work.waived)
            self._failed[issue] = frozenset(flow.work.evidence.lacking(()) if flow.work.evidence is not None else ())
            if flow.question is not None and flow.question.about in ("proof", "base"):
                self._asked.add(issue)
            if flow.stage == "finishing":
                self._finished[issue] = _infer_work(flow)

    def note(self, body: Fact | commands.Command, seq: int) -> None:
        """Take a record in."""
        match body:
            case issues.IssueFinished() if body.why.strip():
                self._finished[body.issue] = _Work(body.onto or body.into, body.verify, bool(body.into))
            case issues.IssueClosed(by="shepherd"):
                self._closed(body.issue, seq)
            case delivery.WorkVerified():
                self._verified(body)
            case delivery.TreeSealed():
                self._own.add(body.issue)
            case delivery.CriteriaAdopted():
                own = bool(body.hash) and body.checks > len(body.manual)
                (self._checks.add if own else self._checks.discard)(body.issue)
            case delivery.WorkLanded() | delivery.PullRequestMerged() if body.issue in self._finished:
                self._finished[body.issue].landed = body.commit or "a commit that the forge does not name"
            case issues.PersonAsked():
                (self._asked.add if body.about in ("proof", "base") else self._asked.discard)(body.issue)
            case issues.PersonAnswered(answer="approved") if body.issue in self._asked:
                self._waived[body.issue] |= self._failed[body.issue]
            case _:
                pass

    def _verified(self, fact: delivery.WorkVerified) -> None:
        counts = (result for result in fact.results if not (fact.ignore and result.on_base))
        failed = frozenset(failing(counts))
        if fact.must_change and not fact.changed:
            failed |= {UNCHANGED}
        work, self._failed[fact.issue] = self._finished.get(fact.issue), failed
        if work is not None and not fact.run:
            work.verified, work.lacking = fact.commit, failed - self._waived[fact.issue]

    def _closed(self, issue: str, seq: int) -> None:
        work, what = self._finished.pop(issue, None), f"was closed by us at {seq}"
        verify = work is not None and (work.verify or (issue in self._checks and issue in self._own))
        if work is None:
            self._broken("no_evidence", issue, f"{what} although no decision led there")
        elif work.onto and not work.landed:
            self._broken("not_landed", issue, f"{what}, and its work never came onto {work.onto}")
        elif verify and (not work.verified or (work.onto and not work.asked and work.verified != work.landed)):
            self._broken("unverified", issue, f"{what}, and nobody verified {work.landed[:12] or 'its work'}")
        elif verify and work.lacking:
            failed = ", ".join(sorted(work.lacking - {UNCHANGED}))
            parts = ["it changes nothing"] if UNCHANGED in work.lacking else []
            parts += [f"{failed} did not hold"] if failed else []
            self._broken("unverified", issue, f"{what} although {' and '.join(parts)}")

    def _broken(self, code: str, issue: str, what: str) -> None:
        self.found.append(resources.Finding(code, issue, what))


def _infer_work(flow: Flow) -> _Work:
    """What is known of an issue that is on its way to its end where the journal begins."""
    landing = flow.work.landing
    if landing is None:
        return _Work("", verify=False)
    candidate = landing.commit or (flow.work.own.head if flow.work.own is not None else "")
    landed, verified = candidate if landing.landed else "", candidate if landing.verified else ""
    return _Work(landing.onto or landing.into, landing.verify, bool(landing.into), landed, verified)
