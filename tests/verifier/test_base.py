"""Checks that fail before any work, too: what the likely cause is, whom it excuses, and how often the base is asked."""

import time
from pathlib import Path
from typing import Any

import pytest

from ashep.adapters.verifier.failure_causes import likely_cause
from ashep.adapters.verifier.sandbox import CACHES
from ashep.core.facts.delivery import CheckResult
from ashep.ports.verifier import CheckFinding, VerifyRequest, verify_against_base
from tests.places import has_bubblewrap
from tests.verifier.place import World, criteria_of

pytestmark = pytest.mark.promise("Z7")


def runs(name: str, script: str, **verify: Any) -> dict[str, Any]:
    return {"id": name, "type": "test_pass", "verify": {"command": ["sh", "-c", script], **verify}}


async def held(world: World, *checks: dict[str, Any], theirs: tuple[str, ...] = ()) -> dict[str, CheckResult]:
    """Verify new work against its base; `theirs`: the checks of an issue's text."""
    base = world.repository.git("rev-parse", "HEAD")
    commit = world.repository.commit({"work.txt": "work"})
    criteria = criteria_of(*checks)
    request = VerifyRequest(world.repository.folder, commit, base, criteria, strangers=frozenset(theirs))
    return {result.check_id: result for result in (await verify_against_base(world.verifier, request)).results}


OFFLINE = "echo 'dial tcp: lookup modules.example: no such host' >&2; exit 1"


async def test_what_the_machine_or_the_base_is_to_blame_for_excuses_the_work(world: World) -> None:
    found = await held(
        world, runs("suite", "exit 3"), runs("deps", OFFLINE), runs("theirs", "test -e new.txt"),
        runs("theirs-deps", OFFLINE), theirs=("theirs", "theirs-deps"),
    )  # fmt: skip
    assert {name: (result.on_base, result.cause) for name, result in found.items()} == {
        "suite": (True, ""), "deps": (True, "network"), "theirs": (False, ""), "theirs-deps": (True, "network"),
    }  # fmt: skip
    assert found["deps"].blame == "fails on the base, too (likely cause: no network in checks)"


async def test_what_asks_for_work_or_fails_otherwise_excuses_nothing(world: World) -> None:
    """A look asks for files and `{base}` for a change; what the work made worse is its own."""
    found = await held(
        world,
        {"id": "look", "type": "file_exists", "verify": {"path": "new.txt"}},
        runs("changed", "git diff --quiet {base} -- new.txt && exit 1"),
        runs("worse", f"test -e work.txt && exit 1; {OFFLINE}"),
        runs("broken", "! test -e work.txt"),
    )
    assert {result.status for result in found.values()} == {"failed"}
    assert not any(result.on_base for result in found.values())


async def test_a_service_elsewhere_that_is_away_is_no_fault_of_the_work(world: World) -> None:
    found = await held(world, {"id": "away", "type": "http_request", "verify": {"path": "/"}})
    assert (found["away"].status, found["away"].on_base) == ("error", True)


async def test_the_projects_checks_are_asked_of_a_base_once_whatever_issues_add(world: World, tmp_path: Path) -> None:
    counted = tmp_path / "counted"
    base = world.repository.git("rev-parse", "HEAD")
    suite = runs("suite", f"echo x >>{counted}; nonesuch-program")
    for number in range(3):
        commit = world.repository.commit({"work.txt": str(number)})
        criteria = criteria_of(suite, runs("own", f"test {number} = 7"))
        request = VerifyRequest(world.repository.folder, commit, base, criteria, strangers=frozenset({"own"}))
        found = await verify_against_base(world.verifier, request)
        assert [(result.cause, result.on_base) for result in found.results] == [("program", True), ("", False)]
    assert len(counted.read_text().split()) == 4, "the base once, and each work"


async def test_what_landed_with_checks_of_its_own_is_a_base_that_is_known(world: World, tmp_path: Path) -> None:
    counted = tmp_path / "counted"
    suite = runs("suite", f"echo x >>{counted}")
    landed = world.repository.commit({"work.txt": "landed"})
    criteria, folder = criteria_of(suite, runs("own", "exit 0")), world.repository.folder
    await world.verifier.verify(VerifyRequest(folder, landed, landed, criteria, strangers=frozenset({"own"})))
    request = VerifyRequest(folder, landed, landed, criteria_of(suite))
    known = await world.verifier.verify(request.before_work(landed, {"suite"}))
    assert [result.status for result in known.results] == ["passed"]
    assert len(counted.read_text().split()) == 1


