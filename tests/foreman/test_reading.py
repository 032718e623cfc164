"""What the foreman tells and does without a session: prompt, history, clearing, its doctor, the older one's history."""

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ashep.cli import main
from ashep.errors import ConfigError, UsageError
from ashep.extras.foreman import queries
from ashep.extras.foreman.history import FILES, History, HistoryEntry, Kind, WorkerBusy, read
from ashep.extras.foreman.queries import WorkerPaths, place_of
from ashep.extras.foreman.settings import ForemanSettings, worker_name
from ashep.redaction import MARK, Redaction

NOW = datetime(2026, 11, 26, 9, tzinfo=UTC)
SECRET = "hunter2-hunter2"


def place(home: Path, settings: str | None = None) -> WorkerPaths:
    if settings is not None:
        (home / ".config" / "ashep").mkdir(parents=True, exist_ok=True)
        (home / ".config" / "ashep" / "foreman.yaml").write_text(settings)
    return place_of("anna", {"A_TOKEN": SECRET}, home)


def kept(place: WorkerPaths, *said: tuple[Kind, str]) -> None:
    with History.open(place.folder, Redaction(), 1_000_000) as history:
        for number, (kind, text) in enumerate(said):
            history.append(HistoryEntry(id=f"{number}", at=NOW, session="s", kind=kind, text=text))


def test_a_worker_is_named_by_the_option_the_environment_or_the_folder() -> None:
    assert worker_name("night shift", {"WORKER_NAME": "b"}, Path("/w/c")) == "night shift"
    assert worker_name(None, {"WORKER_NAME": "b"}, Path("/w/c")) == "b"
    assert worker_name(None, {"WORKER_NAME": ""}, Path("/w/c d")) == "c d"
    assert [worker_name(None, {}, Path(one)) for one in ("/w/.dotfiles", "/")] == ["dotfiles", "worker"]
    for name in ("", "..", ".hidden", "a/b", "a\nb", "a\x1b[1m", " a", "a ", "\U0001f600" * 61):
        with pytest.raises(UsageError, match="no name of a worker"):
            worker_name(name, {}, Path("/w/c"))


@pytest.mark.parametrize(("settings", "said"), [
    ("version: 1\nmemory:\n  tokns: 3\n", r"foreman.yaml:3: memory.tokns: unknown key.*tokens"),
    ("memory: {tokens: 1}\n", r"foreman.yaml:1: memory.tokens: expected "),
    ("topics: [\n", r"foreman.yaml:2: .*not valid YAML"),
    ("memory: {rules: none.md.j2}\n", r"ashep/none.md.j2: cannot be read: No such file"),
    ("memory: {rules: ../mine.md.j2}\n", r"mine\.md\.j2:2: 'nothing' is undefined"),
])  # fmt: skip
def test_a_mistake_in_the_settings_is_said_with_its_place(tmp_path: Path, settings: str, said: str) -> None:
    assert place(tmp_path).settings == place(tmp_path, "# nothing\n").settings == ForemanSettings()
    (tmp_path / ".config" / "mine.md.j2").write_text("\n{{ nothing }}\n")
    with pytest.raises(ConfigError, match=said):
        place(tmp_path, settings)


def test_the_prompt_holds_what_was_said_since_it_was_cleared_and_needs_no_lock(tmp_path: Path) -> None:
    here = place(tmp_path)
    assert queries.printed_prompt(here).startswith("# How you work here")
    assert not here.folder.exists()
    kept(here, ("prompt", "of old"), ("cleared", ""), ("prompt", "of late"))
    with History.open(here.folder, Redaction(), 1_000_000):
        assert "of late" in (prompt := queries.printed_prompt(here))
        assert "of old" not in prompt
        with pytest.raises(WorkerBusy, match="clear-worker-history"):
            queries.clear(here)
    assert " of 1 entry; " in queries.clear(here)
    assert "of late" not in queries.printed_prompt(here)
    assert [one.kind for one in read(here.folder).entries] == ["prompt", "cleared", "prompt", "cleared"]


def test_all_history_is_shown_for_people_and_for_programs_and_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def shown(*more: str) -> str:
        assert main(["foreman", "--worker", "anna", "--history", *more]) == 0
        return capsys.readouterr().out

    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    here = place(tmp_path)
    kept(here, ("prompt", "Build a\nhouse"), ("cleared", ""), ("answer", "Built."))
    with (here.folder / FILES[-1]).open("a") as file:
        file.write("oops\n")
    assert [line[20:] for line in shown().splitlines() if line[0] != " "] == ["prompt", "cleared", "answer"]
    assert "\n  Build a\n  house\n" in shown()
    assert [one["at"] for one in json.loads(shown("--json"))["entries"]] == ["2026-11-26T09:00:00Z"] * 3
    assert shown("--search", "BUILT").splitlines()[1:] == ["  Built."]
    assert main(["foreman", "--history", "--clear"]) == 2


