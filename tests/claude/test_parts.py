"""The parts of the adapter on recorded lines, without the program: what it told, what it wrote, what rules say."""

import io
import json
import os
import re
import subprocess
import tracemalloc
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ashep.adapters.runners.claude import agents, hook, permission_requests, process, settings, transcript, turn_state
from ashep.adapters.runners.claude.jsonl import LONGEST, Lines
from ashep.adapters.runners.claude.session_store import Before, Process, SessionOptions, SessionStore, session_id
from ashep.adapters.runners.claude.stream_json import Output
from ashep.adapters.runners.foreign_json import parse_object
from ashep.adapters.runners.quotas import read_quota, read_time
from ashep.adapters.system import process_table
from ashep.core.facts.requests import Asked
from ashep.core.facts.runs import Quota, QuotaWindow, Refusal
from ashep.core.policy.permissions import expression, matches
from ashep.redaction import Redaction

SESSION = session_id("instance:t-1/implement.1.1", "/work")
DEAD = Process(pid=2**22 - 1, started=1)


def told(tmp_path: Path, *events: dict[str, Any] | str) -> Output:
    file = tmp_path / "stdout"
    file.write_text(
        "".join((one if isinstance(one, str) else json.dumps(one, separators=(",", ":"))) + "\n" for one in events)
    )
    output = Output(file)
    output.read()
    return output


def says(words: str, ident: str = "msg_1", **more: Any) -> dict[str, Any]:
    message = {"id": ident, "model": "claude-opus-5-5", "content": [{"type": "text", "text": words}]}
    return {"type": "assistant", "message": message, "parent_tool_use_id": None} | more


def ends(**more: Any) -> dict[str, Any]:
    used = {"claude-opus-5-5": {"inputTokens": 90, "outputTokens": 10, "cacheReadInputTokens": 0, "costUSD": 0.5}}
    known = {"is_error": False, "terminal_reason": "completed", "num_turns": 1, "result": "END", "total_cost_usd": 0.5}
    return {"duration_ms": 1, "type": "result", "subtype": "success", "modelUsage": used} | known | more


INIT: dict[str, Any] = {"type": "system", "subtype": "init"}


def piece(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": "stream_event", "event": {"type": kind, **more}}


# --- lines -----------------------------------------------------------------------------------------------------------


def test_a_line_is_read_once_and_when_it_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    lines = Lines(file)
    assert list(lines) == []
    file.write_bytes(b"one\ntw")
    assert list(lines) == [(0, b"one")]
    with file.open("ab") as more:
        more.write(b"o\n\nthree")
    assert list(lines) == [(4, b"two"), (8, b"")]
    assert (list(lines), lines.offset) == ([], 9)
    file.write_bytes(b"new\n")
    assert list(lines) == [(0, b"new")], "it is another file now"


def test_a_line_that_nobody_could_hold_is_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    with file.open("wb") as out:
        out.write(b"one\n")
        for _ in range(LONGEST // 2**20 + 20):
            out.write(b"x" * 2**20)
        out.write(b"\ntwo\n")
    found, lines = list[bytes](), Lines(file)
    tracemalloc.start()
    found += [line for _, line in lines]
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == [b"one", b"two"]
    assert most < 4 * LONGEST


@pytest.mark.parametrize("line", [b"", b"{", b"[1]", b"null", b"\xff\xfe", b'{"a":' * 100_000, b"3"])
def test_what_is_no_object_is_none(line: bytes) -> None:
    assert parse_object(line) is None


# --- output ----------------------------------------------------------------------------------------------------------


def test_an_end_is_judged_by_its_error_and_never_by_its_subtype(tmp_path: Path) -> None:
    """facts/claude-code.md 6."""
    good = told(tmp_path, INIT, says("one"), says("two"), ends())
    assert (good.failure(), good.text, good.model) == (None, "one\ntwo", "claude-opus-5-5")
    assert good.result is not None
    assert (good.result.cost, good.result.tokens) == (0.5, 100)
    bad = told(
        tmp_path,
        INIT,
        ends(is_error=True, terminal_reason="api_error", api_error_status=529, result="API Error: 529 over"),
    )
    assert (bad.failure(), bad.refusal()) == ("APIError: over", Refusal("down", "over"))
    stopped = told(tmp_path, INIT, says("half"), ends(terminal_reason="aborted_tools"))
    assert stopped.failure() == "MessageAbortedError: the turn was stopped"


def test_a_result_behind_which_another_turn_begins_is_not_the_end(tmp_path: Path) -> None:
    """facts/claude-code.md 8."""
    assert told(tmp_path, INIT, says("first"), ends(), INIT, says("second", "msg_2")).result is None
    both = told(
        tmp_path, INIT, says("first"), ends(), INIT, says("second", "msg_2"), ends(result="2", total_cost_usd=0.7)
    )
    assert (both.text, both.result and both.result.cost) == ("second", 0.7)


def test_what_a_subagent_says_is_not_the_answer_and_its_call_is_at_work(tmp_path: Path) -> None:
    call = {"type": "assistant", "message": {"content": [{"type": "tool_use", "id": "c1", "name": "Bash"}]}}
    output = told(tmp_path, INIT, says("ours"), says("theirs", "msg_9", parent_tool_use_id="t1"), call)
    assert (output.text, output.tool) == ("ours" if not output.tool else "", ("c1", "Bash"))
    done = {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "c1", "content": "x"}]}}
    assert told(tmp_path, call, done).tool is None


