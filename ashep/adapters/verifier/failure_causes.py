"""Likely causes of a failure for which the machine is to blame, and not the files: read from what a program printed.

A guess that people and agents are shown. It excuses nothing by itself: the base must fail for the same cause, too.
"""

import os
import re
from collections.abc import Iterable

from ashep.adapters.git.submodules import Submodule
from ashep.core.facts.delivery import FAILING, Cause
from ashep.ports.verifier import CheckFinding

_MOST = 64 * 1024  # characters of an output, from its end
_NETWORK = re.compile(
    r"temporary failure in name resolution|could not resolve (?:host|proxy)|couldn't resolve host|no such host"
    r"|name or service not known|network is unreachable|failed to lookup address|unknown ?host(?:exception)?\b"
    r"|no address associated with hostname|dial (?:tcp|udp):? lookup|\bENETUNREACH\b|\bEAI_AGAIN\b|\bENOTFOUND\b"
    r"|\bENOTCACHED\b|network connectivity is disabled|--offline was specified|no matching distribution found",
    re.IGNORECASE,
)
_MEMORY = re.compile(
    r"cannot allocate memory|\bOutOfMemoryError\b|heap out of memory|virtual memory exhausted|signal: killed"
    r"|fatal error: runtime: out of memory"
)
_PROGRAM = re.compile(
    r"""(?:^|[\s:])['"‘]?[\w.+-]{1,100}['"’]?: (?:command )?not found$"""
    r"""|^env: ['"‘]?[\w.+-]{1,100}['"’]?: No such file or directory"""
    r"""|^make(?:\[\d+\])?: [\w.+-]{1,100}: No such file or directory""",
    re.MULTILINE,
)


def likely_cause(found: CheckFinding, lacking: Iterable[Submodule]) -> Cause:
    """Guess why a check failed. Empty: its files are to blame, as far as one can tell.

    `lacking`: the submodules that its checkout has as empty folders. Takes time in proportion to the output.
    """
    if found.cause or found.status not in FAILING:
        return found.cause
    output = found.output[-_MOST:]
    if _NETWORK.search(output):
        return "network"
    if any(os.fsdecode(submodule.path) in output for submodule in lacking):
        return "submodule"
    if _MEMORY.search(output):
        return "memory"
    if _PROGRAM.search(output):  # one that is named without a folder is none that the work is to make
        return "program"
    return "setup" if found.status == "error" else ""
