"""A person takes a session, or the issue: nothing is sent, nothing is stopped, until they are done.

They do it by a message in the session, by stopping the turn there, or by the label `ashep:paused`. What follows is the
policy's `takeover`. Whether they are done is said by the label, or by a fresh read that shows them quiet.
"""

import dataclasses
from datetime import datetime, timedelta
from typing import NamedTuple

from ashep.core.facts.commands import SendPrompt
from ashep.core.facts.delivery import VerificationWanted
from ashep.core.facts.issues import CommentWanted
from ashep.core.facts.runs import (
    ReleaseWanted,
    RunEnded,
    RunWithdrawn,
    SessionReleased,
    SessionSeen,
    SessionTaken,
    TurnSeen,
)
from ashep.core.facts.vocabulary import Fact
from ashep.core.issues.human_overrides import COOLDOWN
from ashep.core.issues.routing import after_run, enter, following
from ashep.core.issues.verification import is_proven
from ashep.core.policy import policies
from ashep.core.policy.base_types import format_duration
from ashep.core.policy.policies import CLOSE, Phase, Policy
from ashep.core.runs.prompt_commands import message_id
from ashep.core.state.flow import Flow, Folds, Posture, Takeover, ended_with
from ashep.core.state.holds import Hold
from ashep.core.state.immutable import replace
from ashep.core.state.run import Run, with_watch
from ashep.core.state.world import IssueRules, World


def reviewed_by(policy: Policy, phase: Phase) -> str | None:
    """The phase that a success of this one leads to by itself; None: there is none that would look at the work."""
    target = phase.next.get("success") or following(policy, phase)
    return None if phase.verdicts or target == CLOSE else target


def keeps(world: World, flow: Flow) -> Hold | None:
    """Give the hold of an issue that a person has."""
    if flow.takeover is not None:
        return Hold("paused", flow.why)
    if world.settings.labels.paused in flow.issue.labels:
        return Hold("paused", "a person has taken over: its label says paused")
    return None


# --- taking -------------------------------------------------------------------------------------------------------


class TakeoverDecision(NamedTuple):
    """A session that a person took."""

    session: str | None = None
    message: str | None = None
    outcome: bool = False
    """What its run had reported is kept."""


def in_session(
    world: World, flow: Flow, run: Run, why: str, reported: RunEnded | None = None, *, running: bool = False
) -> list[Fact]:
    """A person wrote in the run's session, or stopped its turn: the run ends, and nothing of theirs is touched.

    `reported`: how it ended before that was seen; nothing follows from it before they are done. `running`: its turn
    goes on, and is stopped where that stops nothing of theirs.
    """
    taken = TakeoverDecision(run.session, message_id(world, run), reported is not None)
    if reported is not None:
        return [*_by_policy(world, flow, taken, run.id, why), reported]
    abort = running and world.apart(run.session_runner)
    return [RunEnded(flow.issue.id, run.id, "aborted", why, abort=abort), *_by_policy(world, flow, taken, run.id, why)]


def _by_policy(world: World, flow: Flow, taken: TakeoverDecision, run: str, why: str) -> list[Fact]:
    issue, label, wish = flow.issue.id, world.settings.labels.paused, _wish(world, flow)
    if label in flow.issue.labels:
        return [SessionTaken(issue, wish.action, "theirs", why, None, *taken)]
    if wish.action != "pause":
        return [SessionTaken(issue, wish.action, "none", why, wish.cooldown or COOLDOWN, *taken)]
    quiet = f", or you have been quiet there for {format_duration(wish.cooldown)}" if wish.cooldown else ""
    text = (
        f"A person took over: {why}. Nothing more is sent to this session until the label `{label}` is taken off "
        f"(`ashep release {issue}`){quiet}. `ashep take {issue}` says how to open it."
        f"{' What its agent reported before is kept, and counts then.' if taken.outcome else ''}"
    )
    fact = SessionTaken(issue, wish.action, "ours", why, wish.cooldown, *taken)
    return [fact, CommentWanted(issue, f"taken.{run}", text)]


def _wish(world: World, flow: Flow) -> policies.Takeover:
    """What the policy says of takeovers here; `review` is as `pause` where a success leads to no other phase."""
    policy = world.policy(flow)
    phase = policy.phase(flow.phase) if policy and flow.phase else None
    if policy is None or phase is None:
        return policies.Takeover()
    wish = phase.takeover or policy.takeover
    if wish.action == "review" and reviewed_by(policy, phase) is None:
        return wish.model_copy(update={"action": "pause"})
    return wish