RETRY = {
    "type": "system",
    "subtype": "api_retry",
    "attempt": 2,
    "retry_delay_ms": 1245,
    "error_status": 429,
    "error": "rate_limit",
}


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        ({}, "limited"),
        ({"error_status": 529, "error": "overloaded"}, "down"),
        ({"error_status": 401, "error": "authentication_failed"}, "unauthorized"),
        ({"error_status": None, "error": "unknown"}, "down"),
        ({"error_status": 503, "error": "server_error"}, "down"),
    ],
)
def test_a_provider_that_is_asked_again_shows_until_it_answers(
    tmp_path: Path, change: dict[str, Any], kind: str
) -> None:
    waits = told(tmp_path, INIT, RETRY | change).retry
    assert waits is not None
    assert (waits.kind, waits.again_in, waits.attempt) == (kind, timedelta(milliseconds=1245), 2)
    assert told(tmp_path, INIT, RETRY | change, piece("message_start", message={})).retry is None


def test_low_credit_is_a_limit(tmp_path: Path) -> None:
    said = "Credit balance is too low"
    words = says(said, model="<synthetic>", error="billing_error")
    output = told(
        tmp_path, INIT, words, ends(is_error=True, terminal_reason="api_error", api_error_status=400, result=said)
    )
    assert (output.refusal(), output.text) == (Refusal("limited", said), "")


@pytest.mark.parametrize(
    ("why", "kind"),
    [
        ("API Error: 529 busy. This is a server-side issue, usually temporary", "down"),
        ("API Error: Request rejected (429) · slow down", "limited"),
        ("Failed to authenticate. API Error: 401 no", "unauthorized"),
        ("API Error: Connection to the API was lost (ECONNRESET). This is usually temporary", "down"),
        ("API Error: 400 not so", None),
        ("no assistant message in summarization response", None),
    ],
)
def test_a_conversation_that_could_not_be_made_shorter_is_the_providers_where_it_refused(
    tmp_path: Path, why: str, kind: str | None
) -> None:
    said = f"Prompt is too long · automatic compaction failed: {why}"
    output = told(tmp_path, INIT, ends(is_error=True, terminal_reason="blocking_limit", result=said))
    assert output.failure() == f"ContextOverflowError: {said}"
    assert (found.kind if (found := output.refusal()) else None) == kind
    for reason, words in (("blocking_limit", "Prompt is too long: API Error: connection reset"), ("max_turns", said)):
        end = ends(is_error=True, terminal_reason=reason, result=words)
        assert told(tmp_path, INIT, end).refusal() is None, "another reason is not the provider's"


def test_what_was_used_is_counted_where_no_end_says_it(tmp_path: Path) -> None:
    begun = piece(
        "message_start", message={"usage": {"input_tokens": 100, "cache_read_input_tokens": 5, "output_tokens": 1}}
    )
    output = told(
        tmp_path,
        begun,
        piece("message_delta", usage={"output_tokens": 7}),
        begun,
        piece("message_delta", usage={"output_tokens": 2}),
    )
    assert output.tokens == 2 * 105 + 7 + 2


