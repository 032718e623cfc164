"""Paired devices: known after a restart by a hash alone, for as long as they come, and until somebody says no."""

import fcntl
import json
import os
import re
import signal
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from typer.testing import CliRunner

from ashep.adapters.system import control_socket
from ashep.api.login_links import revoke_named
from ashep.api.paired_devices import AHEAD, FILE, IDLE, LARGEST, MOST, Devices
from ashep.api.routes import V1
from ashep.api.server import listening_at
from ashep.api.sessions import PERSON, Session, Sessions, WrongCode
from ashep.cli.commands import app
from ashep.config import write_starter
from ashep.errors import AshepError, UsageError
from tests.service.test_entrance import SAID, server, until
from tests.service.worlds import World, git, repository

pytestmark = pytest.mark.promise("L21")

PHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15"


class Server:
    """Who is known by a server, and by the one after it."""

    def __init__(self, state: Path) -> None:
        self.state, self.at, self.mono = state, datetime(2026, 1, 1, tzinfo=UTC), 0.0
        self.begin()

    def begin(self) -> None:
        self.devices = Devices(self.state, lambda: self.at)
        self.sessions = Sessions("the-machines-own-token", lambda: self.mono, self.devices)
        self.devices.load()

    def pair(self, agent: str = PHONE) -> str:
        token, session = self.sessions.enter(self.sessions.code("Pat", pairs=True), agent)
        assert session.device is not None
        self.devices.write()
        return f"Bearer {token}"


@pytest.fixture
def one(tmp_path: Path) -> Server:
    return Server(tmp_path)


def test_a_device_is_known_after_a_restart_by_a_hash_alone(one: Server) -> None:
    phone = one.pair()
    assert one.sessions.find_session(phone) == Session(PERSON, "Pat", "iPhone")
    file = one.state / FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert phone.removeprefix("Bearer ") not in file.read_text()
    (browser, _), code = one.sessions.enter(one.sessions.code("Pat")), one.sessions.code("Pat", pairs=True)
    one.begin()
    assert one.sessions.find_session(phone) == Session(PERSON, "Pat", "iPhone")
    assert one.sessions.find_session(f"Bearer {browser}") is None
    with pytest.raises(WrongCode):
        one.sessions.enter(code)
    assert [listed["name"] for listed in one.devices.listed()] == ["iPhone"]
    one.sessions.leave(phone)
    one.devices.write()
    one.begin()
    assert (one.sessions.find_session(phone), one.devices.listed()) == (None, [])


def test_a_device_is_known_for_as_long_as_it_comes(one: Server) -> None:
    phone = one.pair()
    for _ in range(3):
        one.at += IDLE - timedelta(seconds=1)
        assert one.sessions.find_session(phone, asks=False) is not None
        assert one.sessions.find_session(phone) is not None
    one.devices.write()
    one.at += IDLE
    assert (one.sessions.find_session(phone), one.devices.listed()) == (None, [])
    one.begin()
    assert one.sessions.find_session(phone) is None


@pytest.mark.parametrize("again", [True, False])
def test_a_clock_that_goes_back_lets_nobody_stay_for_longer(one: Server, again: bool) -> None:
    phone = one.pair()
    one.at -= AHEAD
    if again:
        one.begin()
    assert one.sessions.find_session(phone, asks=False) is not None
    one.at -= timedelta(days=900)
    if again:
        one.begin()
    assert one.sessions.find_session(phone) is None


@pytest.mark.parametrize(("agent", "name"), [
    (PHONE, "iPhone"),
    ("Mozilla/5.0 (Linux; Android 16; K) AppleWebKit/537.36", "Android-16"),
    ("Mozilla/5.0 (X11; Linux x86_64; rv:150.0) Gecko", "Linux-x86_64"),
    ("python-httpx/0.28", "python-httpx-0-28"),
    ("", "device"),
    ("(;;)", "device"),
    ("(" * 100_000, "device"),
    ("\x1b]0;x\x07\r\n\x1b[31mroot", "device-0"),
    ("(ashep-agent\u202e\u2028)", "ashep-agent"),
    ("all", "all-2"),
    ("x" * 5000, "x" * 32),
])  # fmt: skip
def test_a_device_is_called_by_what_it_says_which_acts_on_nothing(one: Server, agent: str, name: str) -> None:
    one.pair(agent)
    assert [listed["name"] for listed in one.devices.listed()] == [name]
    one.begin()
    assert [listed["name"] for listed in one.devices.listed()] == [name]


