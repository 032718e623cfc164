"""Commands about the agent registry: agents list, explain, check. They read files and the journal, and ask nobody."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from ashep.actions.replay import recorded
from ashep.cli import output
from ashep.cli.commands import Json, example, group, project_of
from ashep.cli.context import configured
from ashep.config import ConfigErrors, errors_of, examine
from ashep.config.error_messages import nearest
from ashep.core.policy.agents import Agent, Agents
from ashep.core.policy.policies import Policies
from ashep.core.policy.runner_kinds import spoken
from ashep.core.runs.agent_selection import held_providers, provider_of
from ashep.core.runs.registry_report import Explained, places, weaknesses
from ashep.core.runs.registry_report import explain as explained
from ashep.core.state.world import World
from ashep.errors import UsageError

agents = group("agents")


class Registry(NamedTuple):
    """The files, as far as they can be read, and what the journal says."""

    policies: Policies
    agents: Agents
    world: World


def _registry(context: typer.Context) -> Registry:
    """Read policies and agents. Those that contradict each other are what somebody looks at here for."""
    folder = configured(project_of(context))
    found = examine(folder)
    if found.policies is None or found.agents is None:
        raise ConfigErrors(errors_of(found.findings))
    return Registry(found.policies, found.agents, recorded(folder / "state"))


@agents.command(name="list", epilog=example("ashep agents list", "ashep agents list --json"))
def list_agents(context: typer.Context, as_json: Json = False) -> None:
    """List the agents of agents.yaml: what each can do, what it runs on, and which phases of which policies it can
    take. What the agent server was last seen to list counts, too. Exit codes: 0, or 2 where a file cannot be read.
    """
    registry = _registry(context)
    rows = [_entry(agent, places(registry.policies, agent, registry.world.seen)) for agent in registry.agents.agents]
    if as_json:
        output.data({"agents": rows, "runners": _listed(registry.world)})
        return
    columns = ("AGENT", "CAPABILITIES", "ACCESS", "RUNS ON", "PRIORITY", "CAN TAKE")
    output.table(columns, [_row(entry) for entry in rows])
    output.say_lines(_describe_runners(registry.world, registry.agents))


def _entry(agent: Agent, takes: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    runner = None if agent.is_human else agent.runner.model_dump()
    return {
        "id": agent.id,
        "capabilities": agent.capabilities,
        "access": agent.read_write,
        "tags": agent.tags,
        "runner": runner,
        "priority": agent.priority,
        "is_human": agent.is_human,
        "phases": takes,
    }


def _row(entry: dict[str, Any]) -> tuple[str, ...]:
    takes = "; ".join(f"{policy}: {', '.join(phases)}" for policy, phases in entry["phases"].items())
    runner = entry["runner"]
    words = ["a person"] if runner is None else [runner["type"], runner["agent_slug"] or ""]
    if runner is not None and runner["model"]:
        words.append(f"{runner['provider']}/{runner['model']}")
    capabilities = ", ".join(entry["capabilities"])
    return entry["id"], capabilities, entry["access"], " ".join(filter(None, words)), str(entry["priority"]), takes


@agents.command(epilog=example("ashep agents explain review", "ashep agents explain review --policy standard --json"))
def explain(
    context: typer.Context,
    phase: Annotated[str, typer.Argument(metavar="PHASE", help="The phase's name.")],
    policy: Annotated[
        str | None, typer.Option("--policy", metavar="NAME", help="Only in this policy; by default in each.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say which agent is chosen for a phase, and why each other one is not.

    The answer is for an issue that begins the phase: agents that failed in it before go behind others, `ashep why
    ISSUE` tells of that. Exit codes: 0, 1 where no agent can take the phase, 2 where there is no such phase.
    """
    registry = _registry(context)
    known = registry.policies.policies
    if policy is not None and policy not in known:
        raise UsageError(f"there is no policy {policy}{nearest(policy, known)}")
    found = [
        one
        for one in explained(registry.policies, registry.agents, phase, registry.world.seen)
        if policy in (None, one.policy)
    ]
    if not found:
        searched = [known[policy]] if policy else known.values()
        names = dict.fromkeys(phase.name for one in searched for phase in one.phases)
        where = f" in policy {policy}" if policy else ""
        raise UsageError(f"there is no phase {phase}{where}{nearest(phase, names)}")
    if as_json:
        output.data({"choices": [_choice(registry, one) for one in found], "runners": _listed(registry.world)})
    else:
        for one in found:
            _tell(registry, one)
        output.say_lines(_describe_runners(registry.world, registry.agents))
    raise typer.Exit(int(any(one.choice is not None and one.choice.agent is None for one in found)))


