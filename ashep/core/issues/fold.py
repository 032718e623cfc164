"""An issue's course, folded: what decisions, answers and looks make of its flow. No policy rules, no world."""

import dataclasses
from datetime import datetime, timedelta
from typing import get_args

from ashep.core.facts import commands, issues, tracker
from ashep.core.facts.command_descriptions import WORDS
from ashep.core.facts.runs import OrphanStopped
from ashep.core.facts.vocabulary import AuthorsRead, ChangeDoubted, ChangeJudged
from ashep.core.state import authorship
from ashep.core.state.delivery import Landing, OwnTree
from ashep.core.state.flow import Flow, Folds, Posture, Question, Stage, ended_with, idled, with_work
from ashep.core.state.immutable import replace
from ashep.core.state.pending_intents import FAULT_LIMIT, MAX_REPORTS, infra_delay, settle_intent, stale
from ashep.core.state.run import with_watch


def fold_intent(flow: Flow, command: commands.Command) -> Flow:
    """An intent stands in the journal."""
    writing, undo = flow.writing, flow.authors.undo
    if isinstance(command, (commands.ClaimIssue, commands.WriteIssue)):
        writing = flow.target
        if undo is not None and command.stamp.seq == undo.seq:
            writing = dataclasses.replace(flow.written, seq=undo.seq) if flow.written else None
    if isinstance(command, commands.SendPrompt):
        flow = replace(flow, messages=(*flow.messages, command.message_id)[-MAX_REPORTS:])
    run = flow.run
    if isinstance(command, commands.StopTurn) and run is not None and not run.ended and run.prompt.sent:
        flow = replace(flow, run=with_watch(run, stopping=True))
    return replace(flow, open=(*flow.open, command), writing=writing)


# --- decisions ----------------------------------------------------------------------------------------------------


def _fold_taken(flow: Flow, fact: issues.IssueTaken, seq: int, time: datetime) -> Flow:
    work = replace(flow.work, criteria=None, landed=None, signed=None, empty=False)
    fresh = authorship.Authors(before=flow.issue.labels)
    flow = replace(flow, policy=fact.policy, not_before=None, written=None, writing=None, authors=fresh, work=work)
    return _stage(flow, "work", time, "", fact.why)


def _cycle(flow: Flow, fact: issues.CycleBegan, seq: int, time: datetime) -> Flow:
    counters = replace(
        flow.counters, cycle=fact.cycle, cycle_began=time, thought=timedelta(), cycle_runs=0, cycle_visits=(),
        created=0, spent=(0, 0.0), marks=(), passed=flow.counters.passed if fact.keeps else (),
    )  # fmt: skip
    flow = replace(flow, counters=counters, failures=0, infra=0, infra_began=None, doubts=0, doubts_began=None)
    return flow if fact.keeps else with_work(flow, waived=(), evidence=None)


def _retry(flow: Flow, fact: issues.RetryScheduled, seq: int, time: datetime) -> Flow:
    flow = replace(flow, wanted=True, not_before=fact.due, failures=fact.failures)
    if fact.disbelieved:  # the tracker is told what its checks found
        flow = replace(flow, target=Posture(seq, "work", fact.phase))
    return replace(flow, work=replace(flow.work, verifying=""), code=fact.code, why=fact.why, held_by="", since=time)


def _reminded(flow: Flow, fact: issues.PersonReminded, seq: int, time: datetime) -> Flow:
    question = flow.question and dataclasses.replace(flow.question, remind=fact.remind, reminded=time)
    return replace(flow, question=question)


def _person_answered(flow: Flow, fact: issues.PersonAnswered, seq: int, time: datetime) -> Flow:
    thinking = time - flow.question.asked if flow.question else timedelta()
    asked = flow.question.phase if flow.question and flow.question.human_phase else None
    flow = idled(answered(flow, fact), thinking)
    return replace(ended_with(flow, asked, fact.answer) if asked else flow, question=None)


