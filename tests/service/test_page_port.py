"""A second project of a machine gets a port of its own, the same each time, and --port means what it says."""

import signal
import socket
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ashep.api import page_port
from ashep.api.login_links import lock_entrance
from ashep.api.page_port import FILE, PortTaken, listen_somewhere, read_port
from ashep.api.server import listen
from ashep.cli.commands import app
from ashep.config import write_starter
from ashep.journal.durable_io import replace
from tests.service.test_entrance import LINK, server, ui, until
from tests.service.worlds import git, repository

listen_here = partial(listen, "127.0.0.1")


def test_where_the_port_is_taken_another_is_the_projects_own_from_now_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = list[str]()
    with listen_here(0) as occupant:
        used = occupant.getsockname()[1]
        monkeypatch.setattr(page_port, "PORT", used)
        with pytest.raises(PortTaken, match=f"port {used} is taken; choose another"):
            listen_somewhere(tmp_path, listen_here, messages.append, moves=False)
        assert (read_port(tmp_path), messages) == (None, [])
        with listen_somewhere(tmp_path, listen_here, messages.append, moves=True) as listener:
            free = listener.getsockname()[1]
        assert free != used
        assert messages == [
            f"port {used} is taken, perhaps by another project's page; this project's is at port {free} from now on"
        ]
    for moves in (True, False):  # it stays where it is, though the other one has gone
        with listen_somewhere(tmp_path, listen_here, messages.append, moves=moves) as listener:
            assert listener.getsockname()[1] == free
    with listen_here(free), listen_somewhere(tmp_path, listen_here, messages.append, moves=True) as listener:
        assert read_port(tmp_path) == listener.getsockname()[1] != free
    assert len(messages) == 2


@pytest.mark.parametrize("text", ["", "80", "65536", "x", "-1", "9" * 99, "²"])
def test_a_port_that_cannot_be_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    (tmp_path / FILE).chmod(0o600)
    assert read_port(tmp_path) is None


def test_a_second_server_of_a_project_does_not_move_it(tmp_path: Path) -> None:
    project = repository(tmp_path / "project")
    git(project, "config", "user.name", "Pat")
    write_starter(project / ".agent-shepherd")
    state = project / ".agent-shepherd" / "state"
    state.mkdir()
    with listen_here(0) as first, lock_entrance(state):  # it has only begun, and nobody can ask it for a link
        port = first.getsockname()[1]
        replace(state / FILE, f"{port}\n".encode())
        result = CliRunner().invoke(app, ["-C", str(project), "ui"])
        assert (result.exit_code, f"port {port} is taken" in str(result.exception)) == (1, True), result.output
        assert read_port(state) == port


@pytest.mark.slow
def test_a_second_project_has_its_page_by_itself(tmp_path: Path) -> None:
    project = repository(tmp_path / "project")
    git(project, "config", "user.name", "Pat")
    write_starter(project / ".agent-shepherd")
    state = project / ".agent-shepherd" / "state"
    with socket.socket() as another:
        with suppress(OSError):  # then somebody has it already
            another.bind(("127.0.0.1", 8090))
            another.listen()
        result = CliRunner().invoke(app, ["-C", str(project), "ui", "--port", "8090"])
        assert (result.exit_code, "port 8090 is taken" in str(result.exception)) == (1, True), result.output
        addresses = list[str]()
        for _ in range(2):
            with server(project, "ui", last=()) as process:
                assert process.stdout is not None
                link_match = LINK.fullmatch(process.stdout.readline())
                assert link_match is not None
                until(state / "ui")
                addresses.append(link_match[1])
                second_link = ui(project)
                assert second_link.stdout.startswith(f"{link_match[1]}/#enter="), second_link.stderr
                process.send_signal(signal.SIGTERM)
                assert process.wait(20) == 0
        assert addresses == [f"http://127.0.0.1:{read_port(state)}"] * 2
