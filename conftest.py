"""What all tests share: the anyio backend, a project's folder, and a guard against calls that block the event loop."""

import faulthandler
import functools
import gc
import hashlib
import inspect
import os
import shutil
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from blockbuster import BlockBuster, blockbuster_ctx
from hypothesis import settings
from xdist.remote import Producer
from xdist.workermanage import WorkerController

from ashep.adapters.system import programs
from tests import full, places, spread

if TYPE_CHECKING:
    from tests.conformance.workspaces import GitWorkspacesWorld

# A deadline in milliseconds measures the machine's load, not the code. The same examples every time: whether a change
# passes is no matter of luck. HYPOTHESIS=explore draws others.
settings.register_profile("ashep", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None)
settings.load_profile("explore" if os.environ.get("HYPOTHESIS") == "explore" else "ashep")


LONGEST_REAL = 600.0
"""Seconds after which a test with real tools hangs: what it waits for has bounds of its own, below that."""

LONGEST_END = 180.0
"""Seconds that what a test leaves may take to end. The time limit of a test is used up once it has struck, and what
hangs then would hang for ever: nobody would learn what failed."""

DIED = pytest.StashKey[bool]()
"""Whether a worker died in the midst of this test."""

USED = pytest.StashKey[float]()
"""The processor time before this test, in seconds."""

_told = 2
"""Where tracebacks of a process that hangs go: its standard error, which pytest takes for itself later."""


def pytest_configure(config: pytest.Config) -> None:
    """Give the run a name, which its workers and what they start inherit."""
    global _told
    _told = os.dup(2)
    gc.disable()  # what is imported and collected stays: looking through it again and again takes a third of that time
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        # so it is for a job in the background, and so all that it starts would inherit it: nothing would hear Ctrl-C
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if not hasattr(config, "workerinput"):
        os.environ[places.RUN] = f"{os.getpid()}"
        # hundreds of processes of ashep begin here: half of a short one's time is compiling what it imports
        os.environ["PYTHONDONTWRITEBYTECODE"] = ""
        os.environ |= places.QUICK
        bubblewrap = programs.find("bwrap")
        if bubblewrap is not None and shutil.which("bwrap") is None:  # a copy of ours: those in homes of their own, too
            os.environ["PATH"] += f"{os.pathsep}{bubblewrap.parent}"
        # what databases and git bring onto a disk takes a sixteenth of all time; a container may have 64 MiB there
        if os.access(places.SHM, os.W_OK) and shutil.disk_usage(places.SHM).free > 4 * 1024**3:
            os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(places.SHM))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how many tests of the sandbox could not run: a machine without one passes, and does not pass for one with."""
    skipped = terminalreporter.stats.get("skipped", [])
    if left := [one for one in skipped if "bubblewrap" in str(getattr(one, "longrepr", ""))]:
        terminalreporter.write_line(f"{len(left)} tests of the sandbox could not run here: no usable bubblewrap")


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """End what tests left, also those whose worker died; whoever looks at the log sees that there was something."""
    if hasattr(config, "workerinput"):
        faulthandler.dump_traceback_later(LONGEST_END, exit=True, file=_told)  # threads that do not end
        return
    factory: pytest.TempPathFactory | None = getattr(config, "_tmp_path_factory", None)
    below = [factory.getbasetemp()] if factory is not None and factory._basetemp is not None else []
    for pid, words in places.end_run(os.environ.pop(places.RUN), *below).items():
        print(f"process {pid} was left by a test, and is ended: {words}", file=sys.stderr)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only repeats, where nobody asks for it (`-m full`), and let the long ones come first."""
    if full.in_full() or _is_whole(config):
        full.take_turns(items)
    if not full.in_full() and "full" not in config.option.markexpr:
        repeating = [item for item in items if item.get_closest_marker("full")]
        config.hook.pytest_deselected(items=repeating)
        items[:] = [item for item in items if not item.get_closest_marker("full")]
    if shared := spread.sharing(items):
        raise pytest.UsageError(f"tests of a file that is told to share nothing share a fixture: {shared[:5]}")
    spread.sort(items)
    costly = spread.costly()
    for item in items:
        if item.nodeid in costly:
            item.add_marker("costly")
        if item.get_closest_marker("real") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(LONGEST_REAL))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    """Say to a worker whether all tests run: of a file or a test that is named, all run anyway."""
    node.workerinput["whole"] = _is_whole(node.config)


