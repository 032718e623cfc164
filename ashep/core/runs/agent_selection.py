"""Which agent takes a run: a pure function, with a reason for the choice and against every other agent."""

from collections import Counter
from collections.abc import Container, Mapping
from dataclasses import dataclass

from ashep.core.facts.resources import RunnerSeen
from ashep.core.facts.runs import Model
from ashep.core.policy.agents import Agent, Agents
from ashep.core.policy.policies import Phase
from ashep.core.policy.runner_kinds import OPENCODE, spoken
from ashep.core.resources import budgets
from ashep.core.resources.providers import hold_of
from ashep.core.state.flow import Flow
from ashep.core.state.holds import NO_PROVIDER, Hold
from ashep.core.state.runner_state import NOT_SEEN, Seen
from ashep.core.state.world import World


@dataclass(frozen=True, slots=True)
class Choice:
    """The agent, why it was chosen, and why each of the others was not."""

    agent: Agent | None
    why: str
    others: tuple[tuple[str, str], ...]


Rank = tuple[int, int, int, str]
"""In which order agents that fit are taken: failures, wishes met, priority, id."""

NO_FAILURES: Mapping[str, int] = {}


def choose(
    agents: Agents, phase: Phase, seen: Seen, models: Mapping[str, Model], failures: Mapping[str, int] = NO_FAILURES
) -> Choice:
    """Choose for a phase.

    `models` names the model that last ran each phase; `seen`: what runners list, where they were seen; `failures`: what
    puts an agent behind others, whatever else speaks for it.
    """
    fit: list[tuple[Rank, Agent]] = []
    others: list[tuple[str, str]] = []
    for agent in agents.agents:
        against = unfit(agent, phase, seen)
        if against:
            others.append((agent.id, against))
        else:
            wishes = _preferred(agent, phase, seen, models)
            fit.append(((failures.get(agent.id, 0), -wishes, -agent.priority, agent.id), agent))
    fit.sort(key=lambda item: item[0])
    if not fit:
        return Choice(None, f"no agent fits phase {phase.name}", tuple(others))
    (best, chosen), *rest = fit
    others += [(agent.id, _explain_rank(rank, best)) for rank, agent in rest]
    met = f", meets {-best[1]} of its preferences" if best[1] else ""
    why = f"{chosen.id} has {', '.join(phase.needs)}{met}, priority {chosen.priority}"
    return Choice(chosen, why, tuple(others))


def unfit(agent: Agent, phase: Phase, seen: Seen) -> str | None:
    """Say what speaks against an agent for a phase; None where nothing does."""
    missing = [word for word in phase.needs if word not in agent.capabilities]
    if missing:
        return f"lacks the capability {', '.join(missing)}"
    if phase.writes and agent.read_write != "write":
        return "may only read, and the phase writes"
    if agent.id in phase.not_agents:
        return "excluded by the phase's not_agents"
    if without := [tag for tag in phase.tags if tag not in agent.tags]:
        return f"lacks the tag {', '.join(without)}"
    if agent.is_human:
        return None
    model = model_of(agent, seen)
    if phase.provider is not None and (model is None or model.provider != phase.provider):
        return f"is not of provider {phase.provider}"
    if phase.model is not None and (model is None or model.model != phase.model):
        return f"is not of model {phase.model}"
    return _unlisted(agent, seen.get(agent.runner.type))


def _unlisted(agent: Agent, runner: RunnerSeen | None) -> str | None:
    if runner is None or runner.state != "up" or not runner.exhaustive:
        return None
    if agent.runner.agent_slug is not None and agent.runner.agent_slug not in runner.agents:
        return f"{spoken(runner.runner)} lists no agent {agent.runner.agent_slug}"
    wanted = model_of(agent, NOT_SEEN)
    if wanted is not None and wanted not in runner.models:
        return f"{spoken(runner.runner)} lists no model {wanted.provider}/{wanted.model}"
    if wanted is None and runner.runner == OPENCODE and not runner.models:
        return f"{spoken(runner.runner)} lists no model at all"
    return None


