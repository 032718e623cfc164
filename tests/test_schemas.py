"""The generated files are fresh, and they agree with the loader."""

import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from ashep.api.static import built
from ashep.config import ConfigErrors, put_schemas, read, write_starter, yaml_tree
from ashep.config.presets import PRESETS
from ashep.config.starter import FILES
from ashep.core.policy.agents import Agents
from ashep.core.policy.policies import Policies
from ashep.core.policy.settings import Settings
from tools import configuration_page, schemas

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "ashep/config/schemas"
LINE = re.compile(r"# yaml-language-server: \$schema=(\S+)")
MODELS: dict[str, type[BaseModel]] = {"config.yaml": Settings, "policies.yaml": Policies, "agents.yaml": Agents}


@pytest.mark.parametrize("folder", schemas.FOLDERS, ids=str)
def test_each_schema_is_fresh(folder: Path) -> None:
    stale = "run `python -m tools.schemas`"
    assert {file.name for file in (ROOT / folder).iterdir()} == {f"{name}.schema.json" for name in schemas.TABLE}
    for name in schemas.TABLE:
        assert (ROOT / folder / f"{name}.schema.json").read_text() == schemas.text(name), stale
    assert f"]({schemas.FOLDERS[0]})" in (ROOT / "README.md").read_text()


def test_generators_write_what_is_committed(tmp_path: Path) -> None:
    assert schemas.main([str(tmp_path / "schemas")]) == 0
    assert configuration_page.main([str(tmp_path / "page.md")]) == 0
    assert len(list((tmp_path / "schemas").iterdir())) == len(schemas.TABLE)
    assert (tmp_path / "page.md").read_text() == configuration_page.page()


def test_the_reference_is_fresh() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text()
    assert page == configuration_page.page(), "run `python -m tools.configuration_page`"


def test_each_example_of_the_reference_loads() -> None:
    blocks = re.findall(r"^```yaml\n# (\S+)\n(.*?)^```$", configuration_page.page(), re.M | re.S)
    assert len(blocks) == configuration_page.page().count("```yaml") == 4
    for name, text in blocks:
        read(MODELS[name], text, Path(name))


@pytest.mark.parametrize("name", schemas.TABLE)
def test_each_schema_is_one_and_explains_every_key(name: str) -> None:
    made = schemas.schema(name)
    jsonschema.Draft202012Validator.check_schema(made)
    for part in [made, *made.get("$defs", {}).values()]:
        assert part["description"]
        for key, value in part.get("properties", {}).items():
            assert value.get("description") or "$ref" in value, f"{name}: {key} has no docstring"


@pytest.mark.parametrize("name", schemas.TABLE)
def test_defaults_fit_their_own_schema(name: str) -> None:
    made = schemas.schema(name)
    for part in [made, *made.get("$defs", {}).values()]:
        for value in part.get("properties", {}).values():
            if "default" in value:
                rules = {"$defs": made.get("$defs", {}), **value}  # which are in order: the test above says so
                jsonschema.Draft202012Validator(rules).validate(value["default"])


def test_the_package_carries_the_schemas_and_the_page(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, timeout=240)
    page = built().files
    if not page:  # there is no wheel without one
        assert (done.returncode, "run `make page` first" in done.stderr) == (1, True), done.stderr
        return
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        assert all(wheel.read(f"ashep/page/static/{name}") == file.body for name, file in page.items())
        for name in schemas.TABLE:
            assert wheel.read(f"ashep/config/schemas/{name}.schema.json").decode() == schemas.text(name)


@pytest.mark.promise("L6")
@pytest.mark.parametrize("preset", PRESETS)
def test_what_init_writes_fits_the_schema_that_each_file_names(tmp_path: Path, preset: str) -> None:
    write_starter(tmp_path, preset)
    put_schemas(tmp_path)
    for name in FILES:
        text = (tmp_path / name).read_text()
        named = LINE.fullmatch(text.splitlines()[0])
        assert named is not None, f"{name} names no schema"
        form = json.loads((tmp_path / named[1]).read_text())  # as editors do, which look beside the file
        assert form["title"] == f"ashep {name.removesuffix('.yaml')}"
        jsonschema.validate(plain(text), form)


