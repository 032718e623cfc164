"""Agent Shepherd: takes ready issues from GitHub, Beads or stories and walks each through a policy with coding agents.

Here stand the rooms (docs/architecture.md), what puts them together, and what all of them need. Never: a rule.
"""

__version__ = "0.1.0"
