"""Policies as they stand in the user's files, ready to be drawn, with how many issues are where."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ashep.config import ConfigErrors, check, errors_of, examine, policy_files
from ashep.config.files import policies_in
from ashep.core.analysis.soundness import analyse
from ashep.core.policy.agents import Agents
from ashep.core.policy.policies import Policies, Policy
from ashep.core.policy.settings import Settings
from ashep.core.state.world import World
from ashep.errors import UsageError
from ashep.views import edge_counts, json_types, policy_graph
from ashep.views.policy_graph import PolicyGraph


@dataclass
class PolicyGraphs:
    """The policies of a project as JSON, drawn again when a file has changed: to search them takes a while."""

    folder: Path
    """`.agent-shepherd`."""
    _of: object = None
    _told: dict[str, json_types.LivePolicyJson] = field(default_factory=dict[str, json_types.LivePolicyJson])

    def all(self) -> dict[str, json_types.LivePolicyJson]:
        """Give each policy by its name, in the order of the file. Raises `ConfigErrors`."""
        files = [self.folder / f"{name}.yaml" for name in ("config", "agents", "policies")]
        of = [(file.stat().st_mtime_ns, file.stat().st_size) if file.exists() else None for file in files]
        if of != self._of:
            known = configuration(self.folder)
            self._told = {name: policy_graph.as_json(draw_policy(*known, name, {})) for name in known[0].policies}
            self._of = of
        return self._told


@dataclass
class PolicyNames:
    """The names of a project's policies, read again when a file of theirs has changed."""

    folder: Path
    """`.agent-shepherd`."""
    _of: object = None
    _names: tuple[str, ...] = ()

    def all(self) -> tuple[str, ...]:
        """Give them in the order of the files, which are read for that without the others. Raises `ConfigErrors`."""
        files = [self.folder / "policies.yaml", *sorted((self.folder / policy_files.FOLDER).glob("*"))]
        of = [(file, file.stat().st_mtime_ns, file.stat().st_size) for file in files if file.exists()]
        if of != self._of:
            self._names, self._of = tuple(policies_in(self.folder).policies), of
        return self._names


@dataclass
class PastPolicyGraphs:
    """Policies as they were in force, as JSON; of the last ones that were asked for they are drawn once."""

    _of: object = None
    _told: dict[str, json_types.LivePolicyJson] = field(default_factory=dict[str, json_types.LivePolicyJson])

    def all(self, world: World) -> dict[str, json_types.LivePolicyJson]:
        """Give each policy of a World by its name, in the order of the file."""
        of = (world.policies, world.agents, world.settings)
        if of != self._of:
            policies, agents, settings = of
            told: dict[str, json_types.LivePolicyJson] = {}
            if policies and agents:
                told = {
                    policy: policy_graph.as_json(draw_policy(policies, agents, settings, policy, {}))
                    for policy in policies.policies
                }
            self._of, self._told = of, told
        return self._told


def counted(
    told: json_types.LivePolicyJson,
    stands: Mapping[str, dict[json_types.State, int]],
    went: Counter[edge_counts.Edge] | None,
) -> json_types.LivePolicyJson:
    """Give a policy with how many issues are where, in which state, and how often each edge was taken, where known."""
    return {
        **told,
        "phases": [
            phase if phase["issues"] is None else {**phase, "issues": sum(there.values()), "states": there}
            for phase in told["phases"]
            for there in (stands.get(phase["name"], {}),)
        ],
        "edges": told["edges"] if went is None else edge_counts.spread(told["edges"], went),
    }


def draw_policy(
    policies: Policies, agents: Agents, settings: Settings, name: str | None, issues: dict[str, int] | None = None
) -> PolicyGraph:
    """Draw a policy of files that are in order; `issues` are how many are where."""
    name, policy = policy_named(policies, name)
    verdict = analyse(policies.model_copy(update={"policies": {name: policy}}), agents, settings)[name]
    phases = [(phase.name, phase.needs, phase.human is not None) for phase in policy.phases]
    return policy_graph.picture(name, phases, verdict.edges, verdict.findings, issues)


def configuration(folder: Path) -> tuple[Policies, Agents, Settings]:
    """Read the files. What a search of the policies finds is to be drawn; all else that is wrong is not."""
    found = examine(folder)
    policies, agents, settings = found.policies, found.agents, found.settings
    apart = check(policies, agents, None) + check(None, None, settings)  # so that nothing is searched
    if policies is None or agents is None or settings is None or errors_of(apart):
        raise ConfigErrors(errors_of(found.findings))
    return policies, agents, settings


def policy_named(known: Policies, name: str | None) -> tuple[str, Policy]:
    """Find a policy by its name; by default `default_policy`, else the first."""
    name = name or known.default_policy or next(iter(known.policies))
    if name not in known.policies:
        raise UsageError(f"there is no policy {name}; there are {', '.join(known.policies)}")
    return name, known.policies[name]
