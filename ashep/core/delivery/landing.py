"""What follows from evidence, and from what came of landing: work goes on, back to who wrote it, or to a person."""

from ashep.core.delivery.evolve_tree import unwritable
from ashep.core.facts.evidence import green_before, summary_of
from ashep.core.facts.vocabulary import (
    CommentWanted,
    CriteriaAdopted,
    Fact,
    LandingRefused,
    PullRequestMerged,
    RetryScheduled,
    TreeSealed,
    WorkConflicted,
    WorkLanded,
    WorkVerified,
)
from ashep.core.issues.routing import abort, ask, enter, gone, park, proven, writer_of
from ashep.core.policy.flags import must_ask
from ashep.core.policy.settings import Phase, Verify
from ashep.core.state.flow import Flow
from ashep.core.state.proof import UNCHANGED, Evidence
from ashep.core.state.world import World

MOST_NAMED = 10
"""Checks or files that a reason names."""

MOST_FAILED = 5
"""How often in a row git may fail to move a base before a person is to see to it."""


def verified(world: World, earlier: Flow, flow: Flow, fact: WorkVerified) -> list[Fact]:
    """Say what follows from evidence: of a run's success, or of what is about to land."""
    evidence = flow.evidence
    if evidence is None or evidence.commit != fact.commit:
        return []
    if fact.run:
        return _of_run(world, earlier, flow, evidence) if flow.verifying == fact.run else []
    landing, lacking = flow.landing, evidence.lacking(flow.waived)
    if landing is None:
        return []
    if lacking:
        return back(world, flow, f"on {landing.onto or 'its branch'} it did not hold: {_named(lacking)}")
    return _told(flow, landing.commit or fact.commit) if landing.over else []


def _of_run(world: World, earlier: Flow, flow: Flow, evidence: Evidence) -> list[Fact]:
    policy = world.policy(flow)
    phase = policy.phase(flow.phase) if policy and flow.phase else None
    if policy is None or phase is None:
        return park(flow, "unknown_phase", gone(world, flow, flow.phase))
    lacking = evidence.lacking(flow.waived)
    if not lacking:
        return enter(world, flow, proven(flow, policy, phase), f"{flow.why}; {words(evidence)}")
    return _fell_short(world, earlier, flow, phase, evidence)


def _fell_short(world: World, earlier: Flow, flow: Flow, phase: Phase, evidence: Evidence) -> list[Fact]:
    lacking, before = evidence.lacking(flow.waived), earlier.evidence
    said, most = dict(flow.passed).get(phase.name, "success"), (phase.verify or Verify()).max_attempts
    told = f"{phase.name} says {said}, but {_short(lacking)}"
    same = before is not None and (before.tree, before.lacking(flow.waived)) == (evidence.tree, lacking)
    if same and flow.unproven > 1:
        return _ask(world, flow, phase, f"{told}; nothing has changed since the attempt before")
    if flow.unproven >= most:
        return _ask(world, flow, phase, f"{told}; attempt {flow.unproven} of {most}, the last")
    again = f"{told}; attempt {flow.unproven} of {most}"
    retry = RetryScheduled(flow.issue.id, phase.name, flow.failures, world.now, again, disbelieved=flow.verifying)
    return [retry]


def _ask(world: World, flow: Flow, phase: Phase, why: str) -> list[Fact]:
    return ask(world, flow, phase.name, f"{why}. Let it pass?"[:2000], why, human=None, about="proof")


def _short(lacking: tuple[str, ...]) -> str:
    failed = tuple(name for name in lacking if name != UNCHANGED)
    parts = ["the work changes nothing"] if UNCHANGED in lacking else []
    parts += [f"these checks do not pass: {_named(failed)}"] if failed else []
    return ", and ".join(parts)