def test_the_older_history_is_taken_over_once_and_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    here, older = place(tmp_path), tmp_path / ".claude" / "mini-goal-workers" / "anna"
    with pytest.raises(UsageError, match="no history of an older foreman"):
        queries.take_over(here)
    older.mkdir(parents=True)
    blocks = [{"type": "text", "text": "Roses"}, {"type": "image"}, "and hedges"]
    lines: list[object] = [
        {"type": "user", "content": "Plan the garden", "timestamp": "2025-01-02T03:04:05Z"},
        {"role": "assistant", "content": blocks, "at": "2025-01-02T03:04:06"},
        "no record",
        {"type": "prompt", "prompt": "go on", "ts": 1735787047000},
        {"type": "user", "message": {"role": "user", "content": "go on"}},
        {"type": "weather", "text": "rain"},
        {"kind": ["plan"], "text": "1. dig"},
        {"type": "user", "content": f"the key {SECRET}", "time": 1735787048.5},
    ]
    (older / "history.jsonl").write_text("\n".join([*map(json.dumps, lines), '{"type": "torn', "[" * 100_000]))
    recent = [{"role": "user", "content": "go on"}, {"role": "user", "content": "new"}]
    (older / "recent-history.json").write_text(json.dumps(recent, indent=1))
    kept(here, ("prompt", "ours"))
    *unread, told = queries.take_over(here)
    assert (told, [one.split(":")[1] for one in unread]) == ("6 of 6 entries are new", ["3", "6", "7", "9", "10"])
    entries = read(here.folder).entries
    assert [(one.kind, one.text, f"{one.at:%S.%f}"[:4]) for one in entries[:5]] == [
        ("prompt", "Plan the garden", "05.0"), ("answer", "Roses\n\nand hedges", "06.0"), ("prompt", "go on", "07.0"),
        ("prompt", "go on", "07.0"), ("prompt", f"the key {MARK}", "08.5"),
    ]  # fmt: skip
    assert [one.text for one in entries[5:]] == ["new", "ours"]
    assert queries.take_over(here)[-1] == "0 of 6 entries are new"
    assert read(here.folder).entries == entries


def test_the_doctor_says_of_each_thing_whether_it_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def told(**environ: str) -> dict[str, tuple[str, str]]:
        lines = queries.doctor("anna", environ, tmp_path, tmp_path)
        return {one.check: (one.level, one.what) for one in sorted(lines, key=lambda one: one.level != "ok")}

    program = tmp_path / "claude"
    program.write_text("#!/bin/sh\necho '9.9.9 (Claude Code)'\n")
    program.chmod(0o755)
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setenv("HOME", str(tmp_path))
    here = place(tmp_path, "model: {kind: openai, url: http://127.0.0.1:1/v1, model: small, key: SMALL_KEY}\n")
    kept(here, ("prompt", "one"))
    here.folder.chmod(0o755)
    found = told()
    assert (found["claude"][0], "not logged in" in found["claude"][1]) == ("error", True)
    assert found["search"][0] == "warning"
    assert found["history"] == ("error", f"{here.folder} is not yours alone")
    assert found["model"] == ("warning", "there is no SMALL_KEY in the environment, which holds its key")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    with History.open(here.folder, Redaction(), 1_000_000):
        found = told(SMALL_KEY="k", SEARCH_API_KEY="k", SEARCH_API_URL="https://s.example")
    assert (found["claude"][0], found["search"][0], found.get("model")) == ("warning", "ok", None)  # its version is odd
    assert found["history"] == ("ok", f"1 entry in {here.folder}; process {os.getpid()} has it")
    place(tmp_path, "version: 1\n")
    level, what = told()["model"]
    assert (level, "no prompt is asked whether it begins a new topic" in what) == ("ok", True), "topics are off then"

    place(tmp_path, "topics: true\n").folder.joinpath(FILES[-1]).write_text("oops\n")
    program.write_text("#!/bin/sh\nexit 3\n")
    assert [told()[name][0] for name in ("claude", "history")] == ["error", "warning"]
    (tmp_path / ".config" / "ashep" / "foreman.yaml").write_text("tpics: true\n")
    assert "foreman.yaml:1: tpics" in told()["settings"][1]
