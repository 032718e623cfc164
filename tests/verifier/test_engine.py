"""What is verified once, what is flagged, where programs run, and types of checks of the user's own."""

import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Literal

import anyio
import pytest
from pydantic import JsonValue

from ashep.config import read
from ashep.config.checks.parser import read_criteria
from ashep.core.facts.delivery import status_of, summary_of
from ashep.core.policy.settings import Settings, WorkerSettings
from ashep.core.policy.verification_settings import OwnCheckType, VerificationSettings
from ashep.errors import ConfigError
from ashep.factories import verifier_of, worktrees_of
from ashep.ports.verifier import CheckFinding, Ground, VerifyRequest, verify_against_base
from tests.test_docs import fences
from tests.verifier.place import ROOT, World, criteria_of

# --- once -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def counted(world: World) -> Path:
    """A file to which a check that runs adds a line."""
    return world.repository.folder.parent / "count"


def count(path: Path) -> dict[str, object]:
    return {"type": "test_pass", "verify": {"command": ["sh", "-c", f"echo run >>{path}"]}}


def runs(path: Path) -> int:
    return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.mark.promise("W1")
async def test_the_same_tree_and_checks_are_not_verified_twice(world: World, counted: Path) -> None:
    first = await world.verify(count(counted))
    world.repository.commit()  # another commit of the same tree
    again = await world.verify(count(counted))
    assert runs(counted) == 1
    assert again.commit != first.commit
    assert (again.tree, again.checks, again.results) == (first.tree, first.checks, first.results)
    world.begin()
    await world.verify(count(counted))
    assert runs(counted) == 2
    world.begin()
    world.verifier.remember([first])
    await world.verify(count(counted))
    assert runs(counted) == 2
    world.begin()
    request = VerifyRequest(world.repository.folder, "HEAD", None, criteria_of(count(counted)))
    assert (await world.verifier.verify(replace(request, known=first))).results == first.results
    assert runs(counted) == 2
    for _ in range(2):
        await world.verifier.verify(replace(request, afresh=True))
    assert runs(counted) == 4


@pytest.mark.promise("W1")
async def test_another_tree_other_checks_and_other_scripts_are_verified(world: World, counted: Path) -> None:
    base = world.repository.git("rev-parse", "HEAD")
    first = await world.verify(count(counted), base=base)
    same = await world.verify(count(counted))
    assert (first.checks, runs(counted)) == (same.checks, 1)  # the scripts are the same: there are none
    scripted = world.repository.commit({".agent-shepherd/checks/a": "a"})
    assert (await world.verify(count(counted), base=scripted)).tree != first.tree
    assert runs(counted) == 2
    other = await world.verify(count(counted), base=base)
    assert (other.checks, runs(counted)) == (first.checks, 3)
    assert (await world.verify(count(counted) | {"description": "new"}, base=base)).checks != first.checks
    assert runs(counted) == 4


def more_path(world: World) -> None:
    world.environ = {"PATH": f"{world.environ['PATH']}:/more"}


def a_variable(world: World) -> None:
    world.settings = world.settings.model_copy(update={"environment": ("MODE",)})


def a_value(world: World) -> None:
    world.environ = world.environ | {"GIVEN": "other"}


def network(world: World) -> None:
    world.settings = world.settings.model_copy(update={"network": True})


def sandbox(world: World) -> None:
    world.settings = world.settings.model_copy(update={"sandbox": "auto"})


def nothing(world: World) -> None:
    world.environ = world.environ | {"NOT_GIVEN": "other"}


@pytest.mark.promise("W1")
@pytest.mark.parametrize(
    ("change", "again"), [(more_path, 1), (a_variable, 1), (a_value, 1), (network, 1), (sandbox, None), (nothing, 0)]
)
async def test_what_was_found_holds_for_the_ground_that_it_was_found_on(
    world: World, counted: Path, change: Callable[[World], None], again: int | None
) -> None:
    """A check may fail without the network, and pass with it: what an earlier life found is no answer then."""
    world.environ |= {"GIVEN": "one"}
    world.settings = world.settings.model_copy(update={"environment": ("GIVEN",)})
    world.begin()
    looks = {"type": "file_exists", "verify": {"path": "README.md"}}
    first, looked = await world.verify(count(counted)), await world.verify(looks)
    change(world)
    world.begin()
    request = VerifyRequest(world.repository.folder, "HEAD", None, criteria_of(count(counted)))
    found = await world.verifier.verify(replace(request, known=first))
    if again is None:  # where there is bubblewrap it is another ground, which the file is out of reach from
        assert (found.checks != first.checks) == found.isolated
    else:
        assert (found.checks != first.checks, runs(counted)) == (bool(again), 1 + again)
    assert (await world.verify(looks)).checks == looked.checks, "what runs nothing depends on none of it"


