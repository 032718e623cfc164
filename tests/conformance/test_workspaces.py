"""What work trees of issues keep: the contract of `ashep.ports.workspaces.Workspaces`, in memory and in real git."""

from datetime import timedelta
from pathlib import Path

import pytest

from ashep.core.facts.delivery import Amendment, StoryLeft
from ashep.core.state.branches import branch_of
from ashep.errors import AshepError
from ashep.ports.workspaces import Amended, Landed, Removed
from tests.conformance.workspaces import GitWorkspacesWorld, MemoryWorkspacesWorld, PlacesWorld, WorkspacesWorld
from tests.places import has_bubblewrap

pytestmark = pytest.mark.usefixtures("git_alone")

ONE, TWO = branch_of("t-1"), branch_of("t-2")


@pytest.fixture(
    params=["memory", "git", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("places", "sandbox"))]
)
def world(request: pytest.FixtureRequest, folder: Path) -> WorkspacesWorld:
    """A repository of each kind, with one commit of one file."""
    match request.param:
        case "memory":
            return MemoryWorkspacesWorld()
        case "git":
            return GitWorkspacesWorld(folder.parent)
        case "places":
            return PlacesWorld(folder.parent, sandbox=False)
        case _:
            if not has_bubblewrap():
                pytest.skip("bubblewrap is not there, or may not make namespaces")
            return PlacesWorld(folder.parent)


@pytest.mark.promise("I1")
async def test_a_tree_begins_at_the_base_and_keeps_it(world: WorkspacesWorld) -> None:
    first = world.base()
    one = await world.spaces.prepare(ONE, None, 0)
    assert (one.base, one.head) == (first, first)
    assert world.read(ONE) == {"a.txt": "a\n"}
    second = world.person_commits("b.txt", "b\n")
    assert await world.spaces.prepare(ONE, second, 1) == one, "a branch that exists keeps its base"
    assert (await world.spaces.prepare(TWO, None, 1)).base == second
    assert (await world.spaces.prepare("ashep/epic", first, 2)).base == first
    assert world.read("ashep/epic") == {"a.txt": "a\n"}
    with pytest.raises(AshepError, match="no commit"):
        await world.spaces.prepare("ashep/none", "f" * 40, 0)


async def test_what_is_uncommitted_is_sealed_once(world: WorkspacesWorld) -> None:
    base = (await world.spaces.prepare(ONE, None, 0)).base
    unchanged = await world.spaces.seal(ONE, "t-1/plan.1.1", "Nothing")
    assert (unchanged.head, unchanged.commits, unchanged.told) == (base, (), ())
    world.edit(ONE, "a.txt", "other\n")
    world.edit(ONE, "new/b.txt", "b\n")
    sealed = await world.spaces.seal(ONE, "t-1/implement.1.1", "Write b\n\nand a")
    assert [commit.subject for commit in sealed.commits] == ["Write b"]
    assert sealed.head == sealed.commits[-1].sha != base
    assert sealed.tree != unchanged.tree
    assert await world.spaces.seal(ONE, "t-1/implement.1.1", "Write b") == sealed
    world.edit(ONE, "a.txt", None)
    again = await world.spaces.seal(ONE, "t-1/implement.1.2", "Delete a")
    assert [commit.subject for commit in again.commits] == ["Write b", "Delete a"]
    assert (again.commits[0], again.told) == (sealed.commits[0], ())
    assert (await world.spaces.prepare(ONE, None, 0)).head == again.head
    world.edit(ONE, "a.txt", "other\n")
    assert (await world.spaces.seal(ONE, "t-1/implement.1.3", "Back")).tree == sealed.tree


