"""What follows from what Claude Code tells, as tables; and how long a transcript is."""

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ashep.foreman.rules import CONTINUE, LONGEST, UNBEGUN, Decision, Seen, decide, why_long
from ashep.foreman.settings import Restart
from ashep.foreman.transcript import Growing, Size, size_of

AT = datetime(2026, 1, 2, tzinfo=UTC)
SEEN = Seen("s-1", AT)
ABLE = Seen("s-1", AT, topics=True)
PROMPT: dict[str, object] = {"session_id": "s-1", "prompt_id": "p-1", "prompt": "mend the roof"}
AGENT: dict[str, object] = {
    "session_id": "s-1", "tool_name": "Agent", "tool_use_id": "t-1",
    "tool_input": {"prompt": "look at it", "subagent_type": "Explore"},
}  # fmt: skip
STOPPED: dict[str, object] = {
    "session_id": "s-1", "agent_id": "a-1", "agent_type": "Explore", "last_assistant_message": "it leaks",
}  # fmt: skip


def kept(decision: Decision) -> list[tuple[str, str, str, str]]:
    return [(one.kind, one.text, one.agent, one.call) for one in decision.entries]


@pytest.mark.parametrize(
    ("prompt", "counts"),
    [
        ("mend the roof", True),
        ("/etc/hosts is broken, why?", True),
        ("what does /clear do?", True),
        ("\n/clear", True),
        ("a <task-notification> is what?", True),
        ("/clear", False),
        ("/foreman:clear-worker-history now", False),
        ("<task-notification>\n<task-id>a</task-id>", False),
        ("[Request interrupted by user]", False),
        ("<local-command-stdout>x</local-command-stdout>", False),
        ("  \n", False),
    ],
)
def test_only_what_a_person_wrote_to_the_model_counts(prompt: str, counts: bool) -> None:
    decision = decide("UserPromptSubmit", {**PROMPT, "prompt": prompt}, SEEN)
    assert kept(decision) == ([("prompt", prompt, "", "")] if counts else [])
    assert (decision.answer, decision.relaunch, decision.prompted) == ({}, None, counts)


@pytest.mark.parametrize(
    ("event", "payload", "seen", "expected"),
    [
        ("Stop", {**PROMPT, "last_assistant_message": "done"}, {}, [("answer", "done", "", "")]),
        ("Stop", {**PROMPT, "last_assistant_message": "\x1b[2Jdone\ud800"}, {}, [("answer", "[2Jdone", "", "")]),
        ("Stop", {**PROMPT, "last_assistant_message": ""}, {}, []),
        ("Stop", {**PROMPT, "last_assistant_message": ["done"]}, {}, []),
        ("Stop", {**PROMPT, "last_assistant_message": "of a subagent", "agent_id": "a-1"}, {}, []),
        ("PreToolUse", AGENT, {}, [("asked", "look at it", "Explore", "t-1")]),
        ("PreToolUse", {**AGENT, "agent_id": "a-1"}, {"long": "x"}, []),
        ("PreToolUse", {**AGENT, "tool_name": "Bash"}, {"long": "x"}, []),
        ("PreToolUse", {**AGENT, "tool_input": {"prompt": "go"}}, {}, [("asked", "go", "general-purpose", "t-1")]),
        ("SubagentStop", STOPPED, {"call": "t-1"}, [("result", "it leaks", "Explore", "t-1")]),
        ("SubagentStop", STOPPED, {}, [("result", "it leaks", "Explore", "a-1")]),
        ("SubagentStop", STOPPED, {"nested": True}, []),
        ("PostToolUse", {**AGENT, "tool_response": {"status": "async_launched"}}, {}, []),
        (
            "PostToolUse",
            {**AGENT, "tool_response": {"status": "completed", "content": [{"text": "it"}, 3, {"text": "leaks"}]}},
            {},
            [("result", "it\nleaks", "Explore", "t-1")],
        ),
        ("PostToolUse", {**AGENT, "tool_response": {"content": [{"text": "it leaks"}]}}, {"told": True}, []),
        (
            "PostToolUseFailure",
            {**AGENT, "error": "no such agent"},
            {},
            [("result", "no such agent", "Explore", "t-1")],
        ),
        (
            "PostToolUse",
            {**PROMPT, "tool_name": "ExitPlanMode", "tool_response": {"plan": "1. roof", "filePath": "/p.md"}},
            {"plan": "of the file"},
            [("plan", "1. roof", "", "")],
        ),
        (
            "PostToolUse",
            {**PROMPT, "tool_name": "ExitPlanMode", "tool_response": {"plan": None, "filePath": "/p.md"}},
            {"plan": "of the file"},
            [("plan", "of the file", "", "")],
        ),
        ("PostToolUse", {**PROMPT, "tool_name": "ExitPlanMode", "tool_response": None}, {}, []),
        ("UserPromptSubmit", {"prompt": {"no": "text"}}, {}, []),
        ("SomethingElse", PROMPT, {}, []),
    ],
)
def test_what_is_kept_of_a_hook(
    event: str, payload: Mapping[str, object], seen: Mapping[str, object], expected: list[tuple[str, str, str, str]]
) -> None:
    decision = decide(event, payload, replace(SEEN, **seen))
    assert kept(decision) == expected
    assert (decision.answer, decision.relaunch) == ({}, None)


