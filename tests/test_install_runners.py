"""`ashep install` says of each runner beside OpenCode whether it can be used, and what is promised of it."""

import importlib.util
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from ashep.actions import doctor
from ashep.actions.doctor_security import CheckLine
from ashep.actions.runners import acp, base
from ashep.actions.runners.kinds import kind_of
from ashep.adapters.system import programs
from ashep.cli import main
from ashep.config import read
from ashep.core.policy.agents import Agents
from ashep.core.policy.settings import Settings
from tests.places import has_bubblewrap
from tests.test_install import git, program, project

__all__ = ["project"]

GOOD = f"#!/bin/sh\necho '{programs.CLAUDE_VERSION} (Claude Code)'\n"
SCRIPTED = [sys.executable, "-S", str(Path(__file__).parent / "acp" / "agent.py")]


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is logged in."""
    for name in [one for one in os.environ if one.startswith(("ANTHROPIC_", "CLAUDE_"))]:
        monkeypatch.delenv(name)


def configured(project: Path, **runners: dict[str, Any]) -> Settings:
    """Settings with these runners, each with an agent."""
    folder = project / ".agent-shepherd"
    team = [{"id": f"a-{name}", "capabilities": ["code"], "runner": {"type": name}} for name in runners]
    (folder / "config.yaml").write_text(json.dumps({"version": 1, "runners": runners}))
    (folder / "agents.yaml").write_text(json.dumps({"version": 1, "agents": team}))
    return doctor.settings_of(project)


async def looked(project: Path, *, ask: bool = True, **runner: Any) -> list[CheckLine]:
    settings = await to_thread.run_sync(lambda: configured(project, it=runner))
    return await kind_of(settings, "it").examine(base.Examination(project, settings, "it", ask=ask))


def levels(lines: list[CheckLine]) -> list[str]:
    return [line.level for line in lines]


# --- Claude Code --------------------------------------------------------------------------------------------------


async def test_claude_code_that_is_there_and_logged_in_is_good(project: Path) -> None:
    program(project, "claude", GOOD)
    own = Path(os.environ["HOME"], ".claude")
    own.mkdir(parents=True)
    (own / ".credentials.json").write_text("{}")
    found, login, promised = await looked(project, type="claude")
    assert levels([found, login, promised]) == ["ok", "ok", "ok"]
    assert found.what == f"Claude Code {programs.CLAUDE_VERSION}: {project.parent / 'bin' / 'claude'}"
    assert promised.what == f"{base.ONCE}; {base.AS_YOU}"
    assert not (project / ".agent-shepherd" / "state").exists()


async def test_a_key_is_as_good_as_a_login(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(project, "claude", GOOD)
    _, login, _ = await looked(project, type="claude")
    assert (login.level, "is not logged in" in login.what) == ("error", True)
    assert "ANTHROPIC_API_KEY" in login.remedy
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-long-secret")
    lines = await looked(project, type="claude")
    assert levels(lines) == ["ok", "ok", "ok"]
    assert all("a-long-secret" not in line.what + line.remedy for line in lines)


@pytest.mark.parametrize(("text", "level", "said"), [
    ("#!/bin/sh\necho 2.0.1\n", "warning", f"ashep is tried with {programs.CLAUDE_VERSION}"),
    ("#!/bin/sh\necho what\n", "error", "it does not say its version"),
    ("#!/bin/sh\necho broken >&2; exit 3\n", "error", "broken"),
    (None, "error", "claude is neither on PATH nor in the tools cache"),
])  # fmt: skip
async def test_claude_codes_version_is_looked_at(project: Path, text: str | None, level: str, said: str) -> None:
    if text is not None:
        program(project, "claude", text)
    first, *rest = await looked(project, type="claude")
    assert (first.level, said in first.what, bool(first.remedy)) == (level, True, True)
    assert bool(rest) == (level == "warning")


async def test_a_command_of_the_users_is_the_one_that_is_looked_at(project: Path) -> None:
    program(project, "claude", GOOD)
    (line,) = await looked(project, type="claude", command=["wrapped-claude"])
    assert (line.level, line.what) == ("error", "wrapped-claude is not there")


@pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap cannot be used here")
async def test_claude_code_that_does_not_start_in_its_sandbox_is_told(project: Path) -> None:
    (project.parent / "bin" / "bwrap").symlink_to(str(shutil.which("bwrap", path=os.environ["BEFORE"])))
    library = project.parent / "library"
    library.mkdir()
    (library / "version").write_text(GOOD)
    program(project, "claude", f"#!/bin/sh\nexec sh {library}/version\n")
    for seen, expected in (((), ["ok", "error", "error", "ok"]), ((str(library),), ["ok", "error", "ok"])):
        agents = {"sandbox": "bwrap", "paths": {"read": seen}}
        kept: dict[str, Any] = {"worker": {"workspace": "place"}, "agents": agents}
        settings = Settings.model_validate({**kept, "runners": {"it": {"type": "claude"}}})
        lines = await kind_of(settings, "it").examine(base.Examination(project, settings, "it", ask=True))
        assert levels(lines) == expected, lines
        assert lines[-1].what == base.ONCE
        assert bool([one for one in lines if "agents.paths.read" in one.remedy]) is not bool(seen)


# --- agents that speak ACP ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("flags", "level", "promised"), [
    ("", "ok", base.ONCE), ("noload", "warning", base.AT_LEAST_ONCE)
])  # fmt: skip
async def test_an_agent_that_speaks_acp_says_itself_what_can_be_promised(
    project: Path, monkeypatch: pytest.MonkeyPatch, flags: str, level: str, promised: str
) -> None:
    (project.parent / "flags").write_text(flags)
    monkeypatch.setenv("STORE", str(project.parent))
    given: dict[str, Any] = {"type": "acp", "command": SCRIPTED, "environment": ["STORE"]}
    (unasked,) = await looked(project, ask=False, **given)
    assert unasked.level == "ok"
    first, last = await looked(project, **given)
    assert (first.level, last.level, last.what) == ("ok", level, f"{promised}; {base.AS_YOU}")
    assert bool(last.remedy) == (level == "warning")


async def test_an_agent_that_is_not_there_or_does_not_speak_is_an_error(project: Path) -> None:
    (line,) = await looked(project, type="acp", command=["speaker", "--acp"])
    assert (line.level, line.what) == ("error", "speaker is not on PATH")
    program(project, "speaker", "#!/bin/sh\necho no such option >&2; exit 2\n")
    first, line = await looked(project, type="acp", command=["speaker", "--acp"])
    assert levels([first, line]) == ["ok", "error"]
    assert line.remedy == "run `speaker --acp` by hand"


async def test_without_the_extra_it_is_said_how_to_get_it(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(project, "speaker", "#!/bin/sh\n")
    monkeypatch.setattr(acp, "find_spec", lambda name: None if name == "acp" else importlib.util.find_spec(name))
    (line,) = await looked(project, type="acp", command=["speaker"])
    assert (line.level, line.remedy) == ("error", "pip install 'ashep[acp]'")


# --- the command --------------------------------------------------------------------------------------------------


def test_runners_that_an_agent_is_of_are_looked_at_and_no_others(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a process of its own loop: the command has one, too."""
    configured(project, maker={"type": "claude"})
    file = project / ".agent-shepherd" / "config.yaml"
    file.write_text(json.dumps({"version": 1, "runners": {"maker": {"type": "claude"}, "unused": {"type": "claude"}}}))
    assert main(["-C", str(project), "install", "--json"]) == 1
    checks = json.loads(capsys.readouterr().out)["checks"]
    assert {"maker"} == {one["check"] for one in checks} & {"maker", "unused", "opencode"}
    (missing,) = [one for one in checks if one["check"] == "maker"]
    assert missing["remedy"].startswith(f"install Claude Code {programs.CLAUDE_VERSION}")


