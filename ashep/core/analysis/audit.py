"""The account, checked: each issue in one state with its reason, each claim with an owner, each wait with an end.

Everything is computed again from the World, from a look at the tracker and from what the agent server says of sessions;
nothing that the rules concluded before is believed. What is found is said, and nothing is done about it.

A look and a World are never of the same moment. What may be under way is left out (open writes, reads that are stale),
and a caller counts only what two looks in a row show (`lasting`).
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple, get_args

from ashep.core.analysis.closing_audit import Closings
from ashep.core.analysis.issue_status import TIMED, State, account, find_landing_ahead
from ashep.core.facts import commands, records, runs, tracker
from ashep.core.facts.issues import PersonAnswered
from ashep.core.facts.resources import Finding
from ashep.core.facts.sources import SourceWordJudged
from ashep.core.issues.human_overrides import STATUS, phase_labels
from ashep.core.policy.settings import Labels
from ashep.core.reconcile.outstanding import outstanding
from ashep.core.state import indexes, pending_intents, timers
from ashep.core.state.flow import Flow, Posture
from ashep.core.state.run import Run
from ashep.core.state.world import World

OPEN_BOUND = timedelta(minutes=10)
"""How long an effect may be under way: all its calls, a start of the agent server included, have bounds far below."""

DUE_BOUND = timedelta(minutes=5)
"""How long a due time may have passed while a daemon runs: it takes notice within a second."""

_RESTART = "stop ashep and start it again: it looks at every issue anew"
_BUG = "`ashep replay` tells whether the rules did that; report it with the journal"

_RESTARTED = (
    "no_reason", "no_end", "stranded", "not_asked_for", "overdue", "intent_open", "not_seen", "unknown_issue",
    "vanished", "not_as_written", "landing_at_once", "lock_left", "index",
)  # fmt: skip

REMEDIES = {
    **dict.fromkeys(_RESTARTED, _RESTART),
    **dict.fromkeys(("run_not_over", "run_without_end", "no_evidence"), _BUG),
    "not_landed": "its branch has the work: merge it (`git merge ashep/ISSUE`), or reopen it, and ashep lands it",
    "unverified": "verify what stands there with `ashep verify ISSUE`; " + _BUG,
    "claim_without_owner": "give it back with `bd update ISSUE --status open --assignee ''`, and ashep takes it anew",
    "journal_behind": "the state folder is older than the tracker: was it restored from a backup? Look at the issue",
    "stamp_lost": "the tracker is older than the journal: was it restored from a backup? Look at the issue",
    "answer_unknown": "ask whoever is named; `ashep journal verify --head` with a head from elsewhere says more",
    "session_gone": "the agent server lost it: the run ends at its deadline; a new start of ashep may tell sooner",
    "signature": "look at it with `ashep why ISSUE`, and take back what nobody signed (`git revert`)",
    "picture": "stop ashep and delete state/ashep.db; it is drawn again",
}
"""Every code, and what to do about it."""

OF_OTHERS = (
    "not_seen", "unknown_issue", "vanished", "not_as_written", "claim_without_owner", "journal_behind", "stamp_lost",
    "session_gone", "answer_unknown",
)  # fmt: skip
"""The codes that a look at the tracker or at the agent server gives."""

_LABELS = Labels()

EXPLAINED = ("not_asked", "no_policy", "unknown_policy", "excluded", "paused", "parked_label")
"""Holds that say why an issue that another state folder of ours held is not adopted."""


class RecordedAnswer(NamedTuple):
    """What a person answered, as the journal has it."""

    seq: int
    actor: str
    label: str


def lasting(before: Iterable[Finding], now: Iterable[Finding]) -> tuple[Finding, ...]:
    """Keep what was found before, too: of what is under way, two looks in a row do not show the same."""
    known = {(finding.code, finding.issue) for finding in before}
    return tuple(finding for finding in now if (finding.code, finding.issue) in known)


# --- the World alone ----------------------------------------------------------------------------------------------


def of_world(world: World) -> Iterator[Finding]:
    """Check what belongs to no issue alone."""
    holder = world.flows.get(world.lock) if world.lock else None
    if world.lock is not None and (holder is None or holder.stage not in ("work", "finishing")):
        stage = holder.stage if holder else "not known"
        yield Finding("lock_left", world.lock, f"holds the work tree, and is {stage}")
    steps = [
        (issue, key) for _, _, issue in world.indexes.landings for key in pending_intents.steps_of(world.flows[issue])
    ]
    for issue, key in steps[1:]:
        yield Finding("landing_at_once", issue, f"{key} is under way, and so is {steps[0][1]}")


def of_indexes(world: World) -> Iterator[Finding]:
    """Make the indexes of the World again and compare: the cost is that of all issues, at once."""
    for name, anew in vars(indexes.indexed(world.flows)).items():
        if not anew == getattr(world.indexes, name):  # noqa: SIM201 - rpds: empty maps are `!=` each other
            yield Finding("index", None, f"the World's {name} is not what its flows say")


def of_issue(
    world: World, flow: Flow, time: datetime, asked: Mapping[str, datetime] | None = None, *, living: bool
) -> Iterator[Finding]:
    """Check one issue. `living`: a daemon is responsible for it now; `asked`: when its open intents were written."""
    issue = flow.issue.id
    told = account(world, issue)
    if told.state not in get_args(State) or not told.reason.strip():
        yield Finding("no_reason", issue, f"is {told.state}, and nobody knows why")
    elif told.code == "unseen" and living and world.ready_fresh:
        yield Finding("no_reason", issue, "was seen, and never judged")
    due = min((due for _, due in timers.flow_dues(flow)), default=None)
    under_way = flow.run is not None and not flow.run.settled
    if due != world.indexes.dues.get(issue) or under_way != (issue in world.indexes.live):
        yield Finding("index", issue, f"is wrongly on or off the lists of the World (due {due}, run {under_way})")
    if flow.stage == "closed" and (flow.code not in ("shepherd", "somebody") or not flow.why.strip()):
        yield Finding("no_evidence", issue, "is closed, and the journal has no evidence")
    if flow.run is not None and not flow.run.ended and flow.stage != "work":
        yield Finding("run_not_over", issue, f"is {flow.stage}, and {flow.run.id} has no end")
    yield from _waits(world, flow)
    lacking = [command.key for command in outstanding(world, issue)]
    if lacking:
        yield Finding("not_asked_for", issue, f"lacks {', '.join(lacking)}")
    if living:
        yield from _late(flow, time, asked or {})


def _waits(world: World, flow: Flow) -> Iterator[Finding]:
    """Nothing waits for ever: who is responsible for an issue works on it, or knows what it waits for."""
    issue, run = flow.issue.id, flow.run
    if flow.stage in ("idle", "left") and flow.code == "cooldown" and flow.not_before is None and world.ready_fresh:
        yield Finding("no_end", issue, "waits for a time, and has none")
    if not flow.active or flow.open or flow.effect_after is not None or flow.write_after is not None:
        return
    if run is not None and not run.settled:
        yield from _run_waits(world, flow, run)
    elif flow.stage == "person":
        if flow.question is None:
            yield Finding("no_end", issue, "waits for a person, and there is no question")
    elif flow.stage == "work":
        if not flow.wanted:
            yield Finding("stranded", issue, f"is in {flow.phase}, with no run, and none is wanted")
        elif flow.not_before is None and flow.code not in (*TIMED, "paused", "not_asked"):
            what = f"wants a run of {flow.phase}, and waits for nothing ({flow.code or 'no'} hold)"
            yield Finding("no_end", issue, what)
    elif flow.stage in ("finishing", "giving_back"):
        landing = flow.work.landing
        lands_later = landing is not None and (landing.due is not None or find_landing_ahead(world, flow) is not None)
        if flow.stage == "giving_back" or not (lands_later or flow.reviewed):
            yield Finding("stranded", issue, f"is {flow.stage}, and nothing is under way")
    elif not flow.code:
        yield Finding("no_reason", issue, "is parked, and nobody knows why")


def _run_waits(world: World, flow: Flow, run: Run) -> Iterator[Finding]:
    if not world.is_up(run.session_runner) or (run.ended and not run.stop) or run.stop_due is not None:
        return
    if not run.prompt.sent:
        yield Finding("stranded", flow.issue.id, f"{run.id} has no prompt, and none is under way")
    elif not run.ended and run.deadline is None:
        yield Finding("no_end", flow.issue.id, f"{run.id} has no deadline")


def _late(flow: Flow, time: datetime, asked: Mapping[str, datetime]) -> Iterator[Finding]:
    issue = flow.issue.id
    for name, due in timers.flow_dues(flow):
        if time - due > DUE_BOUND:
            yield Finding("overdue", issue, f"its {name} was due at {due:%Y-%m-%d %H:%M:%S}Z")
    for command in flow.open:
        since = asked.get(command.key)
        if since is not None and time - since > OPEN_BOUND:
            yield Finding("intent_open", issue, f"{command.key} has had no answer since {since:%Y-%m-%d %H:%M:%S}Z")


# --- the World and the tracker ------------------------------------------------------------------------------------


def of_look(world: World, issues: Collection[tracker.Issue], as_of: int, *, taken_in: bool) -> Iterator[Finding]:
    """Compare the World with a complete look that began at `as_of`; `taken_in`: the World has had this look's facts."""
    for view in issues:
        flow = world.flows.get(view.id)
        if flow is None:
            ours = view.stamp is not None and view.stamp.instance == world.instance
            if _holds(world, view) or (ours and taken_in):  # one just created is not known before the next look
                yield Finding(
                    "claim_without_owner", view.id, f"{_describe_view(view)}, and the journal knows nothing of it"
                )
            elif taken_in:
                yield Finding("unknown_issue", view.id, "is listed by the tracker, and is in no account")
        elif not pending_intents.stale(flow, as_of):
            yield from _listed(world, flow, view, taken_in=taken_in)
    listed = {view.id for view in issues}
    for issue, flow in world.flows.items():
        is_gone = flow.active and issue not in listed and not flow.look_again
        if taken_in and is_gone and not pending_intents.stale(flow, as_of):
            yield Finding("vanished", issue, f"is {flow.stage}, and the tracker does not list it")


