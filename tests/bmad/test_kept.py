"""What a reformatting may not lose: each line that is removed or changed is told, and no change of form is."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ashep.bmad.content_diff import nothing_lost, with_criteria
from ashep.bmad.story import read
from ashep.cli import main
from tests.bmad.forms import CRITERIA, ENDS, STATUSES, TITLES, WORDS, Form
from tests.bmad.test_laws import NAME, forms

RECORDS = """\
## Dev Agent Record

### Completion Notes List

- `a_b` is *fast*, and 3 * 4 are twelve
- Asked twice, and went on
  in the next line

```console
$ make
  ok
```

### File List

- a.py
- a.py.orig

> quoted

## Change Log

| Date | Change |
|------|--------|
| 2026-01-02 | begun |

"""
RICH = {"with others", "item", "front matter", "heading"}
"""Forms of the status that say more beside it."""

Formed = Callable[[str], str]
FORMS: dict[str, Formed] = {
    "levels": lambda text: re.sub(r"(?m)^### (Completion|File)", r"#### \1", text).replace("## Change", "### Change"),
    "review": lambda text: re.sub(r"(?m)^#{2,3} (Senior|Code Review$)", r"## \1", text),
    "numbers": lambda text: re.sub(r"(?m)^(\d)\. ", r"\1) ", text),
    "counted": lambda text: re.sub(r"(?m)^- \[(.)\] Task 2", r"- [\1] 2. Task 2", text),
    "marks": lambda text: re.sub(r"(?m)^( *)- (?!\*\*(?:Points|Status)|\[ \] code)", r"\1* ", text),
    "boxes": lambda text: text.replace("- [x] ", "- [X] "),
    "blanks": lambda text: re.sub(r"\n\n(?=#)", "\n\n\n\n", text).replace("Asked twice", "Asked   twice"),
    "trailing": lambda text: text.replace("two\n", "two  \n"),
    "joined": lambda text: text.replace("went on\n  in", "went on in").replace("As a user\nStatus", "As a user Status"),
    "bald": lambda text: text.replace("**Given**", "Given").replace("**AC1:**", "AC1:").replace("*fast*", "__fast__"),
    "labels": lambda text: re.sub(r"(?m)^(\d\.) \*\*AC\d(?::\*\*|\*\* —) ", r"\1 ", text),
    "listed": lambda text: text.replace("### AC-1: one\n\n", "1. one\n\n").replace("### AC-2: two\n", "2. two\n"),
    "table": lambda text: text.replace("|------|--------|", "| --- | --- |").replace("| begun |", "|  begun  |"),
    "comment": lambda text: text.replace("<!-- Powered by BMAD -->\n\n", ""),
}  # fmt: skip
"""Changes of form alone."""


def whole(form: Form) -> str:
    return form.text.replace("## Dev Notes\n", f"{RECORDS}## Dev Notes\n")


def as_bytes(text: str, end: str, bom: bool) -> bytes:
    return ("\ufeff" * bom + text.replace("\n", end)).encode()


@settings(max_examples=60)
@given(forms, st.sets(st.sampled_from([*FORMS])), st.sampled_from([*STATUSES]), st.sampled_from(ENDS), st.booleans())
def test_a_change_of_form_is_not_told(form: Form, chosen: set[str], status: str, end: str, bom: bool) -> None:
    other = form if form.status in RICH else replace(form, status=status)
    before, after = whole(form), whole(other)
    for name in sorted(chosen):
        after = FORMS[name](after)
    assert nothing_lost(as_bytes(before, form.end, form.bom), as_bytes(after, end, bom), NAME) == ()


def test_each_of_these_changes_something() -> None:
    texts = [
        whole(Form(criteria=one, status="section", review="third level")) for one in ("numbered", "named", "headings")
    ]
    assert all(any(change(text) != text for text in texts) for change in FORMS.values())


def atoms(text: str) -> list[int]:
    """Lines that say something: all but blank ones, fences, headings that only head, and the status."""
    said = read(NAME, text.encode()).status
    assert said is not None
    lines = list(enumerate(text.split("\n"), 1))
    return [
        number for number, line in lines
        if line.strip() and number != said.line and not re.match(r" *(?:```|<!--|---$)|#(?!## AC)", line)
    ]  # fmt: skip


CHANGES: dict[str, Formed] = {
    "removed": lambda _: "",
    "added to": lambda line: f"{line.rstrip()} not",
    "a word": lambda line: re.sub(r"\w+(?=\W*$)", "zzz", line) if re.search(r"\w", line) else "",
    "a box": lambda line: line.replace("[ ]", "[x]") if "[ ]" in line else line.replace("[x]", "[ ]"),
    "severity": lambda line: re.sub(r"\[(High|Med|Low|Patch|Decision|Defer)\]", "[Critical]", line),
}


@settings(max_examples=60)
@given(forms, st.sampled_from([*CHANGES]), st.sampled_from([*FORMS, ""]), st.data())
def test_each_line_that_is_removed_or_changed_is_told(form: Form, how: str, also: str, draw: st.DataObject) -> None:
    text = whole(form)
    lines = text.split("\n")
    number = draw.draw(st.sampled_from(atoms(text)))
    changed = CHANGES[how](lines[number - 1])
    if changed == lines[number - 1] or re.fullmatch(r"[|\s-]*", lines[number - 1]):  # the rule of a table is form
        return
    lines[number - 1] = changed
    after = FORMS[also]("\n".join(lines)) if also else "\n".join(lines)
    assert nothing_lost(text.encode(), after.encode(), NAME), (lines[number - 1], changed)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("Status: in-progress", "Status: review"), "its status was in-progress, and is review"),
        (("Story 1.2: Log in", "Story 1.2: Log out"), "its title was Log in, and is Log out"),
        (("- [ ] Task 2", "- [x] Task 2"), "task was checked off: Task 2"),
        (("- [x] Task 1", "- [ ] Task 1"), "task is open again: Task 1 (AC: 1)"),
        (("  - [ ] Subtask 1.1\n", ""), "task is gone, or says something else: Subtask 1.1"),
        (("- [ ] [High] one", "- [ ] [Low] one"), "finding was high, and is low: one"),
        (("- [ ] [High] one", "- [x] [High] one"), "finding was checked off: one"),
        (("2. two\n", "2. too\n"), "criterion is gone, or says something else: two"),
        (("- a.py\n", ""), "what it said is gone, or says something else: a.py"),
        (("  ok\n", "  no\n"), "what it said is gone, or says something else: $ make ok"),
        (("Changes Requested", "Approve"), "what its last review ended with was changes requested, and is approve"),
        (("## Change Log", "## Code Review\n\nfine\n\n## Change Log"), "the number of its reviews was 1, and is 2"),
    ],
)  # fmt: skip
def test_what_is_told(change: tuple[str, str], told: str) -> None:
    text = whole(Form(review="senior"))
    assert text.count(change[0]) == 1
    assert told in [one.said for one in nothing_lost(text.encode(), text.replace(*change).encode(), NAME)]


def test_another_order_is_told_since_tasks_name_criteria_by_number() -> None:
    text = whole(Form(criteria="named", title=TITLES[0], said=next(iter(WORDS))))
    one, two = "1. **AC1:** one\n", "2. **AC2** — two\n"
    swapped = text.replace(one + two, "1. two\n2. one\n")
    assert [one.said for one in nothing_lost(text.encode(), swapped.encode(), NAME)] == ["criteria have another order"]
    first, second = "  - [ ] Subtask 1.1\n", "- [ ] Task 2\n"
    moved = text.replace(second, "").replace(first, second + first)
    assert "tasks have another order" in [one.said for one in nothing_lost(text.encode(), moved.encode(), NAME)]


EASIER: dict[str, Formed] = {
    "another word": lambda said: re.sub(r"\w+(?=\W*$)", "zzz", said),
    "one less": lambda said: said.rstrip("\n")[: said.rstrip("\n").rindex("\n") + 1],
    "one more": lambda said: f"{said}\nThe second one need not hold.\n",
    "none": lambda _: "",
    "below a heading": lambda said: f"### AC-1: nothing\n\n```\n{said}```\n",
}


@settings(max_examples=60)
@given(forms, st.sampled_from([*EASIER]), st.sampled_from(ENDS), st.booleans())
def test_other_criteria_are_put_back_and_nothing_else(form: Form, how: str, end: str, bom: bool) -> None:
    before, work = whole(form), ("- a.py\n", "- a.py\n- b.py\n")
    said = CRITERIA[form.criteria]
    assert before.count(said) == 1
    after = before.replace(said, EASIER[how](said)).replace(*work)
    mended = with_criteria(NAME, as_bytes(after, end, bom), [as_bytes(before, form.end, form.bom)])
    as_it_was = mended.decode().removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    assert as_it_was == before.replace(*work)
    assert with_criteria(NAME, mended, [as_bytes(before, form.end, form.bom)]) == mended


@settings(max_examples=30)
@given(forms, st.sets(st.sampled_from([*FORMS])))
def test_criteria_in_another_form_stay_as_they_were_written(form: Form, chosen: set[str]) -> None:
    before = whole(form).encode()
    after = whole(form)
    for name in sorted(chosen):
        after = FORMS[name](after)
    assert with_criteria(NAME, after.encode(), [before]) == after.encode()


def test_criteria_that_are_in_two_places_come_back_with_the_whole_file() -> None:
    before = whole(Form()).encode()
    after = before + b"\n## Acceptance Criteria\n\n1. nothing\n"
    assert with_criteria(NAME, after, [before]) == before
    gone = re.sub(rb"(?s)## Acceptance Criteria.*?(?=\n## )", b"", before)
    assert (gone != before, with_criteria(NAME, gone, [before])) == (True, before)
    checked = before.replace(b"1. ", b"1. [x] ")
    assert with_criteria(NAME, checked, [before]) == checked, "whether one is checked off is no matter"
    assert with_criteria(NAME, after, [b"# Without any\n"]) == after
    assert with_criteria(NAME, after, [b"\xff"]) == after, "who mends a file that nobody could read is not stopped"
    assert with_criteria(NAME, after, [b"\xff", before]) == before, "who broke it before is none the better for it"


def test_the_command_ends_with_one_where_something_is_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = whole(Form())
    (tmp_path / "b.md").write_text(text)
    (tmp_path / "1-2-a.md").write_text(FORMS["marks"](text))
    compare = ["story", "compare", str(tmp_path / "b.md"), str(tmp_path / "1-2-a.md")]
    assert main(compare) == 0
    assert capsys.readouterr().out == "nothing is lost\n"
    (tmp_path / "1-2-a.md").write_text(text.replace("- [ ] Task 2", "- [x] Task 2"))
    assert main(compare) == 1
    assert "1-2-a.md, line 30 of before: task was checked off: Task 2\nlost or changed: 1" in capsys.readouterr().out
    assert main([*compare, "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == [{"line": 30, "says": "task was checked off: Task 2"}]
    (tmp_path / "1-2-a.md").unlink()
    assert main(compare) == 1, "a story that is gone has lost all"
    (tmp_path / "1-2-a.md").write_bytes(b"\xff")
    assert main(compare) == 1
