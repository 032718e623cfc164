"""The documents tell the truth: every test, link, setting, command, code and number that they name is the real one."""

import ast
import importlib
import inspect
import json
import re
import shlex
import tomllib
import typing
from collections.abc import Iterator
from dataclasses import fields
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from ashep import cli, errors
from ashep.cli.commands import whole
from ashep.cli.output import BROKEN_PIPE
from ashep.config import read
from ashep.config.checks.parser import read_criteria
from ashep.core.analysis import issue_status
from ashep.core.facts.resources import RunnerSeen
from ashep.core.policy.agents import Agents
from ashep.core.policy.base_types import format_duration
from ashep.core.policy.policies import Policies
from ashep.core.policy.settings import Settings
from ashep.core.runs.run_record import RunRecord
from ashep.core.state import flow, holds, pauses
from ashep.extras.foreman.settings import ForemanSettings
from ashep.extras.simulation.probabilities import Chances
from ashep.ports import landing
from ashep.store import row_types
from ashep.views import json_types, report, status
from tests.docs_pages import Command, steps

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
SPEC = DOCS / "SPEC.md"
CODES = DOCS / "codes.md"
RECORDS = sorted((DOCS / "decisions").glob("[0-9]*.md"))
PAGES = [ROOT / "README.md", ROOT / "AGENTS.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]
PUBLISHED = [path for path in PAGES if path.is_relative_to(DOCS)]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def fences(text: str) -> Iterator[tuple[str, str]]:
    """The fenced blocks of a page: the words after the backticks, and the content."""
    for found in re.finditer(r"^```([^\n]*)\n(.*?)^```\s*$", text, re.M | re.S):
        yield found[1].strip(), found[2]


def prose(path: Path) -> str:
    """A page without its fenced blocks."""
    return re.sub(r"^```[^\n]*\n.*?^```\s*$", "", path.read_text(), flags=re.M | re.S)


def spans(path: Path) -> list[str]:
    return re.findall(r"(?<!`)`([^`\n]+)`(?!`)", prose(path))


# --- tests that are named ---------------------------------------------------------------------------------------------

ID = re.compile(r"tests/[\w/]+\.py(?:::\w+)+")


@cache
def known_tests(path: Path) -> set[str]:
    """Functions, methods and state machines of a test file, as pytest names them, parameters left out."""
    known = set[str]()
    for node in ast.parse(path.read_text()).body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name.startswith("test_"):
                known.add(name)
            case ast.ClassDef(name=name, body=body) if name.startswith("Test"):
                methods = (one.name for one in body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))
                known |= {name, *(f"{name}::{method}" for method in methods if method.startswith("test_"))}
            case ast.Assign(targets=[ast.Name(id=name)]) if name.startswith("Test"):
                known.add(name)
            case ast.ImportFrom(module=str(module), names=[ast.alias(name="*")]):  # a suite that ashep ships
                known |= known_tests(ROOT / f"{module.replace('.', '/')}.py")
            case _:
                pass
    return known


@pytest.mark.parametrize("page", [*RECORDS, DOCS / "github-events.md"], ids=name_of)
def test_every_test_that_a_page_names_exists(page: Path) -> None:
    named = set(ID.findall(page.read_text()))
    assert named
    unknown = [one for one in sorted(named) if not (ROOT / one.partition("::")[0]).is_file()]
    unknown += [
        one
        for one in sorted(named - set(unknown))
        if one.partition("::")[2] not in known_tests(ROOT / one.partition("::")[0])
    ]
    assert unknown == []


# --- sources that are cited -------------------------------------------------------------------------------------------

SOURCE = re.compile(r"\bfacts/([\w-]+\.md)((?:(?:,| and|) \d+)*)")


def test_every_source_that_is_cited_is_here_with_the_number_that_is_named() -> None:
    folders = ("ashep", "bench", "chaos", "docs", "requirements", "tests", "tools")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in {".py", ".md"}]
    texts = {path: path.read_text() for path in paths}
    assert [name_of(path) for path, text in texts.items() if re.search(r"\bdesign sections? \d", text)] == []
    found = [one for text in texts.values() for one in SOURCE.findall(text)]
    cited = {(page, number) for page, rest in found for number in re.findall(r"\d+", rest)}
    assert len(cited) > 20
    there = {
        (path.name, number)
        for path in (DOCS / "facts").glob("*.md")
        for number in re.findall(r"^(?:## |\*\*)(\d+)\. ", path.read_text(), re.M)
    }
    assert cited - there == set()
    assert {page for page, _ in found} <= {page for page, _ in there}