@pytest.mark.promise("W1")
async def test_what_a_type_of_ones_own_found_holds_for_its_class_options_and_files(world: World) -> None:
    project = world.repository.folder
    keys = list[str]()
    own = f"import helping_checks\n{OWN}"
    for word, options, helping, name in (
        ("1", "so ", "x", "first_checks"), ("1", "so ", "x", "first_checks"), ("1", "oh ", "x", "first_checks"),
        ("2", "so ", "x", "second_checks"), ("1", "so ", "y", "first_checks"),
    ):  # fmt: skip
        world.repository.write(
            {f"{name}.py": f"{own}\nVERSION = {word}\n", "helping_checks.py": f"word = '{helping}'\n"}
        )
        for module in ("first_checks", "second_checks", "helping_checks"):
            sys.modules.pop(module, None)  # as a new process begins
        types = {"fussy": OwnCheckType(type=f"{name}:Fussy", options={"word": options})}
        verifier = verifier_of(
            project, Settings(verification=VerificationSettings(types=types, sandbox="none")), world.keep
        )
        checks = criteria_of({"type": "fussy", "verify": {"more": "it is"}})
        keys.append((await verifier.verify(VerifyRequest(project, "HEAD", None, checks))).checks)
    assert keys[0] == keys[1]
    assert len(set(keys)) == 4


async def test_what_could_not_be_carried_out_is_tried_again(world: World, counted: Path) -> None:
    for _ in range(2):
        found = await world.verify(count(counted), {"type": "unknown"})
        assert status_of(found.results) == "blocked"
    assert runs(counted) == 2


async def test_two_at_once_are_one(world: World, counted: Path) -> None:
    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(world.verify, count(counted))
    assert runs(counted) == 1


@pytest.mark.promise("W1")
async def test_a_check_that_was_green_before_any_work_is_flagged(world: World) -> None:
    base = world.repository.git("rev-parse", "HEAD")
    world.repository.commit({"new.txt": "new", "src/main.py": None})
    paths = ("README.md", "new.txt", "none", "src/main.py")
    checks = [{"type": "file_exists", "verify": {"path": path}} for path in paths]
    request = VerifyRequest(world.repository.folder, "HEAD", base, criteria_of(*checks))
    found = await verify_against_base(world.verifier, request)
    assert [(one.status, one.proves_nothing) for one in found.results] == [
        ("passed", True), ("passed", False), ("failed", False), ("failed", False),
    ]  # fmt: skip
    assert found == await verify_against_base(world.verifier, request)
    world.verifier.remember([found])
    assert not any(one.proves_nothing for one in (await world.verifier.verify(request)).results)
    plain = await verify_against_base(world.verifier, VerifyRequest(request.repository, "HEAD", None, request.criteria))
    assert not any(one.proves_nothing for one in plain.results)


async def test_a_base_is_verified_once(world: World, counted: Path) -> None:
    base = world.repository.git("rev-parse", "HEAD")
    for number in range(3):
        commit = world.repository.commit({"new.txt": str(number)})
        request = VerifyRequest(world.repository.folder, commit, base, criteria_of(count(counted)))
        await verify_against_base(world.verifier, request)
    assert runs(counted) == 4


@pytest.mark.promise("W1")
async def test_what_lands_on_a_base_that_moves_is_held_against_its_beginning_which_is_known(
    world: World, counted: Path
) -> None:
    """A landing costs one verification, although it is asked as well what held before any work."""
    checks = criteria_of(count(counted), {"type": "file_exists", "verify": {"path": "theirs.txt"}})
    begin, newest = world.repository.git("rev-parse", "HEAD"), world.repository.commit({"theirs.txt": "theirs"})
    for number in range(3):
        commit = world.repository.commit({"new.txt": str(number)})
        request = VerifyRequest(world.repository.folder, commit, newest, checks)
        found = await verify_against_base(world.verifier, request, begin)
        assert [(one.status, one.proves_nothing) for one in found.results] == [("passed", True), ("passed", False)]
    assert runs(counted) == 4, "the beginning once, and what lands each time"


