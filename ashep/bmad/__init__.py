"""Files of the BMAD method as people have them: stories, sprint status, epics, and where they lie.

Never: IO, and what is decided. What a file says is read here, each value with its line, and changed line by line; what
it does not say is `unknown` with the reason, and is not guessed (docs/facts/bmad.md).
"""
