"""How it stood at a moment is told the same over HTTP and on the command line, and while it is made ready."""

from datetime import datetime, timedelta
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from ashep.api.handlers import point_in_time
from ashep.api.routes import V1
from ashep.config import write_starter
from ashep.store import playback
from ashep.store.checkpoints import NAME
from tests.recorded import Recorded, life
from tests.service.test_page_api import printed
from tests.service.worlds import World, repository

pytestmark = pytest.mark.anyio


@pytest.fixture
def lived(tmp_path: Path) -> tuple[World, Recorded]:
    project = repository(tmp_path / "project")
    write_starter(project / ".agent-shepherd")
    made = life(project / ".agent-shepherd" / "state", issues=5, until="person")
    return World(project), made


async def test_it_says_what_the_command_says_and_now_what_now_says(
    lived: tuple[World, Recorded], monkeypatch: pytest.MonkeyPatch
) -> None:
    (world, made), state = lived, lived[0].folder / "state"
    monkeypatch.setattr(playback, "FOLDED", 5)
    monkeypatch.setattr(point_in_time, "LOOK", 0.05)
    world.clock = made.world.now + timedelta(days=1)
    async with world.client() as client:
        end = (await client.get(f"{V1}/then", params={"at": "0m"})).json()
        assert (end["ready"], end["counts"]) == (False, None), "nothing is made, and it is too much for one answer"
        async with anyio.create_task_group() as group:
            group.start_soon(point_in_time.keep, world.pictures)
            with anyio.fail_after(60):
                while not end["ready"]:
                    await anyio.sleep(0.05)
                    end = (await client.get(f"{V1}/then", params={"at": "0m", "issue": "t-1"})).json()
            group.cancel_scope.cancel()
        assert (state / NAME).stat().st_mode & 0o777 == 0o600
        now = (await client.get(f"{V1}/now")).json()
        of_now = ("used", "at_work")  # what was used until then is not told
        for key in ("seq", "counts"):
            assert end[key] == now[key], key
        for key in ("waiting", "running"):
            assert end[key] == [{name: one[name] for name in one if name not in of_now} for one in now[key]], key
        assert end["waiting"], "one asks"
        assert end["issue"] == (await client.get(f"{V1}/issues/t-1")).json()["issue"]
        graphs = {one["policy"]: one for one in end["policies"]}
        assert [*graphs] == [*made.world.policies.policies] if made.world.policies else False
        begins = datetime.fromisoformat(end["kept_from"])
        for at in (begins - timedelta(days=1), begins, begins + (made.world.now - begins) / 2, made.world.now):
            told = (await client.get(f"{V1}/then", params={"at": at.isoformat()})).json()
            assert told == await to_thread.run_sync(printed, world.project, "status", "--at", at.isoformat(), "--json")
            assert (told["counts"] is None) == (at < begins)
        assert (await client.get(f"{V1}/then", params={"at": "yesterday"})).status_code == 422
        assert (await client.get(f"{V1}/then")).status_code == 422
