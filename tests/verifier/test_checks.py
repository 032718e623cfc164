"""Each kind of check on a clean checkout: what it says, and of what."""

from pathlib import Path
from typing import Any

import pytest

from ashep.core.facts.delivery import status_of
from ashep.errors import AshepError
from tests.verifier.place import World


async def test_a_program_is_judged_by_its_exit_code(world: World) -> None:
    found = await world.verify(
        {"type": "test_pass", "verify": {"command": ["sh", "-c", "echo fine; cat README.md >&2"]}},
        {"type": "test_pass", "verify": {"command": ["sh", "-c", "exit 3"]}},
        {"type": "test_pass", "verify": {"command": ["sh", "-c", "exit 3"], "expect_exit_code": 3}},
        {"type": "test_pass", "verify": {"command": ["sh", "-c", "kill -9 $$"]}},
    )
    said = [(one.check_id, one.status, one.message) for one in found.results]
    assert said == [
        ("c0", "passed", "exit code 0"),
        ("c1", "failed", "exit code 3; expected 0"),
        ("c2", "passed", "exit code 3"),
        ("c3", "failed", "ended by SIGKILL; expected 0"),
    ]
    assert world.output(found.results[0]) == "fine\nRead me.\n"
    assert found.results[1].output == ""
    assert found.commit == world.repository.git("rev-parse", "HEAD")
    assert found.tree == world.repository.git("rev-parse", "HEAD^{tree}")
    assert world.left == []


@pytest.mark.promise("W1")
async def test_what_is_verified_is_the_commit_not_the_work_tree(world: World) -> None:
    first = world.repository.git("rev-parse", "HEAD")
    world.repository.commit({"second": "2"})
    world.repository.write({"README.md": "edited", "third": "3"})
    names = "echo *; cat README.md"
    assert world.output(await world.sh(names)) == "README.md second src\nRead me.\n"
    found = await world.verify({"type": "test_pass", "verify": {"command": ["sh", "-c", names]}}, commit=first)
    assert world.output(found.results[0]) == "README.md src\nRead me.\n"


async def test_a_program_that_is_not_there(world: World) -> None:
    missing = await world.one("test_pass", command=["there-is-no-such-program"])
    assert missing.status == "error"
    assert missing.message.startswith("there is no program there-is-no-such-program on PATH")
    own = await world.one("test_pass", command=["./run-tests"])  # an agent that deletes it does not get away with it
    assert (own.status, own.message) == ("failed", "./run-tests cannot be started: No such file or directory")


async def test_a_test_that_was_deleted_is_judged_by_the_exit_code(world: World) -> None:
    world.repository.commit({"tests/test_it.sh": "exit 1"})
    assert (await world.one("test_pass", command=["sh", "tests/test_it.sh"])).status == "failed"
    world.repository.commit({"tests/test_it.sh": None})
    assert (await world.one("test_pass", command=["sh", "tests/test_it.sh"])).status == "failed"


async def test_time_is_up(world: World) -> None:
    found = await world.sh("echo begun; sleep 60", timeout="300ms")
    assert (found.status, found.message) == ("failed", "it had not ended after 300ms; it was killed")
    assert world.output(found) == "begun\n"
    assert found.duration_ms < 20_000


@pytest.mark.parametrize(("verify", "status", "message"), [
    ({"path": "README.md"}, "passed", "README.md is there"),
    ({"path": "./src//main.py"}, "passed", "./src//main.py is there"),
    ({"path": "src/none.py"}, "failed", "src/none.py is not there"),
    ({"path": "README.md/none"}, "failed", "README.md/none is not there: README.md is a file"),
    ({"path": "src"}, "failed", "src is a folder; expected a file"),
    ({"path": "README.md", "contains": ["Read"]}, "passed", "README.md is there, and holds the text"),
    ({"path": "README.md", "contains": ["Read", "me.\n"]}, "passed", "README.md is there, and holds all 2 texts"),
    ({"path": "README.md", "contains": ["Read", "you", "him"]}, "failed",
     "README.md is there, but does not hold 'you', and 1 more"),
    ({"path": "."}, "error", ". is no path of a file beneath the checkout"),
])  # fmt: skip
async def test_a_file(world: World, verify: dict[str, Any], status: str, message: str) -> None:
    found = await world.one("file_exists", **verify)
    assert (found.status, found.message) == (status, message)


