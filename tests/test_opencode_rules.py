"""Rules of ours beneath OpenCode's: whatever is configured, a session may do nothing that its agent may not do without
us, tried on OpenCode 1.18.33's way to judge (its `evaluate` and `disabled`, written anew below) and on the server.
"""

import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ashep.adapters.runners.opencode.rule_intersection import narrowed
from ashep.adapters.runners.opencode.rulesets import ruleset
from ashep.adapters.runners.opencode.schema import ListedAgent
from ashep.core.policy.permissions import matches
from ashep.core.policy.policies import PermissionRule
from ashep.extras.demo.scripted_model import Call, opencode_config
from ashep.extras.testing.worlds import settled
from ashep.ports.runner import Prompt, SessionRequest
from tests.conformance.runners import RealWorld, real_place, real_world

__all__ = ["real_place", "real_world"]

Rule = dict[str, str]
STRICT = ("deny", "ask", "allow")


# --- OpenCode's way to judge ------------------------------------------------------------------------------------------


@cache
def fits(text: str, pattern: str) -> bool:
    """`Wildcard.match` of 1.18.33, word for word."""
    text, pattern = text.replace("\\", "/"), pattern.replace("\\", "/")
    regex = re.sub(r"[.+^${}()|[\]\\]", lambda found: "\\" + found[0], pattern)
    regex = regex.replace("*", ".*").replace("?", ".")
    if regex.endswith(" .*"):
        regex = regex[:-3] + "( .*)?"
    return re.fullmatch(regex, text, re.DOTALL) is not None


def action(rules: Sequence[Rule], tool: str, text: str) -> str:
    """`Permission.evaluate`: what becomes of a use of a tool."""
    found = [one for one in rules if fits(tool, one["permission"]) and fits(text, one["pattern"])]
    return found[-1]["action"] if found else "ask"


def offered(rules: Sequence[Rule], tool: str) -> bool:
    """`Permission.disabled`: whether a model is shown a tool at all."""
    found = [one for one in rules if fits(tool, one["permission"])]
    return not (found and found[-1]["pattern"] == "*" and found[-1]["action"] == "deny")


def inherited(session: Sequence[Rule], own: Sequence[Rule]) -> list[Rule]:
    """The rules of a subagent's session, of its parent's."""
    kept = [one for one in session if one["permission"] == "external_directory" or one["action"] == "deny"]
    named = {one["permission"] for one in own}
    more = [rule("deny", tool) for tool in ("todowrite", "task") if tool not in named]
    return [*own, *kept, *more]


def rule(action: str, permission: str, pattern: str = "*") -> Rule:
    return {"permission": permission, "pattern": pattern, "action": action}


DEFAULTS = [
    rule("allow", "*"), rule("ask", "doom_loop"), rule("ask", "external_directory"), rule("deny", "question"),
    rule("deny", "plan_enter"), rule("allow", "read"), rule("ask", "read", "*.env"), rule("ask", "read", "*.env.*"),
    rule("allow", "read", "*.env.example"), rule("allow", "question"),
]  # fmt: skip

TOOLS = (
    "bash", "edit", "read", "task", "question", "webfetch", "mcp_a", "mcp_a_write", "other_write", "external_directory",
)  # fmt: skip
PERMISSIONS = (*TOOLS, "*", "mcp_*", "*_write", "mcp_a*", "?cp_a", "b*")
PATTERNS = (
    "*", "bd *", "bd show *", "bd help *", "npm *", "npm test *", "* --force*", "npm", "*.env", "src/*", "?", "general",
    "explore", "a?c", "*test*", "git * -f", "\\bd *", "npm\\x", "* *",
)  # fmt: skip
TEXTS = (
    "bd", "bd show x", "bd help", "bd close x", "npm", "npm test", "npm test --force", "git push -f", "a/.env", "src/a",
    "abc", "x", "general", "explore", "ashep stop", "ls", "*", "npm/x", "/bd x", "",
)  # fmt: skip

rules_of_opencode = st.lists(
    st.builds(rule, st.sampled_from(STRICT), st.sampled_from(PERMISSIONS), st.sampled_from(PATTERNS)), max_size=6
).map(lambda more: [*DEFAULTS, *more])
rules_of_ashep = st.lists(
    st.builds(
        PermissionRule,
        tool=st.sampled_from(PERMISSIONS), pattern=st.sampled_from(PATTERNS), action=st.sampled_from(STRICT),
    ),
    max_size=4,
).map(tuple)  # fmt: skip
accesses = st.sampled_from(("read", "write"))


def agent(name: str, rules: Sequence[Rule], mode: Any = "primary") -> ListedAgent:
    return ListedAgent.model_validate({"name": name, "mode": mode, "permission": rules})


def session(access: Any, users: Sequence[PermissionRule], own: Sequence[Rule], *others: ListedAgent) -> list[Rule]:
    return narrowed(ruleset(access, users), "build", [agent("build", own), *others])


def looser(one: str, other: str) -> bool:
    return STRICT.index(one) > STRICT.index(other)


