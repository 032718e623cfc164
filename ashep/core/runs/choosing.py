"""Which agent takes the next run of an issue, as things stand: who failed before, and whose provider has budget."""

from collections import Counter
from collections.abc import Mapping

from ashep.core.policy.settings import Agent, Agents, Phase
from ashep.core.resources import budgets
from ashep.core.resources.providers import hold_of
from ashep.core.runs.choice import NO_FAILURES, Choice, choose, model_of
from ashep.core.state.flow import Flow
from ashep.core.state.holds import NO_PROVIDER, Hold
from ashep.core.state.world import World

FAILED = ("failed", "timed_out", "stalled")
"""States of a run that its agent is to blame for."""


def choose_for(world: World, flow: Flow, phase: Phase) -> tuple[Hold | None, Choice]:
    """Choose an agent for the phase of a flow; the hold says why the one that is chosen cannot begin now.

    No person falls in for an agent that cannot.
    """
    assert world.agents is not None
    models, failures = dict(flow.models), _failures(world, flow, phase)
    choice = choose(world.agents, phase, world.runner, models, failures)
    held = held_providers(world)
    if not held or choice.agent is None or (hold := held.get(provider_of(world, choice.agent))) is None:
        return None, choice
    policy = world.policy(flow)
    if hold.code in NO_PROVIDER and (policy is None or policy.limits.on_limit == "wait"):
        return hold, choice
    left = tuple(a for a in world.agents.agents if provider_of(world, a) not in held and not a.is_human)
    second = choose(Agents.model_construct(version=1, agents=left), phase, world.runner, models, failures)
    if second.agent is None:
        return hold._replace(why=f"{hold.why}, and no other agent can take {phase.name}"), choice
    told, before = {agent.id for agent in left}, dict(choice.others)
    others = ((agent.id, before.get(agent.id, hold.why)) for agent in world.agents.agents if agent.id not in told)
    return None, Choice(second.agent, second.why, (*second.others, *others))


def choose_beside(world: World, wish: Phase, behind: Mapping[str, int] = NO_FAILURES) -> Agent | None:
    """Choose an agent for a prompt beside a run: no person, and none whose provider takes nothing or has no budget."""
    spent = budgets.spent_providers(world)
    shut = {*spent, *(one.provider or None for one in world.outages if one.tried_since is None)}
    known = world.agents.agents if world.agents else ()
    left = tuple(agent for agent in known if not agent.is_human and provider_of(world, agent) not in shut)
    return choose(Agents.model_construct(version=1, agents=left), wish, world.runner, {}, behind).agent


def held_providers(world: World) -> dict[str | None, Hold]:
    """Why nothing starts on which providers."""
    spent = budgets.spent_providers(world)
    why = f"the budget of {', '.join(spent)} is used up until {budgets.day_over(world)}" if spent else ""
    held: dict[str | None, Hold] = {provider: Hold("budget_provider", why) for provider in spent}
    for outage in world.outages:
        if (hold := hold_of(world, outage.provider)) is not None:
            held.setdefault(outage.provider or None, hold)
    return held


def provider_of(world: World, agent: Agent) -> str | None:
    """The provider that an agent runs on, where that is known; a person has none."""
    model = None if agent.is_human else model_of(agent, world.runner)
    return model.provider if model else None


def _failures(world: World, flow: Flow, phase: Phase) -> dict[str, int] | Counter[str]:
    """What puts agents behind others for the next attempt of this visit, as `retry.change_agent` wants it."""
    here = f"{flow.issue.id}/{phase.name}.{flow.visit}."
    avoided = Counter(r.agent for r in flow.reports if r.run.startswith(here) and r.avoid)
    failed = Counter(r.agent for r in flow.reports if r.run.startswith(here) and r.state in FAILED)
    if phase.retry.change_agent is None or not failed or world.agents is None:
        return avoided or dict(NO_FAILURES)
    behind = failed + avoided
    by_provider: Counter[str | None] = Counter()
    for agent in world.agents.agents:
        by_provider[provider_of(world, agent)] += failed[agent.id]
    for agent in world.agents.agents:
        if agent.is_human:
            behind[agent.id] = 1 + sum(failed.values()) * 2
        elif phase.retry.change_agent == "different_provider":
            behind[agent.id] += by_provider[provider_of(world, agent)]
    return behind
