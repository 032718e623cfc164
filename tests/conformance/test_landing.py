"""What every landing keeps: the contract of `ashep.ports.landing.Landing`, over memory and the real git."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ashep.errors import AshepError
from ashep.ports.landing import Advanced, AlreadyLanded, Candidate, Conflict, Integrated, Method
from tests.conformance.landings import GitLandingWorld, LandingWorld, MemoryLandingWorld, refusal

pytestmark = pytest.mark.usefixtures("git_alone")

METHODS: list[Method] = ["merge", "squash", "rebase"]
LINES = "".join(f"line {number}\n" for number in range(20))


@pytest.fixture(params=["memory", pytest.param("git", marks=pytest.mark.real)])
def world(request: pytest.FixtureRequest, folder: Path) -> LandingWorld:
    """A repository of each kind, with one commit on main."""
    return MemoryLandingWorld() if request.param == "memory" else GitLandingWorld(folder.parent / "top")


def candidate(head: str, branch: str = "ashep/t-1", **changes: Any) -> Candidate:
    return replace(Candidate("t-1", branch, head, "main", "Do it (t-1)"), **changes)


@pytest.mark.promise("Z1")
@pytest.mark.parametrize("method", METHODS)
async def test_work_lands_on_a_base_that_went_on(world: LandingWorld, method: Method) -> None:
    world.work("ashep/t-1", {"a": "1\n"})
    head = world.work("ashep/t-1", {"a": "2\n", "README": None})
    person = world.commit({"b": "theirs\n"})
    assert not await world.landing.landed(head, "main")
    made = await world.landing.integrate(candidate(head, method=method))
    assert isinstance(made, Integrated)
    assert made.base == person == await world.landing.tip("main"), "nothing has moved"
    assert world.files(made.commit) == {"a": "2\n", "b": "theirs\n"}
    assert await world.landing.integrate(candidate(head, method=method)) == made, "it is the same commit each time"
    assert await world.landing.advance("main", made.base, made.commit) == Advanced(made.commit)
    assert await world.landing.tip("main") == made.commit
    assert await world.landing.landed(head, "main")
    assert await world.landing.integrate(candidate(head, method=method)) == AlreadyLanded(made.commit)
    assert await world.landing.advance("main", made.base, made.commit) == Advanced(made.commit), "again, and harmless"
    later = world.commit({"a": "a person's\n"})
    assert await world.landing.advance("main", made.base, made.commit) == Advanced(later)
    assert await world.landing.landed(head, "main")


@pytest.mark.parametrize("method", METHODS)
async def test_what_was_reverted_has_landed_all_the_same(world: LandingWorld, method: Method) -> None:
    head = world.work("ashep/t-1", {"a": "1\n"})
    world.commit({"b": "1\n"})
    made = await world.landing.integrate(candidate(head, method=method))
    assert isinstance(made, Integrated)
    assert isinstance(await world.landing.advance("main", made.base, made.commit), Advanced)
    reverted = world.commit({"a": None})
    assert await world.landing.landed(head, "main")
    assert await world.landing.integrate(candidate(head, method=method)) == AlreadyLanded(reverted)


async def test_what_the_base_has_already_is_landed(world: LandingWorld) -> None:
    head = world.work("ashep/t-1", {"a": "1\n"})
    same = world.commit({"a": "1\n", "b": "1\n"})
    assert await world.landing.landed(head, "main")
    assert await world.landing.integrate(candidate(head)) == AlreadyLanded(same)


@pytest.mark.parametrize("method", METHODS)
async def test_a_conflict_names_files_and_shows_hunks(world: LandingWorld, method: Method) -> None:
    world.commit({"text": LINES, "other": "1\n"})
    head = world.work("ashep/t-1", {"text": LINES.replace("line 9\n", "ours\n"), "other": "2\n"})
    base = world.commit({"text": LINES.replace("line 9\n", "theirs\n")})
    found = await world.landing.integrate(candidate(head, method=method))
    assert isinstance(found, Conflict)
    assert (found.base, found.paths) == (base, ("text",))
    assert all(word in found.text for word in ("ashep/t-1", "main", "text", "ours", "theirs"))
    assert await world.landing.tip("main") == base
    assert not await world.landing.landed(head, "main")
    solved = world.work("ashep/t-1", {"text": LINES.replace("line 9\n", "both\n")}, merge=True)
    made = await world.landing.integrate(candidate(solved, method=method))
    assert isinstance(made, Integrated), "a branch that has merged the base to resolve a conflict can land"
    assert world.files(made.commit)["text"] == LINES.replace("line 9\n", "both\n")


@pytest.mark.promise("Z1")
@pytest.mark.parametrize("method", METHODS)
async def test_keys_of_a_file_that_is_merged_by_key_are_no_conflict(world: LandingWorld, method: Method) -> None:
    def status(said: dict[str, str]) -> str:
        keys = {"1-1-a": "backlog", "1-2-b": "backlog", "1-3-c": "backlog"} | said
        return "# the sprint\ndevelopment_status:\n" + "".join(f"  {key}: {one}\n" for key, one in keys.items())

    path = "docs/sprint-status.yaml"
    world.commit({path: status({})})
    saids = [{"1-1-a": "done"}, {"1-2-b": "review"}, {"1-2-b": "done", "1-3-c": "done"}]
    heads = [world.work(f"ashep/t-{at}", {path: status(said), f"f{at}": "1\n"}) for at, said in enumerate(saids)]
    for at, head in enumerate(heads):
        made = await world.landing.integrate(candidate(head, f"ashep/t-{at}", method=method))
        assert isinstance(made, Integrated), made
        assert await world.landing.integrate(candidate(head, f"ashep/t-{at}", method=method)) == made
        assert isinstance(await world.landing.advance("main", made.base, made.commit), Advanced)
    tip = await world.landing.tip("main")
    assert tip is not None
    assert world.files(tip)[path] == status({"1-1-a": "done", "1-2-b": "done", "1-3-c": "done"})
    assert [await world.landing.landed(head, "main") for head in heads] == [True] * 3
    both = world.work("ashep/t-3", {path: status({"1-1-a": "done", "1-2-b": "done"}), "f0": "2\n"})
    world.commit({path: status({"1-1-a": "done"}), "f0": "3\n"})
    other = await world.landing.integrate(candidate(both, "ashep/t-3", method=method))
    assert isinstance(other, Conflict), "what else is in conflict stays so"
    assert "f0" in other.paths
    world.commit({path: status({})})
    assert [await world.landing.landed(head, "main") for head in heads] == [True] * 3, "it was reverted"
    late = world.work("ashep/t-4", {path: status({"1-2-b": "done"})})
    world.commit({path: status({"1-1-a": "done", "1-2-b": "done", "1-3-c": "done"})})
    assert await world.landing.landed(late, "main"), "a person did the same"


@pytest.mark.promise("Z2")
async def test_of_two_only_the_first_moves_the_base(world: LandingWorld) -> None:
    heads = [world.work(f"ashep/t-{number}", {f"file{number}": "1\n"}) for number in (1, 2)]
    first, second = [
        await world.landing.integrate(candidate(head, f"ashep/t-{number}")) for number, head in enumerate(heads, 1)
    ]
    assert isinstance(first, Integrated)
    assert isinstance(second, Integrated)
    assert await world.landing.advance("main", first.base, first.commit) == Advanced(first.commit)
    refusal(await world.landing.advance("main", second.base, second.commit), code="moved")
    again = await world.landing.integrate(candidate(heads[1], "ashep/t-2"))
    assert isinstance(again, Integrated)
    assert again.base == first.commit
    assert isinstance(await world.landing.advance("main", again.base, again.commit), Advanced)
    assert {"file1", "file2"} <= set(world.files(again.commit))


@pytest.mark.promise("Z2")
async def test_a_base_is_never_forced(world: LandingWorld) -> None:
    head = world.work("ashep/t-1", {"a": "1\n"})
    base = world.commit({"b": "1\n"})
    refusal(await world.landing.advance("main", base, head), code="moved")
    assert await world.landing.tip("main") == base


async def test_where_there_is_no_such_branch_or_commit(world: LandingWorld) -> None:
    head = world.work("ashep/t-1", {"a": "1\n"})
    base = await world.landing.tip("main")
    assert base is not None
    assert await world.landing.tip("nowhere") is None
    assert not await world.landing.landed(head, "nowhere")
    refusal(await world.landing.advance("nowhere", base, head), code="gone")
    for wrong in (candidate(head, base_branch="nowhere"), candidate("f" * 40), candidate("--all"), candidate("main")):
        with pytest.raises(AshepError):
            await world.landing.integrate(wrong)


async def test_forgetting_and_settling_are_harmless(world: LandingWorld) -> None:
    head = world.work("ashep/t-1", {"a": "1\n"})
    made = await world.landing.integrate(candidate(head))
    assert isinstance(made, Integrated)
    for _ in range(2):
        await world.landing.forget("ashep/t-1")
        await world.landing.settle()
    assert await world.landing.advance("main", made.base, made.commit) == Advanced(made.commit)
