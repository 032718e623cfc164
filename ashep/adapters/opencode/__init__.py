"""OpenCode: the runner port over its servers, managed or attached (facts/opencode.md).

Never: what follows from a turn, or what its answer is worth.
"""

from ashep.adapters import http_client  # noqa: F401 # pyright: ignore[reportUnusedImport] - it comes before httpx
from ashep.adapters.opencode.runner import OpencodeRunner

__all__ = ["OpencodeRunner"]
