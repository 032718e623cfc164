"""Where the service listens, and by which token it knows who asks."""

import socket
import stat
from pathlib import Path

import pytest

from ashep.actions.verify import Outputs
from ashep.api.server import TOKEN, ListenOptions, listen, serve, token_of
from ashep.core.policy.settings import Settings, TrackerSettings
from ashep.errors import AshepError, UsageError


@pytest.mark.promise("L21")
def test_a_token_is_written_once_for_this_user_alone(tmp_path: Path) -> None:
    state = tmp_path / "state"
    token, place = token_of(state, None, {})
    assert place == str(state / TOKEN)
    assert len(token) > 40
    assert stat.S_IMODE((state / TOKEN).stat().st_mode) == 0o600
    assert token_of(state, None, {}) == (token, place)
    assert token_of(tmp_path / "other", None, {})[0] != token


@pytest.mark.parametrize("spoilt", ["open", "short", "link", "folder"])
def test_a_token_that_is_not_this_users_alone_is_refused(tmp_path: Path, spoilt: str) -> None:
    file = tmp_path / TOKEN
    if spoilt == "folder":
        file.mkdir()
    elif spoilt == "link":
        (tmp_path / "elsewhere").write_text("a token of many characters")
        (tmp_path / "elsewhere").chmod(0o600)
        file.symlink_to("elsewhere")
    else:
        file.write_text("short" if spoilt == "short" else "a token of many characters")
        file.chmod(0o644 if spoilt == "open" else 0o600)
    with pytest.raises(UsageError, match=TOKEN):
        token_of(tmp_path, None, {})


def test_a_token_of_ones_own_is_long_enough(tmp_path: Path) -> None:
    assert token_of(tmp_path, "MINE", {"MINE": "x" * 16})[0] == "x" * 16
    assert not (tmp_path / TOKEN).exists()
    for environ in ({}, {"MINE": "short"}):
        with pytest.raises(UsageError, match="MINE is"):
            token_of(tmp_path, "MINE", environ)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", ""])
def test_it_listens_on_loopback_alone(host: str) -> None:
    with pytest.raises(UsageError, match="--host"):
        listen(host, 0)


def test_a_port_that_is_taken_is_told() -> None:
    with listen("localhost", 0) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(AshepError, match=f"port {port} is taken; choose another with --port") as caught:
            listen("127.0.0.1", port)
        assert caught.value.exit_code == 1
    assert isinstance(listener, socket.socket)


def test_a_tracker_of_the_users_is_refused_before_it_listens(tmp_path: Path) -> None:
    (tmp_path / "told_tracker.py").write_text(
        "from ashep.extras.simulation.memory.tracker import MemoryTracker as Told\n"
    )
    said: list[str] = []
    settings = Settings(tracker=TrackerSettings(type="told_tracker:Told"))
    with pytest.raises(UsageError, match="a tracker of your own"):
        serve(tmp_path, tmp_path / ".agent-shepherd", settings, ListenOptions(port=0), said.append)
    assert not [word for word in said if "listening" in word]


async def test_outputs_are_bounded_and_without_secrets() -> None:
    outputs = Outputs(lambda text: text.replace("secret", "…"), most=25)
    first = await outputs.keep("a secret of ten")
    assert outputs.text(first) == "a … of ten"
    second = await outputs.keep("twenty characters in")
    assert (outputs.text(first), outputs.text(second)) == ("", "twenty characters in")


def test_an_answer_does_not_wait_for_its_head_to_be_acknowledged() -> None:
    with listen("127.0.0.1", 0) as listener:
        assert listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
