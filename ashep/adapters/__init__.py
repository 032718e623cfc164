"""The only code that talks to the world: one package for each kind of thing there.

They know ports and values, and not each other. Never: a decision.
"""
