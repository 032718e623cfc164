"""`ashep sync-agents`: what a person wrote stays, what the server has is added once, what is gone is said."""

import sys
from pathlib import Path
from subprocess import run
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ashep.config import ConfigErrors, read
from ashep.config.starter import starter
from ashep.config.sync_agents import GUESSED, ServerAgent, SyncResult, Vanished, sync
from ashep.core.facts.runs import Model
from ashep.core.policy.agents import Agent, Agents
from ashep.errors import ConfigError

BUILD = ServerAgent("build", "primary", native=True, writes=True)
PLAN = ServerAgent("plan", "primary", native=True, writes=False)
GENERAL = ServerAgent("general", "subagent", native=True, writes=True)
EXPLORE = ServerAgent("explore", "subagent", native=True, writes=False)
TITLE = ServerAgent("title", "primary", native=True, writes=False, hidden=True)
SERVER = (BUILD, PLAN, GENERAL, EXPLORE, TITLE)
MODELS = (Model("zen", "small"), Model("acme", "large"), Model("acme", "tiny"))

BLOCK = """\

# --- the server's providers and models; `ashep sync-agents` rewrites this block ---
# default: acme/large
# acme:
#   large
#   tiny
# zen:
#   small
# --- end of the server's providers and models ---
"""

SMALL = "version: 1\nagents:\n  - id: a\n    capabilities: [x]\n"


def agents(text: str) -> tuple[Agent, ...]:
    return read(Agents, text, Path("agents.yaml")).agents


def added(text: str, *server: ServerAgent) -> SyncResult:
    return sync(text, server, ())


def test_the_starter_file_gets_what_is_new() -> None:
    text = starter("agents.yaml")
    result = sync(text, SERVER, MODELS, Model("acme", "large"))
    assert (result.added, result.vanished) == (("explore", "general"), ())
    before, after = text.split("\n  # A person:")
    entries = f"""
    # {GUESSED}
  - id: explore
    capabilities: [analyze]
    read_write: read
    runner: {{type: opencode, agent_slug: explore}}
    priority: -10

    # {GUESSED}
  - id: general
    capabilities: [analyze]
    read_write: write
    runner: {{type: opencode, agent_slug: general}}
    priority: -10
"""
    assert result.text == f"{before}{entries}\n  # A person:{after}{BLOCK}"
    assert agents(result.text)[:4] == agents(text)


def test_the_diff_is_what_changed() -> None:
    result = added(SMALL, PLAN)
    assert result.diff.startswith("--- a/agents.yaml\n+++ b/agents.yaml\n@@ ")
    assert [line for line in result.diff.splitlines()[2:] if line.startswith("-")] == []
    assert "+  - id: plan" in result.diff.splitlines()


def test_guesses() -> None:
    mine = ServerAgent("mine", "all", native=False, writes=True, model=Model("acme", "large"))
    plan, build = (
        ServerAgent("p", "primary", native=False, writes=False),
        ServerAgent("w", "all", native=False, writes=True),
    )
    new = {agent.id: agent for agent in agents(added(SMALL, mine, plan, build).text)}
    assert new["mine"].capabilities == new["w"].capabilities == ("implement", "code", "debug")
    assert (new["mine"].read_write, new["p"].read_write) == ("write", "read")
    assert new["p"].capabilities == ("plan", "review", "arbitrate", "analyze")
    assert (new["mine"].runner.provider, new["mine"].runner.model) == ("acme", "large")
    assert new["p"].runner.model is None
    assert {new[name].priority for name in ("mine", "p", "w")} == {-10}


def test_a_second_time_changes_nothing() -> None:
    first = sync(starter("agents.yaml"), SERVER, MODELS)
    second = sync(first.text, SERVER, MODELS)
    assert second == SyncResult(first.text, "", (), ())


