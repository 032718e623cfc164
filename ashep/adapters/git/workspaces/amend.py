"""Make the commit by which a sealed branch has what it is to have: without what its run may not change, and with what
ashep itself writes into a story. Only objects are read and made; what lies in an agent's folder has no say.
"""

import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import PurePosixPath
from typing import get_args

import anyio.to_thread

from ashep.adapters.git.command import LONG, SHA, TRAILER, Git
from ashep.adapters.git.objects import changes, commits, holds, tip, write_commit
from ashep.adapters.git.repository import Repository
from ashep.bmad.paths import SPRINT, USUAL
from ashep.bmad.review_round import LONGEST, MOST_PUT_OFF, wishes, write_round
from ashep.bmad.status_words import Status
from ashep.bmad.text import LARGEST
from ashep.core.delivery.stories import beyond_leave, mended, not_taken, put_back
from ashep.core.facts.delivery import Amendment, StoryLeft
from ashep.core.text import clean
from ashep.ports.workspaces import Amended

_FILES = (b"100644", b"100755")
_STATUSES: Mapping[str, Status] = {arg: arg for arg in get_args(Status)}
_Entry = tuple[bytes, bytes]  # mode and object


async def amended(repository: Repository, run: str, head: str, wanted: Amendment) -> Amended:
    """Make what a branch that is sealed at `head` is to have. Raises `AshepError`."""
    git, prefix = repository.git, (await repository.folders()).prefix
    changed = await changes(git, wanted.since, head)
    fork = await _fork(git, head, wanted)
    story = os.fsencode(prefix + wanted.story) if wanted.story else b""
    sprint, before = await _sprint(git, fork, prefix, wanted.story) if story else (b"", None)
    onto, files, refused = head, dict[bytes, _Entry | None](), list[str]()
    beyond = [os.fsencode(one) for one in beyond_leave(wanted, map(os.fsdecode, (one.path for one in changed)), prefix)]
    if beyond := [one for one in beyond if one != sprint]:
        onto, files = wanted.since, {one.path: one.new for one in changed if one.path not in beyond}
        refused.append(put_back(map(os.fsdecode, beyond)))
    if not story:
        return Amended(await _commit(repository, onto, files, head, run, ""), tuple(refused))
    was = await _content(git, before)
    if sprint:
        files[sprint] = before
        said = await anyio.to_thread.run_sync(wishes, was, await _content(git, await _entry(git, head, sprint)))
        if any(one.path == sprint for one in changed) and said:
            refused.append(not_taken(os.fsdecode(sprint), said))
    entry = files[story] if story in files else await _entry(git, onto, story)
    told = await _content(git, entry)
    known = await _read_story_versions(git, fork, wanted, story)
    how = (wanted.story, told, was, _STATUSES.get(wanted.status), wanted.remains, run, known)
    made = await anyio.to_thread.run_sync(write_round, *how)  # an agent wrote it: it may take seconds to read
    if made.mended:
        refused.append(mended(wanted.story))
    for path, mode, old, new in ((story, entry, told, made.story), (sprint, before, was, made.sprint)):
        if mode is not None and new is not None and new != old:
            files[path] = mode[0], (await git.bare("hash-object", "-w", "--stdin", stdin=new)).stdout.strip()
    put = ", what it may not change put back" if beyond else ""
    what = f"{PurePosixPath(wanted.story).stem}: {made.status or 'no status'}{put}"
    put_off = tuple(clean(one)[:LONGEST] for one in made.put_off[:MOST_PUT_OFF])
    left = StoryLeft(made.status, made.state, clean(made.lacking), clean(made.blocked)[:LONGEST], put_off)
    return Amended(await _commit(repository, onto, files, head, run, what), tuple(refused), left)


async def _fork(git: Git, head: str, wanted: Amendment) -> str:
    """Give the last commit that a branch and its base have in common: its agents may have merged the base since the
    journal has heard of it, and what others landed there is not to be put back.
    """
    known = await _common(git, head, wanted.fits or wanted.since) or wanted.since
    base = await tip(git, wanted.onto) if wanted.onto else None
    later = await _common(git, head, base) if base is not None else None
    return later if later is not None and await holds(git, later, known) else known


async def _read_story_versions(git: Git, fork: str, wanted: Amendment, story: bytes) -> list[bytes]:
    """Give the story as its run found it, and as the base has it: first what came later."""
    if wanted.person:
        return []
    merged = not await holds(git, wanted.since, fork)  # it has taken in what others landed meanwhile
    found = [await _content(git, await _entry(git, one, story)) for one in (wanted.since, fork)]
    return [one for one in (found[::-1] if merged else found) if one is not None]


async def _common(git: Git, one: str, other: str) -> str | None:
    done = await git.bare("merge-base", one, other, accepted=(0, 1))
    found = done.stdout.decode().strip()
    return found if SHA.fullmatch(found) else None


async def _sprint(git: Git, fork: str, prefix: str, story: str) -> tuple[bytes, _Entry | None]:
    """Find the sprint status that counts: next to the story, above it, or where projects have it (facts/bmad.md 9)."""
    beside = [str(folder / SPRINT) for folder in PurePosixPath(story).parents[:2]]
    names = dict.fromkeys([*beside, *(f"{folder}/{SPRINT}" for folder in (*USUAL, "docs"))])
    for name in (os.fsencode(prefix + name) for name in names):
        if (entry := await _entry(git, fork, name)) is not None and entry[0] in _FILES:
            return name, entry
    return b"", None


async def _entry(git: Git, commit: str, path: bytes) -> _Entry | None:
    listed = (await git.bare("ls-tree", "-z", "--full-tree", commit, "--", os.fsdecode(path))).stdout
    head, _, name = listed.partition(b"\0")[0].partition(b"\t")
    words = head.split(b" ")
    return (words[0], words[2]) if name == path and len(words) == 3 else None


async def _content(git: Git, entry: _Entry | None) -> bytes | None:
    if entry is None or entry[0] not in _FILES:
        return None
    blob = entry[1].decode()
    size = int(await git.word("cat-file", "-s", blob))
    return bytes(LARGEST + 1) if size > LARGEST else (await git.bare("cat-file", "blob", blob)).stdout


async def _commit(
    repository: Repository, onto: str, files: Mapping[bytes, _Entry | None], head: str, run: str, what: str
) -> str:
    """Give a commit that has these files next to those of another; that one itself where it has them."""
    if not files:
        return onto
    common = (await repository.folders()).common
    name = sha256("\0".join((head, run)).encode()).hexdigest()[:20]
    index = anyio.Path(common, "ashep", f"amend.{name}")
    await index.parent.mkdir(exist_ok=True)
    env, git = {"GIT_DIR": str(common), "GIT_INDEX_FILE": str(index)}, Git(common, timeout=LONG)
    gone = b"0", b"0" * 40
    lines = b"".join(b"%s %s\t%s\0" % (*(entry or gone), path) for path, entry in sorted(files.items()))
    try:
        await git.run("read-tree", onto, accepted=(0,), env=env)
        await git.run("update-index", "--replace", "-z", "--index-info", accepted=(0,), env=env, stdin=lines)
        tree = (await git.run("write-tree", accepted=(0,), env=env)).stdout.decode().strip()
    finally:
        await index.unlink(missing_ok=True)
    (below, last) = await commits(repository.git, [onto, head])
    if tree == below.tree:
        return onto
    message = f"{clean(what) or 'What it may change'}\n\n{TRAILER}: {clean(run)}"
    made = await write_commit(repository.git, tree, (onto,), message, author="", at=last.at)
    await repository.keep(made)
    return made