def test_what_is_told_twice_has_one_id_and_what_is_said_twice_has_two() -> None:
    def name(event: str, payload: Mapping[str, object]) -> str:
        (entry,) = decide(event, payload, SEEN).entries
        return entry.id

    assert name("UserPromptSubmit", PROMPT) == name("UserPromptSubmit", PROMPT)
    answers = [{**PROMPT, "prompt_id": one, "last_assistant_message": said} for one in "ab" for said in ("yes", "no")]
    told = [
        name("UserPromptSubmit", {**PROMPT, **one})
        for one in ({}, {"prompt_id": "p-2"}, {"session_id": "s-2"}, {"prompt": "and the gutter"})
    ]
    told += [name("Stop", one) for one in answers] + [name("PreToolUse", AGENT)]
    told += [name("SubagentStop", {**STOPPED, "last_assistant_message": said}) for said in ("it leaks", "it is dry")]
    assert len(set(told)) == len(told) == 11
    unnumbered = {"session_id": "s-1", "prompt": "one"}
    assert name("UserPromptSubmit", unnumbered) != name("UserPromptSubmit", {**unnumbered, "prompt": "two"})


def test_a_session_that_is_too_long_is_begun_anew_before_the_next_subagent() -> None:
    decision = decide("PreToolUse", AGENT, Seen("s-1", AT, long="700 kB were said in it"))
    assert decision.answer["hookSpecificOutput"]["permissionDecision"] == "deny"  # pyright: ignore[reportIndexIssue] - read as JSON
    assert kept(decision) == [
        ("asked", UNBEGUN + "look at it", "Explore", "t-1"),
        ("restart", "700 kB were said in it", "", ""),
    ]
    assert decision.relaunch is not None
    assert (decision.relaunch.why, decision.relaunch.prompt) == ("long", CONTINUE)
    assert "700 kB" in decision.relaunch.line
    second = decide("PreToolUse", {**AGENT, "tool_use_id": "t-2"}, Seen("s-1", AT, ending=True))
    assert (second.answer, second.relaunch) == (decision.answer, None)
    assert kept(second) == [("asked", UNBEGUN + "look at it", "Explore", "t-2")]


@pytest.mark.parametrize(
    ("size", "long"),
    [((600, 0), False), ((601, 0), True), ((0, 700), False), ((0, 701), True), ((0, 0), False)],
)
def test_when_a_session_is_too_long(size: tuple[int, int], long: bool) -> None:
    assert bool(why_long(Size(*size), Restart(bytes=600, share=0.7, window=1000))) is long


def test_a_prompt_that_begins_a_new_topic_is_kept_and_handed_to_a_new_session() -> None:
    assert decide("UserPromptSubmit", PROMPT, ABLE) == Decision(ask_topic=True)
    decision = decide("UserPromptSubmit", PROMPT, replace(ABLE, topic=True))
    assert decision.answer["decision"] == "block"
    assert kept(decision) == [("topic", "a new topic", "", ""), ("prompt", "mend the roof", "", "")]
    assert decision.relaunch is not None
    assert (decision.relaunch.why, decision.relaunch.prompt) == ("topic", "mend the roof")
    # the new session tells of it, too, and it stands there once
    again = decide("UserPromptSubmit", {**PROMPT, "session_id": "s-2", "prompt": "mend the roof\n"},
                   replace(ABLE, session="s-2", first=True, sent="mend the roof"))  # fmt: skip
    assert again == Decision(prompted=True)


@pytest.mark.parametrize(
    ("prompt", "seen"),
    [
        ("mend the roof", {"topic": False}),
        ("mend the roof", {"first": True}),
        ("mend the roof", {"ending": True}),
        ("mend the roof", {"prompt": "p-1"}),
        ("mend the roof", {"topics": False}),
        ("see [Image #1]", {}),
        ("x" * (LONGEST + 1), {}),
    ],
)
def test_where_nobody_is_asked_for_a_new_topic(prompt: str, seen: Mapping[str, Any]) -> None:
    decision = decide("UserPromptSubmit", {**PROMPT, "prompt": prompt}, replace(ABLE, **seen))
    assert kept(decision) == [("prompt", prompt, "", "")]
    assert (decision.answer, decision.ask_topic) == ({}, False)


def test_commands_of_ours_are_ours() -> None:
    def said(name: str, **more: str) -> tuple[str, str]:
        decision = decide("UserPromptExpansion", {**PROMPT, "command_name": name, **more}, SEEN)
        return decision.command, decision.arguments

    assert said("foreman:clear-worker-history") == ("clear", "")
    assert said("foreman:hand-over", command_args="yes") == ("hand-over", "yes")
    assert said("other:hand-over") == said("compact") == ("", "")


def record(kind: str, **more: object) -> bytes:
    return json.dumps({"type": kind, **more}).encode() + b"\n"


def test_what_was_said_in_a_transcript_is_counted_once_and_forward(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    growing = Growing(file)
    assert growing.size() == size_of(file) == Size(0, 0)
    used = {"usage": {"input_tokens": 5, "cache_read_input_tokens": 70, "cache_creation_input_tokens": 600}}
    said = [record("user", message={"content": "x" * 1000}), record("assistant", message=used)]
    others = [
        record("attachment", message="user" * 1000),
        record("user", isSidechain=True),
        b'{"type": "user"\n',
        b"[]\n",
    ]
    file.write_bytes(b"".join([others[0], *said, *others]))
    first = Size(sum(map(len, said)), 675)
    assert growing.size() == growing.size() == first
    more = record("assistant", message={"usage": {"input_tokens": 9}})
    with file.open("ab") as stream:
        stream.write(more[:20])
        stream.flush()
        assert growing.size() == first
        stream.write(more[20:] + record("user", message={"content": "last"}))
    assert growing.size() == size_of(file)
    assert growing.size().tokens == 9
    file.write_bytes(said[0])  # another file in its place
    assert growing.size() == Size(len(said[0]), 0)
