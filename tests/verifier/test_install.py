"""Dependencies of a checkout: steps that bring them before the first program of a check, and the cache they read."""

import os
from pathlib import Path

import pytest

from ashep.config.files import read
from ashep.core.policy.settings import Settings
from ashep.errors import AshepError
from tests.verifier.place import World

pytestmark = pytest.mark.promise("W1")


def runs(name: str, script: str) -> dict[str, object]:
    return {"id": name, "type": "test_pass", "verify": {"command": ["sh", "-c", script]}}


def step(script: str) -> tuple[str, ...]:
    return ("sh", "-c", script)


async def test_steps_run_once_before_the_programs_of_checks_in_their_checkout(either: World) -> None:
    """What they change in files of the commit is put back, what they make stays, for each check."""
    either.set(install=(step("mkdir needs && echo 1 >> needs/log && echo x > README.md"), step("echo 2 >> needs/log")))
    script = 'test "$(cat needs/log | tr -d "\\n")" = 12 && grep -q "Read me" README.md'
    verification = await either.verify(runs("first", script), runs("second", script))
    assert [result.status for result in verification.results] == ["passed", "passed"]
    assert either.left == []


async def test_what_only_looks_needs_no_dependencies(world: World) -> None:
    world.set(install=(step("exit 1"),), cache=str(world.scratch / "nowhere"))
    assert (await world.one("file_exists", path="README.md")).status == "passed"


async def test_where_a_step_fails_no_check_is_carried_out(world: World) -> None:
    """It is neither passed nor failed, says which step it was, and what that printed."""
    world.set(install=(step("echo ENOTCACHED; exit 3"),), cache="~/nowhere")
    first, second = (await world.verify(runs("first", "true"), runs("second", "true"))).results
    assert (first.status, second.status, first.cause) == ("error", "error", "network")
    assert first.message == second.message
    assert (
        "`sh -c 'echo ENOTCACHED; exit 3'` of `verification.install` failed: exit code 3; expected 0" in first.message
    )
    assert "`verification.cache` names" in first.message
    assert world.output(first) == "ENOTCACHED\n"


async def test_no_check_can_write_what_the_next_commit_is_given(either: World) -> None:
    """Its home begins as a copy of the cache: what an agent's commit makes of that is gone with its checkout."""
    cache = either.repository.folder.parent / "cache"
    (cache / ".npm").mkdir(parents=True)
    (cache / ".npm" / "package").write_text("good")
    (cache / ".npm" / "link").symlink_to("package")
    either.set(install=(step("cat ~/.npm/link > brought.txt"),), cache=str(cache))
    poison = 'for file in ~/.npm/package ~/.npm/link; do echo evil > "$file"; done; echo evil > ~/.npm/more'
    assert (await either.sh(f"grep -q good brought.txt && {poison}")).status == "passed"
    assert sorted(path.name for path in (cache / ".npm").iterdir()) == ["link", "package"]
    assert (cache / ".npm" / "package").read_text() == "good"
    either.repository.commit({"work.txt": "more"})
    assert (await either.sh("grep -q good brought.txt && test ! -e ~/.npm/more")).status == "passed"


async def test_a_cache_behind_a_link_is_copied_too(world: World) -> None:
    folder = world.repository.folder.parent
    (folder / "cache" / ".shop").mkdir(parents=True)
    (folder / "link").symlink_to("cache")
    world.set(install=(step("true"),), cache=str(folder / "link"))
    assert (await world.sh("rmdir ~/.shop")).status == "passed"
    assert (folder / "cache" / ".shop").is_dir()


async def test_a_cache_that_cannot_be_copied_is_an_error_that_names_the_file(world: World) -> None:
    cache = world.repository.folder.parent / "cache"
    cache.mkdir()
    os.mkfifo(cache / "pipe")
    world.set(install=(step("true"),), cache=str(cache))
    with pytest.raises(AshepError, match=r"cache/pipe of the cache cannot be copied: .*is a named pipe"):
        await world.sh("true")


@pytest.mark.promise("W3")
async def test_in_the_sandbox_the_cache_itself_is_not_there(sandbox: World) -> None:
    cache = sandbox.repository.folder.parent / "cache"
    cache.mkdir()
    sandbox.set(install=(step("true"),), cache=str(cache))
    assert (await sandbox.sh(f"test ! -e {cache}")).status == "passed"


async def test_other_steps_are_other_ground(world: World) -> None:
    """A result that was found without dependencies, or with others, holds no longer."""
    world.set(install=(step("echo 1 > needs"),))
    first = await world.verify(runs("it", "cat needs"))
    world.set(install=(step("echo 2 > needs"),))
    assert (await world.verify(runs("it", "cat needs"))).checks != first.checks
    world.set(cache=str(world.scratch / "a"))
    second = await world.verify(runs("it", "true"))
    world.set(cache=str(world.scratch / "b"))
    assert (await world.verify(runs("it", "true"))).checks != second.checks


def test_a_step_is_written_as_a_command_or_as_words() -> None:
    text = "version: 1\nverification:\n  install: [npm ci --offline, [sh, -c, 'a && b']]\n  cache: ~/.cache/shop\n"
    settings = read(Settings, text, Path("config.yaml")).verification
    assert settings.install == (("npm", "ci", "--offline"), ("sh", "-c", "a && b"))
    assert settings.cache == "~/.cache/shop"