@pytest.mark.parametrize(
    "line",
    [
        "no json", "[]", '{"type":"assistant"}', '{"type":"assistant","message":{"content":[1,{"type":"text"}]}}',
        '{"type":"result"}', '{"type":"result","num_turns":"x","modelUsage":[],"errors":3,"total_cost_usd":NaN}',
        '{"type":"user","message":{"content":"x"}}', '{"type":"stream_event","event":{"type":"message_delta"}}',
        '{"type":"result","total_cost_usd":1e400,"modelUsage":{"m":{"inputTokens":1e400}}}',
        '{"type":"assistant","timestamp":"0001-01-01T00:00:00+23:59","message":{"content":[]}}',
        '{"type":"system","subtype":"api_retry","retry_delay_ms":1e400}',
        '{"type":"system","subtype":"api_retry"}', '{"type":"system","prompt_submit_outcome":7}',
    ],
)  # fmt: skip
def test_odd_lines_are_no_trouble(tmp_path: Path, line: str) -> None:
    output = told(tmp_path, INIT, line, '{"type":"assis')
    assert output.text == ""
    assert output.failure() is None


def test_half_a_character_is_none(tmp_path: Path) -> None:
    """The journal cannot hold it: such an answer ended the daemon, and each next one that read the session."""
    output = told(tmp_path, INIT, says("cut \ud83d off"), ends(is_error=True, terminal_reason="\ud800"))
    assert (output.text, output.failure()) == (
        "cut ? off",
        told(tmp_path, ends(is_error=True, terminal_reason="?")).failure(),
    )


def test_a_conversation_that_is_made_shorter_shows_as_work(tmp_path: Path) -> None:
    """facts/claude-code.md 34."""
    status = {"type": "system", "subtype": "status", "status": "compacting"}
    assert told(tmp_path, INIT, status).compacts
    assert not told(tmp_path, INIT, status, status | {"status": "requesting"}).compacts


# --- how an attempt stands -------------------------------------------------------------------------------------------

BLOCKED = ends(num_turns=0, terminal_reason=None, result="blocked", modelUsage={}, total_cost_usd=0)


@pytest.mark.parametrize(
    ("notes", "events", "stderr", "state", "error"),
    [
        ((), (), "", "missing", "its process ended before the model was asked"),
        ((), (), "error: unknown option", "missing", "error: unknown option"),
        ((), (INIT, BLOCKED), "", "missing", "its process ended before the model was asked"),
        (("begun",), (INIT,), "", "incomplete", None),
        (("begun",), (INIT, BLOCKED), "", "incomplete", None),
        ((), (INIT, says("half")), "", "incomplete", None),
        (("begun",), (INIT, says("END"), ends()), "", "finished", None),
        (("begun", "aborted"), (INIT, says("half")), "", "finished", "MessageAbortedError: the turn was stopped"),
        (("begun", "aborted"), (INIT, says("END"), ends()), "", "finished", None),
        ((), (ends(is_error=True, num_turns=0, terminal_reason=None, result="", errors=["No conversation found"]),), "",
         "finished", "ClaudeError: No conversation found"),
    ],
)  # fmt: skip
def test_how_an_attempt_stands_once_its_process_is_dead(
    tmp_path: Path, notes: Sequence[str], events: Sequence[dict[str, Any]], stderr: str, state: str, error: str | None
) -> None:
    store = SessionStore(tmp_path, tmp_path / "config")
    store.make()
    store.open(SESSION, SessionOptions(key="k", title="t", access="write", directory="/work"))
    attempt = store.add(SESSION, "msg_1", 1)
    for one in notes:
        attempt.note(one)
    told(attempt.folder, *events)
    (attempt.folder / "stderr").write_text(stderr)
    process.record(attempt, DEAD)
    found = turn_state.standing(attempt, Output(attempt.folder / "stdout"), process.find_process(attempt))
    assert (found.state, found.not_started or found.error) == (state, error)
    assert found.instance == DEAD.instance + ("" if state == "finished" else " ended")


