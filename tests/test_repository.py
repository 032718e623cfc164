"""The repository keeps its own rules."""

import ast
import graphlib
import importlib
import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from ashep.adapters.system import programs
from tests import ceilings

ROOT = Path(__file__).resolve().parent.parent

# In parts, so that this file does not hold what it forbids.
REGISTRIES = [
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("registry", "npmjs", "org"),
        ("registry", "yarnpkg", "com"),
        ("proxy", "golang", "org"),
        ("sum", "golang", "org"),
    )
]


def committed() -> list[Path]:
    """List what git knows or would add: a rule must hold before the commit."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True,
        check=True, timeout=240,
    )  # fmt: skip
    return [ROOT / name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()]


def test_no_file_holds_the_address_of_a_registry() -> None:
    pattern = re.compile("|".join(map(re.escape, REGISTRIES)))
    offenders = [
        f"{path.relative_to(ROOT)}: {found.group()}"
        for path in committed()
        if (found := pattern.search(path.read_bytes().decode(errors="replace")))
    ]
    assert offenders == []


def test_there_is_no_lock_that_names_registries() -> None:
    names = {path.name for path in committed()}
    assert not names & {"uv.lock", "poetry.lock", "Pipfile.lock", "yarn.lock", "pnpm-lock.yaml"}
    for folder in ("requirements/opencode", "requirements/claude", "web"):
        assert "omit-lockfile-registry-resolved=true" in (ROOT / folder / ".npmrc").read_text()
        assert "resolved" not in (ROOT / folder / "package-lock.json").read_text()


@pytest.mark.parametrize("name", ["uv.txt", "base.txt", "dev.txt"])
def test_every_requirement_is_exact_and_hashed(name: str) -> None:
    text = (ROOT / "requirements" / name).read_text()
    entries = re.split(r"\n(?=[a-z])", text.replace("\\\n", " "))
    entries = [entry for entry in entries if not entry.startswith("#")]
    assert entries
    for entry in entries:
        assert re.match(r"[a-z0-9.-]+==\S+", entry), entry
        assert "--hash=sha256:" in entry, entry


def test_the_guide_for_agents_is_short() -> None:
    assert len((ROOT / "AGENTS.md").read_text().splitlines()) < 60


def test_every_make_target_has_a_help_text() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z][\w-]*):(?!=)", makefile, re.MULTILINE))
    helped = set(re.findall(r"^([a-z][\w-]*):.*## \S", makefile, re.MULTILINE))
    phony = re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)
    assert phony is not None
    assert targets == helped == set(phony.group(1).split())


def test_versions_of_the_tools_agree_everywhere() -> None:
    setup = ast.parse((ROOT / "requirements/setup.py").read_text())
    constants = {
        node.targets[0].id: node.value.value
        for node in setup.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
    }
    ((_, opencode),), ((_, claude),), ((_, claude_acp),) = (
        json.loads((ROOT / "requirements" / tool / "package.json").read_text())["dependencies"].items()
        for tool in ("opencode", "claude", "claude-agent-acp")
    )
    module = re.search(
        r"^require github\.com/steveyegge/beads v(\S+)$", (ROOT / "requirements/beads/go.mod").read_text(), re.M
    )
    assert module is not None
    assert constants["BD_VERSION"] == programs.BD_VERSION == module.group(1)
    assert constants["OPENCODE_VERSION"] == programs.OPENCODE_VERSION == opencode
    assert constants["CLAUDE_VERSION"] == programs.CLAUDE_VERSION == claude
    assert constants["CLAUDE_ACP_VERSION"] == programs.CLAUDE_ACP_VERSION == claude_acp


# --- the house ----------------------------------------------------------------------------------------------------

# A long module is asked first: which two ideas are in it? Where there is one alone, its reason stands here.
LONG: dict[str, str] = {}


def modules() -> list[Path]:
    found = sorted((ROOT / "ashep").rglob("*.py"))
    assert len(found) > 300
    return found


def charter_of(package: Path) -> str:
    return ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""


def test_no_module_is_longer_than_one_idea() -> None:
    lines = {path.relative_to(ROOT).as_posix(): path.read_text().count("\n") for path in modules()}
    assert {path for path, count in lines.items() if count > 600} == set(LONG)
    assert all(LONG.values())


def test_the_root_holds_what_all_need_and_rooms() -> None:
    assert len([*(ROOT / "ashep").glob("*.py")]) <= 8


def test_the_core_has_no_file_of_its_own_but_text_and_published_names() -> None:
    names = {path.name for path in (ROOT / "ashep/core").iterdir() if path.is_file()}
    assert names == {"__init__.py", "text.py", "model.py", "requests.py"}


@pytest.mark.parametrize("name", ["core/model", "core/requests", "extending"])
def test_a_published_name_is_no_second_home(name: str) -> None:
    text = (ROOT / "ashep" / f"{name}.py").read_text()
    assert text.count("\n") <= 20
    assert {type(node) for node in ast.parse(text).body} <= {ast.Expr, ast.ImportFrom, ast.Assign}


def test_what_the_guide_for_extensions_imports_is_there() -> None:
    found = re.findall(r"^from (ashep[\w.]*) import ([\w, ]+)$", (ROOT / "docs/extending.md").read_text(), re.M)
    assert {"ashep.core.model", "ashep.core.requests", "ashep.extending", "ashep.ports"} <= {path for path, _ in found}
    for path, names in found:
        room = importlib.import_module(path)
        for name in names.split(", "):
            assert name in room.__all__ if hasattr(room, "__all__") else hasattr(room, name), f"{path}.{name}"


def test_no_folder_is_a_street() -> None:
    held = Counter(path.parent.relative_to(ROOT).as_posix() for path in committed() if ROOT / "ashep" in path.parents)
    assert held["ashep/core/state"] > 10, "or it counts something else"
    assert {folder: count for folder, count in held.items() if count > 20} == {}


def test_every_package_says_what_lives_there_and_what_never_does() -> None:
    packages = [path.parent for path in modules() if path.name == "__init__.py"]
    assert {path.relative_to(ROOT / "ashep").as_posix() for path in packages} >= {"core", "core/facts", "cli/reading"}
    for package in packages:
        here, _, never = charter_of(package).partition("Never:")
        assert here.rstrip().endswith("."), f"{package}: what lives here?"
        assert "." in never, f"{package}: what never does?"


def test_every_folder_with_modules_is_a_package() -> None:
    folders = {path.parent for path in modules()}
    assert {folder.relative_to(ROOT).as_posix() for folder in folders if not (folder / "__init__.py").exists()} == set()


# --- contracts ----------------------------------------------------------------------------------------------------


def test_the_layers_name_every_room_and_typing_counts() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    contracts = {one["id"]: one for one in config["contracts"]}
    assert not config.get("exclude_type_checking_imports")
    assert {one: contracts[one]["containers"] for one in ("layers", "rooms")} == {
        "layers": ["ashep"],
        "rooms": ["ashep.core"],
    }
    assert all(contracts[one]["exhaustive"] for one in ("layers", "rooms"))
    assert contracts["layers"]["exhaustive_ignores"] == ["__main__"]
    assert (contracts["acyclic"]["type"], contracts["acyclic"]["ancestors"]) == ("acyclic_siblings", ["ashep"])
    for one in ("layers", "rooms", "acyclic", "extras"):
        assert not contracts[one].get("ignore_imports"), "these hold for all"


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the program in which imports can be planted."""
    copy = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "ashep", copy / "ashep", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    return copy


