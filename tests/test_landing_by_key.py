"""Landing over files that are merged by key, in a repository of the real git."""

from dataclasses import replace
from pathlib import Path

import pytest

from ashep.adapters.git import GitLanding
from ashep.ports.landing import Advanced, AlreadyLanded, Candidate, Conflict, Integrated
from tests.conformance.landings import GitLandingWorld

pytestmark = [pytest.mark.usefixtures("git_alone"), pytest.mark.real]

STATUS = "a b/ü/sprint-status.yaml"
HEAD = "# statuses: backlog, done\n\nproject: x\ndevelopment_status:\n  epic-1: in-progress\n"


def status(*done: int, more: str = "") -> str:
    lines = [f"  1-{at}-story: {'done' if at in done else 'backlog'}  # story {at}\n" for at in range(1, 11)]
    return HEAD + "".join(lines) + more


@pytest.mark.promise("Z1")
async def test_ten_stories_at_once_land_without_a_conflict_over_the_sprint_status(folder: Path) -> None:
    world = GitLandingWorld(folder.parent / "top")
    world.commit({STATUS: status(), "a b/other": "1\n", "z/deep/one": "1\n"})
    candidates = list[Candidate]()
    for at in range(1, 11):
        head = world.work(f"ashep/t-{at}", {STATUS: status(at), f"docs/{at}.md": "done\n"})
        candidates.append(Candidate(f"t-{at}", f"ashep/t-{at}", head, "main", "Do it"))
    tip = ""
    for one in reversed(candidates):
        made = await world.landing.integrate(replace(one, method="squash"))
        assert isinstance(made, Integrated), made
        moved = await world.landing.advance("main", made.base, made.commit)
        tip = made.commit
        assert moved == Advanced(tip)
    held = world.files(tip)
    assert held.pop(STATUS) == status(*range(1, 11))
    assert sorted(held) == sorted(["README", "a b/other", "z/deep/one", *(f"docs/{at}.md" for at in range(1, 11))])
    assert await world.landing.integrate(candidates[0]) == AlreadyLanded(tip), "a probe of what landed first"
    assert world.status() == ""
    world.git("fsck", "--strict")


async def test_what_cannot_be_merged_by_key_is_a_conflict_that_says_why(folder: Path) -> None:
    world = GitLandingWorld(folder.parent / "top")
    world.commit({STATUS: status(), "tool.yaml": "a: 1\nb: 1\n"})
    head = world.work("ashep/t-1", {STATUS: status(more="  owner: me\n")})
    world.commit({STATUS: status(1, more="  owner: you\n")})
    one = Candidate("t-1", "ashep/t-1", head, "main", "Do it")
    found = await world.landing.integrate(one)
    assert isinstance(found, Conflict)
    assert found.paths == (STATUS,)
    assert f"{STATUS} is not merged by key: development_status.owner was changed on both sides" in found.text
    assert "<<<<<<< main" in found.text, "git's hunks are shown all the same"
    unset = await GitLanding(world.top, by_key=()).integrate(one)
    assert isinstance(unset, Conflict)
    assert "by key" not in unset.text
    (world.top / STATUS).chmod(0o755)
    world.commit({STATUS: status(2)})
    mine = world.work("ashep/t-1", {STATUS: status(1)})
    other = await world.landing.integrate(replace(one, head=mine))
    assert isinstance(other, Integrated)
    assert world.git("ls-tree", "-z", other.commit, STATUS).startswith("100755 "), "the base's"
    world.commit({".gitattributes": "sprint-status.yaml -merge\n"})
    assert isinstance(await world.landing.integrate(replace(one, head=mine)), Conflict), "the base says so"
    world.commit({".gitattributes": None, "tool.yaml": "a: 2\nb: 1\n"})
    more = world.work("ashep/t-1", {"tool.yaml": "a: 1\nb: 2\n"})
    both = await world.landing.integrate(replace(one, head=more))
    assert isinstance(both, Conflict)
    assert both.paths == (STATUS, "tool.yaml"), "of that it was not said that it is merged by key"
