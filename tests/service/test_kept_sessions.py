"""A person's session outlives its server by a hash, for twelve hours after they came in, and nowhere else."""

import json
import re
import signal
import stat
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from hmac import digest
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from ashep.api.browser_sessions import FILE, MOST, BrowserSessions
from ashep.api.paired_devices import AHEAD, IDLE, LARGEST, Devices
from ashep.api.routes import V1
from ashep.api.sessions import PERSON, Session, Sessions
from ashep.cli.commands import app
from ashep.config import write_starter
from ashep.errors import AshepError
from tests.service.test_entrance import LINK, SAID, server, ui, until
from tests.service.worlds import git, repository

AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:150.0) Gecko"
ADDRESS = "http://127.0.0.1:8090"


class Server:
    """Who is known by a server, and by the one after it."""

    def __init__(self, state: Path) -> None:
        self.state, self.at = state, datetime(2026, 1, 1, tzinfo=UTC)
        self.begin()

    def begin(self, state: Path | None = None, address: str = ADDRESS) -> None:
        self.browsers = BrowserSessions(state or self.state, lambda: self.at, address)
        self.sessions = Sessions("the-machines-own-token", lambda: 0.0, browsers=self.browsers)
        self.browsers.load()

    def enter(self) -> str:
        token, session = self.sessions.enter(self.sessions.code("Pat"), AGENT)
        assert session == Session(PERSON, "Pat")
        self.browsers.write()
        return f"Bearer {token}"


@pytest.fixture
def site(tmp_path: Path) -> Server:
    return Server(tmp_path)


def test_a_session_is_known_after_a_restart_by_a_hash_alone(site: Server) -> None:
    token, file = site.enter(), site.state / FILE
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert token.removeprefix("Bearer ") not in file.read_text()
    site.begin()
    assert site.sessions.find_session(token) == Session(PERSON, "Pat")
    assert site.sessions.find_session(f"Bearer {json.loads(file.read_text())['devices'][0]['hash']}") is None
    site.sessions.leave(token)
    site.browsers.write()
    site.begin()
    assert site.sessions.find_session(token) is None


def test_after_a_restart_it_ends_twelve_hours_after_the_person_came_in_however_much_they_ask(site: Server) -> None:
    token = site.enter()
    site.at += IDLE - timedelta(seconds=2)
    assert site.sessions.find_session(token) is not None
    site.browsers.write()
    site.begin()
    site.at += timedelta(seconds=1)
    assert site.sessions.find_session(token) is not None
    site.at += timedelta(seconds=1)
    assert site.sessions.find_session(token) is None
    site.begin()
    assert site.sessions.find_session(token) is None


def test_who_asks_stays_in_as_long_as_the_server(site: Server) -> None:
    token = site.enter()
    for _ in range(3):
        site.at += IDLE - timedelta(seconds=1)
        assert site.sessions.find_session(token) is not None
    site.browsers.write()
    site.begin()
    assert site.sessions.find_session(token) is None


@pytest.mark.parametrize("back", [AHEAD + timedelta(seconds=1), IDLE - timedelta(hours=1), timedelta(days=900)])
def test_a_clock_that_is_set_back_lets_nobody_stay_for_longer(site: Server, back: timedelta) -> None:
    token = site.enter()
    site.at += IDLE - timedelta(minutes=10)
    assert site.sessions.find_session(token) is not None
    site.browsers.write()
    site.at -= back
    site.begin()
    assert site.sessions.find_session(token) is None


@pytest.mark.parametrize("elsewhere", ["project", "port", "edited"])
def test_a_file_of_another_project_or_port_lets_nobody_in(site: Server, tmp_path: Path, elsewhere: str) -> None:
    token, other_folder = site.enter(), tmp_path / "other"
    other_folder.mkdir()
    (other_folder / FILE).write_bytes((site.state / FILE).read_bytes())
    (other_folder / FILE).chmod(0o600)
    if elsewhere == "edited":
        (other_folder / FILE).write_text((site.state / FILE).read_text().replace(ADDRESS, ""))
    site.begin(None if elsewhere == "port" else other_folder, f"{ADDRESS}1" if elsewhere == "port" else ADDRESS)
    assert site.sessions.find_session(token) is None


