"""The generated files are fresh, and they agree with the loader."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from ashep.config import ConfigErrors, nodes, read, reference, schema
from ashep.config.starter import FILES, starter
from ashep.core.model import Agents, Policies, Settings

ROOT = Path(__file__).parent.parent
MODELS: dict[str, type[BaseModel]] = {"config.yaml": Settings, "policies.yaml": Policies, "agents.yaml": Agents}


def test_each_schema_is_fresh() -> None:
    stale = "run `python -m ashep.config.schema`"
    assert {file.name for file in (ROOT / "schemas").iterdir()} == {f"{name}.schema.json" for name in schema.TABLE}
    for name in schema.TABLE:
        assert (ROOT / "schemas" / f"{name}.schema.json").read_text() == schema.text(name), stale


def test_generators_write_what_is_committed(tmp_path: Path) -> None:
    assert schema.main([str(tmp_path / "schemas")]) == 0
    assert reference.main([str(tmp_path / "page.md")]) == 0
    assert len(list((tmp_path / "schemas").iterdir())) == len(schema.TABLE)
    assert (tmp_path / "page.md").read_text() == reference.page()


def test_the_reference_is_fresh() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text()
    assert page == reference.page(), "run `python -m ashep.config.reference`"


def test_each_example_of_the_reference_loads() -> None:
    blocks = re.findall(r"^```yaml\n# (\S+)\n(.*?)^```$", reference.page(), re.M | re.S)
    assert len(blocks) == reference.page().count("```yaml") == 4
    for name, text in blocks:
        read(MODELS[name], text, Path(name))


@pytest.mark.parametrize("name", schema.TABLE)
def test_each_schema_is_one_and_explains_every_key(name: str) -> None:
    made = schema.schema(name)
    jsonschema.Draft202012Validator.check_schema(made)
    for part in [made, *made.get("$defs", {}).values()]:
        assert part["description"]
        for key, value in part.get("properties", {}).items():
            assert value.get("description") or "$ref" in value, f"{name}: {key} has no docstring"


@pytest.mark.parametrize("name", schema.TABLE)
def test_defaults_fit_their_own_schema(name: str) -> None:
    made = schema.schema(name)
    for part in [made, *made.get("$defs", {}).values()]:
        for value in part.get("properties", {}).values():
            if "default" in value:
                jsonschema.validate(value["default"], {"$defs": made.get("$defs", {}), **value})


@pytest.mark.parametrize("name", FILES)
def test_starter_files_fit_their_schema(name: str) -> None:
    jsonschema.validate(plain(starter(name)), schema.schema(name.removesuffix(".yaml")))


def plain(text: str) -> Any:
    return nodes.read(text)[0].plain()


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


@given(POLICIES)
def test_the_schema_of_policies_and_the_loader_agree(policy: Any) -> None:
    document = {"version": 1, "policies": {"p": policy}}
    fits = jsonschema.Draft202012Validator(schema.schema("policies")).is_valid(document)
    try:
        read(Policies, json.dumps(document), Path("policies.yaml"))
    except ConfigErrors as error:
        assert not fits, str(error)  # noqa: PT017 # both directions in one law
    else:
        assert fits