@pytest.mark.promise("L6")
def test_the_schemas_for_editors_are_those_of_this_release(tmp_path: Path) -> None:
    put_schemas(tmp_path)
    put = tmp_path / "schemas"
    forms = {f"{name}.schema.json" for name in schemas.TABLE}
    assert {file.name for file in put.iterdir()} == {*forms, ".gitignore"}
    assert (put / ".gitignore").read_text() == "*\n"
    (put / ".gitignore").write_text("")  # whoever wants them in git
    (put / "run.schema.json").write_bytes(b"\xff of an older release")
    kept = (put / "config.schema.json").stat().st_mtime_ns
    put_schemas(tmp_path)
    assert {file.name for file in put.iterdir()} == {*forms, ".gitignore"}
    assert (put / ".gitignore").read_text() == ""
    assert (put / "run.schema.json").read_text() == schemas.text("run")
    assert (put / "config.schema.json").stat().st_mtime_ns == kept


def test_the_schemas_for_editors_go_nowhere_else_and_stop_nothing(tmp_path: Path) -> None:
    project, others = tmp_path / "project", tmp_path / "others"
    (project / "schemas").mkdir(parents=True)
    others.mkdir()
    (others / "mine").write_text("mine")
    (project / "schemas" / "run.schema.json").symlink_to(others / "mine")
    put_schemas(project)
    assert (others / "mine").read_text() == "mine"
    assert (project / "schemas" / "run.schema.json").read_text() == schemas.text("run")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "schemas").symlink_to(others)
    put_schemas(tmp_path / "linked")
    assert [file.name for file in others.iterdir()] == ["mine"]
    put_schemas(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()


def plain(text: str) -> Any:
    return yaml_tree.read(text)[0].plain()


NAMES = st.sampled_from(["implement", "review", "a b", "off", "close", ""])
VALUES = st.none() | st.booleans() | st.integers(-1, 9) | NAMES | st.lists(NAMES, max_size=2)
CHECKS = st.fixed_dictionaries(
    {},
    optional={
        "id": NAMES,
        "type": st.sampled_from(["file_exists", "manual", "mine", 3]),
        "verify": st.sampled_from([{"path": "x"}, {"path": 3}, {"question": "x"}, {}, [], "x"]),
    },
)
PHASES = NAMES | st.fixed_dictionaries(
    {},
    optional={
        "name": NAMES,
        "timeout": st.sampled_from(["5m", "5", "1h"]),
        "max_visits": VALUES,
        "next": st.dictionaries(st.sampled_from(["success", "x"]), VALUES, max_size=2),
        "session": st.sampled_from(["new", "old", {"reuse_from": "a"}, {"reuse": "a"}]),
        "verdicts": VALUES,
        "human": VALUES,
        "verify": VALUES | st.fixed_dictionaries({}, optional={"max_attempts": VALUES}),
        "checks": VALUES | st.lists(CHECKS, max_size=1),
        "when_flags": VALUES | st.dictionaries(st.sampled_from(["ci", "cii"]), VALUES, max_size=2),
        "extra": VALUES,
    },
)
POLICIES = st.lists(PHASES, max_size=2) | st.fixed_dictionaries(
    {}, optional={"phases": st.lists(PHASES, max_size=2), "match": st.none(), "limits": VALUES}
)


@pytest.mark.slow
@given(POLICIES)
def test_the_schema_of_policies_and_the_loader_agree(policy: Any) -> None:
    document = {"version": 1, "policies": {"p": policy}}
    fits = jsonschema.Draft202012Validator(schemas.schema("policies")).is_valid(document)
    try:
        read(Policies, json.dumps(document), Path("policies.yaml"))
    except ConfigErrors as error:
        assert not fits, str(error)  # noqa: PT017 # both directions in one law
    else:
        assert fits
