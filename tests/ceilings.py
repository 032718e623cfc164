"""Counters of what makes the code hard to read, a line a package, with ceilings that may only fall.

`python -m tests.ceilings` counts, and lowers the ceilings in `tests/ceilings.toml`. It raises none: what a change adds
under one of these counters, it takes away elsewhere in the same package.
"""

import ast
import re
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILE = Path(__file__).with_suffix(".toml")

_VAGUE = """
one ones other others this that these those it its it they them who whom whose what which whoever why where when how
found said known told seen own asked made kept left given taken held shown wanted begun done gone drawn named
called passed meant lost stood worked looked needed written
at of on to by behind beside before after within without into over off out up down here there now then again
"""
VAGUE = frozenset(_VAGUE.split())
"""Pronouns, participles and particles: as the whole name of a variable or a function they name no thing."""
FOREIGN = re.compile(
    r"\b(anew|beside|whoever|whomever|is told|are told|was told|is said|are said|carried out|carries out|carry out|"
    r"of ours|lets? go|stands|thereby|whence|hence|wherein|none the less|be it)\b"
)
"""Words of docstrings and comments that the field does not use."""
LONGEST_MODULE, SMALL = 600, 4  # lines
COLUMNS = ("variables", "functions", "words", "small_helpers", "long_modules", "duplicate_classes")


def package_of(path: Path) -> str:
    """Return the package that a module counts for: the folder below `ashep`, of the core the room."""
    parts = path.relative_to(ROOT / "ashep").parts
    depth = 2 if parts[0] in ("core", "adapters", "extras") and len(parts) > 2 else 1
    return "/".join(parts[:depth]) if len(parts) > 1 else "(root)"


def count() -> dict[str, Counter[str]]:
    """Count in every package."""
    counts, classes = defaultdict[str, Counter[str]](Counter), defaultdict[str, list[str]](list)
    for path in sorted((ROOT / "ashep").rglob("*.py")):
        text = path.read_text()
        tree, package = ast.parse(text), package_of(path)
        counter = counts[package]
        counter["variables"] += sum(name in VAGUE for name in _variables(tree))
        counter["words"] += len(FOREIGN.findall("\n".join(_prose(tree, text))))
        counter["long_modules"] += text.count("\n") > LONGEST_MODULE
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        counter["functions"] += sum(function.name.strip("_") in VAGUE for function in functions)
        counter["small_helpers"] += sum(_is_small_helper(function, text) for function in functions)
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                classes[node.name].append(package)
    for packages in classes.values():
        for package in packages[1:]:
            counts[package]["duplicate_classes"] += 1
    return counts


def _variables(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(ctx=ast.Store()):
                yield node.id.strip("_")
            case ast.arg():
                yield node.arg.strip("_")
            case _:
                pass


def _prose(tree: ast.AST, text: str) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value
    yield from re.findall(r"(?m)(?:^|\s)# (.*)$", text)


def _is_small_helper(function: ast.FunctionDef | ast.AsyncFunctionDef, text: str) -> bool:
    """Whether a private function has a body of few lines, and one caller."""
    body = function.body[ast.get_docstring(function) is not None :]
    if not function.name.startswith("_") or function.name.startswith("__") or function.decorator_list or not body:
        return False
    lines = (body[-1].end_lineno or 0) - body[0].lineno + 1
    return lines <= SMALL and len(re.findall(rf"\b{function.name}\b", text)) == 2


def ceilings() -> dict[str, dict[str, int]]:
    """Read the ceilings; a package without a line has none of all this."""
    return tomllib.loads(FILE.read_text()) if FILE.exists() else {}


def lower() -> None:
    """Write the counts where they are lower than the ceilings, or where there is none."""
    known, lines = ceilings(), list[str]()
    for package, counter in sorted(count().items()):
        old = known.get(package, {})
        values = {column: min(counter[column], old.get(column, counter[column])) for column in COLUMNS}
        if any(values.values()):
            lines.append(
                f'"{package}" = {{ {", ".join(f"{column} = {value}" for column, value in values.items())} }}\n'
            )
    FILE.write_text("# made by `python -m tests.ceilings`, which lowers these and raises none\n" + "".join(lines))


if __name__ == "__main__":
    lower()
    total = Counter[str]()
    for counter in count().values():
        total += counter
    sys.stdout.write(f"{dict(total)}\n")
