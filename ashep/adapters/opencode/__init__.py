"""The runner for OpenCode servers, managed or attached (facts/opencode.md)."""

from ashep.adapters import httpx_alone  # noqa: F401 # pyright: ignore[reportUnusedImport] - it comes before httpx
from ashep.adapters.opencode.runner import OpencodeRunner

__all__ = ["OpencodeRunner"]