def test_devices_are_bounded_named_apart_and_revoked_by_name(one: Server) -> None:
    first = last = one.pair()
    for _ in range(MOST):
        one.at += timedelta(seconds=1)
        last = one.pair()
    assert one.sessions.find_session(first) is None
    names = [listed["name"] for listed in one.devices.listed()]
    assert (len(names), len(set(names)), names[0]) == (MOST, MOST, "iPhone-2")
    assert one.devices.revoke(names[-1]) == names[-1:]
    assert one.sessions.find_session(last) is None
    with pytest.raises(UsageError, match=r"no device iPad\[2J: `ashep ui --devices`"):
        revoke_named(one.devices, one.sessions.browsers, "iPad\x1b[2J")
    assert len(one.devices.revoke("all")) == MOST - 1
    assert one.devices.revoke("all") == []


@pytest.mark.parametrize("spoilt", ["open", "link", "fifo", "corrupt", "huge", "strange", "name"])
def test_a_file_that_cannot_be_believed_lets_nobody_in_and_is_replaced(one: Server, spoilt: str) -> None:
    phone, file, elsewhere = one.pair(), one.state / FILE, one.state / "elsewhere"
    text = file.read_text()
    file.unlink()
    if spoilt == "link":
        elsewhere.write_text(text)
        elsewhere.chmod(0o600)
        file.symlink_to(elsewhere)
    elif spoilt == "fifo":
        os.mkfifo(file, 0o600)
    else:
        spoil = {"corrupt": text[:-9], "huge": text + " " * LARGEST, "strange": text.replace('"v":1', '"v":2'),
                 "name": text.replace("iPhone", "\\u001b[2J")}  # fmt: skip
        file.write_text(spoil.get(spoilt, text))
        file.chmod(0o644 if spoilt == "open" else 0o600)
    with pytest.raises(AshepError, match=FILE):
        one.begin()
    assert one.sessions.find_session(phone) is None
    again = one.pair()
    one.begin()
    assert one.sessions.find_session(again) is not None
    assert not file.is_symlink()
    assert not elsewhere.exists() or elsewhere.read_text() == text


@pytest.fixture
def world(folder: Path) -> World:
    world = World(repository(folder.parent / "project"))
    (world.folder / "state").mkdir(parents=True)
    return world


@pytest.mark.anyio
async def test_what_is_paired_is_written_down_first_one_at_a_time(world: World) -> None:
    devices = world.sessions.devices = Devices(world.folder / "state", lambda: world.clock)
    async with world.client(None) as client:

        async def enter() -> httpx.Response:
            code = world.sessions.code("Pat", pairs=True)
            return await client.post(f"{V1}/enter", json={"code": code}, headers={"User-Agent": PHONE})

        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(enter)
        written = json.loads(await anyio.Path(world.folder / "state" / FILE).read_text())["devices"]
        assert {one["name"] for one in written} == {one["name"] for one in devices.listed()}
        assert len(written) == 5
        entered = (await enter()).json()
        assert entered["device"] == "iPhone-6"
        left = await client.post(f"{V1}/leave", headers={"Authorization": f"Bearer {entered['token']}"})
        assert left.status_code == 200
        assert len(json.loads(await anyio.Path(world.folder / "state" / FILE).read_text())["devices"]) == 5
        await anyio.Path(world.folder / "state").rename(world.folder / "gone")
        assert (await enter()).status_code == 502


# --- the socket ---------------------------------------------------------------------------------------------------


def test_a_socket_is_this_users_alone_and_goes_with_its_server(tmp_path: Path) -> None:
    place = tmp_path / "ui.sock"
    with listening_at(place):
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
        with pytest.raises(AshepError, match="somebody listens on it"), listening_at(place):
            pass
        assert place.is_socket(), "and it stays that server's"
    assert not place.exists()
    with listening_at(place):
        dead = os.link(place, tmp_path / "dead")
    assert dead is None
    (tmp_path / "dead").rename(place)
    with listening_at(place):  # what a dead server left is replaced
        place.unlink()
        place.write_text("another's")
    assert place.read_text() == "another's"