def _holds(world: World, view: tracker.Issue) -> bool:
    names = {world.actor, world.name} - {""}
    return view.assignee in names and view.status in ("in_progress", "blocked")


def _listed(world: World, flow: Flow, view: tracker.Issue, *, taken_in: bool) -> Iterator[Finding]:
    stamp = view.stamp
    if stamp is not None and stamp.instance == world.instance and stamp.seq > world.seq:
        what = f"carries our write number {stamp.seq}, and the journal does not go so far"
        yield Finding("journal_behind", view.id, what)
        return
    if taken_in and view != flow.issue and not flow.look_again:
        yield Finding("not_seen", view.id, f"{_describe_view(view)}, and the journal has it otherwise")
        return
    foreign = stamp is not None and stamp.instance != world.instance
    if flow.stage == "idle" and _holds(world, view) and foreign and flow.code not in EXPLAINED:
        yield Finding("claim_without_owner", view.id, f"{_describe_view(view)}, and nobody works on it")
    busy = flow.look_again or any(isinstance(command, commands.WRITES) for command in flow.open)
    if flow.active and flow.written is not None and not flow.unwritten and not busy and view == flow.issue:
        yield from _as_written(world, flow, flow.written, view)


def _as_written(world: World, flow: Flow, posture: Posture, view: tracker.Issue) -> Iterator[Finding]:
    """What the tracker shows is what our last confirmed write left: a person's change of it would have been obeyed."""
    labels, stamp = world.settings.labels, view.stamp
    wrong: list[str] = []
    if view.status != STATUS[posture.kind]:
        wrong.append(f"its status is {view.status}")
    if posture.kind != "give_back" and view.assignee != world.actor:
        wrong.append(f"it is assigned to {view.assignee or 'nobody'}")
    if posture.kind in ("work", "ask") and posture.phase and phase_labels(world, view) != (posture.phase,):
        wrong.append(f"its phases are {', '.join(phase_labels(world, view)) or 'none'}")
    if posture.kind == "park" and labels.parked not in view.labels:
        wrong.append(f"it lacks the label {labels.parked}")
    if labels.excluded in view.labels and flow.stage != "giving_back":
        wrong.append(f"it has the label {labels.excluded}")
    if wrong:
        what = f"our write {posture.seq} ({posture.kind}) is not what stands there: {'; '.join(wrong)}"
        yield Finding("not_as_written", view.id, what)
    elif stamp is None or (stamp.instance == world.instance and stamp.seq < posture.seq):
        found = f"write {stamp.seq}" if stamp else "nothing of ours"
        yield Finding("stamp_lost", view.id, f"carries {found}, but write {posture.seq} was confirmed")