def test_a_turn_costs_what_its_session_costs_more_than_before_all_attempts_together(tmp_path: Path) -> None:
    """facts/claude-code.md 7."""
    store = SessionStore(tmp_path, tmp_path / "config")
    store.make()
    store.open(SESSION, SessionOptions(key="k", title="t", access="write", directory="/work"))
    first, second = store.add(SESSION, "msg_1", 1), store.add(SESSION, "msg_1", 2)
    usage = {"input_tokens": 40, "output_tokens": 0}
    died = told(first.folder, INIT, piece("message_start", message={"usage": usage}))
    (second.folder / "before.json").write_text(Before(cost=0.2, tokens=60).model_dump_json())
    ended = told(second.folder, INIT, says("END"), ends())
    attempts = [(first, died), (second, ended)]
    turn = turn_state.read(attempts, DEAD, lambda _: None)
    assert (turn.tokens, round(turn.cost, 3)) == (40 + (100 - 60), 0.3), "who was killed outright told no cost"
    turn = turn_state.read(attempts, DEAD, {first: transcript.Spent(0.2, 60), second: transcript.Spent(9, 999)}.get)
    assert (turn.tokens, round(turn.cost, 3)) == (60 + (100 - 60), 0.2 + 0.3), "and who came to write it did"
    turn = turn_state.read(attempts[:1], None, lambda _: transcript.Spent(0.0, 20))
    assert (turn.tokens, turn.cost) == (40, 0.0), "what was seen of it stays"


def test_a_session_is_kept_as_it_was_opened_first_and_no_path_is_one(tmp_path: Path) -> None:
    store = SessionStore(tmp_path, tmp_path / "config")
    store.make()
    store.open(SESSION, SessionOptions(key="k", title="first", access="read", directory="/work"))
    store.open(SESSION, SessionOptions(key="k", title="second", access="write", directory="/work"))
    kept = store.session(SESSION)
    assert kept is not None
    assert kept.title == "first"
    assert store.session(f"../sessions/{SESSION}") is None
    assert store.attempts(SESSION, "../../x") == []
    assert store.attempt("../x/1") is None
    store.set_current(SESSION, "msg_1")
    assert (store.live(), store.current(SESSION)) == ([SESSION], None)


# --- transcript ------------------------------------------------------------------------------------------------------


def record(uuid: str, content: object = "hello", **more: Any) -> dict[str, Any]:
    known = {"type": "user", "uuid": uuid, "promptSource": "sdk", "entrypoint": "sdk-cli"}
    return known | {"message": {"role": "user", "content": content}} | more


PEOPLE = (
    record("p1", promptSource="typed", turnOrigin="human", entrypoint="cli", origin={"kind": "human"}),
    record("p2"),
    record("p3", [{"type": "text", "text": "an image"}, {"type": "image"}]),
)
NOBODY = (
    record("n1", isMeta=True), record("n2", isCompactSummary=True), record("n3", isSidechain=True),
    record("n4", [{"type": "tool_result", "tool_use_id": "c", "content": "x"}]),
    record("n5", "<task-notification>\nit ended"), record("n6", "[Request interrupted by user]"),
    record("n7", [{"type": "text", "text": "[Request interrupted by user for tool use]"}]),
    record("n8", "Continue from where you left off."), record("n9", promptSource="system"),
    record("n10", turnOrigin="task_notification"), record("n11", origin={"kind": "task-notification"}),
    {"type": "assistant", "uuid": "n12", "message": {"role": "assistant", "content": "a user said"}}, record(""),
)  # fmt: skip


def test_who_wrote_is_told_by_id_first_and_then_by_what_it_is(tmp_path: Path) -> None:
    """facts/claude-code.md 30."""
    file = tmp_path / "transcript.jsonl"
    before = json.dumps(record("earlier")) + "\n"
    lines = [json.dumps(one) for one in (record("ours"), *PEOPLE, *NOBODY)]
    file.write_text(before + "\n".join([*lines, "{not json", '{"type":"user","uuid":"cut']))
    read = transcript.Transcript(file)
    read.read()
    assert read.people(len(before), {"ours": "msg_1"}, frozenset()) == ("p1", "p2", "p3")
    assert read.people(len(before), {"ours": "msg_1"}, frozenset({"p1"})) == ("p2", "p3")
    assert [one.uuid for one in read.written] == ["earlier", "ours", "p1", "p2", "p3"]


