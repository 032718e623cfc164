"""What follows from what people and CI do with a pull request: the issue closes, goes back to who wrote it, or parks.

Nothing here merges or closes one, and what a person pushed is never overwritten: then it is theirs.
"""

import dataclasses
from datetime import datetime

from ashep.core.delivery.landing import back, words
from ashep.core.facts.delivery import PullRequestMerged, PullRequestOpened, PullRequestReturned, PullRequestSeen, Remark
from ashep.core.facts.issues import CommentWanted
from ashep.core.facts.vocabulary import Fact
from ashep.core.issues.routing import finish, park
from ashep.core.policy.settings import PUSHES
from ashep.core.state.delivery import Flaw, Pull
from ashep.core.state.flow import Flow, Folds, with_work
from ashep.core.state.immutable import replace
from ashep.core.state.world import IssueRules, World

MOST_NAMED = 10
"""Checks, or people, that a reason names."""


def pull_read(world: World, seen: PullRequestSeen) -> list[Fact]:
    """Compare a read of a pull request with what is known of it."""
    flow = world.flows.get(seen.issue)
    pull = flow.work.pull if flow is not None else None
    if flow is None or pull is None or not flow.reviewed or seen.number != pull.number or seen.as_of < pull.seq:
        return []
    now = (seen.state, seen.head, seen.ci, seen.failing, seen.remarks)
    return [] if now == (pull.state, pull.seen, pull.ci, pull.failing, pull.remarks) else [seen]


def opened(world: World, earlier: Flow, flow: Flow, fact: PullRequestOpened) -> list[Fact]:
    """Tell people where they can look at the work."""
    landing, before = flow.work.landing, earlier.work.pull
    if landing is None or not flow.reviewed:
        return []
    again = before is not None and before.number == fact.number
    done = "has new work" if again else "waits to be merged"
    evidence = flow.work.evidence
    proof = words(evidence) if evidence is not None and landing.verify else "nothing was to be checked"
    text = f"The pull request {done}: {fact.url} ({fact.head[:12]} into `{fact.base}`); {proof}."
    return [CommentWanted(fact.issue, f"pull.{landing.seq}", text)]


def follow_pull_request(world: World, earlier: Flow, flow: Flow, fact: PullRequestSeen) -> list[Fact]:
    """Follow what became of a pull request, where the issue waits for that."""
    pull, landing = flow.work.pull, flow.work.landing
    if pull is None or landing is None or not flow.reviewed or fact.number != pull.number or fact.as_of < pull.seq:
        return []
    by = fact.by or "somebody"
    match fact.state:
        case "merged" if not _may_merge(world, fact.by):
            why = f"{by} merged {pull.url} into {pull.base}, and is not named in `people.forge`"
            return park(flow, "landing_unnamed", f"{why}: look at what it brought, and close the issue if it may stay")
        case "merged" if fact.head in pull.heads and fact.head != pull.head:
            return finish(world, flow, f"{by} merged {pull.url} without the work that was pushed since")
        case "merged":
            return [PullRequestMerged(fact.issue, fact.number, fact.merged_as, f"{by} merged {pull.url}")]
        case "closed":
            return park(flow, "landing_closed", f"{by} closed {pull.url} without merging it")
        case "gone":
            return park(flow, "landing_closed", f"the forge shows {pull.url} no more")
        case "open":
            if pull.theirs:
                return _left_to_them(earlier, pull, fact)
            return _open(world, flow, pull, fact)


def _may_merge(world: World, by: str) -> bool:
    """Whether a merge counts: with `people` that of who is named; everybody who merges may push."""
    people = world.settings.forge.people if world.settings.people and world.settings.forge else None
    return people is None or PUSHES in people or by.casefold() in {person.casefold() for person in people}


def _left_to_them(earlier: Flow, pull: Pull, fact: PullRequestSeen) -> list[Fact]:
    """Tell once that a person's commit is there: nobody works on it now but them, and what they end it with counts."""
    if earlier.work.pull is not None and earlier.work.pull.theirs:
        return []
    text = (
        f"Somebody pushed {fact.head[:12]} to the branch of {pull.url}: ashep touches it no more. "
        "Once it is merged, this issue is closed; closed without that, it is parked."
    )
    return [CommentWanted(fact.issue, f"theirs.{fact.head[:12]}", text)]


