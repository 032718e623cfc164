"""What the foreman tells and does without a session: prompt, history, clearing, its doctor, the older one's history."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import anyio
import pytest

from ashep.errors import ConfigError, UsageError
from ashep.foreman import reading, settings
from ashep.foreman.history import FILES, Entry, History, Kind, WorkerBusy, read
from ashep.foreman.reading import Place, place_of
from ashep.foreman.settings import worker_name
from ashep.redaction import MARK, Redaction

NOW = datetime(2026, 11, 26, 9, tzinfo=UTC)


def place(home: Path, settings: str | None = None) -> Place:
    if settings is not None:
        (home / ".config" / "ashep").mkdir(parents=True, exist_ok=True)
        (home / ".config" / "ashep" / "foreman.yaml").write_text(settings)
    return place_of("anna", {}, home)


def kept(place: Place, *said: tuple[Kind, str]) -> None:
    with History.open(place.folder, Redaction(), 1_000_000) as history:
        for number, (kind, text) in enumerate(said):
            history.append(Entry(id=f"{number}", at=NOW, session="s", kind=kind, text=text))


def test_a_worker_is_named_by_the_option_the_environment_or_the_folder() -> None:
    assert worker_name("night shift", {"WORKER_NAME": "b"}, Path("/w/c")) == "night shift"
    assert worker_name(None, {"WORKER_NAME": "b"}, Path("/w/c")) == "b"
    assert worker_name(None, {"WORKER_NAME": ""}, Path("/w/c d")) == "c d"
    assert worker_name(None, {}, Path("/w/.dotfiles")) == "dotfiles"
    assert worker_name(None, {}, Path("/")) == "worker"


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".hidden", "a/b", "/", "a\nb", "a\x1b[1m", " a", "a ", "x" * 65, "\U0001f600" * 64]
)
def test_a_name_that_would_lead_elsewhere_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="no name of a worker"):
        worker_name(name, {}, Path("/w/c"))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("version: 1\nmemory:\n  tokns: 3\n", r"foreman.yaml:3: memory.tokns: unknown key.*tokens"),
        ("memory: {tokens: 1}\n", r"foreman.yaml:1: memory.tokens: expected "),
        ("version: 2\n", r"foreman.yaml:1: version: expected 1"),
        ("topics: [\n", r"foreman.yaml:2: .*not valid YAML"),
        ("memory: {rules: none.md.j2}\n", r"ashep/none.md.j2: is not there"),
    ],
)
def test_a_mistake_in_the_settings_is_said_with_its_place(tmp_path: Path, settings: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        place(tmp_path, settings)


def test_without_settings_there_are_the_defaults_and_a_template_is_found_from_their_file(tmp_path: Path) -> None:
    assert place(tmp_path).settings == settings.load_settings({}, tmp_path) == place(tmp_path, "\n").settings
    (tmp_path / ".config" / "ashep" / "mine.md.j2").write_text("\n{{ nothing }}\n")
    with pytest.raises(ConfigError, match=r"\.config/ashep/mine\.md\.j2:2: 'nothing' is undefined"):
        place(tmp_path, "memory: {rules: mine.md.j2}\n")
    (tmp_path / "mine.md.j2").write_text("be brief\n{{ history }}")
    assert reading.printed_prompt(place(tmp_path, "memory: {rules: ~/mine.md.j2}\n")) == "be brief\n"


def test_the_prompt_holds_what_was_said_since_it_was_cleared_and_needs_no_lock(tmp_path: Path) -> None:
    here = place(tmp_path)
    assert reading.printed_prompt(here).startswith("# How you work here")
    assert not here.folder.exists()
    kept(here, ("prompt", "of old"), ("cleared", ""), ("prompt", "of late"))
    with History.open(here.folder, Redaction(), 1_000_000):
        prompt = reading.printed_prompt(here)
    assert "of late" in prompt
    assert "of old" not in prompt


def test_all_history_is_shown_for_people_and_for_programs_and_searched(tmp_path: Path) -> None:
    here = place(tmp_path)
    kept(here, ("prompt", "Build a\nhouse"), ("cleared", ""), ("answer", "Built."))
    with (here.folder / FILES[-1]).open("a") as file:
        file.write("oops\n")
    told = reading.history(here)
    assert [line[20:] for line in told.lines() if not line.startswith("  ")] == ["prompt", "cleared", "answer"]
    assert "  Build a" in told.lines()
    assert "  house" in told.lines()
    assert [one["kind"] for one in told.data() if isinstance(one, dict)] == ["prompt", "cleared", "answer"]
    assert json.loads(json.dumps(told.data()))[0]["at"] == "2026-11-26T09:00:00Z"
    assert len(told.warnings) == 1
    assert "history.jsonl:4: " in told.warnings[0]
    assert [one.text for one in reading.history(here, "BUILT").entries] == ["Built."]


def test_clearing_keeps_the_history_and_is_not_done_under_a_wrapper(tmp_path: Path) -> None:
    here = place(tmp_path)
    assert reading.clear(here, NOW) == "anna has no history"
    kept(here, ("prompt", "one"), ("answer", "two"))
    with History.open(here.folder, Redaction(), 1_000_000), pytest.raises(WorkerBusy, match="clear-worker-history"):
        reading.clear(here, NOW)
    assert " of 2 entries; " in reading.clear(here, NOW)
    assert reading.clear(here, NOW).startswith("there was nothing")
    assert reading.printed_prompt(here).startswith("# How you work here")
    assert [one.kind for one in reading.history(here).entries] == ["prompt", "answer", "cleared"]


def test_the_older_history_is_taken_over_once_and_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    here, older = place(tmp_path), tmp_path / ".claude" / "mini-goal-workers" / "anna"
    with pytest.raises(UsageError, match="no history of an older foreman"):
        reading.take_over(here, Redaction())
    older.mkdir(parents=True)
    lines: list[object] = [
        {"type": "user", "content": "Plan the garden", "timestamp": "2025-01-02T03:04:05Z"},
        {"role": "assistant", "content": [{"type": "text", "text": "Roses"}, {"type": "text", "text": "and hedges"}]},
        "no record",
        {"type": "user_prompt", "prompt": "go on", "ts": 1735787046000},
        {"type": "user", "message": {"role": "user", "content": "go on"}},
        {"type": "weather", "text": "rain"},
        {"plan": "1. dig", "time": 1735787047.5},
        {"type": "user", "content": "the key hunter2-hunter2", "at": "yesterday"},
    ]
    text = "\n".join([*map(json.dumps, lines), '{"type": "user", "content": "torn', "[" * 100_000])
    (older / "history.jsonl").write_text(text)
    recent = [{"role": "user", "content": "go on"}, {"role": "user", "content": "new"}]
    (older / "recent-history.json").write_text(json.dumps({"version": 1, "messages": recent}))
    kept(here, ("prompt", "ours"))
    taken = reading.take_over(here, Redaction(("hunter2-hunter2",)))
    assert (taken.found, taken.new) == (7, 7)
    assert [one.split(":")[1] for one in taken.unread] == ["3", "6", "9", "10"]
    entries = read(here.folder).entries
    assert [(one.kind, one.text) for one in entries] == [
        ("prompt", "Plan the garden"),
        ("answer", "Roses\nand hedges"),
        ("prompt", "go on"),
        ("prompt", "go on"),
        ("plan", "1. dig"),
        ("prompt", f"the key {MARK}"),
        ("prompt", "new"),
        ("prompt", "ours"),
    ]
    assert [one.at.isoformat() for one in entries[1:5]] == [
        "2025-01-02T03:04:05+00:00",
        "2025-01-02T03:04:06+00:00",
        "2025-01-02T03:04:06+00:00",
        "2025-01-02T03:04:07.500000+00:00",
    ]
    again = reading.take_over(here, Redaction(("hunter2-hunter2",)))
    assert (again.found, again.new) == (7, 0)
    assert read(here.folder).entries == entries


CLAUDE = "#!/bin/sh\necho '9.9.9 (Claude Code)'\n"


def told(home: Path, **environ: str) -> dict[str, tuple[str, str]]:
    """What the doctor says: of each check the worst."""
    lines = anyio.run(reading.doctor, "anna", {"PATH": os.environ["PATH"], **environ}, home)
    order = ["ok", "warning", "error"]
    return {one.check: (one.level, one.what) for one in sorted(lines, key=lambda one: order.index(one.level))}


def test_the_doctor_says_of_each_thing_whether_it_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    monkeypatch.setenv("PATH", f"{tools}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    found = told(tmp_path)
    assert found["claude"] == ("error", "it is not there")
    assert found["history"][0] == found["settings"][0] == found["port"][0] == "ok"
    assert "none is set" in found["model"][1]
    assert found["search"] == ("ok", "not set")

    (tools / "claude").write_text(CLAUDE)
    (tools / "claude").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/bin:/usr/bin")
    here = place(tmp_path, "model: {kind: openai, url: http://127.0.0.1:1/v1, model: small, key: SMALL_KEY}\n")
    kept(here, ("prompt", "one"))
    here.folder.chmod(0o755)
    found = told(tmp_path)
    assert found["claude"][0] == "warning"
    assert "9.9.9" in found["claude"][1]
    assert found["login"] == ("warning", "nobody is logged in")
    assert found["history"] == ("warning", f"{here.folder} may be read by others")
    assert found["model"] == ("warning", "there is no SMALL_KEY in the environment, which holds its key")

    with History.open(here.folder, Redaction(), 1_000_000):
        found = told(tmp_path, ANTHROPIC_API_KEY="k", SMALL_KEY="k", SEARCH_API_KEY="k")
    assert found["login"][0] == "ok"
    assert found["model"] == ("ok", "small (openai)")
    assert found["search"] == ("ok", "as the environment says")
    assert found["history"] == ("ok", f"1 entry in {here.folder}; process {os.getpid()} has it")

    place_file = tmp_path / ".config" / "ashep" / "foreman.yaml"
    place_file.write_text("tpics: true\n")
    (tools / "claude").write_text("#!/bin/sh\nexit 3\n")
    found = told(tmp_path)
    assert found["settings"][0] == "error"
    assert "foreman.yaml:1: tpics" in found["settings"][1]
    assert found["claude"][0] == "error"
    assert "ended with 3" in found["claude"][1]