def broken(copy: Path) -> set[str]:
    """Say which contracts do not hold in a copy."""
    program = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as main; main()", "--no-cache"]
    done = subprocess.run(program, cwd=copy, capture_output=True, text=True, timeout=240, check=False)
    config = tomllib.loads((copy / "pyproject.toml").read_text())["tool"]["importlinter"]
    said = " ".join(done.stdout.split())
    verdicts = {one["id"]: re.search(re.escape(one["name"]) + r" (KEPT|BROKEN)", said) for one in config["contracts"]}
    assert all(verdicts.values()), done.stdout + done.stderr
    found = {name for name, verdict in verdicts.items() if verdict is not None and verdict[1] == "BROKEN"}
    assert (done.returncode != 0) == bool(found)
    return found


def test_nothing_is_wrong_with_a_copy(copied: Path) -> None:
    assert broken(copied) == set()


TYPING = "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from {} import {}\n"
PLANTED = {
    "a circle of two files": ("core/state/immutable.py", "from ashep.core.state.world import World", {"acyclic"}),
    "one of types": ("core/state/immutable.py", TYPING.format("ashep.core.state.world", "World"), {"acyclic"}),
    "a fold asks a rule": ("core/state/holds.py", "from ashep.core.issues import routing", {"rooms", "acyclic"}),
    "one that is asked for types": (
        "core/facts/outcome.py", TYPING.format("ashep.core.state.flow", "Flow"), {"rooms", "acyclic"},
    ),
    "two rooms beside each other": ("core/impact/path_classes.py", "from ashep.core.state import holds", {"rooms"}),
    "the journal knows the daemon": (
        "journal/durable_io.py", "from ashep.daemon.shepherd import Shepherd", {"layers", "acyclic"},
    ),
    "the daemon needs an extra": (
        "daemon/schedules.py", "from ashep.extras.simulation import probabilities", {"layers", "extras", "acyclic"},
    ),
    "a room that nobody placed": ("core/attic/__init__.py", "", {"rooms"}),
    "a module that nobody placed": ("attic.py", "", {"layers"}),
}  # fmt: skip


