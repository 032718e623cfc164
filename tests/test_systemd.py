"""The systemd service: its unit, and what a daemon tells its manager. systemd itself does not run here: units are
checked by `systemd-analyze verify`, messages are read from a real datagram socket.
"""

import os
import shlex
import shutil
import socket
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from ashep import cli
from ashep.actions.systemd_unit import NO_RESTART, unit_of
from ashep.adapters.system.sd_notify import Systemd
from ashep.core.state.world import World
from ashep.daemon.shepherd import Observation
from ashep.daemon.watchdog import LONGEST, STALE, Watchdog
from ashep.errors import AshepError
from tests.core import given
from tests.core.laws import folded
from tests.core.playbook import Playbook


def listening(address: str) -> socket.socket:
    wire = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    wire.bind(f"\0{address[1:]}" if address.startswith("@") else address)
    wire.settimeout(30)
    return wire


# --- telling ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["path", "abstract"])
def test_a_message_is_a_datagram(tmp_path: Path, kind: str) -> None:
    address = str(tmp_path / "notify") if kind == "path" else f"@ashep-test-{os.getpid()}"
    environ = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "300000000", "WATCHDOG_PID": str(os.getpid()), "A": "b"}
    with listening(address) as wire:
        systemd = Systemd.from_environ(environ)
        assert environ == {"A": "b"}, "children speak for nobody"
        assert (systemd.listens, systemd.watchdog) == (True, 300.0)
        systemd.tell("READY=1", "STATUS=two\nlines")
        assert wire.recv(1000) == b"READY=1\nSTATUS=two lines"
        systemd.close()
        systemd.tell("WATCHDOG=1")


def queued(wire: socket.socket) -> int:
    told = 0
    with suppress(BlockingIOError):
        while wire.recv(1000):
            told += 1
    return told


@pytest.mark.promise("K8")
def test_nobody_waits_for_a_manager_that_does_not_read(tmp_path: Path) -> None:
    address = str(tmp_path / "notify")
    with listening(address) as wire:
        systemd = Systemd.from_environ({"NOTIFY_SOCKET": address})
        for _ in range(20_000):
            systemd.tell("STATUS=" + "x" * 500)
        wire.setblocking(False)
        assert 0 < queued(wire) < 20_000, "the others were dropped"
    systemd.tell("WATCHDOG=1")  # nobody listens any more
    systemd.close()