# --- tables of the specification --------------------------------------------------------------------------------------


def table(heading: str) -> list[list[str]]:
    """The rows of the first table below a heading of SPEC.md or codes.md."""
    _, found, below = (SPEC.read_text() + CODES.read_text()).partition(f" {heading}\n")
    assert found, f"neither page has a heading {heading!r}"
    block = re.search(r"(?:^\|.*\n)+", below, re.M)
    assert block is not None
    return [[cell.strip() for cell in line.strip("|\n").split("|")] for line in block[0].splitlines()[2:]]


def firsts(heading: str) -> set[str]:
    """What stands in backticks in the first column."""
    return {word for row in table(heading) for word in re.findall(r"`([^`]+)`", row[0])}


@cache
def core() -> list[tuple[Path, ast.Module]]:
    return [(path, ast.parse(path.read_text())) for path in sorted((ROOT / "ashep" / "core").rglob("*.py"))]


def constants(node: ast.expr) -> set[str]:
    """The codes that an expression may be: a word, one of two words, or a word with the runner's state in it."""
    match node:
        case ast.Constant(value=str(word)):
            return {word}
        case ast.IfExp(body=one, orelse=other):
            return constants(one) | constants(other)
        case ast.JoinedStr(values=[ast.Constant(value=str(head)), ast.FormattedValue()]):
            state = next(one for one in fields(RunnerSeen) if one.name == "state")
            hints = typing.get_type_hints(RunnerSeen)
            return {f"{head}{word}" for word in typing.get_args(hints[state.name]) if word != "up"}
        case _:
            return set()


def codes_of(function: str, position: int) -> set[str]:
    """The codes with which a function or a fact is called in the core."""
    calls = (node for _, tree in core() for node in ast.walk(tree) if isinstance(node, ast.Call))
    named = (call for call in calls if function in (getattr(call.func, "id", ""), getattr(call.func, "attr", "")))
    return {word for call in named if len(call.args) > position for word in constants(call.args[position])}


def codes_of_holds() -> set[str]:
    """The codes of holds; those of pauses, providers, caps and labels stand in tables."""
    (tree,) = (tree for path, tree in core() if path.name == "eligibility.py")
    pairs = (node.elts for node in ast.walk(tree) if isinstance(node, ast.Tuple) and len(node.elts) == 2)
    labels = {word for code, label in pairs if isinstance(label, ast.Attribute) for word in constants(code)}
    return {*holds.PAUSED, *holds.NO_PROVIDER, *holds.CAPS} | codes_of("Hold", 0) | labels


def test_the_codes_of_holds_are_those_of_the_core() -> None:
    assert codes_of_holds() >= {"slot", "no_agent", "runner_away"}
    assert firsts("Codes of holds") == codes_of_holds() | {"retry", "turn_unsure"}
    assert any('code: str = "retry"' in path.read_text() for path, _ in core())


def test_the_codes_of_work_that_lands_are_those_of_the_account() -> None:
    (module,) = (tree for path, tree in core() if path.name == "issue_status.py")
    (whole,) = (one for one in module.body if isinstance(one, ast.FunctionDef) and one.name == "_finishing")
    told = {word.value for word in ast.walk(whole) if isinstance(word, ast.Constant)}
    waits = {f"landing_{code}" for code in (*typing.get_args(landing.Code), "away")} - codes_of("park", 1)
    waits -= {"landing_names"}  # the work goes back to who wrote it
    told = {word for word in told if isinstance(word, str) and re.fullmatch(r"landing\w*|finishing|pull_request", word)}
    assert firsts("Codes of work that lands") == told | waits | {"verify"}
    assert {row[1].strip("`") for row in table("Codes of work that lands")} <= set(typing.get_args(issue_status.State))


@pytest.mark.parametrize(("heading", "function"), [
    ("Codes of parking", "park"),
    ("Codes of leaving an issue to people", "IssueLeft"),
    ("Codes of giving back", "IssueGivenBack"),
])  # fmt: skip
def test_the_codes_of_ends_are_those_of_the_core(heading: str, function: str) -> None:
    assert firsts(heading) == codes_of(function, 1)


def test_a_planned_run_is_withdrawn_for_the_reason_that_is_listed() -> None:
    codes = codes_of("RunWithdrawn", 2)
    assert codes == {"tree_dirty", "paused", "retry"}
    assert codes <= firsts("Codes of holds")


def test_stages_and_states_are_those_of_the_core() -> None:
    assert firsts("Stages of a flow") == set(typing.get_args(flow.Stage))
    states = {word for row in table("Stages of a flow") for word in re.findall(r"`([^`]+)`", row[2])}
    assert states == set(typing.get_args(issue_status.State)) == set(status.STATES)


