"""Empty databases of the real bd, each in a repository without a commit: copies, since `bd init` takes seconds."""

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

from ashep.adapters.system import programs
from tests import places

LONGEST = 240.0
"""Seconds that making one may take: much of the time of a machine that does not get on is waiting for a disk."""


def init(prefix: str) -> tuple[str, ...]:
    """What bd is told to make an empty one."""
    return ("init", f"--prefix={prefix}", "--quiet", "--non-interactive", "--stealth", "--skip-hooks", "--skip-agents")


def copied(prefix: str, to: Path) -> None:
    """Put one whose issues have this prefix into a folder; the first of a test run makes it for all workers."""
    if places.RUN not in os.environ:
        _make(prefix, to)
        return
    kept = places.memory() / f"beads-{prefix}"
    kept.parent.mkdir(exist_ok=True)
    with kept.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            new = kept.with_suffix(".new")
            shutil.rmtree(new, ignore_errors=True)
            _make(prefix, new)
            new.rename(kept)
    shutil.copytree(kept, to, symlinks=True, dirs_exist_ok=True)


def _make(prefix: str, folder: Path) -> None:
    bd = programs.find("bd")
    assert bd is not None, "no bd on PATH nor in the tools cache: `make setup`"
    folder.mkdir(parents=True, exist_ok=True)
    home = folder.with_name(f"{folder.name}-home")
    home.mkdir(exist_ok=True)
    private = {"HOME": str(home), "PATH": os.environ["PATH"], **places.QUICK}
    environ = private | {"BD_DISABLE_METRICS": "1", "BD_NON_INTERACTIVE": "1", "GIT_CONFIG_NOSYSTEM": "1"}
    person = (bd.absolute(), "--actor=person")
    # 79 commits of migrations are read nine times by every later call: folded, a call is a fifth cheaper
    for words in (("git", "init", "-q", "."), (*person, *init(prefix)), (*person, "flatten", "--force")):
        done = subprocess.run(words, cwd=folder, env=environ, capture_output=True, timeout=LONGEST)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
    shutil.rmtree(home, ignore_errors=True)
