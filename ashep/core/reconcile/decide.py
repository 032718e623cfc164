"""The rules: what follows from a fact, as each domain says. None starts a run; a rule makes a phase wanted."""

from ashep.core.delivery import landing, pull_requests, workspace_retention, workspaces
from ashep.core.facts.resources import Adopted, TimerDue
from ashep.core.facts.vocabulary import Fact
from ashep.core.issues import human_overrides
from ashep.core.issues.routing import after_deadline
from ashep.core.reconcile import attribution, backlog, effect_failures, eligibility, sources
from ashep.core.resources import agent_server, budgets
from ashep.core.runs import requests, takeover, turns
from ashep.core.state.timers import flow_dues, split_timer
from ashep.core.state.world import World, merged


def decide(before: World, world: World, fact: Fact) -> list[Fact]:
    """Say what follows from a fact; `world` has the fact folded in, `before` has not."""
    kind = type(fact)
    if (rule := WORLD_RULES.get(kind)) is not None:
        return rule(before, world, fact)
    rule, issue = RULES.get(kind), str(getattr(fact, "issue", ""))
    if rule is None or (flow := world.flows.get(issue)) is None:
        return []
    return rule(world, before.flows.get(issue, flow), flow, fact)


def adopted(before: World, world: World, fact: Adopted) -> list[Fact]:
    """Hold what is under way against what has come into force."""
    if fact.kind == "settings":
        return [*budgets.after_settings(world), *workspace_retention.after_settings(world), *sources.adopted(world)]
    return human_overrides.after_policies(world) if fact.kind == "policies" else []


def timer_due(before: World, world: World, fact: TimerDue) -> list[Fact]:
    """Do what an issue's time was for, if it waited for that."""
    name, issue = split_timer(fact.key)
    earlier, flow = before.flows.get(issue), world.flows.get(issue)
    if earlier is None or flow is None or (name, fact.due) not in flow_dues(earlier):
        return []
    if name == "question" and flow.question is not None:
        return after_deadline(world, flow, flow.question)
    if name == human_overrides.TIMER and flow.question is not None:
        return human_overrides.after_reminder(world, flow, flow.question)
    if name == "tree":
        return workspace_retention.due(world, flow)
    return requests.expired(world, flow) if name == "input" else []


RULES = merged(
    human_overrides.RULES, landing.RULES, pull_requests.RULES, workspace_retention.RULES, requests.RULES,
     takeover.RULES, turns.RULES,
    attribution.RULES, eligibility.RULES, effect_failures.RULES,
)  # fmt: skip
"""What follows from a fact about an issue."""

WORLD_RULES = merged(
    workspaces.RULES,
    budgets.RULES,
    agent_server.RULES,
    sources.RULES,
    backlog.RULES,
    {Adopted: adopted, TimerDue: timer_due},
)
"""What follows from any other."""