@pytest.mark.promise("H1")
@given(access=accesses, users=rules_of_ashep, own=rules_of_opencode)
def test_no_combination_of_rules_gives_anything_back(access: Any, users: Any, own: list[Rule]) -> None:
    wanted = ruleset(access, users)
    together = [*own, *session(access, users, own)]
    for tool in TOOLS:
        assert offered(own, tool) or not offered(together, tool), tool
        assert offered([rule("allow", "*"), *wanted], tool) or not offered(together, tool), tool
        for text in TEXTS:
            said = action(together, tool, text)
            assert not looser(said, action(own, tool, text)), (tool, text)
            assert not looser(said, action([rule("allow", "*"), *wanted], tool, text)), (tool, text)


@pytest.mark.promise("X4")
@given(access=accesses, users=rules_of_ashep, own=rules_of_opencode, subs=rules_of_opencode)
def test_no_subagent_is_given_anything_back(access: Any, users: Any, own: list[Rule], subs: list[Rule]) -> None:
    rules = session(access, users, own, agent("general", subs, "subagent"))
    if action([*own, *rules], "task", "general") == "deny":
        return
    below = inherited(rules, subs)
    for tool in TOOLS:
        assert offered(subs, tool) or not offered(below, tool), tool
        for text in TEXTS:
            assert not looser(action(below, tool, text), action(subs, tool, text)), (tool, text)


@given(own=rules_of_opencode)
def test_what_nobody_forbids_stays_as_it_is(own: list[Rule]) -> None:
    """It is no answer to forbid everything: what ashep has nothing against is as OpenCode has it."""
    rules = [*own, *session("write", (), own)]
    for tool in ("edit", "webfetch", "mcp_a", "other_write"):
        assert offered(rules, tool) == offered(own, tool)
        assert [action(rules, tool, text) for text in TEXTS] == [action(own, tool, text) for text in TEXTS]
    for text in ("npm", "npm test", "ls", "git push -f"):
        assert action(rules, "bash", text) == action(own, "bash", text)


@pytest.mark.promise("H1")
def test_what_both_allow_is_allowed() -> None:
    users = (PermissionRule(tool="bash", pattern="npm *", action="allow"), PermissionRule(tool="bash", action="deny"))
    own = [*DEFAULTS, rule("deny", "bash"), rule("allow", "bash", "npm *"), rule("deny", "bash", "npm publish *")]
    rules = [*own, *session("write", users, own)]
    assert offered(rules, "bash")
    assert [action(rules, "bash", one) for one in ("npm test", "npm publish", "ls")] == ["allow", "deny", "deny"]
    assert action([*own, *session("read", (), own)], "read", "a.py") == "allow"
    plain = [*DEFAULTS, *session("write", (), DEFAULTS)]
    assert action(plain, "bash", "bd show x") == "allow"
    assert action(plain, "bash", "bd close x") == "deny"


def test_what_opencode_denies_no_rule_of_config_yaml_allows() -> None:
    everything = (PermissionRule(tool="*", action="allow"),)
    own = [*DEFAULTS, rule("deny", "bash"), rule("ask", "edit")]
    rules = [*own, *session("write", everything, own)]
    assert not offered(rules, "bash")
    assert action(rules, "edit", "a.py") == "ask"  # which ashep answers by the same rule
    asks = (PermissionRule(tool="bash", action="ask"),)
    assert not offered([*own, *session("write", asks, own)], "bash")  # nobody is asked for what is denied


def test_an_agent_that_is_not_named_is_the_servers_default() -> None:
    closed, wide = [*DEFAULTS, rule("deny", "bash")], DEFAULTS
    listed = [agent("build", wide), agent("mine", closed), agent("sub", wide, "subagent")]
    assert offered([*wide, *narrowed(ruleset("write"), None, listed)], "bash")
    assert not offered([*closed, *narrowed(ruleset("write"), None, listed, default="mine")], "bash")
    unknown = narrowed(ruleset("write"), "gone", listed)  # whichever it is that answers
    assert not offered([*closed, *unknown], "bash")


def test_ours_match_as_opencodes_do() -> None:
    for pattern in (*PATTERNS, "(a)*", "a.b"):
        for text in (*TEXTS, "(a)b", "axb", "a\\b"):
            assert matches(pattern, text) == fits(text, pattern), (pattern, text)


# --- the real server --------------------------------------------------------------------------------------------------

SUBAGENT = {"mode": "subagent", "description": "d", "prompt": "p", "permission": {"bash": "deny"}}
ACCESSES: tuple[Any, ...] = ("read", "write")
CONFIGURED: dict[str, dict[str, Any]] = {
    "nothing": {},
    "denied": {"permission": {"bash": "deny", "edit": "deny"}},
    "asked": {"permission": {"bash": "ask", "edit": "ask"}},
    "some": {"permission": {"bash": {"*": "deny", "git status *": "allow"}}},
    "closed": {"permission": {"*": "deny", "read": "allow"}},
    "agents": {"agent": {"build": {"permission": {"bash": "deny", "glob": "deny", "question": "deny"}}}},
    "subagent": {"agent": {"closed": SUBAGENT}},
}
WIDE = (PermissionRule(tool="*", action="allow"),)


