"""Objects that a repository lacks or cannot read: of a partial clone they are fetched, of a damaged one left out.

What the base's tree names must be there. What stands in its history alone nobody needs to begin.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from ashep.adapters.git.durable import reached
from ashep.adapters.git.program import LONG, NOTHING, Git, How, failed
from ashep.core.text import clean
from ashep.errors import AshepError, ProgramTimedOut

_FILTERED = r"^remote\..*\.partialclonefilter$"
_ID = re.compile(r"\b[0-9a-f]{40}(?:[0-9a-f]{24})?\b")
_ANSWER = 60.0
"""Seconds for a remote to say that it is there."""
_MOST = 1000
"""Objects that are left out of a pack."""
_PARTIAL = "this is a partial clone, and its remote"
_WHOLE = (
    "go where it can be reached, or make the clone whole with `git config --unset remote.{0}.partialCloneFilter` and "
    "`git fetch --refetch`"
)


async def find_promisor(git: Git) -> str | None:
    """Give the remote that has what a partial clone left there; None: the clone is whole."""
    found = await git.raw("config", "--name-only", "--get-regexp", _FILTERED, absent=NOTHING)
    return os.fsdecode(found).splitlines()[0].removeprefix("remote.").rpartition(".")[0] if found else None


async def reach(git: Git) -> None:
    """Ask the remote of a partial clone whether it is there: any call of git may need it, at any time.

    Raises `AshepError` where it does not answer.
    """
    if (remote := await find_promisor(git)) is not None:
        await _ask(git, remote, "ls-remote", "--quiet", "--", remote, "HEAD", timeout=_ANSWER)


async def fill(git: Git, commit: str) -> None:
    """Fetch what a partial clone lacks of a commit's files; of its history nothing.

    Raises `AshepError` where its remote does not answer.
    """
    if (remote := await find_promisor(git)) is not None and (lacking := await _missing(git, commit)):
        words = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--recurse-submodules=no")
        how = ("-c", "fetch.negotiationAlgorithm=noop", *words, "--filter=blob:none", "--stdin", "--", remote)
        await _ask(git, remote, *how, stdin="".join(f"{one}\n" for one in lacking).encode(), timeout=LONG)


async def _ask(git: Git, remote: str, *words: str, timeout: float, stdin: bytes | None = None) -> None:
    try:
        done = await git.bare(*words, stdin=stdin, accepted=None, timeout=timeout)
        said = git.said(done) if done.returncode else ""
    except ProgramTimedOut as error:
        said = str(error)
    if said:
        words_of_git = " ".join(said.split())[:300].rstrip(".")
        raise AshepError(f"{_PARTIAL} {remote} does not answer: {words_of_git}. {_WHOLE.format(remote)}")


async def _missing(git: Git, commit: str) -> list[str]:
    listed = await git.bare("rev-list", "--objects", "--no-walk", "--missing=print", commit, timeout=LONG)
    return [line[1:] for line in os.fsdecode(listed.stdout).splitlines() if line.startswith("?")]


async def check_tree(git: Git, commit: str, unreadable: Iterable[str] = (), *, reads: bool = False) -> None:
    """Raise `AshepError` where a commit's own files are not all there; `unreadable`: objects that nobody can read.

    `reads`: each file is read, which takes as long as a checkout.
    """
    lacking = {*unreadable, *await _missing(git, commit)}
    if reads and not lacking:
        words = ("rev-list", "--objects", "--no-object-names", "--no-walk", commit)
        objects, common = (await git.bare(*words, timeout=LONG)).stdout, await git.common()
        how = How(env={"GIT_DIR": str(common)}, stdin=objects, timeout=LONG, take=lambda _: None)
        lacking = {*_ID.findall(git.said(await git.run("cat-file", "--batch", **how)))}  # some it calls missing, too
    listed = (await git.bare("ls-tree", "-r", "-t", "-z", "--full-tree", commit)).stdout if lacking else b""
    for line in listed.split(b"\0")[:-1]:
        about, _, path = line.partition(b"\t")
        if (blob := about.split()[2].decode()) in lacking:
            name = clean(path.decode(errors="replace"))
            raise AshepError(
                f"git cannot read {name} of the commit {commit[:12]} (object {blob}): `git fsck` says what else is "
                "damaged; bring it back from another clone (`git fetch`, or its file in .git/objects)"
            )


async def pack_readable(git: Git, new: Iterable[str], known: Iterable[str], folder: Path) -> set[str]:
    """Pack what is reached from objects and not from known ones, as far as it can be read; give what cannot.

    Raises `AshepError` where a commit or a tree of the history is damaged: then nobody knows what it reaches.
    """
    listed = await git.bare(
        "rev-list", "--objects", "--missing=print", "--stdin", stdin=reached(new, known), timeout=LONG
    )
    lines = listed.stdout.splitlines(keepends=True)
    left = {line[: line.find(b" ") if b" " in line else -1].decode(): line for line in lines if line[:1] != b"?"}
    lacking = {line[1:].strip().decode() for line in lines if line[:1] == b"?"}
    while True:
        words = ("pack-objects", "--quiet", "--delta-base-offset", str(folder / "pack"))
        done = await git.bare(*words, stdin=b"".join(left.values()), accepted=None, timeout=LONG)
        if not done.returncode:
            return lacking
        named = {*_ID.findall(said := git.said(done))} & left.keys()
        if not named or len(lacking) > _MOST:
            raise await failed("pack-objects", done.returncode, said, folder)
        lacking |= named
        left = {name: line for name, line in left.items() if name not in named}