def test_states_of_a_run_are_those_of_its_record() -> None:
    assert firsts("States of a run") == set(typing.get_args(RunRecord.model_fields["state"].annotation))


def test_timers_are_those_of_the_core() -> None:
    tree = next(tree for path, tree in core() if path.name == "timers.py")
    dues = next(node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == "flow_dues")
    pairs = (node.elts for node in ast.walk(dues) if isinstance(node, ast.Tuple) and len(node.elts) == 2)
    names = {first.value for first, _ in pairs if isinstance(first, ast.Constant)}
    assert firsts("Timers") == names | {pauses.TIMER}


def test_exit_codes_are_those_of_the_errors() -> None:
    kinds = (kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, errors.AshepError))
    found = {kind: kind.exit_code for kind in kinds}
    listed = {int(row[0].strip("`")): re.findall(r"`(\w+)`", row[2]) for row in table("Exit codes")}
    assert set(listed) == set(found.values()) | {0, cli.INTERRUPTED, BROKEN_PIPE}
    for code, names in listed.items():
        for name in names:
            assert found[getattr(errors, name)] == code, name


def test_fixed_times_and_bounds_are_those_of_the_code() -> None:
    rows = table("Fixed times and bounds")
    assert len(rows) > 8
    for value, _, place in rows:
        module, _, name = place.strip("`").rpartition(".")
        actual = getattr(importlib.import_module(module), name)
        unit = 1 if re.fullmatch(r"\d+", value) else None
        said = (
            str(actual)
            if unit
            else format_duration(actual if isinstance(actual, timedelta) else timedelta(seconds=actual))
        )
        assert value == said, place


def keys_of(kind: type[Any]) -> set[str]:
    return {*kind.__required_keys__, *kind.__optional_keys__}


def test_keys_of_json_are_those_of_its_types() -> None:
    assert keys_of(json_types.StatusJson) == {"daemon", "issues"}
    assert keys_of(json_types.StatusIssueJson) == firsts("Status as JSON")
    assert keys_of(row_types.VerificationJson) == firsts("Why as JSON")
    assert keys_of(json_types.UsageRowJson) == firsts("Usage as JSON")
    assert set(report.SECTIONS) == firsts("Report as JSON")
    assert all(f"| `{key}` |" in CODES.read_text() for key in keys_of(json_types.LineJson))
    daemon = CODES.read_text().partition("## Status as JSON")[2].partition("\n|")[0]
    assert [key for key in keys_of(row_types.DaemonJson) if f"`{key}`" not in daemon] == []


# --- links, blocks, commands ------------------------------------------------------------------------------------------


def slug(heading: str) -> str:
    """A heading's anchor, as GitHub and mkdocs make it for the plain headings that we write."""
    bare = re.sub(r"\[([^]]*)]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", bare.lower()).strip())


