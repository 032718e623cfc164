"""The five set-ups of docs/guides/agents.md as they stand there, played on the real tools with a scripted model.

A test adds what the page cannot know: the bd of this project, and the scripted model's address, which stands for that
of a provider, a gateway or a server on the user's machine.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ashep.adapters.sandboxes.exec import find_program_folders
from ashep.adapters.system import programs
from ashep.config.starter import starter
from ashep.extras.demo.project import run_of
from ashep.extras.demo.scripted_model import (
    Call,
    ModelRequest,
    Reply,
    claude_environment,
    opencode_config,
    outcome_text,
    verdict_asked,
)
from tests.e2e.site import Site
from tests.test_docs import fences
from tests.test_docs_agents import FOLDER, section

pytestmark = pytest.mark.real

JUDGED = """
version: 1
default_policy: judged
policies:
  judged:
    match: {types: [task]}
    phases:
      - {name: implement, access: write, timeout: 2m, retry: {max_attempts: 1}}
      - {name: review, access: read, timeout: 2m, verdicts: [approve], next: {approve: close}}
"""
TOKEN = "sk-ant-oat01-a-subscription"
LOGIN = {"accessToken": TOKEN, "refreshToken": "none", "expiresAt": 4_102_444_800_000, "scopes": ["user:inference"]}


@contextmanager
def set_up(
    site: Site, heading: str, variables: Mapping[str, str], files: Mapping[Path, str] = {}, policies: str = JUDGED
) -> Iterator[Site]:
    """The project with what stands below a heading of the page, and variables of the daemon's."""
    blocks = [*fences(section(heading))]
    page = {name[1]: text for words, text in blocks if (name := FOLDER.fullmatch(words))}
    # `opencode acp` stands for it, behind a script: that needs other things in its sandbox
    program = programs.find("opencode")
    assert program is not None
    needs = (site.opencode.parent, *sorted(find_program_folders(program)))
    page["config.yaml"] = page["config.yaml"].replace("~/.gemini/settings.json", ", ".join(map(str, needs)))
    page["config.yaml"] += f"tracker: {{command: {json.dumps(site.bd_command)}}}\nmonitor: {{check_every: 500ms}}\n"
    shown = [json.loads(text) for words, text in blocks if words == "json"]
    written = {site.folder / name: text for name, text in {**page, "policies.yaml": policies}.items()}
    for config in shown:
        for provider in config["provider"].values():
            provider["options"]["baseURL"] = f"{site.model.url}/v1"
        written[site.opencode] = json.dumps(config)
    with site.managing(), site.altered({**written, **files}):
        site.environ |= variables
        try:
            yield site
        finally:
            site.rest()
            site.ashep("stop", "--server")


def of_claude(site: Site, **more: str) -> dict[str, str]:
    """Variables by which Claude Code asks the scripted model, with the login that is given, if any; in `~/.claude`."""
    made = claude_environment(site.model.url, Path(site.environ["HOME"]))
    return {name: made[name] for name in made.keys() - {"ANTHROPIC_API_KEY", "CLAUDE_CONFIG_DIR"}} | more


def writes(ask: ModelRequest) -> Reply:
    """Who makes writes a file, and says what stands in two variables; who judges approves."""
    if "Phase: implement" not in ask.prompt:
        return Reply(outcome_text(verdict_asked(ask.prompt)))
    if not ask.results:
        issue = (run_of(ask.prompt) or "").partition("/")[0]
        line = f"echo made > {issue}.txt; echo tenant=$GATEWAY_TENANT other=$NOT_NAMED"
        return Reply(calls=(Call("bash", {"command": line, "description": "write"}),))
    return Reply(outcome_text(summary=ask.results[-1].strip()))


