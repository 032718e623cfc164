"""What people have of the plugin foreman is taken over, and what they have of ours stays."""

import difflib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from ashep.config import load, write_starter
from ashep.config.starter import FILES
from tests.forks import shared

pytestmark = pytest.mark.slow

SAID: dict[str, Any] = {
    "stories_dir": "docs/stories", "sprint_status": "docs/stories/sprint-status.yaml", "max_iterations": 3,
    "contexts": ["docs/architecture.md", "docs/yes"],
    "roles": {
        "developer": {"provider": "anthropic", "model": "claude-x", "agent": "sisyphus"},
        "reviewer": {"provider": "openai", "model": "gpt: 5", "agent": None},
        "arbiter": {"agent": "plan"},
    },
}  # fmt: skip


def ashep(folder: Path, *arguments: str) -> tuple[int, str, str]:
    return shared().run(("story", *arguments), dict(os.environ), folder)


def plugin(folder: Path, **more: object) -> str:
    """Its configuration, as a file with tabs."""
    folder.mkdir(exist_ok=True)
    (folder / "foreman.json").write_text(json.dumps(SAID | more, indent="\t"))
    return "foreman.json"


def texts(folder: Path) -> dict[str, str]:
    return {name: (folder / ".agent-shepherd" / name).read_text() for name in FILES}


def test_a_project_begins_with_what_the_plugin_has(tmp_path: Path) -> None:
    file = plugin(tmp_path, max_iterations=5)
    code, shown, _ = ashep(tmp_path, "import", file, "--dry-run")
    assert code == 0
    assert "+    - docs/architecture.md" in shown
    assert not (tmp_path / ".agent-shepherd").exists(), "--dry-run writes nothing"
    assert ashep(tmp_path, "import", file)[0] == 0
    made = load(tmp_path / ".agent-shepherd")
    assert (made.settings.bmad.enabled, made.settings.bmad.contexts) == (True, ("docs/architecture.md", "docs/yes"))
    runners = {one.id: (one.runner.agent_slug, one.runner.provider, one.runner.model) for one in made.agents.agents}
    assert runners["developer"] == ("sisyphus", "anthropic", "claude-x")
    assert runners["reviewer"][1:] == ("openai", "gpt: 5")
    assert runners["arbiter"] == ("plan", None, None)
    story = made.policies.policies["bmad-story"]
    assert [one.max_visits for one in story.phases] == [5, 5, 5]
    assert story.limits.max_runs == 15
    before = texts(tmp_path)
    assert ashep(tmp_path, "import", file) == (0, "all of it is there\n", "")
    assert texts(tmp_path) == before


def test_what_is_there_stays_and_is_told_unless_forced(tmp_path: Path) -> None:
    write_starter(tmp_path / ".agent-shepherd")
    config = tmp_path / ".agent-shepherd" / "config.yaml"
    config.write_text(config.read_text() + "bmad: {enabled: false}  # not yet\n")
    before = texts(tmp_path)
    code, _, told = ashep(tmp_path, "import", plugin(tmp_path, theme="dark"))
    assert code == 0
    assert "kept: config.yaml: bmad.enabled is False, and not True (--force writes that)" in told
    assert "theme: not known here" in told
    made, after = load(tmp_path / ".agent-shepherd"), texts(tmp_path)
    assert not made.settings.bmad.enabled
    assert made.settings.bmad.contexts == ("docs/architecture.md", "docs/yes")
    assert made.policies.policies["bmad-story"].match is None, "it claims no issue that others had"
    assert {one.id for one in made.agents.agents} >= {"builder", "developer", "reviewer", "arbiter"}
    gone = [line for name in FILES for line in difflib.ndiff(before[name].split("\n"), after[name].split("\n"))]
    assert [line.split()[1] for line in gone if line.startswith("- ")] == ["bmad:", "runner:"], "comments are there"
    assert ashep(tmp_path, "import", "foreman.json", "--force")[0] == 0
    made = load(tmp_path / ".agent-shepherd")
    assert made.settings.bmad.enabled
    assert {one.id: one.read_write for one in made.agents.agents}["reviewer"] == "write"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('{\n  "roles": {\n    "developer": {"model": "x"}\n  }\n}', 3, "roles.developer: expected `provider`"),
        ('{\n  "max_iterations": "many"\n}', 2, "max_iterations: expected a whole number"),
        ('{\n  "max_iterations": 1001\n}', 2, "max_iterations: expected a whole number of at most 1000"),
        ('{"roles": {"arbiter": []}}', 1, "roles.arbiter: expected a mapping"),
        ('{\n  "contexts": [1, {}]\n}', 2, "contexts[1]: expected a text"),
        ('{\n  "roles": {},\n}', 3, "not valid JSON"),
        ('{"roles": {},\n "roles": {}}', 2, "roles: duplicate key"),
        ("[" * 20_000, 1, "not valid JSON: nested too deeply"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_line_and_key_and_nothing_is_written(
    tmp_path: Path, text: str, line: int, words: str
) -> None:
    (tmp_path / "foreman.json").write_text(text)
    code, _, told = ashep(tmp_path, "import", "foreman.json")
    assert code == 2
    assert f"foreman.json:{line}: {words}" in told
    assert not (tmp_path / ".agent-shepherd").exists()


def test_commands_are_written_again_and_taken_away_and_others_stay(tmp_path: Path) -> None:
    opencode, claude = tmp_path / ".opencode/commands/foreman.md", tmp_path / ".claude/commands/foreman.md"
    for _ in range(2):
        assert ashep(tmp_path, "install-commands")[0] == 0
        assert "ashep story run" in opencode.read_text()
        assert "$ARGUMENTS" in claude.read_text()
    claude.write_text(claude.read_text().replace("Change no file", "Change files"))
    changed = claude.read_text()
    for words in (("install-commands",), ("install-commands", "--remove")):
        code, _, told = ashep(tmp_path, *words)
        assert code == 1
        assert f"{claude}: somebody else's, or changed" in told
    assert claude.read_text() == changed
    assert not opencode.exists()
    older = tmp_path / ".opencode/command/foreman.md"
    older.parent.mkdir()
    older.write_text("the plugin's own")
    assert ashep(tmp_path, "install-commands")[0] == 1
    assert not opencode.exists(), "there would be two of the name"