@pytest.mark.parametrize("spoilt", ["open", "torn", "empty", "huge", "link", "strange"])
def test_a_file_that_cannot_be_believed_lets_nobody_in_and_is_replaced(site: Server, spoilt: str) -> None:
    token, file = site.enter(), site.state / FILE
    text = file.read_text()
    spoil = {"torn": text[: len(text) // 2], "empty": "", "huge": text + " " * LARGEST, "strange": "[]"}
    file.write_text(spoil.get(spoilt, text))
    file.chmod(0o644 if spoilt == "open" else 0o600)
    if spoilt == "link":
        file.rename(site.state / "elsewhere")
        file.symlink_to(site.state / "elsewhere")
    with pytest.raises(AshepError, match="comes in again by `ashep ui`"):
        site.begin()
    assert site.sessions.find_session(token) is None
    fresh_token = site.enter()
    site.begin()
    assert site.sessions.find_session(fresh_token) is not None
    assert not file.is_symlink()


def test_of_thousands_the_newest_are_kept_and_no_device_goes_for_them(site: Server) -> None:
    devices = site.sessions.devices = Devices(site.state, lambda: site.at)
    phone, _ = site.sessions.enter(site.sessions.code("Pat", pairs=True), "(iPhone)")
    tokens = list[str]()
    for _ in range(2000):
        site.at += timedelta(seconds=1)
        tokens.append(site.sessions.enter(site.sessions.code("Pat"), AGENT)[0])
    site.browsers.write()
    assert (site.state / FILE).stat().st_size < LARGEST
    site.begin()
    assert [bool(site.sessions.find_session(f"Bearer {token}")) for token in tokens[-MOST - 1 :]] == [
        False,
        *[True] * MOST,
    ]
    names = [listed["name"] for listed in (*devices.listed(), *site.browsers.listed())]
    assert len({*names}) == MOST + 1
    assert devices.find_device(sha256(phone.encode()).hexdigest()) is not None


def test_a_server_shows_that_it_knows_a_token_and_a_stranger_cannot(site: Server) -> None:
    token = site.enter().removeprefix("Bearer ")
    credentials = sha256(token.encode()).hexdigest()
    name, nonce = sha256(credentials.encode()).hexdigest(), "of this very moment"
    site.begin()
    assert site.sessions.prove(name, nonce) == digest(credentials.encode(), nonce.encode(), "sha256").hex()
    for wrong in (
        credentials,
        sha256(b"another").hexdigest(),
        sha256(sha256(b"the-machines-own-token").hexdigest().encode()).hexdigest(),
    ):
        assert site.sessions.prove(wrong, nonce) is None
    site.begin(address=f"{ADDRESS}1")  # a stranger at the port of before asks the server at its new one
    assert site.sessions.prove(name, nonce) is None


def run(project: Path, *words: str) -> str:
    return CliRunner().invoke(app, ["-C", str(project), "ui", *words]).output


@pytest.mark.slow
def test_a_real_restart_sends_nobody_out_who_was_not_revoked(tmp_path: Path) -> None:
    project = repository(tmp_path / "project")
    git(project, "config", "user.name", "Pat")
    write_starter(project / ".agent-shepherd")
    state = project / ".agent-shepherd" / "state"
    with server(project, "serve") as process:
        until(state / "ui")
        link_match = LINK.fullmatch(ui(project).stdout)
        assert link_match is not None
        entered = httpx.post(
            f"{link_match[1]}{V1}/enter", json={"code": link_match[2]}, headers={"User-Agent": AGENT}, trust_env=False
        )
        process.send_signal(signal.SIGKILL)  # it has no last words
        process.wait(20)
    credentials = {"Authorization": f"Bearer {entered.json()['token']}"}
    assert re.search(r"\nLinux-x86_64 +Pat ", run(project, "--devices")), "also where no server runs"
    with server(project, "serve", "--port", link_match[1].rpartition(":")[2], last=()) as process:
        until(state / "ui")
        assert SAID[process.pid] == link_match[1]
        assert httpx.get(f"{link_match[1]}{V1}/now", headers=credentials, trust_env=False).status_code == 200
        assert "Linux-x86_64 is let in no more" in run(project, "--revoke", "Linux-x86_64")
        assert httpx.get(f"{link_match[1]}{V1}/now", headers=credentials, trust_env=False).status_code == 401
    assert "Linux" not in (state / FILE).read_text()
