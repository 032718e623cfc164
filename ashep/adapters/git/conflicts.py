"""Tells a conflict to whoever resolves it: which files, why, and the hunks with git's markers."""

from collections.abc import Iterator

from ashep.adapters.git.objects import Commit, Merged
from ashep.adapters.git.program import Git
from ashep.core.text import clean
from ashep.ports.landing import Candidate, Conflict

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
    step: Commit | None = None,
) -> Conflict:
    """Tell a conflict of the candidate with its base: of the whole branch, or of one replayed commit."""
    what = f"{clean(candidate.branch)} ({candidate.head[:12]}) and {clean(candidate.base_branch)} ({base[:12]})"
    if merged.unrelated:
        return Conflict(base, (), f"{what} have no common history: nothing can be merged.")
    paths, messages = _parsed(merged.conflicts)
    lines = [f"{what} are in conflict in {len(paths)} files:"]
    if step is not None:
        lines[0] = f"{what} are in conflict in {len(paths)} files, at the commit {step.id[:12]} of the branch:"
    lines += [f"- {git.shown(path)}" for path in paths[:MOST_NAMED]]
    lines += [f"and {len(paths) - MOST_NAMED} more"] if len(paths) > MOST_NAMED else []
    lines += ["", *(git.shown(message).strip() for message in messages[:MOST_NAMED])]
    names = {sibling or base: candidate.base_branch, step.id if step else candidate.head: candidate.branch}
    for path in paths[:MOST_FILES]:
        lines += await _hunks(git, merged.tree, path, names)
    shown = tuple(sorted({git.shown(path) for path in paths}))
    return Conflict(base, shown, _capped("\n".join(lines)))


def _parsed(printed: bytes) -> tuple[list[bytes], list[bytes]]:
    """Read what `git merge-tree -z --name-only` printed: files in conflict, and messages about conflicts."""
    fields = iter(printed.split(b"\0")[1:])
    paths = list(iter(lambda: next(fields, b""), b""))
    messages: list[bytes] = []
    while (count := next(fields, b"").strip()).isdigit():
        for _ in range(int(count)):
            next(fields, b"")
        kind, message = next(fields, b""), next(fields, b"")
        if kind.startswith(b"CONFLICT"):
            messages.append(message)
    return paths, messages


async def _hunks(git: Git, tree: str, path: bytes, names: dict[str, str]) -> list[str]:
    """Give a file's hunks in conflict, where it has any: a deleted or binary file has none."""
    if b"\n" in path:
        return []
    done = await git.bare("cat-file", "--batch", stdin=tree.encode() + b":" + path + b"\n")
    header, _, content = done.stdout.partition(b"\n")
    if b" blob " not in header or b"\0" in content[:8000]:
        return []
    text = git.shown(content)
    for commit, name in names.items():
        text = text.replace(commit, clean(name))
    found = list(_cut(text.splitlines()))
    return ["", f"=== {git.shown(path)}", *found] if found else []


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


def _capped(text: str) -> str:
    return text if len(text) <= MOST_TEXT else text[:MOST_TEXT].rpartition("\n")[0] + "\n… (there is more)"