def test_what_a_session_has_used_up_is_its_last_state(tmp_path: Path) -> None:
    file, used = tmp_path / "transcript.jsonl", {"m": {"inputTokens": 10, "outputTokens": 2}}
    states = [{"type": "cost-state", "totalCostUSD": cost, "modelUsage": used} for cost in (0.1, 0.3)]
    file.write_text("".join(json.dumps(one) + "\n" for one in states))
    read = transcript.Transcript(file)
    read.read()
    assert read.spent == transcript.Spent(0.3, 12)


def test_what_a_process_had_used_that_was_stopped_stands_behind_its_prompt_and_before_the_next(tmp_path: Path) -> None:
    file = tmp_path / "transcript.jsonl"
    states = [{"type": "cost-state", "totalCostUSD": cost, "modelUsage": {}} for cost in (0.1, 0.2, 0.3, 0.4)]
    before, theirs = [record("earlier"), states[0]], [record("stopped"), states[1], states[2]]
    lines = [json.dumps(one) + "\n" for one in (*before, *theirs, record("killed"), record("p1"), states[3])]
    file.write_text("".join(lines))
    since, killed, person = (len("".join(lines[:n])) for n in (2, 5, 6))
    read = transcript.Transcript(file)
    read.read()
    assert read.find_final_usage(since, "stopped") == transcript.Spent(0.3, 0)
    assert read.find_final_usage(killed, "killed") is None, "what a person used behind it is none of its"
    assert read.find_final_usage(person, "p1") == transcript.Spent(0.4, 0)
    assert read.find_final_usage(len("".join(lines)), "next") is None


def test_a_transcript_is_found_whatever_its_folder_is_called_and_grows_with_its_subagents(tmp_path: Path) -> None:
    folder = tmp_path / "[odd]" / "projects" / "-lossy-name"
    (folder / SESSION / "subagents").mkdir(parents=True)
    config = tmp_path / "[odd]"
    assert transcript.file_of(config, SESSION) is None
    (folder / f"{SESSION}.jsonl").write_text("x" * 10)
    (folder / SESSION / "subagents" / "agent-1.jsonl").write_text("x" * 5)
    file = transcript.file_of(config, SESSION)
    assert file is not None
    assert file == folder / f"{SESSION}.jsonl"
    assert transcript.grown(file) == 15


# --- rules -----------------------------------------------------------------------------------------------------------


def judged(session: SessionOptions, tool: str, detail: str) -> str:
    rules = [[*one] for one in settings.rules_of(session)]
    return hook.judge(rules, tool, hook.texts(tool, detail, session.directory))


def writer(*rules: tuple[str, str, str], access: str = "write") -> SessionOptions:
    given = [{"tool": tool, "pattern": pattern, "action": action} for tool, pattern, action in rules]
    known = {"key": "k", "title": "t", "access": access, "directory": "/work", "permissions": given}
    return SessionOptions.model_validate(known)


@pytest.mark.parametrize(
    ("rules", "tool", "detail", "word"),
    [
        ((), "bash", "npm test", ""),
        ((), "bash", "bd close t-1", "deny"),
        ((), "bash", "true && FOO=1 /usr/bin/bd update t-1", "deny"),
        ((), "bash", "echo $(bd close t-1)", "deny"),
        ((), "bash", "timeout 5 bd close t-1", "deny"),
        ((), "bash", "sh -c 'bd close t-1'", "deny"),
        ((), "bash", "bd show t-1 | head", ""),
        ((), "bash", "bd show t-1; bd close t-1", "deny"),
        ((), "bash", "bd ready --claim", "deny"),
        ((), "bash", "ashep verify t-1", ""),
        ((), "bash", "ashep take t-1", "deny"),
        ((), "bash", "echo abd close", ""),
        ((), "read", "/work/sub/.env", "ask"),
        ((), "read", "/work/x.env.local", "ask"),
        ((), "read", "/work/.env.example", ""),
        ((), "read", "/work/environment.py", ""),
        ((("bash", "git push*", "ask"),), "bash", "cd . && git push origin", "ask"),
        ((("bash", "git push*", "ask"), ("bash", "git push -f*", "deny")), "bash", "git push -f", "ask"),
        ((("bash", "git *", "allow"), ("bash", "*", "deny")), "bash", "git status\nrm -r x", "deny"),
        ((("bash", "*", "ask"),), "bash", "bd show t-1", "ask"),
        ((("edit", "docs/*", "deny"),), "edit", "/work/docs/a.md", "deny"),
        ((("edit", "docs/*", "deny"),), "edit", "/work/src/docs/a.md", ""),
        ((("read", "*.env", "allow"),), "read", "/work/.env", ""),
        ((("web*", "*", "ask"),), "webfetch", "https://example.org", "ask"),
    ],
)
def test_what_the_rules_say_to_a_use_of_a_tool(rules: Any, tool: str, detail: str, word: str) -> None:
    assert judged(writer(*rules), tool, detail) == word


