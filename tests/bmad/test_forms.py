"""One file for each form of docs/facts/bmad.md 6 to 15 that the laws do not put together."""

from typing import Any

import pytest

from ashep.bmad.markdown import id_in
from ashep.bmad.paths import places_of
from ashep.bmad.sprint import read_epics, read_planned, read_sprint
from ashep.bmad.status_words import HALTS, halt_in
from ashep.bmad.story import read

BOTH = "## Acceptance Criteria\n\n1. a\n\n## Tasks\n\n- [x] a\n"

NAMES = {
    "1-2-slug.md": "1-2", "story-1.2.md": "1-2", "story-1-2-slug.md": "1-2", "1.2.slug.md": "1-2",
    "1-2a-slug.md": "1-2a", "1.2.story.md": "1-2", "1.2-slug.md": "1-2", "1b-6-slug.md": "1b-6",
    "3-0-1-slug.md": "3-0-1", "8-4a-1-slug": "8-4a-1",
    "TD-1-5-slug.md": "td-1-5", "spec-1-7-slug.md": "1-7", "1-3": "1-3", "1.3": "1-3", "5-1-404-page.md": "5-1",
    "1-2-3d-models.md": "1-2", "1-2-slug.context.xml": "1-2",
    "2026-05-07-note.md": None, "epic-1-retrospective": None, "epic-1": None, "123.md": None, "slug.md": None,
}  # fmt: skip


def test_ids_stand_in_names() -> None:
    assert {name: id_in(name) for name in NAMES} == NAMES


@pytest.mark.parametrize(
    ("name", "title", "id_", "wrong"),
    [
        ("1-2-a.md", "Story 1.2: T", "1-2", []),
        ("notes.md", "Story 1.2: T", "1-2", []),
        ("TD-1-5-a.md", "Tech Debt Story TD-1-5: T", "td-1-5", []),
        ("1b-6-a.md", "Story 1B.6: T", "1b-6", []),
        ("1-2-3-way-merge.md", "Story 1.2: T", "1-2", []),
        ("3-0-1-a.md", "Story 3.0.1: T", "3-0-1", []),
        ("1-2-a.md", "Story 1.3: T", "1-2", ["its title says 1-3, and its name 1-2"]),
    ],
)
def test_title_and_name_say_one_id(name: str, title: str, id_: str, wrong: list[str]) -> None:
    story = read(name, f"# {title}\n\nStatus: review\n\n{BOTH}".encode())
    assert (story.id, story.title, [one.said for one in story.problems if one.disagrees]) == (id_, "T", wrong)


@pytest.mark.parametrize(
    ("path", "text", "kind"),
    [
        ("1-2-a.md", f"# T\n\n{BOTH}", "story"),
        ("1-2-a.md", "# T\n\n## Tasks\n\n- [ ] a\n", "story"),
        ("a.md", f"# T\n\nStatus: draft\n\n{BOTH}", "story"),
        ("a.md", f"# T\n\n{BOTH}", "other"),
        ("1-2-a.md", "# T\n\nStatus: done\n", "other"),
        ("1-2-a-validation-report.md", "# T\n\n## Tasks\n\n- [ ] a\n", "other"),
        ("1-2-input-validation.md", f"# T\n\nStatus: done\n\n{BOTH}", "story"),
        ("1-2-a.context.md", f"# T\n\nStatus: done\n\n{BOTH}", "other"),
        ("tech-spec-epic-3.md", f"# T\n\nStatus: done\n\n{BOTH}", "other"),
        ("epic-1-retro-2026-03-10.md", f"# T\n\nStatus: done\n\n{BOTH}", "other"),
        ("1-2-a.archive.md", f"# T\n\nStatus: done\n\n{BOTH}", "archive"),
        ("docs/stories/archive/1-2-a.md", f"# T\n\nStatus: done\n\n{BOTH}", "archive"),
        ("specs/x/stories/1-a.md", "---\ntitle: T\nstatus: draft\n---\n", "specification"),
        ("spec-1-2-a.md", "---\nbaseline_revision: 0a\n---\n", "specification"),
        ("1-2-a.md", f"---\nbaseline_commit: 0a\n---\n{BOTH}", "story"),
        ("1-2-a.context.xml", "<x/>", "other"),
    ],
)
def test_what_a_file_is(path: str, text: str, kind: str) -> None:
    assert read(path, text.encode()).kind == kind