def test_the_list_of_models_is_refreshed() -> None:
    first = sync(SMALL, (), MODELS, Model("acme", "large"))
    assert first.text == SMALL + BLOCK
    second = sync(first.text + "# mine, after the block\n", (), MODELS[:1])
    assert "acme" not in second.text
    assert "#   small\n" in second.text
    assert "# mine, after the block\n" in second.text


def test_what_is_gone_is_kept_and_said() -> None:
    text = """\
version: 1
agents:
  - {id: a, capabilities: [x], runner: {agent_slug: gone}}
  - {id: b, capabilities: [x], runner: {provider: acme, model: huge}}
  - {id: c, capabilities: [x], runner: {agent_slug: build, provider: acme, model: tiny}}
  - {id: d, capabilities: [x], is_human: true}
"""
    result = sync(text, (BUILD,), MODELS)
    assert result.vanished == (Vanished("a", "agent_slug", "gone"), Vanished("b", "model", "acme/huge"))
    assert result.text.startswith(text)
    assert result.added == ()


@pytest.mark.promise("F4")
@pytest.mark.parametrize("text", [
    SMALL,
    SMALL.rstrip("\n"),
    SMALL.replace("\n", "\r\n"),
    "version: 1\nagents:\n- id: a\n  capabilities: [x]   # why\n\n\n",
    "agents:\n    -   id: a   # spaced\n        capabilities:\n          - x\n\n# between\nversion: 1 # last\n",
    "agents:\n  - {id: a, capabilities: [x]} # flow\nversion: 1\n",
    "agents:\n  - {id: a,\n     capabilities: [x]}\nversion: 1\n",
    SMALL + "    runner:\n      agent_slug: >-\n        folded\n\n",
    "\ufeff" + SMALL,
])  # fmt: skip
def test_what_a_person_wrote_stays_byte_for_byte(text: str) -> None:
    result = added(text, BUILD)
    assert result.added == ("build",)
    lines = result.text.splitlines(keepends=True)
    rest = iter(lines)
    assert all(any(line.rstrip("\r\n") == kept.rstrip("\r\n") for kept in rest) for line in text.splitlines())
    assert [agent.id for agent in agents(result.text.removeprefix("\ufeff"))] == ["a", "build"]
    if "\r\n" in text:
        assert all(line.endswith("\r\n") for line in lines)


def test_a_list_in_flow_style() -> None:
    text = "# mine\nversion: 1\nagents: [{id: a, capabilities: [x]}] # people\n"
    odd = ServerAgent("0?", "primary", native=False, writes=False)
    result = added(text, BUILD, PLAN, odd)
    assert [agent.id for agent in agents(result.text)] == ["a", "agent-0", "build", "plan"]
    assert "# mine" in result.text
    assert "# people" in result.text
    assert added(result.text, BUILD, PLAN, odd).diff == ""


def test_an_entry_that_would_change_is_not_written() -> None:
    text = (
        "version: 1\nagents: [{id: a, capabilities: [x], runner: {agent_slug: +1}}]\n"  # a word to us, 1 to the editor
    )
    with pytest.raises(ConfigError, match=r"^agents.yaml: agents: entries cannot be added to this layout"):
        added(text, BUILD)


def test_a_broken_file_is_refused() -> None:
    with pytest.raises(ConfigErrors, match=r"^agents.yaml:2: agent: unknown key; did you mean agents\?"):
        added("version: 1\nagent: []\n", BUILD)


def test_names_that_are_taken_or_no_names() -> None:
    server = [ServerAgent(name, "primary", native=False, writes=False) for name in ("a", "A b!", "7", "true", "é", "")]
    new = {agent.id: agent.runner.agent_slug for agent in agents(added(SMALL, *server).text)}
    assert new == {"a": None, "a-2": "a", "A-b": "A b!", "agent-7": "7", "true": "true", "agent": "é"}


