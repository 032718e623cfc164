"""What `verify`, `checks` and `when_flags` of a phase must keep: only what is looked into may be declared."""

from collections.abc import Iterable, Iterator

from ashep.config.checks.block import KEY, check_problems, unknown_type
from ashep.config.explain import nearest
from ashep.config.findings import KeyPath
from ashep.config.nodes import Node
from ashep.config.nodes import Problem as NodeProblem
from ashep.core.issues.verification import claims
from ashep.core.policy.checks import KINDS
from ashep.core.policy.policies import CLOSE, Phase, Policies, Policy
from ashep.core.policy.settings import Settings

Problem = tuple[str, KeyPath, str]
"""Code, path, message."""

PROVING = ("verify", "checks", "when_flags")
"""Keys of a phase by which a success is looked into."""


def declared(phase: Phase) -> tuple[str, ...]:
    """Give those of the keys that say something."""
    return tuple(key for key in PROVING if getattr(phase, key))


def read_checks(root: Node) -> list[NodeProblem]:
    """Read the checks of all policies of a file, each by the model of its type, so that what is said is about that."""
    found: list[NodeProblem] = []
    for policy in _below(root.child("policies")):
        for phase in _below(policy.child("phases")):
            checks = phase.child(KEY)
            if checks is not None and isinstance(checks.value, list) and checks.value:
                found += check_problems(checks.value)
    return found


def _below(node: Node | None) -> Iterable[Node]:
    value = node.value if node is not None else None
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def of_phase(policy: Policy, phase: Phase, path: KeyPath) -> Iterator[Problem]:
    """Say where a key has no effect, or a change would be led nowhere or around what follows."""
    if phase.human is not None:
        return  # no key of an agent's means anything there, and that is said
    for key in declared(phase) if not claims(phase) else ():
        message = "of verdicts only those are looked into that `must_pass` names; name those that say the work holds"
        yield "verify-with-verdicts", (*path, key), message
    names = [other.name for other in policy.phases]
    for flag, target in phase.when_flags.items():
        place: KeyPath = (*path, "when_flags", flag)
        if target == CLOSE:
            message = (
                "a change that is flagged cannot go around what follows; name a phase, one that asks a person, say"
            )
            yield "flagged-close", place, message
        elif target not in names:
            yield "unknown-target", place, f"this policy has no phase {target}{nearest(target, names)}"


def in_vain(policies: Policies) -> Iterator[Problem]:
    """Say where a change is asked for that nobody can have made."""
    for name, policy in policies.policies.items():
        writers = [phase for phase in policy.phases if phase.human is None and phase.writes]
        for index, phase in enumerate(policy.phases):
            if phase.verify is not None and phase.human is None and (not writers or (index == 0 and not phase.writes)):
                message = "nothing is written before this phase succeeds: its work can never hold; take a later phase"
                yield "nothing-to-verify", ("policies", name, "phases", index, "verify"), message


def of_types(policies: Policies, settings: Settings) -> Iterator[Problem]:
    """Say which checks are of a type that nobody registered."""
    known = settings.verification.types
    for name, policy in policies.policies.items():
        for index, phase in enumerate(policy.phases):
            for place, one in enumerate(phase.checks):
                if one.type not in KINDS and one.type not in known:
                    path: KeyPath = ("policies", name, "phases", index, KEY, place, "type")
                    yield "unknown-type", path, unknown_type(one.type, tuple(known))