async def test_what_could_not_be_carried_out_on_the_base_is_remembered_of_that_alone(world: World) -> None:
    check = {"id": "gone", "type": "test_pass", "verify": {"command": ["nonesuch-program"]}}
    folder, criteria = world.repository.folder, criteria_of(check)
    request = VerifyRequest(folder, "HEAD", "HEAD", criteria)
    of_base = request.before_work("HEAD", {"gone"})
    first = await world.verifier.verify(of_base)
    assert (first.results[0].status, first.results[0].cause) == ("error", "program")
    assert await world.verifier.verify(of_base) == first
    tool = folder.parent / "bin" / "nonesuch-program"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    world.environ["PATH"] += f":{tool.parent}"  # the settings are as they were: it was only installed
    assert (await world.verifier.verify(request)).results[0].status == "passed"


# --- the likely cause ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("output", "cause"),
    [
        ("dial tcp: lookup modules.example on 127.0.0.53:53: read: connection refused", "network"),
        ("error: [6] Could not resolve hostname (Could not resolve host: crates.example)", "network"),
        ("npm error request to https://r failed, reason: getaddrinfo EAI_AGAIN r", "network"),
        ("Could not transfer artifact: repo.example: Unknown host repo.example", "network"),
        ("Failed to establish a new connection: [Errno -3] Temporary failure in name resolution", "network"),
        ("sh: 1: tsc: not found", "program"),
        ("bash: line 1: tsc: command not found", "program"),
        ("env: ‘node’: No such file or directory", "program"),
        ("make: tsc: No such file or directory\nmake: *** [Makefile:2: all] Error 127", "program"),
        ("sh: 1: ./new-tool: not found", ""),
        ("FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory", "memory"),
        ("go build x: signal: killed", "memory"),
        ("AssertionError: expected 1, found 2", ""),
        ("dial tcp 127.0.0.1:5432: connect: connection refused", ""),
        ("404: page not found", ""),
    ],
)
def test_the_likely_cause_is_read_from_what_was_printed(output: str, cause: str) -> None:
    assert likely_cause(CheckFinding("failed", "exit code 1", output), ()) == cause
    assert likely_cause(CheckFinding("passed", "", output), ()) == ""


@pytest.mark.parametrize(
    ("script", "verify", "cause"),
    [("sleep 60", {"timeout": "200ms"}, "time"), ("kill -9 $$", {}, "memory"), ("exit 127", {}, "")],
)
async def test_how_a_program_ended_says_it_too(world: World, script: str, verify: dict[str, Any], cause: str) -> None:
    assert (await world.verify(runs("it", script, **verify))).results[0].cause == cause


async def test_an_empty_submodule_is_a_likely_cause_where_it_is_named(world: World) -> None:
    world.repository.write({".gitmodules": '[submodule "dep"]\n\tpath = vendor/dep\n\turl = ../dep\n'})
    world.repository.git("add", ".gitmodules")
    head = world.repository.git("rev-parse", "HEAD")
    world.repository.git("update-index", "--add", "--cacheinfo", f"160000,{head},vendor/dep")
    world.repository.git("commit", "-q", "-m", "A submodule")
    for words, cause in (("vendor/dep/lib.h: No such file or directory", "submodule"), ("it differs", "")):
        assert (await world.verify(runs("it", f"echo {words} >&2; exit 1"))).results[0].cause == cause


@pytest.mark.promise("G6")
@pytest.mark.parametrize("output", ["\n" * 10**6, "a" * 10**6, "a: " * 10**6, "'" * 10**6, "make: " * 10**6])
def test_reading_it_takes_time_in_proportion_to_the_length(output: str) -> None:
    began = time.process_time()
    likely_cause(CheckFinding("failed", "", output), ())
    assert time.process_time() - began < 2


# --- caches of dependencies ---------------------------------------------------------------------------------------

SANDBOXES = ["none", pytest.param("bwrap", marks=pytest.mark.skipif(not has_bubblewrap(), reason="no bubblewrap"))]


@pytest.mark.promise("W3")
@pytest.mark.parametrize("sandbox", SANDBOXES)
async def test_caches_of_dependencies_in_the_home_are_readable(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sandbox: str
) -> None:
    home = tmp_path / "home"
    for name in CACHES:
        (home / name).mkdir(parents=True)
        (home / name / "dep.txt").write_text("dep")
    (home / ".cargo" / "credentials.toml").write_text("key")
    monkeypatch.setenv("HOME", str(home))
    world.set(sandbox=sandbox)
    scripts = [f'test "$(cat "$HOME/{name}/dep.txt")" = dep' for name in CACHES]
    secret = "! test -e $HOME/.cargo/credentials.toml"
    found = await world.verify(runs("it", " && ".join([*scripts, secret, "mkdir -p $HOME/.cache/go-build"])))
    assert found.results[0].status == "passed", found
    assert all((home / name / "dep.txt").exists() for name in CACHES), "they stay when the place goes"
    if sandbox == "bwrap":
        found = await world.verify(runs("it", "touch $HOME/go/pkg/mod/mine"))
        assert found.results[0].status == "failed"
        assert not (home / "go/pkg/mod/mine").exists()
