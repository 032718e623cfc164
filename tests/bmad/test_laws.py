"""What holds in every form: what was put in is read, and writing changes one place, and back byte for byte."""

import re
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ashep.bmad.sprint import read_sprint, with_key
from ashep.bmad.status_words import ORDER, Status, further
from ashep.bmad.story import put_status, read, with_box, with_status
from ashep.bmad.text import NotWritable, Text
from tests.bmad.forms import CRITERIA, ENDS, READ_OF, STATUSES, TITLES, WORDS, Form

NAME = "docs/stories/1-2-log-in.md"

forms = st.builds(
    Form,
    status=st.sampled_from(list(STATUSES)), said=st.sampled_from(list(WORDS)), title=st.sampled_from(TITLES),
    criteria=st.sampled_from(list(CRITERIA)), review=st.sampled_from(list(READ_OF)), inside=st.booleans(),
    end=st.sampled_from(ENDS), mixed=st.booleans(), bom=st.booleans(), last=st.booleans(),
)  # fmt: skip
statuses = st.sampled_from(get_args(Status))
many = settings(max_examples=100)


def lines(data: bytes) -> list[bytes]:
    return re.findall(rb"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", data)


def changed(old: bytes, new: bytes) -> list[int]:
    assert len(lines(old)) == len(lines(new))
    return [number for number, pair in enumerate(zip(lines(old), lines(new), strict=True), 1) if pair[0] != pair[1]]


@many
@given(forms)
def test_what_was_put_in_is_read(form: Form) -> None:
    story = read(NAME, form.data)
    assert (story.id, story.kind, story.title) == ("1-2", "story", "Log in")
    assert story.status is not None
    assert (story.status.said, story.status.word) == (form.said, WORDS[form.said])
    assert form.said in Text.from_bytes(form.data).line(story.status.line)
    assert len(story.criteria) == 2
    assert [one.done for one in story.tasks] == [True, False, False]
    assert all(box.text in Text.from_bytes(form.data).line(box.line) for box in story.tasks)
    reviews, unresolved, outcome = READ_OF[form.review]
    assert (len(story.reviews), len(story.unresolved)) == (reviews, unresolved)
    assert (story.reviews[-1].outcome if story.reviews else None) == outcome
    assert not any(one.disagrees for one in story.problems)


@many
@given(forms, statuses)
def test_a_status_is_written_in_its_place_and_form(form: Form, status: Status) -> None:
    data, old = form.data, read(NAME, form.data).status
    assert old is not None
    new = with_status(data, NAME, status)
    written = read(NAME, new).status
    assert written is not None
    assert (written.word, written.line, written.column) == (status, old.line, old.column)
    assert changed(data, new) in ([], [old.line])
    assert put_status(new, written, old.said) == data, "and back"
    assert (read(NAME, new).tasks, read(NAME, new).reviews) == (read(NAME, data).tasks, read(NAME, data).reviews)


@pytest.mark.parametrize(("said", "new"), [
    ("Done (2026-01-02) | Owner: Pat", "In Progress (2026-01-02) | Owner: Pat"),
    ("ready-for-dev  **Epic:** 1  **Points:** 3", "in-progress  **Epic:** 1  **Points:** 3"),
    ("**Review** - see the record", "**In Progress** - see the record"),
    ("✅ READY FOR DEV, owner Pat", "IN PROGRESS, owner Pat"),
    ("draft → review (Pat)", "in-progress (Pat)"),
    ("Approved, owner: Pat", "In Progress, owner: Pat"),
    ("N/A / on_hold", "IN PROGRESS / on_hold"),
    ("review (draft → review)", "in-progress"),
])  # fmt: skip
def test_writing_a_status_keeps_the_rest_of_its_line(said: str, new: str) -> None:
    story, key = f"# Story 1.2: Log in\n\nStatus: {said}\nEpic: 1\n", "development_status:\n  1-2-log-in: {}\n"
    written = with_status(story.encode(), NAME, "in-progress").decode()
    assert written == story.replace(said, new)
    if said[0] not in "*N✅" and ": " not in said:
        assert with_key(key.format(said).encode(), "1-2-log-in", "in-progress", force=True).decode() == key.format(new)


