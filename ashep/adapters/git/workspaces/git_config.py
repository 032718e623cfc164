"""What of the user's settings the git of a place is told: how files and commits are made, and no password."""

import os
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from ashep.adapters.git.command import NOTHING, Git
from ashep.journal import durable_io

CONFIG = ".git-config"
"""The folder next to the places in which they stand."""

_SETTINGS = re.compile(
    r"user\.(?:name|email|useconfigonly)|(?:author|committer)\.(?:name|email)"
    r"|core\.(?:autocrlf|eol|safecrlf|whitespace)|filter\..+\.(?:clean|smudge|process|required)"
    r"|merge\.(?:conflictstyle|renames|directoryrenames)|merge\..+\.(?:name|driver|recursive)|pull\.(?:rebase|ff)"
    r"|init\.defaultbranch|commit\.cleanup|i18n\..+|rebase\.\w+|diff\.(?:algorithm|renames)|lfs\.(?:fetch\w+|con\w+)"
)
"""Of the user's settings those that say how files and commits are made: none that says a password, or where one is."""


def select_settings(said: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Give those of the user's settings that a place has."""
    return [(key, value) for key, value in said if _SETTINGS.fullmatch(key.lower())]


async def read(git: Git) -> Sequence[tuple[str, str]]:
    """Give the settings of git that hold for the user in the repository, without those of our own calls."""
    listed = await git.raw("config", "--includes", "-z", "--list", "--show-scope", absent=NOTHING)
    words = os.fsdecode(listed).split("\0")
    lines = [line.partition("\n") for scope, line in zip(words[::2], words[1::2], strict=False) if scope != "command"]
    return [(key, value if equals else "true") for key, equals, value in lines]  # `[filter "lfs"] required` is a yes


def write_down(said: Sequence[tuple[str, str]], root: Path) -> None:
    """Write down, next to all places below `root`, what git is told in them of the user's settings. Blocks."""
    folder, wanted, settings = root / CONFIG, dict[str, bytes](), select_settings(said)
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "git"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, key in (("ignore", "core.excludesfile"), ("attributes", "core.attributesfile")):
        file = Path(dict(said).get(key) or home / name).expanduser()
        with suppress(OSError):
            wanted[name] = file.read_bytes()
            settings.append((key, str(folder / name)))
    wanted["config"] = format_settings(settings)
    for name, content in wanted.items():
        target = folder / name
        if not target.exists() or target.read_bytes() != content:
            durable_io.replace(target, content)


def format_settings(settings: Iterable[tuple[str, str]]) -> bytes:
    """Write settings as git reads them."""
    lines = list[str]()
    for key, value in settings:
        section, _, rest = key.partition(".")
        below, _, name = rest.rpartition(".")
        escaped = below.replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'[{section} "{escaped}"]' if below else f"[{section}]")
        word = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
        lines.append(f'\t{name} = "{word}"')
    return os.fsencode("".join(f"{line}\n" for line in lines))
