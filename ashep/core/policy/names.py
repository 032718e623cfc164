"""What a name is that users give: of a phase, a policy, an agent, a capability, a verdict, a tag, a runner."""

import re

PATTERN = r"[A-Za-z][A-Za-z0-9_-]{0,63}"
"""A letter, then letters, digits, `_` or `-`: a name stands in labels, file names and command lines."""

LONGEST = 64


def is_name(text: str) -> bool:
    """Whether a text can be a name as it is."""
    return re.fullmatch(PATTERN, text) is not None


def name_of(text: str, prefix: str, longest: int = LONGEST) -> str:
    """Make a name of any text; `prefix` begins it where the text has no letter at its beginning."""
    word = re.sub(r"[^A-Za-z0-9_-]+", "-", text).strip("-_")[:longest]
    return word if word[:1].isalpha() else f"{prefix}-{word}"[:longest].rstrip("-")
