"""Proposed checks that are tried with the real tools: what each needs, as the sandbox of checks has no network and no
dependencies. Whoever has no tool for a kind skips it.
"""

import io
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from ashep.actions.project_checks import CheckProposal, CheckTrial, DependencyInstall, find_base_checks, try_check
from ashep.actions.project_checks.trials import count_tests, name_cache
from ashep.core.policy.settings import Settings
from ashep.core.policy.verification_settings import VerificationSettings
from tests.places import has_bubblewrap
from tests.verifier.place import Repository, repository

_NO_REGISTRY = re.compile(r"cannot be fetched.*(resolve|ENOTFOUND|EAI_AGAIN|timed out|unreachable)", re.DOTALL)
IMPORTS_SHOP = "import shop\n\n\ndef test_it():\n    assert shop.tomli_w\n"


@pytest.fixture
def project(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """A repository, and a home without caches, but for the toolchains of rustup."""
    if not has_bubblewrap():
        pytest.skip("bubblewrap is not there, or may not make namespaces")
    home = folder.parent / "home"
    home.mkdir()
    if (Path.home() / ".rustup").is_dir():
        (home / ".rustup").symlink_to(Path.home() / ".rustup")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    return repository(folder.parent / "shop")


async def tried(project: Repository, files: Mapping[str, str | bytes | None] = {}) -> CheckTrial:
    """Commit files, and try the first check that they suggest."""
    project.commit(files)
    proposal = (await find_base_checks(project.folder))[0]
    trial = await try_check(project.folder, Settings(), proposal)
    words, needs = " ".join(trial.command), trial.verification or "nothing"
    print(f"TRIAL | {proposal.kind} | {words} | {needs} | {trial.message} | {trial.seconds:.1f} s")
    print(*(f"  {attempt.way}: {attempt.seconds:.1f} s: {attempt.message}" for attempt in trial.attempts), sep="\n")
    if any(_NO_REGISTRY.search(attempt.message) for attempt in trial.attempts):
        pytest.skip("the registry does not answer")
    return trial


def need(*tools: str) -> None:
    for tool in tools:
        if shutil.which(tool) is None:
            pytest.skip(f"there is no {tool} on this machine")


# --- what needs nothing, and what no way helps ------------------------------------------------------------------------


async def test_a_check_that_needs_nothing_is_tried_once(project: Repository) -> None:
    need("make")
    trial = await tried(project, {"Makefile": "test:\n\t@test -f Makefile && echo 3 passed in 0.1s\n"})
    assert (trial.passes, trial.way, trial.verification, trial.tests, trial.isolated) == (True, "as it is", {}, 3, True)
    assert [attempt.way for attempt in trial.attempts] == ["as it is"]
    assert re.fullmatch(
        r"`make test` passes on the base: [\d.]+ s, 3 tests passed; it needs nothing else", trial.message
    )
    assert trial.verify == {"command": ["make", "test"]}


async def test_what_fails_on_the_base_is_no_check_and_gets_no_rights(project: Repository) -> None:
    need("make")
    trial = await tried(project, {"Makefile": "test:\n\t@echo 'sums.c:3: expected 4 and not 5'; exit 1\n"})
    assert (trial.passes, trial.verification, len(trial.attempts)) == (False, {}, 1)
    assert trial.message.startswith("`make test` does not pass on the base (exit code 2; expected 0): sums.c:3: ")
    assert trial.output.startswith("sums.c:3: expected 4 and not 5\n")


async def test_what_ran_no_test_proves_nothing(project: Repository) -> None:
    need("make")
    trial = await tried(project, {"Makefile": "test:\n\t@printf 'Ran 0 tests in 0.000s\\n'\n"})
    assert (trial.passes, trial.tests) == (False, 0)
    assert trial.message == "`make test` ends well on the base, and ran no test: it would prove nothing"


async def test_only_what_is_committed_is_tried(project: Repository) -> None:
    need("make")
    project.commit({"Makefile": "test:\n\t@test -f made.txt || (echo made.txt: no such file or directory; exit 1)\n"})
    project.write({"made.txt": "of my own", ".git/info/exclude": "made.txt\n"})
    trial = await tried(project)
    assert (trial.passes, [attempt.way for attempt in trial.attempts]) == (False, ["as it is", "network"])


async def test_the_network_is_the_last_way(project: Repository) -> None:
    need("make", "python3")
    with socket.create_server(("127.0.0.1", 0)) as server:
        ask = f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]}))"
        recipe = f'test:\n\t@python3 -c "{ask}" 2>/dev/null || (echo could not resolve host; exit 1)\n'
        trial = await tried(project, {"Makefile": recipe})
    assert (trial.passes, trial.way, trial.verification) == (True, "network", {"network": True})
    assert [attempt.passes for attempt in trial.attempts] == [False, True]