async def test_results_are_counted(world: World) -> None:
    found = await world.verify(
        {"type": "file_exists", "verify": {"path": "README.md"}},
        {"type": "manual", "verify": {"question": "?"}},
        {"type": "unknown"},
    )
    summary = summary_of(found.results)
    assert (summary.total, summary.passed, summary.failed, summary.skipped) == (3, 1, 1, 1)
    assert [one.check_id for one in found.results] == ["c0", "c1", "c2"]


# --- the sandbox ------------------------------------------------------------------------------------------------------


@pytest.fixture
def without_bubblewrap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A PATH with git and a shell on it, and no bubblewrap."""
    for name in ("git", "sh"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # nor in the cache of tools


@pytest.mark.promise("W3")
@pytest.mark.usefixtures("without_bubblewrap")
async def test_where_bubblewrap_is_missing_it_is_said_or_refused(world: World) -> None:
    world.set(sandbox="auto")
    found = await world.verify({"type": "test_pass", "verify": {"command": ["sh", "-c", "exit 0"]}})
    assert (found.results[0].status, found.isolated) == ("passed", False)
    isolation = await world.verifier.isolation()
    assert isolation.lines[0] == "checks run without a sandbox: bubblewrap (bwrap) is not installed"
    world.set(sandbox="bwrap")
    found = await world.verify(
        {"type": "test_pass", "verify": {"command": ["sh", "-c", "exit 0"]}},
        {"type": "file_exists", "verify": {"path": "README.md"}},
    )
    assert [one.status for one in found.results] == ["error", "passed"]
    assert found.results[0].message == "`verification.sandbox` is bwrap, and bubblewrap (bwrap) is not installed"
    assert found.isolated is None, "nothing ran"


@pytest.mark.promise("W3")
@pytest.mark.usefixtures("without_bubblewrap")
async def test_what_an_issues_text_says_runs_in_a_sandbox_or_not_at_all(world: World) -> None:
    criteria = criteria_of(
        {"id": "theirs", "type": "test_pass", "verify": {"command": ["sh", "-c", "exit 0"]}},
        {"id": "served", "type": "http_request", "verify": {"path": "/", "service": {"start": ["sh"]}}},
        {"id": "looks", "type": "file_exists", "verify": {"path": "README.md"}},
        {"id": "ours", "type": "test_pass", "verify": {"command": ["sh", "-c", "exit 0"]}},
    )
    request = VerifyRequest(
        world.repository.folder, "HEAD", None, criteria, strangers=frozenset({"theirs", "served", "looks"})
    )
    world.set(sandbox="auto")
    found = (await world.verifier.verify(request)).results
    assert [one.status for one in found] == ["error", "error", "passed", "passed"]
    assert "run in a sandbox alone, and bubblewrap (bwrap) is not installed" in found[0].message
    world.set(sandbox="none")  # chosen by hand
    found = (await world.verifier.verify(request)).results
    assert found[0].status == "passed"


@pytest.mark.promise("W3")
async def test_a_bubblewrap_that_may_not_isolate_is_not_used(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusing = tmp_path / "bwrap"
    refusing.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    refusing.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    world.set(sandbox="auto")
    lines = (await world.verifier.isolation()).lines
    assert lines[0].endswith("bubblewrap cannot isolate here: bwrap: No permissions to create new namespace")


async def test_what_is_isolated_is_said(sandbox: World) -> None:
    found = await sandbox.verify({"type": "test_pass", "verify": {"command": ["true"]}})
    assert found.isolated
    isolation = await sandbox.verifier.isolation()
    assert "no network but a loopback" in isolation.lines[0]
    sandbox.set(network=True)
    assert "the network is open" in (await sandbox.verifier.isolation()).lines[0]
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    dialled = await sandbox.one("test_pass", command=["bash", "-c", f"exec 3<>/dev/tcp/127.0.0.1/{port}"])
    await listener.aclose()
    assert dialled.status == "passed"


@pytest.mark.promise("W3")
async def test_without_a_program_nothing_needs_a_sandbox(world: World) -> None:
    found = await world.verify({"type": "file_exists", "verify": {"path": "README.md"}})
    assert found.isolated is None, "no program ran: neither in a sandbox nor without one"


# --- types of the user's own ------------------------------------------------------------------------------------------


class LongLines:
    """Looks for lines that are too long."""

    async def check(self, verify: Mapping[str, JsonValue], ground: Ground) -> CheckFinding:
        most = verify["most"]
        assert isinstance(most, int)
        if most == 0:
            await anyio.sleep(60)
        ended = await ground.run(["awk", f"length > {most}", "README.md"], timedelta(seconds=20))
        assert (ended.code, ended.why) == (0, "")
        assert await anyio.Path(ground.tree, "README.md").exists()
        return CheckFinding("failed" if ended.output else "passed", f"of {ground.commit}", ended.output)


class Reads:
    """Looks without a program."""

    async def check(self, verify: Mapping[str, JsonValue], ground: Ground) -> CheckFinding:
        assert not verify
        return CheckFinding("passed" if await anyio.Path(ground.tree, "README.md").exists() else "failed", "read")


async def test_a_type_of_ones_own_that_runs_no_program_is_in_no_sandbox(either: World) -> None:
    either.types = {"reads": Reads()}
    either.begin()
    found = await either.verify({"type": "reads", "verify": {}})
    assert (found.results[0].status, found.isolated) == ("passed", None)


async def test_a_type_of_ones_own(either: World) -> None:
    either.types = {"long_lines": LongLines()}
    either.begin()
    head = either.repository.git("rev-parse", "HEAD")
    found = await either.verify(
        {"type": "long_lines", "verify": {"most": 5}},
        {"type": "long_lines", "verify": {"most": 80}},
        {"type": "long_lines", "verify": {"most": 0}, "timeout": "100ms"},
    )
    assert [(one.status, one.message) for one in found.results] == [
        ("failed", f"of {head}"),
        ("passed", f"of {head}"),
        ("error", "it had not ended after 100ms"),
    ]
    assert either.output(found.results[0]) == "Read me.\n"


OWN = """
from ashep.ports.verifier import Found

