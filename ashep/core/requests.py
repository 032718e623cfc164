"""Names that docs/extending.md publishes for runners of users: what a session may ask."""

from ashep.core.facts.requests import Request

__all__ = ["Request"]
