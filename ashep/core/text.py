"""Text from outside, made fit to be shown.

Issue texts, comments and answers of agents are other people's data. Before one reaches a terminal, a prompt or the
tracker it loses what could act on the reader's screen instead of being read, and what nobody sees: a model reads words
that are written in tags or variation selectors, while a person who looks at the same text sees none.

The ranges stand here: those of `unicodedata` are others with each Python, and a replay is exact.
"""

import json
import re
from collections.abc import Iterable, Sequence
from functools import cache

_CONTROLS = "\x00-\x08\x0b-\x1f\x7f-\x9f"
"""Control characters of ASCII and Latin-1, all but tab and newline."""

_INVISIBLE = (
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # soft hyphen, fillers, what selects a form in Mongolian
    "\u200b-\u200f\u2800\u202a-\u202e\u2060-\u206f"  # without a width; bidirectional marks and the like
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffc"  # fillers, selectors, the byte order mark, annotations, an object
    "\ud800-\udfff"  # surrogates, which no UTF-8 file can hold
    "\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"  # what lays out hieroglyphs, shorthand, music
    "\U000e0000-\U000e0fff"  # tags and more variation selectors, with those that are not assigned yet
)
"""Unicode's Default_Ignorable_Code_Point, format characters without a shape (some of Arabic have one), and two symbols
that nobody sees: Braille's blank, and what stands for an object."""