class Fussy:
    def __init__(self, context):
        self.word = context.options["word"]

    async def check(self, verify, ground):
        return Found("passed", self.word + verify["more"])

class Wrong:
    async def check(self, verify):
        return None
"""


async def test_a_type_is_a_class_that_the_settings_name(world: World) -> None:
    project = world.repository.folder
    world.repository.write({"fussy_checks.py": OWN})
    own = {"fussy": OwnCheckType(type="fussy_checks:Fussy", options={"word": "so "})}
    settings = Settings(verification=VerificationSettings(types=own))
    verifier = verifier_of(project, settings, world.keep)
    checks = criteria_of({"type": "fussy", "verify": {"more": "it is"}}, {"type": "fussy"})
    found = await verifier.verify(VerifyRequest(project, "HEAD", None, checks))
    assert (found.results[0].status, found.results[0].message) == ("passed", "so it is")
    assert found.results[1].status == "error"
    assert "fussy_checks:Fussy.check KeyError: 'more'" in found.results[1].message
    wrong = {"wrong": OwnCheckType(type="fussy_checks:Wrong")}
    with pytest.raises(ConfigError, match=r"verification\.types\.wrong\.type.*Wrong is no CheckType"):
        verifier_of(project, Settings(verification=VerificationSettings(types=wrong)), world.keep)


@pytest.mark.parametrize(("workspace", "status"), [("worktree", "passed"), ("place", "failed")])
async def test_where_branches_have_places_a_check_is_lent_what_they_are(
    world: World, workspace: Literal["worktree", "place"], status: str
) -> None:
    project, git = world.repository.folder, world.repository.git
    git("branch", "-M", "main")
    git("checkout", "-qb", "theirs")
    theirs = world.repository.commit({"secret": "theirs"})
    git("checkout", "-q", "main")
    verification = VerificationSettings(sandbox="none")
    settings = Settings(verification=verification, worker=WorkerSettings(workspace=workspace))
    await worktrees_of(project, settings).prepare("ashep/t-1", None, 0)
    checks = criteria_of({"type": "test_pass", "verify": {"command": ["git", "cat-file", "-e", theirs]}})
    verifier = verifier_of(project, settings, world.keep)
    found = await verifier.verify(VerifyRequest(project, "ashep/t-1", "main", checks))
    assert found.results[0].status == status


async def test_the_type_of_the_guide_works(world: World) -> None:
    blocks = dict(fences((ROOT / "docs" / "guides" / "verification.md").read_text()))
    world.repository.write({"word_count.py": blocks['python title="word_count.py"']})
    settings = read(Settings, blocks["yaml"], Path("config.yaml"))
    verifier = verifier_of(world.repository.folder, settings, world.keep)
    text = blocks['yaml title="a part of an issue\'s acceptance criteria"']
    criteria = read_criteria(f"```yaml\n{text}```", "t-1", settings.verification.types)
    assert criteria is not None
    found = await verifier.verify(VerifyRequest(world.repository.folder, "HEAD", None, criteria))
    assert (found.results[0].status, found.results[0].message) == (
        "passed",
        "README.md has 2 words; at most 500 are expected",
    )
