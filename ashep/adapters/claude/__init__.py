"""Claude Code: the runner port over one process a prompt, without any server (facts/claude-code.md).

Never: what follows from a turn, or what its answer is worth.
"""

from ashep.adapters.claude.agents import BUILT_IN
from ashep.adapters.claude.apart import Apart
from ashep.adapters.claude.runner import ALIASES, CANNOT, ClaudeRunner
from ashep.adapters.claude.turns import PROVIDER

__all__ = ["ALIASES", "BUILT_IN", "CANNOT", "PROVIDER", "Apart", "ClaudeRunner"]