def _named(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def words(evidence: Evidence) -> str:
    """Say in a few words what was found, and of what."""
    counted, where = summary_of(evidence.results), f"in tree {evidence.tree[:12]}"
    nothing = "" if evidence.changed else "; it changes nothing"
    if not evidence.results:
        return f"nothing was to be checked {where}{nothing}"
    skipped = f", {counted.skipped} for a person" if counted.skipped else ""
    green = green_before(evidence.results)
    before = f", {green} of them before any work, too" if green else ""
    return f"{counted.passed} of {counted.total} checks passed{skipped} {where}{before}{nothing}"


# --- landing ------------------------------------------------------------------------------------------------------


def conflicted(world: World, flow: Flow, fact: WorkConflicted) -> list[Fact]:
    """Have the work mended that contradicts the base."""
    landing = flow.landing
    if landing is None:
        return []
    where = _named(fact.paths) or "everything: they have no common history"
    return back(world, flow, f"its work and {landing.onto} contradict each other in {where}")


def refused(world: World, flow: Flow, fact: LandingRefused) -> list[Fact]:
    """Give up what only a person can make possible; what may pass by itself is tried again."""
    if flow.landing is None or fact.code in ("moved", "dirty", "locked", "away"):
        return []
    why, code = f"its work cannot land: {fact.why}", fact.code
    if code == "names":
        return back(world, flow, why)
    if code == "failed":
        most = flow.landing.failed >= MOST_FAILED
        return park(flow, "landing_unwritten", f"{why} ({MOST_FAILED} tries)") if most else []
    if code in ("theirs", "refused"):
        return park(flow, "landing_theirs" if code == "theirs" else "landing_refused", why)
    return park(flow, "landing_protected" if code == "protected" else "landing_gone", why)


def landed(flow: Flow, fact: WorkLanded | PullRequestMerged) -> list[Fact]:
    """Tell people where the work is."""
    notes = fact.told if isinstance(fact, WorkLanded) else ()
    return _told(flow, fact.commit, notes) if flow.landing is not None and flow.landing.over else []


def _told(flow: Flow, commit: str, notes: tuple[str, ...] = ()) -> list[Fact]:
    landing, evidence = flow.landing, flow.evidence
    assert landing is not None
    onto = landing.onto or landing.into
    where = (f"Landed on `{onto}`" + (f" as {commit}" if commit else "")) if onto else f"Done at {commit}"
    proof = words(evidence) if evidence is not None and landing.verify else "nothing was to be checked"
    waived = f" A person let these pass: {_named(flow.waived)}." if flow.waived else ""
    noted = "".join(f"\n\nNote: {note[:1000]}." for note in notes[:MOST_NAMED])
    return [CommentWanted(flow.issue.id, f"landed.{landing.seq}", f"{where}; {proof}.{waived}{noted}")]


def misnamed(world: World, flow: Flow, fact: TreeSealed) -> list[Fact]:
    """Have files renamed with which nothing could land, before anything else follows from the work."""
    policy = world.policy(flow)
    writer = writer_of(policy, flow) if policy else None
    mends = flow.stage == "work" and flow.wanted and flow.phase == writer  # its next run is told
    if not fact.unwritable or mends or flow.stage not in ("work", "person", "finishing"):
        return []
    return back(world, flow, f"its work cannot land: {unwritable(fact)}")


def flagged(world: World, flow: Flow) -> list[Fact]:
    """Ask a person about work that touches what makes later work trusted, unless this very work was approved."""
    own, run, policy = flow.own, flow.run, world.policy(flow)
    if flow.stage != "finishing" or own is None or flow.phase is None:
        return []
    flags = must_ask(own.flags, pushed=flow.landing is not None and bool(flow.landing.into))
    if not flags or own.approved == own.head or (run is not None and not run.forgettable):
        return []
    phase = policy.phase(flow.phase) if policy else None
    if phase is None:
        return park(flow, "unknown_phase", gone(world, flow, flow.phase))
    why = f"it touches {', '.join(flags)}, about which a person is always asked"
    lands = flow.landing is not None and (flow.landing.onto or flow.landing.into)
    asked = "May this land" if lands else "May this be closed"
    return ask(world, flow, phase.name, f"{asked}? {why[0].upper()}{why[1:]}.", why, human=None, about="change")


def criteria(flow: Flow, fact: CriteriaAdopted) -> list[Fact]:
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