_UNASSIGNED = """
oo 2 6 4 7 1 1 1 k 1 b1 1 12 1 1k 1 1l 6 r 4 6 b 7i 1 1o 2 2t e 1n 2 1d 2 f 1 s 2 1 1 b 5 y 5 6l 1 8 2 2 2 m 1 7 1 1 3
4 2 9 2 2 2 4 8 1 4 2 1 5 2 p 2 3 1 6 4 2 2 m 1 7 1 2 1 2 1 2 2 1 1 5 4 2 2 3 3 1 7 4 1 1 7 h a 3 1 9 1 3 1 m 1 7 1 2 1
5 2 a 1 3 1 3 2 1 f 4 2 c 7 7 1 3 1 8 2 2 2 m 1 7 1 2 1 5 2 9 2 2 2 3 5 5 4 2 1 5 2 i a 2 1 6 3 3 1 4 3 2 1 1 1 2 3 2 3
3 3 c 4 5 3 3 1 4 2 1 6 1 e l 5 d 1 3 1 n 1 g 2 9 1 3 1 4 7 2 1 3 1 2 2 4 2 a 7 m 1 3 1 n 1 a 1 5 2 9 1 3 1 4 7 2 5 3 1
4 2 a 1 3 c d 1 3 1 1f 1 3 1 6 4 g 2 q 1 3 1 i 3 o 1 9 1 1 2 7 3 1 4 6 1 1 1 8 6 a 2 3 c 1m 4 t 11 2 1 1 1 5 1 o 1 1 1
n 2 5 1 1 1 7 1 a 2 4 w 20 1 10 4 13 1 10 1 f 1 d 11 5i 1 1 5 1 2 ah 1 4 2 7 1 1 1 4 2 15 1 4 2 x 1 4 2 7 1 1 1 4 2 f 1
1l 1 4 2 1v 2 w 3 q 6 2e 2 6 2 il 3 2h 7 m 9 o 9 k c d 1 3 1 2 c 2m 2 a 6 a 6 q 6 2h 7 17 5 1y a v 1 c 4 c 4 1 3 16 2 5
b 18 4 q 6 b 3 1q 2 1t 1 t 2 b 6 a 6 e 2 1t f 25 1 4m 8 1o 3 f 3 1q 5 17 2 b 8 17 5 eu 2 6 2 12 2 6 2 8 1 1 1 1 1 1 1 v
2 1h 1 f 1 e 2 6 1 j 2 3 1 9 1 2t 1 c 2 29 b x f 3w 4 ii m b l 1ec 2 am 5 19 1 1 5 1 2 1k 7 2 e o 9 7 1 7 1 7 1 7 1 7 1
7 1 7 1 7 1 3i 2 4 s q 1 2h c 5y q 28 1 2e 2 2v 5 17 1 2m 1 2e 9 1c 1 mlp 3 1j 9 9o k 54 8 66 4 1 e 1o 3 a 6 1k 8 1y 8
c 6 38 b u 3 26 1 b 4 x 1 1j 9 e 2 a 2 2v o s a 6 2 6 2 6 9 7 1 7 1 1q 2 3i 2 a 6 8mc c n 4 1d 4 6su 2 2y 12 7 c 5 5 q
1 5 1 1 1 2 1 2 1 i2 w 16 6 1f 1 j 1 4 4 5 1 3r 2 1 1 5a 3 6 2 6 2 6 2 3 3 7 1 7 a 5 2 c 1 q 1 j 1 2 1 f 2 e y 3f 5 3 4
19 3 2g 1 d 3 1 1b 1a 3m t 3 1d f s 4 10 9 u 5 17 5 u 1 11 4 e 16 4e 2 a 6 10 4 10 4 14 8 1g b c 1 f 1 7 1 2 1 b 1 f 1
7 1 2 3 1g c 8n 9 m a 8 o 6 1 16 1 e 1s 6 2 1 1 18 1 2 3 1 2 n 1 20 8 9 1c j 1 2 5 x 3 r 5 r 12 1k 4 k 2 1e 1 2 5 8 1 3
1 t 2 3 4 a 7 9 7 1s w 13 4 c 9 1i 3 t 2 r 5 q 7 4 c 7 28 21 1j 1f d 1f 7 1a 8 a 6 12 3 t 8 2 5s v 1 16 1 3 2 2 g 6 1
12 1 1k 8 16 m q 12 s k n 9 26 4 10 9 1w a 1 2 p 7 a 6 1h 1 i 8 13 9 2o 1 k b i 1 1b 1q 7 1 1 1 4 1 f 1 b 6 1n 5 a 6 4
1 8 2 2 2 m 1 7 1 2 1 5 1 a 2 2 2 3 2 1 6 1 5 7 2 7 3 5 b a 1 1 2 1 1 12 1 a 1 1 2 1 1 4 1 a 1 2 8 2 t 2k 1 5 u 20 8 a
4m 1i 2 12 y 1x b a 6 d j 1m 6 a 6 k s r 2 f 4 n 55 1o 2s 2b c 8 2 1 2 8 1 2 1 u 1 2 2 c 9 a 1y 8 2 1a 2 b r 20 8 2b d
21 7 b 2d 8 2g y e a 6 9 1 19 1 e a t 3 w 2 m 1 e 21 7 1 2 1 18 3 1 1 2 1 9 8 a 6 6 1 2 1 11 1 2 1 6 7 a 6 18 4 a 6 2
6m p 7 h 1 15 3 t 2d 1 f 1e d pn 2u 90 c 8n 1s9 2r d uu a 32z 5 g7 5a1 1m 1c6 ft 7 v 1 a 4 29 1 a 6 u 2 6 a 1y a a 1 7
1 l 5 j c0 1m 5i 2j 5 p 2 p 18 23 4 1l 7 h 1s 5 b 7 9 5p7 10 y 2n 37 d pe e 1f 5y5 4 1 7 1 2 1 89 9 1 t 3 2 1 e 5 7 b0
1s4 2z 5 d 3 9 7 a 2 8 318 71 3 c4 6 n 1 3 8 x 2 1a 2 n 9 38 1o 6u a 92 a 1e 1q k c k c 2f 9 p 3r 2d 1 1z 1 2 2 1 2 2 2
4 1 c 1 1 1 7 1 1t 1 4 2 8 1 7 1 s 1 4 1 5 1 1 3 7 1 9h 1 84 2 ji f 5 1 f 28 t rn 3m e 7 1i 1m 1 h 2 7 1 2 1 5 5 1q x 1
34 19 3 e 2 a 4 2 8w v h 1m 5 1 cw 16 5y 17 4 1 5c v 1 m 8 2 68 7 1 4 1 2 1 f 1 5h 2 g 15 24 4 a 4 2 lt 1w 24 1p 5e 4 1
r 1 2 1 1 2 1 1 a 1 4 1 1 1 1 6 1 4 1 1 1 1 1 1 3 1 2 1 1 2 1 1 1 1 1 1 1 1 1 1 2 1 1 2 4 1 7 1 4 1 4 1 1 1 a 1 h 5 3 1
5 1 h 1g 2 7i 18 4 2s c f 2 f 1 f 1 11 a 4v 1j t d 18 4 9 7 2 e 6 4a re 2 h 3 d 3 64 4 c 4 s 4 1k 8 a 6 14 8 u 2 c 4 2
e 9 13 9k 8 e 2 d 3 1z 1 1 3 i 1 d 3 c 5 43 1 2v sl wyo w 3dr 1 4ge 2 5rl f ha 1wi f2 15u 3t7 5 6ju upy 8qo e2f4
"""
"""Runs that no character has in Unicode 18.0, below plane 14: in base 36, how far each begins behind the last, and its
length."""


