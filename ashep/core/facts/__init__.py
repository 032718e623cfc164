"""The journal's vocabulary: facts and commands by domain, and how they are written.

The name of a class is the type of a record, for ever: later forms are made by defaults and `UPCASTS`. Never: a rule, or
what is known by folding.
"""


class Decision:
    """A fact that the core makes; a replay derives it again. All others were told."""

    __slots__ = ()
