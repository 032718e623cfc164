"""`make release` writes version, changelog, checksums and a tag, or nothing; and says which line changes next."""

import hashlib
import shutil
import subprocess
import zipfile
from datetime import date
from pathlib import Path

import pytest

from tools.release import release

ROOT = Path(__file__).parent.parent
DAY = date(2030, 1, 2)


def git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """What a release reads of this repository, with a page."""
    root = tmp_path / "repository"
    pinned = [f"requirements/{name}" for name in ("setup.py", "beads/go.mod", "beads/go.sum")]
    for name in (
        ".gitignore",
        "LICENSE",
        "README.md",
        "ashep/__init__.py",
        "pyproject.toml",
        "tools/wheel.py",
        *pinned,
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    (root / "CHANGELOG.md").write_text("# Changelog\n\n## [Unreleased]\n\n- It flies.\n\n## [0.1.0] - 2029-01-01\n")
    (root / "ashep/page/static").mkdir(parents=True)
    (root / "ashep/page/static/index.html").touch()
    git(root, "init", "-q")
    git(root, "config", "user.name", "Ann")
    git(root, "config", "user.email", "ann@example.org")
    git(root, "add", ".")
    git(root, "commit", "-qm", "before")
    return root


def test_a_release_is_a_commit_a_tag_and_wheels_with_checksums(repository: Path) -> None:
    said = release(repository, "0.2.0", DAY)
    assert git(repository, "describe", "--exact-match") == "v0.2.0"
    assert git(repository, "status", "--porcelain") == ""
    changelog = (repository / "CHANGELOG.md").read_text()
    assert "## [Unreleased]\n\n## [0.2.0] - 2030-01-02\n\n- It flies.\n\n## [0.1.0]" in changelog
    (line,) = (repository / "dist/SHA256SUMS").read_text().splitlines()
    checksum, name = line.split()
    wheel = repository / "dist" / name
    assert (checksum, name) == (hashlib.sha256(wheel.read_bytes()).hexdigest(), "ashep-0.2.0-py3-none-any.whl")
    with zipfile.ZipFile(wheel) as packed:
        assert b'"0.2.0"' in packed.read("ashep/__init__.py")
    before, after = said.splitlines()[-2:]
    assert before.removeprefix("  from  ") in (repository / "README.md").read_text().splitlines()
    assert after == "  to    uv tool install 'ashep[bd]'"


@pytest.mark.parametrize(("version", "why"), [
    ("", "is not like"),
    ("0.2", "is not like"), ("0.2.0", "not clean"), ("0.2.1", "exists"), ("0.2.2", "nothing below"),
])  # fmt: skip
def test_what_is_wrong_is_refused(repository: Path, version: str, why: str) -> None:
    git(repository, "tag", "v0.2.1")
    if why == "not clean":
        (repository / "README.md").write_text("mine")
    if why == "nothing below":
        (repository / "CHANGELOG.md").write_text("## [Unreleased]\n\n## [0.1.0]\n\n- It walked.\n")
        git(repository, "commit", "-qam", "no news")
    before = git(repository, "rev-parse", "HEAD")
    with pytest.raises(SystemExit, match=why):
        release(repository, version, DAY)
    assert git(repository, "rev-parse", "HEAD") == before


def test_a_release_whose_wheel_cannot_be_built_leaves_nothing(repository: Path) -> None:
    (repository / "ashep/page/static/index.html").unlink()
    with pytest.raises(subprocess.CalledProcessError):
        release(repository, "0.2.0", DAY)
    assert git(repository, "status", "--porcelain") + git(repository, "tag") == ""
    assert '"0.2.0"' not in (repository / "ashep/__init__.py").read_text()
