"""OpenCode: the runner port over its servers, managed or attached (facts/opencode.md).

Never: what follows from a turn, or what its answer is worth.
"""

from ashep.adapters.runners.opencode.runner import OpencodeRunner
from ashep.adapters.system import http_client  # noqa: F401 # pyright: ignore[reportUnusedImport] - it comes before httpx

__all__ = ["OpencodeRunner"]
