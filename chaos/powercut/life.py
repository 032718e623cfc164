"""The life that is recorded: agents commit, their work is sealed, verified, landed and pushed.

`python -m chaos.powercut.life FOLDER FILES`, in a folder that `scene` made; a commit of an agent makes so many files.
What is told to a person or a journal is written to `told`, a line each.
"""

import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

import anyio

from ashep.adapters.git import GitLanding, GitRemote
from ashep.adapters.git.workspaces.linked import Worktrees
from ashep.adapters.verifier import LocalVerifier
from ashep.core.policy.checks import Criteria
from ashep.core.policy.verification_settings import VerificationSettings
from ashep.ports.landing import Advanced, Candidate, Integrated, Method, Pushed
from ashep.ports.verifier import VerifyRequest

ONE, TWO = "ashep/t-1", "ashep/t-2"
ENV = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
CHECKS = '{"checks": [{"id": "there", "type": "file_exists", "verify": {"path": "docs/page.md"}}]}'


def git(top: Path, *words: str) -> str:
    """Call git as a person or an agent does: nothing is flushed by our doing."""
    names = {f"GIT_{who}_{what}": "pat@x" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    done = subprocess.run(["git", *words], cwd=top, env=os.environ | ENV | names, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def scene(folder: Path) -> None:
    """A repository with a commit, which a person has checked out, its remote, and trees of two issues."""
    top = folder / "disk" / "top"
    top.mkdir(parents=True)
    git(top, "init", "-q", "-b", "main")
    git(top, "init", "-q", "--bare", "../remote.git")
    git(top, "remote", "add", "origin", str(folder / "disk" / "remote.git"))
    for path in ("README", "src/main.py", "docs/page.md"):
        (top / path).parent.mkdir(exist_ok=True)
        (top / path).write_text(f"{path}\n")
    git(top, "add", "-A")
    git(top, "commit", "-qm", "Begin")
    git(top, "push", "-q", "origin", "main")
    with patch.dict(os.environ, ENV):  # in the process of the tests, of which others read a person's settings
        anyio.run(_prepare, folder)


async def _prepare(folder: Path) -> None:
    for branch in (ONE, TWO):
        await _spaces(folder).prepare(branch, None, 0)


def _spaces(folder: Path) -> Worktrees:
    return Worktrees(folder / "disk" / "top", folder / "disk" / "trees", base_branch="main")


def _work(tree: Path, elsewhere: Path | None, files: int) -> None:
    """Be an agent: two commits, and a file that is left. Made `elsewhere` and fetched, they come as a pack."""
    place = tree
    if elsewhere is not None:
        git(
            tree, "clone", "-q", "--no-hardlinks", "--branch", str(tree.relative_to(tree.parents[1])), ".",
            str(elsewhere),
        )  # fmt: skip
        place = elsewhere
    for number in range(2):
        (place / f"{tree.name}.txt").write_text(f"{tree.name} {number}\n")
        (place / "made" / str(number)).mkdir(parents=True)
        for file in range(files):
            (place / "made" / str(number) / f"{tree.name}-{file}.txt").write_text(f"{tree.name} {number} {file}\n" * 9)
        git(place, "add", "-A")
        git(place, "commit", "-qm", f"Work {number}")
    if elsewhere is not None:
        git(tree, "-c", "fetch.unpackLimit=1", "fetch", "-q", str(elsewhere), "HEAD")
        git(tree, "merge", "-q", "--ff-only", "FETCH_HEAD")
    (tree / f"left-{tree.name}").write_text(f"{tree.name}\n")


async def live(folder: Path, files: int) -> None:
    """Work, seal, verify, land and push, for two issues."""
    os.environ |= ENV
    top, told = folder / "disk" / "top", os.open(folder / "told", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    spaces, landing, remote = _spaces(folder), GitLanding(top), GitRemote(top)
    verifier = LocalVerifier(VerificationSettings(sandbox="none"), folder / "scratch", _kept)
    steps: tuple[tuple[str, Path | None, Method], ...] = ((ONE, None, "merge"), (TWO, folder / "clone", "rebase"))
    for branch, elsewhere, method in steps:
        _work(folder / "disk" / "trees" / branch, elsewhere, files)
        sealed = await spaces.seal(branch, f"{branch[6:]}/implement.1.1", "Work")
        os.write(told, f"sealed {branch} {sealed.head}\n".encode())
        made = await landing.integrate(Candidate(branch[6:], branch, sealed.head, "main", method=method))
        assert isinstance(made, Integrated)
        os.write(told, f"integrated {branch} {made.commit}\n".encode())
        request = VerifyRequest(top, made.commit, made.base, Criteria.model_validate_json(CHECKS))
        assert [one.status for one in (await verifier.verify(request)).results] == ["passed"]
        os.write(told, f"verified {branch} {made.commit}\n".encode())
        assert await remote.push(f"ashep-{branch[6:]}", sealed.head, "main") == Pushed(sealed.head)
        os.write(told, f"pushed {branch} {sealed.head}\n".encode())
        assert await landing.advance("main", made.base, made.commit) == Advanced(made.commit)
        await landing.forget(branch)
        os.write(told, f"landed {branch} {made.commit}\n".encode())


async def _kept(text: str) -> str:
    return text


if __name__ == "__main__":
    anyio.run(live, Path(sys.argv[1]), int(sys.argv[2]))
