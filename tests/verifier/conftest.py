"""A repository and a verifier for each test."""

from pathlib import Path

import pytest

from tests.places import has_bubblewrap
from tests.verifier.place import World, repository


@pytest.fixture
def world(folder: Path) -> World:
    """A repository with one commit, and no sandbox."""
    made = World(repository(folder.parent / "repository"), folder.parent / "scratch")
    made.repository.commit({"README.md": "Read me.\n", "src/main.py": "print('hello')\n"})
    return made


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
