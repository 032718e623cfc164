"""Steps of a session: nothing of a secret stays, and nothing is longer than people read."""

import json
from pathlib import Path

import pytest

from ashep.adapters.runners.claude.transcript import read_steps
from ashep.ports.transcripts import MOST_CHARACTERS, MOST_STEPS, TranscriptStep, make_tool_step, redact_steps

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


def test_whatever_stands_in_a_transcript_is_read(tmp_path: Path) -> None:
    """An agent can write there, too: calls without answers, answers without calls, no text, halves of characters."""
    use = {"type": "tool_use", "id": 7, "name": None, "input": [[[]]]}
    result = {"type": "tool_result", "tool_use_id": "nobody's", "content": {"a": 1}, "is_error": "yes"}
    contents: list[object] = [[use, result], "\ud800", 5, None, [None, "x", {"type": "text", "text": "said"}]]
    lines = [json.dumps({"type": "assistant", "message": {"content": content}}) for content in contents]
    file = tmp_path / "session.jsonl"
    file.write_text("\n".join([*lines, "{", '{"type": "assistant", "message": 1}', '{"type": "user"}']) + "\n")
    assert [(step.role, step.text, step.failed) for step in read_steps(file)] == [
        ("tool", "", False), ("assistant", "?", False), ("assistant", "said", False),
    ]  # fmt: skip
