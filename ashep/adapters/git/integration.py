"""Makes the commit that lands a branch, in no work tree: the same candidate and base always give the same commit.

`git merge-tree` merges trees in the object store (git 2.38 and later). To replay one commit, merge-tree is given a
made-up sibling of it: the new parent's tree on the commit's own parent, which makes that parent the merge base (a
`--merge-base` of its own came with git 2.40 only).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from ashep.adapters.git.command import READING, SHA, Git, capped
from ashep.adapters.git.objects import (
    CommitObject,
    Merged,
    attributes,
    changes,
    commits,
    holds,
    merge,
    tip,
    write_commit,
)
from ashep.adapters.git.structured_merge import conflicts_of, merged_by_key
from ashep.core.policy.globs import Globs
from ashep.core.text import clean
from ashep.errors import AshepError
from ashep.ports.landing import HEAD, ISSUE, JOURNAL, AlreadyLanded, Candidate, Conflict, Integrated

MOST_REPLAYED = 200
"""A longer branch is squashed instead of replayed commit by commit."""
_TRAILERS = re.compile(r"(?:[A-Za-z0-9-]+: [^\n]*(?:\n|$))+")


def name_landing_ref(branch: str) -> str:
    """Name the ref that keeps what was integrated for a branch."""
    return f"refs/ashep/landing/{branch}"


class Integration:
    """Brings candidates onto bases in one repository."""

    def __init__(self, git: Git, by_key: Sequence[str] = ()) -> None:
        self._git, self._by_key = git, Globs(by_key, exact=True)

    async def landed(self, head: str, base_branch: str) -> bool:
        base = await tip(self._git, base_branch)
        if base is None:
            return False
        if await self._has_landed(head, base, ways := await attributes(self._git, base)):
            return True
        (there,) = await commits(self._git, [base])
        return await self._merge(base, head, ways) == Merged(there.tree)

    async def _has_landed(self, head: str, base: str, ways: str) -> bool:
        """Say whether the base's history has the head, or a commit that landed it otherwise.

        A trailer alone proves nothing, agents can write one: a commit that claims to hold `head` does, if merging
        `head` into it changes nothing. That is asked of this commit, not of the tip: what was reverted has landed.
        """
        if await holds(self._git, base, head):
            return True
        claim = (f"--grep={HEAD}: {head}", "--fixed-strings", f"{head}..{base}")
        claims = (await self._git.word("rev-list", *claim)).split()
        for one in await commits(self._git, claims) if claims else ():
            if await self._merge(one.id, head, ways) == Merged(one.tree):
                return True
        return False

    async def integrate(self, candidate: Candidate) -> Integrated | Conflict | AlreadyLanded:
        """Make the commit that lands the candidate, and keep it by a ref."""
        if not SHA.fullmatch(candidate.head):
            raise AshepError(f"{clean(candidate.head)[:80]} is not the full id of a commit")
        tip_now = await tip(self._git, candidate.base_branch)
        if tip_now is None:
            raise AshepError(f"there is no branch {clean(candidate.base_branch)}")
        base, head = await commits(self._git, [tip_now, candidate.head])
        ways = await attributes(self._git, base.id)
        if await self._has_landed(head.id, base.id, ways):
            return AlreadyLanded(base.id)
        merged = await self._merge(base.id, head.id, ways)
        if merged.unrelated or merged.conflicts:
            return await conflict(self._git, candidate, base.id, merged)
        if merged.tree == base.tree:
            return AlreadyLanded(base.id)
        # what is landed as it was judged has followed nothing
        if merged.tree != head.tree and (moved := await self._moved(base.id, head.id, merged.tree)):
            names = clean(candidate.base_branch), clean(candidate.branch)
            what = "{} has renamed files that {} changes. Git would bring the changes to where nobody has judged them:"
            lines = (what.format(*names), *(f"- {path}" for path in moved[:MOST_NAMED]))
            return Conflict(base.id, moved, "\n".join(lines))
        made = await self._commit(candidate, base, head, merged, ways)
        if isinstance(made, Integrated):
            await self._git.keep([made.commit], [base.id])
            await self._git.bare("update-ref", "--no-deref", name_landing_ref(candidate.branch), made.commit)
            await self._git.keep_refs(name_landing_ref(candidate.branch))
        return made

    async def _moved(self, base: str, head: str, tree: str) -> tuple[str, ...]:
        """Name the files that a merge changes and the candidate does not: it follows what the base has renamed."""
        begun = (await self._git.word("merge-base", "--all", base, head)).split()
        own = {one.path for before in begun for one in await changes(self._git, before, head)}
        return tuple(
            sorted(
                self._git.redact_bytes(one.path) for one in await changes(self._git, base, tree) if one.path not in own
            )
        )

    async def _commit(
        self, candidate: Candidate, base: CommitObject, head: CommitObject, merged: Merged, ways: str
    ) -> Integrated | Conflict:
        if candidate.method == "rebase":
            listed = (await self._git.word("rev-list", "--reverse", "--topo-order", f"{base.id}..{head.id}")).split()
            steps = await commits(self._git, listed) if len(listed) <= MOST_REPLAYED else []
            if steps and all(len(step.parents) == 1 for step in steps):  # else they are too many, or one is a merge
                return await self._replay(candidate, base, steps, ways)
        said = clean(candidate.message).strip()
        message = with_trailers(said or f"Land {clean(candidate.branch)} for {clean(candidate.issue)}", candidate)
        squashed = candidate.method != "merge"
        parents = (base.id,) if squashed else (base.id, head.id)
        author, at = head.author if squashed else "", max(base.at, head.at)
        commit = await write_commit(self._git, merged.tree, parents, message, author=author, at=at)
        return Integrated(base.id, commit, merged.tree)

    async def _replay(
        self, candidate: Candidate, base: CommitObject, steps: list[CommitObject], ways: str
    ) -> Integrated | Conflict:
        """Replay commits one by one; those that change nothing any more are left out."""
        onto, tree, at = base.id, base.tree, base.at
        pending: CommitObject | None = None
        for step in steps:
            sibling = await write_commit(self._git, tree, step.parents, "", author="", at=0)
            merged = await self._merge(sibling, step.id, ways)
            if merged.conflicts:
                return await conflict(self._git, candidate, base.id, merged, sibling=sibling, step=step)
            if merged.tree == tree:
                continue
            if pending is not None:
                onto = await write_commit(self._git, tree, (onto,), pending.message, author=pending.author, at=at)
            pending, tree, at = step, merged.tree, max(at, step.at)
        assert pending is not None  # merged as a whole, they change something
        message = with_trailers(pending.message, candidate)
        commit = await write_commit(self._git, tree, (onto,), message, author=pending.author, at=at)
        return Integrated(base.id, commit, tree)

    async def _merge(self, ours: str, theirs: str, ways: str) -> Merged:
        return await merged_by_key(self._git, await merge(self._git, ours, theirs, ways), self._by_key)

    async def forget(self, branch: str) -> None:
        """Drop the ref that keeps what was integrated for a branch."""
        await self._git.bare("update-ref", "--no-deref", "-d", name_landing_ref(branch))


async def is_integration(project: Path, by_key: Sequence[str], head: str, base: str, commit: str) -> bool:
    """Say whether a commit has the tree to which `head` and the base merge. Nothing is written to the repository."""
    objects = await Git(project).common() / "objects"
    with TemporaryDirectory(prefix="ashep-audit-") as folder:
        elsewhere = {"GIT_OBJECT_DIRECTORY": folder, "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(objects)}
        git = Git(project, replace(READING, variables=elsewhere))
        (made,) = await commits(git, [commit])
        merged = await merge(git, base, head, await attributes(git, base, Path(folder)))
        return await merged_by_key(git, merged, Globs(by_key, exact=True)) == Merged(made.tree)


def with_trailers(message: str, candidate: Candidate) -> str:
    """Give the message with the trailers of a landing, in the block of trailers that it ends with, where it has one."""
    body = message.rstrip("\n")
    last = body.rpartition("\n\n")[2]
    gap = "\n" if last != body and _TRAILERS.fullmatch(last) else "\n\n"
    issue = " ".join(clean(candidate.issue).split())
    journal = f"{JOURNAL}: {candidate.journal}\n" if candidate.journal else ""
    return f"{body}{gap}{ISSUE}: {issue}\n{HEAD}: {candidate.head}\n{journal}"


MOST_FILES = 20
"""Files whose hunks are shown; all of them are named."""
MOST_NAMED = 200
MOST_TEXT = 16_000
"""Characters that are told of a conflict."""
CONTEXT = 3
"""Lines shown before and after a hunk."""


async def conflict(
    git: Git,
    candidate: Candidate,
    base: str,
    merged: Merged,
    *,
    sibling: str | None = None,
    step: CommitObject | None = None,
) -> Conflict:
    """Tell a conflict of the candidate with its base: of the whole branch, or of one replayed commit."""
    what = f"{clean(candidate.branch)} ({candidate.head[:12]}) and {clean(candidate.base_branch)} ({base[:12]})"
    if merged.unrelated:
        return Conflict(base, (), f"{what} have no common history: nothing can be merged.")
    stages, messages, _ = conflicts_of(merged.conflicts)
    paths = list(stages)
    lines = [f"{what} are in conflict in {len(paths)} files:"]
    if step is not None:
        lines[0] = f"{what} are in conflict in {len(paths)} files, at the commit {step.id[:12]} of the branch:"
    lines += [f"- {git.redact_bytes(path)}" for path in paths[:MOST_NAMED]]
    lines += [f"and {len(paths) - MOST_NAMED} more"] if len(paths) > MOST_NAMED else []
    lines += ["", *(git.redact_bytes(message).strip() for message in messages[:MOST_NAMED]), *merged.told]
    names = {sibling or base: candidate.base_branch, step.id if step else candidate.head: candidate.branch}
    for path in paths[:MOST_FILES]:
        lines += await _hunks(git, merged.tree, path, names)
    shown = tuple(sorted({git.redact_bytes(path) for path in paths}))
    return Conflict(base, shown, capped("\n".join(lines), MOST_TEXT, "… (there is more)"))


async def _hunks(git: Git, tree: str, path: bytes, names: dict[str, str]) -> list[str]:
    """Give a file's hunks in conflict, where it has any: a deleted or binary file has none."""
    if b"\n" in path:
        return []
    done = await git.bare("cat-file", "--batch", stdin=tree.encode() + b":" + path + b"\n")
    header, _, content = done.stdout.partition(b"\n")
    if b" blob " not in header or b"\0" in content[:8000]:
        return []
    text = git.redact_bytes(content)
    for commit, name in names.items():
        text = text.replace(commit, clean(name))
    found = list(_cut(text.splitlines()))
    return ["", f"=== {git.redact_bytes(path)}", *found] if found else []


def _cut(lines: list[str]) -> Iterator[str]:
    """Give the hunks between git's markers with some lines around each."""
    start = 0
    shown = 0
    for number, line in enumerate(lines):
        if line.startswith("<<<<<<< "):
            start = max(number - CONTEXT, shown)
        elif line.startswith(">>>>>>> "):
            end = min(number + 1 + CONTEXT, len(lines))
            yield f"@@ line {start + 1} @@"
            yield from lines[start:end]
            shown = end
