"""Runners of agents: OpenCode, Claude Code, and any agent over ACP, a package each.

They implement `ashep.ports.runner`, and do not know each other. Never: a decision.
"""