def model_of(agent: Agent, seen: Seen) -> Model | None:
    """The model that an agent runs on: its own, or else the default of its runner where that is known."""
    if agent.runner.provider is not None and agent.runner.model is not None:
        return Model(agent.runner.provider, agent.runner.model)
    return listed.default if (listed := seen.get(agent.runner.type)) else None


def named_in(agents: Agents) -> tuple[tuple[str, ...], tuple[Model, ...]]:
    """The server's agents and the models that a registry names, in order."""
    slugs = {agent.runner.agent_slug for agent in agents.agents if agent.runner.agent_slug}
    models = {model for agent in agents.agents if (model := model_of(agent, NOT_SEEN)) is not None}
    return tuple(sorted(slugs)), tuple(sorted(models, key=lambda model: (model.provider, model.model)))


def _preferred(agent: Agent, phase: Phase, seen: Seen, models: Mapping[str, Model]) -> int:
    wish, model = phase.prefer, model_of(agent, seen)
    score = sum(tag in agent.tags for tag in wish.tags)
    if wish.different_model_from and model is not None:
        score += model != models.get(wish.different_model_from, model)
    if wish.different_provider_from and model is not None:
        score += model.provider != models.get(wish.different_provider_from, model).provider
    return score + (wish.speed is not None and agent.performance.speed == wish.speed)


def _explain_rank(rank: Rank, best: Rank) -> str:
    if rank[0] != best[0]:
        return f"comes after {best[3]} once attempts have failed"
    if rank[1] != best[1]:
        return f"meets fewer preferences than {best[3]}"
    if rank[2] != best[2]:
        return f"has a lower priority than {best[3]}"
    return f"comes after {best[3]} by id"


FAILED = ("failed", "timed_out", "stalled")
"""States of a run that its agent is to blame for."""


def choose_for(world: World, flow: Flow, phase: Phase) -> tuple[Hold | None, Choice]:
    """Choose an agent for the phase of a flow; the hold says why the one that is chosen cannot begin now.

    No person falls in for an agent that cannot.
    """
    assert world.agents is not None
    choice = choose(world.agents, phase, world.seen, dict(flow.models), _failures(world, flow, phase))
    held = held_providers(world)
    if not held or choice.agent is None or (hold := held.get(provider_of(world, choice.agent))) is None:
        return None, choice
    policy = world.policy(flow)
    if hold.code in NO_PROVIDER and (policy is None or policy.limits.on_limit == "wait"):
        return hold, choice
    out = {agent.id for agent in world.agents.agents if provider_of(world, agent) in held}
    return pass_over(world, flow, phase, choice, hold, out)


def pass_over(
    world: World, flow: Flow, phase: Phase, choice: Choice, hold: Hold, out: Container[str]
) -> tuple[Hold | None, Choice]:
    """Choose again without the agents that cannot begin now, of which `hold` is the chosen one's; without people, too.

    The hold says that nobody is left.
    """
    assert world.agents is not None
    left = tuple(a for a in world.agents.agents if a.id not in out and not a.is_human)
    models, failures = dict(flow.models), _failures(world, flow, phase)
    second = choose(Agents.model_construct(version=1, agents=left), phase, world.seen, models, failures)
    if second.agent is None:
        return hold._replace(why=f"{hold.why}, and no other agent can take {phase.name}"), choice
    told, before = {agent.id for agent in left}, dict(choice.others)
    others = ((agent.id, before.get(agent.id, hold.why)) for agent in world.agents.agents if agent.id not in told)
    return None, Choice(second.agent, second.why, (*second.others, *others))


def choose_beside(world: World, wish: Phase, behind: Mapping[str, int] = NO_FAILURES) -> Agent | None:
    """Choose an agent for a prompt next to a run: no person, and none whose provider takes nothing or has no budget."""
    spent = budgets.spent_providers(world)
    shut = {*spent, *(outage.provider or None for outage in world.outages if outage.tried_since is None)}
    known = world.agents.agents if world.agents else ()
    left = tuple(agent for agent in known if not agent.is_human and provider_of(world, agent) not in shut)
    return choose(Agents.model_construct(version=1, agents=left), wish, world.seen, {}, behind).agent


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
    model = None if agent.is_human else model_of(agent, world.seen)
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
