"""The journal's vocabulary: facts and commands by domain, and how they are written.

The name of a class is the type of a record, for ever: later forms are made by defaults and `UPCASTS`. Never: a rule, or
what is known by folding.
"""