def _creation(flow: Flow, fact: issues.CreationWanted, seq: int, time: datetime) -> Flow:
    counters = replace(flow.counters, created=flow.counters.created + 1)
    return replace(flow, creations=(*flow.creations, fact), counters=counters)


def _judged(flow: Flow, fact: ChangeJudged, seq: int, time: datetime) -> Flow:
    answered_again = replace(flow, authors=authorship.judged(flow.authors, fact, seq), answer_seq=0)
    judged = replace(answered_again, judged=flow.judged | set(fact.judged))
    stood = flow.written
    if stood is None or not (fact.refused and fact.undo) or flow.target is None or flow.target.seq != stood.seq:
        return judged
    return replace(judged, target=dataclasses.replace(stood, seq=seq))  # as it was, once more


_Ending = issues.IssueParked | issues.IssueGivenBack | issues.IssueLeft | issues.IssueFinished | issues.IssueClosed


def _outcome_of_flow(flow: Flow, fact: _Ending, seq: int, time: datetime) -> Flow:
    quiet = replace(flow, wanted=False, question=None, not_before=None)
    match fact:
        case issues.IssueParked():
            return _stage(replace(quiet, target=Posture(seq, "park", flow.phase)), "parked", time, fact.code, fact.why)
        case issues.IssueGivenBack():
            target = Posture(seq, "give_back", None)  # what was to be said is over
            quiet = replace(quiet, target=target, not_before=fact.not_before, comments=(), take_off=())
            return _stage(quiet, "giving_back", time, fact.code, fact.why)
        case issues.IssueLeft():
            quiet = replace(quiet, target=None, written=None, comments=(), creations=(), take_off=())
            quiet = replace(quiet, not_before=fact.not_before)
            return _stage(quiet, "left", time, fact.code, fact.why)
        case issues.IssueFinished():
            quiet = _stage(replace(quiet, target=Posture(seq, "close", None)), "finishing", time, "", fact.why)
            landing = Landing(seq, fact.onto, fact.verify, into=fact.into)
            return with_work(quiet, landing=landing) if fact.onto or fact.into or fact.verify else quiet
        case issues.IssueClosed():
            quiet = replace(quiet, target=None, written=None, look_again=False, authors=authorship.NOBODY)
            quiet = replace(quiet, comments=(), creations=(), take_off=())
            return _stage(quiet, "closed", time, fact.by, fact.why)


def _stage(flow: Flow, stage: Stage, time: datetime, code: str, why: str) -> Flow:
    work = flow.work
    if work.verifying or work.landing is not None:
        work = replace(work, verifying="", landing=None)
    return replace(flow, stage=stage, since=time, code=code, why=why, takeover=None, resume=None, work=work)


def _entered(flow: Flow, fact: issues.PhaseEntered, seq: int, time: datetime) -> Flow:
    flow = replace(_visit(flow, fact.phase, fact.visit), attempt=0, failures=0, wanted=True, question=None)
    flow = replace(flow, not_before=None, target=Posture(seq, "work", fact.phase), work=replace(flow.work, unproven=0))
    return _stage(flow, "work", time, "", fact.why)


