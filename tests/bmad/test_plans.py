"""Plans made of epics, and what completed stories taught: what is proposed, and what is written where."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ashep.bmad.learnings import BEGIN, BYTES, END, LINES, learnings, with_learnings
from ashep.bmad.plan import PlannedStory, kebab, new_sprint, plan_of, with_plan
from ashep.bmad.sprint import read_sprint
from ashep.bmad.story import read
from ashep.bmad.text import NotWritable
from ashep.cli import main
from tests.bmad.forms import ENDS
from tests.bmad.test_disk import put, story
from tests.bmad.test_laws import lines

EPICS = """\
# Epics

## Epic 1: Letters

### Story 1.1: Write one

Requires: libpost 9.9; it depends on 9.8

**Prerequisites:** None

### Story 1.2: Send it – at once!

**Depends on:** Story 1.1 (2.5 hours), and 2.1

### Story 1.3: Read it

**Prerequisites:**

- Story 1.1
- [ ] Story 1.2: it is sent

Later 7.7 comes.

## Epic 2: Stamps

### Story 2.1: Print them

#### Prerequisites

Only 1.1 (and not 1.2).

### Story 2.2: Sell them

Blocked by: Epic 1

### Story 2.3: Burn them

_Depends on: 1.1 – 1.3_
"""


def steps_of(text: str) -> list[PlannedStory]:
    steps, problems = plan_of([("epics.md", text.encode())], {})
    assert not problems
    return [*steps]


def test_stories_have_keys_dependencies_and_a_priority() -> None:
    assert [(one.key, one.epic, one.depends, one.priority) for one in steps_of(EPICS)] == [
        ("1-1-write-one", "1", (), 1), ("1-2-send-it-at-once", "1", ("1-1", "2-1"), 3),
        ("1-3-read-it", "1", ("1-1", "1-2"), 4), ("2-1-print-them", "2", ("1-1",), 2),
        ("2-2-sell-them", "2", ("1-1", "1-2", "1-3"), 5), ("2-3-burn-them", "2", ("1-1", "1-2", "1-3"), 5),
    ]  # fmt: skip
    steps, _ = plan_of([("epics.md", EPICS.encode())], {"1-1": "1-1-own-name"})
    assert steps[0].key == "1-1-own-name"


graphs = st.lists(st.sets(st.integers(0, 7)), min_size=1, max_size=8)


@settings(max_examples=40)
@given(graphs, st.integers(1, 4), st.sampled_from(ENDS))
def test_whatever_depends_on_a_story_comes_after_it(graph: list[set[int]], wide: int, end: str) -> None:
    ids = [f"{place // wide + 1}-{place % wide + 1}" for place in range(8)]
    text = "".join(
        f"## Epic {id_[0]}\n\n" * (id_[2:] == "1") + f"### Story {id_.replace('-', '.')}: T\n\n"
        f"Prerequisites: {', '.join(f'Story {ids[one]}' for one in sorted(needs)) or 'None'}\n\n"
        for id_, needs in zip(ids, graph, strict=False)
    )
    steps, problems = plan_of([("e.md", text.replace("\n", end).encode())], {})
    assert [one.id for one in steps] == ids[: len(graph)], "each once, in the order of the epics"
    there = {one.id: one for one in steps}
    for one, needs in zip(steps, graph, strict=True):
        assert {*one.depends} == {ids[place] for place in needs if place < len(graph)}
    unknown = {ids[place] for needs in graph for place in needs if place >= len(graph)}
    assert {id_ for id_ in unknown if any(f"depends on {id_}, which" in one.said for _, one in problems)} == unknown
    below: dict[str, set[str]] = {one.id: {*one.depends} for one in steps}
    for _ in steps:
        below = {one: some | {more for other in some for more in below[other]} for one, some in below.items()}
    circles = [one for _, one in problems if "in a circle" in one.said]
    assert bool(circles) == any(one in some for one, some in below.items())
    assert all(f"{one.said.split(': ')[1].split(' ')[0]} " in one.said for one in circles)
    if not circles:
        assert all(there[other].priority < one.priority for one in steps for other in one.depends)
        for one in steps:
            assert not any(there[other].priority == one.priority for other in below[one.id])


def test_what_is_wrong_is_told_with_its_line() -> None:
    text = (
        "## Epic 1: A\n### Story 1.1: A\nDepends on: 1.2\n### Story 1.2: B\nPrerequisites: Story 1.1, 3.1, Epic 9\n"
        "### Story 1.1: Again\n### Story 1.3: C\n\n_Depend on_: 1.3\n"
    )
    _, problems = plan_of([("e.md", text.encode())], {})
    assert [(one.line, one.said) for _, one in problems] == [
        (5, "story 1-2 depends on 3-1, which the epics do not have"),
        (5, "story 1-2 depends on epic-9, which the epics do not have"),
        (6, "story 1-1 has another title in e.md, line 2"),
        (3, "these depend on each other in a circle: 1-1 (line 3) → 1-2 (line 5) → 1-1"),
        (9, "these depend on each other in a circle: 1-3 (line 9) → 1-3"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("title", "key"),
    [("Log in & out!", "log-in-out"), ("Größe — ändern", "groe-andern"), ("日本", "story"), ("don't", "dont"),
     ("word " * 30, "word-" * 15 + "word"), ("x" * 99, "x" * 80)],
)  # fmt: skip
def test_a_key_is_short_and_plain(title: str, key: str) -> None:
    assert kebab(title) == key


# --- the sprint status --------------------------------------------------------------------------------------------

THERE = (
    "  epic-1: in-progress # so far\n", "  1-1-write-one: done\n", "  1-2-other-name:\n    status: review\n    n: 3\n",
    "  1-3-read-it: >-\n    done\n", "  epic-1-retrospective: &x optional\n\n  # Epic 2\n", "  epic-2: 'backlog'\n",
    "  2-1-print-them: *x\n", "  9-9-own: {status: done}\n",
)  # fmt: skip


@settings(max_examples=40)
@given(
    st.sets(st.sampled_from(range(len(THERE)))), st.sampled_from(ENDS), st.booleans(), st.booleans(),
    st.sampled_from(["", "after: 1\n", "# the end\n"]),
)  # fmt: skip
def test_only_what_lacks_is_added_each_behind_the_one_before_it(
    some: set[int], end: str, bom: bool, last: bool, after: str
) -> None:
    steps, some = steps_of(EPICS), some if 4 in some else some - {6}
    listed = "".join(one for place, one in enumerate(THERE) if place in some)
    text = f"# header\nproject: x\n\ndevelopment_status:\n{listed}{after}"
    data = ("\ufeff" * bom + (text if last else text.rstrip("\n")).replace("\n", end)).encode()
    new, added = with_plan(data, steps)
    old, now = read_sprint(data).entries, read_sprint(new).entries
    assert not read_sprint(new).problems
    kept = [one for one in lines(new) if one.split(b":")[0].strip().decode() not in added]
    assert b"".join(kept).rstrip() == data.rstrip(), "what was there is there, byte for byte"
    assert new.endswith(end.encode()) == data.endswith(end.encode())
    assert {*added} == {one.key for one in now} - {one.key for one in old}
    assert {one.said.word for one in now if one.key in added and one.kind != "retrospective"} <= {"backlog"}
    ids = [one.id for one in now if one.kind == "story" and one.key != "9-9-own"]
    assert ids == [one.id for one in steps], "each once, in order"
    assert with_plan(new, steps) == (new, ()), "and once is enough"


def test_a_last_line_without_an_end_stays_one() -> None:
    new, _ = with_plan(b"development_status:\r\n  epic-1: done", steps_of(EPICS)[:1])
    assert new == b"development_status:\r\n  epic-1: done\r\n  1-1-write-one: backlog"
    assert with_plan(b"a: 1", steps_of(EPICS)[:1])[0].startswith(b"a: 1\ndevelopment_status:\n  epic-1: backlog\n")


@pytest.mark.parametrize(
    "text",
    ["development_status: {1-1-a: done}\n", "s1: {status: done}\n", "- a\n", "development_status: soon\n", "a: [\n"],
)
def test_a_sprint_status_of_another_form_is_left_alone(text: str) -> None:
    with pytest.raises(NotWritable, match=r"write (?:them|the stories there) by hand|no YAML"):
        with_plan(text.encode(), steps_of(EPICS))


def test_a_new_one_has_the_documented_keys() -> None:
    date = datetime(2026, 1, 2, tzinfo=UTC)
    data, added = new_sprint(steps_of(EPICS), date=date, project='a "b": c', location="docs/stories")
    sprint = read_sprint(data)
    assert (sprint.location, sprint.problems) == ("docs/stories", ())
    assert [one.key for one in sprint.entries] == [*added]
    assert [*added][:5] == ["epic-1", "1-1-write-one", "1-2-send-it-at-once", "1-3-read-it", "epic-1-retrospective"]
    assert b'\nproject: "a \\"b\\": c"\n' in data
    assert b"\ngenerated: 2026-01-02\n" in data


def test_the_command_proposes_asks_and_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, {"docs/epics.md": EPICS})
    plan, file = (
        ["-C", str(tmp_path), "story", "plan"],
        tmp_path / "_bmad-output/implementation-artifacts/sprint-status.yaml",
    )
    assert main(plan) == 0
    assert capsys.readouterr().out.splitlines()[2].split() == ["2", "3", "1-2-send-it-at-once", "1", "1-1,", "2-1",
                                                              "Send", "it", "–", "at", "once!"]  # fmt: skip
    assert main([*plan, "--write"]) == 0
    assert "nothing was written: --yes writes it" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("typer.confirm", lambda *_, **__: False)
    assert main([*plan, "--write"]) == 0
    assert not file.exists()
    assert main([*plan, "--write", "--yes"]) == 0
    assert [one.said.word for one in read_sprint(file.read_bytes()).entries][:2] == ["backlog", "backlog"]
    capsys.readouterr()
    assert main([*plan, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["lacks"], told["problems"], told["stories"][1]["depends"]) == ([], [], ["1-1", "2-1"])
    file.unlink()
    put(tmp_path, {"docs/epics.md": EPICS.replace("Epic 1\n", "Epic 8\n")})
    assert main([*plan, "--write", "--yes"]) == 1
    assert "error docs/epics.md:34: story 2-2 depends on epic-8, which the epics do not have" in capsys.readouterr().out
    assert not file.exists()
    assert main(["-C", str(tmp_path / "docs"), "story", "plan"]) == 2


# --- learnings ----------------------------------------------------------------------------------------------------

TAUGHT = "\n## Lessons Learned\n\n### Here\n\n- {lesson}\n- A {{id}} <!-- own -->\n\n## Code Review\n\n{found}\n"


def completed(id_: str, lesson: str, *found: str, status: str = "done") -> tuple[object, bytes]:
    boxes = "\n".join(f"- [x] {one}" for one in found)
    data = (story(id_, status) + TAUGHT.format(lesson=lesson, found=boxes).replace("{id}", id_)).encode()
    return read(f"{id_.replace('.', '-')}-a.md", data), data


def test_lessons_are_kept_once_and_findings_that_come_again() -> None:
    stories = [
        completed("1.1", "Write  tests\n  first.", "[High] No lock", "[Low] A typo"),
        completed("1.2", "Ask", "[Med] no LOCK!"),
        completed("1.3", "**write tests first**"), completed("1.4", "Never", "No lock", status="review"),
    ]  # fmt: skip
    assert learnings(stories) == (  # pyright: ignore[reportArgumentType] - of a story and its bytes
        "- A 1.1 own (1-1)", "- no LOCK! (1-1, 1-2)", "- Ask (1-2)", "- A 1.2 own (1-2)",
        "- **write tests first** (1-1, 1-3)", "- A 1.3 own (1-3)",
    )  # fmt: skip


@pytest.mark.parametrize("width", [3, 400])
def test_they_have_a_bound_and_the_oldest_go(width: int) -> None:
    stories = [completed(f"1.{number}", f"{'é' * width} {number}") for number in range(1, 80)]
    said = learnings(stories)  # pyright: ignore[reportArgumentType] - of a story and its bytes
    assert len(said) <= LINES
    assert sum(len(one.encode()) + 1 for one in said) <= BYTES
    assert said[-1] == "- A 1.79 own (1-79)"
    assert len(said) == LINES or sum(len(one.encode()) + 1 for one in said) > BYTES - 700
    same = learnings([completed(f"1.{number}", "same") for number in range(1, 80)])  # pyright: ignore[reportArgumentType]
    assert "- same (74 more, 1-75, 1-76, 1-77, 1-78, 1-79)" in same


texts = st.text("ab\n\r# -", max_size=20)


@given(texts, texts, st.lists(st.text("ab ", min_size=1), max_size=3), st.lists(st.text("ab ", min_size=1), max_size=3))
def test_only_the_marked_part_is_written_anew(above: str, below: str, old: list[str], new: list[str]) -> None:
    first = with_learnings(above.encode(), old)
    data = first + below.encode()
    written = with_learnings(data, new).decode()
    assert written.startswith(first.decode().split(BEGIN)[0])
    assert written.endswith(data.decode().split(END)[1])
    assert with_learnings(with_learnings(data, new), old) == data
    assert above.strip() == "" or written.startswith(above)
    for broken in (data + END.encode(), data + first, data.replace(END.encode(), b"")):
        with pytest.raises(NotWritable, match="its marks are broken"):
            with_learnings(broken, new)


def test_the_command_writes_beside_the_sprint_status(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {f"docs/stories/1-{n}-a.md": completed(f"1.{n}", "Ask")[1] for n in (10, 9)}
    put(tmp_path, {**files, "docs/sprint-status.yaml": "development_status:\n  1-9-a: done\n"})
    assert main(["-C", str(tmp_path), "story", "learnings"]) == 0
    assert capsys.readouterr().out.splitlines() == ["- A 1.9 own (1-9)", "- Ask (1-9, 1-10)", "- A 1.10 own (1-10)"]
    assert not (tmp_path / "docs/learnings.md").exists()
    assert main(["-C", str(tmp_path), "story", "learnings", "--write"]) == 0
    assert (tmp_path / "docs/learnings.md").read_text().splitlines()[2:5] == [
        BEGIN,
        "- A 1.9 own (1-9)",
        "- Ask (1-9, 1-10)",
    ]
