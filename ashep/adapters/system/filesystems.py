"""On which file system a folder is: one that other machines share keeps locks, flushes and renames in its own way.

And what tells a file from another one in its place.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")

_NETWORK = re.compile(
    r"(?:nfs\d?|cifs|smb\d?|smbfs|ncpfs|afs|9p|ceph|glusterfs|lustre|beegfs|gpfs|ocfs2|gfs2|davfs|orangefs|virtiofs"
    r"|fuse\.(?:sshfs|glusterfs|ceph|davfs2?|s3fs|rclone|gcsfuse|mfs|juicefs))"
)
_ESCAPED = re.compile(r"\\([0-7]{3})")

FileIdentity = tuple[int, ...]


def identify_file(file: Path) -> FileIdentity:
    """Return what tells a file, behind all links, from another one in its place; empty: there is none."""
    with suppress(OSError, ValueError):  # what is no file's name
        status = file.stat()
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
    return ()


def network_file_system(folder: Path, mounts: Path = MOUNTS) -> str:
    """Name the network file system that a folder is on, or will be; empty: a local one, or nobody can tell."""
    wanted, found = folder.resolve(), ("", "")
    for place, kind in _mounted(mounts):
        # what is mounted later lies over what was mounted there before
        if wanted.is_relative_to(place) and len(place) >= len(found[0]):
            found = (place, kind)
    return found[1] if _NETWORK.fullmatch(found[1]) else ""


def find_mount(folder: Path, mounts: Path = MOUNTS) -> str:
    """Name what is mounted on a folder or below it; empty: nothing, or nobody can tell."""
    wanted = folder.resolve()
    return next((place for place, _ in _mounted(mounts) if Path(place).is_relative_to(wanted)), "")


def _mounted(mounts: Path) -> Iterator[tuple[str, str]]:
    try:
        lines = mounts.read_text(errors="surrogateescape").splitlines()
    except OSError:  # no Linux
        return
    for line in lines:
        head, _, tail = line.partition(" - ")
        fields = head.split(" ")
        if len(fields) >= 5:
            yield _ESCAPED.sub(lambda code: chr(int(code[1], 8)), fields[4]), tail.partition(" ")[0]


def warning(folder: Path, kind: str) -> str:
    """Say what such a file system comes to."""
    return f"{folder} is on a network file system ({kind}): locks and flushes are not promised to hold there"
