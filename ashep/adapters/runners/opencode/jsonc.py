"""JSON as OpenCode reads it in its settings: with comments, and with commas at an end."""

import json
import re

from ashep.adapters.runners.foreign_json import JsonObject, as_object

_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_COMMA = re.compile(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])')


def read_jsonc(text: str) -> JsonObject:
    """Read the object that a text is; empty: it is something else. Raises `ValueError`, `RecursionError`."""
    plain = _COMMENT.sub(lambda match: match[1] or " ", text.removeprefix("\ufeff"))
    return as_object(json.loads(_COMMA.sub(lambda match: match[1] or "", plain)))
