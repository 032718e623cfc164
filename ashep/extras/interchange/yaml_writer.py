"""YAML that people can read: what an import writes."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from textwrap import TextWrapper
from typing import Any

import yaml

from ashep.config.starter import write_all
from ashep.config.yaml_tree import IndentedDumper
from ashep.core.text import clean
from ashep.errors import UsageError
from ashep.extras.interchange.import_report import Note, grouped

_WIDTH = 110
_COMMENT = TextWrapper(_WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def as_yaml(document: Mapping[str, Any], head: Iterable[str], notes: Iterable[Note] = ()) -> str:
    """Write a file: first what it is, then what could not be carried over, then the document."""
    comments = (" ".join(clean(comment).split()) for comment in (*head, *grouped(notes)))
    lines = [f"# {line}" for comment in comments for line in _COMMENT.wrap(comment)]
    body = yaml.dump(
        document, Dumper=IndentedDumper, sort_keys=False, default_flow_style=None, allow_unicode=True, width=_WIDTH
    )
    return "\n".join(lines) + "\n" + body


def write_files(folder: Path, files: Mapping[str, str], *, force: bool = False) -> list[Path]:
    """Write files below a folder, all or none; `UsageError` where one stands already with another text."""
    texts = {folder / name: text for name, text in files.items()}
    refuse_others(texts, force=force)
    try:
        write_all(texts)
    except OSError as error:
        raise UsageError(f"{folder}: cannot be written: {error}") from error
    return list(texts)


def refuse_others(texts: Mapping[Path, str], *, force: bool) -> None:
    """Raise `UsageError` where a file stands already with another text, unless `force`."""
    for file, text in texts.items():
        if os.path.lexists(file) and not force and not _holds(file, text):
            raise UsageError(f"{file}: is there already; nothing was written (--force overwrites it)")


def _holds(file: Path, text: str) -> bool:
    try:
        return file.read_bytes() == text.encode()
    except OSError:
        return False
