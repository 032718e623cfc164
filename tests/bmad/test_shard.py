"""Sharding: back byte for byte in every form, every line in one of two files, and no kill that loses one."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ashep.actions.story_edits as files
from ashep.actions.story_edits import moved
from ashep.bmad.shard import shard, unshard
from ashep.bmad.story import Story, read
from ashep.bmad.text import NotWritable
from ashep.cli import main
from tests.bmad.forms import ENDS, REVIEWS, Form
from tests.bmad.test_laws import NAME, forms, lines

ARCHIVE = "1-2-log-in.archive.md"
LONG = (
    "## Senior Developer Review (AI)\n\n**Outcome:** Changes Requested\n\n- [x] [High] one\n\n  ```\n  # code\n  ```\n"
    "- [x] [High] one\n  - [x] below\n- [ ] three\n  - [x] four\n- [x] five\n  - [ ] six\n"
    "* [x] other\n\n"
)
rounds = st.lists(st.sampled_from([LONG, *(one for one in REVIEWS.values() if one)]), max_size=3).map("".join)


@dataclass(frozen=True)
class Rounds(Form):
    """A form with more rounds behind it."""

    more: str = ""

    @property
    def text(self) -> str:
        return super().text + self.more


def said(story: Story) -> object:
    boxes = [[(one.text, one.done) for one in some] for some in (story.tasks, story.unresolved)]
    status = story.status and story.status.said
    return (
        status,
        story.state,
        [text for text, _ in story.criteria],
        boxes,
        story.reviews[-1:] and story.reviews[-1].outcome,
    )


@settings(max_examples=40)
@given(forms, rounds, rounds, st.sampled_from([b"", b"# Mine", b"# Mine\r\n\r\ntext\r\n"]))
def test_there_and_back_is_the_identity_and_each_line_is_in_one_of_both(
    form: Form, more: str, later: str, mine: bytes
) -> None:
    form = Rounds(**vars(form), more=more)
    data, before = form.data, read(NAME, form.data)
    made = shard(NAME, data, mine)
    back = unshard(made.story, made.archive)
    assert (back.story, back.archive, back.left) == (data, mine, ())
    after = read(NAME, made.story)
    assert said(after) == said(before)
    assert len(after.reviews) == len(before.reviews)
    for old in after.reviews[:-1]:
        assert not old.findings or any(not one.done for one in old.findings), "an old round stays for what is open"
    of_story, of_archive = Counter(lines(made.story)), Counter(lines(made.archive))
    both = of_story + of_archive
    assert not Counter(lines(data)) - both, "no line is in neither"
    links = [line for line in lines(made.story) if b"<!-- ashep:" in line]
    assert len(links) == len(made.moved)
    assert len(lines(data)) == len(lines(made.story)) - len(links) + sum(count for _, count, _ in made.moved)
    assert shard(NAME, made.story, made.archive).moved == (), "nothing is left to move"
    if form.last and later:  # goes on, and is sharded again: parts in parts
        end = b"\n" if form.mixed else form.end.encode()
        longer = made.story + later.replace("\n", end.decode()).encode()
        again = shard(NAME, longer, made.archive)
        assert unshard(again.story, again.archive).story == data + later.replace("\n", end.decode()).encode()


def test_what_moves_and_what_stays() -> None:
    form = Rounds(more=LONG + REVIEWS["third level"].replace("### ", "## ") + LONG)
    made = shard(NAME, form.data)
    text = made.story.decode()
    assert [(count, what) for _, count, what in made.moved] == [
        (7, "resolved findings"), (1, "resolved findings"), (1, "resolved findings"), (1, "an old review"),
        (7, "resolved findings"), (1, "resolved findings"), (1, "resolved findings"),
    ]  # fmt: skip
    assert text.count("- [ ] three") == 2
    assert "- [x] [High]" not in text
    assert "- [x] four" not in text
    assert "APPROVED" not in text
    assert f"[archived]({ARCHIVE})" in text
    assert "\n  - [archived](" in text, "what stood below an open finding is linked below it"
    assert read(NAME, made.archive).kind != "unreadable"


def test_what_is_no_story_and_what_is_not_as_it_was_is_refused() -> None:
    with pytest.raises(NotWritable, match="this is no story"):
        shard("docs/notes.md", b"# Notes\n")
    with pytest.raises(NotWritable, match="this is no story that can be read as one"):
        shard(NAME, Form(review="two").data + b"\n<<<<<<< a\n=======\n>>>>>>> b\n")
    made = shard(NAME, Form(review="senior").data)
    for broken in (made.archive.replace(b"two", b"too"), made.archive.replace(b"two", b""), b""):
        with pytest.raises(NotWritable, match="linked twice, or is not in the archive as it was"):
            unshard(made.story, broken)
    link = next(line for line in lines(made.story) if b"<!-- ashep:" in line)
    with pytest.raises(NotWritable, match="linked twice"):
        unshard(made.story + link, made.archive)
    gone = unshard(made.story.replace(link, b""), made.archive)
    assert len(gone.left) == 1
    assert gone.archive == made.archive, "what has no link stays where it is"


def put(root: Path, data: bytes) -> Path:
    file = root / NAME
    file.parent.mkdir(parents=True)
    file.write_bytes(data)
    return file


@pytest.mark.parametrize("undo", [False, True])
@pytest.mark.parametrize("calls", [0, 1])
def test_a_run_that_is_killed_between_both_files_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, undo: bool, calls: int
) -> None:
    data = Rounds(review="two", more=LONG + LONG).data
    file = put(tmp_path, data)
    if undo:
        moved(tmp_path, "1-2", undo=False, dry_run=False)
    left, write = [calls], files.write

    def killed(*arguments: object) -> None:
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        write(*arguments)  # pyright: ignore[reportArgumentType] - as they were given

    monkeypatch.setattr(files, "write", killed)
    with pytest.raises(KeyboardInterrupt):
        moved(tmp_path, "1-2", undo=undo, dry_run=False)
    monkeypatch.undo()
    there = file.read_bytes() + (file.with_name(ARCHIVE).read_bytes() if file.with_name(ARCHIVE).exists() else b"")
    assert not Counter(lines(data)) - Counter(lines(there)), "every line is somewhere"
    if undo:
        moved(tmp_path, "1-2", undo=True, dry_run=False)
        assert (file.read_bytes(), file.with_name(ARCHIVE).exists()) == (data, False)
    moved(tmp_path, "1-2", undo=False, dry_run=False)
    once = shard(str(file), data)
    assert (file.read_bytes(), file.with_name(ARCHIVE).read_bytes()) == (once.story, once.archive)
    moved(tmp_path, "1-2", undo=True, dry_run=False)
    assert file.read_bytes() == data
    assert not file.with_name(ARCHIVE).exists()


def test_the_command_shows_moves_and_puts_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = Form(review="two", end=ENDS[1]).data
    file = put(tmp_path, data)
    ashep = ["-C", str(tmp_path), "story", "shard", "1.2"]
    assert main([*ashep, "--dry-run"]) == 0
    assert capsys.readouterr().out == "nothing to move\n", "its old round has an open finding"
    file.write_bytes(data := data.replace(b"- [ ] [Med] one", b"- [x] [Med] one"))
    assert main([*ashep, "--dry-run"]) == 0
    assert capsys.readouterr().out == f"line 46: an old review, 3 lines\nto be moved to {ARCHIVE}\n"
    assert (file.read_bytes(), file.with_name(ARCHIVE).exists()) == (data, False)
    assert main(ashep) == 0
    assert b"[Med] one" in file.with_name(ARCHIVE).read_bytes()
    assert b"[Med] one" not in file.read_bytes()
    assert main([*ashep, "--undo"]) == 0
    assert (file.read_bytes(), file.with_name(ARCHIVE).exists()) == (data, False)
    assert capsys.readouterr().out.endswith("put back\n")
