"""The World: everything that the core may know, folded from the journal by `evolve`, which knows no policy rules.

`evolve` takes facts and the records of commands (an intent is something that is known, too). An old journal folds to
the same World whatever the policies say by now; its cost does not grow with the number of flows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from rpds import HashTrieMap, HashTrieSet

from ashep.core.facts.delivery import BaseChecked, RepositorySeen, Tree
from ashep.core.facts.resources import DaemonStarted, Finding, RunnerSeen
from ashep.core.facts.tracker import TrackerSeen
from ashep.core.facts.vocabulary import Fact
from ashep.core.policy.agents import Agents
from ashep.core.policy.policies import Phase, Policies, Policy
from ashep.core.policy.runner_kinds import OPENCODE, rules_of
from ashep.core.policy.settings import Settings
from ashep.core.state import config_edits as edits
from ashep.core.state import notices, pauses, providers
from ashep.core.state.flow import Flow
from ashep.core.state.holds import Backlog
from ashep.core.state.immutable import replace
from ashep.core.state.indexes import NO_INDEXES, NO_ISSUES, Indexes, following
from ashep.core.state.run import runner_of
from ashep.core.state.runner_state import NO_SERVERS, NOT_SEEN, Server
from ashep.core.state.sources.source_issue import SourceIssue
from ashep.core.state.spending import NOTHING_SPENT, Spending

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

DEFAULTS = Settings()

UNSEEN = "not seen since the start"
"""The tracker's error until the first look of a daemon: its actor and prefix are known from the time before."""

NO_FILES: HashTrieMap[str, tuple[str, str]] = HashTrieMap()

NO_BASES: HashTrieMap[str, BaseChecked] = HashTrieMap()

NO_FLOWS: HashTrieMap[str, Flow] = HashTrieMap()


NO_SOURCES: HashTrieMap[str, SourceIssue] = HashTrieMap()


NO_TROUBLE: HashTrieMap[str, str] = HashTrieMap()

NO_BACKLOG = Backlog()


