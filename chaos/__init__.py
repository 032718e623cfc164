"""What goes wrong, on purpose: kills, power cuts, lying tools, hostile agents, and lives of weeks.

The ordinary test command runs a sample of it, `make deep` all of it.
"""
