"""Packs that come out of places: read within bounds, indexed as git does, and looked at by git in a sandbox alone."""

import hashlib
import os
import re
import shutil
import struct
import subprocess
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from ashep.adapters.git.workspaces import isolated_git, packs
from ashep.core.state.branches import branch_of
from ashep.errors import TreeRefused
from tests.conformance.workspaces import PlacesWorld
from tests.places import has_bubblewrap

pytestmark = [pytest.mark.usefixtures("git_alone"), pytest.mark.promise("I6")]

ONE, RUN = branch_of("t-1"), "t-1/implement.1.1"
MIB = 1024**2


@pytest.fixture
def world(request: pytest.FixtureRequest, folder: Path) -> PlacesWorld:
    """A repository whose branches have places; `none`: without a sandbox."""
    return PlacesWorld(folder.parent, sandbox=has_bubblewrap() and getattr(request, "param", "") != "none")


def pack_of(*objects: tuple[int, bytes, int], count: int | None = None, algorithm: str = "sha1") -> bytes:
    """A pack of objects: the kind of each, what it holds, and how long it says that is."""
    body = b"PACK" + struct.pack(">II", 2, len(objects) if count is None else count)
    for kind, content, size in objects:
        head, size = [kind << 4 | size & 15], size >> 4
        while size:
            head[-1] |= 128
            head, size = [*head, size & 127], size >> 7
        body += bytes(head) + zlib.compress(content)
    return body + hashlib.new(algorithm, body).digest()


@pytest.mark.may_block
@pytest.mark.parametrize("algorithm", ["sha1", "sha256"])
def test_the_index_is_gits_to_the_byte(tmp_path: Path, algorithm: str) -> None:
    contents = [bytes([byte % 251]) * byte**2 for byte in range(300)] + [os.urandom(3 * MIB), bytes(5 * MIB)]
    pack = pack_of(*((3, content, len(content)) for content in contents), algorithm=algorithm)
    (tmp_path / "x.pack").write_bytes(pack)
    words = ("git", "index-pack", f"--object-format={algorithm}", "x.pack")
    subprocess.run(words, cwd=tmp_path, check=True, capture_output=True)
    index, names = packs.index_of(pack, algorithm)
    assert index == (tmp_path / "x.idx").read_bytes()
    hashed = (hashlib.new(algorithm, b"blob %d\0" % len(content) + content).digest() for content in contents)
    assert names == sorted(hashed)


WHOLE = (3, b"content", 7)
DAMAGED = {
    "more than it says": pack_of((3, b"content", 6)),
    "less than it says": pack_of((3, b"content", 8)),
    "a size without end": pack_of()[:-20] + b"\xb0" + b"\x80" * 100_000 + bytes(20),
    "a delta": pack_of(WHOLE, (6, b"\x07\x07\x90\x07", 4)),
    "an object twice": pack_of(WHOLE, WHOLE),
    "fewer than there are": pack_of(WHOLE, (3, b"", 0), count=1),
    "more than there are": pack_of(WHOLE, count=2),
    "cut off": pack_of((3, os.urandom(100), 100))[:-40],
    "another checksum": pack_of(WHOLE)[:-1] + b"x",
    "another version": b"PACK\0\0\0\3" + pack_of(WHOLE)[8:],
    "nothing": b"",
}


@pytest.mark.parametrize("pack", DAMAGED.values(), ids=DAMAGED)
def test_what_is_damaged_is_refused(pack: bytes) -> None:
    with pytest.raises(TreeRefused, match="damaged"):
        packs.index_of(pack, "sha1")


@pytest.mark.parametrize(
    ("bound", "most"), [("MOST_OBJECTS", 1), ("MOST_UNPACKED", 13), ("LARGEST_FILE", 6), ("LARGEST", 6)]
)
def test_what_is_too_much_is_refused_before_it_is_unpacked(
    monkeypatch: pytest.MonkeyPatch, bound: str, most: int
) -> None:
    pack = pack_of(WHOLE, (1, b"comment", 7))
    monkeypatch.setattr(packs, bound, most + 1)
    assert len(packs.index_of(pack, "sha1")[1]) == 2
    monkeypatch.setattr(packs, bound, most)
    with pytest.raises(TreeRefused, match=f"more than .*{most // MIB}.* take out"):
        packs.index_of(pack, "sha1")


