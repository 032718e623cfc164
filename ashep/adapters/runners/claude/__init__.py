"""Claude Code: the runner port over one process a prompt, without any server (facts/claude-code.md).

Never: what follows from a turn, or what its answer is worth.
"""

from ashep.adapters.runners.claude.agents import BUILT_IN
from ashep.adapters.runners.claude.runner import ALIASES, ClaudeRunner
from ashep.adapters.runners.claude.sandbox import Apart
from ashep.adapters.runners.claude.turn_state import PROVIDER

__all__ = ["ALIASES", "BUILT_IN", "PROVIDER", "Apart", "ClaudeRunner"]
