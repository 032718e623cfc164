"""Answers of an earlier `ashep setup`, read from the files that are there: the defaults of the next one."""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Literal, cast, get_args

from ashep.config import yaml_tree
from ashep.config.starter.setup_files import ChosenCheck
from ashep.core.policy.checks import parse_command
from ashep.core.policy.runner_kinds import OPENCODE

Key = Literal["source", "agents", "check", "landing", "budget"]
Answers = Mapping[Key, str]
KEYS: tuple[Key, ...] = get_args(Key)
NONE = "none"
"""No check, or no limit."""


def written_answers(files: Mapping[str, str]) -> dict[Key, str]:
    """Return the answers that files hold which are there already, as far as they can be read from them."""
    config, agents = (plain(files.get(name, "")) for name in ("config.yaml", "agents.yaml"))
    if not config and not agents:
        return {}
    replies: dict[Key, str] = {"source": "stories" if _value_at(config, "bmad", "enabled") is True else "bd"}
    if _value_at(config, "sources", "github"):
        replies["source"] = "github"
    replies["landing"] = str(_value_at(config, "landing", "mode") or "merge")
    cost = _value_at(config, "budgets", "day", "cost")
    replies["budget"] = write_number(cost) if isinstance(cost, int | float) else NONE
    kinds = [str(_value_at(entry, "runner", "type") or OPENCODE) for entry in _list(_value_at(agents, "agents"))]
    if kinds:
        replies["agents"] = f"{kinds[0]}/{kinds[-1]}"
    check = written_check(files)
    replies["check"] = NONE if check is None else shlex.join(check.verify["command"])
    return replies


def written_check(files: Mapping[str, str]) -> ChosenCheck | None:
    """Return the first check of policies.yaml that is a command, and what config.yaml gives all checks."""
    config, policies = (plain(files.get(name, "")) for name in ("config.yaml", "policies.yaml"))
    for verify in _list_verify(policies):
        with suppress(ValueError):
            words = [*cast("Iterable[Any]", parse_command(_value_at(verify, "command")))]
            if words and all(isinstance(word, str) for word in words):
                return ChosenCheck({**verify, "command": words}, _value_at(config, "verification") or {})
    return None


def write_number(number: float) -> str:
    """Return a number of dollars as a person types it."""
    return str(float(number)).removesuffix(".0")


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


def _list_verify(policies: Any) -> Iterator[Any]:
    policies_by_name = _value_at(policies, "policies")
    for policy in cast("dict[str, Any]", policies_by_name).values() if isinstance(policies_by_name, dict) else ():
        for phase in _list(_value_at(policy, "phases")):
            for check in _list(_value_at(phase, "checks")):
                yield _value_at(check, "verify")


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