@pytest.mark.parametrize("pattern", ["*", "git *", "git push*", "a?c", "*/bd *", "x*y*z", "(.[", "a\\b *"])
@pytest.mark.parametrize(
    "said", ["git", "git push", "git push -f", "abc", "/usr/bd x", "x1y2z", "(.[", "a\nb", "a/b c"]
)
def test_a_pattern_fits_the_same_inside_the_hook(pattern: str, said: str) -> None:
    assert (re.fullmatch(expression(pattern), said.replace("\\", "/")) is not None) == matches(pattern, said)


def test_a_readers_rules_widen_nothing(tmp_path: Path) -> None:
    reader = writer(("bash", "*", "allow"), ("edit", "*", "allow"), ("webfetch", "*", "deny"), access="read")
    tools = settings.tools_of(reader, web=True)
    assert tools == ["Glob", "Grep", "Read", "WebSearch", "AskUserQuestion"]
    assert settings.tools_of(writer(access="read"), web=False) == ["Glob", "Grep", "Read", "AskUserQuestion"]
    given = settings.settings_of(reader, tools, tmp_path, "http://127.0.0.1:1/")
    assert given["permissions"]["allow"] == ["WebSearch"]
    assert "Read(**/*.env)" in given["permissions"]["deny"]
    assert settings.mode_of(reader) == "dontAsk"


def test_no_prompt_passes_where_the_gate_does_not_answer(tmp_path: Path) -> None:
    given = settings.settings_of(writer(), ["Bash"], tmp_path, "http://127.0.0.1:1/")
    (gate,) = given["hooks"]["UserPromptSubmit"][0]["hooks"]
    assert (gate["type"], gate["onFailure"], "secret" in json.dumps(gate["headers"]).lower()) == ("http", "block", True)
    assert set(settings.tools_of(writer(), web=True)).isdisjoint({"ListAgents", "SendMessage", "Task", "Workflow"})


# --- what is asked ---------------------------------------------------------------------------------------------------


def test_questions_and_their_answers_are_files(tmp_path: Path) -> None:
    store = SessionStore(tmp_path, tmp_path / "config")
    store.make()
    store.open(SESSION, SessionOptions(key="k", title="t", access="write", directory="/work"))
    attempt = store.add(SESSION, "msg_1", 1)
    options = [{"label": "first", "description": "d"}, {"label": "sec\u202eond"}]
    what = {
        "kind": "question",
        "questions": [{"question": "Which?", "options": options, "multiSelect": True}, {"question": "Why?"}],
    }
    (attempt.folder / "asks" / ("a" * 24)).write_text(json.dumps(what))
    (attempt.folder / "asks" / ("b" * 24 + ".7.tmp")).write_text("{")
    (attempt.folder / "asks" / ("c" * 24)).write_text("{")
    os.mkfifo(attempt.folder / "asks" / ("0" * 24))  # nobody writes into it: who opened it as a file would hang
    (attempt.folder / "asks" / ("1" * 24)).symlink_to(attempt.folder / "asks" / ("a" * 24))
    (request,) = permission_requests.open_in(attempt, Redaction())
    assert request.asks == (Asked("Which?", ("first", "second"), several=True), Asked("Why?"))
    assert not permission_requests.answer(attempt, "../x", "question", "answer", (), "")
    assert permission_requests.answer(attempt, request.id, "question", "answer", (("first", "second"), ("so",)), "")
    assert not permission_requests.answer(attempt, request.id, "question", "answer", (), "")
    answered = json.loads((attempt.folder / "answers" / request.id).read_text())
    assert answered["answers"] == {"Which?": "first, second", "Why?": "so"}
    assert list(permission_requests.open_in(attempt, Redaction())) == []


