"""Work trees of issues in memory, and the landing of what is in them: commits with made-up ids, edited by a script."""

import hashlib
from collections import deque
from collections.abc import KeysView, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath
from typing import Any

from ashep.bmad.paths import SPRINT
from ashep.bmad.review_round import wishes, write_round
from ashep.bmad.yaml_merge import NotMerged
from ashep.bmad.yaml_merge import merge as merge_keys
from ashep.core.delivery.stories import beyond_leave, mended, not_taken, put_back
from ashep.core.facts.delivery import Amendment, Ground, StoryLeft
from ashep.core.policy.globs import Globs
from ashep.core.policy.landing import LandingSettings
from ashep.errors import AshepError
from ashep.ports.landing import HEAD, Advanced, AlreadyLanded, Candidate, Conflict, Integrated, MoveRefused
from ashep.ports.workspaces import Amended, Changes, Commit, Landed, Prepared, Removed, SealedBranch, WorkspaceInfo

Files = dict[str, str]
"""Content by path."""

_KEYED = Globs(LandingSettings().merge_by_key, exact=True)


@dataclass(frozen=True, slots=True)
class _Snapshot:
    commit: Commit
    files: Files
    parent: str | None = None
    other: str | None = None
    """The second parent of a merge."""


@dataclass(slots=True)
class _Branch:
    base: str
    head: str
    tree: Files | None = None
    """What the tree holds; None: there is none."""
    slots: list[int] = field(default_factory=list[int])


