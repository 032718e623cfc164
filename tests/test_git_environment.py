"""What a variable, a replaced commit, a graft or a symbolic ref says to git: no adapter of ours obeys it.

An agent can make each of them in the repository or leave it in an environment from which a daemon is started.
"""

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ashep.adapters.git import GitLanding
from ashep.adapters.git.diffs import GitDiffs
from ashep.adapters.verifier.checkout import find
from ashep.errors import AshepError
from ashep.ports.landing import Candidate, Integrated
from tests.conformance.workspaces import GitWorkspacesWorld

pytestmark = pytest.mark.slow

ONE = "ashep/t-1"
RUN = "t-1/implement.1.1"


def setting(patch: pytest.MonkeyPatch, name: str, value: str) -> None:
    for variable, word in (("COUNT", "1"), ("KEY_0", name), ("VALUE_0", value)):
        patch.setenv(f"GIT_CONFIG_{variable}", word)


def everything_ignored(world: GitWorkspacesWorld, patch: pytest.MonkeyPatch) -> None:
    (world.top.parent / "all").write_text("*\n")
    setting(patch, "core.excludesFile", str(world.top.parent / "all"))


def no_magic(world: GitWorkspacesWorld, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("GIT_LITERAL_PATHSPECS", "1")


def elsewhere(world: GitWorkspacesWorld, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("GIT_OBJECT_DIRECTORY", str(world.top.parent / "objects"))


def old_date(world: GitWorkspacesWorld, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("GIT_COMMITTER_DATE", "yesterday, or so: 99999999999999999999")


def replaced(world: GitWorkspacesWorld, patch: pytest.MonkeyPatch) -> None:
    world.git("replace", ONE, "main")


def replaced_by_a_setting(world: GitWorkspacesWorld, patch: pytest.MonkeyPatch) -> None:
    """Git before 2.42 takes the repository's word for it, whatever the variable says."""
    world.git("config", "core.useReplaceRefs", "true")
    world.git("replace", ONE, "main")


def grafted(world: GitWorkspacesWorld, patch: pytest.MonkeyPatch) -> None:
    (world.top / ".git/info").mkdir(exist_ok=True)
    (world.top / ".git/info/grafts").write_text(world.git("rev-parse", ONE) + "\n")


@pytest.mark.promise("I2")
@pytest.mark.parametrize(
    "steer", [everything_ignored, no_magic, elsewhere, old_date, replaced, replaced_by_a_setting, grafted]
)
async def test_nothing_steers_our_git(
    world: GitWorkspacesWorld,
    monkeypatch: pytest.MonkeyPatch,
    steer: Callable[[GitWorkspacesWorld, pytest.MonkeyPatch], None],
) -> None:
    """Sealed, read, looked up for its checks and landed as if there were nothing; the same for every adapter."""
    begun = await world.spaces.prepare(ONE, None, 0)
    world.edit(ONE, "committed.txt", "1\n")
    world.git("add", "-A", at=ONE)
    world.git("commit", "-qm", "By the agent", at=ONE)
    tip = world.git("rev-parse", ONE)
    steer(world, monkeypatch)
    world.edit(ONE, "left.txt", "2\n")
    sealed = await world.spaces.seal(ONE, RUN, "Left")
    changes = await world.spaces.changes(ONE, begun.base)
    landing = GitLanding(world.top)
    made = await landing.integrate(Candidate("t-1", ONE, sealed.head, "main"))
    assert isinstance(made, Integrated)
    looked_up = await find(world.top, sealed.head, begun.base)
    await landing.advance("main", made.base, made.commit)
    for variable in ("GIT_CONFIG_COUNT", "GIT_LITERAL_PATHSPECS", "GIT_OBJECT_DIRECTORY", "GIT_COMMITTER_DATE"):
        monkeypatch.delenv(variable, raising=False)
    no_replacing(world, monkeypatch)
    (world.top / ".git/info/grafts").unlink(missing_ok=True)
    assert [one.subject for one in sealed.commits] == ["By the agent", "Left"]
    assert world.git("rev-list", "--reverse", f"{begun.base}..{ONE}").split() == [tip, sealed.head]
    assert sealed.tree == looked_up.tree == world.git("rev-parse", f"{sealed.head}^{{tree}}")
    assert "committed.txt" in changes.stat
    assert "left.txt" in changes.stat
    names = world.git("ls-tree", "-r", "--name-only", "main").split()
    assert names == ["a.txt", "committed.txt", "left.txt"]


def no_replacing(world: GitWorkspacesWorld, patch: pytest.MonkeyPatch) -> None:
    """Have the test's own git see what is there, too."""
    patch.setenv("GIT_NO_REPLACE_OBJECTS", "1")
    world.git("config", "core.useReplaceRefs", "false")


@pytest.mark.parametrize("wanted", ["", "true"], ids=["by-default", "set"])
@pytest.mark.parametrize("what", ["", "^{tree}", ":b.txt"], ids=["commit", "tree", "blob"])
async def test_what_is_replaced_is_sealed_and_read_as_it_is(
    world: GitWorkspacesWorld, monkeypatch: pytest.MonkeyPatch, what: str, wanted: str
) -> None:
    """An agent says that what it made is what stands on the base: its checks would look at that."""
    begun = await world.spaces.prepare(ONE, None, 0)
    world.edit(ONE, "b.txt", "b\n")
    before = await world.spaces.seal(ONE, RUN, "Work")
    other = {"": "main", "^{tree}": "main^{tree}", ":b.txt": "main:a.txt"}[what]
    world.git("replace", f"{before.head}{what}", other)
    if wanted:
        world.git("config", "core.useReplaceRefs", wanted)
    sealed = await world.spaces.seal(ONE, RUN, "Work")
    changes = await world.spaces.changes(ONE, begun.base)
    diff = await GitDiffs(world.top).read(begun.base, sealed.head)
    looked_up = await find(world.top, sealed.head, begun.base)
    no_replacing(world, monkeypatch)
    assert (sealed.head, sealed.tree, sealed.saved) == (before.head, before.tree, ())
    assert looked_up.tree == sealed.tree == world.git("rev-parse", f"{sealed.head}^{{tree}}")
    assert "\n+b" in changes.diff
    assert [(file.path, file.added_lines) for file in diff.files] == [("b.txt", ((1, "b"),))]


async def test_a_repository_does_not_say_what_of_a_long_diff_is_shown_first(world: GitWorkspacesWorld) -> None:
    begun = await world.spaces.prepare(ONE, None, 0)
    for name in ("b.txt", "z.txt"):
        world.edit(ONE, name, f"{name}\n")
    await world.spaces.seal(ONE, RUN, "Work")
    plain = await world.spaces.changes(ONE, begun.base)
    (world.top.parent / "order").write_text("z.txt\n")
    world.git("config", "diff.orderFile", str(world.top.parent / "order"))
    assert await world.spaces.changes(ONE, begun.base) == plain


# --- symbolic refs ----------------------------------------------------------------------------------------------------


@pytest.mark.promise("I2")
@pytest.mark.parametrize("target", ["refs/heads/main", "HEAD", "refs/heads/none", f"refs/heads/{ONE}", "link"])
async def test_a_branch_that_was_made_a_name_for_another_is_a_branch_again(
    world: GitWorkspacesWorld, target: str
) -> None:
    await world.begun(ONE, {"b.txt": "b\n"})
    main = world.git("rev-parse", "main")
    ref = world.top / ".git/refs/heads" / ONE
    if target == "link":
        ref.unlink()
        ref.symlink_to("refs/heads/main")
    else:
        ref.write_text(f"ref: {target}\n")  # git itself refuses some of them, and reads all
    sealed = await world.spaces.seal(ONE, RUN, "Work")
    assert world.git("rev-parse", "main") == main, "what is sealed goes to no other branch"
    assert not world.git("for-each-ref", "--format=%(symref)", f"refs/heads/{ONE}", "refs/ashep/").strip()
    assert world.git("rev-parse", f"refs/heads/{ONE}") == sealed.head
    assert world.git("show", f"{sealed.head}:b.txt") == "b"
    assert any("symbolic" in word for word in sealed.told), sealed.told
    assert world.git("for-each-ref", "refs/heads/none") == ""
    again = await world.spaces.seal(ONE, RUN, "Work")
    assert (again.head, again.told) == (sealed.head, ())


async def test_no_ref_of_ours_leads_to_a_persons_branch(world: GitWorkspacesWorld) -> None:
    begun = await world.spaces.prepare(ONE, None, 0)
    for ref in (f"refs/ashep/sealed/{ONE}", f"refs/ashep/landing/{ONE}", "refs/ashep/moving/main/old"):
        world.git("symbolic-ref", ref, "refs/heads/theirs")
    world.git("branch", "theirs")
    world.edit(ONE, "b.txt", "b\n")
    sealed = await world.spaces.seal(ONE, RUN, "Work")
    landing = GitLanding(world.top)
    made = await landing.integrate(Candidate("t-1", ONE, sealed.head, "main"))
    assert isinstance(made, Integrated)
    assert world.git("rev-parse", "theirs") == begun.base
    await landing.advance("main", made.base, made.commit)
    await landing.forget(ONE)
    assert world.git("rev-parse", "theirs") == begun.base
    assert world.git("rev-parse", f"refs/ashep/sealed/{ONE}") == sealed.head


# --- what is on the disk ----------------------------------------------------------------------------------------------


@pytest.mark.promise("Z1")
@pytest.mark.parametrize("left", [b"", bytes(40)])
async def test_what_a_power_cut_emptied_is_neither_sealed_nor_landed(world: GitWorkspacesWorld, left: bytes) -> None:
    begun = await world.spaces.prepare(ONE, None, 0)
    world.edit(ONE, "b.txt", "of which nobody reads more than its name\n")
    world.git("add", "-A", at=ONE)
    world.git("commit", "-qm", "Work", at=ONE)
    head, blob = world.git("rev-parse", ONE), world.git("rev-parse", f"{ONE}:b.txt")
    file = world.top / ".git/objects" / blob[:2] / blob[2:]
    file.chmod(0o600)
    file.write_bytes(left)
    with pytest.raises(AshepError, match=f"{blob[2:]} is empty: power failed"):
        await world.spaces.seal(ONE, RUN, "Work")
    assert world.git("for-each-ref", f"refs/ashep/sealed/{ONE}") == ""
    landing = GitLanding(world.top)
    with pytest.raises(AshepError, match=f"{blob[2:]} is empty: power failed"):
        await landing.integrate(Candidate("t-1", ONE, head, "main"))
    with pytest.raises(AshepError, match=f"{blob[2:]} is empty: power failed"):
        await landing.advance("main", begun.base, head)
    assert world.git("rev-parse", "main") == begun.base


async def test_objects_of_another_repository_are_flushed_where_they_lie(
    world: GitWorkspacesWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent's clone lends what was made there (git's alternates); a full disk there is told."""
    await world.spaces.prepare(ONE, None, 0)
    lent = world.top.parent / "lent"
    world.git("clone", "-q", "--bare", "--no-hardlinks", ".", str(lent))
    (world.top / ".git/objects/info/alternates").write_text(f"# lent\n{lent}/objects\n")
    blob = world.git(f"--git-dir={lent}", "hash-object", "-w", "--stdin", stdin=b"lent\n")
    world.git("update-index", "--add", "--cacheinfo", f"100644,{blob},lent.txt", at=ONE)
    world.git("commit", "-qm", "Work", at=ONE)
    world.git("checkout", "-q", "--", ".", at=ONE)
    flushed, fsync = list[str](), os.fsync

    def watched(file: int) -> None:
        flushed.append(os.readlink(f"/proc/self/fd/{file}"))
        fsync(file)

    monkeypatch.setattr(os, "fsync", watched)
    sealed = await world.spaces.seal(ONE, RUN, "Work")
    there = f"{lent}/objects/{blob[:2]}"
    assert {f"{there}/{blob[2:]}", there, f"{world.top}/.git/refs/ashep/sealed/{ONE}"} <= set(flushed)
    flushed.clear()
    await world.spaces.seal(ONE, RUN, "Work")
    assert not [path for path in flushed if "/objects/" in path and path.endswith(sealed.head[2:])], "once is enough"

    def full(file: int) -> None:
        raise OSError(errno.EIO, "")

    monkeypatch.setattr(os, "fsync", full)
    world.edit(ONE, "more.txt", "1\n")
    with pytest.raises(AshepError, match="cannot be flushed: Input/output error"):
        await world.spaces.seal(ONE, RUN, "Work")
    assert world.git("rev-parse", f"refs/ashep/sealed/{ONE}") == sealed.head


@pytest.mark.parametrize(("files", "flushed"), [(3, 3), (100, 0)], ids=["few", "many"])
async def test_of_few_files_that_are_saved_each_is_flushed_and_of_many_the_disk_once(
    world: GitWorkspacesWorld, monkeypatch: pytest.MonkeyPatch, files: int, flushed: int
) -> None:
    """A setting that we give as a variable would lose to the one on the command line, and nobody would see it."""
    events, synced = world.top.parent / "events", list[bool]()
    (Path.home() / ".gitconfig").write_text(f"[trace2]\n\teventTarget = {events}\n")
    monkeypatch.setattr(os, "sync", lambda: synced.append(True))
    await world.spaces.prepare(ONE, None, 0)
    for number in range(files):
        world.edit(ONE, f"{number}.txt", f"{number}\n")
    assert (await world.spaces.remove(ONE)).saved
    told = [json.loads(line) for line in events.read_text().splitlines()]
    storing = {one["sid"] for one in told if one["event"] == "start" and "--stdin-paths" in one["argv"]}
    flushes = [one for one in told if one["sid"] in storing and one.get("key") == "fsync/hardware-flush"]
    assert len(storing) == 1
    assert sum(int(one["value"]) for one in flushes) == flushed
    assert bool(synced) is (flushed == 0)