def _adopted(flow: Flow, fact: issues.IssueAdopted, seq: int, time: datetime) -> Flow:
    """What stands in the tracker counts as written by us; the next run's stamp names this journal.

    It counts as written here and now: the stamp's number is another journal's, and may be that of a record to come.
    """
    stands = Posture(seq, fact.kind, fact.phase)
    waits = fact.kind == "work" and flow.issue.status == "blocked"  # its run asked a person: it is to be worked on
    stood = Posture(0, "ask", fact.phase, input=True) if waits else stands
    own = flow.work.own or (OwnTree(fact.branch, 0, onto=fact.onto) if fact.branch else None)
    counters = replace(
        inherited(flow).counters, cycle=max(flow.counters.cycle, 1), cycle_began=time,
        cycle_runs=fact.cycle_runs, cycle_visits=((fact.phase, 1),),
        visits=tuple((dict(flow.counters.visits) | {fact.phase: fact.visit}).items()),
    )  # fmt: skip
    flow = replace(
        flow, counters=counters, policy=fact.policy, phase=fact.phase, visit=fact.visit, attempt=fact.attempt,
        failures=fact.attempt,  # what became of them nobody knows any more: they are used up
        written=stood, target=stands,
        work=replace(flow.work, own=own), writing=None,
        wanted=fact.kind == "work", orphan=fact.orphan, not_before=None, question=None,
    )  # fmt: skip
    match fact.kind:
        case "work":
            return _stage(flow, "work", time, "", fact.why)
        case "ask":
            question = Question(fact.phase, fact.question, fact.human_phase, time, fact.due or time)
            return _stage(replace(flow, question=question), "person", time, "", fact.why)
        case "park":
            return _stage(flow, "parked", time, "adopted", fact.why)


def inherited(flow: Flow) -> Flow:
    """Go on counting where the stamp on the issue says that others have got to."""
    counters, stamp = flow.counters, flow.issue.stamp
    if stamp is None:
        return flow
    floor, runs = max(counters.floor, stamp.runs, stamp.visit), max(counters.runs, stamp.runs)
    return replace(flow, counters=replace(counters, depth=stamp.depth, runs=runs, floor=floor))


def _visit(flow: Flow, phase: str, visit: int) -> Flow:
    visits = dict(flow.counters.visits) | {phase: visit}
    cycle = dict(flow.counters.cycle_visits)
    cycle[phase] = cycle.get(phase, 0) + 1
    counters = replace(flow.counters, visits=tuple(visits.items()), cycle_visits=tuple(cycle.items()))
    return replace(flow, phase=phase, visit=visit, counters=counters)


def _asked_person(flow: Flow, fact: issues.PersonAsked, seq: int, time: datetime) -> Flow:
    entered = flow.stage == "work" and flow.wanted and flow.phase == fact.phase
    if fact.human_phase and not entered:  # an agent phase for which a person was chosen was entered before
        flow = _visit(flow, fact.phase, flow.times(fact.phase) + 1)
    question = Question(fact.phase, fact.question, fact.human_phase, time, fact.due, fact.remind, about=fact.about)
    target = Posture(seq, "ask", fact.phase)
    flow = replace(flow, wanted=False, not_before=None, question=question, target=target)
    return _stage(flow, "person", time, "", fact.why)


# --- answers of effects, and what was seen ------------------------------------------------------------------------


def _fold_write(flow: Flow, fact: tracker.IssueClaimed | tracker.IssueWritten, seq: int, time: datetime) -> Flow:
    flow = replace(settle_write(flow, seq), issue=fact.view, view_seq=seq, text=fact.text or flow.text)
    return replace(flow, authors=authorship.forget_changes(flow.authors, fact.view))


def _unclaimed(flow: Flow, fact: tracker.ClaimRefused | tracker.GuardRefused, seq: int, time: datetime) -> Flow:
    return replace(flow, writing=None, look_again=True)


def _without_comment(flow: Flow, name: str) -> Flow:
    return replace(flow, comments=tuple(comment for comment in flow.comments if comment[0] != name))


def _without_creation(flow: Flow, issue: str) -> Flow:
    return replace(flow, creations=tuple(creation for creation in flow.creations if creation.id != issue))


def _taken_off(flow: Flow, fact: tracker.LabelsTakenOff, seq: int, time: datetime) -> Flow:
    labels = tuple(label for label in flow.issue.labels if label not in flow.take_off)
    return replace(flow, take_off=(), issue=dataclasses.replace(flow.issue, labels=labels))


