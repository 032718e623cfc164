"""Colours of a user's own for the page: `page/colours.css` is read line by line, and nothing else of CSS is taken.

Who writes the file must not be able to hide what the page says: texts keep their contrast with what they stand on.
"""

import re
from itertools import product
from pathlib import Path

from ashep.config.findings import Finding, read_bytes
from ashep.config.yaml_tree import YamlUnreadable, decode

FILE = Path("page") / "colours.css"
_DEFAULTS = """
paper ffffff 14171c  soft f4f5f7 1d2127  ink 15181d e8eaee  quiet 565c66 a4abb6  line d5d9df 363c46  focus 12288d 8fb3ff
yes 0b5f41 0d7a55  person 9f5f08 f3b417  running 12288d 295af5  time 396986 8facc1  parked 78050c df0f30
closed 11a06b 2bf1c3  not_eligible 8d8f99 747576  add 0b5f41 2bf1c3  del 78050c ff8a94
"""
DEFAULTS = {name: (f"#{light}", f"#{dark}") for name, light, dark in re.findall(r"(\w+) (\w{6}) (\w{6})", _DEFAULTS)}
"""The page's own colours, light and dark (`web/src/page.css`)."""

TEXT, SIGN = 4.5, 3.0  # contrasts that WCAG 2.2 asks for at its level AA
PAIRS = (
    *((*pair, TEXT) for pair in product(("ink", "quiet", "add", "del"), ("paper", "soft"))),
    ("ink", "line", TEXT), ("paper", "person", TEXT), ("#ffffff", "yes", TEXT),
    *((name, "paper", SIGN) for name in ("focus", "running", "time", "parked", "closed", "not_eligible")),
)  # fmt: skip
"""Texts and signs, their grounds, and the contrast that each needs."""

ROOT, DARK, END = ":root {", "@media (prefers-color-scheme: dark) {", "}"
_COLOUR = re.compile(r"--(\w+): *(#[0-9A-Fa-f]{6});")
_FORMAT = (
    f"expected `--NAME: #rrggbb;` in `{ROOT}`, or in that within `{DARK}` for the dark; each has a line of its own"
)


def contrast(*colours: str) -> float:
    """Give the contrast of two colours as WCAG counts it: 1 to 21."""
    parts = [[int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)] for colour in colours]
    linear = [[part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in rgb] for rgb in parts]
    low, high = sorted(0.2126 * red + 0.7152 * green + 0.0722 * blue for red, green, blue in linear)
    return (high + 0.05) / (low + 0.05)


def read_colours(folder: Path) -> tuple[dict[str, list[str]], list[Finding]]:
    """Give the colours that differ from the page's, light and dark, or all that is wrong: then there are none."""
    file, findings = folder / FILE, list[Finding]()
    colours, lines = {name: [*pair] for name, pair in DEFAULTS.items()}, dict[str, int]()
    blocks, number = list[str](), 1

    def refuse(line: int | None, key: str | None, message: str) -> None:
        findings.append(Finding("page-colours", str(file), line, key, message, "warning"))

    try:
        content = read_bytes(file)
        css = decode(content or b"")
    except YamlUnreadable as error:
        refuse(error.problem.line, None, error.problem.message)
        return {}, findings
    if content is None:
        refuse(None, None, "cannot be read: there is no such file")
    for number, line in enumerate(map(str.strip, css.splitlines()), 1):
        colour = _COLOUR.fullmatch(line) if blocks[-1:] == [ROOT] else None
        if colour is not None and colour[1] in colours:
            colours[colour[1]][DARK in blocks] = colour[2].lower()
            lines[colour[1]] = number
        elif colour is not None:
            refuse(number, colour[1], f"the page has no such colour; it has {', '.join(colours)}")
        elif (line == ROOT and ROOT not in blocks) or (line == DARK and not blocks):
            blocks.append(line)
        elif line == END and blocks:
            blocks.pop()
        elif line and not re.fullmatch(r"/\*((?!\*/).)*\*/", line):
            refuse(number, None, _FORMAT)
    if blocks:
        refuse(number, None, f"`{END}` is missing")
    for (name, ground, least), (scheme, light) in product(PAIRS, enumerate(("light", "dark"))):
        pair = [colours[colour][scheme] if colour in colours else colour for colour in (name, ground)]
        if (ratio := contrast(*pair)) < least:
            words = f"{pair[0]} on {ground} {pair[1]}, in the {light}, has a contrast of {ratio:.2f}; it needs {least}"
            refuse(max(lines.get(name, 1), lines.get(ground, 1)), name, f"{words}: choose others")
    differ = {name: pair for name, pair in colours.items() if pair != [*DEFAULTS[name]]}
    return ({} if findings else differ), findings
