"""`python -m tools.release VERSION`: a release in this repository. Nothing is uploaded, and nothing is pushed.

The version is written, what the changelog holds as unreleased becomes its section, the wheel is built, and wheels get
their checksums (dist/SHA256SUMS); then all that is committed and tagged. Where something is wrong nothing is left.
"""

import hashlib
import re
import subprocess
import sys
from datetime import date
from pathlib import Path

PUBLISHED = "uv tool install 'ashep[bd]'"
_UNRELEASED = "## [Unreleased]\n"


def release(root: Path, version: str, day: date) -> str:
    """Makes the release and returns what a person does next. Raises SystemExit if it cannot be made."""
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        raise SystemExit(f"release: {version or 'no version'} is not like 0.2.0: make release VERSION=0.2.0")
    if _git(root, "status", "--porcelain"):
        raise SystemExit("release: the work tree is not clean: commit or stash what `git status` lists")
    if _git(root, "tag", "--list", f"v{version}"):
        raise SystemExit(f"release: the tag v{version} exists: take another version")
    init, changelog = root / "ashep" / "__init__.py", root / "CHANGELOG.md"
    before, _, after = changelog.read_text().partition(_UNRELEASED)
    if not re.split(r"^## ", after, maxsplit=1, flags=re.MULTILINE)[0].strip():
        raise SystemExit("release: CHANGELOG.md has nothing below [Unreleased]: write what a user notices")
    try:
        init.write_text(re.sub(r'(?m)^__version__ = ".*"', f'__version__ = "{version}"', init.read_text()))
        changelog.write_text(f"{before}{_UNRELEASED}\n## [{version}] - {day}\n{after}")
        wheels = _wheels(root, version)
        _git(root, "commit", "--quiet", "--all", "--message", f"Release {version}")
        _git(root, "tag", "--annotate", f"v{version}", "--message", f"ashep {version}")
    except BaseException:
        _git(root, "reset", "--quiet", "--hard")  # the tree was clean
        raise
    return (
        f"release {version}: committed and tagged v{version}; dist/ holds {', '.join(wheels)} and SHA256SUMS\n"
        f"nothing was pushed or uploaded. Once the wheels are published, one line of README.md changes:\n"
        f"  from  {installing(root)}\n  to    {PUBLISHED}"
    )


def installing(root: Path) -> str:
    """The line of README.md that installs the wheels."""
    (line,) = re.findall(r"^uv tool install .*dist/ashep-\S+", (root / "README.md").read_text(), re.MULTILINE)
    return line


def _wheels(root: Path, version: str) -> list[str]:
    """Builds ashep's wheel, and writes the checksums of it and of those of bd that are there."""
    dist = root / "dist"
    for old in dist.glob("ashep-*.whl"):
        old.unlink()
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(dist)]
    subprocess.run(build, cwd=root, stdout=subprocess.DEVNULL, check=True)
    wheels = [*dist.glob(f"ashep-{version}-*.whl"), *sorted(dist.glob("ashep_bd-*.whl"))]
    sums = [f"{hashlib.sha256(wheel.read_bytes()).hexdigest()}  {wheel.name}\n" for wheel in wheels]
    (dist / "SHA256SUMS").write_text("".join(sums))
    return [wheel.name for wheel in wheels]


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    print(release(Path.cwd(), "".join(sys.argv[1:]), date.today()))
