"""Commands about the project: setting it up, its agents, services, work trees, and the checks of its issues.

Never: what the daemon does with them.
"""