def _answer_read(flow: Flow, fact: tracker.AnswerRead, seq: int, time: datetime) -> Flow:
    known = authorship.forget_changes(flow.authors, fact.view)
    return replace(flow, issue=fact.view, view_seq=seq, answer_seq=seq, answers=fact.comments, authors=known)


def _fold_gone(flow: Flow, fact: tracker.IssueGone, seq: int, time: datetime) -> Flow:
    if fact.key is None and (stale(flow, fact.as_of) or not flow.active):
        return flow
    return replace(flow, look_again=fact.key is None)


def settle_write(flow: Flow, seq: int) -> Flow:
    """The open write stands in the tracker. What waited for it gets a newer number, or it would be taken for done."""
    flow = replace(flow, written=flow.writing, writing=None, authors=authorship.forget_undo(flow.authors))
    if flow.stage == "giving_back" and flow.written and flow.written.kind == "give_back":
        return replace(flow, stage="idle", written=None, target=None)
    if flow.written and flow.target and flow.target.seq < flow.written.seq:
        flow = replace(flow, target=dataclasses.replace(flow.target, seq=seq))
    return flow if flow.active else replace(flow, written=None)


def _failed(flow: Flow, fact: tracker.EffectFailed, seq: int, time: datetime) -> Flow:
    command = next((command for command in flow.open if command.key == fact.key), None)
    if command is None:
        return flow
    if not fact.infra and not isinstance(command, (commands.ReadIssue, commands.ReadAnswer, commands.ReadAuthors)):
        return _given_up(settle_intent(flow, fact.key, seq), command)
    tries = dict(flow.tries)
    tries[fact.key] = tries.get(fact.key, 0) + 1
    if fact.unforeseen and tries[fact.key] >= FAULT_LIMIT and not isinstance(command, commands.ReadAuthors):
        # what was written may show up yet as ours
        return replace(_given_up(settle_intent(flow, fact.key, seq), command, unforeseen=True), writing=flow.writing)
    if isinstance(command, commands.StopTurn):
        flow = _abort_unseen(flow, command.session)
    return replace(
        flow, open=tuple(other for other in flow.open if other.key != fact.key), tries=tuple(tries.items()),
        infra=flow.infra + 1, infra_began=flow.infra_began or time, failing=WORDS[type(command).__name__],
        error=" ".join(fact.error.split())[:300],
        effect_after=time + infra_delay(flow.infra),
    )  # fmt: skip


def _abort_unseen(flow: Flow, session: str) -> Flow:
    """A call to stop a turn failed. It may take effect later, so that no other prompt goes to its session."""
    run = flow.run
    if run is not None and run.session == session:
        run = replace(run, abort_unseen=True)
    return replace(flow, run=run, sessions=tuple(entry for entry in flow.sessions if entry[1] != session))


def _given_up(flow: Flow, command: commands.Command, *, unforeseen: bool = False) -> Flow:
    """An effect is refused for good: it is not wanted any more, or it would be asked for again at once."""
    run = flow.run
    match command:
        case commands.PostComment():
            return _without_comment(flow, command.name)
        case commands.CreateIssue():
            return _without_creation(flow, command.id)
        case commands.TakeOffLabels():
            return replace(flow, take_off=())
        case commands.ReclaimIssue():
            return replace(flow, reclaim=None)
        case commands.StopOrphan():
            return replace(flow, orphan=None)
        case commands.ClaimIssue() | commands.WriteIssue():
            return replace(flow, writing=None, given_up=unforeseen)
        case commands.ReadIssue() | commands.ReadAnswer():
            return replace(flow, given_up=True)
        case commands.StopTurn() if run is not None:
            return replace(flow, run=replace(run, stop=False))
        case commands.ReadTree(moment="after") | commands.SealTree() if run is not None:
            return replace(flow, run=replace(run, tree_wanted="no"))
        case _:
            return flow


