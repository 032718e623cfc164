"""Names of classes in the users' files: `package.module:Class`, for a runner or a tracker of their own."""

import re
from typing import Annotated

from pydantic import AfterValidator, JsonValue, WithJsonSchema

_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*:[A-Za-z_][A-Za-z0-9_]*$"
r"""What a JSON schema can read, too: no `\w`, which means more there."""

BEADS = "beads"
"""The tracker that is built in."""


def parse_dotted(value: str) -> str:
    """Read `package.module:Class`; anything else is a ValueError that says so."""
    if not re.fullmatch(_PATTERN, value):
        raise ValueError("expected a class as package.module:Class")
    return value


def parse_tracker(value: str) -> str:
    """Read `beads` or `package.module:Class`; anything else is a ValueError that says so."""
    if value != BEADS and not re.fullmatch(_PATTERN, value):
        raise ValueError("expected beads, or a class as package.module:Class")
    return value


Dotted = Annotated[str, AfterValidator(parse_dotted), WithJsonSchema({"type": "string", "pattern": _PATTERN})]
"""A class of the user's."""

TrackerType = Annotated[
    str,
    AfterValidator(parse_tracker),
    WithJsonSchema({"anyOf": [{"const": BEADS, "type": "string"}, {"type": "string", "pattern": _PATTERN}]}),
]
"""The built-in tracker, or a class of the user's."""

Options = Annotated[dict[str, JsonValue], WithJsonSchema({"type": "object"})]
"""What a class of the user's is given."""