def _describe_view(view: tracker.Issue) -> str:
    return f"is {view.status} in the tracker, assigned to {view.assignee or 'nobody'}"


def of_answers(issue: str, answers: Iterable[RecordedAnswer], changes: Collection[tracker.Change]) -> Iterator[Finding]:
    """Compare who answered, as the journal has it, with the tracker's history of the issue."""
    known = {(change.what, change.actor) for change in changes}
    for one in answers:
        if (("added", one.label), one.actor) not in known:
            answer = f"was answered by {one.actor} with {one.label} (record {one.seq})"
            yield Finding("answer_unknown", issue, f"{answer}, and the tracker knows nothing of it")


# --- the World and the agent server -------------------------------------------------------------------------------


def in_sessions(world: World) -> Iterator[tuple[str, Run, str]]:
    """Give every run that a server should be at work on: issue, run and session."""
    for issue in sorted(world.indexes.live):
        run = world.flows[issue].run
        if run is not None and not run.ended and run.prompt.sent and run.session is not None:
            yield issue, run, run.session


def of_sessions(world: World, gone: Collection[str]) -> Iterator[Finding]:
    """Say which runs are in a session that the server does not have."""
    for issue, run, session in in_sessions(world):
        if session in gone:
            yield Finding("session_gone", issue, f"{run.id} has neither an end nor a session ({session})")


