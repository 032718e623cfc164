"""Settings of git by which it signs, asks or starts programs: no call of ashep's waits for a person."""

from pathlib import Path

import anyio
import pytest

from ashep.adapters.git import GitLanding, GitRemote
from ashep.adapters.git.command import environment
from ashep.adapters.git.diffs import GitDiffs
from ashep.adapters.git.user_work_tree import GitTree
from ashep.adapters.git.workspaces.clones import Clones
from ashep.adapters.git.workspaces.linked import Worktrees
from ashep.ports.landing import Advanced, Candidate, Integrated, Method, Pushed
from tests.conformance.workspaces import GitWorkspacesWorld
from tests.places import has_bubblewrap
from tests.verifier import place as verifier

pytestmark = [pytest.mark.usefixtures("git_alone"), pytest.mark.may_block]

RUN = "t-1/implement.1.1"
ASKS = """#!/bin/sh
echo "$0 $*" >>{notes}
exec sleep 4321
"""
SIGNS = ("commit.gpgSign", "tag.gpgSign", "push.gpgSign", "merge.verifySignatures", "log.showSignature")
PROGRAMS = (
    "gpg.program", "core.fsmonitor", "core.editor", "sequence.editor", "core.pager", "core.askPass", "diff.external",
    "core.sshCommand", "credential.helper", "core.alternateRefsCommand", "uploadpack.packObjectsHook",
)  # fmt: skip


@pytest.mark.parametrize("kind", [Worktrees, Clones])
@pytest.mark.parametrize("method", ["merge", "rebase", "squash"])
async def test_no_call_signs_asks_or_collects(
    folder: Path, kind: type[Worktrees], method: Method, monkeypatch: pytest.MonkeyPatch
) -> None:
    class World(GitWorkspacesWorld):
        pass

    World.kind = kind
    world = World(folder.parent, **({} if kind is Worktrees else {"sandbox": has_bubblewrap()}))
    remote, notes, program = folder.parent / "remote.git", folder.parent / "notes", folder.parent / "asks"
    world.git("init", "-q", "--bare", str(remote))
    world.git("remote", "add", "origin", str(remote))
    program.write_text(ASKS.format(notes=notes))
    program.chmod(0o755)
    for name in SIGNS:
        world.git("config", name, "true")
    for name in PROGRAMS:
        world.git("config", name, str(program))
    world.git("config", "gc.auto", "1")
    world.git("config", "gc.autoDetach", "false")
    monkeypatch.setenv("GPG_TTY", "/dev/pts/0")
    branch, base = "ashep/t-1", world.base()
    with anyio.fail_after(60):
        await world.begun(branch, {"new.txt": "new\n"})
        sealed = await world.spaces.seal(branch, RUN, "Work")
        await world.spaces.prepare(branch, None, 0)
        assert (await world.spaces.changes(branch, base)).diff
        assert (await GitDiffs(world.top).read(base, sealed.head)).files
        checks = verifier.World(verifier.Repository(world.top), folder.parent / "scratch")
        check = {"type": "test_pass", "verify": {"command": ["git", "log", "--format=%s"]}}
        assert (await checks.verify(check, commit=sealed.head, base=base)).results[0].status == "passed"
        landing = GitLanding(world.top)
        integrated = await landing.integrate(Candidate("t-1", branch, sealed.head, "main", method=method))
        assert isinstance(integrated, Integrated)
        assert await landing.advance("main", integrated.base, integrated.commit) == Advanced(integrated.commit)
        assert await GitRemote(world.top).push("work", sealed.head, "main") == Pushed(sealed.head)
        assert (await GitTree(world.top).read()).head == integrated.commit
        await world.spaces.restore(branch, base)
        await world.spaces.remove(branch, forget=True)
    assert not notes.exists(), notes.read_text()
    assert "GPG_TTY" not in environment()