def fold_view(flow: Flow, fact: tracker.IssueSeen, seq: int, time: datetime) -> Flow:
    """The tracker showed the issue."""
    flow = settle_intent(flow, fact.key, seq)
    if stale(flow, fact.as_of):
        return flow
    flow = replace(flow, issue=fact.view, view_seq=seq, look_again=False, lease_lost=False, given_up=False)
    flow = replace(flow, authors=authorship.forget_changes(flow.authors, fact.view))
    if flow.stage == "closed" and fact.view.status != "closed":
        run = flow.run if flow.run is not None and not flow.run.settled else None
        return _stage(replace(flow, phase=None, policy=None, run=run), "idle", time, "", "re-opened")
    return flow


def answered(flow: Flow, fact: issues.PersonAnswered) -> Flow:
    """A person answered: what was approved is this very work, and what may fail is known."""
    own, question = flow.work.own, flow.question
    if fact.answer != "approved" or question is None:
        return flow
    if own is not None and (question.human_phase or question.about != "phase"):
        flow = with_work(flow, own=dataclasses.replace(own, approved=own.head), signed=fact.signature)
    if question.about in ("proof", "base") and flow.work.evidence is not None:
        waived = {*flow.work.waived, *flow.work.evidence.lacking(flow.work.waived)}
        flow = with_work(flow, waived=tuple(sorted(waived)), flaw=None)
    return flow


FOLDS: Folds = {
    issues.IssueHeld: lambda flow, fact, seq, time: replace(
        flow, code=fact.code, why=fact.why, held_by=fact.of, since=time
    ),
    issues.IssueTaken: _fold_taken,
    issues.IssueAdopted: _adopted,
    issues.CycleBegan: _cycle,
    issues.PhaseEntered: _entered,
    issues.RetryScheduled: _retry,
    issues.TakeoverWanted: lambda flow, fact, seq, time: replace(flow, reclaim=fact.holder),
    issues.PersonAsked: _asked_person,
    issues.PersonReminded: _reminded,
    issues.PersonAnswered: _person_answered,
    issues.AnswerRefused: lambda flow, fact, seq, time: replace(
        flow, take_off=fact.labels, judged=flow.judged | {*fact.judged}
    ),
    ChangeDoubted: lambda flow, fact, seq, time: replace(
        flow, authors=dataclasses.replace(flow.authors, doubts=fact.changes, seq=seq)
    ),
    ChangeJudged: _judged,
    issues.CommentWanted: lambda flow, fact, seq, time: replace(
        flow, comments=(*flow.comments, (fact.name, fact.text))
    ),
    issues.CreationWanted: _creation,
    **dict.fromkeys(get_args(_Ending), _outcome_of_flow),
    tracker.EffectFailed: _failed,
    tracker.IssueClaimed: _fold_write,
    tracker.IssueWritten: _fold_write,
    tracker.ClaimRefused: _unclaimed,
    tracker.GuardRefused: _unclaimed,
    # what it was to put back goes with it
    tracker.WriteRefused: lambda flow, fact, seq, time: replace(
        flow, writing=None, authors=authorship.forget_undo(flow.authors)
    ),
    tracker.CommentPosted: lambda flow, fact, seq, time: _without_comment(flow, fact.name),
    tracker.IssueCreated: lambda flow, fact, seq, time: _without_creation(flow, fact.id),
    tracker.LabelsTakenOff: _taken_off,
    tracker.AnswerRead: _answer_read,
    AuthorsRead: lambda flow, fact, seq, time: flow,
    OrphanStopped: lambda flow, fact, seq, time: replace(flow, orphan=None),
    tracker.IssueReclaimed: lambda flow, fact, seq, time: replace(flow, reclaim=None),
    tracker.IssueGone: _fold_gone,
    tracker.LeaseLost: lambda flow, fact, seq, time: replace(
        flow, lease_lost=flow.leased, look_again=flow.leased or flow.look_again
    ),
    tracker.LeaseExpired: lambda flow, fact, seq, time: replace(flow, expired=(fact.holder, fact.expired)),
}
