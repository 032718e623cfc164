"""What a comparison with another policy comes to: for each issue, and in sum, with bounds where the unknown begins."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from dataclasses import replace as changed
from datetime import datetime, timedelta
from itertools import zip_longest
from typing import Any, Literal, NamedTuple, TypeVar

from ashep.core.facts import commands, delivery, issues, records
from ashep.core.facts.runs import RunEnded, RunPlanned, RunWithdrawn
from ashep.core.facts.vocabulary import Fact
from ashep.core.policy.policies import Phase, Policies, Policy
from ashep.core.state.notices import RECORDS
from ashep.core.state.run import Run
from ashep.core.state.world import World

Kind = TypeVar("Kind", bound=Fact)

LIFE_ENDS = (issues.IssueClosed, issues.IssueLeft, issues.IssueGivenBack)
"""After these an issue is not ours any more: if it comes back, that is by somebody's will, and another life."""

CYCLE_ENDS = (issues.PersonAnswered, issues.IssueFinished, issues.IssueParked, issues.CycleBegan, *LIFE_ENDS)
"""What ends a cycle: limits count afresh behind it."""


class Count(NamedTuple):
    """Agent runs, as `max_runs` counts them, and questions to people."""

    runs: int = 0
    questions: int = 0

    def plus(self, other: "Count", times: int = 1) -> "Count":
        """Add so many times the other."""
        return Count(self.runs + times * other.runs, self.questions + times * other.questions)


NOTHING = Count()


@dataclass(frozen=True, slots=True)
class Fork:
    """The first decision that differs."""

    seq: int
    """Where the recorded one stands, or what it would have followed."""
    at: datetime
    recorded: Fact | None
    """None: nothing more was decided there."""
    other: Fact | None
    """None: nothing more is decided there."""
    why: str = ""
    """What the two do not say themselves."""


@dataclass(frozen=True, slots=True)
class End:
    """How the other life ends, as far as is known for certain."""

    state: Literal["closed", "parked", "waiting", "landing", "held", "not_created"]
    code: str
    why: str


@dataclass(frozen=True, slots=True)
class NotObserved:
    """Where the other life needs something that was never observed."""

    seq: int
    """Up to here the record tells of it."""
    needs: str
    why: str
    so_far: Count
    """Of the other life, up to there."""
    least: int
    """Runs that are certain to follow."""
    most: Count | None
    """What may follow in the same cycle, at most; None: nothing bounds it."""


@dataclass(frozen=True, slots=True)
class ComparedLimit:
    """A time that may end a run, under both policies; None: there is none."""

    name: Literal["timeout", "stall.after", "stall.tool_timeout"]
    recorded: timedelta | None
    other: timedelta | None


@dataclass
class ComparedIssue:
    """An issue while the journal is read: its recorded life, and the other one."""

    issue: str
    policy: str | None
    """The other policy's name."""
    strict: bool = False
    """No answer of a person's counts from where the other life has parted."""
    last: int = 0
    """The number of its last record."""
    recorded: Count = NOTHING
    counted: Count = NOTHING
    """Of the other life, up to where it is known."""
    cycle_ends: list[tuple[int, Count]] = field(default_factory=list[tuple[int, Count]])
    """Where recorded cycles ended, with what had been counted by then."""
    life_ends: list[tuple[int, Count]] = field(default_factory=list[tuple[int, Count]])
    taken: bool = False
    """It has just been taken: the cycle that begins ends none."""
    limits: tuple[ComparedLimit, ...] = ()
    """Of the run that is under way."""
    due: datetime | None = None
    """Until when the other policy's question is open, where that differs."""
    renamed: bool = False
    """A run's agent has another name."""
    because: str = ""
    """Why a run's outcome does not count."""
    fork: Fork | None = None
    world: World | None = None
    """The other life's World while it waits for a person, or for what comes of its work on the way to the base."""
    seq: int = 0
    """Since when it waits so."""
    met: int | None = None
    """Where the record asks the very question."""
    tree: delivery.Tree | None = None
    """The work as it was first seen since then."""
    spoilt: str = ""
    """Why an answer to it would not count."""
    rests_on: tuple[int, ...] = ()
    """Questions and answers of the record, and what came of work there, that count although the other policy leaves
    out what was before them.
    """
    creations: dict[str, issues.CreationWanted] = field(default_factory=dict[str, issues.CreationWanted])
    """Issues that the other life asks for once it has parted."""
    end: End | NotObserved | None = None

    def count(self, entry: records.Entry) -> None:
        """Count an entry of the recorded life."""
        if isinstance(entry.body, commands.Command):
            return
        more = counted([entry.body])
        self.recorded = self.recorded.plus(more)
        if self.fork is None:
            self.counted = self.counted.plus(more)
        begins = self.taken and isinstance(entry.body, issues.CycleBegan)
        self.taken = isinstance(entry.body, issues.IssueTaken)
        if isinstance(entry.body, CYCLE_ENDS) and not begins:
            self.cycle_ends.append((entry.seq, self.recorded))
        if isinstance(entry.body, LIFE_ENDS):
            self.life_ends.append((entry.seq, self.recorded))

    @property
    def horizon(self) -> Count:
        """What is counted of the recorded life: up to where the other one is known, or bounded."""
        if self.fork is None:
            return self.recorded
        if isinstance(self.end, NotObserved):
            seq, ends = self.end.seq, self.cycle_ends
        else:
            seq, ends = self.fork.seq, self.life_ends
        return next((count for at, count in ends if at >= seq), self.recorded)