class MemoryWorkspaces:
    """Branches and their trees; `edit` plays an agent, `commit` a person on the base branch. The same for each life.

    `merge` and `advance` are for `MemoryLanding`. Nothing is bound to a clock: `WorkspaceInfo.used` is always the same.
    """

    def __init__(self, files: Files | None = None, *, room: bool = True) -> None:
        """`files`: what the base branch holds at first; `room`: whether the disk has room for another tree."""
        self.room = room
        self.resisting = set[str]()
        """Branches whose trees nobody can seal as they are."""
        self.saved: dict[str, Files | str] = {}
        """What was saved, by ref: files, or the id of a commit."""
        self._snapshots: dict[str, _Snapshot] = {}
        self._branches: dict[str, _Branch] = {}
        self.base = self._commit("Begin", files or {}, None)
        """The commit that the base branch has now."""

    # --- whoever works ---

    def edit(self, branch: str, path: str, content: str | None) -> None:
        """Write a file in a branch's tree; None deletes it."""
        tree = self._tree(branch)
        if content is None:
            tree.pop(path, None)
        else:
            tree[path] = content

    def read(self, branch: str) -> Files:
        """Give what a branch's tree holds."""
        return dict(self._tree(branch))

    def commit(self, path: str, content: str | None, subject: str = "Edit") -> str:
        """Commit a change of one file to the base branch, as a person does, and give the commit's id."""
        files = self.files(self.base) | ({} if content is None else {path: content})
        if content is None:
            del files[path]
        self.base = self._commit(subject, files, self.base)
        return self.base

    def grow(self, commit: str, path: str, content: str, subject: str) -> str:
        """Commit a change of one file after a commit, on no branch, as somebody does elsewhere, and give its id."""
        return self._commit(subject, self.files(commit) | {path: content}, commit)

    def take_in(self, branch: str) -> str:
        """Merge the base branch into a branch, whose own side wins, as an agent does that resolves a conflict."""
        known = self._find_branch(branch)
        _, files = self._merged(known.head, self.base)
        known.head = self._commit("Merge the base", files, known.head, self.base)
        known.tree = dict(files)
        return known.head

    def files(self, commit: str) -> Files:
        """Give what a commit holds. Raises `AshepError` where there is no such commit."""
        self._require_commits(commit)
        return dict(self._snapshots[commit].files)

    def fork(self, one: str, other: str) -> str:
        """Give the newest commit that two have in common; where there are several, the first on one's line."""
        self._require_commits(one, other)
        before = self._ancestors(other)
        common, below = [commit for commit in self._ancestors(one) if commit in before], set[str]()
        for commit in common:
            below |= set() if commit in below else self._ancestors(commit) - {commit}
        return next(commit for commit in common if commit not in below)

    def tree_of(self, commit: str) -> str:
        """Give a commit's git tree hash."""
        return self.name_tree(self._snapshots[commit].files)

    def name_tree(self, files: Files) -> str:
        """Give the id of a tree; git's own, where there is a repository."""
        return _hash("tree", *(f"{path}\0{content}" for path, content in sorted(files.items())))

    def name_commit(self, subject: str, files: Files, parents: tuple[str, ...], run: str) -> str:
        """Give the id of a new commit; git's own, where there is a repository."""
        return _hash("commit", subject, run, *(*parents, "", "")[:2], *map(repr, sorted(files.items())))

    def holds(self, later: str, earlier: str) -> bool:
        """Say whether a commit comes after another, or is it. Raises `AshepError` where there is no such commit."""
        self._require_commits(later, earlier)
        return earlier in self._ancestors(later)

    def merge(self, head: str, onto: str, subject: str, *, squash: bool = False) -> str | tuple[str, ...]:
        """Merge a commit onto another, and give the new commit, or the files that both changed; no branch moves."""
        conflicts, files = self._merged(head, onto)
        return conflicts or self._commit(subject, files, onto, None if squash else head)

    def brings_nothing(self, head: str, onto: str) -> bool:
        """Say whether merging a commit onto another changes nothing there."""
        conflicts, files = self._merged(head, onto)
        return not conflicts and files == self.files(onto)

    def history(self) -> tuple[Commit, ...]:
        """Give the commits that the base branch holds, the newest first."""
        return tuple(self._snapshots[one].commit for one in self._ancestors(self.base))

    def claimed(self, claim: str, base: str) -> bool:
        """Say whether the subject of a commit of this history ends with `claim`."""
        return any(self._snapshots[ancestor].commit.subject.endswith(claim) for ancestor in self._ancestors(base))

    def advance(self, old: str, new: str) -> bool:
        """Move the base branch from one commit to another, if it is still there."""
        if self.base != old:
            return False
        self.base = new
        return True

    def _merged(self, head: str, onto: str) -> tuple[tuple[str, ...], Files]:
        """Merge two commits' files, by file: those that both changed, and what comes of it where the head's win."""
        common = self.fork(head, onto)
        old, mine, theirs = self.files(common), self.files(head), self.files(onto)
        merged, conflicts = Files(), list[str]()
        for path in sorted({*old, *mine, *theirs}):
            before, ours, other = old.get(path), mine.get(path), theirs.get(path)
            if ours != before and other != before and ours != other:
                if (content := _by_key(path, before, other, ours)) is not None:
                    merged[path] = content
                    continue
                conflicts.append(path)
            if (content := ours if ours != before else other) is not None:
                merged[path] = content
        return tuple(conflicts), merged

    # --- the port ---

    async def prepare(self, branch: str, base: str | None, slot: int, ground: Ground = "own") -> Prepared:
        """See to it that branch and tree stand, or what the branch holds is laid out."""
        if ground == "fresh":
            await self.remove(branch)
        known = self._branches.get(branch)
        if known is None or known.tree is None or ground == "sealed":
            if not self.room:
                raise AshepError("no new work tree: the disk has less room than worker.disk_floor asks for")
            begin = base or self.base
            self._require_commits(begin)
            known = self._branches.setdefault(branch, _Branch(begin, begin))
            if ground == "sealed":
                return Prepared(f"/grounds/{branch}", known.base, known.head)
            known.tree = self.files(known.head)
            known.slots.append(slot)
        return Prepared(f"/trees/{branch}", known.base, known.head)

    async def seal(self, branch: str, run: str, message: str) -> SealedBranch:
        """Commit what is uncommitted."""
        known = self._find_branch(branch)
        if branch in self.resisting:
            raise AshepError(f"git add: what is in the tree of {branch} is not taken")
        gone = f"its work tree is gone; the next run gets it anew, from {branch}"
        lacking = () if known.tree is not None else (gone,)
        if known.tree is not None and known.tree != self.files(known.head):
            known.head = self._commit(message.splitlines()[0], known.tree, known.head, run=run)
        tree, commits = self.tree_of(known.head), self._list_commits(known.base, known.head)
        return SealedBranch(known.head, tree, commits, lacking, lacking=lacking)

    async def amend(self, branch: str, run: str, head: str, wanted: Amendment) -> Amended:
        """Put back what a run may not change, and write into its story; a sprint status is looked for next to it."""
        since, now = self.files(wanted.since), self.files(head)
        known, later = self.fork(head, wanted.fits or wanted.since), self.fork(head, self.base)
        forked = later if wanted.onto and self.holds(later, known) else known
        fork = self.files(forked)
        refused = list[str]()
        changed = [path for path in sorted({*since, *now}) if since.get(path) != now.get(path)]
        beside = str(PurePosixPath(wanted.story).parent / SPRINT)
        sprint = next((one for one in (beside, SPRINT) if wanted.story and one in fork), "")
        if beyond := [one for one in beyond_leave(wanted, changed) if one != sprint]:
            mine = {path: now.get(path) for path in changed if path not in beyond}
            now, head = {path: text for path, text in (since | mine).items() if text is not None}, wanted.since
            refused.append(put_back(beyond))
        left = None
        if wanted.story:
            before, after = fork.get(sprint), now.get(sprint)
            if sprint in changed and (said := wishes(_data(before), _data(after))):
                refused.append(not_taken(sprint, said))
            status: Any = wanted.status or None
            found = (since, fork) if self.holds(wanted.since, forked) else (fork, since)
            others = [text.encode() for one in found if not wanted.person and (text := one.get(wanted.story))]
            story = _data(now.get(wanted.story))
            made = write_round(wanted.story, story, _data(before), status, wanted.remains, run, others)
            if made.mended:
                refused.append(mended(wanted.story))
            for path, data in ((wanted.story, made.story), (sprint, made.sprint)):
                if data is not None:
                    now[path] = data.decode()
            left = StoryLeft(made.status, made.state, made.lacking, made.blocked, made.put_off)
        known = self._find_branch(branch)
        if now != self.files(known.head):
            self._save(branch, known, unless=head)
            known.head = head if now == self.files(head) else self._commit("Amend", now, head, run=run)
            known.tree = dict(now)
        return Amended(known.head, tuple(refused), left)

    def lose(self, branch: str) -> None:
        """Take the tree of a branch away, as an agent does that removes its own folder."""
        self._find_branch(branch).tree = None

    async def changes(self, branch: str, base: str) -> Changes:
        """Say what lies between the base and the branch."""
        head = self._find_branch(branch).head
        old, new = self.files(base), self.files(head)
        paths = [path for path in sorted({*old, *new}) if old.get(path) != new.get(path)]
        return Changes(
            commits=self._list_commits(base, head),
            stat="\n".join(f" {path} | changed" for path in paths),
            diff="\n".join(f"+++ {path}\n-{old.get(path, '')}\n+{new.get(path, '')}" for path in paths),
        )

    async def restore(self, branch: str, head: str) -> tuple[str, ...]:
        """Set branch and tree to a commit."""
        known = self._find_branch(branch)
        self._require_commits(head)
        saved = self._save(branch, known, unless=head)
        known.head, known.tree = head, self.files(head)
        return saved

    async def remove(self, branch: str, *, forget: bool = False, drop_ignored: bool = False) -> Removed:
        """Take the tree away, and the branch where it is to be forgotten."""
        known = self._branches.get(branch)
        if known is None:
            return Removed()
        saved = self._save(branch, known, unless=self.base if forget else known.head)
        freed = sum(map(len, (known.tree or {}).values()))
        known.tree = None
        if forget:
            del self._branches[branch]
        return Removed(saved, freed)

    async def retire(self, landed: Landed, quiet: timedelta) -> Removed:
        """Take tree and branch away where the base has it all."""
        known, held = self._branches.get(landed.branch), self._ancestors(self.base)
        if known is None:
            return Removed()
        brought = known.head == landed.head and (landed.commit in held or self.brings_nothing(known.head, self.base))
        if not (known.head in held or brought):
            raise AshepError(f"{landed.branch} has commits that the base branch does not hold")
        if known.tree is not None and known.tree != self.files(known.head):
            raise AshepError("something in it is not committed")
        del self._branches[landed.branch]
        return Removed((), sum(map(len, (known.tree or {}).values())))

    async def list(self, landed: Mapping[str, str] | None = None) -> tuple[WorkspaceInfo, ...]:
        """Give every tree."""
        return self.standing(landed)

    def standing(self, landed: Mapping[str, str] | None = None) -> tuple[WorkspaceInfo, ...]:
        """Give every tree, at once."""
        held = self._ancestors(self.base)
        return tuple(
            WorkspaceInfo(
                branch=name,
                path=f"/trees/{name}",
                base=branch.base,
                head=branch.head,
                dirty=branch.tree != self.files(branch.head),
                size=sum(map(len, branch.tree.values())),
                used=datetime.fromtimestamp(0, UTC),
                merged=branch.head in held,
                landed=branch.head not in held
                and ((landed or {}).get(branch.head) in held or self.brings_nothing(branch.head, self.base)),
            )
            for name, branch in sorted(self._branches.items())
            if branch.tree is not None
        )

    # --- inside ---

    def _require_commits(self, *commits: str) -> None:
        for one in commits:
            if one not in self._snapshots:
                raise AshepError(f"{one} is no commit of this repository")

    def _find_branch(self, branch: str) -> _Branch:
        if branch not in self._branches:
            raise AshepError(f"there is no branch {branch}")
        return self._branches[branch]

    def _tree(self, branch: str) -> Files:
        tree = self._find_branch(branch).tree
        if tree is None:
            raise AshepError(f"the branch {branch} has no work tree")
        return tree

    def _commit(
        self, subject: str, files: Files, parent: str | None, other: str | None = None, *, run: str | None = None
    ) -> str:
        sha = self.name_commit(subject, files, tuple(filter(None, (parent, other))), run or "")
        self._snapshots[sha] = _Snapshot(Commit(sha, subject), dict(files), parent, other)
        return sha

    def _save(self, branch: str, known: _Branch, unless: str) -> tuple[str, ...]:
        """Keep what is not reachable from `unless` and the base branch."""
        prefix = f"refs/ashep/saved/{branch}/{len(self.saved) + 1}"
        kept = dict[str, Files | str]()
        if known.tree is not None and known.tree != self.files(known.head):
            kept[f"{prefix}/files"] = dict(known.tree)
        if known.head not in self._ancestors(unless) | self._ancestors(self.base):
            kept[f"{prefix}/head"] = known.head
        self.saved |= kept
        return tuple(kept)

    def _ancestors(self, commit: str) -> KeysView[str]:
        """Give a commit and its ancestors, the nearest first."""
        found, queue = dict[str, None](), deque[str | None]([commit])
        while queue:
            if (one := queue.popleft()) is not None and one not in found:
                found[one] = None
                queue += [self._snapshots[one].parent, self._snapshots[one].other]
        return found.keys()

    def _list_commits(self, base: str, head: str) -> tuple[Commit, ...]:
        before = self._ancestors(base)
        newest_first = [self._snapshots[one].commit for one in self._ancestors(head) if one not in before]
        return tuple(reversed(newest_first))


