"""What a real daemon tells the service manager that started it."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from ashep.extras.demo.scripted_model import ModelRequest, Reply, outcome_text
from tests.e2e.site import Site, Working

pytestmark = pytest.mark.real


@pytest.mark.promise("K8")
def test_a_daemon_says_that_it_is_ready_alive_and_stopping(site: Site, tmp_path: Path) -> None:
    site.rest()
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
                while site.issue(issue)["status"] != "closed" or len(told) < 3:
                    told.append(wire.recv(1000))
                assert all(one.startswith(b"WATCHDOG=1\nSTATUS=") for one in told)
                wire.setblocking(False)
                with suppress(BlockingIOError):  # a slow bd lets them pile up: ten fill the queue, and the next is lost
                    while wire.recv(1000):
                        pass
                wire.settimeout(60)
                os.kill(daemon.pid, signal.SIGTERM)
                while (last := wire.recv(1000)) != b"STOPPING=1":
                    assert last.startswith(b"WATCHDOG=1")
                assert daemon.wait(30) == 0
            finally:
                daemon.kill()


@pytest.mark.promise("E3")
def test_a_bd_that_is_replaced_while_a_run_goes_on_is_told_and_nothing_is_lost(site: Site, tmp_path: Path) -> None:
    program = tmp_path / "bd"
    real = f'exec {site.bd_program} "$@"\n'
    upgraded = f'#!/bin/sh\ncase "$*" in *version*) echo \'{{"version":"1.9.9"}}\'; exit;; esac\n{real}'

    def install(ask: ModelRequest) -> Reply:
        program.unlink()
        daemons[0].says("the tracker does not answer", 60)
        program.write_text(upgraded)
        program.chmod(0o755)
        return Reply(outcome_text())

    daemons: list[Working] = []
    program.write_text(f"#!/bin/sh\n{real}")
    program.chmod(0o755)
    before = site.bd_command
    site.command([str(program)])
    try:
        issue = site.add("upgraded", behaves=install)
        with site.working(issue) as working:
            daemons.append(working)
            told = "the tracker's program was replaced: 1.9.9 answers where 1.3.0 did; ashep is tried with 1.3.0"
            working.says(told, 90)
            assert told in site.ashep("status")
            working.says(f"{issue} closed by shepherd", 90)
        assert [run["state"] for run in site.runs(issue)] == ["succeeded"]
    finally:
        site.command(before)
