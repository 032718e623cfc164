"""Lives: seeds made into whole stories of a policy, a team, a machine and its troubles."""

import hashlib
import json
import random
from dataclasses import fields, replace
from datetime import timedelta
from typing import Literal

from ashep.core.facts.delivery import Tree
from ashep.core.facts.records import to_json
from ashep.core.facts.tracker import Stamp
from ashep.core.policy.agents import Agent, Agents
from ashep.core.policy.budgets import Budgets, ProviderBudget
from ashep.core.policy.landing import ForgeSettings, LandingSettings
from ashep.core.policy.policies import Human, PermissionRule, Phase, Policy, Retry, ReuseFrom, Stall, Takeover, Verify
from ashep.core.policy.settings import Notify, NotifyTarget, Settings
from ashep.core.policy.sources import GitHubSource, Sources
from tests.core import given
from tests.core.chances import WILD, Chances
from tests.core.laws import Laws
from tests.core.source_of import REPOSITORY
from tests.core.world_of import MadeUp

ANN = Agent(id="ann", capabilities=("sign",), is_human=True)
READER = Agent(id="reader", capabilities=("extract",))
ROUND = given.policy_of(
    Phase(name="review", access="read"),
    Phase(
        name="implement", max_visits=2, next={"failed": "sign"},
        retry=Retry(max_attempts=2, initial_delay=timedelta(0)),
    ),
    Phase(name="sign", next={"success": "close"}), Phase(name="arbitrate", session=ReuseFrom(reuse_from="implement")),
    max_runs=5, max_created_issues=1,
)  # fmt: skip
"""Reads first, asks a chosen person, and has small bounds."""

FIRST = given.STANDARD.phases[0].model_copy(update={"max_visits": 1})
LAST = given.STANDARD.phases[-1]
LAST = LAST.model_copy(update={"human": Human(changes_requested="implement", reminder=timedelta(days=2))})
SHORT = given.STANDARD.model_copy(update={"phases": (FIRST, *given.STANDARD.phases[1:-1], LAST)})
"""The standard policy, which may not be gone through twice, and reminds people."""

OWN = (5, 2)
"""Issues have work trees of their own in lives whose seed leaves this rest."""

STORIES = (20, 12)
"""Their issues are stories in lives whose seed leaves this rest, which are some of these."""

PULLS = (15, 2)
"""Their work lands by pull request in lives whose seed leaves this rest, which are some of these."""

CAPS = (11, 6)
"""Of agents, a provider, phases and the runner few runs are at one time in lives whose seed leaves this rest."""

SOURCES = (12, 7)
"""Some issues come from a repository at a forge in lives whose seed leaves this rest."""

EDITS = (6, 3)
"""The policies are edited in lives whose seed leaves this rest."""


LANDING = LandingSettings(mode="pull_request", forge=ForgeSettings(type="github", repository="acme/tools"))
NOTIFY = Notify(targets=(NotifyTarget(command=("pager",)), NotifyTarget(apprise_env="URLS")), urgent=("parked",))


TROUBLES = [
    field.name
    for field in fields(WILD)
    if field.name not in ("pause", "leak", "asks", "limit", "edit", "landing", "source", "resists", "unforeseen")
]


def budgets(chance: random.Random) -> Budgets:
    """Limits, some of which are met in a life."""

    def maybe(*limits: int) -> ProviderBudget:
        limit = chance.choice([None, None, *limits])
        if limit is None:
            return ProviderBudget()
        return ProviderBudget(tokens=limit) if chance.random() < 0.5 else ProviderBudget(cost=limit / 1000)

    return Budgets(
        warn_at=chance.choice([0.5, 0.8, 1.0]), run=maybe(250, 800), issue=maybe(600, 1500), day=maybe(1000, 4000),
        total=maybe(8000), providers={"other": maybe(400, 1000)}, runs_per_hour=chance.choice([None, 2, 5, 20]),
        writes_per_minute=chance.choice([None, 1, 3, 10]),
    )  # fmt: skip


def taken_over(seed: int, policy: Policy) -> Policy:
    """The policy, which says of takeovers now this and now that."""
    action: Literal["pause", "review", "resume"] = ("pause", "review", "resume", "resume")[seed % 4]
    cooldown = timedelta(minutes=2) if seed % 8 < 4 else None
    return policy.model_copy(update={"takeover": Takeover(action=action, cooldown=cooldown)})


def permissions(chance: random.Random) -> tuple[PermissionRule, ...]:
    """Rules about the tools that are asked for."""
    tools = chance.sample(["bash", "webfetch", "edit", "question", "*"], chance.randint(0, 3))
    return tuple(PermissionRule(tool=tool, action=chance.choice(["allow", "deny", "ask", "ask"])) for tool in tools)


def looked_into(seed: int, policy: Policy) -> Policy:
    """The policy, in which stalls are looked into in every third life."""
    if seed % 3 != 2:
        return policy
    stall = Stall(action="diagnose")
    return policy.model_copy(update={"phases": tuple(p.model_copy(update={"stall": stall}) for p in policy.phases)})


def proven(seed: int, policy: Policy) -> Policy:
    """The policy, in which writers' work is verified in half of the lives with own work trees; else one that lands."""
    if seed % OWN[0] != OWN[1]:
        return policy
    if seed % (2 * OWN[0]) != OWN[1]:
        return given.policy_of(Phase(name="implement", retry=Retry(initial_delay=timedelta(seconds=5))))
    verify = {"verify": Verify(max_attempts=2), "when_flags": {"size": policy.phases[-1].name}}
    phases = (p.model_copy(update=verify) if p.writes and not p.verdicts else p for p in policy.phases)
    return policy.model_copy(update={"phases": tuple(phases)})