def test_what_cannot_be_judged_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO('{"tool_name": "Bash"'))
    assert hook.main() == 2


def test_an_agent_of_the_base_is_given_as_its_file_says() -> None:
    text = "---\nname: looker\ndescription: looks\ntools: Read, Grep\ncolor: red\n---\nLook.\n"
    known = json.loads(agents.definition("looker", {"looker": text}) or "")
    assert known == {"looker": {"description": "looks", "tools": ["Read", "Grep"], "prompt": "Look."}}
    assert json.loads(agents.definition("plain", {"plain": "Just do it."}) or "")["plain"]["prompt"] == "Just do it."
    assert agents.definition("none", {}) is None
    assert agents.definition("bad", {"bad": "---\n: [\n---\nPrompt"}) is not None


def test_a_process_that_nobody_has_reaped_has_no_session_open(tmp_path: Path) -> None:
    """Found by a test that failed once: it was taken for a person's."""
    ended = subprocess.Popen(["true"])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    state, began = process_table.stat(ended.pid)
    entry = {"sessionId": "x", "pid": ended.pid, "procStart": str(began), "status": "busy"}
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions" / "1.json").write_text(json.dumps(entry))
    assert state == "Z"
    assert process.strangers(tmp_path, ["x"]) == {}
    ended.wait()


# --- limits ----------------------------------------------------------------------------------------------------------


def limits(**info: Any) -> dict[str, Any]:
    return {"type": "rate_limit_event", "rate_limit_info": info, "uuid": "u"}


def test_the_newest_quota_counts_and_what_is_odd_in_it_is_left_out(tmp_path: Path) -> None:
    week = {"utilization": 0.5, "resetsAt": 1_900_000_000_000}
    odd = {"five_hour": {"utilization": "much"}, "Seven Day": week, "seven_day": week, "x": {"utilization": -1}, "y": 1}
    output = told(tmp_path, INIT, limits(status="allowed"), limits(status="allowed_warning", unifiedWindows=odd))
    assert output.limits is not None
    resets = datetime.fromtimestamp(1_900_000_000, UTC)
    windows = (QuotaWindow("seven_day", 0.5, resets),)
    assert read_quota(output.limits, "anthropic", "") == Quota("anthropic", "", "allowed_warning", windows=windows)
    for nothing in ({}, {"status": "new"}, {"status": ["allowed"]}):
        assert read_quota(nothing, "anthropic", "") is None
    earlier = {"status": "rejected", "rateLimitType": "five_hour", "utilization": 1, "resetsAt": 1_900_000_000}
    shown = read_quota(earlier, "anthropic", "")
    assert shown is not None
    assert shown.windows == (QuotaWindow("five_hour", 1.0, resets, "rejected"),)
    paid = read_quota(earlier | {"isUsingOverage": True}, "anthropic", "")
    assert paid is not None
    assert paid.status == "allowed_warning", "the next request is taken"
    many = {f"w{n}": week for n in range(1000)}
    assert len((read_quota({"status": "allowed", "unifiedWindows": many}, "a", "") or shown).windows) == 10
    for time in (True, 1e300, -5, "soon", None, float("nan")):
        assert read_time(time) is None


def test_a_turn_that_reached_its_greatest_length_is_cut_and_one_that_was_stopped_there_is_not(tmp_path: Path) -> None:
    words = "API Error: Claude's response exceeded the 128000 output token maximum."
    synthetic = says(words, error="max_output_tokens") | {"message": {"id": "m", "model": "<synthetic>", "content": []}}
    end = ends(is_error=True, terminal_reason="api_error", result=words)
    output = told(tmp_path, INIT, says("half", timestamp="2026-01-02T03:04:05.600Z"), synthetic, end)
    assert (output.cut, output.failure(), output.refusal()) == (True, None, None)
    assert output.agent_message_at == datetime(2026, 1, 2, 3, 4, 5, 600_000, tzinfo=UTC), "the last that is the agent's"
    assert told(tmp_path, INIT, ends(is_error=True, terminal_reason="max_turns", result="")).cut
    assert not told(tmp_path, INIT, says("well", timestamp="soon"), ends()).cut