async def list_left(caches: anyio.Path) -> list[str]:
    """What is in the folders of caches and of trials, whose folders of checkouts are empty."""
    places = [place async for place in caches.iterdir()]
    return sorted([entry.name for place in places async for entry in place.iterdir()])


async def test_a_command_without_an_end_is_tried_in_one_way_alone(project: Repository) -> None:
    project.commit({"Makefile": "test:\n\t@echo no module named x; sleep 60\n"})
    proposal = (await find_base_checks(project.folder))[0]
    trial = await try_check(project.folder, Settings(), proposal, longest=timedelta(seconds=2))
    assert (trial.passes, len(trial.attempts)) == (False, 1)


async def test_files_of_the_base_are_read_and_not_those_that_are_being_changed(project: Repository) -> None:
    project.commit({"Makefile": "test:\n\t./run\n"})
    project.write({"Makefile": None, "package.json": '{"scripts": {"test": "node --test"}}'})
    assert [proposal.kind for proposal in await find_base_checks(project.folder)] == ["make"]


def make_proposal(script: str) -> CheckProposal:
    """A check that passes once `script` has put the file `it` into the cache, whose folder it has as `$0`."""
    install = DependencyInstall((), (), ("sh", "-c", script, "{cache}"))
    return CheckProposal("it", ("sh", "-c", "test -e ~/it || (echo not found; exit 1)"), "a rule", install)


async def test_what_runs_outside_of_the_sandbox_is_named_before_it_runs(project: Repository) -> None:
    project.commit({"a.txt": "a"})
    mark = project.folder.parent / "ran"

    def stop(line: str) -> None:
        if "fetches what it depends on" in line:
            raise InterruptedError(line)

    with pytest.raises(InterruptedError, match="as you and outside of the sandbox"):
        await try_check(project.folder, Settings(), make_proposal(f'touch "$0/it" {mark}'), tell=stop)
    assert not await anyio.Path(mark).exists()
    trial = await try_check(project.folder, Settings(), make_proposal(f'touch "$0/it" {mark}'))
    assert (trial.passes, trial.way, await anyio.Path(mark).exists()) == (True, "a cache of its own", True)
    await try_check(project.folder, Settings(), make_proposal('touch "$0/it" "$0/more"'))
    cache = anyio.Path(trial.verification["cache"].replace("~", os.environ["HOME"]))
    assert sorted([path.name async for path in cache.iterdir()]) == ["it", "more"]
    assert await list_left(cache.parent.parent) == [cache.name]


