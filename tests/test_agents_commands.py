"""`ashep agents list`, `explain` and `check` from outside."""

from pathlib import Path

import pytest

from tests.recorded import life
from tests.test_cli import ashep

pytestmark = pytest.mark.slow  # starts a program for nearly every test

POLICIES = """\
version: 1
policies:
  standard: [implement, review, {name: ask, human: {ask: Merge, changes_requested: implement}}]
  other: [implement]
"""
AGENTS = """\
version: 1
agents:
  - {id: builder, capabilities: [implement], read_write: write, priority: 5}
  - {id: second, capabilities: [implement], read_write: write}
  - {id: reader, capabilities: [implement, review], runner: {agent_slug: plan, provider: acme, model: large}}
  - {id: alice, capabilities: [paint], is_human: true}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / ".agent-shepherd"
    folder.mkdir()
    (folder / "policies.yaml").write_text(POLICIES)
    (folder / "agents.yaml").write_text(AGENTS)
    return tmp_path


def test_agents_are_listed_with_what_they_can_take(project: Path) -> None:
    done = ashep("agents", "list", cwd=project)
    assert (done.code, done.err) == (0, "")
    head, builder, _, reader, alice, server = done.out.splitlines()
    assert head.split() == ["AGENT", "CAPABILITIES", "ACCESS", "RUNS", "ON", "PRIORITY", "CAN", "TAKE"]
    assert builder.endswith("  standard: implement; other: implement")
    assert "opencode plan acme/large" in reader
    assert reader.endswith("standard: review")
    assert "a person" in alice
    assert server == "the agent server was never seen: whether it has these agents and models is not known"
    told = ashep("agents", "list", "--json", cwd=project).json
    assert [one["phases"] for one in told["agents"]][2] == {"standard": ["review"]}
    assert told["runners"] == {}


@pytest.mark.promise("F31")
def test_a_choice_is_explained_with_the_reason_against_each_other_agent(project: Path) -> None:
    done = ashep("agents", "explain", "implement", "--policy", "standard", cwd=project)
    assert done.code == 0
    assert done.out.splitlines()[:5] == [
        "standard/implement: builder",
        "  builder has implement, priority 5",
        "  not reader: may only read, and the phase writes",
        "  not alice: lacks the capability implement",
        "  not second: has a lower priority than builder",
    ]
    told = ashep("agents", "explain", "implement", "--json", cwd=project).json
    assert [(one["policy"], one["agent"]) for one in told["choices"]] == [("standard", "builder"), ("other", "builder")]
    assert ashep("agents", "explain", "ask", cwd=project).out.startswith("standard/ask: a person\n")


def test_a_word_that_is_none_is_told_with_the_nearest(project: Path) -> None:
    for arguments, message in (
        (["implment"], "there is no phase implment; did you mean implement?"),
        (["implement", "--policy", "standart"], "there is no policy standart; did you mean standard?"),
        (["review", "--policy", "other"], "there is no phase review in policy other; expected one of implement"),
    ):
        done = ashep("agents", "explain", *arguments, cwd=project)
        assert (done.code, done.out, done.err) == (2, "", f"ashep: {message}\n")


def test_a_registry_that_fits_no_phase_can_be_looked_at(project: Path) -> None:
    agents = project / ".agent-shepherd" / "agents.yaml"
    agents.write_text(AGENTS.replace(", review]", "]"))
    done = ashep("agents", "explain", "review", cwd=project)
    assert (done.code, done.out.splitlines()[:2]) == (1, ["standard/review: nobody", "  no agent fits phase review"])
    done = ashep("agents", "check", cwd=project)
    assert done.code == 1
    assert "no agent in agents.yaml has the capability review" in done.out
    agents.write_text("version: 1\nagents: [{id: a, capabilitys: [x]}]\n")
    done = ashep("agents", "explain", "review", cwd=project)
    assert (done.code, done.out) == (2, "")
    assert "agents.yaml:2: agents[0].capabilitys: unknown key; did you mean capabilities?" in done.err
    assert ashep("agents", "check", cwd=project).code == 1


def test_the_check_says_who_is_without_use_and_what_one_alone_can_do(project: Path) -> None:
    done = ashep("agents", "check", "--json", cwd=project)
    assert done.code == 0
    assert [(one["code"], one["line"], one["key"], one["severity"]) for one in done.json["findings"]] == [
        ("unused-agent", 6, "agents[3].id", "warning"),
        ("one-agent", 5, "agents[2].id", "warning"),
        ("one-provider", 2, "agents", "warning"),
    ]
    (project / ".agent-shepherd" / "agents.yaml").unlink()
    assert ashep("agents", "check", cwd=project).code == 1


@pytest.mark.promise("F31")
def test_what_the_server_listed_when_it_was_last_seen_counts(project: Path) -> None:
    life(project / ".agent-shepherd" / "state", issues=1, drawn=False, until="person")
    done = ashep("agents", "explain", "review", cwd=project)
    assert (done.code, done.out.splitlines()[0]) == (0, "standard/review: reader")
    assert done.out.endswith("when it was last seen\n")
    agents = project / ".agent-shepherd" / "agents.yaml"
    agents.write_text(AGENTS.replace("model: large", "model: gone"))
    done = ashep("agents", "explain", "review", cwd=project)
    assert done.code == 1
    assert "  not reader: the agent server lists no model acme/gone" in done.out
    assert "error" not in ashep("agents", "check", cwd=project).out
    assert (
        "reader cannot be used: the agent server lists no model acme/gone" in ashep("agents", "check", cwd=project).out
    )