def as_a_file(world: PlacesWorld) -> None:
    (world.place / ONE / "zeros").write_bytes(bytes(15 * MIB))


def as_deltas(world: PlacesWorld) -> None:
    """Few bytes in the agent's own pack, of many versions of a file that is nothing but zeros."""
    for number in range(20):
        (world.place / ONE / f"zeros-{number}").write_bytes(bytes(MIB) + bytes([number]))
    world.git("add", "-A", at=ONE)
    world.git("commit", "-qm", "Many", at=ONE)
    world.git("repack", "-adfqb", at=ONE)
    assert "chain length" in world.git("verify-pack", "-v", *own_packs(world.place / ONE / ".git"), at=ONE)


def own_packs(git: Path) -> list[str]:
    return [str(file) for file in (git / "objects" / "pack").glob("*.idx")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("world", "make", "bound", "words"),
    [
        ("bwrap", as_deltas, (packs, "MOST_UNPACKED", 4 * MIB), ", 4 MiB unpacked"),
        ("bwrap", as_a_file, (isolated_git, "MEMORY", 12 * MIB), "with 12 MiB of memory .*: fatal: Out of memory"),
        ("none", as_a_file, (isolated_git, "MEMORY", 12 * MIB), "with 12 MiB of memory .*: fatal: Out of memory"),
    ],
    indirect=["world"],
)
async def test_what_unpacks_without_end_stays_in_the_place(
    world: PlacesWorld,
    monkeypatch: pytest.MonkeyPatch,
    make: Callable[[PlacesWorld], None],
    bound: tuple[object, str, int],
    words: str,
) -> None:
    await world.begun(ONE, {"mine.txt": "m\n"})
    make(world)
    before = world.git("for-each-ref"), world.git("count-objects", "-v")
    with monkeypatch.context() as patch:
        patch.setattr(*bound)
        with pytest.raises(TreeRefused, match=words):
            await world.spaces.seal(ONE, RUN, "Mine")
    assert (world.git("for-each-ref"), world.git("count-objects", "-v")) == before
    assert [*(world.top / ".git" / "ashep" / "taking").iterdir()] == []
    await world.spaces.seal(ONE, RUN, "Mine")
    assert "chain length" not in world.git("verify-pack", "-v", *own_packs(world.top / ".git")), "no delta comes out"


GIT = """#!/bin/sh
case " $* " in
*" index-pack "*)
    trap "" XFSZ
    for one in "$GIT_DIR" "$HOME" /tmp /var/tmp; do echo x >"$one/x"; done 2>/dev/null
    echo "$(readlink /proc/self/ns/net) $(ulimit -d) $(ulimit -t) $(ls -d {canary})" >&2
    exit 128;;
esac
exec {git} "$@"
"""


@pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap cannot be used here")
async def test_git_that_was_taken_over_by_a_pack_reaches_nothing(
    world: PlacesWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stands for a git that a hostile pack has taken over says where it is; it was outside."""
    programs, canary = world.top.parent / "programs", world.canary
    programs.mkdir()
    canary.write_text("secret")
    (programs / "git").write_text(GIT.format(git=shutil.which("git"), canary=canary))
    (programs / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    await world.begun(ONE, {"mine.txt": "m\n"})
    with pytest.raises(TreeRefused) as refused:
        await world.spaces.seal(ONE, RUN, "Mine")
    said = re.search(r"(net:\S+) (\d+) (\d+)(.*)", str(refused.value))
    assert said, refused.value
    assert said[1] != os.readlink("/proc/self/ns/net"), "no network"
    assert (int(said[2]), int(said[3])) == (isolated_git.MEMORY // 1024, isolated_git.PROCESSOR)
    assert str(canary) not in said[4].split("\n")[0], "nothing of the user's but objects of git"
    assert [*(world.top / ".git").rglob("x"), *world.place.rglob("x")] == []
