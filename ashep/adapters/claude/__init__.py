"""Claude Code: the runner port over one process a prompt, without any server (facts/claude-code.md).

Never: what follows from a turn, or what its answer is worth.
"""

from ashep.adapters.claude.runner import CANNOT, ClaudeRunner

__all__ = ["CANNOT", "ClaudeRunner"]