async def test_changes_are_exactly_those_of_the_branch(world: WorkspacesWorld) -> None:
    base = (await world.spaces.prepare(ONE, None, 0)).base
    await world.spaces.prepare(TWO, None, 1)
    assert (await world.spaces.changes(ONE, base)).commits == ()
    world.person_commits("person.txt", "p\n")
    world.edit(TWO, "other.txt", "o\n")
    world.edit(ONE, "mine.txt", "m\n")
    await world.spaces.seal(TWO, "t-2/implement.1.1", "Other")
    first = await world.spaces.seal(ONE, "t-1/implement.1.1", "Mine")
    world.edit(ONE, "more.txt", "m\n")
    await world.spaces.seal(ONE, "t-1/implement.1.2", "More")
    changes = await world.spaces.changes(ONE, base)
    assert [commit.subject for commit in changes.commits] == ["Mine", "More"]
    for text in (changes.stat, changes.diff):
        assert [name in text for name in ("mine.txt", "more.txt", "other.txt", "person.txt")] == [
            True, True, False, False,
        ]  # fmt: skip
    assert [commit.subject for commit in (await world.spaces.changes(ONE, first.head)).commits] == ["More"]


async def test_a_branch_is_set_back_and_what_it_had_is_saved(world: WorkspacesWorld) -> None:
    base = (await world.spaces.prepare(ONE, None, 0)).base
    world.edit(ONE, "b.txt", "b\n")
    first = await world.spaces.seal(ONE, "t-1/implement.1.1", "First")
    world.edit(ONE, "b.txt", "c\n")
    second = await world.spaces.seal(ONE, "t-1/implement.1.2", "Second")
    world.edit(ONE, "c.txt", "loose\n")
    world.edit(ONE, "c.txt", None)
    assert await world.spaces.restore(ONE, second.head) == (), "nothing is taken away"
    world.edit(ONE, "c.txt", "loose\n")
    saved = await world.spaces.restore(ONE, first.head)
    assert all(ref.startswith(f"refs/ashep/saved/{ONE}/") for ref in saved)
    assert len(saved) >= 1
    assert world.read(ONE) == {"a.txt": "a\n", "b.txt": "b\n"}
    again = await world.spaces.seal(ONE, "t-1/implement.2.1", "Nothing")
    assert (again.head, again.commits, again.told) == (first.head, first.commits, ())
    assert await world.spaces.restore(ONE, first.head) == ()
    await world.spaces.restore(ONE, base)
    assert world.read(ONE) == {"a.txt": "a\n"}
    with pytest.raises(AshepError, match="no commit"):
        await world.spaces.restore(ONE, "f" * 40)
    assert (await world.spaces.restore(ONE, second.head), world.read(ONE)["b.txt"]) == ((), "c\n")


async def test_a_tree_is_taken_away_and_stands_again(world: WorkspacesWorld) -> None:
    base = (await world.spaces.prepare(ONE, None, 0)).base
    world.edit(ONE, "b.txt", "b\n")
    sealed = await world.spaces.seal(ONE, "t-1/implement.1.1", "First")
    world.person_commits("person.txt", "p\n")
    (standing,) = await world.spaces.list()
    assert (standing.branch, standing.base, standing.head) == (ONE, base, sealed.head)
    assert (standing.dirty, standing.merged) == (False, False)
    assert standing.size > 0
    removed = await world.spaces.remove(ONE)
    assert (removed.saved, removed.freed > 0) == ((), True)
    assert await world.spaces.list() == ()
    assert (await world.spaces.remove(ONE)).freed == 0, "it was done"
    again = await world.spaces.prepare(ONE, None, 0)
    assert (again.base, again.head) == (base, sealed.head), "the branch stayed"
    assert world.read(ONE) == {"a.txt": "a\n", "b.txt": "b\n"}
    world.edit(ONE, "c.txt", "loose\n")
    (standing,) = await world.spaces.list()
    assert standing.dirty
    removed = await world.spaces.remove(ONE, forget=True)
    assert len(removed.saved) == 2
    assert all(ref.startswith(f"refs/ashep/saved/{ONE}/") for ref in removed.saved)
    assert (await world.spaces.prepare(ONE, None, 0)).base == world.base(), "it was forgotten, and begins anew"
    assert (await world.spaces.remove("ashep/unknown", forget=True)).saved == ()


