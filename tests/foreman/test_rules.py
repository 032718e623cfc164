"""What follows from what Claude Code tells, as tables."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from ashep.extras.foreman.hook_rules import CONTINUE, LONGEST, UNBEGUN, Size, can_be_moved, decide, read_entry, why_long
from ashep.extras.foreman.settings import Restart

AT = datetime(2026, 1, 2, tzinfo=UTC)
TOLD = {"prompt_id": "p-1", "prompt": "mend the roof", "last_assistant_message": "done"}
AGENT = {"tool_name": "Agent", "tool_use_id": "t-1", "tool_input": {"prompt": "look", "subagent_type": "Explore"}}
STOPPED = {"agent_id": "a-1", "agent_type": "Explore", "last_assistant_message": "it leaks"}
PLAN = {"tool_name": "ExitPlanMode", "tool_use_id": "t-2"}
FILE = {"plan": "of the file"}


def kept(event: str, payload: Mapping[str, object], beside: Mapping[str, object] = {}) -> tuple[str, ...]:
    found = read_entry(event, payload, beside, "s-1", AT)
    return () if found is None else (found.kind, found.text, found.agent, found.call)


@pytest.mark.parametrize(
    ("prompt", "counts", "moves"),
    [
        ("/etc/hosts is broken, why?", True, True),
        ("\n/clear", True, True),
        ("a <task-notification> is what?", True, True),
        ("see [Image #1]", True, False),
        ("x" * (LONGEST + 1), True, False),
        ("/clear", False, False),
        ("/foreman:clear-worker-history now", False, False),
        ("<task-notification>\n<task-id>a</task-id>", False, False),
        ("[Request interrupted by user]", False, False),
        ("  \n", False, False),
    ],
)
def test_what_a_person_wrote_counts_and_may_begin_a_session(prompt: str, counts: bool, moves: bool) -> None:
    assert kept("UserPromptSubmit", {**TOLD, "prompt": prompt}) == (("prompt", prompt, "", "") if counts else ())
    assert can_be_moved(prompt) is moves


@pytest.mark.parametrize(
    ("event", "payload", "beside", "expected"),
    [
        ("Stop", TOLD, {}, ("answer", "done", "", "")),
        ("Stop", {"last_assistant_message": "\x1b[2Jdone\ud800"}, {}, ("answer", "[2Jdone", "", "")),
        ("Stop", {**TOLD, "agent_id": "a-1"}, {}, ()),
        ("PreToolUse", AGENT, {}, ("asked", "look", "Explore", "t-1")),
        ("PreToolUse", {**AGENT, "tool_name": "Task"}, {}, ("asked", "look", "Explore", "t-1")),
        ("PreToolUse", {**AGENT, "agent_id": "a-1"}, {}, ()),
        ("PreToolUse", {**AGENT, "tool_name": "Bash"}, {}, ()),
        ("PreToolUse", {**AGENT, "tool_input": {"prompt": "go"}}, {}, ("asked", "go", "general-purpose", "t-1")),
        ("SubagentStop", STOPPED, {"toolUseId": "t-1", "spawnDepth": 1}, ("result", "it leaks", "Explore", "t-1")),
        ("SubagentStop", STOPPED, {"toolUseId": "t-1", "spawnDepth": 2}, ()),
        ("PostToolUse", {**AGENT, "tool_response": {"status": "async_launched"}}, {}, ()),
        ("PostToolUseFailure", {**AGENT, "error": "no such agent"}, {}, ("result", "no such agent", "Explore", "t-1")),
        ("PostToolUse", {**PLAN, "tool_response": {"plan": "1. roof"}}, FILE, ("plan", "1. roof", "", "")),
        ("PostToolUse", {**PLAN, "tool_response": {"plan": None}}, FILE, ("plan", "of the file", "", "")),
        ("UserPromptSubmit", {"prompt": {"no": "text"}}, {}, ()),
    ],
)
def test_what_is_kept_of_a_hook(
    event: str, payload: Mapping[str, object], beside: Mapping[str, object], expected: tuple[str, ...]
) -> None:
    assert kept(event, payload, beside) == expected


def test_what_is_told_twice_has_one_id_and_what_is_said_twice_has_two() -> None:
    told: list[tuple[str, Mapping[str, object]]] = [
        *(("UserPromptSubmit", {**TOLD, **one}) for one in ({}, {"prompt_id": "p-2"}, {"prompt": "and the gutter"})),
        *(("UserPromptSubmit", {"prompt": one}) for one in ("one", "two")),  # as without an id
        *(("Stop", {"prompt_id": one, "last_assistant_message": words}) for one in "ab" for words in ("yes", "no")),
        ("PreToolUse", AGENT),
        *(("SubagentStop", {**STOPPED, "last_assistant_message": words}) for words in ("it leaks", "it is dry")),
    ]
    names = [
        found.id for at in ("s-1", "s-2", "s-1") for one in told if (found := read_entry(*one, {}, at, AT)) is not None
    ]
    assert names[: len(told)] == names[-len(told) :]
    assert len(set(names)) == 2 * len(told) == 24


def decided(event: str, payload: Mapping[str, object], **seen: Any) -> tuple[list[tuple[str, str]], Any, Any]:
    found = read_entry(event, payload, {}, "s-1", AT)
    assert found is not None
    entries, answer, relaunch = decide(found, **seen)
    return [(one.kind, one.text) for one in entries], answer, relaunch


def test_a_session_that_is_too_long_is_begun_anew_before_the_next_subagent() -> None:
    long = "700 kB were said in it"
    entries, answer, relaunch = decided("PreToolUse", AGENT, long=long)
    assert entries == [("asked", UNBEGUN + "look"), ("restart", long)]
    assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert (relaunch.why, relaunch.prompt, long in relaunch.line) == ("long", CONTINUE, True)
    for seen in ({}, {"long": long}):  # while it is under way
        assert decided("PreToolUse", AGENT, ending=True, **seen) == (entries[:1], answer, None)
    assert decided("UserPromptSubmit", TOLD, long=long) == ([("prompt", "mend the roof")], {}, None)


def test_when_a_session_is_too_long() -> None:
    limits = Restart(bytes=600, share=0.7, window=1000)
    assert [bool(why_long(Size(*one), limits)) for one in ((600, 700), (601, 0), (0, 701))] == [False, True, True]


def test_a_prompt_that_begins_a_new_topic_is_kept_and_handed_to_a_new_session() -> None:
    entries, answer, relaunch = decided("UserPromptSubmit", TOLD, topic=True)
    assert entries == [("topic", "a new topic"), ("prompt", "mend the roof")]
    assert (answer["decision"], relaunch.why, relaunch.prompt) == ("block", "topic", "mend the roof")
