"""A policy as a picture: `ashep policy graph`."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ashep.cli import main, output
from ashep.config import load, write_starter
from ashep.config.presets import PRESETS
from ashep.core.analysis.soundness import Defect, PolicyEdge, analyse
from ashep.views import policy_graph
from tests.recorded import life
from tools.policy_pictures import PAGES, redrawn

ROOT = Path(__file__).resolve().parent.parent


def found(code: Any, severity: Any, phase: str, key_path: tuple[str | int, ...], message: str) -> Defect:
    return Defect(code, severity, "p", phase, key_path, message, (), "")


EDGES = (
    PolicyEdge("make", "success", "end", "success"),
    PolicyEdge("make", "failed", "park", "failure"),
    PolicyEdge("make", "partial", "park", "failure"),
    PolicyEdge("make", "failed", "park", "failure"),
    PolicyEdge("end", "good", "close", "success"),
    PolicyEdge("end", "bad", "make-sure", "success"),
    PolicyEdge("make-sure", "approved", "make", "answer"),
    PolicyEdge("make-sure", "changes_requested", "make", "answer"),
    PolicyEdge("make-sure", "deadline", "make", "deadline"),
)
PHASES = [("make", ("implement", "code"), False), ("end", ("end",), False), ("make-sure", ("make-sure",), True)]
FINDINGS = (
    found("dead-edge", "error", "end", ("policies", "p", "phases", 1, "next", "bad"), "leads\nnowhere"),
    found("single-agent", "warning", "make", ("policies", "p", "phases", 0), "one agent"),
    found("never", "warning", "make-sure", ("policies", "p", "phases", 2, "human", "on_deadline"), "never"),
    found("loop", "error", "", ("policies", "p"), "no end"),
)
PICTURE = policy_graph.picture("p", PHASES, EDGES, FINDINGS, {"make": 1, "close": 7, "gone": 3})


@pytest.mark.promise("F22")
def test_mermaid_draws_every_edge_and_colours_what_is_wrong() -> None:
    assert policy_graph.mermaid(PICTURE) == [
        "flowchart TD",
        "    begin(( )) --> make",
        '    make["make<br/>implement, code<br/>1 issue"]',
        '    end_["end<br/>0 issues"]',
        '    make_sure{{"make-sure<br/>asks a person<br/>0 issues"}}',
        '    close(["close<br/>7 issues"])',
        '    park(["park<br/>0 issues"])',
        '    make -->|"success"| end_',
        '    make -.->|"failed, partial"| park',
        '    end_ -->|"good"| close',
        '    end_ -->|"bad"| make_sure',
        '    make_sure -->|"approved, changes_requested"| make',
        '    make_sure -.->|"deadline"| make',
        "    classDef human stroke-dasharray: 5 3",
        "    classDef error stroke:#c62828,stroke-width:3px,color:#c62828",
        "    classDef warning stroke:#ef6c00,stroke-width:3px,color:#ef6c00",
        "    class make_sure human",
        "    class end_ error",
        "    class make,make_sure warning",
        "    linkStyle 4 stroke:#c62828,stroke-width:3px",
        "    linkStyle 6 stroke:#ef6c00,stroke-width:3px",
        "    %% error dead-edge: end: leads nowhere",
        "    %% warning single-agent: make: one agent",
        "    %% warning never: make-sure: never",
        "    %% error loop: no end",
    ]


def test_the_number_of_a_coloured_line_is_that_of_its_edge() -> None:
    lines = [line for line in policy_graph.mermaid(PICTURE) if "-->" in line or "-.->" in line]
    assert lines[4] == '    end_ -->|"bad"| make_sure'
    assert lines[6] == '    make_sure -.->|"deadline"| make'


def test_words_of_mermaid_and_names_that_look_alike_get_ids_of_their_own() -> None:
    phases = [(name, (name,), False) for name in ("end", "end_", "a-b", "a_b", "Class", "begin", "graph")]
    edges = [PolicyEdge(phase[0], "success", "close", "success") for phase in phases]
    lines = policy_graph.mermaid(policy_graph.picture("p", phases, edges))
    ids = re.findall(r'^    (\w+)\["', "\n".join(lines), re.M)
    assert len(ids) == len(set(ids)) == len(phases)
    assert not {"end", "Class", "begin", "graph"} & set(ids)


def test_dot_draws_the_same() -> None:
    lines = policy_graph.dot(PICTURE)
    assert lines[0] == 'digraph "p" {'
    assert lines[-1] == "}"
    assert (
        '    "make" [label="make\\nimplement, code\\n1 issue", color="#ef6c00", fontcolor="#ef6c00", penwidth=2];'
        in lines
    )
    assert '    "make-sure" -> "make" [label="approved, changes_requested"];' in lines
    assert '    "make" -> "park" [label="failed, partial", style=dashed];' in lines
    assert '    "end" -> "make-sure" [label="bad", color="#c62828", fontcolor="#c62828", penwidth=2];' in lines
    assert sum("->" in line for line in lines) == 7


def test_text_lists_each_phase_with_what_leads_on() -> None:
    lines = policy_graph.text(PICTURE)
    assert lines[:3] == [
        ("make (implement, code, 1 issue)", "warning"),
        ("  success                      → end", None),
        ("  failed, partial              → park", None),
    ]
    assert ("  bad                          → make-sure", "error") in lines
    assert lines[-1] == ("error loop: no end", "error")


def test_json_has_every_move_by_itself() -> None:
    told = policy_graph.as_json(PICTURE)
    assert json.loads(json.dumps(told)) == json.loads(json.dumps(told | {"policy": "p"}))
    moves = {(edge["source"], edge["move"], edge["target"], edge["kind"]) for edge in told["edges"]}
    assert moves == {(edge.source, edge.move, edge.target, edge.kind) for edge in EDGES}
    assert [phase["issues"] for phase in told["phases"]] == [1, 0, 0, 7, 0]
    assert [edge["findings"] for edge in told["edges"] if edge["move"] == "bad"] == [["dead-edge"]]
    assert [finding["code"] for finding in told["findings"]] == ["dead-edge", "single-agent", "never", "loop"]


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_starter(tmp_path / ".agent-shepherd", "planned")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_command_draws_in_each_form(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = {
        "mermaid": "flowchart TD\n", "dot": 'digraph "planned" {\n', "text": "plan\n", "json": '{"policy": "planned"',
    }  # fmt: skip
    for form, begins in first.items():
        assert main(["policy", "graph", "planned", "--format", form]) == 0
        out, err = capsys.readouterr()
        assert out.startswith(begins)
        assert err == ""
        assert "issues" not in out or form == "json"
        assert "\x1b" not in out


def test_colours_only_on_a_terminal(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "colours", lambda: True)
    for line, mark in policy_graph.text(PICTURE):
        output.say_painted((line, {"error": "red", "warning": "yellow"}.get(mark or "")))
    out = capsys.readouterr().out
    assert "\x1b[31m  bad" in out
    assert "\x1b[33mmake (" in out


@pytest.mark.parametrize(("arguments", "said"), [
    (["nope"], "there is no policy nope; there are planned"),
    (["--format", "svg"], "--format svg: it is one of mermaid, dot, json, text"),
])  # fmt: skip
def test_a_mistake_is_one_line(
    arguments: list[str], said: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["policy", "graph", *arguments]) == 2
    assert capsys.readouterr() == ("", f"ashep: {said}\n")


@pytest.mark.slow
def test_live_counts_the_issues_of_each_phase(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_starter(project / ".agent-shepherd", "standard", force=True)
    made = life(project / ".agent-shepherd" / "state", issues=4, until="person")
    at = {"work": "phase", "person": "phase", "parked": "park", "closed": "close", "finishing": "phase"}
    wanted: dict[str, int] = {}
    for flow in made.world.flows.values():
        place = at.get(flow.stage)
        name = flow.phase if place == "phase" else place
        if name is not None and flow.policy == "standard":
            wanted[name] = wanted.get(name, 0) + 1
    assert main(["policy", "graph", "--live", "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert wanted
    assert {phase["name"]: phase["issues"] for phase in told["phases"] if phase["issues"]} == wanted


def test_live_without_a_journal_counts_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["policy", "graph", "--live", "--format", "text"]) == 0
    assert "implement (0 issues)\n" in capsys.readouterr().out


def test_what_the_check_finds_is_drawn_in_red(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trap = (
        "version: 1\npolicies:\n  trap:\n    phases:\n      - {name: plan, next: {success: plan}}\n      - implement\n"
    )
    (project / ".agent-shepherd" / "policies.yaml").write_text(trap)
    assert main(["policy", "check"]) == 1
    codes = set(re.findall(r"^error .*\[([a-z-]+)\]$", capsys.readouterr().out, re.M))
    assert codes >= {"never-closes", "unreachable-phase"}
    assert main(["policy", "graph", "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {finding["code"] for finding in told["findings"]} == codes
    assert all(phase["findings"] for phase in told["phases"] if phase["kind"] == "agent")
    assert main(["policy", "graph"]) == 0
    out = capsys.readouterr().out
    assert "    class plan,implement error\n" in out
    assert "    %% error unreachable-phase: implement: nothing leads to the phase implement\n" in out


def test_a_phase_for_which_a_person_of_the_registry_is_chosen_asks(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (project / ".agent-shepherd" / "agents.yaml").open("a") as file:
        file.write("  - {id: alice, capabilities: [browsertest], is_human: true}\n")
    (project / ".agent-shepherd" / "policies.yaml").write_text("version: 1\npolicies: {p: [implement, browsertest]}\n")
    assert main(["policy", "graph"]) == 0
    assert '    browsertest{{"browsertest<br/>asks a person"}}\n' in capsys.readouterr().out


def test_every_edge_of_the_search_is_drawn(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loaded = load(project / ".agent-shepherd")
    edges = analyse(loaded.policies, loaded.agents, loaded.settings)["planned"].edges
    assert main(["policy", "graph", "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)["edges"]
    assert {(one["source"], one["move"], one["target"], one["kind"]) for one in told} == {
        (one.source, one.move, one.target, one.kind) for one in edges
    }
    assert main(["policy", "graph", "--format", "text"]) == 0
    assert "  any failure        → park\n" in capsys.readouterr().out


def test_files_that_contradict_themselves_are_not_drawn(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / ".agent-shepherd" / "policies.yaml").write_text("version: 1\npolicies:\n  p: [implement, nobody]\n")
    assert main(["policy", "graph"]) == 2
    assert "no agent in agents.yaml has the capability nobody" in capsys.readouterr().err


# --- the documentation ------------------------------------------------------------------------------------------------


@pytest.mark.promise("F22")
@pytest.mark.parametrize("name", PAGES)
def test_the_pictures_of_the_documentation_are_what_the_command_draws(name: str) -> None:
    page = (ROOT / name).read_text(encoding="utf-8")
    assert "```mermaid" in page
    assert page == redrawn(page), "run `python -m tools.policy_pictures`"


def test_every_picture_is_on_a_page_that_is_drawn_anew_and_every_preset_has_one(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pages = [page for page in (ROOT / "docs").rglob("*.md") if "```mermaid" in page.read_text(encoding="utf-8")]
    assert sorted(str(page.relative_to(ROOT)) for page in pages) == sorted(PAGES)
    shown = (ROOT / "docs" / "guides" / "presets.md").read_text(encoding="utf-8")
    assert (
        re.findall(r'^```mermaid title="(.*)"$', shown, re.M) == list(PRESETS) == re.findall(r"^## (.*)$", shown, re.M)
    )
    for preset in PRESETS:
        write_starter(project / ".agent-shepherd", preset, force=True)
        assert main(["policy", "graph"]) == 0
        assert f'```mermaid title="{preset}"\n{capsys.readouterr().out}```\n' in shown