@pytest.mark.promise("I7")
async def test_what_a_branch_holds_is_laid_out_for_who_reads_and_is_no_tree(world: WorkspacesWorld) -> None:
    laid = await world.spaces.prepare(ONE, None, 0, "sealed")
    assert (laid.base, laid.head) == (world.base(), world.base()), "the branch begins as any other"
    tree = await world.spaces.prepare(ONE, None, 0)
    assert (tree.base, tree.head) == (laid.base, laid.head)
    world.edit(ONE, "b.txt", "b\n")
    assert (await world.spaces.prepare(ONE, None, 0, "sealed")).head == laid.head, "nothing is sealed by that"
    head = (await world.spaces.seal(ONE, "t-1/implement.1.1", "First")).head
    again = await world.spaces.prepare(ONE, None, 0, "sealed")
    assert (again.head, again.base) == (head, laid.base)
    assert [one.branch for one in await world.spaces.list()] == [ONE]
    await world.spaces.remove(ONE)
    assert (await world.spaces.prepare(ONE, None, 0)).head == head


async def test_a_tree_is_made_anew_for_who_judges_in_it(world: WorkspacesWorld) -> None:
    await world.spaces.prepare(ONE, None, 0, "fresh")
    world.edit(ONE, "b.txt", "b\n")
    head = (await world.spaces.seal(ONE, "t-1/implement.1.1", "First")).head
    assert (await world.spaces.prepare(ONE, None, 0, "fresh")).head == head
    assert world.read(ONE) == {"a.txt": "a\n", "b.txt": "b\n"}


async def test_a_branch_that_the_base_holds_is_merged(world: WorkspacesWorld) -> None:
    await world.spaces.prepare(ONE, None, 0)
    await world.spaces.prepare(TWO, None, 0)
    world.edit(TWO, "b.txt", "b\n")
    await world.spaces.seal(TWO, "t-2/implement.1.1", "First")
    assert {one.branch: one.merged for one in await world.spaces.list()} == {ONE: True, TWO: False}


@pytest.mark.promise("I4")
async def test_a_branch_whose_work_the_base_has_otherwise_has_landed(world: WorkspacesWorld) -> None:
    for branch, path in ((ONE, "b.txt"), (TWO, "c.txt")):
        await world.spaces.prepare(branch, None, 0)
        world.edit(branch, path, "work\n")
    await world.spaces.seal(ONE, "t-1/implement.1.1", "First")
    head = (await world.spaces.seal(TWO, "t-2/implement.1.1", "Second")).head
    before = world.base()
    world.person_commits("b.txt", "work\n")
    squashed = world.person_commits("c.txt", "work\n")
    world.person_commits("c.txt", "other\n")

    async def landed(recorded: dict[str, str]) -> dict[str, tuple[bool, bool]]:
        return {one.branch: (one.merged, one.landed) for one in await world.spaces.list(recorded)}

    assert await landed({}) == {ONE: (False, True), TWO: (False, False)}
    assert await landed({head: squashed}) == {ONE: (False, True), TWO: (False, True)}, "it was seen to land"
    assert await landed({before: squashed, head: head}) == {ONE: (False, True), TWO: (False, False)}, "not on the base"
    assert await landed({head: "f" * 40}) == {ONE: (False, True), TWO: (False, False)}, "the base was set back"
    world.edit(TWO, "c.txt", "more\n")
    await world.spaces.seal(TWO, "t-2/implement.1.2", "More")
    assert (await landed({head: squashed}))[TWO] == (False, False), "a commit has come since"


async def test_without_a_tree_nothing_can_be_sealed(world: WorkspacesWorld) -> None:
    for call in (world.spaces.seal(ONE, "t-1/x.1.1", "No"), world.spaces.restore(ONE, world.base())):
        with pytest.raises(AshepError):
            await call


