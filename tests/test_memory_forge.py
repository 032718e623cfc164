"""The forge in memory does what the real ones do (`tests/conformance/test_forge.py`), as far as a life can tell."""

import pytest

from ashep.core.delivery.pull_request_body import marker
from ashep.errors import AshepError, ForgeRefused, ForgeUnavailable
from ashep.extras.simulation.memory.workspaces import MemoryWorkspaces
from ashep.ports.landing import Forge, NotPushed, PullRequest, Pushed, Remote
from tests.memory import MemoryForge

REQUEST = PullRequest("i1/t-1/1", "ashep/t-1", "main", "Do it (t-1)", f"Done.\n\n{marker('i1/t-1/1')}\n")


@pytest.fixture
def workspaces() -> MemoryWorkspaces:
    return MemoryWorkspaces({"a": "1"})


@pytest.fixture
def site(workspaces: MemoryWorkspaces) -> MemoryForge:
    return MemoryForge(workspaces)


async def test_one_is_opened_and_never_two(site: MemoryForge) -> None:
    forge: Forge = site
    site.loses_answer = True
    with pytest.raises(ForgeUnavailable) as lost:
        await forge.open(REQUEST)
    assert lost.value.unknown
    opened = await forge.open(REQUEST)
    assert await forge.find(REQUEST.key, REQUEST.branch, REQUEST.base) == opened
    assert len(site.requests) == 1
    site.ends(opened.number, "closed", "anna")
    assert await forge.open(REQUEST) == opened, "what a person closed is not opened again"
    again = PullRequest("i1/t-1/2", "ashep/t-1", "main", "Again", marker("i1/t-1/2"))
    assert (await forge.open(again)).number != opened.number


async def test_a_persons_open_one_is_taken(site: MemoryForge) -> None:
    site.opens("ashep/t-1", "release", REQUEST.body)
    site.ends(site.opens("ashep/t-1"), "closed", "anna")
    assert await site.find(REQUEST.key, REQUEST.branch, REQUEST.base) is None
    theirs = site.opens("ashep/t-1")
    assert (await site.open(REQUEST)).number == theirs


async def test_what_people_and_ci_did(site: MemoryForge) -> None:
    number = (await site.open(REQUEST)).number
    site.says(number, "comment", "anna", "Why?")
    site.says(number, "approved", "bert", "")
    site.checks(number, "failing", "lint", "docs")
    site.ends(number, "merged", "anna", "c" * 40)
    state = await site.state(number)
    assert (state.state, state.by, state.merged_as, state.ci, state.failing) == (
        "merged", "anna", "c" * 40, "failing", ("docs", "lint"),
    )  # fmt: skip
    assert [(one.kind, one.by) for one in state.said] == [("comment", "anna"), ("approved", "bert")]
    with pytest.raises(ForgeRefused):
        await site.state(99)
    site.away = ForgeUnavailable("away", retry_after=5)
    with pytest.raises(ForgeUnavailable):
        await site.state(number)


async def test_branches_are_pushed_forward_only(site: MemoryForge, workspaces: MemoryWorkspaces) -> None:
    remote: Remote = site
    first, second = workspaces.commit("a", "2"), workspaces.commit("a", "3")
    assert await remote.head("ashep/t-1") is None
    assert await remote.push("ashep/t-1", first, "main") == Pushed(first)
    assert (
        await remote.push("ashep/t-1", second, "main")
        == Pushed(second)
        == await remote.push("ashep/t-1", second, "main")
    )
    for commit, branch, code in ((first, "ashep/t-1", "theirs"), (second, "main", "protected")):
        refused = await remote.push(branch, commit, "main")
        assert isinstance(refused, NotPushed)
        assert refused.code == code
    site.branches["ashep/t-1"] = "f" * 40
    assert isinstance(await remote.push("ashep/t-1", second, "main"), NotPushed)
    with pytest.raises(AshepError):
        await remote.push("ashep/t-1", "e" * 40, "main")
