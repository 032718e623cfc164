"""Steps of a session: nothing of a secret stays, and nothing is longer than people read."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ashep.adapters.runners.claude.transcript import read_steps as read_claude
from ashep.ports.transcripts import (
    MOST_CHARACTERS,
    MOST_KEPT,
    MOST_STEPS,
    TranscriptStep,
    make_tool_step,
    read_steps,
    redact_steps,
    write_steps,
)

SECRET = "sk-" + "s" * 60


def redact(text: str) -> str:
    return text.replace(SECRET, "[redacted]")


@pytest.mark.parametrize("before", [0, MOST_CHARACTERS - 30, MOST_CHARACTERS - 1, MOST_CHARACTERS, 1024**2])
def test_a_text_is_cut_once_its_secrets_are_out(before: int) -> None:
    output = "x" * before + SECRET
    (step,) = redact_steps([make_tool_step(f"bash {SECRET}", {"a": output}, output, None, failed=False)], redact)
    for text in (step.tool, step.arguments, step.text):
        assert "sss" not in text
        assert len(text) <= MOST_CHARACTERS + 1


def test_of_ten_thousand_steps_the_last_are_given() -> None:
    steps = redact_steps([TranscriptStep("user", str(number)) for number in range(10_000)], redact)
    assert (len(steps), steps[-1].text) == (MOST_STEPS, "9999")


@pytest.mark.parametrize("before", [0, MOST_CHARACTERS - 30, MOST_KEPT - 30])
def test_steps_are_kept_without_secrets_and_bounded(before: int) -> None:
    moment = datetime(2026, 1, 2, tzinfo=UTC)
    step = make_tool_step("bash", {"a": "b"}, "x" * before + SECRET + "\ud800", moment, failed=True)
    text = write_steps([TranscriptStep("user", "x" * before + SECRET + "y" * 40)] * 50 + [step], redact)
    kept = read_steps([one.encode(errors="replace").decode() for one in (text, write_steps([step], redact))])
    assert "sss" not in text
    assert len(text) < MOST_KEPT + 60 * 200
    assert kept.cut == (before > 0)
    assert (kept.steps[-2].tool, kept.steps[-2].failed, kept.steps[-2].written_at) == ("bash", True, moment)
    with pytest.raises(ValueError, match="KeptSteps"):
        read_steps([text[:-1]])


def test_whatever_stands_in_a_transcript_is_read(tmp_path: Path) -> None:
    """An agent can write there, too: calls without answers, answers without calls, no text, halves of characters."""
    use = {"type": "tool_use", "id": 7, "name": None, "input": [[[]]]}
    result = {"type": "tool_result", "tool_use_id": "nobody's", "content": {"a": 1}, "is_error": "yes"}
    contents: list[object] = [[use, result], "\ud800", 5, None, [None, "x", {"type": "text", "text": "said"}]]
    lines = [json.dumps({"type": "assistant", "message": {"content": content}}) for content in contents]
    file = tmp_path / "session.jsonl"
    file.write_text("\n".join([*lines, "{", '{"type": "assistant", "message": 1}', '{"type": "user"}']) + "\n")
    assert [(step.role, step.text, step.failed) for step in read_claude(file)] == [
        ("tool", "", False), ("assistant", "?", False), ("assistant", "said", False),
    ]  # fmt: skip