async def test_a_tree_that_its_agent_removed_leaves_its_branch_and_is_made_again(world: WorkspacesWorld) -> None:
    await world.spaces.prepare(ONE, None, 0)
    world.edit(ONE, "b.txt", "b\n")
    sealed = await world.spaces.seal(ONE, "t-1/implement.1.1", "First")
    world.edit(ONE, "c.txt", "lost\n")
    world.lose(ONE)
    gone = await world.spaces.seal(ONE, "t-1/implement.1.2", "Second")
    assert (gone.head, gone.tree, gone.commits) == (sealed.head, sealed.tree, sealed.commits)
    assert (len(gone.lacking), gone.told) == (1, gone.lacking)
    assert (await world.spaces.prepare(ONE, None, 0)).head == sealed.head
    assert world.read(ONE) == {"a.txt": "a\n", "b.txt": "b\n"}


NOW = timedelta()


async def test_a_branch_that_the_base_holds_goes_with_its_tree(world: WorkspacesWorld) -> None:
    await world.spaces.prepare(ONE, None, 0)
    assert await world.spaces.retire(Landed(TWO, "f" * 40), NOW) == Removed(), "there is none"
    gone = await world.spaces.retire(Landed(ONE, world.base(), "main", world.base()), NOW)
    assert gone.saved == ()
    assert await world.spaces.list() == ()
    assert await world.spaces.retire(Landed(ONE, world.base()), NOW) == Removed(), "again changes nothing"
    moved = world.person_commits("b.txt", "b\n")
    assert (await world.spaces.prepare(ONE, None, 0)).base == moved, "it begins anew"


async def test_what_landed_squashed_goes_only_where_it_is_just_what_was_sealed(world: WorkspacesWorld) -> None:
    await world.spaces.prepare(ONE, None, 0)
    world.edit(ONE, "b.txt", "b\n")
    head = (await world.spaces.seal(ONE, "t-1/implement.1.1", "Write b")).head
    with pytest.raises(AshepError, match="does not hold"):
        await world.spaces.retire(Landed(ONE, head, "main"), NOW)
    commit = world.person_commits("b.txt", "b\n")
    world.edit(ONE, "c.txt", "a person's\n")
    with pytest.raises(AshepError, match="not committed"):
        await world.spaces.retire(Landed(ONE, head, "main", commit), NOW)
    await world.spaces.seal(ONE, "t-1/implement.1.2", "Write c")
    with pytest.raises(AshepError, match="does not hold"):
        await world.spaces.retire(Landed(ONE, head, "main", commit), NOW)
    await world.spaces.restore(ONE, head)
    world.person_commits("b.txt", "b, and more\n")
    await world.spaces.retire(Landed(ONE, head, "main", commit), NOW)
    assert await world.spaces.list() == ()


# --- what ashep itself does to what a run left ---

STORY, SPRINT = "docs/stories/1-2-lists.md", "docs/stories/sprint-status.yaml"
TEXT = """# Story 1.2: Lists

Status: ready-for-dev

## Acceptance Criteria

1. they add up

## Tasks / Subtasks

- [ ] Task 1
"""
LISTED = """# kept by hand
development_status:
  epic-1: backlog  # begun by its first story
  1-2-lists: ready-for-dev
  1-3-more: backlog
"""


async def planned(world: WorkspacesWorld) -> str:
    """A base that has a story and its sprint status, and a tree; gives its commit."""
    await world.spaces.prepare(TWO, None, 0)
    for path, text in ((STORY, TEXT), (SPRINT, LISTED)):
        world.edit(TWO, path, text)
    head = (await world.spaces.seal(TWO, "t-2/plan.1.1", "Plan")).head
    return (await world.spaces.prepare(ONE, head, 0)).head


@pytest.fixture(params=["memory", "git"])
def plain(request: pytest.FixtureRequest, folder: Path) -> MemoryWorkspacesWorld | GitWorkspacesWorld:
    """Of the two kinds that differ here: a place differs in how a branch is set to a commit."""
    return MemoryWorkspacesWorld() if request.param == "memory" else GitWorkspacesWorld(folder.parent)


