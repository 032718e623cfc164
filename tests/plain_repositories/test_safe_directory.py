"""Somebody else's checkout, as in a dev container, after sudo or in WSL: git works there once it was allowed to."""

import os
from pathlib import Path

import pytest

from ashep.actions import doctor
from ashep.adapters.git import GitLanding
from ashep.adapters.git.diffs import GitDiffs
from ashep.adapters.git.remotes import GitRemote, candidate
from ashep.adapters.git.user_work_tree import GitTree
from ashep.adapters.git.workspaces.clones import Clones
from ashep.adapters.git.workspaces.linked import Worktrees
from ashep.core.policy.settings import Settings
from ashep.errors import AshepError
from ashep.ports.landing import Advanced, Candidate, Integrated
from tests.conformance.workspaces import GitWorkspacesWorld
from tests.places import has_bubblewrap
from tests.verifier import place as verifier

pytestmark = [
    pytest.mark.usefixtures("git_alone"),
    pytest.mark.promise("I2"),
    pytest.mark.skipif(os.getuid() != 0, reason="only root can give a checkout to somebody else"),
]

SOMEBODY = 12345
ONE, RUN = "ashep/t-1", "t-1/implement.1.1"
KINDS: list[type[Worktrees]] = [Worktrees, Clones]


class OtherWorld(GitWorkspacesWorld):
    """A checkout of another user's; `safe`: what `safe.directory` names, `project` for the checkout."""

    def __init__(self, folder: Path, kind: type[Worktrees], safe: str | None) -> None:
        self.kind = kind
        super().__init__(folder, **({} if kind is Worktrees else {"sandbox": has_bubblewrap()}))
        for path in (self.top, *self.top.rglob("*")):
            os.chown(path, SOMEBODY, SOMEBODY, follow_symlinks=False)
        if safe is not None:
            path = str(self.top) if safe == "project" else safe
            self.git("config", "--global", "safe.directory", path)
            # as careful people have it: git's own folder is no repository to be found either
            self.git("config", "--global", "safe.bareRepository", "explicit")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("safe", ["project", "*"])
async def test_whose_checkout_is_named_is_worked_on_verified_and_landed_on(
    folder: Path, kind: type[Worktrees], safe: str
) -> None:
    world = OtherWorld(folder.parent, kind, safe)
    (line,) = await doctor.git(world.top, Settings())
    assert line.level == "ok", line
    base = world.base()
    await world.begun(ONE, {"new.txt": "new\n"})
    assert world.git("status", "--porcelain", at=ONE) == "?? new.txt", "an agent's git works, too"
    sealed = await world.spaces.seal(ONE, RUN, "Work")
    assert [commit.subject for commit in (await world.spaces.changes(ONE, base)).commits] == ["Work"]
    assert (await world.spaces.prepare(ONE, None, 0)).head == sealed.head
    assert [standing.branch for standing in await world.spaces.list()] == [ONE]
    assert (await GitTree(world.top).read()).head == base
    assert [file.path for file in (await GitDiffs(world.top).read(base, sealed.head)).files] == ["new.txt"]
    assert (await candidate(world.top, "t-1")).commit == sealed.head
    checks = verifier.World(verifier.Repository(world.top), folder.parent / "scratch")
    check = {"type": "test_pass", "verify": {"command": ["cat", "new.txt"]}}
    assert (await checks.verify(check, commit=sealed.head, base=base)).results[0].status == "passed"
    landing = GitLanding(world.top)
    integrated = await landing.integrate(Candidate("t-1", ONE, sealed.head, "main"))
    assert isinstance(integrated, Integrated)
    assert await landing.advance("main", integrated.base, integrated.commit) == Advanced(integrated.commit)
    assert (world.top / "new.txt").read_text() == "new\n"
    await world.spaces.restore(ONE, base)
    await world.spaces.remove(ONE, forget=True)
    remote = folder.parent / "remote.git"
    world.git("init", "-q", "--bare", str(remote))
    world.git("remote", "add", "origin", str(remote))
    assert await GitRemote(world.top).head("main") is None


@pytest.mark.parametrize("kind", KINDS)
async def test_whose_checkout_is_not_named_is_left_alone_and_install_says_what_to_do(
    folder: Path, kind: type[Worktrees]
) -> None:
    world = OtherWorld(folder.parent, kind, None)
    (line,) = await doctor.git(world.top, Settings())
    assert (line.level, line.check) == ("error", "git")
    assert "another user" in line.what
    assert line.remedy == f"git config --global --add safe.directory {world.top}"
    for call in (world.spaces.prepare(ONE, None, 0), GitTree(world.top).read(), GitLanding(world.top).tip("main")):
        with pytest.raises(AshepError, match="dubious ownership"):
            await call
    assert not world.place.exists()
