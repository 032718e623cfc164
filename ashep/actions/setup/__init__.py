"""What `ashep setup` finds of a project and this machine, what it asks, and what it does besides writing files.

`facts` looks and changes nothing, `questions` is pure, `database` makes the issue database and reads what waits there.
Never: a dialog (`ashep.cli.project.setup`), or the text of the files (`ashep.config.starter.setup_files`).
"""
