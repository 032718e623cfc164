"""Trees of issues, linked ones and places: how they are made, sealed, saved and taken away.

Never: a work tree of the user's, and how a branch lands.
"""