def labelled(world: World, flow: Flow) -> list[Fact]:
    """Compare the label with what is known: a person sets it to take the issue, and takes it off when they are done."""
    if flow.stage != "work" or flow.written is None:
        return []
    label, takeover, ours = world.settings.labels.paused, flow.takeover, flow.written.paused
    if label in flow.issue.labels:
        known = takeover is not None and takeover.label == "theirs" and not takeover.ending
        return [] if ours or known else _take(world, flow, f"the label {label} was set")
    if takeover is None or takeover.ending or not (takeover.label == "theirs" or (takeover.label == "ours" and ours)):
        return []
    why = f"the label {label} was taken off"
    wanted = ReleaseWanted(flow.issue.id, why)
    return [wanted] if takeover.session is not None else [wanted, SessionReleased(flow.issue.id, "label", why)]


def keep_label(flow: Flow, why: str) -> list[Fact]:
    """A person had set the label before we did: it is theirs, and stays until they take it off."""
    was = flow.takeover
    if was is None or was.label != "ours" or was.ending:
        return []
    return [SessionTaken(flow.issue.id, was.action, "theirs", why, None, was.session, was.message, was.outcome)]


def _take(world: World, flow: Flow, why: str) -> list[Fact]:
    """Take the issue for a person. A turn that is under way is stopped once a read shows that nobody else is in it."""
    issue, run, takeover = flow.issue.id, flow.run, flow.takeover
    wish, facts = _wish(world, flow), list[Fact]()
    taken = TakeoverDecision()
    if takeover is not None:
        taken = TakeoverDecision(takeover.session, takeover.message, takeover.outcome)
    if run is not None and not run.ended:
        taken = TakeoverDecision(run.session, message_id(world, run))
        if not run.prompt.sent:
            sending = any(isinstance(command, SendPrompt) for command in flow.open)
            facts.append(RunEnded(issue, run.id, "aborted", why, abort=sending))
            taken = taken if sending else TakeoverDecision()
    return [*facts, SessionTaken(issue, wish.action, "theirs", why, None, *taken)]


def turn_of_held(world: World, flow: Flow, run: Run, fact: TurnSeen) -> list[Fact]:
    """End the run of an issue that was taken; its turn is stopped where a fresh read shows no person in the session, or
    that stops nothing of theirs.
    """
    if fact.state == "finished" or (fact.people and not world.apart(run.session_runner)):
        return [RunEnded(flow.issue.id, run.id, "aborted", flow.why)]
    return [] if run.watch.fresh_after else [RunEnded(flow.issue.id, run.id, "aborted", flow.why, abort=True)]


# --- going on -----------------------------------------------------------------------------------------------------


def session_seen(world: World, before: Flow, flow: Flow, fact: SessionSeen) -> list[Fact]:
    """Judge a read of a taken session; `before` is the flow before it was folded."""
    issue, takeover, was = flow.issue.id, flow.takeover, before.takeover
    if takeover is None or was is None:
        return _came_back(world, flow, fact)
    if fact.session != takeover.session or takeover.fresh_after:
        return []
    asked = was.fresh_after != 0 and (was.people, was.busy) == (takeover.people, takeover.busy)
    if takeover.busy:
        late = asked and takeover.due is None and (takeover.ending or takeover.cooldown is not None)
        why = f"what is at work there was waited for {format_duration(LEFT_AT_WORK)} without a word of theirs"
        return [SessionReleased(issue, "label" if takeover.ending else "quiet", why, leave=True)] if late else []
    if takeover.ending:
        return [SessionReleased(issue, "label", "the person is done")]
    if not asked or takeover.cooldown is None:
        return []
    return [SessionReleased(issue, "quiet", f"nobody wrote in the session for {format_duration(takeover.cooldown)}")]


def _came_back(world: World, flow: Flow, fact: SessionSeen) -> list[Fact]:
    """Just before a run goes on in a session, a person was found in it."""
    takeover, run = flow.resume, flow.run
    if run is None or run.ended or run.prompt.sent:
        return []
    if takeover is None and fact.busy and fact.session == run.session:
        why = f"a turn that is none of ours runs in {fact.session}: another session is used"
        return [RunWithdrawn(flow.issue.id, run.id, "retry", why, leave=fact.session)]
    if takeover is not None and fact.session == takeover.session and not set(fact.people) <= set(takeover.people):
        taken, why = TakeoverDecision(takeover.session, takeover.message), "a person wrote in the session again"
        withdrawn = RunWithdrawn(flow.issue.id, run.id, "paused", why)
        return [withdrawn, *_by_policy(world, flow, taken, run.id, why)]
    return []


def released(world: World, earlier: Flow, flow: Flow, fact: SessionReleased) -> list[Fact]:
    """Say what follows once the person is done: the next phase looks at their work, or the phase goes on."""
    takeover, why, policy = earlier.takeover, fact.why, world.policy(flow)
    if takeover is None:
        return []
    phase = policy.phase(flow.phase) if policy and flow.phase else None
    target = reviewed_by(policy, phase) if policy and phase and takeover.action == "review" else None
    if phase is None or target is None:
        # what the run had reported when the person was found in its session counts now
        said, run = flow.reports[-1] if takeover.outcome and flow.reports else None, flow.run
        if said is None or run is None or said.run != run.id or said.outcome is None or said.state == "aborted":
            return []
        state = "succeeded" if said.state == "succeeded" else "failed"
        return after_run(world, flow, RunEnded(flow.issue.id, said.run, state, f"{said.why}; {why}", said.outcome))
    done = f"a person did {phase.name}: {why}"
    if flow.run is not None and is_proven(phase, flow, "success"):
        return [VerificationWanted(flow.issue.id, flow.run.id, phase.name, done)]
    return enter(world, flow, target, done)