@pytest.mark.parametrize("what", PLANTED)
def test_a_planted_import_is_refused(copied: Path, what: str) -> None:
    name, line, contracts = PLANTED[what]
    path = copied / "ashep" / name
    before = path.read_text() if path.exists() else None
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{before or ''}\n{line}\n")
    try:
        assert broken(copied) == contracts
    finally:
        if before is not None:
            path.write_text(before)
        else:
            path.unlink()
            if not any(path.parent.iterdir()):
                path.parent.rmdir()


# --- clients and listeners ---------------------------------------------------------------------------------------

CLIENTS = {
    "ashep/adapters/system/http_client.py": "it is the one that makes bounded clients",
    "ashep/extras/foreman/web_fetch.py": "asks an address under another name, and has bounds of its own",
    "ashep/adapters/verifier/children/http_probe.py": "a child that knows Python alone, bounded by its supervisor",
}
LISTENERS = {
    "ashep/adapters/runners/claude/prompt_gate.py": "a connection has bounds until it shows a secret",
    "ashep/adapters/system/http_server.py": "its `Connection` has them",
    "ashep/adapters/system/control_socket.py": "a socket of this user's alone, who is asked of the kernel",
    "ashep/extras/foreman/session.py": "ashep.adapters.system.http_server",
    "ashep/api/server.py": "ashep.adapters.system.http_server",
    "ashep/extras/demo/scripted_model.py": "the demonstration's model, which ends with it",
    "ashep/extras/demo/state_dir.py": "looks for a free port",
    "ashep/adapters/runners/opencode/server.py": "looks for a free port",
}
_CLIENTS = re.compile(r"httpx\.((Async)?(Client|HTTPTransport)|get|post|put|request|stream)|HTTPS?Connection|.*urlopen")
_LISTENERS = re.compile(r".*(HTTPServer|create_server|start_server|start_unix_server|_listener|uvicorn\.Config)")
_ANY = re.compile("httpx|HTTPS?(Server|Connection)|urlopen|(create|start|unix)_server|_listener|uvicorn")


def callers(fits: re.Pattern[str]) -> set[str]:
    """The files that call what fits."""
    return {
        str(path.relative_to(ROOT))
        for path in (ROOT / "ashep").rglob("*.py")
        if _ANY.search(path.read_text())
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call | ast.ClassDef)
        for name in ([node.func] if isinstance(node, ast.Call) else node.bases)
        if fits.fullmatch(ast.unparse(name))
    }


@pytest.mark.promise("X13")
def test_every_client_and_every_listener_has_bounds() -> None:
    """Whoever makes another asks `make_client`, or stands here with the bounds that it has."""
    assert callers(_CLIENTS) == CLIENTS.keys()
    assert callers(_LISTENERS) == LISTENERS.keys()


def test_what_makes_the_code_hard_to_read_only_falls() -> None:
    """Each package has its ceilings (`tests/ceilings.toml`): `python -m tests.ceilings` lowers them."""
    counts, known = ceilings.count(), ceilings.ceilings()
    risen = [
        f"{package}: {name} is {counter[name]}, and its ceiling {known.get(package, {}).get(name, 0)}"
        for package, counter in counts.items()
        for name in ceilings.COLUMNS
        if counter[name] > known.get(package, {}).get(name, 0)
    ]
    assert risen == [], "names: `VAGUE` in tests/ceilings.py; words: `FOREIGN`; a small helper has one caller"


IMPORTED = re.compile(r"(?:from|import\()\s*'\./([\w-]+)'")


def test_no_module_of_the_page_leads_back_to_itself() -> None:
    sources = {path.stem: IMPORTED.findall(path.read_text()) for path in (ROOT / "web" / "src").glob("*.ts*")}
    assert sum(map(len, sources.values())) > 80
    graphlib.TopologicalSorter(sources).prepare()  # CycleError names the circle