PATTERNS = [
    ({"glob": "**/*.py", "pattern": "TODO"}, "passed", "2 lines match in 3 files of **/*.py"),
    ({"glob": "*.py", "pattern": "TODO"}, "passed", "1 line matches in 1 file of *.py"),
    ({"glob": "src/*.py", "pattern": "^x$"}, "passed", "1 line matches in 1 file of src/*.py"),
    ({"glob": "src/**", "pattern": "."}, "passed", "3 lines match in 2 files of src/**"),
    ({"glob": "**/deep/*.[pq]y", "pattern": "."}, "passed", "1 line matches in 1 file of **/deep/*.[pq]y"),
    ({"glob": "**/deep/*.[!p]y", "pattern": "."}, "failed", "no lines match in 0 files of **/deep/*.[!p]y; expected at"
     " least 1"),
    ({"glob": "a.?y", "pattern": "nowhere"}, "failed", "no lines match in 1 file of a.?y; expected at least 1"),
    ({"glob": "**/*.py", "pattern": "TODO", "min": 3}, "failed", "2 lines match in 3 files of **/*.py; expected at"
     " least 3"),
    ({"glob": "**/*.py", "pattern": "TODO", "max": 1}, "failed", "2 lines match in 3 files of **/*.py; expected at"
     " most 1"),
    ({"glob": "**/*.py", "pattern": "none", "min": 0}, "passed", "no lines match in 3 files of **/*.py"),
    ({"glob": "**/*.py", "pattern": "TODO", "must": "not_match"}, "failed", "2 lines match in 3 files of **/*.py;"
     " expected none"),
    ({"glob": "**/*.py", "pattern": "none", "must": "not_match"}, "passed", "no lines match in 3 files of **/*.py, as"
     " expected"),
    ({"glob": "**/*.py", "pattern": "("}, "error", "the pattern cannot be read: missing ), unterminated subpattern at"
     " position 0"),
]  # fmt: skip


@pytest.mark.parametrize(("verify", "status", "message"), PATTERNS)
async def test_a_pattern(world: World, verify: dict[str, Any], status: str, message: str) -> None:
    files = {"a.py": "# TODO one\n", "src/main.py": "x\ny # TODO two\n", "src/deep/b.py": "z\n", "c.txt": "TODO\n"}
    world.repository.commit(files)
    found = await world.one("code_pattern", **verify)
    assert (found.status, found.message) == (status, message)


async def test_a_pattern_says_where(world: World) -> None:
    world.repository.commit({"a.py": "x\n  # TODO one\r\n"})
    found = await world.one("code_pattern", glob="*.py", pattern="TODO one$")
    assert world.output(found) == "a.py:2: # TODO one"


async def test_a_question_is_a_persons(world: World) -> None:
    found = await world.one("manual", question="Is it beautiful?")
    assert (found.status, found.message) == ("skipped", "a person is asked")
    assert status_of((found,)) == "blocked"


async def test_a_type_that_nobody_registered(world: World) -> None:
    found = await world.one("browser", url="/")
    assert found.status == "error"
    assert "no check of the type browser is known" in found.message


@pytest.mark.promise("W1")
async def test_files_are_looked_at_before_any_program_runs(world: World) -> None:
    found = await world.verify(
        {"type": "test_pass", "verify": {"command": ["sh", "-c", "echo made >made.txt; rm README.md"]}},
        {"type": "file_exists", "verify": {"path": "made.txt"}},
        {"type": "file_exists", "verify": {"path": "README.md"}},
    )
    assert [one.status for one in found.results] == ["passed", "failed", "passed"]