def storied(seed: int, policy: Policy) -> Policy:
    """The policy, in which ashep writes into stories, in half of the lives whose work is verified."""
    if seed % STORIES[0] != STORIES[1]:
        return policy
    marks = {"implement": {"success": "review"}, "arbitrate": {"pass": "done", "needs_work": "in-progress"}}
    phases = (p.model_copy(update={"story": marks.get(p.name, {})}) for p in policy.phases)
    return policy.model_copy(update={"phases": tuple(phases)})


def capped(chance: random.Random, policy: Policy, team: Agents, config: Settings) -> tuple[Policy, Agents, Settings]:
    """The same, of which some have caps."""

    def most() -> dict[str, int | None]:
        return {"max_runs": chance.choice([None, 1, 1, 2])}

    phases = tuple(phase if phase.human else phase.model_copy(update=most()) for phase in policy.phases)
    agents = tuple(agent if agent.is_human else agent.model_copy(update=most()) for agent in team.agents)
    known = config.budgets.providers
    limits = {name: known.get(name, ProviderBudget()).model_copy(update=most()) for name in ("acme", "other")}
    budgets = config.budgets.model_copy(update={"providers": limits})
    opencode = config.runners.opencode.model_copy(update={"max_runs": chance.choice([None, None, None, 2])})
    runners = config.runners.model_copy(update={"opencode": opencode})
    worker = config.worker.model_copy(update={"max_concurrent_runs": chance.choice([2, 3, 5])})
    config = config.model_copy(update={"budgets": budgets, "runners": runners, "worker": worker})
    return policy.model_copy(update={"phases": phases}), Agents(version=1, agents=agents), config


def live(seed: int, steps: int = 250, *, unforeseen: float = 0.0, broken: type | None = None) -> MadeUp:
    """Live a life; its laws are checked after every turn. `broken`: what never happens as it should."""
    chance = random.Random(seed)
    chances = Chances(*(chance.choice([0, 0.5, 1, 1, 2, 4]) * getattr(WILD, name) for name in TROUBLES))
    if seed % 3 == 0:
        chances = replace(chances, pause=0.02)
    if seed % EDITS[0] == EDITS[1]:
        chances = replace(chances, edit=0.03)
    if seed % 5 == 1:
        chances = replace(chances, leak=0.05)
    if seed % 4 == 1:
        chances = replace(chances, limit=0.03)
    if seed % OWN[0] == OWN[1]:
        chances = replace(chances, landing=0.15, resists=0.1)
    extra = (ANN, READER) if chance.random() < 0.5 else (ANN,)
    team = Agents(version=1, agents=(*given.TEAM.agents, *extra))
    config = given.settings(
        managed=chance.random() < 0.7, lock_work_tree=chance.random() < 0.7,
        max_concurrent_runs=chance.choice([1, 2, 3]), workspace="worktree" if seed % OWN[0] == OWN[1] else "shared",
    )  # fmt: skip
    if seed % PULLS[0] == PULLS[1]:
        config = config.model_copy(update={"landing": LANDING})
    if seed % SOURCES[0] == SOURCES[1]:
        chances = replace(chances, source=0.15)
        config = config.model_copy(update={"sources": Sources(github=GitHubSource(repository=REPOSITORY))})
    if chance.random() < 0.4:
        config = config.model_copy(update={"budgets": budgets(chance)})
    if seed % 16 == 13:
        config = config.model_copy(update={"notify": NOTIFY})
    if seed % 3 == 1:
        chances = replace(chances, asks=0.3)
        config = config.model_copy(update={"permissions": permissions(random.Random(seed + 3))})
    policy = taken_over(seed, chance.choice([given.STANDARD, ROUND, SHORT]))
    policy = storied(seed, proven(seed, looked_into(seed, policy)))
    if seed % CAPS[0] == CAPS[1]:
        policy, team, config = capped(random.Random(seed + 5), policy, team, config)
    rules = given.policies(policy)
    made = MadeUp(seed, replace(chances, unforeseen=unforeseen), check=Laws(), broken=broken)
    tree = Tree(True, "c0ffee", branch="main") if seed % OWN[0] == OWN[1] else None
    made.begin(*given.start(rules, team, config, tree))
    for number in range(4):
        shares = ("branch:epic",) if seed % (2 * OWN[0]) == OWN[1] and number in (1, 2) else ()
        story = (f"story:docs/stories/1-{number}-x.md",) if seed % STORIES[0] == STORIES[1] else ()
        made.open(f"t-{number}", *shares, *story, priority=number % 3)
    for number in (12, 13) if seed % SOURCES[0] == SOURCES[1] else ():
        made.forge.open(number)
    made.open("t-9", blocked_by=("t-0",))
    left = Stamp("another", 50, "t-7/implement.2.1", visit=2, attempt=1, runs=3, cycle_runs=2, actor="ashep-dead")
    if chance.random() < 0.5:
        made.open("t-7", "phase:implement", status="in_progress", assignee=given.ME, stamp=left)
    if chance.random() < 0.5:
        made.dead.add("ashep-dead")
        dead = replace(left, run="t-8/implement.2.1")
        made.open("t-8", "phase:implement", status="in_progress", assignee="ashep-dead", stamp=dead)
    made.live(steps)
    return made


def digest(seed: int) -> str:
    """Sum a life up."""
    text = "\n".join(json.dumps(to_json(entry)) for entry in live(seed).entries)
    return hashlib.sha256(text.encode()).hexdigest()
