"""Caps on runs at one time, next to that on all of them: of a phase, a runner, an agent, a provider.

A run counts for as long as it has a slot, for its own agent also while another one reads its session for it. An agent
at its cap, or at that of its runner or provider, is passed over for the next one that fits; a phase at its own waits.
"""

from collections.abc import Iterable
from typing import NamedTuple

from ashep.core.policy.agents import Agent
from ashep.core.policy.policies import Phase
from ashep.core.runs.agent_selection import Choice, held_providers, pass_over, provider_of, unfit
from ashep.core.state import pauses
from ashep.core.state.flow import Flow
from ashep.core.state.holds import CAPS, Hold
from ashep.core.state.world import World

Kind = tuple[str, str]
"""What runs are counted by: the code of a cap's hold, and the phase, runner, agent or provider that it is of."""


class Cap(NamedTuple):
    """So many runs at one time."""

    code: str
    """The hold."""
    of: str
    most: int


def kinds(policy: str | None, phase: str, runner: str, agent: str, provider: str) -> tuple[Kind, ...]:
    """Give what a run counts as."""
    return tuple(zip(CAPS, (f"{policy}/{phase}", runner, agent, provider), strict=True))


def under_way(world: World, issues: Iterable[str]) -> tuple[Kind, ...]:
    """Give what the runs of these issues count as, all together."""
    found: list[Kind] = []
    for flow in (world.flows[issue] for issue in issues):
        if (run := flow.run) is not None:
            seen = world.seen.get(run.runner)
            model = run.model or (seen.default if seen else None)
            found += kinds(flow.policy, run.phase, run.runner, run.agent, model.provider if model else "")
    return tuple(found)


def is_full(cap: Cap, runs: tuple[Kind, ...]) -> bool:
    """Whether so many runs are under way already."""
    return runs.count(cap[:2]) >= cap.most


def in_the_way(
    world: World, flow: Flow, phase: Phase, choice: Choice, runs: tuple[Kind, ...]
) -> tuple[list[tuple[Hold, frozenset[Cap]]], Choice]:
    """Say which caps keep a run of a phase from starting, and who takes it else.

    Each hold stands for as long as all of its caps are full, whatever else becomes so.
    """
    assert world.agents is not None and choice.agent is not None
    of_phase = f"{flow.policy}/{phase.name}"
    caps = [Cap("cap_phase", of_phase, phase.max_runs)] if phase.max_runs is not None else []
    found = [(_hold(cap, runs), frozenset({cap})) for cap in caps if is_full(cap, runs)]
    own = _full(world, choice.agent, runs)
    if not own:
        return found, choice
    agents, shut = world.agents.agents, held_providers(world)
    full = {agent.id: caps[0] for agent in agents if (caps := _full(world, agent, runs))}
    out = {a.id for a in agents if (on := provider_of(world, a)) in shut or pauses.find_hold(world.pauses, on)}
    able = {agent.id for agent in agents if agent.id in full and unfit(agent, phase, world.seen) is None}
    rest = {full[agent] for agent in able - {choice.agent.id}}
    for cap in own:
        hold, other = pass_over(world, flow, phase, choice, _hold(cap, runs), out | full.keys())
        if hold is None:
            return found, other
        found.append((hold, frozenset({cap, *rest})))
    return found, choice


def _full(world: World, agent: Agent, runs: tuple[Kind, ...]) -> list[Cap]:
    caps = list[Cap]()
    if agent.max_runs is not None and not agent.is_human:
        caps.append(Cap("cap_agent", agent.id, agent.max_runs))
    if not agent.is_human and (most := world.settings.runners.max_runs(agent.runner.type)) is not None:
        caps.append(Cap("cap_runner", agent.runner.type, most))
    provider = provider_of(world, agent) or ""
    budget = world.settings.budgets.providers.get(provider)
    if budget is not None and budget.max_runs is not None:
        caps.append(Cap("cap_provider", provider, budget.max_runs))
    return [cap for cap in caps if is_full(cap, runs)]


def _hold(cap: Cap, runs: tuple[Kind, ...]) -> Hold:
    many = runs.count(cap[:2])
    said = f"the {cap.code.removeprefix('cap_')} {cap.of} has {many} {'run' if many == 1 else 'runs'} under way"
    return Hold(cap.code, f"{said}, of {cap.most} at most", cap.of)