def walked(site: Site, *issues: str) -> dict[str, list[ModelRequest]]:
    """What was asked of the model by phase, once all that can be done is done."""
    with site.working(*issues, "--until-idle", "--idle-grace", "20s") as working:
        assert working.wait(240) == 0, working.text
    found = dict[str, list[ModelRequest]]()
    for ask in site.model.asks:
        issue, _, run = (run_of(ask.prompt) or "").partition("/")
        if issue in issues:
            found.setdefault(run.partition(".")[0], []).append(ask)
    return found


def closed(site: Site, issue: str) -> list[dict[str, Any]]:
    """The runs of an issue that came to its end."""
    assert site.issue(issue)["status"] == "closed", site.ashep("why", issue)
    site.check()
    return site.runs(issue)


def keys_of(asked: Mapping[str, list[ModelRequest]], *phases: str) -> set[tuple[str | None, str | None]]:
    """By which keys the model was asked in these phases."""
    asks = [ask for phase in phases for ask in asked[phase]]
    return {(ask.headers.get("authorization"), ask.headers.get("x-api-key")) for ask in asks}


LOGINS = {"a login": {}, "a token": {"CLAUDE_CODE_OAUTH_TOKEN": TOKEN}, "a key": {"ANTHROPIC_API_KEY": "the-key"}}


@pytest.mark.full
@pytest.mark.parametrize("login", LOGINS)
def test_with_a_subscription_the_login_is_used_unless_there_is_a_key(site: Site, login: str) -> None:
    file = Path(site.environ["HOME"], ".claude", ".credentials.json")
    files = {} if login == "a token" else {file: json.dumps({"claudeAiOauth": LOGIN})}
    with set_up(site, "A subscription", of_claude(site, **LOGINS[login]), files):
        issue = site.add("by subscription", behaves=writes)
        asked = walked(site, issue)
        assert [(one["runner"], one["cost"] > 0) for one in closed(site, issue)] == [("claude", True)] * 2
        assert site.servers() == [], "what no agent is of is not started"
    keys = (None, "the-key") if login == "a key" else (f"Bearer {TOKEN}", None)
    assert keys_of(asked, "implement", "review") == {keys}
    assert ["opus" in asked["implement"][0].model, "sonnet" in asked["review"][0].model] == [True, True]


@pytest.mark.full
def test_with_a_key_each_turn_is_counted_and_a_budget_in_money_is_kept(site: Site) -> None:
    def dear(ask: ModelRequest) -> Reply:
        return replace(writes(ask), tokens=(6_000_000, 100) if ask.results else None)

    with set_up(site, "An API key", of_claude(site, ANTHROPIC_API_KEY="the-key")):
        cheap, dearer = site.add("cheap", behaves=writes), site.add("dear", behaves=dear)
        asked = walked(site, cheap, dearer)
        costs = [one["cost"] for one in closed(site, cheap)]
        assert [0 < cost < 1 for cost in costs] == [True, True]
        (only,) = site.runs(dearer)
        assert (only["phase"], only["cost"] > 10) == ("implement", True), "nobody reviews it: the issue may cost 10"
        assert "used up: the cost of issue" in site.ashep("why", dearer)
        assert "ashep:parked" in site.issue(dearer)["labels"]
        told = json.loads(site.ashep("usage", "--by", "issue", "--json"))["rows"]
        used = {one["name"]: one["cost"] for one in told}
        assert (used[cheap], used[dearer]) == (pytest.approx(sum(costs)), pytest.approx(only["cost"]))
    assert keys_of(asked, "implement", "review") == {(None, "the-key")}