@many
@given(forms, st.data())
def test_a_box_is_checked_and_cleared(form: Form, draw: st.DataObject) -> None:
    data, story = form.data, read(NAME, form.data)
    boxes = [*story.tasks, *(box for review in story.reviews for box in review.findings)]
    box = draw.draw(st.sampled_from(boxes))
    new = with_box(data, box.line, done=not box.done)
    assert changed(data, new) == [box.line]
    after = read(NAME, new)
    found = next(one for one in (*after.tasks, *(b for r in after.reviews for b in r.findings)) if one.line == box.line)
    assert found.done is not box.done
    assert with_box(new, box.line, done=box.done) == data, "and back"
    assert with_box(data, box.line, done=box.done) == data, "what is so already stays"


@pytest.mark.parametrize("line", [0, 1, 3, 99])
def test_where_no_box_is_none_is_written(line: int) -> None:
    with pytest.raises(NotWritable, match=f"line {line} has no box"):
        with_box(b"# T\n- [ ] a\nsee [ ] there\n", line, done=True)


def test_a_status_that_moved_is_not_written_over() -> None:
    data = b"# T\n\nStatus: review\n"
    old = read(NAME, data).status
    assert old is not None
    with pytest.raises(NotWritable, match="line 3 does not say review in one piece"):
        put_status(b"# T\n\nA line more\nStatus: review\n", old, "done")
    with pytest.raises(NotWritable, match=r"no status; write a line `Status: done` below its title"):
        with_status(b"# T\n", NAME, "done")
    with pytest.raises(NotWritable, match="two statuses"):
        with_status(b"---\nstatus: done\n---\n# T\n\nStatus: review\n", NAME, "done")


# --- the sprint status --------------------------------------------------------------------------------------------

VALUES = (
    "{}",
    "'{}'",
    '"{}"',
    "{}   # 2 pts - (DEPENDS: 1-1)",
    "{{status: {}, points: 3}}",
    "\n      status: {}\n      points: 3",
)
keys = st.lists(
    st.tuples(st.sampled_from(["1-1-a", "1-2-b", "1-2a-c", "TD-1-1-d", "3-0-1-e", "epic-1", "epic-1-retrospective"]),
              st.sampled_from(VALUES), statuses),
    min_size=1, unique_by=lambda one: one[0],
)  # fmt: skip


@many
@given(keys, st.data(), st.sampled_from(ENDS), st.booleans(), statuses, st.booleans())
def test_one_key_is_written_and_nothing_else(
    entries: list[tuple[str, str, Status]], draw: st.DataObject, end: str, bom: bool, status: Status, force: bool
) -> None:
    listed = "".join(f"  {key}: {value.format(said)}\n" for key, value, said in entries)
    head = "# header\n# more: of it\n\nproject: x\nnfr_own: [a, b]\n\ndevelopment_status:\n  # Epic 1\n"
    text = f"{head}{listed}\nafter: 1\n"
    data = ("\ufeff" * bom + text.replace("\n", end)).encode()
    sprint = read_sprint(data)
    assert [(one.key, one.said.word) for one in sprint.entries] == [(key, said) for key, _, said in entries]
    assert not sprint.problems
    key, _, old = draw.draw(st.sampled_from(entries))
    if further(old, status) and not force:
        with pytest.raises(NotWritable, match="--force writes it all the same"):
            with_key(data, key, status)
        return
    new = with_key(data, key, status, force=force)
    before, after = (next(one for one in read_sprint(given).entries if one.key == key) for given in (data, new))
    assert after.said.word == status
    assert changed(data, new) in ([], [before.said.line])
    assert put_status(new, after.said, before.said.said) == data, "and back"


def test_never_is_a_status_written_over_one_that_is_further() -> None:
    for place, one in enumerate(ORDER):
        assert [further(one, other) for other in ORDER] == [place > other for other in range(len(ORDER))]
    assert not further("done", "blocked")


@pytest.mark.parametrize(
    ("listed", "why"),
    [
        ("  1-1-a: &x done\n  1-2-b: *x\n", "says what another key does"),
        ("  1-2-b: done\n  1-2-b: review\n", "stands there 2 times"),
        ("  1-2-b: >-\n    done\n", "does not say done in one piece"),
        ('  1-2-b: "do\\x6ee"\n', "does not say done in one piece"),
        ("  1-1-a: done\n", "does not stand there"),
        ("  1-2-b:\n", "does not stand there"),
    ],
)
def test_what_is_not_in_one_place_is_not_written(listed: str, why: str) -> None:
    with pytest.raises(NotWritable, match=why):
        with_key(f"development_status:\n{listed}".encode(), "1-2-b", "backlog", force=True)
