"""An attempt as it is known: what was planned, sent, asked and seen."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from ashep.core.facts.delivery import Tree
from ashep.core.facts.outcome import Outcome
from ashep.core.facts.requests import Request, Verdict
from ashep.core.facts.resources import RunnerSeen
from ashep.core.facts.runs import Life, Model, Quota, TurnSeen, TurnStopped
from ashep.core.policy.agents import Sandbox
from ashep.core.policy.policies import Phase
from ashep.core.policy.runner_kinds import OPENCODE
from ashep.core.state.immutable import replace

NO_SIGN, LONGEST_NO_SIGN = timedelta(seconds=30), timedelta(minutes=10)
"""From a prompt's delivery to the first sign of a turn (facts/opencode.md 11, 16, 26): at first, and at the longest."""

MOST_STOPS = 4
"""Times that the session of an ended run is stopped once more whose prompt had not begun: after 30 s, 1, 2, 4 min."""

UNBEGUN = ("missing", "stored")
"""States of a prompt that no turn answers yet."""


def sign_patience(doubts: int) -> timedelta:
    """Returns how long a prompt may show no sign of a turn after so many that began none: it doubles each time."""
    return min(NO_SIGN * 2 ** min(doubts, 10), LONGEST_NO_SIGN)


@dataclass(frozen=True, slots=True)
class Pending:
    """A request of the present run that the server still lists."""

    request: Request
    seq: int
    """When it was seen: a list that was read before says nothing of it."""
    verdict: Verdict | None = None
    answers: tuple[tuple[str, ...], ...] = ()
    """To each of its questions."""
    message: str = ""
    """What the agent is told with it."""
    due: datetime | None = None
    """Until when a person may answer."""


@dataclass(frozen=True)
class Sent:
    """A prompt of a run."""

    n: int
    kind: Literal["task", "recover", "extract", "resume", "diagnose", "continue"]
    tries: int = 0
    """How many ids were abandoned before the present one."""
    blob: str | None = None
    before: tuple[str, ...] = ()
    """User messages that stood in its session already."""
    stamp: datetime | None = None
    """When its ids were made: the server sorts messages by ids that begin with a time."""
    sent: bool = False
    instance: str = ""
    begun: bool = False
    """Its turn began, as far as its runner asks before one does."""
    again: bool = False
    """The turn died: the same ids are to be sent once more."""
    slug: str | None = None
    model: Model | None = None
    wrong: str = ""
    """What was wrong with the outcome before, or how the turn before stalled."""
    by: str = ""
    """The agent that a diagnosis is asked of."""
    runner: str = ""
    """The runner of who reads the session for the run's agent; empty: that of the run."""


Turns = tuple[tuple[int, int, float], ...]
"""Of each prompt of a run its number, and the tokens and cost of its turn."""


@dataclass(frozen=True)
class Watch:
    """The watch over a run's turn: whether it shows signs, and what becomes of it where it shows none."""

    sign_due: datetime | None = None
    """When a turn without a sign becomes suspect."""
    probation: Literal["no", "suspect", "stop", "second_look"] = "no"
    """A turn without a sign: suspect until a fresh read, then stopped, then looked at once more."""
    overdue: bool = False
    stall_after: timedelta | None = None
    tool_timeout: timedelta | None = None
    stall_due: datetime | None = None
    """When a turn that showed nothing since it was last looked at for signs of life is doubted."""
    doubted: bool = False
    """It may have stalled: whether it shows signs of life is to be read."""
    fresh_after: int = 0
    """A verdict needs a read that began at or after this sequence number; 0: none is waited for."""
    sign_after: timedelta = NO_SIGN
    """How long a prompt may show no sign of a turn."""
    stopping: bool = False
    """ashep asked to stop the turn of the present prompt, because it seemed not to begin."""
    starting_since: datetime | None = None
    """Since when the process starts that is to answer the present prompt."""


@dataclass(frozen=True)
class Asks:
    """What a run's session asks."""

    requests: tuple[Pending, ...] = ()
    """In the order in which they were seen."""
    shown: str = ""
    """The request that is put to a person."""
    unshown: tuple[str, ...] = ()  # what of it the agent server refuses to show
    waits_since: datetime | None = None
    """Since when it waits for a person in its session: its times stand still meanwhile."""
    used: tuple[int, ...] = ()
    """Prepared answers of its phase that it has used."""
    denied: tuple[str, ...] | None = ()
    """Tools that it asked for and no rule allows; None: something was allowed, answered, or put to a person."""