def _choice(registry: Registry, one: Explained) -> dict[str, Any]:
    choice, world = one.choice, registry.world
    agent = choice.agent if choice is not None else None
    hold = held_providers(world).get(provider_of(world, agent)) if agent is not None else None
    return {
        "policy": one.policy,
        "phase": one.phase.name,
        "human": choice is None,
        "agent": agent.id if agent is not None else None,
        "why": choice.why if choice else "a person answers in this phase",
        "others": dict(choice.others) if choice else {},
        "granted": dict(one.granted),
        "held": hold.why if hold else None,
    }


def _tell(registry: Registry, one: Explained) -> None:
    told = _choice(registry, one)
    chosen = "a person" if told["human"] else told["agent"] or "nobody"
    output.say_painted((f"{one.policy}/{one.phase.name}:", None), (chosen, "bold"))
    output.say(f"  {told['why']}")
    if told["held"]:
        output.say(f"  cannot begin now: {told['held']}")
    for agent, reason in told["others"].items():
        output.say(f"  not {agent}: {reason}")
    for other, model in told["granted"].items():
        output.say(f"  taken for granted: {other} ran on {model}")


def _listed(world: World) -> dict[str, dict[str, Any]]:
    return {
        name: {"state": seen.state, "agents": seen.agents, "models": [*map(asdict, seen.models)]}
        for name, seen in sorted(world.seen.items())
    }


def _describe_runners(world: World, agents: Agents) -> Iterator[str]:
    for name in sorted({agent.runner.type for agent in agents.agents if not agent.is_human}):
        seen = world.seen.get(name)
        if seen is None or seen.state != "up":
            how = f"is {seen.state}" if seen is not None else "was never seen"
            yield f"{spoken(name)} {how}: whether it has these agents and models is not known"
        else:
            counts = f"{len(seen.agents)} agents and {len(seen.models)} models"
            yield f"{spoken(name)} listed {counts} when it was last seen"


@agents.command(epilog=example("ashep agents check", "ashep agents check --json"))
def check(context: typer.Context, as_json: Json = False) -> None:
    """Check the agent registry: mistakes in agents.yaml, phases that nobody can take, agents without use, and what
    hangs by one agent or one provider. Exit codes: 0, also with warnings; 1 where there is an error.
    """
    folder = configured(project_of(context))
    found = examine(folder)
    findings = [
        finding for finding in found.findings if Path(finding.file).name == "agents.yaml" or finding.code in OF_AGENTS
    ]
    if found.agents is not None and found.policies is not None:
        places = {agent.id: index for index, agent in enumerate(found.agents.agents)}
        for weak in weaknesses(found.policies, found.agents, recorded(folder / "state").seen):
            path = ("agents", places[weak.agent], "id") if weak.agent else ("agents",)
            findings.append(found.places.finding(weak.code, "agents", path, weak.message, "warning"))
    elif found.policies is None:
        findings += [
            finding
            for finding in found.findings
            if finding not in findings and Path(finding.file).name != "config.yaml"
        ]
    failed = bool(errors_of(findings))
    if as_json:
        output.data({"ok": not failed, "findings": [asdict(finding) for finding in findings]})
    else:
        for finding in findings:
            output.say_finding(finding.severity, str(finding))
        if not findings:
            output.say(f"{folder / 'agents.yaml'}: no mistake found")
    raise typer.Exit(int(failed))


OF_AGENTS = ("no-agent", "unknown-agent")
"""Codes of findings in other files that are about agents."""
