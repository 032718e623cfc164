"""Where issues are worked on where config.yaml does not say so: in trees of their own, wherever there can be any."""

import os
import re
from pathlib import Path

from ashep.core.policy.settings import Settings

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def settled(settings: Settings, project: Path) -> Settings:
    """Put what is in force in the place of what was not said.

    The model's own default stays `shared`: a journal's settings without the key are from a time when nothing else was
    meant, and so is a `lock_work_tree` that somebody set.
    """
    worker = settings.worker
    if "workspace" in worker.model_fields_set or "lock_work_tree" in worker.model_fields_set or not has_commit(project):
        return settings
    return settings.model_copy(update={"worker": worker.model_copy(update={"workspace": "worktree"})})


def has_commit(project: Path) -> bool:
    """Say whether a folder is in a git work tree whose HEAD is a commit; git itself is not asked.

    A few small files are read (gitrepository-layout(5)), so that every command can afford it. Of a repository whose
    refs are in git's binary table only its objects are looked at.
    """
    try:
        return _has_commit(project.resolve())
    except (OSError, ValueError):  # one of them is not there, or is not what it should be
        return False


def _has_commit(project: Path) -> bool:
    there = next((folder / ".git" for folder in (project, *project.parents) if (folder / ".git").exists()), None)
    if there is None:
        return False
    folder = there if there.is_dir() else _named(there, "gitdir: ")
    common = _named(folder / "commondir") if (folder / "commondir").exists() else folder
    head = (folder / "HEAD").read_text().strip()
    ref = head.removeprefix("ref: ")
    if ref == head:
        return _COMMIT.fullmatch(head) is not None
    if (common / "reftable").is_dir():
        return any(len(name) == 2 or name.endswith(".pack") for name in _objects(common))
    if (common / ref).is_file():
        return _COMMIT.fullmatch((common / ref).read_text().strip()) is not None
    return any(line.endswith(f" {ref}") for line in (common / "packed-refs").read_text().splitlines())


def _named(file: Path, before: str = "") -> Path:
    """Give the folder that a file of git's names."""
    return file.parent / file.read_text().strip().removeprefix(before)


def _objects(common: Path) -> list[str]:
    return [*os.listdir(common / "objects"), *os.listdir(common / "objects" / "pack")]