def test_foreign_names_cannot_leave_their_line() -> None:
    evil = "x\nagents: []\u2028\x1b[31m# "
    result = sync(SMALL, [ServerAgent(evil, "all", native=False, writes=True)], [Model(evil, evil)], Model(evil, evil))
    assert [agent.runner.agent_slug for agent in agents(result.text)] == [None, evil]
    assert "\x1b" not in result.text
    assert sync(result.text, [ServerAgent(evil, "all", native=False, writes=True)], [Model(evil, evil)]).added == ()


TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
MODES: st.SearchStrategy[Literal["primary", "subagent", "all"]] = st.sampled_from(["primary", "subagent", "all"])
NONEMPTY = TEXTS.filter(bool)
SERVERS = st.lists(
    st.builds(
        ServerAgent,
        TEXTS | st.sampled_from(["null", "on", "1", "a: b", "- x", "{", "#", "0?", "1:2", "\ufeff", "\x85"]), MODES,
        st.booleans(), st.booleans(), st.none() | st.builds(Model, NONEMPTY, NONEMPTY),
    ),
    max_size=3,
)  # fmt: skip
FILES = st.sampled_from([starter("agents.yaml"), SMALL, "version: 1\nagents: [{id: a, capabilities: [x]}]\n"])


@pytest.mark.slow
@pytest.mark.promise("F4")
@given(FILES, SERVERS, st.lists(st.builds(Model, TEXTS, TEXTS), max_size=3))
def test_entries_are_only_added_and_the_second_time_nothing(
    text: str, server: list[ServerAgent], models: list[Model]
) -> None:
    first = sync(text, server, models)
    before, after = agents(text), agents(first.text)
    assert after[: len(before)] == before
    assert tuple(agent.id for agent in after[len(before) :]) == first.added
    slugs = {agent.runner.agent_slug for agent in after}
    assert {agent.name for agent in server if agent.name} <= slugs
    again = sync(first.text, server, models)
    assert (again.text, again.diff, again.added) == (first.text, "", ())


def test_reading_the_configuration_does_not_import_the_editor() -> None:
    code = "import sys, ashep.config; sys.exit('ruamel' in ' '.join(sys.modules))"
    assert run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("word", ["NULL", "Null", "True", "Yes", "off", "n"])
def test_words_that_mean_something_to_other_readers_stay_words(word: str) -> None:
    text = "version: 1\nagents: [{id: a, capabilities: [implement]}]\n"
    server = [ServerAgent("build", "primary", native=True, writes=True, model=Model("p", word))]
    added = agents(sync(text, server, []).text)[-1]
    assert added.runner.model == word


# --- runners beside the server --------------------------------------------------------------------------------------


def test_an_agent_of_a_runner_beside_the_server_is_added_under_that_runner() -> None:
    tied = Model("anthropic", "opus")
    painter = ServerAgent("build", "all", native=False, writes=False, model=tied, runner="maker")
    known = ServerAgent("Plan", "all", native=True, writes=True, hidden=True, runner="maker")
    text = starter("agents.yaml")
    result = sync(text, (*SERVER, painter, known), MODELS, beside={"maker": (tied,)})
    assert result.added == ("explore", "general", "build")
    entry = agents(result.text)[-1]
    assert (entry.runner.type, entry.runner.agent_slug) == ("maker", "build")
    assert (entry.runner.provider, entry.runner.model, entry.read_write) == ("anthropic", "opus", "read")
    block = "# the runner maker, and more by their own names:\n#   anthropic/opus\n# --- end of"
    assert block in result.text
    again = sync(result.text, (*SERVER, painter, known), MODELS, beside={"maker": (tied,)})
    assert (again.diff, again.vanished) == ("", ())


def test_what_a_runner_beside_the_server_has_no_more_is_said_where_it_was_asked() -> None:
    text = f"{SMALL}    runner: {{type: maker, agent_slug: gone, provider: anthropic, model: any}}\n"
    assert sync(text, SERVER, ()).vanished == ()
    known = ServerAgent("Plan", "all", native=True, writes=True, hidden=True, runner="maker")
    assert sync(text, (*SERVER, known), ()).vanished == (Vanished("a", "agent_slug", "gone"),)
