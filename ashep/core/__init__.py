"""The pure core: facts in, facts and commands out.

Here live all rules, in rooms on nine floors (docs/architecture.md); a room imports only what is below it. Never: IO, a
clock, chance, or logging. What a rule needs of the world is a fact.
"""
