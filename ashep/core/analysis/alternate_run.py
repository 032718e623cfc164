"""The other life of an issue, from where it parted from the recorded one: for as long as what it needs was observed."""

from collections.abc import Iterable, Sequence
from dataclasses import replace as changed

from ashep.core.analysis.policy_diff import (
    CYCLE_ENDS,
    LIFE_ENDS,
    ComparedIssue,
    Count,
    End,
    NotObserved,
    counted,
    find_first,
    weighty,
)
from ashep.core.delivery.landing import about_to_land
from ashep.core.delivery.workspaces import is_writing, takers
from ashep.core.facts import commands, delivery, issues, runs
from ashep.core.facts.records import Entry
from ashep.core.facts.vocabulary import Fact, TreeLeft
from ashep.core.issues.human_overrides import phase_labels
from ashep.core.issues.routing import after_answer
from ashep.core.policy.policies import Policy
from ashep.core.reconcile import dispatch, eligibility, step
from ashep.core.runs import concurrency_caps
from ashep.core.runs.agent_selection import choose
from ashep.core.state.delivery import Landing, OwnTree
from ashep.core.state.flow import Flow
from ashep.core.state.holds import CAPS
from ashep.core.state.immutable import replace
from ashep.core.state.runner_state import NOT_SEEN
from ashep.core.state.world import World

MOST_STEPS = 10
"""After so many decisions in a row a life has ended, or waits for a person, or needs a run; fewer are enough."""

NOT_CLAIMED = ("no_policy", "unknown_policy", "unknown_phase")
"""Holds that policies alone lead to: only another label or another policy ends them."""


def started(world: World, flow: Flow) -> list[Fact]:
    """Say what `dispatch` makes of an issue where there is room for everything."""
    rule = {dispatch.WANTED: dispatch.plan_run, dispatch.CANDIDATE: dispatch.candidate}.get(
        dispatch.queue_of(flow) or ""
    )
    if rule is None or world.policies is None or world.agents is None or world.daemon is None:
        return []
    anew = replace(flow, held_by="\0")  # a hold that stands is said again
    # as if it wrote already: nobody else is in its way, nor changes in the tree that are not ashep's
    # others' caps say who takes it, and never that it waits
    runs_now = concurrency_caps.under_way(world, takers(world))
    room = dispatch.Capacity(1 << 30, None, frozenset(), frozenset({flow.issue.id}), None, runs=runs_now)
    facts = rule(world, anew, room).facts
    if (held := find_first(facts, issues.IssueHeld)) is not None and held.code in CAPS:
        facts = rule(world, anew, changed(room, runs=())).facts
    return weighty(facts, flow.issue.id)


def go_on(life: ComparedIssue, world: World, facts: Sequence[Fact], rest: Sequence[Entry], entry: Entry) -> None:
    """Let the other life go on from here by the core's rules, up to its end or to what was not observed.

    `world` is the other life's, in which `facts` are decided after `entry`; `rest` is the rest of that batch.
    """
    life.spoilt, life.met, life.world, life.tree = "", None, None, None
    life.seq = max(rest[-1].seq if rest else entry.seq, life.fork.seq if life.fork else 0)
    for _ in range(MOST_STEPS):
        run = next((place for place, fact in enumerate(facts) if isinstance(fact, runs.RunPlanned)), len(facts))
        world, more = _followed(world, facts[:run], entry)
        life.counted = life.counted.plus(counted(more))
        life.creations |= {fact.id: fact for fact in more if isinstance(fact, issues.CreationWanted)}
        flow = world.flows[life.issue]
        is_held = find_first(facts, issues.IssueHeld) is not None
        if run < len(facts) or flow.stage not in ("work", "idle", "left") or is_held:
            break
        # what is only a matter of time is over: a delay, and what is still to be read of a run that has ended
        last = flow.run
        if last is not None and last.ended:
            last = replace(last, stop=False, tree_wanted="no")
        flow = replace(flow, run=last, not_before=None)
        world = replace(world, flows=world.flows.insert(life.issue, flow))
        facts = started(world, flow)
        if not facts:
            break
    _settle(life, world, facts)


