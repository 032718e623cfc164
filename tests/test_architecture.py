"""The map is true: the picture of the rooms is fresh, and every file and function that the page names is there."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tools import rooms_page

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "architecture.md"
NAMED = re.compile(r"`((?:[\w.]+/)*[\w.]+\.(?:py|md|toml|yaml|j2)|(?:[\w.]+/)+)(?::([\w.]+))?`")
TOPS = ("ashep", "tests", "chaos", "bench", "tools", "docs", "requirements")


def place(name: str) -> Path:
    """A path of the page: beneath `ashep/`, or beneath the top."""
    top = name.split("/")[0]
    return ROOT / name if top in TOPS or (ROOT / name).is_file() else ROOT / "ashep" / name


@cache
def defined(path: Path) -> set[str]:
    """What a module defines, `Class.member` included."""
    found = set[str]()
    for node in ast.parse(path.read_text()).body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.ClassDef(name=name, body=body):
                members = (one.name for one in body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))
                fields = (
                    one.target.id for one in body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
                )
                found |= {name, *(f"{name}.{member}" for member in (*members, *fields))}
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
            case _:
                pass
    return found


def missing(page: str) -> list[str]:
    """What a page names and is not there."""
    found: list[str] = []
    for name, symbol in NAMED.findall(page):
        path = place(name)
        if not path.exists() or (symbol and symbol not in defined(path)):
            found.append(f"{name}:{symbol}" if symbol else name)
    return found


def test_everything_that_the_map_names_is_there() -> None:
    page = PAGE.read_text()
    assert len(NAMED.findall(page)) > 80
    assert missing(page) == []


@pytest.mark.parametrize(
    "named",
    ["`core/nowhere.py`", "`core/runs/turns.py:nothing`", "`nowhere/`", "`core/facts/runs.py:RunEnded.nothing`"],
)
def test_what_is_not_there_is_found(named: str) -> None:
    assert missing(f"See {named}.") == [named.strip("`")]


def test_every_name_with_a_colon_is_looked_at() -> None:
    said = re.findall(r"`([\w/.]+\.py:[^`]*)`", PAGE.read_text())
    assert said
    assert [one for one in said if not NAMED.fullmatch(f"`{one}`")] == []


# --- the picture --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_picture_is_fresh() -> None:
    page = PAGE.read_text()
    assert rooms_page.redrawn(page) == page, "run `.venv/bin/python -m tools.rooms_page`"


@pytest.mark.slow
def test_the_picture_shows_every_room() -> None:
    picture = rooms_page.picture()
    for indent, folder in (("", "ashep"), ("    ", "ashep/core"), ("    /", "ashep/adapters")):
        rooms = [path.parent.name for path in (ROOT / folder).glob("*/__init__.py")]
        assert len(rooms) >= 5
        assert [room for room in rooms if not re.search(rf"^{indent}{room} ", picture, re.M)] == []
    assert re.search(r"^    reconcile .*\n(?: +\w.*\n)* +-> runs$", picture, re.M)


def test_arrows_are_the_imports_that_no_other_room_stands_for() -> None:
    whole = {"a": {"b", "c"}, "b": {"c"}, "c": set[str](), "d": {"c", "a"}}
    assert rooms_page.reduced(whole) == {"a": {"b"}, "b": {"c"}, "c": set(), "d": {"a"}}
    circle = {"a": {"b"}, "b": {"a", "c"}, "c": set[str]()}
    assert rooms_page.reduced(circle) == circle


def test_an_import_for_types_is_one(tmp_path: Path) -> None:
    core = tmp_path / "ashep/core"
    for name, text in (("state", "X = 1"), ("facts", "if 0:\n    from ashep.core.state import X"), ("policy", "")):
        (core / name).mkdir(parents=True)
        (core / name / "__init__.py").write_text(text)
    known = rooms_page.graph(["core"], {"state", "facts", "policy"}, tmp_path)
    assert known == {"state": set(), "facts": {"state"}, "policy": set()}


# --- AGENTS.md ----------------------------------------------------------------------------------------------------


def test_the_guide_for_agents_names_every_room() -> None:
    guide = (ROOT / "AGENTS.md").read_text()
    words = set(re.findall(r"\w+", guide.partition("## Where things are")[2].partition("\n## ")[0]))
    rooms = {path.parent.name for top in ("ashep", "ashep/core") for path in (ROOT / top).glob("*/__init__.py")}
    assert len(rooms) > 20
    assert rooms - words == set()
