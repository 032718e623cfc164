"""What an agent may try that means harm: one table of ways, each tried in a sandbox and without one.

`ways.py` is the table, `docs/attacks.md` the page that is made of it.
"""
