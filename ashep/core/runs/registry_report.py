"""What the agent registry is good for: who can take which phase, who is chosen, and what hangs by one thread.

Pure functions over the users' files, and over what was last seen of the agent server where that is known.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ashep.core.facts.runs import Model
from ashep.core.policy.agents import Agent, Agents
from ashep.core.policy.policies import Phase, Policies, Policy
from ashep.core.runs.agent_selection import Choice, choose, model_of, unfit
from ashep.core.state.runner_state import NOT_SEEN, Seen
from ashep.core.text import list_names


@dataclass(frozen=True, slots=True)
class Explained:
    """The choice for a phase of a policy."""

    policy: str
    phase: Phase
    choice: Choice | None
    """None: a person answers in this phase, and no agent is chosen."""
    granted: tuple[tuple[str, str], ...]
    """What was taken for granted: phases, named in the wishes of this one, and the model that each would run on."""


@dataclass(frozen=True, slots=True)
class Weakness:
    """What is doubtful about the registry. `agent` is the one whose entry is to be changed, where it is one's."""

    code: str
    message: str
    agent: str | None = None


def explain(policies: Policies, agents: Agents, phase: str, seen: Seen) -> Iterator[Explained]:
    """Choose for the phase of this name in each policy that has one, as for an issue that begins the phase.

    Where a wish of the phase names another phase, that is taken to have run on what would be chosen for it.
    """
    for name, policy in policies.policies.items():
        found = policy.phase(phase)
        if found is None:
            continue
        if found.human is not None:
            yield Explained(name, found, None, ())
            continue
        models = _models(policy, agents, found, seen)
        granted = tuple((other, f"{model.provider}/{model.model}") for other, model in models.items())
        yield Explained(name, found, choose(agents, found, seen, models), granted)


def _models(policy: Policy, agents: Agents, phase: Phase, seen: Seen) -> Mapping[str, Model]:
    models = dict[str, Model]()
    for wished in (phase.prefer.different_model_from, phase.prefer.different_provider_from):
        other = policy.phase(wished) if wished else None
        chosen = choose(agents, other, seen, {}).agent if other is not None and other.human is None else None
        if other is not None and chosen is not None and (model := model_of(chosen, seen)) is not None:
            models[other.name] = model
    return models


def places(policies: Policies, agent: Agent, seen: Seen) -> dict[str, tuple[str, ...]]:
    """Give the phases of each policy that an agent can take."""
    found = {
        name: tuple(phase.name for phase in policy.phases if phase.human is None and can(agent, phase, seen))
        for name, policy in policies.policies.items()
    }
    return {name: phases for name, phases in found.items() if phases}


def can(agent: Agent, phase: Phase, seen: Seen) -> bool:
    """Whether an agent can take a phase. An agent without a model may be of any, until the server names its default."""
    if agent.runner.model is None and model_of(agent, seen) is None:
        phase = phase.model_copy(update={"provider": None, "model": None})
    return unfit(agent, phase, seen) is None


def weaknesses(policies: Policies, agents: Agents, seen: Seen) -> Iterator[Weakness]:
    """Say what is doubtful: agents without use, those the server does not list, and what only one can do."""
    yield from _unused(policies, agents)
    for agent in agents.agents:
        against = unfit(agent, Phase(name=agent.capabilities[0], access="read"), seen)
        if against is not None:
            yield Weakness("not-listed", f"{agent.id} cannot be used: {against}, when it was last seen", agent.id)
    yield from _bottlenecks(policies, agents, seen)


def _unused(policies: Policies, agents: Agents) -> Iterator[Weakness]:
    stalls = any(phase.stall.action == "diagnose" for phase, _ in _phases(policies))
    beside = {"extract", "debug"} if stalls else {"extract"}
    for agent in agents.agents:
        serves = not agent.is_human and not beside.isdisjoint(agent.capabilities)
        if not serves and not places(policies, agent, NOT_SEEN):
            reason = "no phase of any policy can take it"
            if "debug" in agent.capabilities:
                reason += ", and no stall is looked into (`stall.action: diagnose`)"
            yield Weakness("unused-agent", f"{agent.id} is never used: {reason}", agent.id)


def _bottlenecks(policies: Policies, agents: Agents, seen: Seen) -> Iterator[Weakness]:
    """Phases that one agent alone can take, where others have more, then those with several, all of one provider."""
    of_agent, of_provider = dict[str, list[str]](), dict[str, list[str]]()
    able = [(name, [agent for agent in agents.agents if can(agent, phase, seen)]) for phase, name in _phases(policies)]
    several = any(len(takers) > 1 for _, takers in able)
    for name, takers in able:
        models = [model_of(agent, seen) for agent in takers]
        providers = {f"the provider {model.provider}" if model else "the server's default provider" for model in models}
        if len(takers) == 1 and several:
            of_agent.setdefault(takers[0].id, []).append(name)
        elif len(takers) > 1 and len(providers) == 1 and not any(agent.is_human for agent in takers):
            of_provider.setdefault(providers.pop(), []).append(name)
    for agent, names in of_agent.items():
        message = (
            f"only {agent} can take {list_names(names, 6)}: if it fails there is no other agent for a next attempt"
        )
        yield Weakness("one-agent", message, agent)
    for provider, names in of_provider.items():
        message = f"every agent that can take {list_names(names, 6)} runs on {provider}: where that refuses, all wait"
        yield Weakness("one-provider", message)


def _phases(policies: Policies) -> Iterator[tuple[Phase, str]]:
    for name, policy in policies.policies.items():
        for phase in policy.phases:
            if phase.human is None:
                yield phase, f"{name}/{phase.name}"
