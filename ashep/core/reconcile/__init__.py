"""Level-triggered control: facts are folded, decided upon, and the difference to what should be becomes commands.

`evolve` and `decide` know every domain, `dispatch` who may start, `outstanding` what is open. Never: a domain's own
rule.
"""