def _open(world: World, flow: Flow, pull: Pull, fact: PullRequestSeen) -> list[Fact]:
    who = requested(fact.remarks)
    red = fact.ci == "failing" and fact.head in ("", pull.head)  # older commits' results say nothing of this one
    parts = [f"{', '.join(who[:MOST_NAMED])} requested changes"] if who else []
    parts += [f"CI fails: {', '.join(fact.failing[:MOST_NAMED]) or 'it does not say where'}"] if red else []
    if not parts:
        return []
    why = f"{' and '.join(parts)} ({pull.url})"
    returned = PullRequestReturned(fact.issue, fact.number, "review" if who else "ci", why, fact.log)
    return [returned, *back(world, flow, why)]


def requested(remarks: tuple[Remark, ...]) -> tuple[str, ...]:
    """Name the people whose last verdict asks for changes; a program's is no person's."""
    last = {remark.by: remark.kind for remark in remarks if remark.kind != "comment" and not remark.bot}
    return tuple(by for by, kind in last.items() if kind == "changes_requested")


MOST_HEADS = 100
"""Commits that a pull request remembers to have been pushed by us, the last ones."""


def _fold_pull_request(flow: Flow, fact: PullRequestSeen, seq: int, time: datetime) -> Flow:
    pull = flow.work.pull
    if pull is None or fact.number != pull.number or fact.as_of < pull.seq:
        return flow
    told = dataclasses.replace(
        pull, state=fact.state, seen=fact.head, ci=fact.ci, failing=fact.failing, remarks=fact.remarks
    )
    if flow.reviewed and told.theirs and not pull.theirs:
        why = f"somebody pushed {fact.head[:12]} to its pull request: that waits for them, {pull.url}"
        return replace(flow, work=replace(flow.work, pull=told), why=why, since=time)
    return with_work(flow, pull=told)


def _returned(flow: Flow, fact: PullRequestReturned, seq: int, time: datetime) -> Flow:
    known = flow.work.pull is not None and fact.number == flow.work.pull.number
    return with_work(flow, flaw=Flaw(fact.kind, fact.why, fact.log)) if known else flow


def _merged(flow: Flow, fact: PullRequestMerged, seq: int, time: datetime) -> Flow:
    pull = flow.work.pull
    if pull is None or fact.number != pull.number:
        return flow
    landing = flow.work.landing and dataclasses.replace(flow.work.landing, landed=True, commit=fact.commit)
    where = (pull.base, fact.commit)
    flow = with_work(flow, landing=landing, landed=where, landed_onto="", empty=False, flaw=None)
    return replace(flow, code="", why=fact.why, since=time)


def _opened(flow: Flow, fact: PullRequestOpened, seq: int, time: datetime) -> Flow:
    before, landing = flow.work.pull, flow.work.landing
    heads, heard = (fact.head,), frozenset[str]()
    if before is not None and before.number == fact.number:
        heads = tuple(dict.fromkeys((*before.heads, fact.head)))[-MOST_HEADS:]
        heard = before.heard | {remark.id for remark in before.remarks}
    pull = Pull(fact.number, fact.url, fact.name, fact.base, fact.head, seq, heads, heard, seen=fact.head)
    flow = with_work(flow, pull=pull)
    if landing is None or landing.into != fact.base or flow.work.own is None or flow.work.own.head != fact.head:
        return flow  # the issue is elsewhere by now
    landing = dataclasses.replace(landing, asked=True, refused=0, due=None)
    why = f"its pull request waits to be merged: {fact.url}"
    return replace(flow, work=replace(flow.work, landing=landing), code="pull_request", why=why, since=time)


RULES: IssueRules = {PullRequestOpened: opened, PullRequestSeen: follow_pull_request}

FOLDS: Folds = {
    PullRequestOpened: _opened,
    PullRequestSeen: _fold_pull_request,
    PullRequestReturned: _returned,
    PullRequestMerged: _merged,
}