LEFT_AT_WORK = timedelta(hours=1)
"""What is at work in the session of a person who is done, or says no more, is waited for so long; then it is left."""


def _read(flow: Flow, fact: SessionSeen, seq: int, time: datetime) -> Flow:
    if flow.takeover is None:
        return flow
    run = flow.run
    if run is not None and run.stop and fact.people and fact.session == run.session:
        # a turn that a person's message began is not stopped in place of ours, whose stop is not done
        run = replace(run, stop=False)
    return replace(flow, takeover=_fold_session(flow.takeover, fact, time), run=run)


def _ending(flow: Flow, fact: ReleaseWanted, seq: int, time: datetime) -> Flow:
    due = time + LEFT_AT_WORK if flow.takeover and flow.takeover.session else None
    takeover = replace(flow.takeover, ending=True, due=due, fresh_after=seq) if flow.takeover else None
    return _label_is_gone(replace(flow, takeover=takeover, why=fact.why))


def _begin_takeover(flow: Flow, fact: SessionTaken, seq: int, time: datetime) -> Flow:
    run, target = flow.run, flow.target
    here = run if run is not None and run.session is not None and run.session == fact.session else None
    busy = here is not None and here.turn == "running"
    people = here.people if here else ()
    takeover = Takeover(fact.action, fact.label, fact.cooldown, fact.session, fact.message, people, busy)
    takeover = replace(takeover, outcome=fact.outcome)
    if run is not None and not run.ended:  # it is ended by a read that begins now
        run = with_watch(run, fresh_after=seq)
    if fact.label == "ours":
        target = Posture(seq, "work", flow.phase, paused=True)
    elif takeover.label == "theirs":
        flow = _label_is_gone(flow)
        target = flow.target
    takeover = replace(takeover, due=_due(takeover, time))
    flow = replace(flow, takeover=takeover, resume=None, run=run, target=target, wanted=True)
    return replace(flow, code="paused", held_by="", why=fact.why, since=time)


def _due(takeover: Takeover, time: datetime) -> datetime | None:
    if takeover.session is None or takeover.cooldown is None or takeover.ending:
        return None
    return time + takeover.cooldown + (LEFT_AT_WORK if takeover.busy else timedelta())


def _fold_session(takeover: Takeover, fact: SessionSeen, time: datetime) -> Takeover:
    if fact.session != takeover.session:
        return takeover
    fresh = 0 if fact.as_of >= takeover.fresh_after else takeover.fresh_after
    if (fact.people, fact.busy) == (takeover.people, takeover.busy):
        return replace(takeover, fresh_after=fresh)
    seen = replace(takeover, people=fact.people, busy=fact.busy, fresh_after=fresh)
    if takeover.ending:
        return replace(seen, due=takeover.due or (time + LEFT_AT_WORK if seen.busy else None))
    return replace(seen, due=_due(seen, time))


def _label_is_gone(flow: Flow) -> Flow:
    """What we wrote stands there no more, or is a person's: nothing of it is to be taken off."""
    written = dataclasses.replace(flow.written, paused=False) if flow.written else None
    target = dataclasses.replace(flow.target, paused=False) if flow.target else None
    return replace(flow, written=written, target=target)


def _released(flow: Flow, fact: SessionReleased, seq: int, time: datetime) -> Flow:
    takeover, run = flow.takeover, flow.run
    if run is not None and run.settled and run.before is not None:
        run = replace(run, tree_wanted="again")  # what the person changed meanwhile is the issue's
    code = ""
    if takeover is not None and takeover.label == "ours" and fact.by == "quiet":
        # until our label is off again
        flow, code = replace(flow, target=Posture(seq, "work", flow.phase)), "paused"
    if takeover is not None and takeover.action == "review" and flow.phase:
        flow = ended_with(flow, flow.phase, "success")
    resume = takeover if takeover is not None and takeover.session is not None and not fact.leave else None
    if takeover is not None and fact.leave:
        flow = replace(flow, sessions=tuple(session for session in flow.sessions if session[1] != takeover.session))
    flow = replace(flow, takeover=None, resume=resume, run=run, wanted=True)
    return replace(flow, code=code, held_by="", why=fact.why, since=time)


RULES: IssueRules = {SessionSeen: session_seen, SessionReleased: released}

FOLDS: Folds = {SessionTaken: _begin_takeover, SessionSeen: _read, ReleaseWanted: _ending, SessionReleased: _released}