def test_two_statuses_disagree() -> None:
    story = read("1-2-a.md", f"---\nstatus: done\n---\n# T\n\nStatus: review\n\n{BOTH}".encode())
    assert story.status is not None
    assert story.status.line == 2
    assert [(one.line, one.said) for one in story.problems] == [
        (6, "two statuses: line 2 says done, and line 6 review")
    ]


def test_the_first_of_many_rounds_and_the_last_are_read() -> None:
    rounds = "".join(
        f"\n## Senior Developer Review (AI) - Round {number}\n\n"
        f"**Outcome:** {'Approve' if number == 9 else 'Blocked'}\n\n"
        f"- [{'x' if number else ' '}] [High] f{number}\n"
        for number in range(10)
    )
    story = read("1-2-a.md", f"# T\n\nStatus: in-progress\n\n{BOTH}{rounds}".encode())
    assert [one.outcome for one in story.reviews] == ["blocked"] * 9 + ["approve"]
    assert [(one.text, one.severity) for one in story.unresolved] == [("[High] f0", "high")]


# --- build-auto ---------------------------------------------------------------------------------------------------

SPEC = """---
title: 'Story 11.2: Explain a log'
status: '{status}' # so far
baseline_revision: '561d'
review_loop_iteration: 3
followup_review_recommended: true
context: []
warnings: ['oversized', multiple-goals]
deferred:
  - later
  - {{title: Retry, severity: low}}
---

<intent-contract>

## Intent

Status: none of it

</intent-contract>

## Tasks & Acceptance

**Execution:**
- [x] `a.py` -- write it
- [ ] `b.py` -- too

**Acceptance Criteria:**
- Given a, when b, then c.
- Given d

## Auto Run Result

### Pass 1

Status: blocked
Blocking condition: no subagents

### Pass 2

Status: `{result}`
Blocking condition: {why}
"""


def spec(status: str, result: str, why: str) -> Any:
    return read("s/stories/11-2-explain.md", SPEC.format(status=status, result=result, why=why).encode())


def test_a_specification_is_read() -> None:
    story = spec("in-progress", "blocked", "`intent gap`")
    assert (story.id, story.kind, story.title, story.state) == ("11-2", "specification", "Explain a log", "developing")
    assert (len(story.criteria), [one.done for one in story.tasks]) == (2, [True, False])
    run = story.run
    assert (run.iteration, run.warnings) == (3, ("oversized", "multiple-goals"))
    assert run.deferred == ("later", "title: Retry; severity: low")
    assert (run.result.word, run.blocking, run.halt) == ("blocked", "intent gap", "intent gap")


def test_the_last_run_counts() -> None:
    story = spec("done", "done", "none")
    assert (story.run.blocking, story.run.halt, story.state) == (None, None, "complete")
    story = spec("done", "blocked", "a person signs")
    assert [one.said for one in story.problems if one.disagrees] == ["its last run ended blocked, and it is done"]
    story = spec("blocked", "blocked", "a person signs")
    assert (story.why, story.run.halt) == ("it is blocked: a person signs", None)


def test_words_at_which_it_stops_are_known_word_by_word() -> None:
    assert len(HALTS) == 15
    assert all(halt_in(f"It HALTED: {halt.upper()}.") == halt for halt in HALTS)
    assert [halt_in(said) for said in ("intent gaps", "an intentgap", "no subagentsx", "")] == [None] * 4


# --- beside stories -----------------------------------------------------------------------------------------------


