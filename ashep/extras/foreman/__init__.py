"""Claude Code by day, with a memory that outlives its sessions (`ashep foreman`): an extra of the house.

A wrapper starts `claude`, hears by hooks what is said, keeps it, and begins a session again where it grew too long.
Never: a decision about an issue (plans become issues through the tracker), or a file of the person's or the project's.
"""
