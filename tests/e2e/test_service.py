"""What a real daemon tells the service manager that started it."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.site import Site

pytestmark = pytest.mark.real


def test_a_daemon_says_that_it_is_ready_alive_and_stopping(site: Site, tmp_path: Path) -> None:
    address, issue = str(tmp_path / "notify"), site.add("served")
    environ = site.environ | {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "3000000"}
    argv = [sys.executable, "-m", "ashep", "-C", str(site.project), "work", issue]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as wire:
        wire.bind(address)
        wire.settimeout(60)
        with subprocess.Popen(argv, env=environ, stdout=subprocess.DEVNULL, start_new_session=True) as daemon:
            try:
                assert wire.recv(1000) == b"READY=1"
                told = [wire.recv(1000)]
                while site.issue(issue)["status"] != "closed":
                    told.append(wire.recv(1000))
                assert all(one.startswith(b"WATCHDOG=1\nSTATUS=") for one in told)
                assert len(told) >= 3
                os.kill(daemon.pid, signal.SIGTERM)
                while (last := wire.recv(1000)) != b"STOPPING=1":
                    assert last.startswith(b"WATCHDOG=1")
                assert daemon.wait(30) == 0
            finally:
                daemon.kill()