def test_at_a_gateway_keys_and_variables_are_its_own_and_models_have_its_names(site: Site) -> None:
    own = {"ANTHROPIC_AUTH_TOKEN": "of-claude", "ANTHROPIC_CUSTOM_HEADERS": "x-tenant: t7"}
    named = {"GATEWAY_TOKEN": "of-opencode", "GATEWAY_TENANT": "t7", "NOT_NAMED": "secret"}
    with set_up(site, "A gateway", of_claude(site, **own, **named)):
        issue = site.add("by the gateway", behaves=writes)
        asked = walked(site, issue)
        made, judged = closed(site, issue)
    models = {ask.model for asks in asked.values() for ask in asks}
    assert models == {"the-gateways-own-name", "another-name"}
    assert keys_of(asked, "implement") == {("Bearer of-claude", None)}
    assert keys_of(asked, "review") == {("Bearer of-opencode", None)}
    assert {ask.headers.get("x-tenant") for asks in asked.values() for ask in asks} == {"t7"}
    assert made["outcome"]["summary"] == "tenant=t7 other=", "what is named, and nothing else"
    assert (made["provider"], made["model"]) == ("anthropic", "the-gateways-own-name")
    assert (judged["provider"], judged["model"]) == ("gateway", "another-name")
    assert (made["cost"] > 0, judged["cost"]) == (True, 0), "guessed, and not known"


@pytest.mark.full
def test_a_local_model_has_one_run_at_a_time(site: Site) -> None:
    def slowly(ask: ModelRequest) -> Reply:
        return replace(writes(ask), drip=0.3)

    with set_up(site, "A local model", {}):
        issues = [site.add("first", behaves=slowly), site.add("second", behaves=slowly)]
        asked = walked(site, *issues)
        for issue in issues:
            assert [(one["provider"], one["model"]) for one in closed(site, issue)] == [("local", "coder")] * 2
        records = [one for one in site.journal_all() if one.get("issue") in issues]
    assert {ask.model for asks in asked.values() for ask in asks} == {"coder"}
    planned = [one for one in records if one["type"] == "RunPlanned"]
    steps = [one["run"] for one in records if one["type"] in ("RunPlanned", "RunEnded")]
    assert steps == [one["run"] for one in planned for _ in range(2)], "each ends before the next is begun"
    assert {one["timeout"] for one in planned} == {"PT6M"}, "three times what the phase says"


@pytest.mark.full
@pytest.mark.parametrize("refuses", [False, True])
def test_several_together_work_is_judged_by_another_and_a_third_decides(
    site: Site, tmp_path: Path, refuses: bool
) -> None:
    def behaves(ask: ModelRequest) -> Reply:
        return Reply("no", status=401) if refuses and "opus" in ask.model else writes(ask)

    opencode = programs.find("opencode")
    gemini = tmp_path / "gemini"
    gemini.write_text(f'#!/bin/sh\n[ "$*" = --acp ] && exec "{opencode}" acp\n')
    gemini.chmod(0o755)
    config = opencode_config(site.model.url)
    config["provider"]["openai"] = config["provider"]["scripted"] | {"models": {"gpt-5": {}}}
    config["enabled_providers"] += ["openai"]
    variables = of_claude(site, ANTHROPIC_API_KEY="the-key", PATH=f"{tmp_path}:{site.environ['PATH']}")
    policies = starter("policies.yaml", "cross-reviewed")
    if refuses:
        policies = policies.replace("    limits:  ", "    limits:\n      on_limit: fall_back\n    #", 1)
    with set_up(site, "Several together", variables, {site.opencode: json.dumps(config)}, policies):
        issue = site.add("by several", behaves=behaves)
        walked(site, issue)
        assert "needs:human_approval" in site.issue(issue)["labels"], site.ashep("why", issue)
        site.label(issue, "human:approved")
        walked(site, issue)
        told = [(one["phase"], one["agent"], one["runner"], one["model"]) for one in closed(site, issue)]
        assert ("implement goes on when its provider takes work again" in site.ashep("why", issue)) == refuses
    made = ("implement", "builder", "claude")
    assert told[0][:3] == made
    assert told[1:] == [
        *([("implement", "second", "opencode", "gpt-5")] if refuses else []),
        ("review", "critic", "opencode", "gpt-5"),
        ("arbitrate", "arbiter", "gemini", "default"),
    ]