def _runs() -> list[tuple[int, int]]:
    runs, end, words = list[tuple[int, int]](), 0, [int(word, 36) for word in _UNASSIGNED.split()]
    for gap, length in zip(words[::2], words[1::2], strict=True):
        runs.append((end + gap, end + gap + length - 1))
        end += gap + length
    return [*runs, (0xE1000, 0x10FFFF)]  # behind the tags; planes 15 and 16 are for private use


@cache
def _nobodys() -> re.Pattern[str]:
    """Fit what shows as no word: each machine has a box, a blank or a sign of its own for it.

    It is compiled for the first text that is not ASCII.
    """
    low, high = (
        "".join(
            f"{re.escape(chr(first))}-{re.escape(chr(last))}" for first, last in _runs() if (last < 0x10000) is is_low
        )
        for is_low in (True, False)
    )
    astral = f"(?=[\U00010000-\U0010ffff])[{high}]"  # few are looked up in it, which takes long
    return re.compile(f"(?![{_INVISIBLE}])(?:[{low}]|{astral})")


MARK = "\ufffd"
"""What stands in its place, so that a person sees where an emoji was that is newer than we."""

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

    Joiners and selectors stay where they make an emoji, or join letters of scripts that are written so. A character
    that Unicode has given to nobody, or to whoever likes to have it, becomes a mark.
    """
    return _OF_ASCII.sub("", text) if text.isascii() else _UNSHOWABLE.sub("", _nobodys().sub(MARK, text))


_HALF = re.compile(rb"\\u[dD][89a-fA-F]")


def read_json(data: bytes) -> object:
    """Read somebody else's JSON, with no text in it that a file cannot hold: half of a surrogate pair, as JavaScript
    writes where it cut a text in the midst of a character, becomes a question mark.

    Raises `ValueError` and `RecursionError`.
    """
    found: object = json.loads(data.decode("utf-8-sig", errors="replace"))
    if _HALF.search(data):
        found = json.loads(json.dumps(found, ensure_ascii=False).encode(errors="replace"))
    return found


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
    """Count what `clean` takes out of a text, or marks, that nobody sees: all of it but control characters."""
    if text.isascii():
        return 0
    marked, count = _nobodys().subn(MARK, text)
    return count + sum(char > "\x9f" for char in _UNSHOWABLE.findall(marked))


_NUMBER = re.compile(r"(#|gh-|#gh-|)([0-9]+)", re.IGNORECASE)


def issues_named(name: str, ids_known: Iterable[str]) -> list[str]:
    """Give the ids that may be meant by `#12`, `gh-12` (of a source), `12`, or a part that they end with or hold. What
    is whole, known or not, or names none, stays as it is.
    """
    ids = sorted({*ids_known})
    if name in ids or not name or any(name.startswith(f"{issue.partition('-')[0]}-") for issue in ids):
        return [name]
    if (number := _NUMBER.fullmatch(name)) is not None:
        source = r"-gh(?:-[a-z0-9-]+)?" if number[1] else ""
        return [issue for issue in ids if re.search(rf"{source}-{number[2]}$", issue)] or [name]
    word = name.casefold()
    ends = [issue for issue in ids if issue.casefold().endswith(f"-{word}")]
    return ends or [issue for issue in ids if word in issue.casefold()] or [name]
