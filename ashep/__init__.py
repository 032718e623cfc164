"""Agent Shepherd: takes ready issues from Beads and walks each through a policy with coding agents on OpenCode."""

__version__ = "0.1.0"
