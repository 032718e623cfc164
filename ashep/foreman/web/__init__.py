"""The web, for Claude Code: search and pages, by MCP and by the hooks' server; what they say is fenced as data.

Never: an address that is not everybody's, or a text from outside that is not fenced.
"""
