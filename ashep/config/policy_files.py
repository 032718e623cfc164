"""policies.yaml and the files in `policies/` -> one tree of policies, each written out in full.

A file in `policies/` is like policies.yaml without `default_policy`, or is one policy that has the file's name. Those
of policies.yaml come first, then file by file in the order of their names: the first whose `match` fits is used.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath

from ashep.config.error_messages import nearest
from ashep.config.extends import in_full
from ashep.config.yaml_tree import Node, YamlProblem
from ashep.core.policy.base_types import is_name

FOLDER = "policies"
"""Where the files lie that hold one policy each, or several."""

ENDING = ".yaml"
"""How their names end."""

_KEYS = ("version", "policies")

NONE: dict[str, Node] = {}
"""No policies."""

Policies = Mapping[str, Node]


def in_one(main: Node, others: Sequence[Node] = (), beside: Policies = NONE) -> tuple[Node, list[YamlProblem]]:
    """Put the policies of other files behind those of the main one, and write out what is short; say what is wrong.

    Those `beside` them, in full, are not checked; they can be extended.
    """
    problems: list[YamlProblem] = []
    policies = main.child("policies")
    if policies is None or (policies.value is None and others):
        policies = Node({}, main.line, main.key_of("policies"), main.file)
    if not isinstance(main.value, dict) or not isinstance(policies.value, dict) or not (policies.value or others):
        return main, problems  # pydantic says what is wrong with it
    entries = dict(policies.value)
    for other in others:
        problems += _add(entries, other)
    full, more = in_full({name: _without_short_forms(policy) for name, policy in entries.items()}, beside)
    return replace(main, value=main.value | {"policies": replace(policies, value=full)}), problems + more


def is_single(file: Node) -> bool:
    """Whether a file holds one policy."""
    return isinstance(file.value, list) or file.child("phases") is not None or file.child("extends") is not None


def _add(entries: dict[str, Node], file: Node) -> Iterator[YamlProblem]:
    policies = file.child("policies")
    if policies is None:
        found = _single(file)
        if isinstance(found, YamlProblem):
            yield found
            return
        new = {PurePath(file.file).stem: found}
    else:
        for key, node in file.entries.items():
            if key == "default_policy":
                yield node.problem("misplaced-key", "belongs into policies.yaml; move it there")
            elif key not in _KEYS:
                yield node.problem("unknown-key", f"unknown key{nearest(key, _KEYS)}")
        if not isinstance(policies.value, dict):
            yield policies.problem("wrong-type", "expected a mapping of policies")
            return
        new = policies.value
    for name, policy in new.items():
        if (known := entries.get(name)) is not None:
            message = f"there is a policy {name} already, in {known.file}:{known.line}; rename one of them"
            yield policy.problem("duplicate-policy", message)
        else:
            entries[name] = policy


def _single(file: Node) -> Node | YamlProblem:
    if not isinstance(file.value, dict | list):
        return file.problem("wrong-type", "expected a policy, or a mapping with `policies`")
    if not is_name(PurePath(file.file).stem):
        message = "the file's name is the policy's: a letter, then letters, digits, _ or - (64 at most); rename it"
        return YamlProblem("bad-name", message, None, None, file.file)
    if isinstance(file.value, dict):
        return replace(file, value={key: value for key, value in file.value.items() if key != "version"})
    return file


def _without_short_forms(policy: Node) -> Node:
    """Write a policy that is a list of phases, and a phase that is a name, as mappings."""
    phases = policy if isinstance(policy.value, list) else policy.child("phases")
    if phases is None or not isinstance(phases.value, list):
        return policy
    items = [replace(item, value={"name": item}) if isinstance(item.value, str) else item for item in phases.value]
    return replace(policy, value=policy.entries | {"phases": replace(phases, value=items)})
