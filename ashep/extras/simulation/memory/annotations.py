"""Annotations in memory, of the issues of a tracker in memory."""

import json
import posixpath
from collections.abc import Mapping
from difflib import SequenceMatcher

import anyio.lowlevel
from pydantic import JsonValue

from ashep.core.facts.delivery import CheckResult, Verification
from ashep.core.impact.changes import ChangedFile, Diff
from ashep.core.policy.checks import Check, FileExistsCheck, ManualCheck, hash_of
from ashep.errors import AshepError, TrackerRefused
from ashep.extras.simulation.memory.tracker import MemoryTracker
from ashep.extras.simulation.memory.workspaces import MemoryWorkspaces
from ashep.ports.tracker import AnnotatedIssue, IssueDraft, IssuePatch, IssueSummary, IssueText, Seen
from ashep.ports.verifier import VerifyRequest


class MemoryAnnotations:
    """Everything is the tracker's."""

    def __init__(self, tracker: MemoryTracker) -> None:
        self._tracker = tracker

    async def read(self, issue: str) -> AnnotatedIssue | None:
        """Give a copy of what stands there."""
        await anyio.lowlevel.checkpoint()
        text = self._tracker.stored(issue)
        return None if text is None else AnnotatedIssue(text.acceptance, _copy(self._tracker.metadata(issue)))

    async def listed(self, status: str | None) -> tuple[IssueSummary, ...]:
        """List the issues."""
        await anyio.lowlevel.checkpoint()
        return tuple(
            IssueSummary(issue, one.title, one.status, _copy(self._tracker.metadata(issue)))
            for issue, one in sorted(self._tracker.everything().items())
            if status in ("all", one.status) or (status is None and one.status != "closed")
        )

    async def prefix(self) -> str:
        """Give that of the tracker."""
        return (await self._tracker.check()).prefix

    async def marked(self, key: str) -> tuple[tuple[Seen, Mapping[str, JsonValue]], ...]:
        """List them."""
        known = [one for one in sorted(self._tracker.everything()) if key in self._tracker.metadata(one)]
        seen = [found for one in known if (found := await self._tracker.issue(one)) is not None]
        return tuple((one, _copy(self._tracker.metadata(one.issue.id))) for one in seen)

    async def depend(self, issue: str, on: str, *, stands: bool = True) -> None:
        """Change the edge."""
        await self._check(issue)
        self._tracker.person_blocks(issue, on, self._tracker.actor, stands=stands)

    async def create(self, fresh: IssueDraft) -> bool:
        """Add it."""
        await anyio.lowlevel.checkpoint()
        if self._tracker.stored(fresh.id) is not None:
            return False
        text = IssueText(description=fresh.description, acceptance=fresh.acceptance)
        kind, priority, actor = fresh.type, fresh.priority, self._tracker.actor
        parent = next((dependency.on for dependency in fresh.dependencies if dependency.type == "parent-child"), None)
        blocked_by = tuple(dependency.on for dependency in fresh.dependencies if dependency.type == "blocks")
        self._tracker.add(
            fresh.title, id=fresh.id, type=kind, priority=priority, text=text, actor=actor, labels=fresh.labels,
            parent=parent, blocked_by=blocked_by,
        )  # fmt: skip
        self._tracker.metadata(fresh.id).update(_copy(fresh.metadata))
        return True

    async def rewrite(self, issue: str, words: IssuePatch) -> None:
        """Replace it."""
        await self._check(issue)
        self._tracker.person_rewrites(
            issue,
            self._tracker.actor,
            words.acceptance,
            title=None if words.title is None else words.title.strip(),
            description=words.description,
            priority=words.priority,
        )
        self._tracker.metadata(issue).update(_copy(words.metadata))
        if words.add_labels or words.remove_labels:
            await self._tracker.relabel(issue, words.add_labels, words.remove_labels)

    async def annotate(self, issue: str, values: Mapping[str, JsonValue]) -> None:
        """Merge the keys."""
        assert "ashep" not in values, "the stamp is the daemon's"
        await self._check(issue)
        self._tracker.metadata(issue).update(_copy(values))

    async def _check(self, issue: str) -> None:
        await anyio.lowlevel.checkpoint()
        if self._tracker.stored(issue) is None:
            raise TrackerRefused(f"there is no issue {issue}")


def _copy(values: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return json.loads(json.dumps(dict(values)))


class MemoryDiffs:
    """Reads what lies between two commits of `workspaces`, whose base branch has this name."""

    def __init__(self, workspaces: MemoryWorkspaces, base_branch: str = "main") -> None:
        self._workspaces, self._base_branch = workspaces, base_branch

    async def find(self, revision: str) -> str | None:
        """Give the commit that a revision names."""
        if revision == f"refs/heads/{self._base_branch}":
            return self._workspaces.base
        try:
            self._workspaces.holds(revision, revision)
        except AshepError:
            return None
        return revision

    async def read(self, base: str, head: str) -> Diff:
        """Compare the files of a commit with those of where it and the base were one; a rename is a new file here."""
        base = self._workspaces.fork(head, base)
        before, after = self._workspaces.files(base), self._workspaces.files(head)
        changed = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
        return Diff(base, head, tuple(_changed(path, before.get(path), after.get(path)) for path in changed))


def _changed(path: str, before: str | None, after: str | None) -> ChangedFile:
    kind = "created" if before is None else "deleted" if after is None else "modified"
    old, new = (before or "").splitlines(), (after or "").splitlines()
    added, removed = list[tuple[int, str]](), list[tuple[int, str]]()
    for tag, first, last, begin, end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            removed += enumerate(old[first:last], first + 1)
            added += enumerate(new[begin:end], begin + 1)
    return ChangedFile(path, kind, None, len(added), len(removed), tuple(added), tuple(removed))


class MemoryVerifier:
    """Executes `file_exists` on commits of `workspaces`; any other check is the status `error`."""

    def __init__(self, workspaces: MemoryWorkspaces) -> None:
        self.verified: list[str] = []
        """The commits that checks were executed on."""
        self._workspaces = workspaces

    async def verify(self, request: VerifyRequest) -> Verification:
        """Carry the checks out, in order."""
        self.verified.append(request.commit)
        files, tree = self._workspaces.files(request.commit), self._workspaces.tree_of(request.commit)
        results = tuple(_result(check, files) for check in request.criteria.checks)
        return Verification(request.commit, tree, hash_of(request.criteria), results, isolated=None)


def _result(check: Check, files: dict[str, str]) -> CheckResult:
    if isinstance(check, ManualCheck):
        return CheckResult(check.id, "skipped", "a person is asked", 0)
    if not isinstance(check, FileExistsCheck):
        return CheckResult(check.id, "error", f"{check.type} cannot be carried out in memory", 0)
    path = posixpath.normpath(check.verify.path)
    if path == ".":
        return CheckResult(check.id, "error", f"{check.verify.path} is no path of a file", 0)
    text = files.get(path)
    lacking = [part for part in check.verify.contains if text is None or part not in text]
    if text is None or lacking:
        return CheckResult(check.id, "failed", f"{check.verify.path} lacks {lacking or 'everything'}", 0)
    return CheckResult(check.id, "passed", "as expected", 0)
