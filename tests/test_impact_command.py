"""`ashep impact`, as a person uses it."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ashep.cli.commands import app
from tests.test_diffs import TOKEN, Repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository(tmp_path / "r")
    made.write({".git/info/exclude": ".agent-shepherd\n", ".agent-shepherd/config.yaml": "version: 1\n"})
    made.git("checkout", "-q", "-b", "ashep/t-1")
    made.git("mv", "kept.txt", "moved.txt")
    made.commit({".github/workflows/ci.yml": "on: push\n", "src/a.py": f'x = 1\ntoken = "{TOKEN}"\n'})
    made.git("checkout", "-q", "main")
    return made


def ashep(repository: Repository, *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["-C", str(repository.folder), "impact", *words])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        return getattr(done.exception, "exit_code", -1), str(done.exception)
    return done.exit_code, done.output


@pytest.mark.promise("L11")
def test_an_issue_is_shown_with_its_flags_and_no_secret(repository: Repository) -> None:
    head = repository.git("rev-parse", "ashep/t-1")
    code, out = ashep(repository, "t-1")
    assert code == 0
    assert out.splitlines() == [
        f"4 paths, +3 -0, between {repository.base[:10]} and {head[:10]}",
        "  created   .github/workflows/ci.yml",
        "  created   moved.txt",
        "  created   src/a.py",
        "  deleted   kept.txt",
        "ci: a file of the continuous integration is changed; this needs a person",
        "  .github/workflows/ci.yml: created",
        "secrets: something that looks like a secret was added",
        "  src/a.py:2: GitHub token",
    ]


def test_as_json(repository: Repository) -> None:
    code, out = ashep(repository, "t-1", "--json")
    told = json.loads(out)
    assert code == 0
    assert set(told) == {"base", "head", "files", "flags", "added", "removed", "asks"}
    assert told["asks"] == ["ci"]
    assert told["files"]["deleted"] == ["kept.txt"]
    assert told["flags"][1] == {
        "name": "secrets",
        "why": "something that looks like a secret was added",
        "evidence": [{"path": "src/a.py", "what": "GitHub token", "line": 2}],
        "more": 0,
    }


def test_the_recorded_base_counts_also_when_the_branch_has_landed(repository: Repository) -> None:
    repository.git("merge", "-q", "ashep/t-1")
    assert ashep(repository, "t-1")[1].startswith("0 paths, +0 -0, between")
    repository.git("update-ref", "refs/ashep/base/ashep/t-1", repository.base)
    assert ashep(repository, "t-1")[1].startswith("4 paths, +3 -0, between")
    assert ashep(repository, "t-1", "--base", "main")[1].splitlines()[1:] == ["no flag is raised"]


def test_any_two_commits(repository: Repository) -> None:
    assert ashep(repository, "--base", "main", "--head", "ashep/t-1")[1].startswith("4 paths")
    assert ashep(repository, "--base", "ashep/t-1")[1].startswith("0 paths")
    assert ashep(repository, "t-2", "--head", "ashep/t-1")[1].startswith("4 paths")


def test_the_settings_count(repository: Repository) -> None:
    config = repository.folder / ".agent-shepherd/config.yaml"
    config.write_text("impact:\n  fixtures: [src/**]\n  public_api: [moved.*]\n")
    told = json.loads(ashep(repository, "t-1", "--json")[1])
    assert [flag["name"] for flag in told["flags"]] == ["ci", "public_api"]
    config.write_text("impact:\n  ci: [/abs]\n")
    code, said = ashep(repository, "t-1")
    assert code == 2
    assert "config.yaml:2: impact.ci[0]: expected a glob from the repository's top, such as " in said


@pytest.mark.parametrize(("words", "code", "said"), [
    ([], 2, "say which change: an issue, or --base REV"),
    (["--head", "main"], 2, "say which change: an issue, or --base REV"),
    (["t-2"], 1, "t-2 has no branch ashep/t-2 here; say where its work is: --base REV --head REV"),
    (["--base", "nothing"], 1, "nothing is no commit of the repository at "),
    (["t-1", "--base", "-x"], 1, "-x is no commit of the repository at "),
])  # fmt: skip
def test_mistakes(repository: Repository, words: list[str], code: int, said: str) -> None:
    assert ashep(repository, *words)[0] == code
    assert ashep(repository, *words)[1].startswith(said)


def test_many_files_are_counted(repository: Repository) -> None:
    repository.git("checkout", "-q", "ashep/t-1")
    repository.commit({f"many/{number}.txt": "x" for number in range(150)})
    repository.git("checkout", "-q", "main")
    out = ashep(repository, "t-1")[1].splitlines()
    assert out[0].startswith("154 paths, +153 -0")
    assert "  … and 53 more" in out


def test_outside_of_a_repository(tmp_path: Path) -> None:
    (tmp_path / ".agent-shepherd").mkdir()
    found = CliRunner().invoke(app, ["-C", str(tmp_path), "impact", "--base", "main"])
    assert getattr(found.exception, "exit_code", 0) == 1
