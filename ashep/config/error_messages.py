"""pydantic's errors -> one clear line for each problem: what was found, what was expected, what to do."""

import difflib
import inspect
import re
import types
import typing
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from ashep.config.findings import KeyPath
from ashep.config.yaml_tree import Node, YamlProblem, shorten
from ashep.core.policy.base_types import PLACE, file_keys, format_duration
from ashep.core.policy.verification_settings import ADDRESS

NOT_YET: dict[str, tuple[str, ...]] = {
    "Settings": ("checks", "metrics", "providers", "retention", "server"),
    "Policy": ("stall", "reminder", "budgets", "notify", "quiet_hours", "verify", "checks", "landing", "when_flags"),
    "Phase": ("reminder", "budgets", "landing"),
    "Human": ("notify",),
    "Limits": ("max_cost", "max_tokens"),
    "Agent": ("permissions", "budgets"),
}
"""Keys that are planned and have no effect yet, by the model that will have them: refused, never ignored."""


def nearest(word: str, known: Iterable[str]) -> str:
    """`; did you mean x?` where a known word is near, else the list of them."""
    words = list(known)
    close = difflib.get_close_matches(word, words, n=1)
    if close:
        return f"; did you mean {close[0]}?"
    return f"; expected one of {', '.join(words)}" if words else ""


def describe(node: Node) -> str:
    """Name a value in a few words."""
    value = node.value
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return shorten(repr(value))
    if isinstance(value, int | float):
        return f"the number {value}"
    kind = "mapping" if isinstance(value, dict) else "list"
    return f"a {kind}" if value else f"an empty {kind}"


def problems(error: ValidationError, model: type[BaseModel], root: Node) -> list[YamlProblem]:
    """Say everything that pydantic found, once for each place, in the order of the file."""
    found: dict[KeyPath, tuple[Node, list[ErrorDetails]]] = {}
    for details in error.errors(include_url=False):
        path, node = _locate(root, details)
        if details["type"] == "too_short" and isinstance(node.value, list | dict) and node.value:
            continue  # its items are wrong; pydantic counts only the good ones
        found.setdefault(path, (node, []))[1].append(details)
    deepest = [(path, *found[path]) for path in found if not _superseded(path, found)]
    return [node.problem(*_describe_errors(model, path, node, errors)) for path, node, errors in deepest]


def _superseded(path: KeyPath, found: dict[KeyPath, tuple[Node, list[ErrorDetails]]]) -> bool:
    """Whether a place below says it better: all arms of a union complain, and the one that goes deeper was meant."""
    if found[path][1][0]["type"] != "literal_error":
        return False
    return any(len(other) > len(path) and other[: len(path)] == path for other in found)


def _locate(root: Node, details: ErrorDetails) -> tuple[KeyPath, Node]:
    """Turn pydantic's `loc` into a path in the file: names of union arms and `[key]` fall out."""
    path: list[str | int] = []
    node = root
    for part in details["loc"]:
        child = node.child(part)
        if child is not None:
            path.append(part)
            node = child
    if details["type"] == "missing":
        missing = details["loc"][-1]
        return (*path, missing), Node(None, node.line, node.key_of(missing), node.file)
    return tuple(path), node


def _describe_errors(model: type[BaseModel], path: KeyPath, node: Node, errors: list[ErrorDetails]) -> tuple[str, str]:
    kind = errors[0]["type"]
    if kind == "extra_forbidden":
        owner, name = model_at(model, path[:-1]), str(path[-1])
        if owner is not None and name in NOT_YET.get(owner.__name__, ()):
            return "not-yet-supported", "not yet supported by this version; remove it"
        names = file_keys(owner) if owner is not None else ()
        return "unknown-key", f"unknown key{nearest(name, names)}"
    if kind == "missing":
        return "missing-key", f"this key is missing; add it{_suggest_key(model, path)}"
    if errors[0]["loc"][-1:] == ("[key]",):
        if kind == "literal_error":
            known = _WORD.findall(str(errors[0].get("ctx", {}).get("expected")))
            return "unknown-key", f"unknown key{nearest(str(path[-1]), known)}"
        return "bad-name", "not a name: a letter, then letters, digits, _ or - (64 at most)"
    expected = " or ".join(dict.fromkeys(_expected(details) for details in errors))
    code = "wrong-value" if kind in _VALUE_KINDS else "wrong-type"
    return code, f"expected {expected}, found {describe(node)}"


