"""What must be there after a power cut, whatever of the unflushed is."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from chaos.powercut import life
from chaos.powercut.disk import MODES, Mode, Recording, held, put
from chaos.powercut.recording import record

BUGS = {
    "objects": ("/objects/", False), "packs": ("/objects/pack/", False), "folders of objects": ("/objects", True),
    "refs": ("/refs/", False), "folders of refs": ("/refs", True),
    "files of a person": (r"^top/(?!\.git)", False), "folders of a person": (r"^top(?!/\.git)", True),
    "index of a person": ("/index[^/]*$", False),
}  # fmt: skip
"""Flushes that are left out: which paths, and whether folders."""

SEALED = "refs/ashep/sealed/"


def recorded(folder: Path, files: int = 1) -> Recording:
    """Live once below a folder, with agents that make so many files, and give what was written."""
    life.scene(folder)
    env = {**os.environ, **life.ENV, "PYTHONDONTWRITEBYTECODE": "1"}
    argv = [sys.executable, "-m", "chaos.powercut.life", str(folder), str(files)]
    recording = record(argv, folder / "disk", folder / "told", env)
    last = recording.after(len(recording.steps), "kept")
    assert last == held(folder / "disk"), "the recording is not what happened"
    return recording


@dataclass(frozen=True, slots=True)
class Loss:
    """Something that must be there after a cut, and is not."""

    cut: int
    mode: Mode
    seed: int
    what: str


def lost(recording: Recording, folder: Path, cut: int, mode: Mode, seed: int = 0) -> Loss | None:
    """Cut, and look at what is left, in a folder of its own."""
    disk = folder / "cut"
    put(disk, recording.after(cut, mode, seed))
    what = next(_missing(disk / "top", recording.told(cut)), None)
    return Loss(cut, mode, seed, what) if what else None


def losses(recording: Recording, folder: Path, cuts: Sequence[int], seeds: int = 1) -> Iterator[Loss]:
    """Cut at each of these moments, each way."""
    ways: list[tuple[Mode, int]] = [(mode, seed) for mode in MODES for seed in range(seeds if mode == "any" else 1)]
    found = (lost(recording, folder, cut, mode, seed) for cut in cuts for mode, seed in ways)
    return (one for one in found if one is not None)


def unusable() -> str:
    """Say why nothing can be recorded here; empty: it can."""
    if shutil.which("strace") is None:
        return "strace is not there: apt install strace"
    done = subprocess.run(["strace", "-f", "-o", os.devnull, "true"], capture_output=True, text=True)
    return f"strace may not look here: {done.stderr.strip()[:200]}" if done.returncode else ""


def _missing(top: Path, told: Sequence[str]) -> Iterator[str]:
    """Say what is missing of the repository: of its base always, of the rest once it was told."""
    refs = dict(line.split() for line in _git(top, "for-each-ref", "--format=%(refname) %(objectname)").splitlines())
    main = refs.get("refs/heads/main")
    if main is None:
        yield "there is no base"
        return
    named = {words[1]: words[2] for words in map(str.split, told) if words[0] == "sealed"}
    tips = {ref: sha for ref, sha in refs.items() if ref.startswith("refs/ashep/") or ref == "refs/heads/main"}
    for branch, head in named.items():
        tips |= {f"refs/heads/{branch}": refs.get(f"refs/heads/{branch}", ""), f"what was sealed of {branch}": head}
    for words in map(str.split, told):
        tips[f"what was {words[0]} of {words[1]}"] = words[2]
    if _whole(top, *tips.values()) is not None:
        for name, tip in tips.items():
            if why := _whole(top, tip):
                yield f"{name} is broken: {why}"
    for branch, head in named.items():
        if refs.get(f"{SEALED}{branch}") != head:
            yield f"{branch} is not sealed at {head[:12]}"
    if told and told[-1].startswith("landed"):
        done = _run(top, f"--work-tree={top}", "status", "--porcelain")
        if done.stdout or done.returncode:
            yield f"the person's files are not those of the base: {done.stdout[:200]}{done.stderr[:200]}"
    for words in map(str.split, told):
        if words[0] == "landed" and not _ok(top, "merge-base", "--is-ancestor", words[2], main):
            yield f"{words[1]} is not landed"


def _run(top: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", f"--git-dir={top}/.git", *words], capture_output=True, text=True, env=os.environ | life.ENV
    )


def _git(top: Path, *words: str) -> str:
    return _run(top, *words).stdout


def _ok(top: Path, *words: str) -> bool:
    return _run(top, *words).returncode == 0


def _whole(top: Path, *tips: str) -> str | None:
    """Say what is wrong with commits and all that they reach, read and hashed; None: nothing."""
    done = _run(top, "rev-list", "--verify-objects", "--quiet", *(tip or "gone" for tip in tips))
    return done.stderr.strip()[:200] or "it is gone" if done.returncode else None
