"""`extends`: a policy that says only how it differs from another one is written out, before anything is checked.

The keys that it gives replace those of the other, and so do the keys of a phase of the same name; its other phases come
behind, and those that `remove` names are left out. What it does not give is taken to stand where its `extends` does.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from ashep.config import yaml_tree
from ashep.config.error_messages import describe, nearest
from ashep.config.presets import PRESETS, preset
from ashep.config.yaml_tree import Node, YamlProblem

SHIPPED = "preset:"
"""Before the name of a policy that ships."""

_STAND_IN = Node({"phases": Node([Node({"name": Node("x", 1, "")}, 1, "")], 1, "")}, 1, "")
"""In the place of a policy of which nothing can be said: its problem is known."""


def in_full(policies: dict[str, Node], beside: Mapping[str, Node]) -> tuple[dict[str, Node], list[YamlProblem]]:
    """Write out every policy that extends another, and say why one could not be; `beside` can only be extended."""
    writer = _Writer({**beside, **policies})
    return {name: writer.full(name, ()) for name in policies}, writer.problems


@dataclass
class _Writer:
    policies: dict[str, Node]
    problems: list[YamlProblem] = field(default_factory=list[YamlProblem])
    done: dict[str, Node] = field(default_factory=dict[str, Node])

    def full(self, name: str, above: tuple[str, ...]) -> Node:
        """Give a policy in full; `above` are those that extend it."""
        if name not in self.done:
            self.done[name] = self._full(name, above)
        return self.done[name]

    def _full(self, name: str, above: tuple[str, ...]) -> Node:
        policy = self.policies[name]
        extends = policy.child("extends")
        if extends is None or extends.value is None or not isinstance(policy.value, dict):
            return policy
        if not isinstance(extends.value, str):
            self._problem("wrong-type", f"expected the name of a policy, found {describe(extends)}", extends)
            return _STAND_IN
        other = self._resolve_base(extends, extends.value, (*above, name))
        if other is None:
            return _STAND_IN
        left = self._read_removed(policy, extends.value, other)
        inherited = _moved(other, extends, other.key)
        own = {key: value for key, value in policy.value.items() if key not in ("extends", "remove", "phases")}
        phases = _phases(inherited.child("phases"), policy.child("phases"), left)
        return replace(policy, value=inherited.entries | own | ({"phases": phases} if phases else {}))

    def _resolve_base(self, extends: Node, name: str, chain: tuple[str, ...]) -> Node | None:
        if name.startswith(SHIPPED):
            if (shipped := name.removeprefix(SHIPPED)) in PRESETS:
                return _shipped(shipped)
        elif name in chain:
            message = f"{' extends '.join((*chain[chain.index(name) :], name))}; take one of them out"
            return self._problem("extends-itself", message, extends)
        elif name in self.policies:
            other = self.full(name, chain)
            return None if other is _STAND_IN else other
        known = [*(policy for policy in self.policies if policy not in chain), *(SHIPPED + other for other in PRESETS)]
        return self._problem("unknown-policy", f"there is no policy {name}{nearest(name, known)}", extends)

    def _read_removed(self, policy: Node, other: str, full: Node) -> frozenset[str]:
        remove = policy.child("remove")
        known = [_name(phase) for phase in full.locate(["phases"]).items]
        if remove is not None and not isinstance(remove.value, list):
            self._problem("wrong-type", "expected a list of phases", remove)
            return frozenset()
        names = remove.items if remove else []
        for node in names:
            if node.value not in known:
                message = f"{other} has no phase {node.value}{nearest(str(node.value), filter(None, known))}"
                self._problem("unknown-phase", message, node)
        return frozenset(node.value for node in names if isinstance(node.value, str))

    def _problem(self, code: str, message: str, place: Node) -> None:
        self.problems.append(place.problem(code, message))


@cache
def _shipped(name: str) -> Node:
    root, _ = yaml_tree.read(preset(name), f"{SHIPPED}{name}")
    return in_full(root.locate(["policies"]).entries, {})[0][name]  # one that ships may extend another of its own file


def _phases(inherited: Node | None, own: Node | None, left: frozenset[str]) -> Node | None:
    """Put the phases together: those of the other in their order, with what is said of them here, then new ones."""
    if own is not None and not isinstance(own.value, list):
        return own  # pydantic says what is wrong with it
    phases = [phase for phase in (inherited.items if inherited else []) if _name(phase) not in left]
    places = {_name(phase): place for place, phase in enumerate(phases)}
    for phase in own.items if own else []:
        place = places.pop(_name(phase), None)  # a second phase of the name is a mistake, and is told as one
        if place is None or not isinstance(phase.value, dict):
            phases.append(phase)
        else:
            phases[place] = replace(phase, value=phases[place].entries | phase.value)
    top = own or inherited
    return replace(top, value=phases) if top is not None else None


def _name(phase: Node) -> str | None:
    name = phase.locate(["name"]).value
    return name if isinstance(name, str) else None


def _moved(node: Node, to: Node, key: str) -> Node:
    """Say of a value that it stands where `extends` does; `key` is that of the policy that it is from."""
    below = node.key.removeprefix(key)
    path = f"{to.key}[{to.value}]{'.' if below and below[0] not in '.[' else ''}{below}"
    value = node.value
    if isinstance(value, dict):
        value = {name: _moved(child, to, key) for name, child in value.items()}
    elif isinstance(value, list):
        value = [_moved(child, to, key) for child in value]
    return Node(value, to.line, path, to.file)
