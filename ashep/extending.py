"""Names that docs/extending.md publishes: what a class of the user's is made with."""

from ashep.ports.user_classes import Context

__all__ = ["Context"]
