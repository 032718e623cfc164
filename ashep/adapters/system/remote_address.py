"""Reads the addresses of repositories."""

import re
from urllib.parse import urlsplit

_SHORT = re.compile(r"(?:[\w+.-]+@)?(?P<host>[\w.-]+):(?P<path>[^/].*)")  # as git@github.com:owner/name.git


def read_address(address: str) -> tuple[str, str]:
    """Give the host and the path of an address; both are empty where it is that of a folder, or cannot be read."""
    try:
        parts = urlsplit(address) if "://" in address else None
    except ValueError:  # `[` begins an address of IPv6
        return "", ""
    match = None if parts else _SHORT.fullmatch(address)
    host = ((parts.hostname if parts else match["host"] if match else "") or "").lower()
    path = (parts.path if parts else match["path"] if match else "").strip("/").removesuffix(".git")
    host = "github.com" if host == "ssh.github.com" else host  # its port 443
    return (host, path) if host else ("", "")
