"""Where one issue is: the part of the World that belongs to it. Values only: `evolve` makes them, the rules read.

What changes at every turn has no slots, so that `ashep.core.state.immutable.replace` can copy it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from ashep.core.facts.issues import About, CreationWanted, Passed
from ashep.core.facts.records import Intent
from ashep.core.facts.runs import Model
from ashep.core.facts.tracker import Comment, Issue
from ashep.core.policy.agents import Sandbox
from ashep.core.state.authorship import NOBODY, Authors
from ashep.core.state.delivery import NO_WORK, Work
from ashep.core.state.holds import CAPS, NO_BUDGET, NO_PROVIDER, PAUSED, WAITS_FOR_PEOPLE, WITHHELD
from ashep.core.state.immutable import replace
from ashep.core.state.run import Report, Run
from ashep.core.state.spending import Mark

Stage = Literal["idle", "work", "person", "parked", "finishing", "giving_back", "left", "closed"]
"""idle: known, not ours · work: in an agent phase · person: a question is open · parked: given up, a person may take
the label off · finishing: to be closed · giving_back: to be put back to open · left: a person's, nothing is written."""


@dataclass(frozen=True, slots=True)
class Posture:
    """How the issue should stand in the tracker, and by which decision."""

    seq: int
    kind: Literal["work", "ask", "park", "give_back", "close"]
    phase: str | None
    input: bool = False
    """A question that wants a person's text, not a yes or no."""
    paused: bool = False
    """A person has the session, and the label that says so is ours."""


@dataclass(frozen=True)
class Takeover:
    """A person has the session: what is known of it, and how it ends."""

    action: Literal["pause", "review", "resume"]
    label: Literal["none", "ours", "theirs"]
    cooldown: timedelta | None = None
    session: str | None = None
    message: str | None = None
    people: tuple[str, ...] = ()  # the messages that they wrote
    busy: bool = False
    due: datetime | None = None
    """When they will have been quiet for long enough."""
    fresh_after: int = 0
    """Whether they are done is said by a read that began at or after this sequence number; 0: none is waited for."""
    ending: bool = False  # they said that they are done
    outcome: bool = False  # what its run had reported counts then


@dataclass(frozen=True, slots=True)
class Question:
    """An open question remembers who asked: the answer leads back there, or along a human phase's edges."""

    phase: str
    text: str
    human_phase: bool
    asked: datetime
    due: datetime
    remind: datetime | None = None
    """When people are to be reminded of it."""
    reminded: datetime | None = None
    """When they were last."""
    about: About = "phase"

    @property
    def leads_back(self) -> bool:
        """Whether every answer leads back into the phase that asks: its words are all that counts."""
        return self.about == "phase" and not self.human_phase


@dataclass(frozen=True)
class Counters:
    """How far the issue has got in its present cycle, and for ever."""

    cycle: int = 0
    cycle_began: datetime | None = None
    thought: timedelta = timedelta()
    """How long people thought, or the machine slept, in this cycle: no working time."""
    cycle_runs: int = 0
    cycle_visits: tuple[tuple[str, int], ...] = ()
    passed: Passed = ()
    created: int = 0
    """Issues created in this cycle."""
    runs: int = 0
    visits: tuple[tuple[str, int], ...] = ()
    floor: int = 0
    """No phase was visited more often before this journal knew the issue: run ids go on above it."""
    depth: int = 0
    spent: tuple[int, float] = (0, 0.0)
    """Tokens and cost of this cycle."""
    marks: tuple[Mark, ...] = ()
    """Limits of this cycle, and of the last run, that were passed."""


