"""OpenCode: the runner port over its servers, managed or attached (facts/opencode.md).

Never: what follows from a turn, or what its answer is worth.
"""

import ashep.adapters.system.http_client  # noqa: F401 # pyright: ignore[reportUnusedImport] - it comes before httpx

# isort: split
from ashep.adapters.runners.opencode.runner import OpencodeRunner

__all__ = ["OpencodeRunner"]
