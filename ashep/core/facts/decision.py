"""The mark of a decision."""


class Decision:
    """A fact that the core makes; a replay derives it again. All others were told."""

    __slots__ = ()
