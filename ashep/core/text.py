"""Text from outside, made fit to be shown.

Issue texts, comments and answers of agents are other people's data. Before one reaches a terminal, a prompt or the
tracker it loses what could act on the reader's screen instead of being read, and what nobody sees: a model reads words
that are written in tags or variation selectors, while a person who looks at the same text sees none.

The ranges stand here: those of `unicodedata` are others with each Python, and a replay is exact.
"""

import re
from collections.abc import Sequence

_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
"""Control characters of ASCII and Latin-1, all but tab and newline."""

_INVISIBLE = (
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # soft hyphen, fillers, what selects a form in Mongolian
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f"  # without a width; bidirectional marks, embeddings, overrides, isolates
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"  # fillers, variation selectors, the byte order mark, annotations
    "\ud800-\udfff"  # surrogates, which no UTF-8 file can hold
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"  # what lays out hieroglyphs, shorthand, music
    "\U000e0000-\U000e0fff"  # tags and more variation selectors, with those that are not assigned yet
)
"""Unicode's Default_Ignorable_Code_Point, and format characters without a shape (some of Arabic have one)."""

_EMOJI = (
    "[\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u21ff\u231a-\u23ff\u24c2\u25aa-\u27bf\u2934\u2935\u2b05-\u2b55"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
"""What may be the base of an emoji, and the tones of skin. Nothing of it is invisible, nor of the next: what stays does
not hang on what goes."""

_JOINED = "[\u0600-\u061b\u061d-\u08ff\u0900-\u0dff\ufb50-\ufdff\ufe70-\ufefc]"
"""Letters of Arabic and its neighbours, and of Indic scripts: a joiner between two of them changes how they look."""

_FLAGS = tuple(
    "\U0001f3f4" + "".join(chr(0xE0000 + ord(letter)) for letter in f"{region}\x7f")
    for region in ("gbeng", "gbsct", "gbwls")
)
"""The flags of England, Scotland and Wales, the only ones that are written in tags."""

_OF_FLAGS = "|".join(f"(?<={flag[:end]}){flag[end:]}" for flag in _FLAGS for end in range(2, len(flag) + 1))

_STAYING = (
    f"(?<={_EMOJI}[\ufe0e\ufe0f])",  # as text, or as a picture
    "(?<=[0-9#*]\ufe0f)\u20e3",  # a key
    f"(?:(?<={_EMOJI}\u200d)|(?<={_EMOJI}\ufe0f\u200d)){_EMOJI}",
    f"(?<={_JOINED}[\u200c\u200d]){_JOINED}",
    f"(?<=[\U000e0061-\U000e007f])(?:{_OF_FLAGS})",
)
"""Where an invisible character stays, asked behind it."""

_UNSHOWABLE = re.compile(f"[{_CONTROLS}{_INVISIBLE}](?!{'|'.join(_STAYING)})")
_OF_ASCII = re.compile("[\x00-\x08\x0b-\x1f\x7f]")


def clean(text: str) -> str:
    """Give the text without control, bidirectional and invisible characters; newline and tab stay.

    Joiners and selectors stay where they make an emoji, or join letters of scripts that are written so.
    """
    return (_OF_ASCII if text.isascii() else _UNSHOWABLE).sub("", text)


def aligned(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Give the lines of a table, its heading first; cells may be foreign text. Without rows there is none."""
    lines = [[" ".join(clean(cell).split()) for cell in row] for row in rows]
    if not lines:
        return []
    widths = [max(map(len, cells)) for cells in zip(columns, *lines, strict=True)]
    padded = ([*map(str.ljust, line[:-1], widths), line[-1]] for line in (list(columns), *lines))
    return ["  ".join(line).rstrip() for line in padded]


def list_names(names: Sequence[str], most: int) -> str:
    """Give so many of these in a sentence, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


_CALL = re.compile(r"@(?=\S)")


def calling_nobody(text: str) -> str:
    """Give the text so that no forge and no chat reads the name of somebody in it who is to be called: `@all`."""
    return _CALL.sub("@ ", text)


def invisible(text: str) -> int:
    """Count what `clean` takes out of a text that nobody sees: all of it but control characters."""
    return 0 if text.isascii() else sum(one > "\x9f" for one in _UNSHOWABLE.findall(text))
