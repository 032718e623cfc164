"""A repository and a verifier for each test."""

import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from tests.verifier.place import World, repository


@pytest.fixture
def world(folder: Path) -> World:
    """A repository with one commit, and no sandbox."""
    made = World(repository(folder.parent / "repository"), folder.parent / "scratch")
    made.repository.commit({"README.md": "Read me.\n", "src/main.py": "print('hello')\n"})
    return made


@cache
def has_bubblewrap() -> bool:
    """Whether bubblewrap is there, and may make namespaces."""
    argv = ["bwrap", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "--unshare-all", "true"]
    return shutil.which("bwrap") is not None and subprocess.run(argv, capture_output=True).returncode == 0


@pytest.fixture
def sandbox(world: World) -> World:
    """A world with a sandbox."""
    if not has_bubblewrap():
        pytest.skip("bubblewrap is not there, or may not make namespaces")
    world.set(sandbox="bwrap")
    return world


@pytest.fixture(params=["none", "bwrap"])
def either(request: pytest.FixtureRequest, world: World) -> World:
    """A world without a sandbox, and one with."""
    if request.param == "bwrap":
        request.getfixturevalue("sandbox")
    return world