async def test_what_a_run_may_not_change_is_put_back_and_saved(world: WorkspacesWorld) -> None:
    since = await planned(world)
    for path, text in (("a.txt", "mine\n"), ("new.txt", "new\n"), (STORY, TEXT.replace("[ ]", "[x]"))):
        world.edit(ONE, path, text)
    left = await world.spaces.seal(ONE, "t-1/review.1.1", "Review")
    wanted = Amendment(since, since, may=("{story}",), story=STORY)
    amended = await world.spaces.amend(ONE, "t-1/review.1.1", left.head, wanted)
    assert amended.refused == ("it changed what it may not, which was put back: a.txt, new.txt",)
    assert amended.story == StoryLeft("ready-for-dev", "idle")
    assert world.read(ONE) == {"a.txt": "a\n", STORY: TEXT.replace("[ ]", "[x]"), SPRINT: LISTED}
    again = await world.spaces.seal(ONE, "t-1/review.1.1", "Review")
    assert (again.head, again.told, len(again.commits)) == (amended.head, (), 1)
    assert left.head not in {commit.sha for commit in again.commits}
    assert await world.spaces.amend(ONE, "t-1/review.1.1", again.head, wanted) == Amended(again.head, (), amended.story)


async def test_the_status_is_what_the_verdict_says_and_the_sprint_status_is_ours(world: WorkspacesWorld) -> None:
    since = await planned(world)
    lies = TEXT.replace("ready-for-dev", "done")
    for path, text in ((STORY, lies), (SPRINT, LISTED.replace("1-3-more: backlog", "1-3-more: done"))):
        world.edit(ONE, path, text)
    left = await world.spaces.seal(ONE, "t-1/developer.1.1", "Work")
    reviewed = await world.spaces.amend(
        ONE, "t-1/developer.1.1", left.head, Amendment(since, since, story=STORY, status="review")
    )
    assert reviewed.refused == (f"ashep alone writes {SPRINT}; not taken is 1-3-more: done",)
    assert reviewed.story == StoryLeft("review", "ready-for-review")
    assert world.read(ONE) == {"a.txt": "a\n", STORY: TEXT.replace("ready-for-dev", "review"), SPRINT: LISTED}
    back = Amendment(reviewed.head, since, story=STORY, status="in-progress", remains="- mend `x`\n- and y")
    fixing = await world.spaces.amend(ONE, "t-1/arbiter.1.1", reviewed.head, back)
    assert fixing.story == StoryLeft("in-progress", "fixing")
    assert world.read(ONE)[STORY].endswith(
        "\n## Review Follow-ups (AI) - t-1/arbiter.1.1\n\n- [ ] mend `x`\n- [ ] and y\n"
    )
    assert await world.spaces.amend(ONE, "t-1/arbiter.1.1", fixing.head, back) == fixing
    world.edit(ONE, STORY, world.read(ONE)[STORY].replace("- [ ] mend", "- [x] mend"))
    left = await world.spaces.seal(ONE, "t-1/developer.2.1", "Mend")
    done = await world.spaces.amend(
        ONE, "t-1/arbiter.2.1", left.head, Amendment(left.head, since, story=STORY, status="done")
    )
    assert done.story == StoryLeft("done", "complete", put_off=("and y",))
    assert world.read(ONE)[SPRINT] == LISTED.replace("epic-1: backlog", "epic-1: in-progress").replace(
        "1-2-lists: ready-for-dev", "1-2-lists: done"
    )
    assert (await world.spaces.seal(ONE, "t-1/arbiter.2.1", "Nothing")).head == done.head


async def test_what_a_story_is_to_fulfil_is_not_for_its_agents_to_say(
    plain: MemoryWorkspacesWorld | GitWorkspacesWorld,
) -> None:
    since = await planned(plain)
    easier = TEXT.replace("they add up", "some of them add up").replace("[ ]", "[x]")
    plain.edit(ONE, STORY, easier)
    head = (await plain.spaces.seal(ONE, "t-1/developer.1.1", "Work")).head
    wanted = Amendment(since, since, story=STORY, status="review")
    amended = await plain.spaces.amend(ONE, "t-1/developer.1.1", head, wanted)
    said = f"what {STORY} is to fulfil is not for it to say: its acceptance criteria were put back"
    assert (amended.refused, amended.story) == ((said,), StoryLeft("review", "ready-for-review"))
    assert plain.read(ONE)[STORY] == TEXT.replace("[ ]", "[x]").replace("ready-for-dev", "review")
    plain.edit(ONE, STORY, easier)
    head = (await plain.spaces.seal(ONE, "t-1/developer.1.2", "Again")).head
    theirs = Amendment(amended.head, since, story=STORY, status="review", person=True)
    taken = await plain.spaces.amend(ONE, "t-1/developer.1.2", head, theirs)
    later = Amendment(taken.head, since, story=STORY, status="review")
    assert taken == await plain.spaces.amend(ONE, "t-1/reviewer.1.1", taken.head, later), "a person's words stay"
    assert taken.refused == ()
    assert "some of them" in plain.read(ONE)[STORY]


