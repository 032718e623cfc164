"""What the tests of the core begin with: a policy, agents, settings, issues, and the facts of a start."""

from datetime import UTC, datetime, timedelta
from typing import Any

from ashep.core.facts import delivery, resources, tracker
from ashep.core.facts.delivery import Tree
from ashep.core.facts.runs import Model
from ashep.core.facts.tracker import Issue
from ashep.core.facts.vocabulary import Fact
from ashep.core.policy.agents import Agent, Agents, RunnerChoice
from ashep.core.policy.policies import Human, Limits, Phase, Policies, Policy, Prefer, Retry
from ashep.core.policy.settings import OpencodeSettings, Runners, Settings, WorkerSettings
from ashep.core.reconcile.step import RULES
from ashep.core.state.runner_state import NOT_SEEN, Seen
from ashep.core.state.world import World

T0 = datetime(2026, 1, 1, 22, 0, tzinfo=UTC)
ME, INSTANCE = "ashep-host-1a2b", "0f" * 16
LARGE, SMALL = Model("acme", "large"), Model("other", "small")

STANDARD = Policy(
    phases=(
        Phase(name="implement", next={"success": "review"}, retry=Retry(initial_delay=timedelta(seconds=10))),
        Phase(
            name="review", prefer=Prefer(different_model_from="implement"), verdicts=("approve", "needs_changes"),
            next={"approve": "arbitrate", "needs_changes": "arbitrate"},
        ),
        Phase(
            name="arbitrate", verdicts=("pass", "needs_work"), next={"pass": "human_review", "needs_work": "implement"},
        ),
        Phase(name="human_review", human=Human(ask="Merge this?", changes_requested="implement")),
    ),
)  # fmt: skip
QUICK = Policy(match=None, phases=(Phase(name="implement"),))


def policies(policy: Policy = STANDARD, **others: Policy) -> Policies:
    """Give a policies file with this one first."""
    return Policies(version=1, default_policy="standard", policies={"standard": policy, "quick": QUICK, **others})


def policy_of(*phases: Phase, **limits: Any) -> Policy:
    """Give a policy of these phases."""
    return Policy(phases=phases, limits=Limits(**limits))


def _edited() -> tuple[Policies, ...]:
    """Give policies as somebody may have made them of the standard one, the standard one among them."""
    implement, review, arbitrate, human = STANDARD.phases
    straight = implement.model_copy(update={"next": {"success": "close"}, "max_visits": 2})
    other = review.model_copy(
        update={"verdicts": ("fine", "approve"), "next": {"fine": "close", "approve": "implement"}}
    )
    renamed = human.model_copy(update={"name": "merge"})
    to_merge = arbitrate.model_copy(update={"next": {"pass": "merge", "needs_work": "implement"}})
    return (
        policies(),
        policies(policy_of(straight)),
        policies(policy_of(implement, other)),
        policies(policy_of(implement, review, to_merge, renamed)),
        Policies(version=1, default_policy="quick", policies={"quick": QUICK}),
    )


EDITED = _edited()
"""What the policies may become while issues are under way."""

BUILDER = Agent(
    id="builder", capabilities=("implement", "code", "debug"), read_write="write", priority=10,
    runner=RunnerChoice(agent_slug="build", provider=LARGE.provider, model=LARGE.model),
)  # fmt: skip
CRITIC = Agent(
    id="critic",
    capabilities=("review", "arbitrate"),
    runner=RunnerChoice(agent_slug="plan", provider=SMALL.provider, model=SMALL.model),
)
JUDGE = Agent(id="judge", capabilities=("review", "arbitrate"), runner=RunnerChoice(agent_slug="plan"))
TEAM = Agents(version=1, agents=(BUILDER, CRITIC, JUDGE))


def settings(*, managed: bool = True, **worker: Any) -> Settings:
    """Give a configuration."""
    opencode = OpencodeSettings() if managed else OpencodeSettings(managed=False, url="http://localhost:4096")
    return Settings(worker=WorkerSettings(**worker), runners=Runners(opencode=opencode))


def issue(id: str = "t-1", status: str = "open", *labels: str, **more: Any) -> Issue:
    """Give an issue as the tracker would."""
    values: dict[str, Any] = {"type": "task", "priority": 2, "created_at": T0 - timedelta(days=1)} | more
    return Issue(id, f"Title of {id}", status, labels=tuple(sorted(labels)), **values)


def adopted(rules: Policies | Agents | Settings) -> Fact:
    """Adopt policies, agents or settings."""
    kind = {Policies: "policies", Agents: "agents", Settings: "settings"}[type(rules)]
    return resources.Adopted(kind, rules.model_dump_json(), "ab" * 32, RULES)  # type: ignore[arg-type]


def up(instance: str = "server-1", **more: Any) -> resources.RunnerSeen:
    """See the agent server up."""
    values: dict[str, Any] = {"agents": ("build", "plan"), "models": (LARGE, SMALL), "default": LARGE}
    return resources.RunnerSeen("up", instance=instance, **(values | more))


def seen(server: resources.RunnerSeen | None = None) -> Seen:
    """What is seen where one runner is."""
    return NOT_SEEN if server is None else NOT_SEEN.insert(server.runner, server)


def start(
    rules: Policies | None = None, team: Agents = TEAM, config: Settings | None = None, tree: Tree | None = None,
    **daemon: Any,
) -> list[Fact]:  # fmt: skip
    """Start a daemon up to the first look at its machine; with a tree in that, one that can make trees of its own."""
    seen: list[Fact] = [] if tree is None else [delivery.TreeSeen(tree)]
    return [
        resources.JournalBegun(INSTANCE, "5ec2e7"),
        resources.DaemonStarted(4711, "0.1.0", trees=tree is not None, **daemon),
        adopted(rules or policies()),
        adopted(team),
        adopted(config or Settings()),
        *seen,
        tracker.TrackerSeen(ME, "t", "1.3.0"),
        up(),
    ]


POLICY_FREE = World(now=T0)
"""A World before anything was adopted."""
