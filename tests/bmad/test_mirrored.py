"""Stories and their issues, in memory: whoever is killed leaves what the next one completes."""

import subprocess
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from ashep.actions.story_sync import Keeping, Mirror
from ashep.adapters.git.user_work_tree import GitTree
from ashep.core.policy.settings import Labels
from ashep.errors import TrackerUnavailable, UsageError
from ashep.extras.simulation.memory.annotations import MemoryAnnotations
from ashep.extras.simulation.memory.tracker import MemoryTracker
from ashep.ports.tracker import IssueDraft, IssuePatch, Seen
from tests.core.given import T0

SPEC = "---\ntitle: {title}\nstatus: {said}\n---\n\n## Acceptance Criteria\n\n1. a\n\n## Tasks\n\n- [ ] b\n"
TURNED = "- id: '3'\n  title: Three\n- id: '2'\n  title: Two\n- id: '1'\n  title: One\n"
PLAN = "- id: '1'\n  title: One\n- id: '2'\n  title: Two\n  done_checkpoint: true\n- id: '3'\n  title: Three\n"


class Killed(Exception):
    """It is over here."""


class Counting(MemoryAnnotations):
    """Counts what is asked of the tracker, and ends with the write of a certain number, once that has been made."""

    def __init__(self, tracker: MemoryTracker, most: int = 1000) -> None:
        super().__init__(tracker)
        self.calls, self.left = 0, most

    async def marked(self, key: str) -> tuple[tuple[Seen, Mapping[str, JsonValue]], ...]:
        self.calls += 1
        return await super().marked(key)

    async def create(self, fresh: IssueDraft) -> bool:
        return self._made(await super().create(fresh))

    async def rewrite(self, issue: str, words: IssuePatch) -> None:
        self._made(await super().rewrite(issue, words))

    async def depend(self, issue: str, on: str, *, stands: bool = True) -> None:
        self._made(await super().depend(issue, on, stands=stands))

    def _made(self, given: Any) -> Any:
        self.calls, self.left = self.calls + 1, self.left - 1
        if not self.left:
            raise Killed
        return given


def put(root: Path, plan: str, **said: str) -> None:
    folder = root / "_bmad-output" / "specs" / "stories"
    folder.mkdir(parents=True, exist_ok=True)
    (folder.parent / "stories.yaml").write_text(plan)
    for number, word in said.items():
        (folder / f"{number[1:]}-x.md").write_text(SPEC.format(title=f"T{number}", said=word))


def mirror(root: Path, annotations: MemoryAnnotations) -> Mirror:
    return Mirror(root, Labels(), annotations, GitTree(root))


async def lived(root: Path, number: int) -> dict[str, Any]:
    """Mirror stories, change them all and mirror them again, each killed at this write; give what is there then."""
    tracker = MemoryTracker(lambda: T0, "Pat")
    for plan, said in (
        (PLAN, ("ready-for-dev", "draft", "in-review")),
        (TURNED, ("in-review", "ready-for-dev", "draft")),
    ):
        put(root, plan, s1=said[0], s2=said[1], s3=said[2])
        with suppress(Killed):
            await mirror(root, Counting(tracker, number)).sync()
        await mirror(root, Counting(tracker)).sync()
    rest = Counting(tracker)
    done = await mirror(root, rest).sync()
    assert (done.plan.made, done.plan.changed, rest.calls) == ((), (), 1), "one look, where nothing is to be written"
    seen = [(one, tracker.metadata(one.id)) for one in tracker.everything().values()]
    return {one.id: (one.title, one.labels, one.blocked_by, dict(data)) for one, data in seen}


async def test_a_kill_after_any_write_doubles_nothing_and_the_next_one_completes_it(tmp_path: Path) -> None:
    whole = await lived(tmp_path, 1000)
    assert sorted((title, labels[0], len(blocked_by)) for title, labels, blocked_by, _ in whole.values()) == [
        ("1: Ts1", "phase:reviewer", 1), ("2: Ts2", "policy:bmad-story", 1), ("3: Ts3", "phase:reviewer", 0),
    ]  # fmt: skip
    for number in range(1, 8):
        assert await lived(tmp_path, number) == whole, number


async def test_a_daemon_asks_the_tracker_only_where_a_story_has_changed_and_tells_things_once(tmp_path: Path) -> None:
    put(tmp_path, PLAN, s1="ready-for-dev", s2="draft")
    annotations, said = Counting(MemoryTracker(lambda: T0, "ashep")), list[str]()
    keeping = Keeping(mirror(tmp_path, annotations), said.append)
    await keeping.once()
    await keeping.once()
    assert (annotations.calls, said[0]) == (2, "1 issue of stories written")
    assert [line.split(": ", 1)[1] for line in said[1:]] == ["no state follows from draft"]
    put(tmp_path, PLAN, s2="ready-for-dev")
    await keeping.once()
    assert annotations.calls == 4
    assert said[2:] == ["1 issue of stories written"]


async def test_a_tracker_that_is_away_is_asked_again(tmp_path: Path) -> None:
    class Away(Counting):
        async def marked(self, key: str) -> Any:
            if not self.calls:
                self.calls += 1
                raise TrackerUnavailable("away")
            return await super().marked(key)

    put(tmp_path, PLAN, s1="ready-for-dev")
    said = list[str]()
    keeping = Keeping(mirror(tmp_path, Away(MemoryTracker(lambda: T0, "ashep"))), said.append)
    await keeping.once()
    await keeping.once()
    assert said == ["stories are not kept as issues: away", "1 issue of stories written"]


async def test_who_is_meant_is_found_or_asked_for(tmp_path: Path) -> None:
    put(tmp_path, PLAN, s1="ready-for-dev")
    with pytest.raises(UsageError, match="there is no story 9"):
        await mirror(tmp_path, Counting(MemoryTracker(lambda: T0, "Pat"))).sync(["9"])
    with pytest.raises(UsageError, match="no story is of epic 4"):
        await mirror(tmp_path, Counting(MemoryTracker(lambda: T0, "Pat"))).sync(epic="4")


async def test_git_says_in_one_call_what_it_has_not_got(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "[b]"
    folder.mkdir(parents=True)
    git = partial(subprocess.run, cwd=tmp_path, check=True, capture_output=True)
    git(["git", "init", "-q"])
    (tmp_path / ".gitignore").write_text("ignored/\n*.tmp.md\n")
    for name in ("same.md", "other.md", "staged.md"):
        (folder / name).write_text("x")
    git(["git", "add", "a/[[]b]/same.md", "a/[[]b]/other.md"])
    git(["git", "-c", "user.name=P", "-c", "user.email=p@x", "commit", "-qm", "x"])
    git(["git", "add", "."])
    (folder / "other.md").write_text("y")
    (folder / "ignored").mkdir()
    more = ("new ö.md", "x.tmp.md", "ignored/in.md")
    for name in more:
        (folder / name).write_text("x")
    names = [f"[b]/{name}" for name in ("same.md", "other.md", "staged.md", *more)]
    tree = GitTree(tmp_path / "a")
    assert await tree.uncommitted(names) == {
        "[b]/other.md": "changed", "[b]/staged.md": "new", **{f"[b]/{name}": "new" for name in more},
    }  # fmt: skip
    assert await GitTree(Path("/dev/shm")).uncommitted(["x.md"]) == {}