@pytest.mark.parametrize(("environ", "listens", "watchdog"), [
    ({}, False, None),
    ({"WATCHDOG_USEC": "1000000"}, False, None),
    ({"NOTIFY_SOCKET": "/nowhere/notify", "WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "1"}, True, None),
    ({"NOTIFY_SOCKET": "/nowhere/notify", "WATCHDOG_USEC": "soon"}, True, None),
    ({"NOTIFY_SOCKET": "/nowhere/notify", "WATCHDOG_USEC": "0"}, True, None),
    ({"NOTIFY_SOCKET": "/nowhere/notify", "WATCHDOG_USEC": "2000000"}, True, 2.0),
])  # fmt: skip
def test_who_is_told_and_who_waits(environ: dict[str, str], listens: bool, watchdog: float | None) -> None:
    systemd = Systemd.from_environ(environ)
    assert (systemd.listens, systemd.watchdog) == (listens, watchdog)
    systemd.tell("READY=1")
    systemd.close()


# --- the watchdog -------------------------------------------------------------------------------------------------


class Shepherd:
    """The part of the shepherd that takes turns, which can hang."""

    def __init__(self, world: World) -> None:
        self.world, self.hangs = world, False

    async def ask(self, observation: Observation) -> None:
        while self.hangs:
            await anyio.sleep(1)
        assert not list(observation(self.world)), "a tick leaves nothing in the journal"


def ticks(change: Callable[[Shepherd, list[int]], None]) -> tuple[int, int]:
    """How often a watchdog is fed in an hour, and in the one after that, in which something is wrong."""
    from ashep.extras.simulation.virtual_time import VIRTUAL, LoopClock

    async def main() -> tuple[int, int]:
        fed, looks, shepherd, first = list[str](), [1], Shepherd(folded([])), 0

        async def work() -> None:
            while True:
                await anyio.sleep(30)
                looks[0] += looks[0] > 0

        clock = LoopClock()
        made: Any = shepherd
        watchdog = Watchdog(made, clock, lambda: looks[0], lambda *lines: fed.append(lines[0]))
        async with anyio.create_task_group() as group:
            group.start_soon(work)
            group.start_soon(watchdog.run, 300.0, 90.0)
            await anyio.sleep(3600)
            first = len(fed)
            change(shepherd, looks)
            await anyio.sleep(3600)
            group.cancel_scope.cancel()
        assert set(fed) == {"WATCHDOG=1"}
        return first, len(fed) - first

    return anyio.run(main, backend_options=dict(VIRTUAL))


@pytest.mark.promise("K8")
def test_the_watchdog_is_fed_by_completed_ticks_alone() -> None:
    first, again = ticks(lambda shepherd, looks: None)
    assert first == pytest.approx(again, abs=2)
    assert 3600 / 300 * 3 <= first <= 3600 / LONGEST + 1

    def hang(shepherd: Shepherd, _: list[int]) -> None:
        shepherd.hangs = True

    assert ticks(hang)[1] <= 1

    def stuck(_: Shepherd, looks: list[int]) -> None:
        looks[0] = 0

    assert ticks(stuck)[1] <= (STALE + 90 + 30) / LONGEST + 1


def test_status_is_a_line_whatever_there_is() -> None:
    from ashep.daemon.watchdog import standing

    assert standing(World()) == "0 runs under way, 0 issues known; the agent server is not seen yet"
    book = Playbook(given.policy_of(given.Phase(name="review"))).until("review")
    assert standing(book.world) == "1 run under way, 1 issues known"


# --- the unit -----------------------------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = tmp_path / 'a pro"ject of 50% $HOME'
    (made / ".agent-shepherd").mkdir(parents=True)
    return made


ENVIRON = {"HOME": "/home/ann", "PATH": "/usr/bin:/opt/50%/bin", "LANG": "C.UTF-8", "SECRET": "s", "SHELL": ""}


def settings(text: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if "=" in line and not line.startswith("#"):
            found.setdefault(line.partition("=")[0], []).append(line.partition("=")[2])
    return found


@pytest.mark.promise("K8")
def test_a_users_unit_restarts_what_can_go_on_and_nothing_else(project: Path) -> None:
    unit = unit_of(project, ENVIRON, user=True)
    assert unit.path == Path("/home/ann/.config/systemd/user") / unit.name
    assert unit.name.startswith("ashep-a-pro-ject-of-50---HOME-")
    said = settings(unit.text)
    assert said["Type"] == ["notify"]
    assert said["Restart"] == ["on-failure"]
    assert said["RestartPreventExitStatus"] == ["2 3 65"] == [" ".join(map(str, NO_RESTART))]
    assert said["WatchdogSec"] == ["5min"]
    assert said["KillMode"] == ["process"]
    assert said["OOMScoreAdjust"] == ["-250"], "what it starts goes first"
    assert said["NoNewPrivileges"] == ["yes"]
    assert said["Environment"] == ['"PATH=/usr/bin:/opt/50%%/bin"', '"LANG=C.UTF-8"']
    assert not {"User", "ProtectSystem", "RuntimeDirectory"} & said.keys()
    assert "SECRET" not in unit.text
    assert unit_of(project, ENVIRON, user=True) == unit
    assert unit_of(project.parent, ENVIRON, user=True).name != unit.name
    assert unit_of(project, ENVIRON | {"XDG_CONFIG_HOME": "/c"}, user=True).path.parent == Path("/c/systemd/user")


def test_the_service_of_verification_has_a_unit_of_its_own(project: Path) -> None:
    unit, loop = (unit_of(project, ENVIRON, user=True, serve=serve) for serve in (True, False))
    said = settings(unit.text)
    assert unit.name == loop.name.replace("ashep-", "ashep-serve-", 1)
    assert shlex.split(said["ExecStart"][0])[-3:] == ["serve", "--port", "8090"]
    assert (said["Type"], said["KillMode"]) == (["exec"], ["mixed"]), (
        "it tells nobody that it lives; its checks end with it"
    )
    assert not {"WatchdogSec", "NotifyAccess", "ExecReload"} & said.keys()
    assert {"NoNewPrivileges", "Restart", "EnvironmentFile", "UnsetEnvironment"} <= said.keys()
    assert int(said["CPUWeight"][0]) > 100, "more than agents, which run with the loop, have"
    assert not {"CPUWeight", "Nice"} & settings(loop.text).keys()
    assert "Nice" not in said, "a user's manager may not, and would not start it"


@pytest.mark.promise("K8")
def test_a_systems_unit_runs_as_the_projects_owner_and_never_as_root(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "owner", lambda _: "ann")
    unit = unit_of(project, ENVIRON, user=False)
    said = settings(unit.text)
    assert said["User"] == ["ann"]
    assert said["ProtectSystem"] == ["full"]
    assert said["RuntimeDirectory"] == [unit.name.removesuffix(".service")]
    assert settings(unit_of(project, ENVIRON, user=False, serve=True).text)["Nice"] == ["-5"]
    assert f'"XDG_RUNTIME_DIR=/run/{unit.name.removesuffix(".service")}"' in said["Environment"]
    monkeypatch.setattr(Path, "owner", lambda _: "root")
    with pytest.raises(AshepError, match="must not run as root"):
        unit_of(project, ENVIRON, user=False)


@pytest.mark.promise("K8")
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
@pytest.mark.slow
@pytest.mark.parametrize("serve", [True, False])
@pytest.mark.parametrize("user", [True, False])
def test_systemd_takes_the_unit(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: bool, serve: bool
) -> None:
    monkeypatch.setattr(Path, "owner", lambda _: "daemon")
    unit = unit_of(project, {**os.environ, "PATH": "/usr/bin:/bin"}, user=user, serve=serve)
    file = tmp_path / unit.name
    file.write_text(unit.text)
    argv = ["systemd-analyze", *(["--user"] if user else []), "verify", str(file)]
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)
    environ = {**os.environ, "XDG_RUNTIME_DIR": str(runtime)}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=240, env=environ)
    ours = [line for line in done.stderr.splitlines() if unit.name in line]
    assert (done.returncode, ours) == (0, []), done.stderr
    file.write_text(unit.text.replace("Restart=on-failure", "Restart=perhaps"))
    done = subprocess.run(argv, capture_output=True, text=True, timeout=240, env=environ)
    assert "Failed to parse service restart specifier" in done.stderr, "it does look"


# --- the commands -------------------------------------------------------------------------------------------------


SYSTEMCTL = """#!/bin/sh
echo "$@" >> {log}
case "$*" in
  *show*) printf 'LoadState=loaded\\nActiveState={active}\\nSubState=running\\nMainPID=4711\\n'
          printf 'NRestarts=2\\nResult=success\\nStatusText=1 run under way\\nUnitFileState=enabled\\n'
          printf 'ActiveEnterTimestamp=\\nNeedDaemonReload=no\\n' ;;
esac
exit {code}
"""


class Place:
    """A project, a home, and a systemctl that notes what it is asked."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.project, self.home, self.bin, self.log = (folder / name for name in ("p", "home", "bin", "log"))
        (self.project / ".agent-shepherd").mkdir(parents=True)
        self.bin.mkdir()
        self.manager()
        monkeypatch.setenv("PATH", f"{self.bin}:{os.environ['PATH']}")
        monkeypatch.setenv("HOME", str(self.home))
        monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)

    def manager(self, active: str = "active", code: int = 0) -> None:
        program = self.bin / "systemctl"
        program.write_text(SYSTEMCTL.format(log=self.log, active=active, code=code))
        program.chmod(0o755)

    def asked(self) -> list[str]:
        return self.log.read_text().splitlines() if self.log.exists() else []

    def ashep(self, *words: str) -> int:
        return cli.main(["-C", str(self.project), "service", *words])


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


def test_install_writes_the_unit_and_says_what_is_next(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert place.ashep("install", "--user", "--print") == 0
    printed = capsys.readouterr().out
    assert not (place.home / ".config").exists()
    assert place.ashep("install", "--user") == 0
    said = capsys.readouterr().out
    (file,) = (place.home / ".config/systemd/user").iterdir()
    assert file.read_text() == printed.removesuffix("\n") or file.read_text() == printed
    assert f"wrote {file}" in said
    assert "systemctl --user daemon-reload && systemctl --user enable --now" in said
    assert place.asked() == []
    assert place.ashep("install", "--user", "--now") == 0
    assert f"unchanged: {file}" in capsys.readouterr().out
    assert place.asked() == ["--user daemon-reload", f"--user enable --now {file.name}"]


def test_the_service_of_verification_is_installed_beside_the_loop(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    assert place.ashep("install", "--user") == 0
    assert place.ashep("install", "--serve", "--user", "--port", "8111", "--now") == 0
    folder = place.home / ".config/systemd/user"
    serve, loop = sorted(folder.iterdir(), key=lambda file: "ashep-serve-" not in file.name)
    assert '"serve" "--port" "8111"' in serve.read_text()
    assert '"work"' in loop.read_text()
    assert place.asked()[-1] == f"--user enable --now {serve.name}"
    capsys.readouterr()
    assert place.ashep("install", "--serve", "--user") == 0
    assert f"unchanged: {serve}" in capsys.readouterr().out, "its port stays"
    assert place.ashep("status", "--serve", "--user") == 0
    assert capsys.readouterr().out.startswith(f"{serve.name}: {serve}\n")
    serve.write_text("# mine")
    place.ashep("status", "--serve", "--user")
    assert "`ashep service install --serve --user` would write now" in capsys.readouterr().out
    assert place.ashep("uninstall", "--serve", "--user") == 0
    assert [*folder.iterdir()] == [loop]
    assert place.ashep("install", "--user", "--port", "8111") == 2


def test_status_says_how_the_service_is(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert place.ashep("status", "--user") == 1
    assert "is not there: `ashep service install --user`" in capsys.readouterr().out
    place.ashep("install", "--user")
    assert place.ashep("status", "--user") == 0
    said = capsys.readouterr().out
    assert "active (running), process 4711; enabled; restarts: 2" in said
    assert "1 run under way" in said
    place.manager(active="failed")
    assert place.ashep("status", "--user", "--json") == 1
    assert '"ActiveState": "failed"' in capsys.readouterr().out
    place.manager(code=1)
    assert place.ashep("status", "--user") == 1
    assert "systemd does not say how it is" in capsys.readouterr().out
    (file,) = (place.home / ".config/systemd/user").iterdir()
    file.write_text("# mine")
    place.ashep("status", "--user")
    assert "it is not what `ashep service install --user` would write now" in capsys.readouterr().out


def test_uninstall_stops_it_and_deletes_the_unit(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    assert place.ashep("uninstall", "--user") == 1
    place.ashep("install", "--user")
    (file,) = (place.home / ".config/systemd/user").iterdir()
    assert place.ashep("uninstall", "--user") == 0
    assert not file.exists()
    assert place.asked()[-2:] == [f"--user disable --now {file.name}", "--user daemon-reload"]


@pytest.mark.promise("K8")
def test_the_unit_runs_nothing_of_the_project(tmp_path: Path) -> None:
    """A service's folder is the project: python would look there first for whatever ashep imports."""
    project, environ = tmp_path / "project", {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    for name in ("anyio.py", "typer.py", "json.py", "ashep/__init__.py", "ashep/__main__.py", "sitecustomize.py"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    unit = unit_of(project, environ, user=True)
    command = shlex.split(settings(unit.text)["ExecStart"][0])
    dropped = settings(unit.text).get("UnsetEnvironment", [""])[0].split()
    for more in ({}, {"PYTHONPATH": f":{project}"}):  # as where a shell told the user's manager of it
        given = {name: value for name, value in (environ | more).items() if name not in dropped}
        done = subprocess.run(
            [*command[: command.index("-C")], "--version"], cwd=project, env=given, capture_output=True, timeout=240
        )
        assert not (tmp_path / "ran").exists()
        assert (done.returncode, done.stdout[:5]) == (0, b"ashep"), done.stderr