def configured(world: RealWorld, name: str) -> Path:
    """A folder with an OpenCode configuration of its own, and a program that tells whether it was run."""
    place = world.folder / f"configured-{name}"
    place.mkdir(exist_ok=True)
    (place / "opencode.json").write_text(json.dumps(opencode_config(world.model.url) | CONFIGURED[name]))
    (place / "program").write_text("#!/bin/sh\ntouch ran\n")
    (place / "program").chmod(0o755)
    return place


async def prompted(world: RealWorld, session: str, word: str, agent: str = "build") -> Sequence[str]:
    """The tools of the request that the model got for a prompt with this word."""
    await world.runner.send(Prompt(session, f"msg_{word}", f"prt_{word}", word, agent, None))
    await settled(world, session, f"msg_{word}", bound=60)
    return next(ask.tools for ask in world.model.asks if word in ask.prompt and ask.kind != "helper")


async def bare(world: RealWorld, place: Path) -> str:
    """A session without rules of ours, as a person opens one in that folder."""
    async with world.http() as http:
        query = {"directory": str(place)}
        made = await http.post("/session", json={"title": "t", "metadata": {"ashep_agent": "build"}}, params=query)
        return made.json()["id"]


@pytest.mark.promise("H1")
@pytest.mark.real
@pytest.mark.parametrize("name", CONFIGURED)
async def test_the_tools_that_a_model_is_shown_are_among_those_without_us(real_world: RealWorld, name: str) -> None:
    place = configured(real_world, name)
    async with real_world.http() as http:
        listed = (await http.get("/agent", params={"directory": str(place)})).json()
        own = next(one["permission"] for one in listed if one["name"] == "build")
        alone = await prompted(real_world, await bare(real_world, place), f"{name}0alone")
        assert {"bash", "edit", "write", "task"} & set(alone) == {
            tool for tool in ("bash", "edit", "write", "task") if offered(own, {"write": "edit"}.get(tool, tool))
        }
        for number, (access, users) in enumerate((access, users) for access in ACCESSES for users in ((), WIDE)):
            key = f"{name}1{number}ours"
            asked = SessionRequest(key, key, access, agent="build", permissions=users, directory=str(place))
            session = await real_world.runner.open_session(asked)
            shown = await prompted(real_world, session, key)
            assert set(shown) <= set(alone)
            held = (await http.get(f"/session/{session}", params={"directory": str(place)})).json()["permission"]
            for tool in alone:
                judged = {"write": "edit", "apply_patch": "edit"}.get(tool, tool)
                assert (tool in shown) == offered([*own, *held], judged), tool


@pytest.mark.promise("H1")
@pytest.mark.real
async def test_a_writer_whose_bash_the_user_denies_runs_and_writes_nothing(real_world: RealWorld) -> None:
    place, word = configured(real_world, "denied"), "denied2runs"
    commands = ("bd help > file", "> file", "export PAGER=./program; bd help", "./program", "ashep verify x > file")
    real_world.steps[word] = [Call("bash", {"command": one, "description": "d"}) for one in commands]
    session = await real_world.runner.open_session(
        SessionRequest(word, word, "write", agent="build", permissions=WIDE, directory=str(place))
    )
    await prompted(real_world, session, word)
    assert not (place / "file").exists()
    assert not (place / "ran").exists()


@pytest.mark.promise("X4")
@pytest.mark.real
async def test_a_subagent_keeps_no_tool_that_its_own_rules_deny(real_world: RealWorld) -> None:
    """The denials of single commands that it has of its parent would offer it a bash."""
    place, word, below = configured(real_world, "subagent"), "subagent2parent", "subagent3below"
    task = {"description": "d", "prompt": below, "subagent_type": "closed"}
    real_world.steps[word] = [Call("task", task)]
    real_world.steps[below] = [Call("bash", {"command": "> file", "description": "d"})]
    session = await real_world.runner.open_session(
        SessionRequest(word, word, "write", agent="build", directory=str(place))
    )
    await prompted(real_world, session, word)
    assert not any(below in ask.prompt and "bash" in ask.tools for ask in real_world.model.asks if ask.kind != "helper")
    assert not (place / "file").exists()


@pytest.mark.promise("H1")
@pytest.mark.real
async def test_a_session_that_another_agent_goes_on_in_is_held_to_what_that_one_may_do(real_world: RealWorld) -> None:
    config = opencode_config(real_world.model.url) | {
        "agent": {"shut": {"permission": {"bash": "deny"}, "mode": "all"}}
    }
    place = real_world.folder / "configured-two"
    place.mkdir(exist_ok=True)
    (place / "opencode.json").write_text(json.dumps(config))
    word = "two2agents"
    session = await real_world.runner.open_session(
        SessionRequest(word, word, "write", agent="build", directory=str(place))
    )
    assert "bash" in await prompted(real_world, session, f"{word}first")
    assert "bash" not in await prompted(real_world, session, f"{word}second", agent="shut")
