"""Answers of an earlier `ashep setup`, read from the files that are there: the defaults of the next one."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Literal, cast, get_args

from ashep.config import yaml_tree
from ashep.core.policy.runner_kinds import OPENCODE

Key = Literal["source", "agents", "check", "landing", "budget"]
Answers = Mapping[Key, str]
KEYS: tuple[Key, ...] = get_args(Key)
NONE = "none"
"""No check, or no limit."""


def written_answers(files: Mapping[str, str]) -> dict[Key, str]:
    """Return the answers that files hold which are there already, as far as they can be told."""
    config, policies, agents = (plain(files.get(f"{name}.yaml", "")) for name in ("config", "policies", "agents"))
    if not config and not agents:
        return {}
    replies: dict[Key, str] = {"source": "stories" if _value_at(config, "bmad", "enabled") is True else "bd"}
    if _value_at(config, "sources", "github"):
        replies["source"] = "github"
    replies["landing"] = str(_value_at(config, "landing", "mode") or "merge")
    cost = _value_at(config, "budgets", "day", "cost")
    replies["budget"] = NONE if cost is None else f"{cost:g}"
    kinds = [str(_value_at(entry, "runner", "type") or OPENCODE) for entry in _list(_value_at(agents, "agents"))]
    if kinds:
        replies["agents"] = f"{kinds[0]}/{kinds[-1]}"
    command = next(_commands(policies), None)
    replies["check"] = shlex.join(map(str, _list(command))) or NONE
    return replies


def plain(text: str) -> Any:
    """Return what a text of YAML means, without its comments; nothing where it cannot be read."""
    try:
        return yaml_tree.read(text)[0].plain() if text.strip() else {}
    except yaml_tree.YamlUnreadable:
        return {}


def _value_at(value: Any, *path: str) -> Any:
    for key in path:
        value = cast("dict[str, Any]", value).get(key) if isinstance(value, dict) else None
    return value


def _commands(policies: Any) -> Iterator[Any]:
    policies_by_name = _value_at(policies, "policies")
    for policy in cast("dict[str, Any]", policies_by_name).values() if isinstance(policies_by_name, dict) else ():
        for phase in _list(_value_at(policy, "phases")):
            for check in _list(_value_at(phase, "checks")):
                yield _value_at(check, "verify", "command")


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
