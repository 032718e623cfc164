"""What a change touches: files, flags, secrets, tests.

It reads a diff and what the repository says of itself. Never: the World.
"""
