"""Pushing for pull requests: forward only, never to the base, never over what a person pushed."""

from pathlib import Path

import pytest

from ashep.adapters.git import GitRemote
from ashep.errors import AshepError, ForgeUnavailable
from ashep.ports.landing import NotPushed, Pushed
from tests.conformance.landings import GitLandingWorld

pytestmark = pytest.mark.real


@pytest.fixture
def world(folder: Path, git_alone: None) -> GitLandingWorld:
    """A repository with the remote `origin`, a bare one beside it, which a person has a clone of."""
    world = GitLandingWorld(folder.parent / "top")
    world.git("init", "-q", "--bare", "-b", "main", str(there(world)))
    world.git("remote", "add", "origin", str(there(world)))
    world.git("push", "-q", "origin", "main")
    return world


def there(world: GitLandingWorld) -> Path:
    return world.top.parent / "remote.git"


def persons_commit(world: GitLandingWorld, branch: str) -> str:
    """A person commits to the branch at the remote, from a clone of their own."""
    clone = world.top.parent / "clone"
    world.git("clone", "-q", str(there(world)), str(clone), cwd=world.top.parent)
    world.git("checkout", "-q", branch, cwd=clone)
    world.git("commit", "-q", "--allow-empty", "-m", "A person's", cwd=clone)
    world.git("push", "-q", "origin", branch, cwd=clone)
    return world.git("rev-parse", branch, cwd=there(world))


async def test_a_branch_goes_there_and_on(world: GitLandingWorld) -> None:
    remote = GitRemote(world.top)
    assert await remote.head("ashep/t-1") is None
    first = world.work("ashep/t-1", {"a": "1\n"})
    assert (
        await remote.push("ashep/t-1", first, "main") == Pushed(first) == await remote.push("ashep/t-1", first, "main")
    )
    assert await remote.head("ashep/t-1") == first
    second = world.work("ashep/t-1", {"a": "2\n"})
    assert await remote.push("ashep/t-1", second, "main") == Pushed(second)
    assert world.git("rev-parse", "ashep/t-1", cwd=there(world)) == second


@pytest.mark.promise("Z3")
async def test_what_a_person_pushed_stays(world: GitLandingWorld) -> None:
    remote = GitRemote(world.top)
    await remote.push("ashep/t-1", world.work("ashep/t-1", {"a": "1\n"}), "main")
    theirs = persons_commit(world, "ashep/t-1")
    refused = await remote.push("ashep/t-1", world.work("ashep/t-1", {"a": "2\n"}), "main")
    assert isinstance(refused, NotPushed)
    assert (refused.code, theirs[:12] in refused.why) == ("theirs", True)
    world.git("fetch", "-q", "origin")
    older = world.git("rev-parse", "ashep/t-1~1")
    assert isinstance(await remote.push("ashep/t-1", older, "main"), NotPushed), "it is never set back"
    assert await remote.head("ashep/t-1") == theirs


async def test_a_person_who_is_faster_than_our_look_wins(
    world: GitLandingWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote = GitRemote(world.top)
    first = world.work("ashep/t-1", {"a": "1\n"})
    await remote.push("ashep/t-1", first, "main")
    theirs = persons_commit(world, "ashep/t-1")

    async def stale(self: GitRemote, branch: str) -> str | None:
        return first

    monkeypatch.setattr(GitRemote, "head", stale)
    refused = await remote.push("ashep/t-1", world.work("ashep/t-1", {"a": "2\n"}), "main")
    assert isinstance(refused, NotPushed)
    assert refused.code == "theirs"
    assert world.git("rev-parse", "ashep/t-1", cwd=there(world)) == theirs


@pytest.mark.promise("Z3")
async def test_protected_branches_and_the_base_are_for_people(world: GitLandingWorld) -> None:
    head = world.work("ashep/t-1", {"a": "1\n"})
    before = world.git("for-each-ref", cwd=there(world))
    for branch in ("main", "release/1"):
        refused = await GitRemote(world.top, protected=("release/*",)).push(branch, head, "main")
        assert isinstance(refused, NotPushed)
        assert refused.code == "protected"
    assert world.git("for-each-ref", cwd=there(world)) == before


async def test_a_remote_that_says_no_or_is_away(world: GitLandingWorld) -> None:
    head = world.work("ashep/t-1", {"a": "1\n"})
    hook = there(world) / "hooks/pre-receive"
    hook.write_text("#!/bin/sh\necho 'not today' >&2\nexit 1\n")
    hook.chmod(0o755)
    refused = await GitRemote(world.top).push("ashep/t-1", head, "main")
    assert isinstance(refused, NotPushed)
    assert refused.code == "refused"
    with pytest.raises(AshepError, match="no commit"):
        await GitRemote(world.top).push("ashep/t-1", "f" * 40, "main")
    with pytest.raises(AshepError, match="full id"):
        await GitRemote(world.top).push("ashep/t-1", "HEAD", "main")
    there(world).rename(world.top.parent / "gone")
    with pytest.raises(ForgeUnavailable):
        await GitRemote(world.top).push("ashep/t-1", head, "main")
