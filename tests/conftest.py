"""What all tests share: the anyio backend, a project's folder, and a guard against calls that block the event loop."""

import faulthandler
import inspect
import shutil
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from blockbuster import BlockBuster, blockbuster_ctx
from hypothesis import settings

# A deadline in milliseconds measures the machine's load, not the code.
settings.register_profile("ashep", deadline=None)
settings.load_profile("ashep")


LONGEST_END = 180.0
"""Seconds that what a test leaves may take to end. The time limit of a test is used up once it has struck, and what
hangs then would hang for ever: nobody would learn what failed."""


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown() -> Generator[None]:
    """End the process, with every thread's traceback, where a test does not end; the other tests go on in another."""
    faulthandler.dump_traceback_later(LONGEST_END, exit=True, file=sys.__stderr__ or sys.stderr)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


class SaidAtOnce:
    """Says what failed when it fails: a run that is stopped before its end would say nothing but `F`."""

    def __init__(self, terminal: pytest.TerminalReporter) -> None:
        self._terminal = terminal

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Say it, at most some 6,000 characters of it."""
        if report.failed:
            self._terminal.write_line("")
            self._terminal.write_line(f"FAILED {report.nodeid} ({report.when}, {report.duration:.1f} s)", red=True)
            self._terminal.write_line(report.longreprtext[-6000:])


def pytest_sessionstart(session: pytest.Session) -> None:
    """In the process that tells; the others have no terminal."""
    terminal = session.config.pluginmanager.get_plugin("terminalreporter")
    if isinstance(terminal, pytest.TerminalReporter) and not hasattr(session.config, "workerinput"):
        session.config.pluginmanager.register(SaidAtOnce(terminal))


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run async tests on asyncio, the only backend that ashep runs on."""
    return "asyncio"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A project's folder, in memory where the machine has such a place: a batch costs milliseconds on a disk."""
    shm = Path("/dev/shm")
    place = Path(tempfile.mkdtemp(dir=shm)) if shm.is_dir() else tmp_path
    yield place / ".agent-shepherd"
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture(autouse=True)
def no_blocking(request: pytest.FixtureRequest) -> Iterator[BlockBuster | None]:
    """Fail an async test in which ashep blocks the event loop; `@pytest.mark.may_block` switches this off."""
    function = getattr(request.node, "function", None)
    if not inspect.iscoroutinefunction(function) or request.node.get_closest_marker("may_block"):
        yield None
        return
    with blockbuster_ctx("ashep", excluded_modules=["ashep.testing"]) as guard:  # those are tests, which may block
        # asyncio starts processes synchronously: looking for the program and the fork are not worth a thread
        for blocking in guard.functions.values():
            blocking.can_block_in("asyncio/base_events.py", {"subprocess_exec"})
        yield guard