def _is_whole(config: pytest.Config) -> bool:
    given: dict[str, bool] = getattr(config, "workerinput", {})
    return given.get("whole", config.args_source is pytest.Config.ArgsSource.TESTPATHS)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Look for garbage among what the tests make, not in all that is there before them."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> spread.Spread:
    """Whichever way of sharing out was asked for, it is this one."""
    return spread.Spread(config, log)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, bool | None, bool | None]:
    """End the process, with every thread's traceback, where a test does not end; the other tests go on in another."""
    marker = item.get_closest_marker("timeout")
    limit = float(marker.args[0] if marker else item.config.getini("timeout") or 300)
    runs = places.memory() / f"runs-{hashlib.sha256(item.nodeid.encode()).hexdigest()[:16]}"
    item.stash[DIED] = runs.exists()
    item.stash[USED] = spread.processor_time()
    runs.parent.mkdir(exist_ok=True)
    runs.touch()
    faulthandler.dump_traceback_later(limit + LONGEST_END, exit=True, file=_told)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()
        runs.unlink(missing_ok=True)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Do not try a test again that its worker died of: the next one would, too."""
    if item.stash[DIED]:
        pytest.fail("the worker that ran it died", pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Say what a test cost; workers report to the process that writes it down."""
    report = yield
    if report.when == "teardown":
        report.user_properties.append((spread.PROCESSOR, spread.processor_time() - item.stash[USED]))
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that lives in virtual time there."""
    if not pyfuncitem.get_closest_marker("virtual") or not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    from tests.loop_world import simulate  # half of ashep: only who needs it waits for it

    names = inspect.signature(pyfuncitem.obj).parameters
    simulate(functools.partial(pyfuncitem.obj, **{name: pyfuncitem.funcargs[name] for name in names}))
    return True


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
        if os.environ.get("DURATIONS") == "write":
            session.config.pluginmanager.register(spread.Durations())


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """Run async tests on asyncio, the only backend that ashep runs on."""
    return "asyncio"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A project's folder, in memory where the machine has such a place: a batch costs milliseconds on a disk."""
    place = places.made()
    yield place / ".agent-shepherd"
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def git_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git with no settings of the person who runs the tests, and no repository above them."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))


@pytest.fixture
def world(folder: Path, git_alone: None) -> "GitWorkspacesWorld":
    """A repository with a commit; files whose world is another one have a fixture of their own."""
    from tests.conformance.workspaces import GitWorkspacesWorld

    return GitWorkspacesWorld(folder.parent)


@pytest.fixture(autouse=True)
def no_blocking(request: pytest.FixtureRequest) -> Iterator[BlockBuster | None]:
    """Fail an async test in which ashep blocks the event loop; `@pytest.mark.may_block` switches this off."""
    function = getattr(request.node, "function", None)
    free = any(
        request.node.get_closest_marker(name) for name in ("may_block", "virtual")
    )  # that keeps its files itself
    if free or not inspect.iscoroutinefunction(function):
        yield None
        return
    with blockbuster_ctx(
        "ashep", excluded_modules=["ashep.extras.testing"]
    ) as guard:  # those are tests, which may block
        # asyncio starts processes synchronously: looking for the program and the fork are not worth a thread
        for blocking in guard.functions.values():
            blocking.can_block_in("asyncio/base_events.py", {"subprocess_exec"})
        yield guard