async def test_a_program_finds_the_commits_files_as_they_were_and_what_earlier_ones_made(world: World) -> None:
    spoil = "echo made >made.txt; echo spoilt >README.md; rm -r src; ln -s /etc src"
    found = await world.verify(
        {"type": "test_pass", "verify": {"command": ["sh", "-c", spoil]}},
        {"type": "test_pass", "verify": {"command": ["sh", "-c", "cat made.txt README.md src/main.py; echo src/*"]}},
    )
    assert world.output(found.results[1]) == "made\nRead me.\nprint('hello')\nsrc/main.py\n"


@pytest.mark.promise("W2")
async def test_what_a_program_is_given(world: World) -> None:
    world.environ |= {"HOME": "/home/pat", "API_KEY": "secret-1", "GIVEN": "yes", "GIT_DIR": "/elsewhere"}
    world.set(environment=("GIVEN", "NOT_SET"))
    found = await world.sh("env; pwd; ls -d ~ $TMPDIR")
    lines = world.output(found).splitlines()
    given = dict(line.split("=", 1) for line in lines if "=" in line)
    assert given.keys() - {"PWD", "SHLVL", "_", "OLDPWD"} == {
        "PATH", "LANG", "TERM", "HOME", "TMPDIR", "GIT_CEILING_DIRECTORIES", "GIVEN"
    }  # fmt: skip
    assert (given["TERM"], given["GIVEN"]) == ("dumb", "yes")
    assert all(path.startswith(str(world.scratch.resolve())) for path in lines[-3:])


async def test_a_program_may_ask_git_about_the_commit(world: World) -> None:
    head = world.repository.commit({"README.md": "Twice.\n"})
    found = await world.sh("git rev-parse HEAD; git log --oneline | wc -l; git status --short; git ls-files")
    assert world.output(found) == f"{head}\n2\nREADME.md\nsrc/main.py\n"


@pytest.mark.promise("W1")
async def test_attributes_do_not_hide_files(world: World) -> None:
    world.repository.commit({".gitattributes": "hidden export-ignore\nREADME.md filter=evil\n", "hidden": "here"})
    world.repository.git("config", "filter.evil.smudge", "tr a-z A-Z")
    assert world.output(await world.sh("cat hidden README.md")) == "hereRead me.\n"


async def test_a_persons_own_settings_of_git_change_nothing(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".gitconfig").write_text("[core]\n\tautocrlf = true\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    assert world.output(await world.sh("wc -c <README.md")).strip() == "9"


@pytest.mark.promise("W1")
async def test_hooks_and_monitors_of_the_repository_are_not_run(world: World, tmp_path: Path) -> None:
    world.repository.write({".git/hooks/post-checkout": f"#!/bin/sh\ntouch {tmp_path}/ran\n"})
    for name in ("post-checkout", "post-index-change"):
        hook = world.repository.folder / ".git" / "hooks" / name
        hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
        hook.chmod(0o755)
    world.repository.git("config", "core.fsmonitor", str(hook))
    assert (await world.sh("true")).status == "passed"
    assert not (tmp_path / "ran").exists()


async def test_a_repository_or_commit_that_is_not_there(world: World, tmp_path: Path) -> None:
    check = {"type": "manual", "verify": {"question": "?"}}
    for commit in ("f" * 40, "nobody", "--help", "HEAD\nHEAD", "HEAD:README.md"):
        with pytest.raises(AshepError, match=r"has no commit|is no commit"):
            await world.verify(check, commit=commit)
    with pytest.raises(AshepError, match="has no commit"):
        await world.verify(check, base="f" * 40)
    world.repository.folder = tmp_path
    with pytest.raises(AshepError, match="git rev-parse ended"):
        await world.verify(check)


async def test_a_linked_work_tree_and_a_sha256_repository(world: World, tmp_path: Path) -> None:
    world.repository.git("worktree", "add", "-q", str(tmp_path / "linked"), "-b", "other")
    world.repository.folder = tmp_path / "linked"
    world.repository.commit({"linked": "yes"})
    assert world.output(await world.sh("cat linked")) == "yes"
    world.repository.folder = tmp_path / "sha256"
    world.repository.folder.mkdir()
    world.repository.git("init", "-q", "--object-format=sha256", ".")
    world.repository.commit({"long": "ids"})
    assert world.output(await world.sh("cat long; git rev-parse HEAD | wc -c")) == "ids65\n"