# --- the whole journal --------------------------------------------------------------------------------------------


class Ledger:
    """What a pass over the journal adds: ends of runs long gone, evidence of closings, when intents were written."""

    def __init__(self, world: World) -> None:
        """Begin where the journal does."""
        self.asked: dict[str, datetime] = {}
        self.answers: dict[str, list[RecordedAnswer]] = {}
        """Of each issue what people answered in the tracker."""
        self._source_verdict = ("", 0)
        """Whose word at a source counted last, and the number of that record: its answer is the next one."""
        self._runs = {flow.run.id: issue for issue, flow in world.flows.items() if flow.run and not flow.run.ended}
        self._closings = Closings(world)

    def note(self, entry: records.Entry, labels: Labels = _LABELS) -> None:
        """Take an entry in; `labels`: by their names of that time."""
        body = entry.body
        match body:
            case SourceWordJudged():
                self._source_verdict = (body.issue, entry.seq)
            case PersonAnswered() if self._source_verdict == (body.issue, entry.seq - 1):
                self._closings.note(body, entry.seq)
            case PersonAnswered():
                label = labels.approved if body.answer == "approved" else labels.changes_requested
                self.answers.setdefault(body.issue, []).append(RecordedAnswer(entry.seq, body.actor, label))
                self._closings.note(body, entry.seq)
            case runs.RunPlanned():
                self._runs[body.run] = body.issue
            case runs.RunEnded() | runs.RunWithdrawn():
                self._runs.pop(body.run, None)
            case _ if isinstance(body, commands.Command):
                self.asked[body.key] = entry.at
            case _:
                self._closings.note(body, entry.seq)

    def findings(self, world: World) -> Iterator[Finding]:
        """Say what was left over at the end, where `world` is."""
        yield from self._closings.found
        for run, issue in sorted(self._runs.items()):
            flow = world.flows.get(issue)
            if flow is None or flow.run is None or flow.run.id != run:
                yield Finding("run_without_end", issue, f"{run} was planned and has no end")
