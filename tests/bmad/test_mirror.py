"""Stories mirrored in a tracker: which writes follow from what is there, and that they follow once."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ashep.bmad.story import Story, read
from ashep.bmad.sync_plan import IssueToCreate, IssueWords, Plan, Prefixes, StoryIssue, TrackedStory, of_epic, plan

NAMES = Prefixes("t")
A, B, C = "docs/stories/1-1-a.md", "docs/stories/1-2-b.md", "docs/stories/2-1-c.md"


@cache
def story_of(path: str, text: str) -> Story:
    return read(path, text.encode())


def filed(
    path: str, status: str = "ready-for-dev", *, review: str = "", title: str = "Login", **more: Any
) -> StoryIssue:
    reviewed = f"## Senior Developer Review (AI)\n\nOutcome: Approve\n\n- [{review}] [High] x\n" if review else ""
    text = f"# {title}\n\nStatus: {status}\n\n## Acceptance Criteria\n\n1. It works\n\n## Tasks\n\n- [ ] do\n\n"
    story = story_of(path, f"{text}{reviewed}")
    return StoryIssue(path, story, of_epic(story.id), **more)


def applied(issues: list[TrackedStory], made: Plan, most: int | None = None) -> list[TrackedStory]:
    """Give the tracker after these writes; `most`: killed after so many."""
    kept = {one.id: one for one in issues}
    for write in (*made.made, *made.changed)[:most]:
        if isinstance(write, IssueToCreate):
            assert write.id not in kept
            assert {*write.waits_for, *([write.parent] if write.parent else [])} <= {*kept}, "what it names is there"
            kept[write.id] = TrackedStory(
                write.id, write.words, "open", write.note, None, write.labels, write.waits_for
            )
            continue
        old = kept[write.id]
        labels = tuple(sorted({*old.labels, *write.add_labels} - {*write.remove_labels}))
        waits = tuple(sorted({*old.waits_for, *write.wait_for} - {*write.wait_no_more}))
        now = replace(old, words=write.words or old.words, labels=labels, waits_for=waits)
        kept[write.id] = replace(now, note=write.note or old.note)
    return list(kept.values())


def mirrored(*stories: StoryIssue, **more: Any) -> list[TrackedStory]:
    return applied([], plan(stories, [], NAMES, **more))


def of(issues: list[TrackedStory], path: str) -> TrackedStory:
    return next(one for one in issues if one.note.get("path") == path)


def says(made: Plan) -> list[str]:
    return [one.says for one in made.told]


def test_a_story_gets_an_issue_below_its_epic_and_behind_the_story_before_it() -> None:
    issues = mirrored(filed(A), filed(B, title="Roles"), filed(C), order=[[A, B]], epics={"1": "Users"})
    first, second, third = of(issues, A), of(issues, B), of(issues, C)
    made = plan([filed(A), filed(B)], [], NAMES, order=[[A, B]], epics={"1": "Users"}).made
    assert [(one.type, one.words.title) for one in made] == [
        ("epic", "Epic 1: Users"), ("task", "1-1: Login"), ("task", "1-2: Login"),
    ]  # fmt: skip
    assert {one.parent for one in made[1:]} == {made[0].id}
    assert (second.words.title, second.waits_for, third.waits_for) == ("1-2: Roles", (first.id,), ())
    assert A in first.words.description
    assert first.words.acceptance == "- It works"
    assert first.labels == (f"story:{A}", "policy:bmad-story")
    assert {key: first.note[key] for key in ("key", "id", "path")} == {"key": "1-1-a", "id": "1-1", "path": A}


@pytest.mark.parametrize(("status", "review", "phase"), [
    ("ready-for-dev", "", ""), ("in-progress", "", ""), ("in-progress", " ", ""), ("review", "", "phase:reviewer"),
    ("review", " ", "phase:reviewer"), ("done", "x", "phase:arbiter"), ("done", "", "phase:arbiter"),
    ("ready-for-dev", " ", None), ("done", " ", None), ("approved", "", None), ("blocked", "", None),
])  # fmt: skip
def test_where_an_issue_begins_follows_from_the_state_of_its_file(status: str, review: str, phase: str | None) -> None:
    story = filed(A, status, review=review)
    made = plan([story], [], NAMES)
    if phase is None:
        assert (made.made, [(one.says, one.refuses) for one in made.told]) == ((), [(story.story.why, True)])
        return
    assert [one.labels[2:] for one in made.made if one.type == "task"] == [(phase,) if phase else ()]
    moved = plan([story], mirrored(filed(A, "ready-for-dev")), NAMES).changed
    assert [one.add_labels for one in moved] == ([(phase,)] if phase else []), "and so does one that nobody began"


@pytest.mark.parametrize(("checks", "policy", "phase"), [
    ({"spec_checkpoint": True}, "policy:bmad-story-spec", ()),
    ({"done_checkpoint": True}, "policy:bmad-story-done", ("phase:developer",)),
    ({"spec_checkpoint": True, "done_checkpoint": True}, "policy:bmad-story-done", ()),
    ({"spec_checkpoint": True, "status": "in-progress"}, "policy:bmad-story-spec", ("phase:developer",)),
])  # fmt: skip
def test_a_checkpoint_is_a_policy_with_a_persons_phase(
    checks: dict[str, Any], policy: str, phase: tuple[str, ...]
) -> None:
    assert of(mirrored(filed(A, **checks)), A).labels[1:] == (policy, *phase)
    changed = plan([filed(A, **checks)], mirrored(filed(A)), NAMES).changed[0]
    assert (changed.add_labels, changed.remove_labels) == ((policy, *phase), ("policy:bmad-story",))
    lacking = plan([filed(A, **checks)], [], replace(NAMES, policies={"bmad-story"}))
    assert lacking.made == ()
    assert lacking.told[0].says.startswith(f"there is no policy {policy.removeprefix('policy:')} ")


def test_what_was_finished_before_gets_an_issue_only_if_it_is_asked_for() -> None:
    done = filed(A, "done", finished=True)
    assert (plan([done], [], NAMES).made, plan([done], [], NAMES).finished) == ((), (A,))
    assert [one.labels[2] for one in plan([done], [], NAMES, asked=[A]).made if one.labels] == ["phase:arbiter"]


def test_a_person_closes_an_issue_and_that_is_told_and_stays() -> None:
    closed = [replace(one, status="closed") for one in mirrored(filed(A))]
    made = plan([filed(A, "in-progress", title="Other")], closed, NAMES)
    assert (made.made, made.changed) == ((), ())
    assert says(made)[0].startswith("it says in-progress, and t-")
    assert made.closed == {made.issues[A]}
    assert plan([filed(A, "done")], closed, NAMES).told == ()


def test_a_change_of_the_file_follows_and_one_that_a_person_made_stays() -> None:
    issues = mirrored(filed(A))
    anew = plan([filed(A, title="Sign in")], issues, NAMES)
    assert [one.words.title for one in anew.changed if one.words] == ["1-1: Sign in"]
    theirs = IssueWords("1-1: Log in!", issues[-1].words.description, "")
    edited = [replace(one, words=theirs) if one.note.get("path") else one for one in issues]
    assert plan([filed(A)], edited, NAMES) == plan([filed(A)], issues, NAMES), "only theirs changed"
    both = plan([filed(A, title="Sign in")], edited, NAMES)
    assert both.changed == ()
    assert says(both)[0].startswith("its title or criteria changed, and so did t-")


def test_labels_and_edges_that_a_person_changed_stay() -> None:
    stories = [filed(A), filed(B)]
    issues = mirrored(*stories, order=[[A, B]])
    ours = of(issues, B)
    freed = [
        replace(one, waits_for=(), labels=(*one.labels, "phase:arbiter")) if one is ours else one for one in issues
    ]
    assert plan(stories, freed, NAMES, order=[[A, B]]).changed == ()
    led = plan([filed(A), filed(B, "review")], freed, NAMES, order=[[A, B]])
    assert led.changed == ()
    assert says(led) == [f"{ours.id} would get phase:reviewer, and a person changed that"]
    begun = [replace(one, begun=True, labels=ours.labels) if one is ours else one for one in issues]
    assert plan([filed(A), filed(B, "review")], begun, NAMES, order=[[A, B]]) == plan(
        stories, issues, NAMES, order=[[A, B]]
    ), "where ashep has been it knows itself where it is"


def test_a_new_order_of_work_replaces_the_edges_that_were_made_for_the_old_one() -> None:
    stories = [filed(A), filed(B)]
    issues = mirrored(*stories, order=[[A, B]])
    turned = plan(stories, issues, NAMES, order=[[B, A]])
    first, second = of(issues, A).id, of(issues, B).id
    assert [(one.id, one.wait_for, one.wait_no_more) for one in turned.changed] == [
        (second, (), (first,)), (first, (second,), ()),
    ]  # fmt: skip


@pytest.mark.parametrize("now", ["docs/stories/1-1-sign-in.md", "docs/old/1-1-a.md"])
def test_a_renamed_file_keeps_its_issue_and_the_label_follows(now: str) -> None:
    issues = mirrored(filed(A), filed(C))
    made = plan([filed(now), filed(C)], issues, NAMES)
    assert made.made == ()
    assert [(one.id, one.add_labels, one.remove_labels) for one in made.changed] == [
        (of(issues, A).id, (f"story:{now}",), (f"story:{A}",))
    ]
    assert says(made) == [f"it was {A}: {of(issues, A).id} follows"]


def test_a_removed_file_is_told_and_its_issue_left() -> None:
    issues = mirrored(filed(A), filed(C))
    made = plan([filed(C)], issues, NAMES)
    assert (made.made, made.changed) == ((), ())
    assert [(one.path, one.says) for one in made.told] == [
        (A, f"there is no such story any more; its issue {of(issues, A).id} stays as it is")
    ]
    assert plan([filed(C)], issues, NAMES, there=[A]).told == (), "it is there, and cannot be read"


def test_what_git_has_not_got_is_refused_and_what_it_has_otherwise_is_told() -> None:
    new = plan([filed(A, git="new")], [], NAMES)
    assert (new.made, new.told[0].refuses) == ((), True)
    assert f"git add -f {A}" in new.told[0].says
    changed = plan([filed(A, git="changed")], [], NAMES)
    assert ([one.type for one in changed.made], changed.told[0].refuses) == (["epic", "task"], False)
    at_work = [replace(one, status="in_progress") for one in mirrored(filed(A))]
    assert "while" in says(plan([filed(A, git="changed")], at_work, NAMES))[0]


def test_two_files_of_one_story_get_no_issue() -> None:
    made = plan([filed(A), filed("docs/stories/1-1-again.md")], [], NAMES)
    assert made.made == ()
    assert [one.refuses for one in made.told] == [True, True]


def test_of_an_epic_only_those_that_are_asked_for_are_written() -> None:
    made = plan([filed(A), filed(B), filed(C, "approved")], [], NAMES, order=[[A, B]], only=[B])
    assert [(one.words.title, one.waits_for) for one in made.made] == [("Epic 1", ()), ("1-2: Login", ())]
    assert made.told == ()
    issues = applied([], made)
    later = plan([filed(A), filed(B)], issues, NAMES, order=[[A, B]])
    assert [one.wait_for for one in later.changed] == [(later.issues[A],)], "the edge comes with the other's issue"


STATES = st.sampled_from(["ready-for-dev", "in-progress", "review", "done", "approved"])
PATHS = (A, B, C, "docs/stories/1-1-x.md", "specs/s/stories/1-a.md", "specs/r/stories/1-a.md", "story.md")
TITLES = st.sampled_from(["Login", "Rôles\u202e  and\trights"])


@st.composite
def worlds(draw: st.DrawFn) -> tuple[list[StoryIssue], Mapping[str, Any]]:
    stories = [
        filed(path, draw(STATES), title=draw(TITLES), git=draw(st.sampled_from([None, None, "new", "changed"])),
              done_checkpoint=draw(st.booleans()), spec_checkpoint=draw(st.booleans()))
        for path in draw(st.lists(st.sampled_from(PATHS), unique=True))
    ]  # fmt: skip
    ordered = draw(st.permutations([one.path for one in stories]))
    return stories, {"order": [ordered[: draw(st.integers(0, 4))]], "epics": {"1": "Users"}}


@given(worlds(), worlds(), st.integers(0, 12), st.data())
def test_writing_twice_is_writing_once_and_being_killed_doubles_nothing(
    before: tuple[list[StoryIssue], Mapping[str, Any]], after: tuple[list[StoryIssue], Mapping[str, Any]], most: int,
    data: st.DataObject,
) -> None:  # fmt: skip
    issues = applied([], plan(before[0], [], NAMES, **before[1]), most)
    how = st.sampled_from(["open", "open", "in_progress", "closed"])
    issues = [replace(one, status=data.draw(how)) if one.note.get("path") else one for one in issues]
    stories, more = after
    cut = applied(issues, plan(stories, issues, NAMES, **more), most)
    done = applied(cut, plan(stories, cut, NAMES, **more))
    again = plan(stories, done, NAMES, **more)
    assert (again.made, again.changed) == ((), ())
    paths = [one.note["path"] for one in done if "path" in one.note]
    assert len(paths) == len({*paths}), "one issue a story"
    epics = [one.note["epic"] for one in done if "epic" in one.note]
    assert len(epics) == len({*epics})


def test_a_story_whose_path_no_label_can_hold_is_told_and_gets_no_issue() -> None:
    made = plan([filed("docs/stories/1-3-a,b.md", can_be_named=False)], [], NAMES)
    assert not made.made
    assert [(one.refuses, "rename it" in one.says) for one in made.told] == [(True, True)]
