"""Rules about tools that a configuration cannot have: what they would break, and what to write instead."""

from collections.abc import Iterable, Iterator, Sequence

from ashep.config.findings import KeyPath
from ashep.core.policy.permissions import SUBAGENTS, against_reading, asks_of_tools, impossible
from ashep.core.policy.policies import PermissionRule, Policies
from ashep.core.policy.settings import Settings

Problem = tuple[str, KeyPath, str]
"""Code, path, message."""


def of_settings(settings: Settings) -> Iterator[Problem]:
    """The rules for all phases; in a phase with less access those that need more are left out."""
    yield from _possible(settings.permissions, ())
    yield from _alone(settings.permissions, settings.permissions, ())


def of_policies(policies: Policies, settings: Settings | None) -> Iterator[Problem]:
    """The rules of phases: none may widen its phase's access."""
    for name, policy in policies.policies.items():
        for index, phase in enumerate(policy.phases):
            path: KeyPath = ("policies", name, "phases", index)
            yield from _possible(phase.permissions, path)
            for place, rule in enumerate(phase.permissions):
                why = None if phase.writes or impossible(rule) else against_reading(rule)
                if why is not None:
                    yield "beyond-access", (*path, "permissions", place, "tool"), why
            everywhere = settings.permissions if settings else ()
            yield from _alone(phase.permissions, (*phase.permissions, *everywhere), path)


def _possible(rules: Iterable[PermissionRule], path: KeyPath) -> Iterator[Problem]:
    for place, rule in enumerate(rules):
        if (why := impossible(rule)) is not None:
            yield "impossible-rule", (*path, "permissions", place, "tool"), why


def _alone(rules: Iterable[PermissionRule], together: Sequence[PermissionRule], path: KeyPath) -> Iterator[Problem]:
    """A subagent would not be asked: where something is, there is none, and a rule for one has no effect."""
    if not asks_of_tools(together):
        return
    for place, rule in enumerate(rules):
        if rule.tool == SUBAGENTS and rule.action != "deny":
            why = "has no effect: where a tool is asked about there are no subagents, for nobody would ask them"
            yield "impossible-rule", (*path, "permissions", place, "tool"), why