def test_sync_agents_lists_the_agents_of_claude_code_and_asks_no_server_that_nobody_is_of(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a process of its own loop: the command has one, too."""
    configured(project, maker={"type": "claude"})
    base, own = project / ".claude" / "agents", Path(os.environ["HOME"], ".claude", "agents")
    for folder in (base, own):
        folder.mkdir(parents=True)
    (own / "x.md").write_text("---\nname: helper\ntools: Read, Grep\n---\nLook.")
    (base / "painter.md").write_text("---\nname: painter\nmodel: opus\ndisallowedTools: [Bash]\n---\nPaint.")
    (base / "reader.md").write_text("---\ntools: [Read]\nmodel: inherit\n---\nRead.")
    git(project, "init", "-q", ".")
    git(project, "add", ".claude")
    git(project, "-c", "user.name=p", "-c", "user.email=p@localhost", "commit", "-q", "-m", "first")
    (base / "later.md").write_text("An agent wrote this.")
    (project / "opencode.json").write_text('{"permission": "ask"}')
    (base / "reader.md").write_text("An agent wrote this.")
    assert main(["-C", str(project), "sync-agents"]) == 0
    written = read(Agents, (project / ".agent-shepherd" / "agents.yaml").read_text(), Path("agents.yaml")).agents
    found = {one.id: (one.read_write, one.runner.type, one.runner.agent_slug, one.runner.model) for one in written[1:]}
    assert found == {
        "helper": ("read", "maker", "helper", None),
        "painter": ("write", "maker", "painter", "opus"),
        "reader": ("read", "maker", "reader", None),
    }
    assert "#   anthropic/haiku" in (project / ".agent-shepherd" / "agents.yaml").read_text()
    capsys.readouterr()
    assert main(["-C", str(project), "sync-agents"]) == 0
    assert capsys.readouterr() == ("agents.yaml names everything that the server has\n", ""), "nobody is of OpenCode"


async def test_sync_agents_lists_the_models_of_an_agent_over_acp_alone(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STORE", str(tmp_path))
    settings = await to_thread.run_sync(
        lambda: configured(project, it={"type": "acp", "command": SCRIPTED, "environment": ["STORE"]})
    )
    catalog = await doctor.all_offers(project, settings)
    assert (catalog.agents, catalog.models, [*catalog.beside]) == ((), (), ["it"])
    assert catalog.beside["it"]


async def test_a_runner_that_nobody_is_of_and_that_is_away_hinders_no_sync(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STORE", str(tmp_path))
    folder = project / ".agent-shepherd"
    await to_thread.run_sync(
        lambda: configured(project, it={"type": "acp", "command": SCRIPTED, "environment": ["STORE"]})
    )
    runners = {
        "it": {"type": "acp", "command": SCRIPTED, "environment": ["STORE"]},
        "away": {"type": "acp", "command": ["/none"]},
    }
    (folder / "config.yaml").write_text(json.dumps({"version": 1, "runners": runners}))
    told = list[str]()
    catalog = await doctor.all_offers(project, await to_thread.run_sync(doctor.settings_of, project), told.append)
    assert [*catalog.beside] == ["it"]
    assert any(line.startswith("away: ") for line in told), told


async def test_agents_on_path_are_named_and_none_of_them_is_needed(project: Path) -> None:
    for name in ("claude", "codex", "gemini"):
        program(project, name, GOOD)
    await to_thread.run_sync(lambda: configured(project, claude={}, g={"type": "acp", "command": ["gemini", "--acp"]}))
    lines = await doctor.checks(project, os.environ)
    here = [(line.level, line.check) for line in lines if "is here, too" in line.what]
    assert ("ok", "codex") in here
    assert not {("ok", "claude"), ("ok", "gemini")} & {*here}
