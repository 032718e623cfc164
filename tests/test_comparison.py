"""`ashep replay --policy`: what it prints, what it refuses, and that it touches nothing."""

import json
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from ashep.cli import main
from ashep.cli import output as cli_screen
from ashep.cli.commands import app
from ashep.errors import AshepError, UsageError
from ashep.journal.archive import archive
from ashep.journal.prune import prune
from ashep.journal.writer import Journal, Sizes
from tests.core import given
from tests.core.chances import WILD
from tests.recorded import Recorded, life, replayed

Run = Callable[..., Any]

UNREVIEWED = {
    "implement": {"next": {"success": "human_review"}},
    "human_review": {"human": {"ask": "Merge this?", "changes_requested": "implement"}},
}


def written(path: Path, phases: dict[str, Any]) -> str:
    one = {"phases": [{"name": name, **keys} for name, keys in phases.items()]}
    path.write_text(yaml.safe_dump({"version": 1, "default_policy": "standard", "policies": {"standard": one}}))
    return str(path)


def same() -> str:
    """The policies that are in force in a recorded life."""
    return yaml.safe_dump(json.loads(given.policies().model_dump_json(exclude_defaults=True)), sort_keys=False)


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the state folder of a wild life."""
    folder = tmp_path_factory.mktemp("lived") / ".agent-shepherd"
    life(folder / "state", issues=5, steps=300, drawn=False, chances=WILD, seed=11)
    return folder / "state"


@pytest.fixture
def run(state: Path, tmp_path: Path) -> Run:
    """Give `ashep replay` in a copy of the project, which has no YAML files."""
    return replayed(state, tmp_path)


def present(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Everything in a folder, with when it was changed."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in [folder, *folder.rglob("*")]
    }


def test_it_says_what_differs_and_sums_up(run: Run, tmp_path: Path) -> None:
    other = written(tmp_path / "other.yaml", UNREVIEWED)
    done = run("--policy", other)
    assert done.exit_code == 0, done.output
    head, *lines = done.stdout.splitlines()
    assert head.split()[:7] == ["issue", "verdict", "at", "runs", "questions", "recorded", "other"]
    told = json.loads(run("--policy", other, "--json").stdout)
    assert len([line for line in lines if "#" in line]) == told["totals"]["differs"] + told["totals"]["unknown"] > 1
    assert any(line.startswith(f"{told['totals']['issues']} issues: ") for line in lines)
    assert any(line.startswith("agent runs: ") for line in lines)


def test_its_json_adds_up(run: Run, tmp_path: Path) -> None:
    told = json.loads(run("--policy", written(tmp_path / "other.yaml", UNREVIEWED), "--json").stdout)
    sums, issues = told["totals"], told["issues"]
    assert (told["strict"], told["covers"]) == (False, 1)
    for verdict in ("same", "differs", "unknown"):
        assert sums[verdict] == sum(one["verdict"] == verdict for one in issues)
    for what in ("runs", "questions"):
        bounded = [one[what] for one in issues if one[what]["other"]["most"] is not None]
        assert len(issues) - len(bounded) == sums["unbounded"]
        for side in ("least", "most"):
            assert sums[what]["other"][side] == sum(one["other"][side] for one in bounded)
            assert sums[what]["saved"][side] == sum(one["saved"][side] for one in bounded)
        assert sums[what]["recorded"] == sum(one["recorded"] for one in bounded)
    for one in issues:
        assert (one["differs"] is None) == (one["verdict"] == "same")
        assert (one["unknown"] is None) == (one["verdict"] != "unknown")
    assert [one["last"] for one in issues] == sorted(one["last"] for one in issues)


def test_the_last_issues_or_one_of_them(run: Run, tmp_path: Path) -> None:
    other = written(tmp_path / "other.yaml", UNREVIEWED)
    every = json.loads(run("--policy", other, "--json").stdout)["issues"]
    assert json.loads(run("--policy", other, "--last", "2", "--json").stdout)["issues"] == every[-2:]
    assert json.loads(run(every[0]["issue"], "--policy", other, "--last", "1", "--json").stdout)["issues"] == every[:1]
    done = run("t-99", "--policy", other)
    assert isinstance(done.exception, AshepError)
    assert "nothing is known of an issue t-99" in str(done.exception)


def test_the_policies_in_force_are_the_same(run: Run, tmp_path: Path) -> None:
    (tmp_path / "same.yaml").write_text(same())
    told = json.loads(run("--policy", str(tmp_path / "same.yaml"), "--json").stdout)["totals"]
    assert told["issues"] == told["same"] > 2
    assert told["runs"]["saved"] == {"least": 0, "most": 0}


def test_agents_alone_are_compared_too(run: Run, tmp_path: Path) -> None:
    critic = given.CRITIC.model_dump(mode="json") | {"runner": {"agent_slug": "build"}}
    agents = [given.BUILDER.model_dump(mode="json"), critic]
    (tmp_path / "agents.yaml").write_text(yaml.safe_dump({"version": 1, "agents": agents}))
    told = json.loads(run("--agents", str(tmp_path / "agents.yaml"), "--json").stdout)
    assert told["totals"]["unknown"] > 0
    assert "a run of review by critic" in {one["unknown"]["needs"] for one in told["issues"] if one["unknown"]}


@pytest.mark.promise("Y4")
def test_nothing_is_touched_and_a_batch_that_is_being_written_is_left_out(run: Run, tmp_path: Path) -> None:
    other = written(tmp_path / "other.yaml", UNREVIEWED)
    whole = run("--policy", other, "--json").stdout
    (file,) = (tmp_path / ".agent-shepherd" / "state" / "journal").glob("*.jsonl")
    with file.open("ab") as journal:
        journal.write(file.read_bytes().splitlines(keepends=True)[-2].replace(b'"seq":', b'"seq":9', 1)[:40])
    before = present(tmp_path / ".agent-shepherd")
    assert run("--policy", other, "--json").stdout == whole
    assert run("--policy", other).exit_code == 0
    assert present(tmp_path / ".agent-shepherd") == before


def test_who_waits_at_a_terminal_is_told_how_far_it_has_got(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pty.openpty()
    with open(theirs, "w") as terminal, open(ours, "rb", buffering=0) as screen:
        monkeypatch.setattr(sys, "stderr", terminal)
        for silence, said in ((60.0, b""), (-1.0, b"\rashep: compared 12,345 records\r\x1b[K")):
            monkeypatch.setattr(cli_screen, "SILENCE", silence)
            with cli_screen.ProgressLine("compared") as progress:
                progress(12_345)
                progress(12_346)  # not at once again
            terminal.write("|")
            terminal.flush()
            shown = b""
            while not shown.endswith(b"|"):  # a terminal gives what has come so far
                shown += screen.read(200)
            assert shown == said + b"|"


def test_there_may_be_nothing_to_compare(tmp_path: Path) -> None:
    (tmp_path / ".agent-shepherd").mkdir()
    command = ["-C", str(tmp_path), "replay", "--policy", written(tmp_path / "other.yaml", UNREVIEWED)]
    done = CliRunner().invoke(app, command)
    assert (done.exit_code, done.stdout) == (0, "no issue to compare: none was taken, nor would have been\n")
    assert json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)["issues"] == []
    assert [path.name for path in (tmp_path / ".agent-shepherd").iterdir()] == []


def test_policies_that_ashep_would_refuse_are_compared_and_that_is_said(run: Run, tmp_path: Path) -> None:
    endless = {"implement": {"next": {"success": "implement", "failed": "implement"}}}
    done = run("--policy", written(tmp_path / "other.yaml", endless), "--json")
    told = json.loads(done.stdout)
    assert [one["code"] for one in told["findings"]]
    assert told["totals"]["issues"] > 0
    assert "ashep would refuse to work so: " in run("--policy", str(tmp_path / "other.yaml")).stderr
    (tmp_path / "same.yaml").write_text(same())
    assert json.loads(run("--policy", str(tmp_path / "same.yaml"), "--json").stdout)["findings"] == []


@pytest.mark.parametrize("option", ["--policy", "--agents"])
def test_a_broken_file_is_told_line_by_line(option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / ".agent-shepherd").mkdir()
    bad = tmp_path / "bad.yaml"
    bad.write_text("version: 1\npolicies:\n  standard:\n    phases:\n      - nme: x\nagents:\n  - {id: 7}\n")
    assert main(["-C", str(tmp_path), "replay", option, str(bad)]) == UsageError.exit_code
    told = capsys.readouterr().err.splitlines()
    assert len(told) > 1
    assert all(line.startswith(f"ashep: {bad}:") for line in told)
    word = "policies.standard.phases[0].nme" if option == "--policy" else "agents[0].id"
    assert any(word in line for line in told)
    assert main(["-C", str(tmp_path), "replay", option, str(tmp_path / "none.yaml")]) == UsageError.exit_code
    assert "there is no such file" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--last", "3"], ["--strict"]])
def test_an_option_of_a_comparison_alone_is_refused(run: Run, words: list[str]) -> None:
    done = run(*words)
    assert isinstance(done.exception, UsageError)
    assert "goes with --policy or --agents" in str(done.exception)


def test_a_policys_name_counts_where_prompts_show_it(run: Run, tmp_path: Path) -> None:
    (tmp_path / "same.yaml").write_text(same().replace("standard", "other"))
    command = ("--policy", str(tmp_path / "same.yaml"), "--json")
    assert json.loads(run(*command).stdout)["totals"]["unknown"] == 0
    (tmp_path / ".agent-shepherd" / "prompts").mkdir()
    template = tmp_path / ".agent-shepherd" / "prompts" / "task.md.j2"
    template.write_text("about our policy: {{ run }}")
    assert json.loads(run(*command).stdout)["totals"]["unknown"] == 0
    template.write_text("{% if policy == 'standard' %}be quick{% endif %}")
    assert json.loads(run(*command).stdout)["totals"]["unknown"] > 0


@pytest.mark.slow
def test_what_was_pruned_is_not_guessed(tmp_path: Path) -> None:
    state = tmp_path / ".agent-shepherd" / "state"
    made = Recorded(state, chances=WILD, seed=11)
    made.journal.close()
    made.journal = Journal.open(state, given.T0, Sizes(file=20_000, keep=40_000))
    made.begin()
    for number in range(4):
        made.open(f"t-{number}")
    made.live(400)
    archive(state / "journal", 40_000)
    assert prune(made.journal, given.T0)
    made.journal.close()
    (tmp_path / "same.yaml").write_text(same())
    command = ["-C", str(tmp_path), "replay", "--policy", str(tmp_path / "same.yaml")]
    told = json.loads(CliRunner().invoke(app, [*command, "--json"]).stdout)
    assert told["covers"] > 100
    assert told["totals"]["unbounded"] == told["totals"]["unknown"] > 0
    said = CliRunner().invoke(app, command).stdout
    assert "have no bounds, and are not counted" in said
    assert f"what was before {told['covers']} was pruned" in said


@pytest.mark.slow
def test_it_imports_no_database_and_no_adapter(run: Run, tmp_path: Path) -> None:
    words = ["-C", str(tmp_path), "replay", "--policy", written(tmp_path / "other.yaml", UNREVIEWED)]
    code = "import sys; from ashep.cli import main; main(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=240, check=True)
    assert "ashep.core.analysis.counterfactual" in done.stderr
    assert not {"sqlmodel", "httpx", "ashep.adapters"} & set(done.stderr.split())