def test_the_sprint_status_is_read() -> None:
    text = """# header
generated: 2026-01-02
story_location: "{project-root}/docs/stories"
development_status:
  epic-1: contexted  # first
  1-1-a: done
  TD-1-1-b: drafted
  1-2-c: on-hold
  epic-1-retrospective: optional
  nfr_load: done
action_items: [{epic: 1, action: a}]
"""
    sprint = read_sprint(text.encode())
    assert [(one.kind, one.id, one.said.word, one.said.line) for one in sprint.entries] == [
        ("epic", None, "in-progress", 5), ("story", "1-1", "done", 6), ("story", "td-1-1", "ready-for-dev", 7),
        ("story", "1-2", None, 8), ("retrospective", None, "optional", 9), ("other", None, "done", 10),
    ]  # fmt: skip
    assert sprint.location == "{project-root}/docs/stories"
    found = sprint.find_entry("1-1-other-name", "1-1")
    assert found is not None
    assert found.key == "1-1-a"
    assert sprint.find_entry("1-1-other-name", "1-1", frozenset({"1-1-a"})) is None, "that is another story's"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("development_status:\n  1-1-a: done\n  1-1-a: review\n", 3, "1-1-a stands here and in line 2"),
        ("development_status:\n  1-1-a:\n", 2, "1-1-a says no status"),
        ("development_status:\n<<<<<<< HEAD\n  1-1-a: done\n", 2, "a merge was left half done"),
        ("development_status: [\n", 2, "this is no YAML"),
        ("- a\n", 1, "it holds no keys"),
        ("epics:\n- {id: A, status: done}\n", 1, "it has no development_status"),
        ("- " * 3000, 1, "nested too deeply"),
    ],
)
def test_what_is_wrong_with_a_sprint_status_is_told(text: str, line: int, said: str) -> None:
    problem = read_sprint(text.encode()).problems[-1]
    assert problem.line == line
    assert said in problem.said


def test_a_mapping_of_mappings_is_a_sprint_status_too() -> None:
    sprint = read_sprint(b"s1: {status: done}\n1-2-a:\n  points: 3\n  status: review\nx: y\n")
    assert [(one.key, one.said.word, one.said.line) for one in sprint.entries] == [
        ("s1", "done", 1),
        ("1-2-a", "review", 4),
    ]


def test_planned_stories_are_read_in_their_order() -> None:
    text = (
        '- id: "2"\n  title: B\n  spec_checkpoint: true\n- id: "12"\n  title: C\n  done_checkpoint: True\n'
        '- id: "2-1"\n  title: D\n- title: E\n'
    )
    planned, problems = read_planned(text.encode())
    assert [(one.id, one.title, one.line, one.spec_checkpoint, one.done_checkpoint) for one in planned] == [
        ("2", "B", 1, True, False), ("12", "C", 4, False, True), ("2-1", "D", 7, False, False),
    ]  # fmt: skip
    assert [(one.line, one.said) for one in problems] == [
        (7, "2-1 begins as 2 in line 1 does"), (9, "a story has an id and a title"),
    ]  # fmt: skip


def test_epics_are_read() -> None:
    text = """# Epics

## Epic List

### Epic 1A: Structure
### ~~Epic 4: Safety~~ — DELETED

## Epic 1A: Structure

### Story 1A.1: Split

Story 1A.9: prose

### Story 1A.2: Join

## Epic 2: Work

### Story 2.1

```md
### Story 2.2: code
```
"""
    found = [(one.id, one.title, one.line, [(s.id, s.title) for s in one.stories]) for one in read_epics(text.encode())]
    assert found == [
        ("1a", "Structure", 5, [("1a-1", "Split"), ("1a-2", "Join")]), ("4", "Safety — DELETED", 6, []),
        ("2", "Work", 16, [("2-1", "2-1")]),
    ]  # fmt: skip


def test_where_things_lie_is_said_in_layers() -> None:
    new = (
        b'[core]\noutput_folder = "{project-root}/out"\n'
        b'[modules.bmm]\nimplementation_artifacts = "{output_folder}/impl"\n'
    )
    old = b"dev_story_location: '{project-root}/docs/old'\nplanning_artifacts: docs/plans\n"
    places = places_of({"_bmad/config.toml": new, "_bmad/bmm/config.yaml": old})
    assert (places.stories, places.plans, places.said_by) == ("out/impl", "docs/plans", "_bmad/config.toml")
    user = b'[modules.bmm]\nimplementation_artifacts = "mine"\n'
    assert places_of({"_bmad/config.toml": new, "_bmad/custom/config.user.toml": user}).stories == "mine"
    assert places_of({"bmad/bmm/config.yaml": old}).stories == "docs/old"
    broken = places_of({"_bmad/config.toml": b"a = " + b"[" * 50_000, "bmad/bmm/config.yaml": b"a: ["})
    assert [name for name, _ in broken.problems] == ["bmad/bmm/config.yaml", "_bmad/config.toml"]
