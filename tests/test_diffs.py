"""Diffs, read from real repositories: what they change, line by line, whatever those who wrote them would hide."""

import os
from pathlib import Path

import pytest

from ashep.adapters.git import diffs as module
from ashep.adapters.git.diffs import GitDiffs
from ashep.adapters.system import programs
from ashep.core.impact.changes import ChangedFile, Diff
from ashep.core.impact.secrets import KNOWN, find_secrets
from ashep.core.policy.settings import ImpactSettings
from ashep.daemon.effects.work import assess
from ashep.errors import AshepError
from ashep.redaction import Redaction
from tests.verifier import place

pytestmark = pytest.mark.slow

TOKEN = "ghp_" + "aZ3kQ9xV7bN2mL5pR8tY1wC4dF6gH0jS2uE4"


class Repository(place.Repository):
    """A repository with a commit, of which diffs are read."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        folder.mkdir()
        self.git("init", "-q", "-b", "main")
        self.base = self.commit({"kept.txt": "kept\n"})

    def git(self, *arguments: str, at: Path | None = None) -> str:
        return super().git("-c", "protocol.file.allow=always", *arguments, at=at)

    async def read(self, base: str = "", head: str = "HEAD") -> tuple[ChangedFile, ...]:
        return (await GitDiffs(self.folder).read(base or self.base, head)).files


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "r")


def bare(files: tuple[ChangedFile, ...]) -> list[tuple[str, str, int, int]]:
    return [(file.path, file.kind, file.added, file.removed) for file in files]


async def test_what_is_created_modified_deleted_and_renamed(repository: Repository) -> None:
    repository.write({"a.txt": "1\n2\n3\n"})
    repository.write({"b.txt": "".join(f"{number}\n" for number in range(20))})
    repository.write({"gone.txt": "x\ny"})
    base = repository.commit()
    repository.write({"a.txt": "1\n2b\n2c\n3\n"})
    repository.git("rm", "-q", "gone.txt")
    repository.git("mv", "b.txt", "c.txt")
    repository.write({"c.txt": "".join(f"{number}\n" for number in range(1, 20)) + "new\n"})
    repository.write({"new.txt": "first\n\nlast"})
    repository.write({"empty.txt": ""})
    head = repository.commit()
    assert await GitDiffs(repository.folder).read(base, head) == Diff(base, head, (
        ChangedFile("a.txt", "modified", None, 2, 1, ((2, "2b"), (3, "2c")), ((2, "2"),)),
        ChangedFile("c.txt", "renamed", "b.txt", 1, 1, ((20, "new"),), ((1, "0"),)),
        ChangedFile("empty.txt", "created"),
        ChangedFile("gone.txt", "deleted", None, 0, 2, (), ((1, "x"), (2, "y"))),
        ChangedFile("new.txt", "created", None, 3, 0, ((1, "first"), (2, ""), (3, "last"))),
    ))  # fmt: skip


async def test_lines_that_look_like_a_patch(repository: Repository) -> None:
    lines = [
        "-- a/x", "++ b/x", "@@ -1 +1 @@", "diff --git a/x b/x", "\\ No newline at end of file", "", " ", "+", "-",
        "end",
    ]  # fmt: skip
    base = repository.commit({"p.txt": "\n".join(lines)})
    repository.commit({"p.txt": "\n".join(["top", *(f"{line}." for line in lines), "x"]), "q.txt": "q"})
    first, second = await repository.read(base)
    assert [text for _, text in first.removed_lines] == lines
    assert [text for _, text in first.added_lines] == ["top", *(f"{line}." for line in lines), "x"]
    assert [number for number, _ in first.added_lines] == list(range(1, 13))
    assert second == ChangedFile("q.txt", "created", None, 1, 0, ((1, "q"),))


@pytest.mark.parametrize(
    "name",
    ["with space", 'q"uote', "new\nline", "ta\tb", "ünïcode", "-dash", ":(top)x", "*", "back\\slash", "a b/c\nd/e"],
)
async def test_odd_names(repository: Repository, name: str) -> None:
    repository.commit({name: "1\n", "z.txt": "2\n"})
    files = await repository.read()
    assert {file.path: file.added_lines for file in files} == {
        " ".join(name.split("\n")): ((1, "1"),), "z.txt": ((1, "2"),)
    }  # fmt: skip


async def test_a_name_that_is_no_text(repository: Repository) -> None:
    (repository.folder / os.fsdecode(b"a\xff\x1b[1mb")).write_text("1\n")
    repository.commit()
    assert [file.path for file in await repository.read()] == ["a\ufffd[1mb"]


async def test_a_file_that_is_no_text(repository: Repository) -> None:
    repository.commit({"a.bin": b"\x00\x01\n" * 10, "latin.txt": b"caf\xe9\r\n\x1b[1m"})
    assert await repository.read() == (
        ChangedFile("a.bin", "created", unread="binary"),
        ChangedFile("latin.txt", "created", None, 2, 0, ((1, "caf\ufffd"), (2, "[1m"))),
    )


async def test_links_modes_and_what_becomes_something_else(repository: Repository) -> None:
    base = repository.commit({"run.sh": "x\n", "file": "1\n2\n"})
    (repository.folder / "run.sh").chmod(0o755)
    (repository.folder / "file").unlink()
    (repository.folder / "file").symlink_to("elsewhere")
    (repository.folder / "link").symlink_to("kept.txt")
    repository.commit({"z": "z\n"})
    assert await repository.read(base) == (
        ChangedFile("file", "modified", None, 1, 2, ((1, "elsewhere"),), ((1, "1"), (2, "2")), link=True),
        ChangedFile("link", "created", None, 1, 0, ((1, "kept.txt"),), link=True),
        ChangedFile("run.sh", "modified"),
        ChangedFile("z", "created", None, 1, 0, ((1, "z"),)),
    )


async def test_submodules(repository: Repository, tmp_path: Path) -> None:
    other = Repository(tmp_path / "other")
    repository.git("submodule", "add", "-q", str(other.folder), "lib")
    base = repository.commit()
    assert [(file.path, file.unread) for file in await repository.read(head=base)] == [
        (".gitmodules", None), ("lib", "submodule")
    ]  # fmt: skip
    other.commit({"more": "x"})
    repository.git("-C", "lib", "pull", "-q")
    repository.git("config", "diff.ignoreSubmodules", "all")
    repository.git("config", "-f", ".gitmodules", "submodule.lib.ignore", "all")
    repository.git("add", "-f", "lib")
    repository.git("-c", "diff.ignoreSubmodules=none", "commit", "-q", "-m", "x")
    assert await repository.read(base) == (ChangedFile("lib", "modified", unread="submodule"),)
    found = await assess(GitDiffs(repository.folder), base, "HEAD", ImpactSettings())
    assert found.raised == ("dependencies",)


@pytest.mark.promise("L11")
async def test_a_link_out_of_the_tree_and_one_for_an_agents_folder_are_seen(repository: Repository) -> None:
    (repository.folder / "out").symlink_to("../elsewhere")
    (repository.folder / ".opencode").symlink_to("kept")
    repository.commit()
    found = await assess(GitDiffs(repository.folder), repository.base, "HEAD", ImpactSettings())
    places = {flag.name: [(one.path, one.what) for one in flag.evidence] for flag in found.flags}
    assert places == {
        "rules": [("out", "a link that leaves the tree, to ../elsewhere")],
        "agent_instructions": [(".opencode", "created")],
    }


async def test_a_file_that_becomes_a_submodule_spoils_no_other(repository: Repository, tmp_path: Path) -> None:
    other = Repository(tmp_path / "other")
    base = repository.commit({"lib": "1\n"})
    repository.git("rm", "-q", "lib")
    repository.git("submodule", "add", "-q", str(other.folder), "lib")
    repository.commit({"z": "z\n"})
    files = {file.path: file for file in await repository.read(base)}
    assert files["lib"] == ChangedFile("lib", "modified", unread="submodule")
    assert files["z"].added_lines == ((1, "z"),)


# --- what would hide a change -------------------------------------------------------------------------------------


def leak(repository: Repository) -> None:
    repository.write({"src/a.py": f'token = "{TOKEN}"\n'})


async def flags(repository: Repository) -> tuple[str, ...]:
    return (await assess(GitDiffs(repository.folder), repository.base, "HEAD", ImpactSettings())).raised


@pytest.mark.promise("L11")
@pytest.mark.parametrize("attribute", ["-diff", "binary", "diff=off", "-text -diff", "linguist-generated"])
async def test_attributes_hide_nothing(repository: Repository, attribute: str) -> None:
    leak(repository)
    repository.write({".gitattributes": f"* {attribute}\n"})
    repository.git("config", "diff.off.binary", "true")
    repository.git("config", "diff.off.textconv", "true")
    repository.git("config", "diff.off.command", "true")
    repository.commit()
    (repository.folder / ".git/info").mkdir(exist_ok=True)
    (repository.folder / ".git/info/attributes").write_text(f"* {attribute}\n")
    assert await flags(repository) == ("ci", "secrets")


@pytest.mark.promise("L11")
@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("diff.external", "true"), ("diff.noprefix", "true"), ("diff.renames", "false"), ("diff.context", "5"),
        ("diff.orderFile", "kept.txt"), ("diff.relative", "true"), ("color.ui", "always"),
        ("diff.interHunkContext", "9"),
        ("core.attributesFile", "kept.txt"), ("diff.submodule", "log"), ("diff.srcPrefix", "\ndiff --git "),
        ("diff.algorithm", "patience"), ("core.quotePath", "false"), ("diff.wsErrorHighlight", "all"),
        ("core.bigFileThreshold", "1"),
    ],
)  # fmt: skip
async def test_settings_hide_nothing(repository: Repository, setting: str, value: str) -> None:
    repository.base = repository.commit({"old.txt": "".join(f"{number}\n" for number in range(30))})
    repository.git("mv", "old.txt", "new.txt")
    repository.write({"new.txt": "".join(f"{number}\n" for number in range(31))})
    leak(repository)
    repository.commit()
    plain = await repository.read()
    repository.git("config", setting, value)
    assert await repository.read() == plain
    assert bare(plain) == [("new.txt", "renamed", 1, 0), ("src/a.py", "created", 1, 0)]


@pytest.mark.promise("L11")
async def test_replaced_commits_hide_nothing(repository: Repository) -> None:
    leak(repository)
    head = repository.commit()
    repository.git("replace", head, repository.base)
    assert await flags(repository) == ("secrets",)


async def test_variables_of_a_hook_do_not_steer(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Repository(tmp_path / "other")
    leak(repository)
    repository.commit()
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "true")
    assert await flags(repository) == ("secrets",)


# --- which commits ------------------------------------------------------------------------------------------------


async def test_what_others_landed_meanwhile_is_not_the_issues(repository: Repository) -> None:
    repository.git("checkout", "-q", "-b", "ashep/t-1")
    repository.commit({"mine.txt": "1\n"})
    repository.git("checkout", "-q", "main")
    repository.commit({".github/workflows/ci.yml": "x\n"})
    diff = await GitDiffs(repository.folder).read("main", "ashep/t-1")
    assert (diff.base, [file.path for file in diff.files]) == (repository.base, ["mine.txt"])


async def test_histories_that_have_nothing_in_common(repository: Repository) -> None:
    repository.git("checkout", "-q", "--orphan", "other")
    repository.git("rm", "-q", "-f", "kept.txt")
    repository.commit({"new.txt": "1\n"})
    assert bare(await repository.read("main")) == [("kept.txt", "deleted", 0, 1), ("new.txt", "created", 1, 0)]


async def test_the_same_commit_changes_nothing(repository: Repository) -> None:
    assert await repository.read() == ()


@pytest.mark.parametrize("revision", ["nothing", "-x", "--all", "HEAD:kept.txt", "0" * 40, "a b", ""])
async def test_what_is_no_commit(repository: Repository, revision: str) -> None:
    diffs = GitDiffs(repository.folder)
    assert await diffs.find(revision) is None
    with pytest.raises(AshepError, match="is no commit of the repository"):
        await diffs.read("main", revision)


async def test_a_tag_and_a_branch_are_commits(repository: Repository) -> None:
    repository.git("tag", "-a", "-m", "x", "v1")
    diffs = GitDiffs(repository.folder)
    assert await diffs.find("v1") == await diffs.find("main") == repository.base


async def test_what_a_branch_follows_is_a_commit(repository: Repository) -> None:
    diffs, ahead = GitDiffs(repository.folder), repository.commit({"a": "1\n"})
    repository.git("update-ref", "refs/remotes/origin/main", ahead)
    repository.git("reset", "-q", "--hard", repository.base)
    assert await diffs.find("main@{upstream}") is None
    repository.git("remote", "add", "origin", "nowhere")
    repository.git("branch", "-q", "--set-upstream-to", "origin/main")
    assert await diffs.find("main@{upstream}") == ahead


async def test_no_repository(tmp_path: Path) -> None:
    with pytest.raises(AshepError):
        await GitDiffs(tmp_path).read("a", "b")


async def test_a_project_in_a_folder_below_the_top(repository: Repository) -> None:
    repository.commit({"sub/a.txt": "1\n", "b.txt": "2\n"})
    assert bare((await GitDiffs(repository.folder / "sub").read("HEAD~", "HEAD")).files) == [
        ("b.txt", "created", 1, 0), ("sub/a.txt", "created", 1, 0)
    ]  # fmt: skip


async def test_secrets_of_this_process_are_not_passed_on(repository: Repository) -> None:
    repository.commit({"a.txt": "the password is hunter2hunter2\n"})
    diff = await GitDiffs(repository.folder, redaction=Redaction(("hunter2hunter2",))).read(repository.base, "HEAD")
    assert diff.files[0].added_lines == ((1, f"the password is {KNOWN}"),)
    assert [leak.kind for leak in find_secrets("a.txt", diff.files[0].added_lines)] == ["secret of this machine"]


# --- bounds -------------------------------------------------------------------------------------------------------


async def test_a_large_file_is_named_and_the_others_are_read(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_FILE", 1000)
    repository.write({"sub/b.txt": "x" * 1001})
    repository.write({":(top,exclude)c.txt": "1\n"})
    repository.git("mv", "kept.txt", "moved *.txt")
    repository.commit()
    files = {file.path: file for file in (await GitDiffs(repository.folder / "sub").read("HEAD~", "HEAD")).files}
    assert files["sub/b.txt"] == ChangedFile("sub/b.txt", "created", unread="large")
    assert files[":(top,exclude)c.txt"].added_lines == ((1, "1"),)
    assert files["moved *.txt"] == ChangedFile("moved *.txt", "renamed", "kept.txt")


async def test_the_smallest_files_are_read_first(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in (("a", 900), ("b", 10), ("c", 20)):
        repository.write({name: "x" * size})
    repository.commit()
    monkeypatch.setattr(module, "MOST_TOTAL", 1500)
    assert [(file.path, file.unread) for file in await repository.read()] == [("a", "large"), ("b", None), ("c", None)]
    monkeypatch.setattr(module, "_MOST_PATHS", 20)
    assert [file.unread for file in await repository.read()] == ["large", None, "large"]


@pytest.mark.promise("L12")
async def test_patches_that_nobody_can_hold_are_left_out(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository.commit({"a.txt": "".join(f"{number}\n" for number in range(200))})
    monkeypatch.setattr(programs, "OUTPUT_LIMIT", 1000)
    (file,) = await repository.read()
    assert file == ChangedFile("a.txt", "created", unread="large")
    found = await assess(GitDiffs(repository.folder), repository.base, "HEAD", ImpactSettings())
    assert found.raised == ("size",)


@pytest.mark.slow
async def test_a_huge_diff_is_read_within_bounds(repository: Repository) -> None:
    for number in range(3000):
        repository.write({f"d{number % 30}/{number}.txt": f"{number}\n" * 3})
    repository.commit({"huge.txt": "line of text\n" * 500_000})
    files = {file.path: file for file in await repository.read()}
    assert len(files) == 3001
    assert files["huge.txt"].unread == "large"
    assert sum(file.added for file in files.values()) == 9000


async def test_a_manifest_in_which_only_dependencies_differ(repository: Repository) -> None:
    table = '[project]\nname = "a"\ndependencies = [{}]\n'
    base = repository.commit({"pyproject.toml": table.format(""), "b/package.json": '{"scripts": {"test": "x"}}'})
    repository.commit({"pyproject.toml": table.format('"rich>=13"'), "b/package.json": '{"scripts": {"test": "y"}}'})
    alone = {file.path: file.dependencies_alone for file in await repository.read(base)}
    assert alone == {"pyproject.toml": True, "b/package.json": False}
    os.remove(repository.folder / "pyproject.toml")
    os.symlink("b/package.json", repository.folder / "pyproject.toml")
    repository.commit()
    assert not any(file.dependencies_alone for file in await repository.read(base))
