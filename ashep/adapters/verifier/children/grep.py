"""Count the lines in which a pattern is found: `python -I -S` runs this, so that a pattern without end can be ended.

Standard input: an order as JSON. Standard output: what was found as JSON. Links are not followed.
"""

import json
import os
import re
import resource
import sys
from collections.abc import Iterator
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:  # it takes long to import
    from typing import Any

    Order = dict[str, Any]

_MEMORY = 1024**3
_SHOWN, _LONGEST = 20, 200
"""So many lines are shown, and so many characters of each."""


def expression(glob: str) -> str:
    """Read a glob as a regular expression of whole paths."""
    parts = [part for part in glob.split("/") if part not in ("", ".")]
    parts = [part for place, part in enumerate(parts) if part != "**" or parts[place - 1 : place] != ["**"]]
    last = len(parts) - 1
    found = (
        (r"(?:[^/]+/)*[^/]+" if place == last else r"(?:[^/]+/)*")
        if part == "**"
        else _name(part) + ("" if place == last else "/")
        for place, part in enumerate(parts)
    )
    return "".join(found)


def _name(part: str) -> str:
    """Read a name in a glob: `*`, `?` and `[…]`, as the shell does."""
    found, at = "", 0
    while at < len(part):
        char, at = part[at], at + 1
        negated = part.startswith("!", at)
        end = part.find("]", at + 1 + negated) if char == "[" else -1
        if char == "*":
            found += "[^/]*"
        elif char == "?":
            found += "[^/]"
        elif end > 0:
            inside = re.sub(r"[\\^\[&~|]", r"\\\g<0>", part[at + negated : end])
            found += f"(?!/)[{'^' if negated else ''}{inside}]"
            at = end + 1
        else:
            found += re.escape(char)
    return found


def files(folder: str, start: str) -> Iterator[str]:
    """Give the paths of regular files in order, only those that begin with `start`."""
    left = [""]
    while left:
        path = left.pop()
        if path and not path.endswith("/"):
            yield path
            continue
        below = list[str]()
        for entry in sorted(os.scandir(os.path.join(folder, path)), key=lambda entry: entry.name):
            inner = f"{path}{entry.name}/"
            if entry.is_dir(follow_symlinks=False):
                wanted = inner != ".git/" and (start.startswith(inner) or inner.startswith(start))
                below += [inner] if wanted else []
            elif entry.is_file(follow_symlinks=False):
                below.append(f"{path}{entry.name}")
        left += reversed(below)


def search(order: "Order") -> "Order":
    """Count lines, and say where the first of them are."""
    try:
        pattern = re.compile(order["pattern"])
    except (re.error, RecursionError, OverflowError) as error:
        return {"wrong": f"the pattern cannot be read: {error}"}
    count, looked, shown = 0, 0, list[str]()
    fits = re.compile(expression(order["glob"]), re.DOTALL)
    plain = re.match(r"[^*?\[]*", order["glob"])
    folders = (plain[0] if plain else "").rpartition("/")[0]
    names = [name for name in folders.split("/") if name not in ("", ".")]
    for path in files(order["root"], "".join(f"{name}/" for name in names)):
        if not fits.fullmatch(path):
            continue
        looked += 1
        with open(os.open(os.path.join(order["root"], path), os.O_RDONLY | os.O_NOFOLLOW), "rb") as file:
            for number, line in enumerate(file, 1):
                text = line.decode(errors="replace").rstrip("\r\n")
                if pattern.search(text):
                    count += 1
                    if len(shown) < _SHOWN:
                        shown.append(f"{path}:{number}: {text.strip()[:_LONGEST]}")
    return {"count": count, "files": looked, "shown": shown}


def _main() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    try:
        found = search(json.load(sys.stdin))
    except MemoryError:
        found = {"wrong": "a file is too large to be searched"}
    except OSError as error:
        found = {"wrong": f"a file cannot be read: {error}"}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    _main()