@dataclass(frozen=True)
class Run:
    """One attempt at one phase by one agent."""

    id: str
    phase: str
    visit: int
    attempt: int
    agent: str
    runner: str
    slug: str | None
    model: Model | None
    access: Literal["read", "write"]
    timeout: timedelta
    trace: int
    planned: datetime
    reuse: str | None = None
    branch: str | None = None
    sandbox: Sandbox | None = None
    began: Phase | None = None
    """Its phase as it was when the run began, where the policy has been changed since."""
    state: str = "planned"
    session: str | None = None
    extract: Literal["no", "wanted", "open"] = "no"
    """Whether the session of an extraction, or a diagnosis, is still to be opened, or is the present `session`."""
    prompt: Sent = Sent(1, "task")
    started: datetime | None = None
    deadline: datetime | None = None
    turn: str = ""
    """The last seen state of the turn."""
    turn_instance: str = ""
    people: tuple[str, ...] = ()
    watch: Watch = Watch()
    effect_seq: int = 0
    """When the last write to the session was answered: older reads are stale."""
    refused: int = 0
    """How often in a row the provider was seen to refuse its turn."""
    restarts: int = 0
    continues: int = 0
    """How often its agent was asked to go on in its session."""
    quota: Quota | None = None
    """What its session showed last of the quota of its login."""
    stop: bool = False
    """Its session is to be aborted and seen to stop."""
    stop_due: datetime | None = None
    """When a session whose prompt had not begun is stopped once more: the prompt may begin after all."""
    stops: int = 0
    """How often that was done."""
    abort_unseen: bool = False
    """A call to stop a turn in its session failed: it may still stop whatever runs there later."""
    before: Tree | None = None
    tree_wanted: Literal["no", "before", "after", "again"] = "no"
    """again: a person had its session, and what they changed is read, too."""
    turns: Turns = ()
    """What its prompts' turns were seen to have used."""
    asks: Asks = Asks()

    @property
    def session_runner(self) -> str:
        """The runner that has its session, or is to open it."""
        if self.session is None or self.extract == "wanted":
            return self.prompt.runner or self.runner
        return runner_of(self.session)

    @property
    def spent(self) -> tuple[int, float]:
        """Tokens and cost of all its turns."""
        return sum(turn[1] for turn in self.turns), round(sum(turn[2] for turn in self.turns), 9)

    @property
    def ended(self) -> bool:
        """Whether it is over."""
        return self.state not in ("planned", "running")

    @property
    def settled(self) -> bool:
        """Whether nothing of it is under way any more: over, stopped, and its tree read."""
        return self.ended and not self.stop and self.tree_wanted in ("no", "again")

    @property
    def forgettable(self) -> bool:
        """Whether another run may take its place."""
        return self.settled and self.tree_wanted == "no"


def with_watch(run: Run, **changes: Any) -> Run:
    """Change the watch over its turn."""
    return replace(run, watch=replace(run.watch, **changes))


def with_asks(run: Run, **changes: Any) -> Run:
    """Change what its session asks."""
    return replace(run, asks=replace(run.asks, **changes))


def runner_of(session: str) -> str:
    """The runner that has a session: its name stands before the id, but for OpenCode's."""
    name, sign, _ = session.partition(":")
    return name if sign else OPENCODE


def provider_of(run: Run, seen: Mapping[str, RunnerSeen]) -> str:
    """The provider that a run uses: its agent's, else the default of its runner; empty where nobody knows."""
    server = seen.get(run.prompt.runner or run.runner)
    model = run.prompt.model or run.model or (server.default if server else None)
    return model.provider if model else ""


@dataclass(frozen=True, slots=True)
class Report:
    """What a run left for later phases."""

    run: str
    phase: str
    agent: str
    state: str
    why: str
    outcome: Outcome | None = None
    error: str | None = None
    avoid: bool = False
    """A diagnosis wants another agent for the next attempt."""
    trace: int = 0
    """The run's trace id."""
    denied: tuple[str, ...] = ()
    """The tools that it asked for, where no rule allowed anything of what it asked."""


def used(turns: Turns, fact: TurnSeen | TurnStopped) -> Turns:
    """Count a read of a prompt's turn: the last figures of each turn, once; what was used stays used."""
    _, tokens, cost = next((turn for turn in turns if turn[0] == fact.n), (fact.n, 0, 0.0))
    others = (turn for turn in turns if turn[0] != fact.n)
    return (*others, (fact.n, max(tokens, fact.tokens), max(cost, fact.cost)))


def growth(turns: Turns, fact: TurnSeen | TurnStopped) -> tuple[int, float]:
    """Tokens and cost by which a read of a turn goes beyond what was known of it."""
    _, tokens, cost = next((turn for turn in turns if turn[0] == fact.n), (fact.n, 0, 0.0))
    return max(fact.tokens - tokens, 0), max(fact.cost - cost, 0.0)


def due_after(watch: Watch, life: Life, now: datetime) -> datetime | None:
    """Say when a turn will have been quiet for too long that shows these signs of life now; None: there is no rule."""
    if watch.stall_after is None:
        return None
    dues = [now - life.quiet + watch.stall_after]
    if life.tool is not None and watch.tool_timeout is not None:
        dues.append(now - life.tool_for + watch.tool_timeout)
    if life.retry_in is not None:
        dues.append(now + life.retry_in + watch.stall_after)
    return max(dues)
