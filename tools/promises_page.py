"""Which tests prove which promise: read from the marks of the tests, written to docs/promises.md.

A test says `@pytest.mark.promise("G1")`; a whole file says it in `pytestmark`. A suite of `ashep.extras.testing` is for
users and says nothing: the file of tests that collects it has a table `PROVES`. Nothing is imported, nothing collected.

    .venv/bin/python -m tools.promises_page
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SPEC = ROOT / "docs" / "SPEC.md"
PAGE = ROOT / "docs" / "promises.md"
HEAD = """# Which tests prove which promise

Each test names the promises of the [specification](SPEC.md) that do not hold where it fails, by `@pytest.mark.promise`.
This page is made from those marks (`.venv/bin/python -m tools.promises_page`). A file without the name of a test stands
for all that is in it.
"""
_STATEMENT = re.compile(r"^- \*\*([A-Z]\d+)\*\* (.*(?:\n  .*)*)", re.M)
_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Unreadable(Exception):
    """A mark stands where it is not read, or names what is no test."""


def statements(text: str) -> dict[str, str]:
    """Give the promises of a specification, in its order, with their words."""
    found = _STATEMENT.findall(text)
    assert len(found) == len({number for number, _ in found}) == len(re.findall(r"^- \*\*[A-Z]", text, re.M))
    return dict(found)


def proofs(root: Path = ROOT) -> dict[str, list[str]]:
    """Give the tests of each promise that some test names: `file::test`, or a file alone."""
    found = dict[str, list[str]]()
    for path in [path for folder in ("tests", "chaos") for path in sorted((root / folder).rglob("*.py"))]:
        text = path.read_text()
        if path.name == "conftest.py" or not ("mark.promise" in text or "PROVES" in text):
            continue
        name = path.relative_to(root).as_posix()
        for test, ids in _marks(root, name, ast.parse(text)):
            if not path.name.startswith("test_"):
                raise Unreadable(f"{name} is no file of tests")
            for one in ids:
                found.setdefault(one, []).append(f"{name}::{test}" if test else name)
    return {one: sorted(set(tests)) for one, tests in found.items()}


def page(text: str, tests: dict[str, list[str]]) -> str:
    """Write the page: the promises below the headings of the specification."""
    lines = [HEAD]
    for section in re.split(r"^(?=## )", text, flags=re.M):
        if numbers := list(statements(section)):
            title = section.partition("\n")[0].strip("# ")
            lines.append(f"## [{title}](SPEC.md#{title.lower().replace(' ', '-')})\n")
            for number in numbers:
                proven = [f"    - `{one}`" for one in tests.get(number, [])]
                lines.append("\n".join([f"- **{number}**", *proven]))
            lines.append("")
    return "\n".join(lines)


def _marks(root: Path, name: str, module: ast.Module) -> Iterator[tuple[str, list[str]]]:
    """Give what a file's tests name; the test is empty where the whole file does."""
    read, left_out = 0, {test for test, mark in _placed(module) if ast.unparse(mark) == "pytest.mark.full"}
    for test, mark in _placed(module):
        if (ids := _ids(mark)) is None:
            continue
        if test in left_out:
            raise Unreadable(f"{name}::{test} names a promise, and the ordinary run leaves it out")
        if test and not re.match(r"test_|Test", test.rpartition("::")[2]):
            raise Unreadable(f"{name}::{test} is no test")
        read += 1
        yield test, ids
    stand = [node for node in ast.walk(module) if isinstance(node, ast.Attribute) and node.attr == "promise"]
    if len(stand) != read:
        raise Unreadable(f"{name}: a mark is not at a test, a class of tests or in pytestmark, or has no plain words")
    if table := _table(module):
        strangers = set(table) - _collected(root, module)
        if strangers:
            raise Unreadable(f"{name}: PROVES names what it does not collect: {sorted(strangers)}")
        yield from table.items()


def _placed(module: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Give the marks of a file with what they stand at."""
    for node in module.body:
        match node:
            case ast.Assign(targets=[ast.Name(id="pytestmark")], value=ast.List(elts=marks)):
                yield from (("", mark) for mark in marks)
            case ast.Assign(targets=[ast.Name(id="pytestmark")], value=mark):
                yield "", mark
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from ((node.name, mark) for mark in node.decorator_list)
            case ast.ClassDef():
                yield from ((node.name, mark) for mark in node.decorator_list)
                inner = (one for one in node.body if isinstance(one, _Function))
                yield from ((f"{node.name}::{one.name}", mark) for one in inner for mark in one.decorator_list)
            case _:
                pass


def _ids(mark: ast.expr) -> list[str] | None:
    """Give the promises of `pytest.mark.promise(...)`; of anything else, none."""
    if not isinstance(mark, ast.Call) or ast.unparse(mark.func) != "pytest.mark.promise":
        return None
    words = [one.value for one in mark.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    return words if words and len(words) == len(mark.args) else None


def _table(module: ast.Module) -> dict[str, list[str]]:
    """Give the table of a file that collects a suite."""
    for node in module.body:
        match node:
            case ast.AnnAssign(target=ast.Name(id="PROVES"), value=ast.expr() as value):
                return {test: list(ids) for test, ids in ast.literal_eval(value).items()}
            case _:
                pass
    return {}


def _collected(root: Path, module: ast.Module) -> set[str]:
    """Give the tests that a file takes from the suites of ashep, and those which these take from others."""
    found = set[str]()
    for node in module.body:
        match node:
            case ast.ImportFrom(module=str(source), names=[ast.alias(name="*")]):
                suite = ast.parse((root / f"{source.replace('.', '/')}.py").read_text())
                found |= {one.name for one in suite.body if isinstance(one, _Function)} | _collected(root, suite)
            case _:
                pass
    return found


if __name__ == "__main__":
    PAGE.write_text(page(SPEC.read_text(), proofs()))
