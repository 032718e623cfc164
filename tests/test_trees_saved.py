"""Nothing is ever lost: whatever an agent left in a tree, each byte of it is reachable after the tree was taken away.

`ASHEP_TREE_STATES=500 pytest tests/test_trees_saved.py` tries so many states; by default a few.
"""

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from ashep.adapters.git.workspaces import salvage
from ashep.errors import AshepError
from tests.tree_states import ACTS, BRANCH, NAMES, Place, place

pytestmark = pytest.mark.slow

_STATES = int(os.environ.get("ASHEP_TREE_STATES", "12"))

_REFUSALS = ("cannot be merged", "on no commit")

Deed = tuple[str, str]


async def _restore(one: Place) -> None:
    await one.spaces.restore(BRANCH, (await one.spaces.list())[0].base)


ENDS: dict[str, Callable[[Place], Any]] = {
    "remove": lambda one: one.spaces.remove(BRANCH),
    "forget": lambda one: one.spaces.remove(BRANCH, forget=True),
    "restore": _restore,
    "seal": lambda one: one.spaces.seal(BRANCH, "t-1/implement.1.1", "Work"),
}


def left_out(deeds: list[Deed], ends: list[str]) -> list[str]:
    """Do these things in a tree, end like this, and give what is lost. A refusal loses nothing, and is shown by it."""
    with place() as one:
        anyio.run(partial(one.spaces.prepare, BRANCH, None, 0))
        for what, name in deeds:
            one.act(what, name)
        for end in ends:
            before = one.bytes_there()
            try:
                anyio.run(ENDS[end], one)
            except AshepError as error:
                if not any(words in str(error) for words in _REFUSALS):
                    raise
            if missing := one.lost(before):
                return [f"{end}: {of}" for of in missing]
            if not one.tree.exists():
                anyio.run(partial(one.spaces.prepare, BRANCH, None, 0))
    return []


EVERYTHING: list[Deed] = [
    ("write", "a.txt"), ("stash", "a.txt"), ("write", "dir/b"), ("stash untracked", "a.txt"),
    ("write", "dir/b"), ("commit all", "a.txt"), ("amend", "a.txt"), ("write", "a.txt"), ("stage", "a.txt"),
    ("write", "a.txt"), ("write", "c.ignored"), ("write", "new\nline"), ("link", "-dash"), ("nested", "a.txt"),
    ("write", "sub/.git"), ("hide", "dir/b"), ("write", "dir/b"),
]  # fmt: skip


@pytest.mark.promise("I3")
@pytest.mark.timeout(300 + 3 * _STATES)
@settings(
    max_examples=_STATES,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    phases=[Phase.explicit, Phase.generate] if _STATES <= 50 else list(Phase), database=None, print_blob=True,
)  # fmt: skip
@given(
    st.lists(st.tuples(st.sampled_from(ACTS), st.sampled_from(NAMES)), min_size=1, max_size=25),
    st.sampled_from([["remove"], ["forget"], ["restore", "remove"], ["seal", "remove"], ["seal", "forget"]]),
)
@example(EVERYTHING, ["remove"])
@example(EVERYTHING, ["seal", "restore", "forget"])
@example([("merge", "a.txt"), ("write", "c.ignored"), ("write", "sp ace")], ["seal", "remove"])
@example([("rebase", "a.txt"), ("write", "ü\r")], ["seal", "remove"])
@example([("cherry-pick", "a.txt"), ("stage all", "a.txt"), ("write", "dir/b")], ["seal", "forget"])
@example([("merge", "a.txt"), ("hide", "a.txt")], ["restore", "remove"])
@example([("write", "a.txt"), ("delete branch", "a.txt")], ["seal", "remove"])
@example([("write", "a.txt"), ("write", ".gitattributes")], ["seal", "remove"])
@example([("delete folder", "dir/b"), ("write", "dir"), ("stage all", "a.txt"), ("commit", "a.txt")], ["restore"])
def test_nothing_is_lost(deeds: list[Deed], ends: list[str]) -> None:
    assert left_out(deeds, ends) == []


@pytest.mark.promise("I3")
@pytest.mark.parametrize(("part", "deeds"), [
    ("_save_index", [("write", "a.txt"), ("stage", "a.txt"), ("write", "a.txt")]),
    ("_save_files", [("write", "new\nline")]),
    ("_save_commits", [("write", "a.txt"), ("stash", "a.txt"), ("write", "a.txt"), ("stash", "a.txt")]),
    ("_save_commits", [("write", "a.txt"), ("commit all", "a.txt"), ("amend", "a.txt")]),
])  # fmt: skip
def test_a_save_that_leaves_something_out_is_found(
    part: str, deeds: list[Deed], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(*_: object) -> None:
        pass

    monkeypatch.setattr(salvage, part, nothing)
    assert left_out(deeds, ["remove"]) != []
