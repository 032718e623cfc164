"""Agents that speak ACP, the Agent Client Protocol: the runner port over a keeper process a session.

Never: what follows from a turn, or what its answer is worth. The protocol's library is an extra, `ashep[acp]`, and only
the keeper's process imports it.
"""

from ashep.adapters.runners.acp.runner import AcpRunner

__all__ = ["AcpRunner"]
