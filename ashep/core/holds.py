"""Why an issue does not start."""

from typing import NamedTuple


class Hold(NamedTuple):
    """Why an issue does not start."""

    code: str
    """Stable (docs/codes.md)."""
    why: str
    of: str = ""
    """What stands in the way, where a hold of this code may be of several: a pause's key, a provider."""