@dataclass(frozen=True)
class Flow:
    """Where one issue is."""

    issue: Issue
    stage: Stage = "idle"
    since: datetime | None = None
    code: str = ""
    """The stable code of the last hold, parking, leaving or giving back."""
    why: str = ""
    held_by: str = ""
    """What the last hold was of (`Hold.of`)."""
    policy: str | None = None
    text: str | None = None
    """The blob of the issue's words, as the last write's answer gave them."""

    counters: Counters = Counters()

    phase: str | None = None
    visit: int = 0
    attempt: int = 0
    failures: int = 0
    """Attempts of this visit that an agent's failure used up."""
    wanted: bool = False
    """The phase wants a run."""
    run: Run | None = None
    takeover: Takeover | None = None
    """A person has the session."""
    resume: Takeover | None = None
    """A person had the session, and the run that goes on has not been told yet."""
    question: Question | None = None
    reports: tuple[Report, ...] = ()
    sessions: tuple[tuple[str, str], ...] = ()
    """The last session of each phase."""
    sandboxes: tuple[tuple[str, Sandbox], ...] = ()
    """Those of these sessions whose agents' entries say where they run."""
    messages: tuple[str, ...] = ()
    """The ids of the last prompts: in a session that is used again earlier ones are ours, and no person's."""
    models: tuple[tuple[str, Model], ...] = ()
    """The model that last ran each phase."""
    work: Work = NO_WORK
    shown: frozenset[str] = frozenset()
    """Ids of comments that a prompt has shown."""
    answers: tuple[Comment, ...] = ()
    """What people said with their last answer."""

    target: Posture | None = None
    writing: Posture | None = None
    """What the open write will have written."""
    written: Posture | None = None
    """What stands in the tracker by our last confirmed write; None: nothing of ours."""
    open: tuple[Intent, ...] = ()
    """Intents without an answer."""
    tries: tuple[tuple[str, int], ...] = ()
    authors: Authors = NOBODY
    write_seq: int = 0
    """When the last write was answered: reads that began before are stale."""
    view_seq: int = 0
    answer_seq: int = 0
    """The view whose answer labels were looked into."""
    judged: frozenset[str] = frozenset()
    """Label events of answers that were refused."""
    look_again: bool = False
    """A guard tripped, or the issue vanished: nothing is written before a fresh read."""
    given_up: bool = False
    """An effect on it in the tracker was given up after unforeseen failures: nothing is asked for there until somebody
    changes the issue, or ashep is started again."""
    lease_lost: bool = False
    """The tracker refused a heartbeat: nothing is written, and nothing begins, before a fresh read."""
    expired: tuple[str, datetime] | None = None
    """A lease of another daemon that ran out: holder and time."""
    reclaim: str | None = None
    """The holder whose claim is to be taken back."""
    orphan: str | None = None
    """The key of a session of another journal's run, to be stopped before a run starts."""
    comments: tuple[tuple[str, str], ...] = ()
    """Comments to be posted: name and text."""
    creations: tuple[CreationWanted, ...] = ()
    take_off: tuple[str, ...] = ()
    infra: int = 0
    infra_began: datetime | None = None
    doubts: int = 0
    """Prompts in a row that began no turn, or whose turn ashep stopped because it seemed not to begin."""
    doubts_began: datetime | None = None
    failing: str = ""
    """What the last effect of these was to do (`ashep.core.facts.commands.WORDS`)."""
    error: str = ""
    """Why it failed."""
    effect_after: datetime | None = None
    not_before: datetime | None = None
    """A retry's or a cool-down's due time."""
    write_after: datetime | None = None
    """Nothing is written to the tracker before: others wrote as much as may be in a minute."""
    requests: tuple[str, ...] = ()
    """Ids of the last requests that are over: a server may go on listing those of a turn that was stopped."""

    @property
    def active(self) -> bool:
        """Whether we are responsible for it."""
        return self.stage in ("work", "person", "parked", "finishing", "giving_back")

    @property
    def busy(self) -> bool:
        """Whether something of it is under way, or could start by itself."""
        if self.open or (self.run is not None and not self.run.settled):
            return True
        if self.given_up:
            return False
        if self.look_again or self.authors.busy:
            return True
        landing = self.work.landing
        lands = landing is not None and not landing.is_over  # while it waits there, for its turn or for people
        if self.active and (self.unsaid or (self.unwritten and not lands)):
            return True
        if self.stage == "work":
            return self.not_before is None and self.code not in (*WAITS_FOR_PEOPLE, *PAUSED, *NO_BUDGET, *NO_PROVIDER)
        if self.stage in ("idle", "left"):
            return self.code in ("slot", "work_tree", "recycling", "machine_busy", "base_unchecked", *CAPS)
        return self.stage == "giving_back" or (self.stage == "finishing" and not lands)

    @property
    def unsaid(self) -> bool:
        """Whether something is still to be told or made in the tracker, beside how the issue stands there."""
        return bool(self.comments or self.creations or self.take_off)

    @property
    def reviewed(self) -> bool:
        """Whether it is finished, and people look at its pull request."""
        landing = self.work.landing
        return self.stage == "finishing" and landing is not None and landing.asked and not landing.landed

    @property
    def on_pause(self) -> bool:
        """Whether its phase is wanted, and withheld (by a person, a pause or want of something): no working time."""
        return self.stage == "work" and self.wanted and self.code in ("paused", *WITHHELD)

    @property
    def waits_for_input(self) -> bool:
        """Whether its run waits for a person in its session."""
        return self.stage == "work" and self.run is not None and not self.run.ended and bool(self.run.asks.waits_since)

    @property
    def unwritten(self) -> bool:
        """Whether it does not stand in the tracker as it should."""
        return self.target is not None and (self.written is None or self.written.seq != self.target.seq)

    @property
    def leased(self) -> bool:
        """Whether the tracker keeps a lease of ours: it is in progress by our own last write (facts/beads.md 6).

        Where somebody set another status or cleared the assignee there is none to be lost, and giving back needs none.
        """
        working = self.written is not None and self.written.kind == "work" and self.stage != "giving_back"
        return self.active and working and self.issue.status == "in_progress"

    def times(self, phase: str) -> int:
        """How often the phase was entered, for ever."""
        return max(dict(self.counters.visits).get(phase, 0), self.counters.floor)

    def cycle_times(self, phase: str) -> int:
        """How often the phase was entered in this cycle."""
        return dict(self.counters.cycle_visits).get(phase, 0)


