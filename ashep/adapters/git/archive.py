"""Files that a commit has, read without a checkout."""

import io
import re
import tarfile
from collections.abc import Sequence
from pathlib import Path

from ashep.adapters.git.command import Git, commit_of
from ashep.errors import AshepError

MOST = 32 * 1024**2
"""Bytes of an archive that is read."""


async def files_of(project: Path, revision: str, names: Sequence[str]) -> dict[str, bytes]:
    """Give the regular files of a revision that have one of these names in the folder `project`, or lie below a folder
    that has, by their paths from there. None where there is no such revision. Raises `AshepError` with git's words.
    """
    git = Git(project)
    commit = await commit_of(git, revision, absent=re.compile(""))  # whatever git says
    if commit is None:
        return {}
    listed = await git.raw("ls-tree", "-z", "--name-only", commit, "--", *names)
    there = [name.decode(errors="surrogateescape") for name in listed.split(b"\0") if name]
    if not there:
        return {}
    packed = await git.raw("archive", "--format=tar", commit, "--", *there)
    if len(packed) > MOST:
        raise AshepError(f"{', '.join(there)} have {len(packed)} bytes in {commit[:12]}; at most {MOST} are read")
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        members = [one for one in archive if one.isreg() and ".." not in Path(one.name).parts]
        return {member.name: found.read() for member in members if (found := archive.extractfile(member)) is not None}
