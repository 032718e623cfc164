"""What people ask of a kind of runner: whether it can be used, how its sessions are opened and read, what it has.

`kinds.RUNNER_KINDS` has an entry for each kind. Never: a decision, or how runners are made (`ashep.factories`).
"""
