"""Claude Code by day, with a memory that outlives its sessions (`ashep foreman`): an extra of the house.

It needs no daemon: a wrapper that starts `claude`, hears by hooks what is said, keeps it, and begins a session anew
where it grew too long. Never: a decision about an issue (what was planned by day becomes issues through the tracker, as
a person would write them), or a file of the person's or the project's.
"""
