"""Files of OpenCode's configuration: what they ask of a person is said, with the rule to add; plugins are named."""

import json
from pathlib import Path

import pytest
import yaml

from ashep.actions.doctor_security import CheckLine
from ashep.actions.runners.opencode_files import describe_files
from ashep.config.files import read
from ashep.core.policy.policies import PermissionRule, Phase, Policies
from ashep.core.policy.settings import AgentsSettings, Settings, WorkerSettings
from tests.core.given import policies, policy_of


def told(project: Path, text: str, settings: Settings | None = None, known: Policies | None = None) -> list[CheckLine]:
    (project / "opencode.jsonc").write_text(text)
    return describe_files(project, settings or Settings(), known, {"HOME": str(project / "home")})


def asks(project: Path, permission: object) -> list[str]:
    lines = told(project, json.dumps({"permission": permission}))
    assert {line.level for line in lines} <= {"warning"}
    return [line.what.partition("asks a person about ")[2].partition(":")[0] for line in lines]


def test_what_a_file_asks_for_is_named_with_the_rule_to_add(tmp_path: Path) -> None:
    (line,) = told(tmp_path, '{"permission": {"bash": {"*": "ask"}}}')
    assert (line.level, line.check) == ("warning", "permissions")
    assert "opencode.jsonc asks a person about bash `*`" in line.what
    assert "no rule allows is denied" in line.what
    shown = line.remedy.partition("`")[2].partition("`")[0]
    settings = read(Settings, f"version: 1\n{shown}\n", tmp_path / "config.yaml")
    assert told(tmp_path, '{"permission": {"bash": {"*": "ask"}}}', settings) == [], "with it nothing is asked"


@pytest.mark.parametrize(
    ("permission", "found"),
    [
        ("ask", ["* `*`"]),
        ({"bash": "ask", "edit": "allow"}, ["bash `*`"]),
        ({"bash": {"*": "allow", "git push *": "ask", "rm *": "deny"}}, ["bash `git push *`"]),
        ({"external_directory": "ask"}, []),  # no rule may allow that
        ({"": "ask", "bash": {"": "ask"}, "edit": ["ask"], "x": None}, []),
        (["ask"], []),
    ],
)
def test_every_form_is_read(tmp_path: Path, permission: object, found: list[str]) -> None:
    assert asks(tmp_path, permission) == found


def test_agents_have_rules_of_their_own_and_a_phases_rule_counts(tmp_path: Path) -> None:
    text = '{"agent": {"build": {"permission": {"bash": "ask"}}, "odd": 7}, "permission": {"bash": "ask"}}'
    assert len(told(tmp_path, text)) == 1
    rule = PermissionRule(tool="bash", action="ask")
    known = policies(policy_of(Phase(name="implement", permissions=(rule,))))
    assert told(tmp_path, text, known=known) == []


def test_comments_and_commas_are_read_as_opencode_does(tmp_path: Path) -> None:
    text = """{ // {"permission": 1}
      /* "permission": "ask", */
      "url": "http://x/*y*/", "permission": {"bash": "ask", /* , */ }, // "]
      "plugin": ["a", ],
    }"""
    assert [line.check for line in told(tmp_path, text)] == ["permissions", "plugins"]


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "[" * 100_000, '{"plugin": {"a": 1}}', "\x00\xff"])
def test_what_opencode_refuses_or_nobody_understands_is_its_to_tell(tmp_path: Path, text: str) -> None:
    assert told(tmp_path, text) == []
    assert describe_files(tmp_path / "nowhere", Settings(), None, {"HOME": str(tmp_path / "home")}) == []


def test_plugins_are_named_and_off_in_sandboxes_unless_they_are_allowed(tmp_path: Path) -> None:
    text = '{"plugin": ["opencode-foo@1.0.0", "bar\\u001b"]}'
    (line,) = told(tmp_path, text)
    assert "names opencode-foo@1.0.0, bar: the server loads them" in line.what
    place = Settings(worker=WorkerSettings(workspace="place"), agents=AgentsSettings(sandbox="auto"))
    (line,) = told(tmp_path, text, place)
    assert line.what.endswith("off in sandboxes")
    allowed = read(Settings, yaml.safe_dump({"version": 1, "agents": {"plugins": True}}), tmp_path / "config.yaml")
    assert allowed.agents.plugins
    (line,) = told(tmp_path, text, place.model_copy(update={"agents": AgentsSettings(sandbox="auto", plugins=True)}))
    assert line.what.endswith("its registry must answer")
