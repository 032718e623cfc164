"""Text from outside, made fit to be shown.

Issue texts, comments and answers of agents are other people's data. Before one reaches a terminal, a prompt or the
tracker it loses what could act on the reader's screen instead of being read.
"""

import re

_UNSHOWABLE = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters of ASCII and Latin-1, all but tab and newline
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional marks, embeddings, overrides and isolates
    "\ud800-\udfff"  # surrogates, which no UTF-8 file can hold
    "]"
)


def clean(text: str) -> str:
    """Give the text without control and bidirectional characters; newline and tab stay."""
    return _UNSHOWABLE.sub("", text)