def find_first(facts: Iterable[Fact], kind: type[Kind]) -> Kind | None:
    """Find the first fact of a kind."""
    return next((fact for fact in facts if isinstance(fact, kind)), None)


def counted(facts: Iterable[Fact]) -> Count:
    """Count runs and questions."""
    runs = questions = 0
    for fact in facts:
        match fact:
            case RunPlanned():
                runs += 1
            case RunWithdrawn() | RunEnded(counts=False):
                runs -= 1
            case issues.PersonAsked():
                questions += 1
            case _:
                pass
    return Count(runs, questions)


@dataclass(frozen=True, slots=True)
class Compared:
    """What was found of one issue."""

    issue: str
    title: str
    policy: tuple[str | None, str | None]
    """The recorded one and the other."""
    verdict: Literal["same", "differs", "unknown"]
    fork: Fork | None
    unknown: NotObserved | None
    ends: tuple[str, str]
    """How both stand at the end."""
    recorded: Count
    """Up to where the other life is known, or bounded: its end, or that of the cycle in which the unknown begins."""
    beyond: Count
    """Of the recorded life behind that: compared with nothing."""
    least: Count
    most: Count | None
    """None: nothing bounds it."""
    rests_on: tuple[int, ...]
    last: int


def compare(
    lives: Mapping[str, ComparedIssue],
    created: Mapping[str, tuple[int, issues.CreationWanted]],
    world: World,
    policies: Policies | None,
    last: int | None,
) -> list[Compared]:
    """Sum up lives, those with the last records last; `created`: who asked for which issue, and where."""
    lives = {issue: changed(life) for issue, life in lives.items()}
    for child, (seq, wanted) in created.items():  # parents come before their children
        if child in lives and (parent := lives.get(wanted.issue)) is not None:
            _inherit(lives[child], parent, seq, wanted, policies or world.policies)
    chosen = sorted(lives.values(), key=lambda life: life.last)
    return [_compared(life, world) for life in (chosen if last is None else chosen[-last:] if last else [])]


def _inherit(
    life: ComparedIssue, parent: ComparedIssue, seq: int, wanted: issues.CreationWanted, policies: Policies | None
) -> None:
    """Let a created issue follow what becomes of the one whose agent asked for it."""
    fork, now = parent.fork, parent.creations.get(wanted.id)
    if fork is None or seq < fork.seq or (now is not None and now.parked == wanted.parked):
        return
    known = isinstance(parent.end, End)
    word = "would have gone another way" if known else "may have gone another way"
    why = f"its parent {wanted.issue} {word}"
    life.fork, life.counted = Fork(fork.seq, fork.at, wanted, now, why), Count()
    if now is not None and now.parked:
        life.end = End("parked", "depth", why)
    elif now is None and known:
        life.end = End("not_created", "", why)
    else:
        policy = policies.policies.get(life.policy) if policies and life.policy else None
        most = Count(policy.limits.max_runs, 1) if policy else None
        life.end = NotObserved(fork.seq, f"whether {wanted.issue} would have asked for it", why, Count(), 0, most)
    if isinstance(life.end, End):
        life.life_ends = []  # none of it would have been
    life.rests_on = ()


