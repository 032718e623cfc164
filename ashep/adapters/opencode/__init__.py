"""The runner for OpenCode servers, managed or attached (facts/opencode.md)."""

from ashep.adapters.opencode.runner import OpencodeRunner

__all__ = ["OpencodeRunner"]