def _followed(world: World, facts: Iterable[Fact], entry: Entry) -> tuple[World, list[Fact]]:
    """Fold facts, and what follows from them by the rules of one issue; give all of them."""
    batch = step.Batch(world, entry.at, world.seq + 1, None)
    for fact in facts:
        batch.follow(fact)
    return batch.world, [entry.body for entry in batch.entries if not isinstance(entry.body, commands.Command)]


def _settle(life: ComparedIssue, world: World, facts: Sequence[Fact]) -> None:
    """Say how the other life ended, or what it waits for."""
    flow, held, run = world.flows[life.issue], find_first(facts, issues.IssueHeld), find_first(facts, runs.RunPlanned)
    if run is not None:
        needs = f"a run of {run.phase} by {run.agent}"
        flaw = flow.work.flaw if flow.work.flaw is not None and flow.work.flaw.kind in ("conflict", "checks") else None
        state = f"its work {flaw.why}; " if flaw is not None else ""
        because = life.because or f"{state}nobody ran it on that state of things"
        life.end = bounded(world, life.issue, NotObserved(life.seq, needs, because, life.counted, 1, None))
    elif held is not None and _for_good(world, flow, held):
        life.end = End("held", held.code, held.why)
    elif flow.stage == "work" and flow.work.verifying:
        lacking(life, world, f"evidence about the work of {flow.phase}", "nobody looked for it in the record", life.seq)
    elif flow.stage == "finishing" and flow.work.landing is not None and not flow.work.landing.is_over:
        life.world = world  # the record may tell
    elif flow.stage in ("finishing", "closed"):
        life.end = End("closed", "", flow.why)
    elif flow.stage == "parked":
        life.end = End("parked", flow.code, flow.why)
    elif flow.stage == "person" and flow.question is not None and not life.strict:
        life.world = world
        shared = world.indexes.live if flow.work.own is None else ()
        others = sorted(issue for issue in shared if issue != life.issue and is_writing(world.flows[issue]))
        life.spoilt = f"{others[0]} was writing in the work tree" if others else ""
    else:
        because = held.why if held else "nothing that is on record tells how it goes on"
        if flow.stage == "person":
            because = "whoever answered in the record may have seen what is left out here"
        _unknown(life, world, because)


def lacking(life: ComparedIssue, world: World, needs: str, because: str, seq: int) -> None:
    """End what is known of the other life at what was never observed, up to `seq`; no run is certain to follow."""
    life.end = bounded(world, life.issue, NotObserved(seq, needs, because, life.counted, 0, None))


def _for_good(world: World, flow: Flow, held: issues.IssueHeld) -> bool:
    """Whether only another policy, agent or label would end a hold."""
    if held.code in NOT_CLAIMED:
        return True
    policy = _policy(world, flow)
    if held.code != "no_agent" or policy is None or world.agents is None:
        return False
    names = (flow.phase,) if flow.stage == "work" else phase_labels(world, flow.issue)
    phase = policy.phase(names[0]) if names and names[0] else policy.phases[0]
    return phase is not None and choose(world.agents, phase, NOT_SEEN, {}).agent is None


def _policy(world: World, flow: Flow) -> Policy | None:
    if flow.stage not in ("idle", "left"):
        return world.policy(flow)
    prefix = world.settings.labels.policy_prefix
    return eligibility.policy_for(world.policies, flow.issue, prefix)[2] if world.policies else None


def _unknown(life: ComparedIssue, world: World, because: str) -> None:
    flow = world.flows[life.issue]
    needs = f"an answer to the question of {flow.phase}" if flow.stage == "person" else "what was not observed"
    lacking(life, world, needs, because, life.seq)


def bounded(world: World, issue: str, unknown: NotObserved) -> NotObserved:
    """Bound what is left of the present cycle: by the policy's limit of runs, and by what it may ask."""
    flow = world.flows[issue]
    policy = _policy(world, flow)
    if policy is None:
        return unknown
    spent = 0 if flow.stage in ("idle", "left") else flow.counters.cycle_runs
    left = max(policy.limits.max_runs - spent, unknown.least)
    humans = [phase for phase in policy.phases if phase.human is not None]
    # an answer begins a cycle or closes; only a question that nobody answers can lead on, and be followed by another:
    # one behind each run, and those that lead to each other, which `max_visits` bounds
    leads_on = any(phase.human and phase.human.on_deadline not in ("park", "close") for phase in humans)
    asks = 1 + left + sum(phase.max_visits for phase in humans) if leads_on else 1
    if flow.stage == "person":  # it is counted, and what follows the answer is another cycle's
        left, asks = (left, asks - 1) if leads_on else (0, 0)
    return changed(unknown, most=Count(left, asks))