_BOUNDS = {
    "greater_than_equal": ("ge", "at least"), "less_than_equal": ("le", "at most"),
    "less_than": ("lt", "less than"), "greater_than": ("gt", "more than"),
}  # fmt: skip
"""By the kind of an error the name of the limit, and what it asks for."""

_VALUE_KINDS = frozenset(
    {"literal_error", "string_pattern_mismatch", "string_too_short", "string_too_long", "too_short", "too_long"}
).union(_BOUNDS)


def _suggest_key(model: type[BaseModel], path: KeyPath) -> str:
    """Ask whether a known key was meant, where a name of the user's could stand and one that is known is near."""
    owner = model_at(model, path[:-2])
    if owner is None or extras_of(owner) is None:
        return ""
    near = difflib.get_close_matches(str(path[-2]), file_keys(owner))
    return f" (or did you mean {near[0]}?)" if near else ""


_EXPECTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "a text",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "string_pattern_mismatch": "a name: a letter, then letters, digits, _ or - (64 at most)",
    "string_too_short": "a text that is not empty",
    "too_short": "at least one entry",
}

_PATTERNS = {
    "^/": "a path that begins with /",
    PLACE: "a path that begins with / or ~/",
    ADDRESS: "an address, as http://localhost:3000",
}

_SHORT_FORMS = {
    "Verify": "true, false or {max_attempts: <number>}",
    "ReuseFrom": "{reuse_from: <phase>}",
    "Phase": "a phase (its name, or a mapping)",
    "Policy": "a policy (a list of phases, or a mapping)",
}


def _expected(details: ErrorDetails) -> str:
    context: dict[str, object] = details.get("ctx", {})
    kind = details["type"]
    if kind == "value_error":
        return str(context["error"]).removeprefix("expected ")
    if kind == "literal_error":
        return str(context["expected"]).replace("'", "")
    if kind == "model_type":
        return _SHORT_FORMS.get(str(context["class_name"]), "a mapping")
    if kind in _BOUNDS:
        name, words = _BOUNDS[kind]
        limit = str(context[name])
        if (span := _SPAN.fullmatch(limit)) is not None:  # pydantic names a duration as Python does
            length = timedelta(days=int(span[1] or 0), seconds=int(span[2] or 0))
            limit = format_duration(length) if length else "zero"
        return f"{words} {limit}"
    if (pattern := str(context.get("pattern"))) in _PATTERNS:
        return _PATTERNS[pattern]
    if kind == "too_long":
        return f"at most {context['max_length']} entries"
    if kind == "string_too_long":
        return f"at most {context['max_length']} characters"
    return _EXPECTED.get(kind) or details["msg"].removeprefix("Input should be ")


_WORD = re.compile(r"'([^']*)'")
_SPAN = re.compile(r"datetime\.timedelta\((?:days=(\d+))?(?:, )?(?:seconds=(\d+))?0?\)")


def model_at(model: type[BaseModel], path: KeyPath) -> type[BaseModel] | None:
    """Find the model that a place in a file is validated by; None where it is no mapping with fixed keys."""
    here: object = model
    for part in path:
        if isinstance(here, type) and issubclass(here, BaseModel):
            field = file_keys(here).get(str(part))
            here = field.annotation if field is not None else extras_of(here)
        else:
            here = _item_type(here)
        here = _arm(here)
    return here if isinstance(here, type) and issubclass(here, BaseModel) else None


def extras_of(model: type[BaseModel]) -> type[BaseModel] | None:
    """Give what a model takes under names of the user's, next to its own keys; None where it takes no others."""
    return _item_type(inspect.get_annotations(model).get("__pydantic_extra__"))


def _item_type(container: Any) -> Any:
    """`tuple[X, ...]` -> X, `dict[str, X]` -> X."""
    arguments = typing.get_args(container)
    origin = typing.get_origin(container)
    if origin is tuple:
        return arguments[0]
    return arguments[1] if origin is dict else None


def _arm(annotation: object) -> object:
    """Strip `Annotated`, and take the arm of a union that is a model."""
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return _arm(typing.get_args(annotation)[0])
    if origin is typing.Union or origin is types.UnionType:
        arms = [_arm(arm) for arm in typing.get_args(annotation)]
        return next((arm for arm in arms if isinstance(arm, type) and issubclass(arm, BaseModel)), None)
    return annotation
