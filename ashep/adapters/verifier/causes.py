"""Likely causes of a failure for which the machine is to blame, and not the files: read from what a program printed.

A guess that people and agents are shown. It excuses nothing by itself: the base must fail for the same cause, too.
"""

import re
from pathlib import Path

from ashep.core.facts.delivery import Cause
from ashep.ports.verifier import Found

_MOST = 64 * 1024  # characters of an output, from its end, and bytes of `.gitmodules`
_NETWORK = re.compile(
    r"temporary failure in name resolution|could not resolve (?:host|proxy)|couldn't resolve host|no such host"
    r"|name or service not known|network is unreachable|failed to lookup address|unknown ?host(?:exception)?\b"
    r"|no address associated with hostname|dial (?:tcp|udp):? lookup|\bENETUNREACH\b|\bEAI_AGAIN\b|\bENOTFOUND\b",
    re.IGNORECASE,
)
_MEMORY = re.compile(
    r"cannot allocate memory|\bOutOfMemoryError\b|heap out of memory|virtual memory exhausted|signal: killed"
    r"|fatal error: runtime: out of memory"
)
_PROGRAM = re.compile(
    r"""(?:^|[\s:])['"‘]?(?P<named>[\w.+-]{1,100})['"’]?: (?:command )?not found$"""
    r"""|^env: ['"‘]?[\w.+-]{1,100}['"’]?: No such file or directory"""
    r"""|^make(?:\[\d+\])?: [\w.+-]{1,100}: No such file or directory""",
    re.MULTILINE,
)
_SUBMODULE = re.compile(r"^[ \t]*path[ \t]*=[ \t]*([^\s/]\S*)[ \t]*$", re.MULTILINE)


def likely_cause(found: Found, tree: Path) -> Cause:
    """Guess why a check failed on this checkout; empty: its files are to blame, as far as one can tell. Blocks."""
    if found.cause or found.status not in ("failed", "error"):
        return found.cause
    output = found.output[-_MOST:]
    if _NETWORK.search(output):
        return "network"
    if any(path in output for path in empty_submodules(tree)):
        return "submodule"
    if _MEMORY.search(output):
        return "memory"
    if _PROGRAM.search(output):  # one that is named without a folder is none that the work is to make
        return "program"
    return "setup" if found.status == "error" else ""


def empty_submodules(tree: Path) -> tuple[str, ...]:
    """List the submodules that a checkout has as empty folders; nothing is fetched for checks. Blocks."""
    file = tree / ".gitmodules"
    if file.is_symlink() or not file.is_file():
        return ()
    with file.open("rb") as opened:
        text = opened.read(_MOST).decode(errors="replace")
    found = (path.strip('"') for path in _SUBMODULE.findall(text))
    return tuple(path for path in found if ".." not in path.split("/") and _is_empty(tree / path))


def _is_empty(folder: Path) -> bool:
    return not folder.is_symlink() and folder.is_dir() and next(folder.iterdir(), None) is None
