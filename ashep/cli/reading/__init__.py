"""Commands that only look: where things stand, what happened and why.

Never: anything that writes to the project, the tracker or the journal, besides the picture of it.
"""
