"""How the rows of what bd prints are read: in pieces cut anywhere, too long, too wide, broken off, ten thousand."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ashep.adapters.beads.json_stream import LONGEST, WIDEST, Rows
from ashep.adapters.beads.schema import IssueRow
from ashep.errors import TrackerUnavailable
from ashep.redaction import Redaction

Read = tuple[Any, tuple[str, ...]]
TEXTS = st.text(st.sampled_from('a\\"{}[],:\n\u2028é'), max_size=12)
VALUES = st.none() | st.integers() | TEXTS | st.lists(TEXTS, max_size=2) | st.just({"a": [{"}": "]"}]})
ROWS = st.lists(st.dictionaries(TEXTS, VALUES, max_size=3), max_size=3)


def read_row(row: bytes, left_out: tuple[str, ...]) -> Read:
    return json.loads(row), left_out


def reading(printed: bytes, piece: int = 65536, *secrets: str) -> Rows[Read]:
    rows = Rows(read_row, Redaction(secrets))
    for at in range(0, len(printed), piece):
        rows.take(printed[at : at + piece])
    return rows


@given(ROWS, st.integers(1, 9), st.sampled_from([None, 2]), st.booleans())
def test_rows_are_those_of_the_array_wherever_it_is_cut(
    rows: list[dict[str, Any]], piece: int, indent: int | None, ascii_only: bool
) -> None:
    printed = json.dumps(rows, indent=indent, ensure_ascii=ascii_only).encode() + b"\n"
    assert reading(printed, piece).end() == [(row, ()) for row in rows]


@given(ROWS, st.data())
def test_what_is_broken_off_is_no_answer(rows: list[dict[str, Any]], data: st.DataObject) -> None:
    printed = json.dumps(rows).encode()
    with pytest.raises(TrackerUnavailable, match="is not one of bd"):
        reading(printed[: data.draw(st.integers(0, len(printed) - 1))], 7).end()


@pytest.mark.parametrize(
    "printed", ["", "null", "{}", '{"error":"x"}', "[1]", '["a"]', "[[]]", "[{}] x", "[{}][{}]", "]"]
)
def test_anything_but_an_array_of_objects_is_no_answer(printed: str) -> None:
    with pytest.raises(TrackerUnavailable, match="is not one of bd"):
        reading(printed.encode()).end()
    assert reading(b"null\n").end(null=True) == []


@pytest.mark.parametrize("piece", [1024, 65536])
@pytest.mark.parametrize("filling", ["a", '"', "\\", "<", "{", "é"])
def test_a_text_that_is_too_long_is_left_out_and_named(filling: str, piece: int) -> None:
    text = filling * (LONGEST + 1)
    rows = [
        {"id": "t-1", "description": text, "notes": "short", "comments": [{"text": text, "author": "pat"}]},
        {"id": "t-2", "description": "a" * LONGEST},
    ]
    (first, left_out), second = reading(json.dumps(rows).encode(), piece).end()
    [name] = left_out
    assert name.startswith("description: ")
    assert first["description"].endswith("MiB: too long to be read)")
    assert first["comments"] == [{"text": first["description"], "author": "pat"}]
    assert (first["notes"], second) == ("short", (rows[1], ()))


@pytest.mark.promise("S1")
def test_a_row_that_is_too_wide_is_named_and_the_others_are_read() -> None:
    wide = {
        "id": "t-1",
        "metadata": {f"key-{number}": "x" * 1000 for number in range(10_000)},
        "notes": "x" * 2_000_000,
    }
    texts = {f"text-{number}": "x" * (LONGEST + 1) for number in range(2 * WIDEST // LONGEST)}
    rows = reading(json.dumps([wide, {"id": "t-2", **texts}, {"id": "t-3"}]).encode())
    assert [row["id"] for row, _ in rows.end()] == ["t-2", "t-3"], "texts that are left out make no row wide"
    [(issue, why)] = rows.unread.items()
    assert (issue, why.startswith("it is too big: ")) == ("t-1", True)


ORDINARY: dict[str, Any] = {
    "id": "t-1", "title": "Work", "status": "open", "priority": 2, "issue_type": "task",
    "created_at": "2026-01-02T03:04:05Z",
}  # fmt: skip


@pytest.mark.promise("S1")
@pytest.mark.parametrize(("odd", "why"), [
    ({"status": None}, "at status"),
    ({"created_at": "10000-01-01T00:00:00Z"}, "at created_at"),
    ({"priority": "high"}, "at priority"),
    ({"labels": [{"name": "a"}]}, "at labels.0"),
    ({"comments": [{"id": 1}]}, "at comments.0.id"),
    ({"id": "t 1, with \u00fcml\u00e4uts", "title": 5}, "at title"),
])  # fmt: skip
def test_a_row_with_an_odd_field_is_named_and_the_others_are_read(odd: dict[str, Any], why: str) -> None:
    rows = Rows(IssueRow.read, Redaction())
    issues = [ORDINARY | {"id": "t-0"}, ORDINARY | odd, ORDINARY | {"id": "t-2"}]
    rows.take(json.dumps(issues, ensure_ascii=False).encode())
    assert [row.id for row in rows.end()] == ["t-0", "t-2"]
    [(issue, reason)] = rows.unread.items()
    assert (issue, reason.endswith(why)) == ((ORDINARY | odd)["id"], True)


def test_where_no_row_has_the_form_that_we_know_it_is_another_bd() -> None:
    rows = Rows(IssueRow.read, Redaction())
    rows.take(json.dumps([{"id": f"t-{number}", "state": "open"} for number in range(3)]).encode())
    with pytest.raises(TrackerUnavailable, match=r"is not one of bd 1\.3\.0: Field required at title"):
        rows.end()


def test_a_wide_row_without_an_id_is_no_answer() -> None:
    with pytest.raises(TrackerUnavailable, match="begins with no id"):
        reading(json.dumps([{"x": ["y" * 1000] * 9000}]).encode()).end()


def test_no_part_of_a_secret_comes_through_where_the_answer_is_cut_into_pieces() -> None:
    rows = [{"id": "t-1", "notes": "is a-long-secret"}]
    assert reading(json.dumps(rows).encode(), 5, "a-long-secret").end() == [
        ({"id": "t-1", "notes": "is [redacted]"}, ())
    ]