async def test_a_story_that_is_gone_or_says_no_status_is_told(
    plain: MemoryWorkspacesWorld | GitWorkspacesWorld,
) -> None:
    since = await planned(plain)
    plain.edit(ONE, STORY, TEXT.replace("Status: ready-for-dev", ""))
    head = (await plain.spaces.seal(ONE, "t-1/developer.1.1", "Work")).head
    wanted = Amendment(since, since, story=STORY, status="done")
    amended = await plain.spaces.amend(ONE, "t-1/arbiter.1.1", head, wanted)
    assert amended.head == head
    assert amended.story is not None
    assert "says no status" in amended.story.lacking
    plain.edit(ONE, STORY, None)
    head = (await plain.spaces.seal(ONE, "t-1/developer.1.2", "Work")).head
    gone = await plain.spaces.amend(ONE, "t-1/arbiter.1.1", head, wanted)
    assert (gone.head, gone.story) == (head, StoryLeft(lacking=f"{STORY} is not there any more"))


async def test_what_others_landed_meanwhile_is_not_put_back(plain: MemoryWorkspacesWorld | GitWorkspacesWorld) -> None:
    since = await planned(plain)
    theirs, asked = LISTED.replace("1-3-more: backlog", "1-3-more: done"), TEXT.replace("they add up", "all add up")
    if isinstance(plain, MemoryWorkspacesWorld):
        plain.spaces.base = since
        plain.person_commits(SPRINT, theirs)
        plain.person_commits(STORY, asked)
        head = plain.spaces.take_in(ONE)
    else:
        plain.git("merge", "-q", "--ff-only", since)
        plain.person_commits(SPRINT, theirs)
        plain.person_commits(STORY, asked)
        await plain.spaces.prepare(ONE, None, 0)
        plain.git("-c", "user.name=a", "-c", "user.email=a@b", "merge", "-q", "--no-ff", "main", at=ONE)
        plain.edit(ONE, SPRINT, theirs.replace("1-2-lists: ready-for-dev", "1-2-lists: review"))
        head = (await plain.spaces.seal(ONE, "t-1/developer.1.1", "Merge")).head
    wanted = Amendment(since, since, "main", story=STORY, status="done")
    amended = await plain.spaces.amend(ONE, "t-1/arbiter.1.1", head, wanted)
    assert amended.story == StoryLeft("done", "complete")
    assert "1. all add up\n" in plain.read(ONE)[STORY]
    assert "  1-3-more: done\n" in plain.read(ONE)[SPRINT]
    assert "  1-2-lists: done\n" in plain.read(ONE)[SPRINT]


async def test_a_folder_or_a_link_in_place_of_a_file_steers_nothing(
    plain: MemoryWorkspacesWorld | GitWorkspacesWorld,
) -> None:
    since = await planned(plain)
    plain.edit(ONE, SPRINT, None)
    plain.edit(ONE, f"{SPRINT}/x", "x")
    plain.edit(ONE, "docs/stories/big.md", "x")
    head = (await plain.spaces.seal(ONE, "t-1/developer.1.1", "Work")).head
    amended = await plain.spaces.amend(
        ONE, "t-1/developer.1.1", head, Amendment(since, since, story=STORY, status="review")
    )
    assert amended.story == StoryLeft("review", "ready-for-review")
    if not isinstance(plain, MemoryWorkspacesWorld):
        assert plain.read(ONE)[SPRINT] == LISTED
