"""The picture of the rooms in docs/architecture.md, drawn from the imports and the charters.

    .venv/bin/python -m tools.rooms_page

A room is a package, or a module of the root. It imports what it points to, if for types alone; what those know
in turn is not drawn again. The floors are those of the contracts in pyproject.toml.
"""

import ast
import re
import textwrap
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- rooms: begin (made by `python -m tools.rooms_page`) -->", "<!-- rooms: end -->"
WIDTH, INDENT = 118, 13

Graph = Mapping[str, set[str]]


def imports(root: Path = ROOT) -> Iterator[tuple[list[str], list[str]]]:
    """Give who imports whom below `ashep`, as the parts of their names."""
    for path in sorted((root / "ashep").rglob("*.py")):
        importer = [*path.relative_to(root / "ashep").with_suffix("").parts]
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.ImportFrom(module=str(module), names=names) if module.partition(".")[0] == "ashep":
                    parts = module.split(".")[1:]
                    yield from ((importer, [*parts, name.name]) for name in names)
                case ast.Import(names=names):
                    found = (name.name.split(".") for name in names)
                    yield from ((importer, parts[1:]) for parts in found if parts[0] == "ashep")
                case _:
                    pass


def floors(root: Path = ROOT) -> dict[str, list[list[str]]]:
    """Give the rooms of each floor, from above, of the whole (`layers`) and of the core (`rooms`)."""
    contracts = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    return {
        one["id"]: [re.split(r" *[|:] *", layer) for layer in one["layers"]]
        for one in contracts
        if one["type"] == "layers"
    }


def graph(within: list[str], rooms: set[str], root: Path = ROOT) -> dict[str, set[str]]:
    """Give what each of these rooms imports of the others."""
    known = {room: set[str]() for room in rooms}
    depth = len(within)
    for importer, imported in imports(root):
        if importer[:depth] == imported[:depth] == within and len(importer) > depth < len(imported):
            one, other = importer[depth], imported[depth]
            if one != other and one in rooms and other in rooms:
                known[one].add(other)
    return known


def reduced(whole: Graph) -> dict[str, set[str]]:
    """Leave out what a room knows through another one that it knows; in a circle, which is refused, nothing is."""
    reach = {room: _reach(whole, room) for room in whole}
    return {
        room: known - set[str]().union(*(reach[other] for other in known if room not in reach[other]))
        for room, known in whole.items()
    }


def _reach(whole: Graph, room: str) -> set[str]:
    found, left = set[str](), [*whole[room]]
    while left:
        if (one := left.pop()) not in found:
            found.add(one)
            left += whole[one]
    return found


def sentence(place: Path) -> str:
    """The first sentence of what a package, or a module, says of itself."""
    path = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    said = " ".join((ast.get_docstring(ast.parse(path.read_text())) or "").split())
    return re.split(r"(?<=\.)\s", said)[0]


def picture(root: Path = ROOT) -> str:
    """Draw all floors, each room with its first sentence and its arrows."""
    plan, ashep = floors(root), root / "ashep"
    whole = reduced(graph([], {room for floor in plan["layers"] for room in floor}, root))
    core = reduced(graph(["core"], {room for floor in plan["rooms"] for room in floor}, root))
    order = [room for floor in plan["layers"] for room in floor]
    inner = [room for floor in plan["rooms"] for room in floor]
    lines: list[str] = []
    for floor in plan["layers"]:
        lines.append("-" * WIDTH)
        for room in floor:
            lines += _room(room, sentence(ashep / room), [one for one in order if one in whole[room]])
            if room == "core":
                for one_floor in plan["rooms"]:
                    lines.append("    " + "- " * ((WIDTH - 5) // 2) + "-")
                    for one in one_floor:
                        known = [other for other in inner if other in core[one]]
                        lines += _room(one, sentence(ashep / room / one), known, "    ")
                continue
            packages = sorted(path.parent for path in (ashep / room).glob("*/__init__.py"))
            for package in packages:
                lines += _room(f"/{package.name}", sentence(package), [], "    ")
    return "\n".join([*lines, "-" * WIDTH])


def _room(name: str, said: str, known: list[str], indent: str = "") -> list[str]:
    head = f"{indent}{name:<{INDENT}}"
    lines = textwrap.wrap(said, WIDTH, initial_indent=head, subsequent_indent=" " * len(head))
    if known:
        arrows = " " * len(head) + "-> "
        lines += textwrap.wrap(" ".join(known), WIDTH, initial_indent=arrows, subsequent_indent=" " * len(arrows))
    return [line.rstrip() for line in lines]


def redrawn(page: str, root: Path = ROOT) -> str:
    """Give the page with the picture as it is now."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError("the page lacks the lines between which the picture stands")
    return f"{before}{BEGIN}\n```text\n{picture(root)}\n```\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(redrawn(PAGE.read_text()))