def test_a_socket_stands_where_nobody_else_puts_one(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(UsageError, match="a folder of your own"), listening_at(tmp_path / "ui.sock"):
        pass
    tmp_path.chmod(0o1777)
    held = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(held, fcntl.LOCK_EX)  # whoever holds the folder up keeps nobody waiting
    with pytest.raises(UsageError, match="temporarily"), listening_at(tmp_path / "ui.sock"):
        pass
    os.close(held)
    with listening_at(tmp_path / "ui.sock"):
        pass


@pytest.mark.parametrize("there", ["file", "folder", "link", "long", "nowhere"])
def test_what_is_no_socket_is_not_replaced(tmp_path: Path, there: str) -> None:
    place = tmp_path / ("x" * 200 if there == "long" else "nowhere/ui.sock" if there == "nowhere" else "ui.sock")
    if there == "file":
        place.write_text("mine")
    elif there == "folder":
        place.mkdir()
    elif there == "link":
        place.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="--socket"), listening_at(place):
        pass
    assert there != "file" or place.read_text() == "mine"
    assert there != "link" or place.is_symlink()


# --- the commands -------------------------------------------------------------------------------------------------


def run(project: Path, *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["-C", str(project), "ui", *words])
    return (done.exit_code if done.exception is None or isinstance(done.exception, SystemExit) else 99), (
        f"{done.output}{done.exception or ''}"
    )


def devices(project: Path) -> Any:
    return json.loads(run(project, "--devices", "--json")[1])["devices"]


@pytest.mark.slow
def test_a_phone_is_paired_stays_known_and_is_let_in_no_more(tmp_path: Path) -> None:
    project = repository(tmp_path / "project")
    git(project, "config", "user.name", "Pat")
    write_starter(project / ".agent-shepherd")
    state, config = project / ".agent-shepherd" / "state", project / ".agent-shepherd" / "config.yaml"
    told = run(project, "--pair")[1]
    assert "name the proxy with TLS" in told
    assert "`tailscale serve --bg 8090`" in told
    assert '`ui: {origins: ["https://MACHINE.TAILNET.ts.net"]}`' in told
    assert "as browsers send it" in run(project, "--pair", "--origin", "http://box.example.net")[1]
    assert run(project, "--devices") == (0, "no device is paired\n")
    config.write_text('version: 1\nui: {origins: ["https://box.example.net"]}\n')
    place = tmp_path / "ui.sock"
    phone = httpx.Client(
        base_url="http://box.example.net", transport=httpx.HTTPTransport(uds=str(place)), timeout=30,
        headers={"Origin": "https://box.example.net", "User-Agent": PHONE},
    )  # fmt: skip
    with phone, server(project, "serve", "--socket", str(place)) as process:
        until(state / "ui")
        assert SAID[process.pid] == str(place)
        assert control_socket.page_of(state) == "https://box.example.net", "as the daemon is told, for its messages"
        code, said = run(project, "--pair")
        found = re.search(r"\n(https://box\.example\.net)/#enter=([\w-]{20,})\n", said)
        assert found is not None, said
        assert (code, "█▀▄"[0] in said) == (0, True), "and as a QR code"
        assert "it knows https://box.example.net" in run(project, "--pair", "--origin", "https://b.example.net")[1]
        entered = phone.post(f"{V1}/enter", json={"code": found[2]}).json()
        assert (entered["person"], entered["device"]) == ("Pat", "iPhone")
        phone.headers["Authorization"] = f"Bearer {entered['token']}"
        assert phone.get(f"{V1}/now").status_code == 200
        process.send_signal(signal.SIGKILL)  # it has no last words
        process.wait(20)
    assert [one["name"] for one in devices(project)] == ["iPhone"]
    again = httpx.Client(
        base_url="http://localhost:4711", transport=httpx.HTTPTransport(uds=str(place)), timeout=30,
        headers={"Authorization": phone.headers["Authorization"]},
    )  # fmt: skip
    with again, server(project, "serve", "--socket", str(place)) as process:
        until(state / "ui")
        assert again.get(f"{V1}/now").status_code == 200
        with again.stream("GET", f"{V1}/events") as stream:
            lines = stream.iter_lines()
            assert next(lines) == "event: changed"
            assert run(project, "--revoke", "iPhone") == (0, "iPhone is let in no more\nno device is paired\n")
            assert [line for line in lines if line.startswith("event")] == []
        assert again.get(f"{V1}/now").status_code == 401
        assert "no device iPhone" in run(project, "--revoke", "iPhone")[1]
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    assert not place.exists()
    assert (devices(project), control_socket.page_of(state)) == ([], None)
    kept = [file for file in state.rglob("*") if file.is_file()]
    assert not [file for file in kept if entered["token"] in file.read_text(errors="replace")]