@dataclass(frozen=True)
class World:
    """What is known after the entry `seq`."""

    seq: int = 0
    now: datetime = EPOCH
    instance: str = ""
    secret: str = ""
    name: str = ""
    """The name under which this state folder claims, where the settings give none."""
    daemon: DaemonStarted | None = None
    taken: int = 0
    """Issues taken since the daemon started."""
    policies: Policies | None = None
    agents: Agents | None = None
    settings: Settings = DEFAULTS
    files: edits.Files = edits.NO_FILES
    """What is kept in mind of the user's files next to that."""
    rules: int = 0
    """The number of the core's rules under which decisions are made since the last start; 0: none is on record."""
    tracker: TrackerSeen | None = None
    tracker_error: str = ""
    seen: HashTrieMap[str, RunnerSeen] = NOT_SEEN
    """What each runner showed last since the daemon started, by name."""
    ready: HashTrieSet[str] = NO_ISSUES
    """The issues that the tracker lists as ready."""
    ready_fresh: bool = False
    """Whether the ready view was read after the last change hint."""
    hint_seq: int = 0
    """The last change hint: a ready view whose read began before it is not fresh."""
    tree: Tree | None = None
    repository: RepositorySeen | None = None
    """What was seen last of the repository; None: nothing since the start."""
    left_over: HashTrieMap[str, tuple[str, str]] = NO_FILES
    """Paths that our runs left dirty: hash of the content, and the issue."""
    lock: str | None = None
    """The issue that holds the work tree."""
    disk_low: bool = False
    """Whether there is little room where the state folder lies: nothing new is taken."""
    machine_busy: str = ""
    """Why the machine counts as behind with its work; empty: it does not."""
    flows: HashTrieMap[str, Flow] = NO_FLOWS
    indexes: Indexes = NO_INDEXES
    """What follows from `flows` alone."""
    findings: tuple[Finding, ...] = ()
    """What the last audit found."""
    pauses: pauses.Pauses = ()
    """What keeps runs from starting by somebody's will."""
    bases: HashTrieMap[str, BaseChecked] = NO_BASES
    """What the checks of policies found on the base, by policy."""
    outages: providers.Outages = ()
    """Providers that take nothing."""
    quotas: providers.Quotas = ()
    """What logins have used of their quotas."""
    spending: Spending = NOTHING_SPENT
    """What was used, for budgets."""
    notices: notices.Notices = notices.NOTHING_TOLD
    """What people are to be told."""
    servers: HashTrieMap[str, Server] = NO_SERVERS
    """What is kept in mind of each runner."""
    sources: HashTrieMap[str, SourceIssue] = NO_SOURCES
    """What is known of issues of sources, by their ids in the tracker."""
    backlog: Backlog = NO_BACKLOG
    trouble: HashTrieMap[str, str] = NO_TROUBLE
    """Why sources do not answer, by name."""

    def policy(self, flow: Flow) -> Policy | None:
        """The policy of a flow, as it is in force now."""
        return self.policy_of(flow.policy) if flow.policy else None

    def policy_of(self, name: str) -> Policy | None:
        """The policy of this name, as it is in force now."""
        return self.policies.policies.get(name) if self.policies else None

    @property
    def runners(self) -> tuple[str, ...]:
        """The runners that agents are of."""
        agents = self.agents.agents if self.agents else ()
        return tuple(sorted({agent.runner.type for agent in agents if not agent.is_human}))

    def is_up(self, runner: str) -> bool:
        """Whether a runner answered when it was looked at last."""
        seen = self.seen.get(runner)
        return seen is not None and seen.state == "up"

    def dies(self, runner: str) -> bool:
        """Whether another instance than the one that was given a prompt proves that its turn is dead."""
        return self.settings.runners.opencode.ours if runner == OPENCODE else self.apart(runner)

    def apart(self, runner: str) -> bool:
        """Whether who writes in a session of a runner does so by a process of their own: to stop our turn stops ours
        alone, and else both would work in one session.
        """
        return rules_of(self.settings.runners.kind(runner)).apart

    def in_use(self, runner: str) -> bool:
        """Whether a run is under way on a runner, or a person has a session there."""
        runs = (self.flows[issue].run for issue in self.indexes.live)
        takeovers = (self.flows[issue].takeover for issue in self.indexes.takeovers)
        sessions = (takeover.session for takeover in takeovers if takeover is not None)
        is_taken = any(session is not None and runner_of(session) == runner for session in sessions)
        return is_taken or any(run is not None and run.session_runner == runner for run in runs)

    @property
    def actor(self) -> str:
        """The name under which we write to the tracker."""
        return self.tracker.actor if self.tracker else ""


def put(world: World, issue: str, flow: Flow) -> World:
    """Put a flow into the World, and the indexes right."""
    indexes = following(world.indexes, world.flows.get(issue), flow)
    return replace(world, flows=world.flows.insert(issue, flow), indexes=indexes)


def phase_of(world: World, flow: Flow) -> Phase | None:
    """Give the phase of the flow's run, as it was when the run began."""
    run, policy = flow.run, world.policy(flow)
    if run is None:
        return None
    return run.began or (policy.phase(run.phase) if policy else None)


IssueRules = Mapping[type[Fact], Callable[[World, Flow, Flow, Any], list[Fact]]]
"""What follows from a fact about an issue: of the World, the flow before the fact and after it, and the fact."""

WorldRules = Mapping[type[Fact], Callable[[World, World, Any], list[Fact]]]
"""What follows from any other fact: of the World before it and after it, and the fact."""

WorldFolds = Mapping[type, Callable[[World, Any], World]]
"""What a fact makes of the World, whose number and time are the fact's."""

Value = TypeVar("Value")


def merged(*tables: Mapping[type, Value]) -> dict[type, Value]:
    """Make one table of the domains'; ValueError where two of them name the same fact."""
    whole = {kind: value for table in tables for kind, value in table.items()}
    if len(whole) != sum(map(len, tables)):
        raise ValueError("a fact is in two tables")
    return whole