def _data(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def _by_key(path: str, *versions: str | None) -> str | None:
    """Merge what came before, the base's and the branch's by key; None: it is none of these files, or in conflict."""
    if None in versions or not _KEYED.has(path):
        return None
    old, base, branch = ((version or "").encode() for version in versions)
    try:
        return merge_keys(old, base, branch).decode()
    except NotMerged:
        return None


def _hash(*words: str) -> str:
    return hashlib.sha1("\0".join(words).encode(), usedforsecurity=False).hexdigest()


class MemoryLanding:
    """Lands on the base branch of `workspaces`; conflicts are files that both sides changed.

    `refuses` is what `advance` says instead of moving, as where a person has uncommitted changes; None: it moves.
    `edited` are files that a person has changed where the base is checked out.
    """

    def __init__(self, workspaces: MemoryWorkspaces, base_branch: str = "main") -> None:
        self.refuses: MoveRefused | None = None
        self.edited = set[str]()
        self._workspaces, self._base_branch = workspaces, base_branch

    async def settle(self) -> None:
        """Nothing is ever half done here."""

    async def tip(self, base_branch: str) -> str | None:
        """Give the base's newest commit."""
        return self._workspaces.base if base_branch == self._base_branch else None

    async def landed(self, head: str, base_branch: str) -> bool:
        """Say whether the base holds all that `head` brings, or held it once."""
        base = await self.tip(base_branch)
        return base is not None and self.holds(base, head)

    def holds(self, base: str, head: str) -> bool:
        """Say whether a base holds all that `head` brings, or held it once."""
        held = self._workspaces.holds(base, head) or self._workspaces.claimed(_claim(head), base)
        return held or self._workspaces.brings_nothing(head, base)

    async def integrate(self, candidate: Candidate) -> Integrated | Conflict | AlreadyLanded:
        """Bring a candidate onto the newest base; rebasing is squashing here."""
        base, head = await self.tip(candidate.base_branch), candidate.head
        if base is None:
            raise AshepError(f"there is no branch {candidate.base_branch}")
        if self.holds(base, head):
            return AlreadyLanded(base)
        subject = f"{candidate.message.partition(chr(10))[0] or f'Land {candidate.branch}'} {_claim(head)}"
        made = self._workspaces.merge(head, base, subject, squash=candidate.method != "merge")
        if isinstance(made, str):
            return Integrated(base, made, self._workspaces.tree_of(made))
        sides = (
            (candidate.base_branch, self._workspaces.files(base)),
            (candidate.branch, self._workspaces.files(head)),
        )
        lines = [f"{candidate.branch} and {candidate.base_branch} are in conflict in {len(made)} files:"]
        lines += [f"{path}: {name} has {files.get(path)!r}" for path in made for name, files in sides]
        return Conflict(base, made, "\n".join(lines))

    async def advance(self, base_branch: str, old: str, new: str) -> Advanced | MoveRefused:
        """Move the base."""
        now = await self.tip(base_branch)
        if now is None:
            return MoveRefused("gone", f"there is no branch {base_branch}")
        if self._workspaces.holds(now, new):
            return Advanced(now)
        was, becomes = self._workspaces.files(old), self._workspaces.files(new)
        if mine := sorted(path for path in self.edited if was.get(path) != becomes.get(path)):
            return MoveRefused("dirty", f"{base_branch} is checked out, and there are uncommitted changes: {mine[0]}")
        if now != old or not self._workspaces.holds(new, old):
            return MoveRefused("moved", f"{base_branch} is at {now[:12]}, not at {old[:12]}, or is not held")
        if self.refuses is not None:
            return self.refuses
        self._workspaces.advance(old, new)
        return Advanced(new)

    async def forget(self, branch: str) -> None:
        """Nothing is kept here."""


def _claim(head: str) -> str:
    return f"[{HEAD}: {head}]"
