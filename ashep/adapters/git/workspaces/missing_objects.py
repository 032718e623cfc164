"""Objects that a repository lacks or cannot read: of a partial clone they are fetched, of a damaged one left out.

What the base's tree names must be there. What is in its history alone nobody needs to begin.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path

from ashep.adapters.git.command import LONG, NOTHING, Git, How, failed
from ashep.adapters.git.fsync import reached
from ashep.core.text import clean
from ashep.errors import AshepError, ProgramTimedOut

_FILTERED = r"^remote\..*\.partialclonefilter$"
_ID = re.compile(r"\b[0-9a-f]{40}(?:[0-9a-f]{24})?\b")
_ANSWER = 60.0  # seconds for a remote to answer
_MOST = 1000  # objects that are left out of a pack


async def find_promisor(git: Git) -> str | None:
    """Return the remote that has what a partial clone left there; None: the clone is whole."""
    names = await git.raw("config", "--name-only", "--get-regexp", _FILTERED, absent=NOTHING)
    return os.fsdecode(names).splitlines()[0].removeprefix("remote.").rpartition(".")[0] if names else None


async def reach(git: Git) -> None:
    """Ask the remote of a partial clone, which any call of git may need. Raises `AshepError` without an answer."""
    if (remote := await find_promisor(git)) is not None:
        await _ask(git, remote, "ls-remote", "--quiet", "--", remote, "HEAD", timeout=_ANSWER)


async def fill(git: Git, commit: str) -> None:
    """Fetch what a partial clone lacks of a commit's files, and nothing of its history. Errors as those of `reach`."""
    if (remote := await find_promisor(git)) is not None and (missing := await _list_missing(git, commit)):
        words = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--recurse-submodules=no")
        words = ("-c", "fetch.negotiationAlgorithm=noop", *words, "--filter=blob:none", "--stdin", "--", remote)
        await _ask(git, remote, *words, stdin="".join(f"{name}\n" for name in missing).encode(), timeout=LONG)


async def _ask(git: Git, remote: str, *words: str, timeout: float, stdin: bytes | None = None) -> None:
    try:
        done = await git.bare(*words, stdin=stdin, accepted=None, timeout=timeout)
        stderr = git.redact_stderr(done) if done.returncode else ""
    except ProgramTimedOut as error:
        stderr = str(error)
    if stderr:
        raise AshepError(
            f"this is a partial clone, and its remote {remote} does not answer: {' '.join(stderr.split())[:300]}; "
            f"go where it can be reached, or make the clone whole with `git config --unset "
            f"remote.{remote}.partialCloneFilter` and `git fetch --refetch`"
        )


async def _list_missing(git: Git, commit: str) -> list[str]:
    listed = await git.bare("rev-list", "--objects", "--no-walk", "--missing=print", commit, timeout=LONG)
    return [line[1:] for line in os.fsdecode(listed.stdout).splitlines() if line.startswith("?")]


async def check_tree(git: Git, commit: str, unreadable: Iterable[str] = (), *, reads: bool = False) -> None:
    """Raise `AshepError` where a commit's own files are not all there; `unreadable`: objects that nobody can read.

    `reads`: each file is read, which takes as long as a checkout.
    """
    lacking = {*unreadable, *await _list_missing(git, commit)}
    if reads and not lacking:
        words = ("rev-list", "--objects", "--no-object-names", "--no-walk", commit)
        objects, common = (await git.bare(*words, timeout=LONG)).stdout, await git.common()
        how = How(env={"GIT_DIR": str(common)}, stdin=objects, timeout=LONG, take=lambda _: None)
        lacking = {
            *_ID.findall(git.redact_stderr(await git.run("cat-file", "--batch", **how)))
        }  # some it calls missing, too
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
    """Pack what is reached from objects and not from known ones, as far as it can be read; return what cannot.

    Raises `AshepError` where a commit or a tree of the history is damaged: then nobody knows what it reaches.
    """
    words = ("rev-list", "--objects", "--no-object-names", "--missing=print", "--stdin")
    listed = (await git.bare(*words, stdin=reached(new, known), timeout=LONG)).stdout.decode().split()
    lacking = {name[1:] for name in listed if name.startswith("?")}
    left = dict.fromkeys(name for name in listed if not name.startswith("?"))
    words = ("pack-objects", "--quiet", "--delta-base-offset", str(folder / "pack"))
    while True:
        done = await git.bare(*words, stdin="".join(f"{name}\n" for name in left).encode(), accepted=None, timeout=LONG)
        if not done.returncode:
            return lacking
        unreadable = {*_ID.findall(stderr := git.redact_stderr(done))} & left.keys()
        if not unreadable or len(lacking) > _MOST:
            raise await failed("pack-objects", done.returncode, stderr, folder)
        lacking |= unreadable
        left = {name: None for name in left if name not in unreadable}
