"""Projects of this machine: whose daemon or page runs is found by their sockets, and told to who came in here alone."""

import socket
import stat
import tempfile
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from shutil import rmtree
from typing import Any

import httpx
import pytest

from ashep.adapters.system import control_socket
from ashep.adapters.system.control_socket import LINK, LOOKING, UI
from ashep.api.paired_devices import Devices
from ashep.api.routes import V1
from ashep.config import write_starter
from tests.recorded import life
from tests.service.test_entrance import LINK as LINKED
from tests.service.test_entrance import SAID, server, ui, until
from tests.service.worlds import World, git, repository
from tests.test_control import listening


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A runtime folder with a path that is short enough wherever tests run."""
    runtime = Path(tempfile.mkdtemp(prefix="ashep-r-", dir="/tmp"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    yield runtime
    rmtree(runtime, ignore_errors=True)


def test_sockets_say_whose_they_are_and_are_believed_about_their_own_alone(runtime: Path, tmp_path: Path) -> None:
    environ, folder = {"XDG_RUNTIME_DIR": str(runtime)}, runtime / "ashep"
    first, two = tmp_path / "one", tmp_path / "two"
    with listening(first, environ), listening(two, environ):
        states = control_socket.running(environ)
        assert (states[first], states[two]) == ({LINK}, {LINK})
        path = (two / LINK).readlink()
        path.rename(folder / f"{sha256(b'/elsewhere').hexdigest()[:16]}.sock")  # it says of itself what is not so
        with socket.socket(socket.AF_UNIX) as dead, socket.socket(socket.AF_UNIX) as silent:
            dead.bind(str(folder / "dead.sock"))
            silent.bind(str(folder / "silent.sock"))
            silent.listen()
            began = time.monotonic()
            states = control_socket.running(environ)
            assert time.monotonic() - began < LOOKING + 5
        assert first in states
        assert two not in states
        folder.chmod(0o755)
        assert first not in control_socket.running(environ), "others may have put one there"
        folder.chmod(stat.S_IRWXU)
    assert first not in control_socket.running(environ)


@pytest.mark.anyio
@pytest.mark.may_block
async def test_a_phone_learns_of_its_own_project_alone_and_a_program_of_none(runtime: Path, tmp_path: Path) -> None:
    world = World(repository(tmp_path / "project"))
    life(world.folder / "state", issues=3, until="person")
    other_state = repository(tmp_path / "other") / ".agent-shepherd" / "state"
    life(other_state, issues=2, until="person")
    world.sessions.devices = Devices(world.folder / "state", lambda: world.clock)

    async def list_rows(token: str) -> Any:
        async with world.client(token) as client:
            return (await client.get(f"{V1}/projects")).json()

    with listening(other_state, {"XDG_RUNTIME_DIR": str(runtime)}):
        person, _ = world.sessions.enter(world.sessions.code("Pat"))
        phone, _ = world.sessions.enter(world.sessions.code("Pat", pairs=True))
        rows = {row["folder"]: row for row in (await list_rows(person))["projects"]}
        assert rows[str(other_state.parent.parent)] == {
            "name": "other", "folder": str(other_state.parent.parent), "current": False, "works": True, "url": None,
            "waiting": 1, "running": 1,
        }  # fmt: skip
        assert rows[str(world.project)]["current"]
        assert (await list_rows(phone))["projects"] == [rows[str(world.project)] | {"folder": None}]
        async with world.client() as client:
            refused = await client.get(f"{V1}/projects")
            assert (refused.status_code, "other" in refused.text) == (403, False)
        async with world.client(None) as client:
            assert (await client.get(f"{V1}/projects")).status_code == 401
            elsewhere = {"Authorization": f"Bearer {person}", "Origin": "https://evil.example"}
            assert (await client.get(f"{V1}/projects", headers=elsewhere)).status_code == 403


@pytest.mark.slow
def test_a_page_tells_where_the_page_of_another_project_is(runtime: Path, tmp_path: Path) -> None:
    assert runtime
    projects = [repository(tmp_path / name) for name in ("one", "two")]
    for project in projects:
        git(project, "config", "user.name", "Pat")
        write_starter(project / ".agent-shepherd")
    life(projects[1] / ".agent-shepherd" / "state", issues=2, until="person")
    with server(projects[0], "serve"), server(projects[1], "serve") as process:
        for project in projects:
            until(project / ".agent-shepherd" / "state" / UI)
        entered = LINKED.fullmatch(ui(projects[0]).stdout)
        assert entered is not None
        token = httpx.post(f"{entered[1]}{V1}/enter", json={"code": entered[2]}, trust_env=False).json()["token"]
        authorization = {"Authorization": f"Bearer {token}"}
        rows = httpx.get(f"{entered[1]}{V1}/projects", headers=authorization, trust_env=False, timeout=60).json()[
            "projects"
        ]
        answers = [
            (row["name"], row["waiting"], row["works"], row["url"]) for row in rows if row["name"] in ("one", "two")
        ]
        assert answers == [("two", 1, False, SAID[process.pid]), ("one", 0, False, None)]
