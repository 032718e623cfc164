"""A picture that takes long to draw: the page learns how far it is, and a program gets its answer once it is there."""

import threading
from collections.abc import Callable
from pathlib import Path

import anyio
import httpx
import pytest

from ashep.api.handlers import drawing
from ashep.api.handlers.drawing import PREFERENCE, NotReady, PictureDrawer
from ashep.api.routes import V1
from ashep.config import write_starter
from ashep.config.files import find_checked_out_branch
from ashep.errors import AshepError
from ashep.store import read_model
from tests.recorded import life
from tests.service.worlds import World, git, repository

pytestmark = pytest.mark.anyio


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """One with a journal that nobody has drawn."""
    project = repository(tmp_path / "shop")
    write_starter(project / ".agent-shepherd")
    life(project / ".agent-shepherd" / "state", issues=3, drawn=False, until="person")
    return project


async def test_who_asks_is_told_how_far_the_journal_is_read(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on, draw = threading.Event(), read_model._draw  # pyright: ignore[reportPrivateUsage] - it is held there

    def hold(state: Path, scratch: Path, say: Callable[[str], None], progress: Callable[[int, int], None]) -> Path:
        progress(43, 100)
        goes_on.wait(60)
        return draw(state, scratch, say, progress)

    monkeypatch.setattr(drawing, "PATIENCE", 0.05)
    monkeypatch.setattr(read_model, "_draw", hold)
    async with World(project).client() as client:
        for path in ("/now", "/issues", "/answers"):
            answer = await client.get(V1 + path, headers={"Prefer": PREFERENCE})
            problem = answer.json()
            assert (answer.status_code, answer.headers["retry-after"], problem["progress"]) == (503, "1", 0.43)
            assert problem["detail"] == "Reading the journal for the first time: 43 %"
        answers = list[httpx.Response]()
        async with anyio.create_task_group() as group:
            group.start_soon(ask_as_a_program, client, answers)
            await anyio.sleep(0.2)
            assert not answers
            goes_on.set()
        (answer,) = answers
        assert answer.json()["project"].items() >= {"name": "shop", "base": "main"}.items()
        assert (await client.get(f"{V1}/nowhere")).json()["progress"] is None


async def ask_as_a_program(client: httpx.AsyncClient, answers: list[httpx.Response]) -> None:
    """Without `Prefer` an answer comes once the picture is there."""
    answers.append(await client.get(f"{V1}/now"))


def test_an_ending_server_does_not_read_to_the_end(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = project / ".agent-shepherd" / "state"
    monkeypatch.setattr("ashep.store.projection.CHUNK", 1)
    drawer = PictureDrawer(state, lambda _: None)
    drawer.end()
    with pytest.raises(AshepError, match="the server ends") as ended:
        drawer.draw()
    assert not isinstance(ended.value, NotReady)
    assert [item.name for item in state.iterdir() if item.name.startswith(("redraw-", "ashep.db"))] == []


async def test_words_find_issues_and_runs(project: Path) -> None:
    async with World(project).client() as client:

        async def find(path: str, q: str) -> list[str]:
            items = (await client.get(V1 + path, params={"q": q})).json()["items"]
            return [item[path[1:-1]] for item in items]

        assert await find("/issues", "t-2 title") == ["t-2"]
        assert await find("/issues", "t-2 zzz") == []
        assert await find("/runs", "IMPL t-1") == ["t-1/implement.1.1"]
        assert await find("/runs", "_") == []
        counts = (await client.get(f"{V1}/runs", params={"q": "t-1"})).json()
        assert counts["total"] == sum(counts["states"].values()) == len(await find("/runs", "t-1"))


def test_the_branch_that_is_checked_out_is_read_without_git(project: Path) -> None:
    assert find_checked_out_branch(project) == "main"
    git(project, "worktree", "add", "-q", "-b", "a/b", str(project.parent / "other"))
    assert find_checked_out_branch(project.parent / "other") == "a/b"
    git(project, "checkout", "-q", "--detach")
    assert find_checked_out_branch(project) is None
    assert find_checked_out_branch(project.parent) is None
