"""What the search of the policies found, as findings with file, line and key; and where much hangs on little."""

from collections.abc import Iterator

from ashep.config import proving
from ashep.config.findings import Finding, KeyPath, Places
from ashep.core.analysis.bounds import fitting
from ashep.core.analysis.soundness import analyse
from ashep.core.policy.agents import Agents
from ashep.core.policy.policies import Policies
from ashep.core.policy.settings import Settings

Problem = tuple[str, KeyPath, str]
"""Code, path, message."""


def unsound(policies: Policies, agents: Agents, settings: Settings, places: Places) -> Iterator[Finding]:
    """Search all that the policies can lead to; they must be free of other mistakes."""
    for verdict in analyse(policies, agents, settings).values():
        for one in verdict.findings:
            message = f"{one.message}; {one.remedy}"
            yield places.finding(one.code, "policies", one.key_path, message, one.severity, one.story)


def warnings(policies: Policies, agents: Agents, settings: Settings, places: Places) -> list[Finding]:
    """What a person should know before the night although nothing of it is a mistake."""
    found = [*_weak_points(policies, agents), *_unseen(policies, settings)]
    return [places.finding(code, "policies", path, message, "warning") for code, path, message in found]


def _weak_points(policies: Policies, agents: Agents) -> Iterator[Problem]:
    """Phases that one agent, or one provider, can stop by being away."""
    for name, policy in policies.policies.items():
        for index, phase in enumerate(policy.phases):
            able = [] if phase.human else fitting(phase, agents)
            place: KeyPath = ("policies", name, "phases", index, "name")
            if len(able) == 1:
                yield "one-agent", place, f"only {able[0].id} can take {phase.name}: without it, issues wait here"
            elif len(providers := {agent.runner.provider for agent in able}) == 1 and None not in providers:
                why = f"all agents for {phase.name} are of the provider {providers.pop()}: its outage stops this phase"
                yield "one-provider", place, why


def _unseen(policies: Policies, settings: Settings) -> Iterator[Problem]:
    """Phases whose work is to be looked into, where config.yaml says that all work is done in the shared work tree
    (who sets `lock_work_tree` says so, too).
    """
    worker = settings.worker
    if worker.workspace != "shared" or worker.model_fields_set.isdisjoint({"workspace", "lock_work_tree"}):
        return
    for name, policy in policies.policies.items():
        for index, phase in enumerate(policy.phases):
            for key in proving.declared(phase):
                why = (
                    "has no effect in the shared work tree, which config.yaml asks for: set worker.workspace: worktree"
                )
                yield "shared-work-tree", ("policies", name, "phases", index, key), why