def anchors(path: Path) -> set[str]:
    return {slug(found) for found in re.findall(r"^#+ (.*)$", prose(path), re.M)}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    broken: list[str] = []
    for target in re.findall(r"(?<!!)\[[^]]*]\(([^)\s]+)\)", prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        path = (page.parent / file).resolve() if file else page
        inside = path.is_relative_to(DOCS) or page not in PUBLISHED  # the site holds docs/ and nothing else
        if not path.exists() or not inside or (anchor and anchor not in anchors(path)):
            broken.append(target)
    assert broken == []


def model_of(keys: set[str]) -> type[BaseModel] | None:
    """Which of the users' files has these keys."""
    if "policies" in keys:
        return Policies
    if "agents" in keys and keys <= set(Agents.model_fields):
        return Agents
    if keys & {"memory", "restart", "morning"}:
        return ForemanSettings
    if "runs_take" in keys:
        return Chances
    return Settings if keys & set(Settings.model_fields) else None


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_yaml_block_loads(page: Path) -> None:
    """A block that is no whole file says so after the word yaml: `title="a part of …"`."""
    for words, content in fences(page.read_text()):
        if not words.startswith("yaml") or 'title="a part of' in words:
            continue
        keys = set(re.findall(r"^([a-z_]+):", content, re.M))
        if keys == {"checks"}:
            assert read_criteria(f"```yaml\n{content}```", str(page)) is not None
            continue
        kind = model_of(keys)
        assert kind is not None, f"neither policies, agents nor config:\n{content}"
        read(kind, content, page)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_json_block_is_json(page: Path) -> None:
    for words, content in fences(page.read_text()):
        if words == "json":
            json.loads(content)


def command_lines(path: Path) -> Iterator[str]:
    """Command lines of a page: lines of shell blocks, and code in the text that begins with `ashep` or `make`."""
    yield from (step.line for step in steps(path.read_text()) if isinstance(step, Command))
    yield from spans(path)


def check_command(line: str) -> str | None:
    """Say what is wrong with an `ashep` command line; None: every command and option in it exists."""
    command: Any = whole()
    given = shlex.split(line, comments=True)[1:]
    words = iter(given[: given.index("--")] if "--" in given else given)
    for word in words:
        options = {name: one for one in command.params for name in (*one.opts, *one.secondary_opts)}
        if word.startswith("-") and word != "-":
            name = word.partition("=")[0]
            if name in {"-h", "--help"}:
                continue
            if name not in options:
                return f"{line}: {command.name} has no option {name}"
            if not options[name].is_flag and "=" not in word:
                next(words, None)
        elif hasattr(command, "commands"):
            if word not in command.commands:
                return f"{line}: there is no command {word}"
            command = command.commands[word]
        elif not any(one.param_type_name == "argument" for one in command.params):
            return f"{line}: {command.name} takes no argument"
    return None


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_that_is_shown_exists(page: Path) -> None:
    lines = [line for line in command_lines(page) if re.match(r"ashep(\s|$)", line)]
    assert [wrong for line in lines if (wrong := check_command(line))] == []


def test_every_command_that_the_program_names_exists() -> None:
    texts = [path.read_text() for path in (ROOT / "ashep").rglob("*.py")]
    named = {found for text in texts for found in re.findall(r"`(ashep [a-z][^`\n\\]*)`", text) if '"' not in found}
    lines = [re.sub(r"\{[^}]*\}", "x", line) for line in named]
    assert len(lines) > 80
    assert [wrong for line in lines if (wrong := check_command(line))] == []


def test_commands_that_do_not_exist_are_found() -> None:
    assert check_command("ashep status t-1") is not None
    assert check_command("ashep work --until-idle t-1  # a comment") is None
    assert check_command('ashep -C /tmp approve ISSUE -m "yes"') is None
    assert check_command("ashep policy check draft.yaml") is None
    for wrong in ("ashep wrok", "ashep work --until-idel", "ashep policy chekc", "ashep approve --json t-1"):
        assert check_command(wrong) is not None


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_make_target_that_is_shown_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z][\w-]*):(?!=)", (ROOT / "Makefile").read_text(), re.M))
    shown = {found[1] for line in command_lines(page) if (found := re.match(r"make ([a-z][\w-]*)", line))}
    assert shown <= targets


# --- the documents themselves -----------------------------------------------------------------------------------------


def test_the_package_shows_the_readme() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["readme"] == "README.md"


def test_readme_names_both_commands_and_every_document() -> None:
    text = (ROOT / "README.md").read_text()
    assert "make demo" in text
    assert "make test" in text
    for page in ("SPEC.md", "codes.md", "configuration.md", "cli.md", "prompts.md", "decisions/index.md"):
        assert f"(docs/{page})" in text, page


def test_each_decision_has_a_record_of_one_form() -> None:
    index = (DOCS / "decisions" / "index.md").read_text()
    assert [int(path.name[:4]) for path in RECORDS] == list(range(1, len(RECORDS) + 1))
    for path in RECORDS:
        text = path.read_text()
        headings = re.findall(r"^## (.*)$", text, re.M)
        assert headings == ["Context", "Decision", "Consequences", "How it is tested"], path.name
        assert len(text.splitlines()) <= 70, path.name
        title = re.match(r"# \d+\. (.*)\n", text)
        assert title is not None, path.name
        assert f"[{title[1]}]({path.name})" in index, path.name


def test_what_the_page_on_security_names_is_there() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)`", (DOCS / "security.md").read_text())
    assert len(named) > 20
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_the_glossary_is_in_order_and_has_the_words_of_the_specification() -> None:
    first, others = (DOCS / "glossary.md").read_text().split("The others:")
    words = [re.findall(r"^\| ([a-z -]+) \|", part, re.MULTILINE)[1:] for part in (first, others)]
    assert words[0] == ["issue", "agent", "check", "question", "landed", "night"]
    assert words[1] == sorted({*words[1]})
    section = (DOCS / "SPEC.md").read_text().split("## Words")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ([a-z ,]+) \|", section, re.MULTILINE)[1:]
    assert {word.removesuffix("ed") for row in rows for word in row.split(", ")} <= {*words[0], *words[1]}
