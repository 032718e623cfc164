"""What a check is made of comes from the base: an agent that edits its gate changes nothing."""

import os

import pytest

from tests.verifier.place import World

GATE = ".agent-shepherd/checks/gate.sh"
RUN = {"type": "test_pass", "verify": {"command": ["sh", GATE]}}
SHOW = "cat .agent-shepherd/checks/* 2>&1; ls -d .agent-shepherd"


@pytest.fixture
def base(either: World) -> str:
    """A base whose gate fails while there is no file `done`."""
    return either.repository.commit({GATE: "test -f done\n", "other": "1"})


@pytest.mark.promise("W1")
async def test_the_gate_is_that_of_the_base(either: World, base: str) -> None:
    either.repository.commit({GATE: "exit 0\n"})
    assert (await either.verify(RUN, base=base)).results[0].status == "failed"
    assert (await either.verify(RUN)).results[0].status == "passed"  # without a base there is only its own
    either.repository.commit({"done": ""})
    assert (await either.verify(RUN, base=base)).results[0].status == "passed"


async def test_a_gate_that_git_is_told_to_replace_is_still_there(world: World) -> None:
    base = world.repository.commit({GATE: "test -f done\n"})
    evil = world.repository.commit({GATE: "exit 0\n"})
    world.repository.git("replace", base, evil)
    assert (await world.verify(RUN, base=base)).results[0].status == "failed"


async def test_a_gate_that_was_deleted_replaced_or_joined_by_others_is_still_there(either: World, base: str) -> None:
    either.repository.commit({GATE: None})
    assert either.output(await either.sh(SHOW, base)) == "test -f done\n.agent-shepherd\n"
    either.repository.commit({".agent-shepherd/checks/other.sh": "exit 0"})
    assert either.output(await either.sh(SHOW, base)) == "test -f done\n.agent-shepherd\n"
    (either.repository.folder / ".agent-shepherd/checks/other.sh").unlink()
    for folder in (".agent-shepherd/checks", ".agent-shepherd"):
        os.rmdir(either.repository.folder / folder)
    (either.repository.folder / "gates").mkdir()
    (either.repository.folder / "gates" / "gate.sh").write_text("exit 0")
    os.symlink("gates", either.repository.folder / ".agent-shepherd")
    either.repository.commit()
    assert either.output(await either.sh(SHOW, base)) == "test -f done\n.agent-shepherd\n"


async def test_a_gate_that_the_base_does_not_have_is_taken_away(world: World) -> None:
    base = world.repository.git("rev-parse", "HEAD")
    world.repository.commit({GATE: "exit 0\n"})
    assert "No such file" in world.output(await world.sh(SHOW, base))
    assert (await world.one("file_exists", base, path=GATE)).status == "failed"


@pytest.mark.promise("W1")
async def test_a_program_cannot_spoil_the_gate_of_the_next(either: World, base: str) -> None:
    add, spoil = "echo exit 0 >.agent-shepherd/checks/new; true", f"echo exit 0 >{GATE}; rm -rf .agent-shepherd; true"
    found = await either.verify(
        {"type": "test_pass", "verify": {"command": ["sh", "-c", spoil]}},
        {"type": "test_pass", "verify": {"command": ["sh", "-c", add]}},
        {"type": "test_pass", "verify": {"command": ["sh", "-c", SHOW]}}, RUN, base=base,
    )  # fmt: skip
    assert either.output(found.results[2]) == "test -f done\n.agent-shepherd\n"
    assert [one.status for one in found.results] == ["passed", "passed", "passed", "failed"]


@pytest.mark.promise("W3")
async def test_in_a_sandbox_a_program_cannot_spoil_its_own_gate(sandbox: World) -> None:
    base = sandbox.repository.commit({GATE: "echo exit 0 >$0; rm -f $0; cat $0"})
    found = (await sandbox.verify(RUN, base=base)).results[0]
    assert sandbox.output(found).endswith("echo exit 0 >$0; rm -f $0; cat $0")


@pytest.mark.promise("W1")
async def test_a_file_that_shadows_the_runner_does_not_start(either: World) -> None:
    base = either.repository.commit({"test_it.py": "def test_it(): assert False\n", "calendar.py": "old = 1\n"})
    run = {"type": "test_pass", "verify": {"command": ["python3", "-m", "unittest"]}}
    either.repository.commit({"unittest.py": "raise SystemExit(0)\n", "calendar.py": "old = 2\n"})
    found = (await either.verify(run, base=base)).results[0]
    assert found.status == "failed"
    assert found.message.startswith("the work adds unittest.py, which `python3 -m unitt")
    assert (await either.verify(run)).results[0].status == "passed"  # without a base nobody knows whose it is
    either.repository.commit({"unittest.py": None})
    assert "shadow" not in (await either.verify(run, base=base)).results[0].message


async def test_a_gate_finds_the_history_as_it_is_whatever_an_earlier_check_did_to_it(either: World) -> None:
    """The work's own tests moved HEAD to the base: what the gate forbids to change was unchanged then."""
    guarded = either.repository.commit({"guarded": "good\n"})
    base = either.repository.commit({GATE: f"git diff --quiet {guarded} HEAD -- guarded\n"})
    either.repository.commit({"guarded": "evil\n", "tests.sh": f"git update-ref --no-deref HEAD {guarded}\n"})
    tests = {"type": "test_pass", "verify": {"command": ["sh", "tests.sh"]}}
    found = (await either.verify(tests, RUN, base=base)).results
    assert [one.status for one in found] == ["passed", "failed"]


@pytest.mark.parametrize(
    "module", ["unittest.pyc", "unittest/__init__.pyc", "argparse.cpython-313-x86_64-linux-gnu.so"]
)
async def test_no_more_does_one_that_is_compiled(either: World, module: str) -> None:
    """Python imports it as well, and no flag was raised."""
    base = either.repository.commit({"test_it.py": "def test_it(): assert False\n"})
    either.repository.commit({module: "what is in it is not read\n"})
    for option in ("-m", "-Bm"):
        run = {"type": "test_pass", "verify": {"command": ["python3", option, "unittest"]}}
        found = (await either.verify(run, base=base)).results[0]
        assert found.message.startswith(f"the work adds {module}, which `python3 {option} unitt")


async def test_nor_does_a_link_to_a_folder(either: World) -> None:
    base = either.repository.commit({"lib/__init__.py": "raise SystemExit(0)\n"})
    (either.repository.folder / "unittest").symlink_to("lib")
    either.repository.commit({})
    run = {"type": "test_pass", "verify": {"command": ["python3", "-m", "unittest"]}}
    assert (await either.verify(run, base=base)).results[0].message.startswith("the work adds unittest, which")
