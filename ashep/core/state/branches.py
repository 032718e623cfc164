"""The branch of an issue: what it is called, and whose a branch is."""

from hashlib import sha256
from urllib.parse import quote, unquote

PREFIX = "ashep/"

SHARED = f"{PREFIX}+"
"""How the branches begin that several issues share; no issue's own does: `+` is `%2B` there."""

BASES = "refs/ashep/base/"
"""Below it, by branch: the commit that a branch began from."""

_LONGEST = 150
"""A part of a ref is a file's name; git adds `.lock` to it, and file systems end at 255 bytes."""


def branch_of(issue: str) -> str:
    """Give the branch of an issue: `ashep/<issue>`, where what git refuses in a branch is `%` and two digits.

    Two issues never have the same branch. A very long id is cut, and a hash of the whole stands behind an `@`.
    """
    word = quote(issue, safe="").replace("~", "%7E")  # git: no ~ ^ : ? * [ \, space, or control character
    if word.startswith("."):
        word = "%2E" + word[1:]
    if word.endswith((".", ".lock")):
        head, _, tail = word.rpartition(".")
        word = f"{head}%2E{tail}"
    word = word.replace("..", ".%2E")
    if len(word) > _LONGEST:
        word = f"{word[: _LONGEST - 50].rstrip('.')}@{sha256(issue.encode(errors='surrogatepass')).hexdigest()[:40]}"
    return f"{PREFIX}{word or '%'}"


def shared_branch(name: str) -> str:
    """Give the branch of the issues that share one by this name."""
    return SHARED + branch_of(name).removeprefix(PREFIX)


def folder_of(branch: str, *, flat: bool = False) -> str:
    """Give the folder in which agents work on a branch: its name, where `%` is `=25` and `=` is `=3D`.

    OpenCode takes a `%` in the path of a session's folder for an escape, and no prompt runs there. `flat`: one folder
    and no path, so that `/` is `=2F`.
    """
    name = branch.replace("=", "=3D").replace("%", "=25")
    return name.replace("/", "=2F") if flat else name


def branch_in(folder: str) -> str:
    """Give the branch of a folder, flat or not; one from before `folder_of` is called as its branch, `%` and all."""
    return folder.replace("=2F", "/").replace("=25", "%").replace("=3D", "=")


def file_of(branch: str) -> str:
    """Give the name of a file about a branch, or about a folder that may be one, whatever its bytes are."""
    return quote(branch, safe="", errors="surrogateescape")


def issue_of(branch: str) -> str | None:
    """Give the issue that a branch is named after; None where it is none of ours, or cannot be told."""
    word = branch.removeprefix(PREFIX)
    issue = unquote(word, errors="replace")
    return issue if branch_of(issue) == branch else None