def idled(flow: Flow, time: timedelta) -> Flow:
    """So much more of its cycle was no working time."""
    return replace(flow, counters=replace(flow.counters, thought=flow.counters.thought + time))


def with_work(flow: Flow, **changes: Any) -> Flow:
    """Change the flow's work."""
    return replace(flow, work=replace(flow.work, **changes))


def ended_with(flow: Flow, phase: str, word: str | None) -> Flow:
    """What a phase ended with takes the place of what it ended with before; None: it is not passed (any more)."""
    rest = tuple(one for one in flow.counters.passed if one[0] != phase)
    passed = rest if word is None else (*rest, (phase, word))
    return replace(flow, counters=replace(flow.counters, passed=passed))


def wall_time(flow: Flow, now: datetime) -> timedelta:
    """How long the cycle has gone on, without people's thinking, pauses, and waits for budget or a provider."""
    began = flow.counters.cycle_began
    return now - began - flow.counters.thought - pause_time(flow, now) if began else timedelta()


def pause_time(flow: Flow, now: datetime) -> timedelta:
    """How long what is nobody's fault has kept the present cycle's wanted phase waiting so far."""
    if not flow.on_pause or flow.since is None or flow.counters.cycle_began is None:
        return timedelta()
    return now - max(flow.since, flow.counters.cycle_began)


def orphan_of(flow: Flow, instance: str) -> str | None:
    """The key of the session of the run that another journal's stamp on the issue names."""
    stamp = flow.issue.stamp
    if stamp is None or stamp.instance == instance or not (stamp.run or "").startswith(f"{flow.issue.id}/"):
        return None
    return f"{stamp.instance}:{stamp.run}"


Folds = Mapping[type, Callable[[Flow, Any, int, datetime], Flow]]
"""What a fact makes of the flow that it is about: of the flow, the fact, its number and its time."""
