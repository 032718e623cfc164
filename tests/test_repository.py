"""The repository keeps its own rules."""

import ast
import json
import re
import subprocess
from pathlib import Path

import pytest

from ashep.adapters import programs

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
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        timeout=60,
    )
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
    assert "omit-lockfile-registry-resolved=true" in (ROOT / "requirements/opencode/.npmrc").read_text()
    assert "resolved" not in (ROOT / "requirements/opencode/package-lock.json").read_text()


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


# A long module is asked first: what does it decide that the core should decide? Here is what it answered.
LONG = {
    "ashep/core/facts/vocabulary.py": "nothing: it declares every fact there is, one class each",
    "ashep/core/policy/settings.py": "nothing: it declares the values that facts and the World hold",
}


def test_no_module_is_longer_than_a_person_can_hold_in_mind() -> None:
    lines = {str(path.relative_to(ROOT)): path.read_text().count("\n") for path in (ROOT / "ashep").rglob("*.py")}
    assert {path: count for path, count in lines.items() if count > 400 and path not in LONG} == {}


def test_versions_of_the_tools_agree_everywhere() -> None:
    setup = ast.parse((ROOT / "requirements/setup.py").read_text())
    constants = {
        node.targets[0].id: node.value.value
        for node in setup.body
        if isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Name)
        and isinstance(node.value, ast.Constant)
    }
    package = json.loads((ROOT / "requirements/opencode/package.json").read_text())
    module = re.search(
        r"^require github\.com/steveyegge/beads v(\S+)$",
        (ROOT / "requirements/beads/go.mod").read_text(),
        re.M,
    )
    assert module is not None
    assert constants["BD_VERSION"] == programs.BD_VERSION == module.group(1)
    assert constants["OPENCODE_VERSION"] == programs.OPENCODE_VERSION == package["dependencies"]["opencode-ai"]