async def test_a_fetch_that_fails_says_why_without_a_secret(
    project: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NPM_TOKEN", "npm_secretsecret1")
    project.commit({"a.txt": "a"})
    trial = await try_check(project.folder, Settings(), make_proposal("echo refused: $NPM_TOKEN >&2; exit 1"))
    assert "refused: [redacted]" in trial.attempts[1].message
    settings = Settings(verification=VerificationSettings(environment=("NPM_TOKEN",)))
    printed = await try_check(
        project.folder, settings, CheckProposal("it", ("sh", "-c", "echo $NPM_TOKEN; exit 1"), "")
    )
    assert printed.output == "[redacted]"
    assert "secretsecret" not in repr((trial, printed))


async def test_a_fetch_that_is_ended_leaves_nothing(project: Repository) -> None:
    project.commit({"a.txt": "a"})
    caches = anyio.Path(os.environ["HOME"], ".cache", "ashep")
    with anyio.CancelScope() as scope:

        def end(line: str) -> None:
            scope.deadline = anyio.current_time() + (1 if "fetches" in line else 60)

        await try_check(project.folder, Settings(), make_proposal('touch "$0/it"; sleep 60'), tell=end)
    assert scope.cancelled_caught
    assert await list_left(caches) == []


async def test_what_a_killed_trial_left_is_removed_by_the_next(project: Repository) -> None:
    left = anyio.Path(os.environ["HOME"], ".cache", "ashep", "trials", "check-left")
    await (left / "fetched").mkdir(parents=True)
    await tried(project, {"Makefile": "test:\n\ttest -f Makefile\n"})
    assert not await left.exists()


@pytest.mark.parametrize("name", ['-it\'s a "shop"', "a\nb", "é" * 100, "..x", "\udcff"])
def test_a_cache_has_a_name_that_config_yaml_and_the_disk_take(name: str, tmp_path: Path) -> None:
    cache = name_cache(tmp_path / name)
    assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{8,60}", cache.name)
    assert name_cache(tmp_path / f"{name}x") != cache


@pytest.mark.parametrize(
    ("output", "count"),
    [
        ("..\n2 passed, 1 skipped in 0.03s\n", 2), ("===== 12 passed in 1.20s =====", 12), ("no tests ran in 0.01s", 0),
        ("test result: ok. 2 passed; 0 failed\n…\ntest result: ok. 0 passed; 0 failed", 2),
        ("Ran 3 tests in 0.1s\n\nOK", 3),
        ("# tests 4\n# pass 4\n# fail 0\n", 4), ("ℹ pass 1\n", 1), ("Tests:       5 passed, 5 total", 5),
        ("      Tests  6 passed (6)", 6), ("  7 passing (12ms)", 7), (" 8 pass\n 0 fail", 8),
        ("ok  \tshop\t0.01s", None), ("?   \tshop\t[no test files]\n", 0),
        ("ok  \tshop/a\t0.01s\nok  \tshop/b\t0.01s [no tests to run]\n?   \tshop\t[no test files]\n", None),
        ("ok  \tshop\t0.01s [no tests to run]\n", 0), ("No test files found, exiting with code 0\n", 0),
        ("No tests found, exiting with code 0\n", 0), ("0 examples, 0 failures\n", 0), ("No tests executed!\n", 0),
        ("Tests run: 2, Failures: 0, Errors: 0, Skipped: 0\nTests run: 5, Failures: 0, Errors: 0, Skipped: 1\n", 4),
    ],
)  # fmt: skip
def test_runners_say_how_many_tests_passed(output: str, count: int | None) -> None:
    assert count_tests(output) == count


@pytest.mark.parametrize(
    "output", ["\n" * 300_000, " " * 300_000, "1 passed " * 30_000, "Tests: " * 40_000, f"{'9' * 5000} passed in 1 s\n"]
)
def test_an_output_that_says_nothing_is_soon_read(output: str) -> None:
    began = time.process_time()
    assert count_tests(output) is None
    assert time.process_time() - began < 5


# --- with the real tools ----------------------------------------------------------------------------------------------


def make_package(name: str) -> bytes:
    """A package of npm's that exports its name."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        files = {
            "package.json": f'{{"name": "{name}", "version": "1.0.0"}}',
            "index.js": f'module.exports = "{name}"\n',
        }
        for inner, content in files.items():
            member = tarfile.TarInfo(f"package/{inner}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content.encode()))
    return buffer.getvalue()


def node_project(project: Repository, version: str) -> dict[str, str | bytes | None]:
    package = {"name": "shop", "version": "1.0.0", "scripts": {"test": "node --test"}, "dependencies": {"ms": version}}
    lines = 'const test = require("node:test"), assert = require("node:assert"), ms = require("ms")\n'
    return {"package.json": json.dumps(package), "a.test.js": f'{lines}test("it", () => assert(ms))\n'}


def call(project: Repository, *words: str) -> None:
    """Run a tool of the project's in its folder."""
    done = subprocess.run(words, cwd=project.folder, capture_output=True, text=True, env=os.environ)
    if done.returncode:
        pytest.skip(f"{words[0]} does not reach its registry: {done.stderr[-200:]}")


@pytest.mark.slow
@pytest.mark.always
async def test_npm_installs_from_a_cache_of_the_project_s_own(project: Repository) -> None:
    need("npm")
    project.write({"ms.tgz": make_package("ms"), **node_project(project, "file:ms.tgz")})
    call(project, "npm", "install", "--package-lock-only", "--offline", "--cache", str(project.folder.parent / "npm"))
    trial = await tried(project)
    step, cache = trial.verification["install"], trial.verification["cache"]
    folder = anyio.Path(cache.replace("~", os.environ["HOME"]))
    assert (trial.passes, trial.way, trial.tests) == (True, "a cache of its own", 1)
    assert step == ["npm ci --no-audit --no-fund --offline"]
    assert cache.startswith("~/.cache/ashep/dependencies/shop-")
    assert [attempt.way for attempt in trial.attempts] == ["as it is", "a cache of its own"]
    assert await list_left(folder.parent.parent) == [folder.name]  # and nothing half done
    # as config.yaml has it, it passes without another fetch, and needs what it needed
    written = Settings.model_validate_json(json.dumps({"verification": trial.verification}))
    again = await try_check(project.folder, written, trial.proposal)
    assert (again.passes, again.way, again.verification) == (True, "as it is", trial.verification)


@pytest.mark.slow
async def test_npm_from_its_registry(project: Repository) -> None:
    need("npm")
    project.write(node_project(project, "2.1.3"))
    call(project, "npm", "install", "--package-lock-only")
    trial = await tried(project)
    assert (trial.passes, trial.way, trial.tests) == (True, "a cache of its own", 1)


@pytest.mark.slow
async def test_npm_from_the_caches_of_the_home(project: Repository) -> None:
    need("npm")
    project.write(node_project(project, "2.1.3"))
    call(project, "npm", "install")
    project.write({".gitignore": "node_modules\n"})
    trial = await tried(project)
    assert (trial.passes, trial.way) == (True, "caches of your home")
    assert trial.verification == {"install": ["npm ci --no-audit --no-fund --offline"]}


@pytest.mark.slow
async def test_pip_installs_from_wheels(project: Repository) -> None:
    need("python3")
    package = '[project]\nname = "shop"\nversion = "1"\ndependencies = ["tomli-w"]\n'
    backend = '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
    files = {
        "pyproject.toml": package + backend,
        "shop/__init__.py": "import tomli_w\n",
        "tests/test_a.py": IMPORTS_SHOP,
    }
    trial = await tried(project, files)
    assert (trial.passes, trial.way, trial.tests) == (True, "a cache of its own", 1)
    assert trial.command == (".venv/bin/python", "-m", "pytest", "-q")


@pytest.mark.slow
async def test_uv_syncs_from_a_copy_of_its_cache(
    project: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uv = shutil.which("uv") or shutil.which("uv", path=os.path.dirname(sys.executable))
    if uv is None:
        pytest.skip("there is no uv on this machine")
    (tmp_path / "uv").symlink_to(uv)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    package = '[project]\nname = "shop"\nversion = "1"\nrequires-python = ">=3.11"\ndependencies = ["tomli-w"]\n'
    group = '[dependency-groups]\ndev = ["pytest"]\n'
    test = "import tomli_w\n\ndef test_it():\n    assert tomli_w\n"
    project.write({"pyproject.toml": package + group, "tests/test_a.py": test})
    call(project, "uv", "lock", "-q")
    trial = await tried(project)
    assert (trial.passes, trial.way, trial.tests) == (True, "a cache of its own", 1)
    assert trial.verification["install"] == ["uv sync --frozen --offline"]


@pytest.mark.slow
async def test_pytest_without_dependencies(project: Repository) -> None:
    need("pytest")
    trial = await tried(project, {"pytest.ini": "[pytest]\n", "test_a.py": "def test_it():\n    assert True\n"})
    assert (trial.passes, trial.tests) == (True, 1)


@pytest.mark.slow
async def test_go_reads_the_modules_of_the_home(project: Repository) -> None:
    need("go")
    source = 'package shop\n\nimport "github.com/google/uuid"\n\nfunc New() string { return uuid.NewString() }\n'
    test = 'package shop\n\nimport "testing"\n\nfunc TestNew(t *testing.T) { if len(New()) != 36 { t.Fatal() } }\n'
    project.write({"go.mod": "module shop\n\ngo 1.21\n", "shop.go": source, "shop_test.go": test})
    call(project, "go", "mod", "tidy")
    shutil.rmtree(Path.home() / "go" / "pkg", onerror=make_writable)
    trial = await tried(project)
    assert (trial.passes, trial.way, trial.verification) == (True, "caches of your home", {})


def make_writable(remove: Callable[[str], object], path: str, _: object) -> None:
    os.chmod(os.path.dirname(path), 0o700)
    remove(path)


@pytest.mark.slow
async def test_cargo_reads_the_registry_of_the_home(project: Repository) -> None:
    need("cargo")
    source = "pub fn show(n: u32) -> String { itoa::Buffer::new().format(n).to_owned() }\n"
    test = '#[cfg(test)]\nmod tests {\n    #[test]\n    fn it() { assert_eq!(super::show(7), "7"); }\n}\n'
    manifest = '[package]\nname = "shop"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\nitoa = "1"\n'
    trial = await tried(project, {"Cargo.toml": manifest, "src/lib.rs": source + test})
    assert (trial.passes, trial.way, trial.verification, trial.tests) == (True, "caches of your home", {}, 1)
    assert trial.command == ("cargo", "test", "--offline")


@pytest.mark.slow
async def test_just_runs_its_recipe(project: Repository) -> None:
    need("just")
    assert (await tried(project, {"justfile": "test:\n  test -f justfile\n"})).passes


TOX = "[tox]\nenvlist = py\nskipsdist = true\n[testenv]\ndeps = tomli-w\ncommands = python -c 'import tomli_w'\n"
NOX = (
    "import nox\n\n\n@nox.session\ndef tests(session):\n"
    "    session.install('tomli-w')\n    session.run('python', '-c', 'import tomli_w')\n"
)


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["pnpm", "yarn", "tox", "nox"])
async def test_what_brings_its_dependencies_from_the_network_passes_with_it(project: Repository, tool: str) -> None:
    need(tool)
    if tool in ("pnpm", "yarn"):
        project.write({**node_project(project, "2.1.3"), ".gitignore": "node_modules\n"})
        call(project, tool, "install", *(("--lockfile-only",) if tool == "pnpm" else ()))
        trial = await tried(project)
    else:
        trial = await tried(project, {"tox.ini": TOX} if tool == "tox" else {"noxfile.py": NOX})
    assert (trial.passes, trial.proposal.kind, trial.command[0]) == (True, tool, tool)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["make", "unittest"])
async def test_what_needs_nothing_passes_as_it_is(project: Repository, kind: str) -> None:
    need("make")
    test = "import unittest\n\n\nclass Adds(unittest.TestCase):\n    def test_it(self):\n        assert 1 + 1 == 2\n"
    files = {"Makefile": "test:\n\ttest -f Makefile\n"} if kind == "make" else {"test_calc.py": test}
    trial = await tried(project, files)
    assert (trial.passes, trial.proposal.kind, trial.way) == (True, kind, "as it is")
