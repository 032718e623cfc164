"""Which commit is verified, and since when: in the project's repository, and in one that is fetched."""

import os
from pathlib import Path

import pytest

from ashep.adapters.git import remotes
from ashep.adapters.git.remotes import candidate, fetched, find_branch_point, resolve
from ashep.errors import AshepError
from tests.service.worlds import git, repository

pytestmark = pytest.mark.promise("L20")


@pytest.fixture
def project(folder: Path) -> Path:
    return repository(folder.parent / "project")


async def test_the_issues_branch_goes_first_then_what_is_checked_out(project: Path) -> None:
    tip, main = git(project, "rev-parse", "ashep/t-1"), git(project, "rev-parse", "main")
    found = await candidate(project, "t-1")
    assert (found.name, found.commit, found.base) == ("ashep/t-1", tip, main)
    found = await candidate(project, "t-2")
    assert (found.name, found.commit, found.base) == ("HEAD", main, None)
    found = await candidate(project, "t-1", "main", "ashep/t-1")
    assert (found.name, found.commit, found.base) == ("main", main, tip)


async def test_a_branch_that_is_checked_out_left_main(project: Path) -> None:
    main = git(project, "rev-parse", "main")
    git(project, "checkout", "-q", "ashep/t-1")
    assert (await candidate(project, "t-1")).base == main
    git(project, "commit", "-q", "--allow-empty", "-m", "more")
    assert (await candidate(project, "t-1")).base == main


async def test_what_is_recorded_of_a_branch_is_believed(project: Path) -> None:
    git(project, "checkout", "-q", "ashep/t-1")
    git(project, "commit", "-q", "--allow-empty", "-m", "more")
    recorded = git(project, "rev-parse", "HEAD~1")
    git(project, "update-ref", "refs/ashep/base/ashep/t-1", recorded)
    git(project, "checkout", "-q", "main")
    assert (await candidate(project, "t-1")).base == recorded


async def test_a_branch_of_another_history_has_no_base(project: Path) -> None:
    git(project, "checkout", "-q", "--orphan", "alone")
    git(project, "commit", "-qm", "alone")
    git(project, "checkout", "-q", "main")
    assert await find_branch_point(project, await resolve(project, "alone"), "alone") is None


@pytest.mark.parametrize(
    "name", ["nothing", "--all", "main..ashep/t-1", "main:README.md", "", "a\nb", "$(id)", "HEAD^9"]
)
async def test_what_is_no_commit_is_told(project: Path, name: str) -> None:
    with pytest.raises(AshepError, match="has no commit"):
        await resolve(project, name)


async def test_what_is_no_repository_is_told(tmp_path: Path) -> None:
    with pytest.raises(AshepError, match="not a git repository"):
        await candidate(tmp_path, "t-1")


async def test_a_repository_from_elsewhere_is_brought_here_with_the_branch_alone(project: Path, tmp_path: Path) -> None:
    (project / ".git" / "hooks").mkdir(exist_ok=True)
    git(project, "branch", "other")
    git(project, "tag", "v1")
    place = await fetched(project.as_uri(), "ashep/t-1", tmp_path / "fetched")
    tip, main = git(project, "rev-parse", "ashep/t-1"), git(project, "rev-parse", "main")
    assert await resolve(place, "refs/heads/ashep/t-1") == tip
    assert await find_branch_point(place, tip, "ashep/t-1") == main
    assert "other" not in git(place, "for-each-ref")
    assert "v1" not in git(place, "for-each-ref")
    git(project, "checkout", "-q", "ashep/t-1")
    git(project, "commit", "-q", "--amend", "--allow-empty", "-m", "again")
    assert await fetched(project.as_uri(), "ashep/t-1", tmp_path / "fetched") == place
    assert await resolve(place, "refs/heads/ashep/t-1") == git(project, "rev-parse", "ashep/t-1"), "the newest"


async def test_what_is_fetched_is_bounded_and_what_was_used_last_stays(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "fetched"
    monkeypatch.setattr(remotes, "MOST_KEPT", 3)
    old = [folder / f"{number:016x}" for number in range(5)]
    for age, place in enumerate(old):
        place.mkdir(parents=True)
        (place / "pack").write_bytes(b"x" * 1000)
        os.utime(place, (10.0**9 + age, 10.0**9 + age))
    place = await fetched(project.as_uri(), "ashep/t-1", folder)
    assert {*folder.iterdir()} == {place, *old[3:]}
    monkeypatch.setattr(remotes, "MOST_BYTES", 0)
    recent = folder / "recent"
    recent.mkdir()
    await fetched(project.as_uri(), "ashep/t-1", folder)
    assert {*folder.iterdir()} == {place, recent}, "a verification may be reading what was fetched a moment ago"


async def test_what_cannot_be_fetched_is_told(project: Path, tmp_path: Path) -> None:
    with pytest.raises(AshepError, match="couldn't find remote ref"):
        await fetched(project.as_uri(), "nothing", tmp_path / "fetched")
    with pytest.raises(AshepError, match="cannot be fetched"):
        await fetched((tmp_path / "nowhere").as_uri(), "main", tmp_path / "fetched")
    with pytest.raises(AshepError, match="cannot be fetched"):
        await fetched("ext::sh -c touch% x", "main", tmp_path / "fetched")
