"""bd comes by itself where there is Go: with progress, and after Ctrl-C the next call goes on; messages say how."""

import os
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from ashep.actions.get_bd import get_bd
from ashep.adapters.system import tool_sources
from ashep.adapters.system.tool_sources import how_to_get
from ashep.errors import ProgramMissing
from tests.test_setup import GO, Machine

COMPILES = '#!/bin/sh\necho "$$" >> "$FAKE_LOG"\nsleep 60\n'


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine with a C compiler, and without Go and bd."""
    made = Machine(tmp_path)
    made.program("gcc", "#!/bin/sh\n")
    (made.bin / "sleep").symlink_to("/bin/sleep")
    for name, value in (("PATH", made.bin), ("XDG_CACHE_HOME", made.cache), ("FAKE_LOG", made.log)):
        monkeypatch.setenv(name, str(value))
    return made


@pytest.mark.promise("L6")
async def test_bd_is_built_once_with_progress(machine: Machine) -> None:
    said = list[str]()
    await to_thread.run_sync(machine.program, "go", GO)
    assert await get_bd(said.append) == await get_bd(said.append) == machine.cache / "ashep/tools/bd-1.3.0/bd"
    assert [line.partition(":")[0] for line in said] == ["bd", "bd"]
    assert len(machine.log.read_text().splitlines()) == 1


@pytest.mark.promise("L6")
async def test_a_build_that_is_ended_leaves_no_compiler_and_no_folder_and_the_next_call_builds(
    machine: Machine,
) -> None:
    await to_thread.run_sync(machine.program, "go", COMPILES)
    compiler = ""
    async with anyio.create_task_group() as group:
        group.start_soon(get_bd, lambda _: None)
        while not compiler.strip():
            await anyio.sleep(0.05)
            compiler = await anyio.Path(machine.log).read_text()
        group.cancel_scope.cancel()
    with pytest.raises(ProcessLookupError):
        os.kill(int(compiler), 0)
    assert not [*(machine.cache / "ashep/tools").glob(".bd-*")]
    await to_thread.run_sync(machine.program, "go", GO)
    assert (await get_bd(lambda _: None)).is_file()


async def test_where_there_is_no_go_it_is_said_where_it_comes_from(machine: Machine) -> None:
    with pytest.raises(ProgramMissing, match=r"go is not on PATH(.|\n)*https://go\.dev/dl/"):
        await get_bd(lambda _: None)


@pytest.mark.promise("L6")
def test_a_message_names_the_command_of_this_machine_and_an_address(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, target in (("bd", "setup"), ("opencode", "setup"), ("claude", "claude")):
        assert "https://" in how_to_get(name)
        assert f"or run `make {target}` in " in how_to_get(name)
    monkeypatch.setattr(tool_sources, "_CHECKOUT", tmp_path / "setup.py")  # as in what a wheel installed
    for name in ("bd", "opencode", "claude"):
        assert "make " not in how_to_get(name)
        assert "https://" in how_to_get(name)
    assert "npm" not in how_to_get("claude")
    assert "install the wheel ashep-bd" in how_to_get("bd")
    machine.program("go", GO)
    machine.program("npm", "#!/bin/sh\n")
    assert how_to_get("bd").endswith(", or run `ashep get-bd`, which builds it here")
    assert "npm install -g @anthropic-ai/claude-code@" in how_to_get("claude")
