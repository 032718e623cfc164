"""The commented files that `ashep init` and `ashep setup` write, and the writing of them.

Never: a default; those are the models', and what is written here says the same.
"""

import os
from collections.abc import Mapping
from importlib import resources
from pathlib import Path

from ashep.config.presets import PRESETS, preset
from ashep.errors import UsageError

FILES = ("config.yaml", "policies.yaml", "agents.yaml")
IGNORED = ("runs.jsonl", "state/")
"""What ashep writes next to its configuration and git should not hold."""


def starter(name: str, policy: str = PRESETS[0]) -> str:
    """Give the text of one of `FILES`, for one of `PRESETS`; raises `UsageError` where there is no such preset."""
    if name == "policies.yaml":
        return preset(policy)
    text = resources.files(__name__).joinpath(name).read_text(encoding="utf-8")
    if policy == "bmad-story" and name == "agents.yaml":  # its reviewers write what they find into the story
        head, reviewer, rest = text.partition("  - id: reviewer\n")
        return head + reviewer + rest.replace("read_write: read", "read_write: write", 1).replace("plan}", "build}", 1)
    return text


def write_starter(folder: Path, policy: str = PRESETS[0], *, force: bool = False) -> list[Path]:
    """Write the starter files and a `.gitignore` into `.agent-shepherd`, and say which files were written.

    `policy` is one of `PRESETS`. Raises `UsageError` where there is no such preset, one of the files stands already and
    `force` is not given, or the folder cannot be written; then nothing was written. A `.gitignore` that is there only
    gets the lines that it lacks.
    """
    files = {name: starter(name, policy) for name in FILES}
    there = [name for name in FILES if os.path.lexists(folder / name)]
    if there and not force:
        raise UsageError(f"{folder / there[0]}: is there already; nothing was written (--force overwrites it)")
    return write_configuration(folder, files)


def write_configuration(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """Write files into `.agent-shepherd` and the lines that its `.gitignore` lacks, and return what was written.

    Raises `UsageError` where the folder cannot be written; then nothing was written.
    """
    texts = {folder / name: text for name, text in files.items()}
    ignore = folder / ".gitignore"
    try:
        before = ignore.read_text(encoding="utf-8") if ignore.exists() else ""
        missing = [line for line in IGNORED if line not in before.splitlines()]
        start = before + "\n" if before and not before.endswith("\n") else before
        if missing:
            texts[ignore] = start + "".join(f"{line}\n" for line in missing)
        write_all(texts)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{folder}: cannot be written: {error}") from error
    return list(texts)


def write_all(texts: dict[Path, str]) -> None:
    """Write everything next to its place first, so that a full disk or a missing right leaves all as it was."""
    drafts = {file: file.with_name(f".{file.name}.new") for file in texts}
    try:
        for file, draft in drafts.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            with draft.open("w", encoding="utf-8", newline="\n") as stream:
                stream.write(texts[file])
                stream.flush()
                os.fsync(stream.fileno())
        for file, draft in drafts.items():
            draft.replace(file)
    finally:
        for draft in drafts.values():
            draft.unlink(missing_ok=True)
