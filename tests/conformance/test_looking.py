"""The contracts of who looks into commits, `ashep.ports.workspaces.Diffs` and `ashep.ports.verifier.Verifier`,
over memory and the real git. What only the real ones can do has suites of its own: `tests/test_diffs.py` and
`tests/verifier`.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ashep.adapters.git.diffs import GitDiffs
from ashep.adapters.verifier import LocalVerifier
from ashep.core.facts.delivery import Verification
from ashep.core.impact.changes import ChangedFile
from ashep.core.policy.checks import Criteria
from ashep.core.policy.verification_settings import VerificationSettings
from ashep.errors import AshepError
from ashep.extras.simulation.memory.annotations import MemoryDiffs, MemoryVerifier
from ashep.ports.verifier import Verifier, VerifyRequest
from ashep.ports.workspaces import Diffs
from ashep.redaction import Redaction
from tests.conformance.landings import GitLandingWorld, LandingWorld, MemoryLandingWorld
from tests.verifier.place import criteria_of

pytestmark = pytest.mark.usefixtures("git_alone")

NOWHERE = "0" * 39 + "1"


@dataclass
class Place:
    """A repository, and what looks into it."""

    world: LandingWorld
    folder: Path
    diffs: Diffs
    verifier: Verifier
    tree_of: Callable[[str], str]

    async def verify(self, commit: str, base: str | None, criteria: Criteria) -> Verification:
        return await self.verifier.verify(VerifyRequest(self.folder, commit, base, criteria))


@pytest.fixture(params=["memory", pytest.param("git", marks=pytest.mark.real)])
def place(request: pytest.FixtureRequest, folder: Path) -> Place:
    """A repository of each kind, with one commit on main."""
    top = folder.parent / "top"
    if request.param == "memory":
        world = MemoryLandingWorld()
        trees = world.workspaces
        return Place(world, top, MemoryDiffs(trees), MemoryVerifier(trees), trees.tree_of)
    git = GitLandingWorld(top)
    environ = {"PATH": os.environ["PATH"]}

    async def keep(text: str) -> str:
        return text[:8]

    verifier = LocalVerifier(
        VerificationSettings(sandbox="none"), folder.parent / "scratch", keep, Redaction(), environ=environ, hidden=[],
        types={},
    )  # fmt: skip
    return Place(git, top, GitDiffs(top), verifier, lambda commit: git.git("rev-parse", f"{commit}^{{tree}}"))


async def test_what_is_created_modified_and_deleted(place: Place) -> None:
    base = place.world.commit({"gone": "x\ny\n", "edited": "1\n2\n3\n4\n", "same": "same\n"})
    head = place.world.commit({"gone": None, "edited": "1\n2b\n2c\n3\n", "made": "first\n\nlast\n", "none": ""})
    diff = await place.diffs.read(base, head)
    assert (diff.base, diff.head) == (base, head)
    assert diff.files == (
        ChangedFile("edited", "modified", None, 2, 2, ((2, "2b"), (3, "2c")), ((2, "2"), (4, "4"))),
        ChangedFile("gone", "deleted", None, 0, 2, (), ((1, "x"), (2, "y"))),
        ChangedFile("made", "created", None, 3, 0, ((1, "first"), (2, ""), (3, "last"))),
        ChangedFile("none", "created"),
    )
    assert (await place.diffs.read(head, head)).files == ()


async def test_what_others_did_to_the_base_is_no_change_of_the_branch(place: Place) -> None:
    head = place.world.work("ashep/t-1", {"a": "1\n"})
    fork = (await place.diffs.read(head, head)).base
    later = place.world.commit({"b": "theirs\n", "README": "begin again\n"})
    diff = await place.diffs.read(later, head)
    assert [file.path for file in diff.files] == ["a"]
    assert diff.base not in (fork, later), "it is where the two were one"
    taken_in = place.world.work("ashep/t-1", {"a": "2\n"}, merge=True)
    assert [file.path for file in (await place.diffs.read(later, taken_in)).files] == ["a"]
    assert [file.path for file in (await place.diffs.read(diff.base, taken_in)).files] == ["README", "a", "b"]
    newest = place.world.commit({"c": "theirs\n"})
    assert (await place.diffs.read(newest, taken_in)).base == later


async def test_commits_are_found_by_their_ids(place: Place) -> None:
    head = place.world.commit({"a": "1\n"})
    assert await place.diffs.find(head) == head
    assert await place.diffs.find(NOWHERE) is None
    for pair in ((NOWHERE, head), (head, NOWHERE)):
        with pytest.raises(AshepError, match=f"{NOWHERE} is no commit"):
            await place.diffs.read(*pair)


CHECKS: list[tuple[dict[str, Any], str]] = [
    ({"path": "README"}, "passed"),
    ({"path": "./src//main.py"}, "passed"),
    ({"path": "src/none.py"}, "failed"),
    ({"path": "README/none"}, "failed"),
    ({"path": "src"}, "failed"),
    ({"path": "README", "contains": ["beg", "in\n"]}, "passed"),
    ({"path": "README", "contains": ["beg", "end"]}, "failed"),
    ({"path": "."}, "error"),
]


async def test_files_are_checked_in_order_and_people_asked(place: Place) -> None:
    base = place.world.commit({"src/main.py": "print()\n"})
    checks = [{"type": "file_exists", "verify": verify} for verify, _ in CHECKS]
    criteria = criteria_of(*checks, {"type": "manual", "verify": {"question": "Is it beautiful?"}})
    found = await place.verify(base, None, criteria)
    assert [(one.check_id, one.status) for one in found.results] == [
        *((f"c{number}", status) for number, (_, status) in enumerate(CHECKS)), (f"c{len(CHECKS)}", "skipped"),
    ]  # fmt: skip
    assert all(one.message for one in found.results)
    assert (found.commit, found.tree) == (base, place.tree_of(base))


async def test_what_is_found_is_bound_to_the_tree_of_the_commit_that_was_asked_about(place: Place) -> None:
    criteria = criteria_of({"type": "file_exists", "verify": {"path": "a", "contains": ["1"]}})
    first = place.world.work("ashep/t-1", {"a": "1\n"})
    second = place.world.work("ashep/t-1", {"a": "2\n"})
    third = place.world.work("ashep/t-1", {"a": "1\n"})
    found = [await place.verify(commit, None, criteria) for commit in (first, second, third)]
    assert [one.results[0].status for one in found] == ["passed", "failed", "passed"]
    assert found[0].tree == found[2].tree != found[1].tree
    assert [one.commit for one in found][:2] == [first, second]
    assert (await place.verify(second, first, criteria)).results[0].status == "failed", (
        "the base is not what is checked"
    )


async def test_what_was_checked_has_a_hash_of_its_own(place: Place) -> None:
    base = place.world.commit({"a": "1\n"})
    head = place.world.commit({"a": "2\n"})
    one, other = (criteria_of({"type": "file_exists", "verify": {"path": path}}) for path in "ab")
    asked = [(head, base, one), (base, base, one), (head, base, other)]
    first, again, different = [(await place.verify(*request)).checks for request in asked]
    assert first == again != different, "it is of the list, whatever commit is asked about"


async def test_a_commit_that_is_not_there_cannot_be_verified(place: Place) -> None:
    with pytest.raises(AshepError, match=NOWHERE[:12]):
        await place.verify(NOWHERE, None, criteria_of({"type": "file_exists", "verify": {"path": "a"}}))


async def test_nothing_to_check_is_found_to_be_nothing(place: Place) -> None:
    head = place.world.commit({"a": "1\n"})
    found = await place.verify(head, None, Criteria())
    assert (found.commit, found.tree, found.results) == (head, place.tree_of(head), ())
