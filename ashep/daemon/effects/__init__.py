"""Commands become calls, and answers become facts: by the kind of command.

Every retry has the key of the first try. Never: a decision about what to do next.
"""
