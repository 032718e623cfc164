"""What all tests share: the anyio backend, a project's folder, and a guard against calls that block the event loop."""

import inspect
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from blockbuster import BlockBuster, blockbuster_ctx
from hypothesis import settings

# A deadline in milliseconds measures the machine's load, not the code.
settings.register_profile("ashep", deadline=None)
settings.load_profile("ashep")


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
