"""The outcome: the last fenced json block, read strictly."""

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ashep.core.facts.outcome import MAX_BLOCK, Outcome, last_block, read_ending, read_outcome

GOOD: dict[str, Any] = {"result": "success", "summary": "done"}


def fenced(block: str, fence: str = "```", word: str = "json") -> str:
    return f"{fence}{word}\n{block}\n{fence}"


@pytest.mark.promise("R1")
def test_the_last_fenced_json_block_counts() -> None:
    text = f"I think\n{fenced('{}')}\nno:\n{fenced('[1]')}\nbye"
    assert (last_block(text) or "").strip() == "[1]"


@pytest.mark.parametrize(
    "text",
    ["", "no block", '{"result": "success"}', fenced("{}", word="python"), fenced("{}", word=""), "```json\n{}",
     "    ```json\n{}\n    ```", "text ```json\n{}\n```x"],
)  # fmt: skip
def test_what_is_no_fenced_json_block(text: str) -> None:
    assert last_block(text) is None


@pytest.mark.parametrize(
    "text",
    [fenced("{}"), fenced("{}", "~~~"), fenced("{}", "````"), fenced("{}", word=" JSON "), "```json\r\n{}\r\n```\r\n",
     "  ```json\n{}\n  ```"],
)  # fmt: skip
def test_what_is_one(text: str) -> None:
    assert (last_block(text) or "").strip() == "{}"


def test_a_fence_inside_a_longer_fence_does_not_end_it() -> None:
    block = json.dumps(GOOD | {"summary": "x"})
    assert (last_block(fenced(block, "````")) or "").strip() == block


def test_a_block_beyond_the_bound_is_none() -> None:
    assert last_block(fenced("x" * MAX_BLOCK)) is None


def test_what_is_required_and_what_is_not() -> None:
    outcome = read_outcome(json.dumps(GOOD), ())
    assert outcome == Outcome(result="success", summary="done")
    assert isinstance(outcome, Outcome)
    assert (outcome.next_action, outcome.needs_human, outcome.created_issues) == ("none", False, ())


def test_everything_it_may_hold() -> None:
    full = GOOD | {
        "next_action": "advance_phase", "verdict": "pass", "suggested_next_phase": "x", "needs_human": True,
        "created_issues": [{"title": "t"}, {"title": "u", "type": "bug", "priority": 0, "description": "d"}],
        "pointers": ["a.py:1"],
    }  # fmt: skip
    outcome = read_outcome(json.dumps(full), ("pass",))
    assert isinstance(outcome, Outcome)
    assert (outcome.created_issues[0].type, outcome.created_issues[0].priority) == ("task", 2)


@pytest.mark.promise("R1")
@pytest.mark.parametrize(("change", "place"), [
    ({"extra": 1}, "extra"),
    ({"result": "ok"}, "result"),
    ({"result": None}, "result"),
    ({"summary": 5}, "summary"),
    ({"needs_human": "yes"}, "needs_human"),
    ({"needs_human": 1}, "needs_human"),
    ({"pointers": "a.py:1"}, "pointers"),
    ({"created_issues": [{}]}, "created_issues.0.title"),
    ({"created_issues": [{"title": ""}]}, "created_issues.0.title"),
    ({"created_issues": [{"title": "t", "priority": 9}]}, "created_issues.0.priority"),
    ({"created_issues": [{"title": "t", "labels": ["human:approved"]}]}, "created_issues.0.labels"),
    ({"verdict": "undeclared"}, "verdict"),
])  # fmt: skip
def test_what_is_wrong_is_named(change: dict[str, Any], place: str) -> None:
    found = read_outcome(json.dumps(GOOD | change), ("pass",))
    assert isinstance(found, str)
    assert found.startswith(place)


@pytest.mark.parametrize("missing", ["result", "summary"])
def test_what_is_missing_is_named(missing: str) -> None:
    found = read_outcome(json.dumps({key: value for key, value in GOOD.items() if key != missing}), ())
    assert isinstance(found, str)
    assert found.startswith(missing)


def test_a_success_needs_a_verdict_where_the_phase_declares_any_and_a_failure_does_not() -> None:
    assert isinstance(read_outcome(json.dumps(GOOD), ("pass",)), str)
    assert isinstance(read_outcome(json.dumps(GOOD | {"verdict": "pass"}), ("pass",)), Outcome)
    assert isinstance(read_outcome(json.dumps(GOOD | {"result": "failed"}), ("pass",)), Outcome)
    assert isinstance(read_outcome(json.dumps(GOOD | {"verdict": "pass"}), ()), str)


@pytest.mark.parametrize("block", [None, "", "null", "[]", "{", "1", '"x"', "\x00", '{"result": NaN}'])
def test_what_is_no_object_is_said_to_be_wrong(block: str | None) -> None:
    assert isinstance(read_outcome(block, ()), str)


WHOLE = re.compile(r"^[ ]{0,3}(`{3,}|~{3,})[ \t]*json[ \t]*\r?\n(.*?)^[ ]{0,3}\1[`~]*[ \t]*\r?$", re.M | re.S | re.I)
"""The rule in one pattern, whose time grows with the square of the text."""

PIECES = ["`", "```", "~~~", "````", "json", "JSON", "\n", "\n", " ", "   ", "\r\n", "\t", "x", "```json\n", "\n```\n"]


@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join))
def test_it_is_the_one_that_the_rule_in_one_pattern_finds(text: str) -> None:
    assert last_block(text) == next((found[2] for found in reversed(list(WHOLE.finditer(text)))), None)


@given(st.text())
def test_any_text_is_read_without_failing(text: str) -> None:
    block = last_block(fenced(text))
    assert isinstance(read_outcome(block, ("pass",)), (str, Outcome))


# --- endings that are no ends -------------------------------------------------------------------------------------


@pytest.mark.promise("R11")
@pytest.mark.parametrize("text", [
    "The parser is half done; continuing now.",
    "I fixed the first two tests. Now let me look at the third one:",
    "All right.\n\nNext: the documentation.",
    "I’ll run the test suite now.",
    "That was step one. Moving on to step two",
    "I am going to commit this, then update the docs.",
    "Working on it…",
    "Let me check the callers...",
])  # fmt: skip
def test_a_message_that_announces_more_work_is_no_end(text: str) -> None:
    assert read_ending(text, cut=False) == "announced"


@pytest.mark.parametrize("text", [
    "I am done.",
    "All tests pass. Let me know if anything is unclear.",
    "Let me explain what I did. It works.",
    "I will not continue without a decision.",
    "Stopped: the database is missing.",
    "It is done now.",
    f"Continuing now.\n{fenced(json.dumps(GOOD))}",
    f"{fenced('{')}\nI will stop here.",
])  # fmt: skip
def test_any_other_message_may_be_the_end(text: str) -> None:
    assert read_ending(text, cut=False) is None


def test_an_answer_that_was_cut_off_is_that_before_anything_else_and_an_empty_one_is_empty() -> None:
    assert read_ending("", cut=True) == read_ending("continuing now", cut=True) == "cut"
    assert read_ending(" \n\t", cut=False) == read_ending("", cut=False) == "empty"


@pytest.mark.promise("G6")
def test_a_message_without_end_is_looked_at_in_no_time() -> None:
    for piece in ("let me ", "now\n", "... ", "a. ", "’", "``` json\n"):
        assert read_ending(piece * 100_000, cut=False) in ("announced", None)