# --- questions ----------------------------------------------------------------------------------------------------


def met(life: ComparedIssue, entry: Entry, rest: Sequence[Entry]) -> None:
    """Look whether an entry of the recorded life is what the other one waits for: its question and the answer, or what
    came of its work on the way to the base.

    An answer counts that was given in time to the same question about the same work: no run with write access, and
    nothing else, came between where the two lives parted and where that was asked.
    """
    world, body = life.world, entry.body
    assert world is not None and life.fork is not None
    flow = world.flows[life.issue]
    begun = isinstance(body, issues.CycleBegan) and entry.seq <= life.seq  # by the answer that both lives had
    if entry.seq < life.fork.seq or begun or (life.spoilt and life.met is None):
        return None
    if isinstance(body, (delivery.TreeSealed, TreeLeft)):
        return _sealed(life, world, flow, entry, rest)
    if flow.stage == "finishing":
        return _lands(life, world, flow, entry, rest)
    question = flow.question
    assert question is not None
    if life.met is None:
        if isinstance(body, runs.RunPlanned) and body.access == "write":
            spoil(life, f"{body.run} changed the work before that was asked")
        elif isinstance(body, (runs.SessionTaken, *CYCLE_ENDS)):
            spoil(life, "nobody was asked that on this state of the work")
        elif isinstance(body, issues.PersonAsked) and not life.spoilt:
            asked = (body.phase, body.question, body.human_phase)
            life.met = entry.seq if asked == (question.phase, question.text, question.human_phase) else None
    elif isinstance(body, issues.PersonAnswered) and not life.spoilt and entry.at <= question.due:
        life.rests_on += (life.met, entry.seq)
        flow, moved = world.flows[life.issue], replace(world, now=entry.at, seq=entry.seq)
        follow = after_answer(moved, flow, question, body.answer == "approved", body.why)
        go_on(life, moved, [body, *weighty(follow, life.issue)], rest, entry)
    elif isinstance(body, (runs.SessionTaken, *CYCLE_ENDS)):
        spoil(life, "it ended otherwise than by an answer in time")
    return None


def _sealed(life: ComparedIssue, world: World, flow: Flow, entry: Entry, rest: Sequence[Entry]) -> None:
    """What a run left is known: of the last one that both lives had, it is what the other goes on with."""
    body, run = entry.body, flow.run
    assert isinstance(body, (delivery.TreeSealed, TreeLeft))
    if run is None or run.id != body.run:
        if flow.work.own is None or isinstance(body, TreeLeft) or body.head != flow.work.own.head:
            spoil(life, f"{body.run} changed the work before {_awaited(flow)}")
        return
    if isinstance(body, TreeLeft):
        spoil(life, f"what {body.run} left could not be sealed")
        return
    seen = replace(world, now=entry.at, seq=entry.seq - 1)
    after, more = _followed(seen, [body], entry)
    if weighty(more, life.issue) == [body]:  # nothing follows from that
        life.world = after
    else:
        go_on(life, seen, [body], rest, entry)


def _awaited(flow: Flow) -> str:
    return "it landed" if flow.stage == "finishing" else "that was asked"


def spoil(life: ComparedIssue, why: str) -> None:
    """No answer counts any more, for the first reason that there was."""
    life.spoilt = life.spoilt or why


def spoil_shared_tree(life: ComparedIssue, planned: runs.RunPlanned) -> None:
    """Another issue is worked on: where both are in the same tree, its work is there, too."""
    assert life.world is not None
    flow = life.world.flows[life.issue]
    if planned.branch == (flow.work.own.branch if flow.work.own is not None else None):
        spoil(life, f"{planned.issue} wrote in the work tree before {_awaited(flow)}")


