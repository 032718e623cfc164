"""JSON as OpenCode reads it in its settings: with comments, and with commas at an end."""

import json
import re
from collections.abc import Mapping
from typing import Any, cast

_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')


def read_jsonc(text: str) -> Mapping[str, Any]:
    """Read the object that a text is; empty: it is something else. Raises `ValueError`, `RecursionError`."""
    plain = _COMMENT.sub(lambda match: match[1] or " ", text.removeprefix("\ufeff"))
    return mapping(json.loads(_COMMA.sub(lambda match: match[1] or "", plain)))


def mapping(value: object) -> Mapping[str, Any]:
    """Give a value if it is an object, else an empty one."""
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}
