"""Which agent takes a run: a pure function, with a reason for the choice and against every other agent (design 4)."""

from collections.abc import Mapping
from dataclasses import dataclass

from ashep.core.facts.vocabulary import RunnerSeen
from ashep.core.policy.settings import Agent, Agents, Model, Phase


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
    agents: Agents,
    phase: Phase,
    runner: RunnerSeen | None,
    models: Mapping[str, Model],
    failures: Mapping[str, int] = NO_FAILURES,
) -> Choice:
    """Choose for a phase.

    `models` names the model that last ran each phase; `runner` None: ask nothing of a server; `failures`: what puts an
    agent behind others, whatever else speaks for it.
    """
    fit: list[tuple[Rank, Agent]] = []
    others: list[tuple[str, str]] = []
    for agent in agents.agents:
        against = unfit(agent, phase, runner)
        if against:
            others.append((agent.id, against))
        else:
            wishes = _preferred(agent, phase, runner, models)
            fit.append(((failures.get(agent.id, 0), -wishes, -agent.priority, agent.id), agent))
    fit.sort(key=lambda item: item[0])
    if not fit:
        return Choice(None, f"no agent fits phase {phase.name}", tuple(others))
    (best, chosen), *rest = fit
    others += [(agent.id, _behind(rank, best)) for rank, agent in rest]
    return Choice(chosen, _reason(phase, best, chosen), tuple(others))


def unfit(agent: Agent, phase: Phase, runner: RunnerSeen | None) -> str | None:
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
    model = model_of(agent, runner)
    if phase.provider is not None and (model is None or model.provider != phase.provider):
        return f"is not of provider {phase.provider}"
    if phase.model is not None and (model is None or model.model != phase.model):
        return f"is not of model {phase.model}"
    return _unlisted(agent, runner)


def _unlisted(agent: Agent, runner: RunnerSeen | None) -> str | None:
    if runner is None or runner.state != "up":
        return None
    if agent.runner.agent_slug is not None and agent.runner.agent_slug not in runner.agents:
        return f"the server lists no agent {agent.runner.agent_slug}"
    wanted = model_of(agent, None)
    if wanted is not None and wanted not in runner.models:
        return f"the server lists no model {wanted.provider}/{wanted.model}"
    return None


def model_of(agent: Agent, runner: RunnerSeen | None) -> Model | None:
    """The model that an agent runs on: its own, or else the server's default where that is known."""
    if agent.runner.provider is not None and agent.runner.model is not None:
        return Model(agent.runner.provider, agent.runner.model)
    return runner.default if runner else None


def _preferred(agent: Agent, phase: Phase, runner: RunnerSeen | None, models: Mapping[str, Model]) -> int:
    wish, model = phase.prefer, model_of(agent, runner)
    score = sum(tag in agent.tags for tag in wish.tags)
    if wish.different_model_from and model is not None:
        score += model != models.get(wish.different_model_from, model)
    if wish.different_provider_from and model is not None:
        score += model.provider != models.get(wish.different_provider_from, model).provider
    return score + (wish.speed is not None and agent.performance.speed == wish.speed)


def _reason(phase: Phase, rank: Rank, agent: Agent) -> str:
    wishes = f", meets {-rank[1]} of its preferences" if rank[1] else ""
    return f"{agent.id} has {', '.join(phase.needs)}{wishes}, priority {agent.priority}"


def _behind(rank: Rank, best: Rank) -> str:
    if rank[0] != best[0]:
        return f"comes after {best[3]} once attempts have failed"
    if rank[1] != best[1]:
        return f"meets fewer preferences than {best[3]}"
    if rank[2] != best[2]:
        return f"has a lower priority than {best[3]}"
    return f"comes after {best[3]} by id"