def tree_seen(life: ComparedIssue, fact: delivery.TreeSeen) -> None:
    """Look whether the work is still what it was when the other life asked; one in a tree of its own is not in it."""
    if life.world is not None and life.world.flows[life.issue].work.own is not None:
        return
    if life.tree is None or fact.issue == life.issue:  # what its own last run left is what is asked about
        life.tree = fact.tree
    elif (life.tree.head, life.tree.dirty) != (fact.tree.head, fact.tree.dirty):
        spoil(life, "the work tree changed before that was asked")


# --- landing --------------------------------------------------------------------------------------------------------

LANDS = "whether its work holds and fits the base"
CHECKED = "evidence about what is to land"
UNLOOKED = "nobody looked for it in the record"

_PASSES = ("moved", "dirty", "locked", "away", "failed")
"""Why a base was not moved, where that passes by itself: it tells nothing of the work."""


def _lands(life: ComparedIssue, world: World, flow: Flow, entry: Entry, rest: Sequence[Entry]) -> None:
    """Take what came of the very same work on its way to the base. Where the base may have been another one when the
    other life brought it there, or a person looked at it, that is an assumption, which is told.
    """
    body, own, landing = entry.body, flow.work.own, flow.work.landing
    assert own is not None and landing is not None
    if isinstance(body, runs.SessionTaken):
        return spoil(life, "a person took its session before it landed")
    if isinstance(body, (issues.IssueParked, *LIFE_ENDS)):
        return spoil(life, "it did not land in the record")
    if isinstance(body, issues.IssueFinished):
        if (body.onto, body.into) != (landing.onto, landing.into):
            return spoil(life, f"it was to land on {body.onto or body.into or 'no branch'} in the record")
        if landing.verify and not body.verify:
            lacking(life, world, CHECKED, UNLOOKED, life.seq)
            life.world = None
        return None
    if not _tells(flow, own, landing, entry.body):
        return None
    if why := _assumed(world, own, landing, entry.body):
        if life.strict:
            return spoil(life, why)
        life.rests_on += (entry.seq,)
    assert not isinstance(body, commands.Command)
    go_on(life, replace(world, now=entry.at, seq=entry.seq - 1), [body], rest, entry)
    return None


def _tells(flow: Flow, own: OwnTree, landing: Landing, body: Fact | commands.Command) -> bool:
    """Whether something is about the other life's work."""
    match body:
        case delivery.WorkVerified():
            return landing.verify and not body.run and body.commit == about_to_land(flow)
        case (
            delivery.WorkIntegrated() | delivery.WorkConflicted() | delivery.WorkLanded() | delivery.PullRequestOpened()
        ):
            return body.head == own.head
        case delivery.LandingRefused():
            return True
        case delivery.PullRequestSeen():
            return flow.reviewed
        case _:
            return False


def _assumed(world: World, own: OwnTree, landing: Landing, body: Fact | commands.Command) -> str:
    """Say what may have been otherwise when the other life came there; empty: nothing."""
    base = ""
    if isinstance(body, (delivery.WorkIntegrated, delivery.WorkConflicted)):
        base = body.base
    elif isinstance(body, delivery.WorkLanded) and not landing.commit:
        base = body.commit
    known = base in ("", own.base, own.since) or any(
        flow.work.landed == (landing.onto, base) for flow in world.flows.values()
    )
    if not known:
        return "the base may have been another one when it was to land"
    if isinstance(body, delivery.PullRequestSeen):
        return "whoever looked at its pull request may have seen what is left out here"
    refused = isinstance(body, delivery.LandingRefused) and body.code not in _PASSES
    return "what refused it may not have been so when it was to land" if refused else ""


def conclude(life: ComparedIssue, recorded: Flow) -> None:
    """Say what became of a life that still waits for a person, or for the base, when the journal ends."""
    if life.world is None:
        return
    flow = life.world.flows[life.issue]
    if flow.stage == "finishing":
        if not life.spoilt and recorded.stage == "finishing":
            life.end = End("landing", "", "it is about to land in the record, too")
        else:
            lacking(life, life.world, LANDS, life.spoilt or "it has not landed in the record so far", life.seq)
    elif life.met is not None and not life.spoilt:
        life.end = End("waiting", "", "the question is open in the record, too")
        life.rests_on += (life.met,)
    else:
        _unknown(life, life.world, life.spoilt or "nobody was asked that on this state of the work")
    life.world = None
