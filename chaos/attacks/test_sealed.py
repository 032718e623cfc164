"""What an agent leaves in its place for our git, and for who judges it: sealed, laid out and looked at."""

import re
from collections.abc import AsyncIterator, Sequence
from itertools import count
from pathlib import Path

import pytest
from anyio import to_thread

from ashep import factories
from ashep.adapters.system.folders import delete, walk
from ashep.errors import AshepError
from chaos.attacks.sealing import SEALED, SETTINGS
from chaos.attacks.stage import Stage, changed
from chaos.attacks.ways import Way
from tests.places import has_bubblewrap

pytestmark = [
    pytest.mark.real, pytest.mark.may_block,
    pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap cannot be used here"),
]  # fmt: skip

_numbers = count(10)


@pytest.fixture(scope="module", params=["bwrap", "none"])
async def stage(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Stage]:
    with Stage(tmp_path_factory.mktemp("sealed"), request.param).open() as made:
        yield made
        await to_thread.run_sync(delete, made.places)  # nobody else could: folders may not be written to


async def tried(stage: Stage, ways: Sequence[Way]) -> tuple[str, list[str], str]:
    """Give the verdict, what was got, and what was said."""
    branch, spaces = f"ashep/t-{next(_numbers)}", factories.worktrees_of(stage.project, stage.settings)
    agent = await stage.begin(branch)
    git, said = stage.project / ".git", ""
    ours = (stage.places, stage.servers, stage.home / ".cache", git / "objects", git / "logs", git / "ashep",
            git / "refs", git / "packed-refs")  # fmt: skip
    before, main = stage.seen(ours), stage.git("rev-parse", "main")
    for way in ways:
        said += await stage.run(agent, way.code)
    await stage.leave(agent)
    refused = ""
    try:
        sealed = await spaces.seal(branch, f"{branch[6:]}/implement.1.1", "Mine")
        refused = " ".join((*sealed.told, *sealed.lacking))
    except AshepError as error:
        refused = str(error)
    ground = Path((await spaces.prepare(branch, None, 0, "sealed")).path)
    held = stage.git("log", "-p", "--text", f"main..{branch}") + stage.git("ls-tree", "-r", branch)
    files = (Path(folder, name) for folder, _, names in walk(str(ground)) for name in names)
    held += "".join(path.read_text(errors="replace") for path in files if path.is_file())
    if (ground / "AGENTS.md").exists():
        held += "REACHED"
    if (ground / ".git").exists() or stage.git("rev-parse", "main") != main:
        held += "REACHED"
    if stage.git("merge-base", "main", branch) != main:
        held += "REACHED"
    if stage.sandbox == "none":
        assert not re.search(r"Traceback|returncode=[1-9]", said), said
    got = stage.told(held) + changed(before, stage.seen(ours))
    return "open" if got else "detected" if refused else "contained", got, f"{said}\n{refused}"


async def test_programs_in_gits_settings(stage: Stage) -> None:
    verdict, got, said = await tried(stage, SETTINGS)
    assert verdict == "contained", (got, said)


@pytest.mark.parametrize("way", SEALED, ids=lambda way: way.name.replace(" ", "-"))
async def test_what_is_left_for_our_git(stage: Stage, way: Way) -> None:
    verdict, got, said = await tried(stage, [way])
    assert verdict == (way.boxed if stage.sandbox == "bwrap" else way.bare), (got, said)