def _compared(life: ComparedIssue, world: World) -> Compared:
    flow = world.flows[life.issue]
    here = life.horizon
    least: Count = life.counted if life.fork else here
    most: Count | None = least
    unknown = life.end if isinstance(life.end, NotObserved) else None
    if unknown is not None:
        least = unknown.so_far.plus(Count(unknown.least))
        most = unknown.so_far.plus(unknown.most) if unknown.most else None
    stands = {"person": "waiting", "finishing": "closed", "work": "under_way"}.get(flow.stage, flow.stage)
    if flow.stage == "finishing" and flow.work.landing is not None and not flow.work.landing.is_over:
        stands = "landing"
    ends = life.end.state if isinstance(life.end, End) else "unknown" if unknown else stands
    verdict = "unknown" if unknown else "differs" if life.fork else "same"
    return Compared(
        life.issue, flow.issue.title, (flow.policy, life.policy), verdict, life.fork, unknown, (stands, ends),
        here, life.recorded.plus(here, -1), least, most, life.rests_on, life.last,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Totals:
    """All issues together. What nothing bounds is left out of the counts, and counted by itself."""

    verdicts: Counter[str]
    unbounded: int
    recorded: Count
    least: Count
    most: Count
    ends: tuple[Counter[str], Counter[str]]
    assumed: int
    """Issues that rest on an answer that was given, or on how work landed, after what is left out."""


def totals(found: Iterable[Compared]) -> Totals:
    """Add up."""
    some = list(found)
    bounded = [one for one in some if one.most is not None]
    recorded = least = most = Count()
    for row in bounded:
        recorded, least = recorded.plus(row.recorded), least.plus(row.least)
        most = most.plus(row.most or Count())
    verdicts, unbounded = Counter(one.verdict for one in some), len(some) - len(bounded)
    ends = Counter(one.ends[0] for one in some), Counter(one.ends[1] for one in some)
    return Totals(verdicts, unbounded, recorded, least, most, ends, sum(bool(one.rests_on) for one in some))


_WORDS = frozenset({"why", "text"})

_OF_NO_ACCOUNT: dict[type, frozenset[str]] = {
    issues.IssueTaken: _WORDS | {"policy"},  # a name; what the policy says shows in what follows
    issues.IssueHeld: _WORDS | {"of"},
    issues.PersonAsked: _WORDS | {"due", "remind"},  # compared with the time of the answer
    RunPlanned: _WORDS
    | {"agent", "others", "lock", "branch", "slot", "onto"}
    | {"timeout", "stall_after", "tool_timeout"},  # compared with the run's length
}

_ROUTES = frozenset(
    {
        "tags", "provider", "model", "not_agents", "prefer", "timeout", "retry", "stall", "takeover", "session",
        "max_visits", "next", "requires", "must_pass", "human", "verify", "checks", "when_flags",
    }
)  # fmt: skip
"""Keys of a phase that decide who runs when, and where it leads: no agent is shown them, and no session is given them.
What they come to is compared decision by decision."""


def extract_decision(fact: Fact) -> tuple[Any, ...]:
    """Give what a decision comes to, whatever its words are."""
    left_out = _OF_NO_ACCOUNT.get(type(fact), _WORDS)
    return (type(fact), *(getattr(fact, one.name) for one in fields(fact) if one.name not in left_out))


def weighty(facts: Iterable[Fact], issue: str) -> list[Fact]:
    """Leave out what leads nowhere, comments and what people are told, and what is about no or another issue."""
    mine = (fact for fact in facts if getattr(fact, "issue", None) == issue)
    return [fact for fact in mine if not isinstance(fact, (issues.CommentWanted, issues.PersonReminded, *RECORDS))]


def parted(was: Sequence[Fact], now: Sequence[Fact]) -> tuple[Fact | None, Fact | None] | None:
    """Give the first decisions that are not the same; None: all are."""
    for one, other in zip_longest(was, now):
        if one is None or other is None or extract_decision(one) != extract_decision(other):
            return one, other
    return None


def dump_agent_view(phase: Phase) -> dict[str, Any]:
    """Give what an agent, or its session, is given of a phase."""
    given = phase.model_dump(exclude={*_ROUTES, "capabilities", "access"})
    return given | {"needs": phase.needs, "writes": phase.writes}


def looked_for(policy: Policy | None, phase: str) -> tuple[Any, ...]:
    """Give what is looked for in the work of a phase; empty name: in what is to land. Evidence is of exactly that."""
    phases = policy.phases if policy is not None else ()
    some = [one for one in phases if phase in ("", one.name)]
    change = any(one.verify is not None for one in some)
    ignores = policy is not None and policy.on_base_failure == "ignore"
    return (change, ignores, *(check for one in some for check in one.checks))


def limits(was: RunPlanned, now: RunPlanned) -> tuple[ComparedLimit, ...]:
    """Give the times that may end a run."""
    return (
        ComparedLimit("timeout", was.timeout, now.timeout),
        ComparedLimit("stall.after", was.stall_after, now.stall_after),
        ComparedLimit("stall.tool_timeout", was.tool_timeout, now.tool_timeout),
    )


_ENDS = {"timed_out": ("timeout",), "stalled": ("stall.after", "stall.tool_timeout")}
"""Which limits may have ended a run that ended so."""


def untimely(run: Run, times: Iterable[ComparedLimit], now: datetime, ended: RunEnded | None) -> ComparedLimit | None:
    """Give the limit under which a run might have gone otherwise than it went up to now; None: there is none.

    A run that took no longer than a limit did not reach it. One that a limit ended needs the very same limit.
    """
    took = now - run.planned
    fired = _ENDS.get(ended.state, ()) if ended else ()
    for time in times:
        if time.other == time.recorded:
            continue
        longer = time.other is None or (time.recorded is not None and time.other > time.recorded)
        if time.name in fired or not (longer or (time.other is not None and took <= time.other)):
            return time
    return None
