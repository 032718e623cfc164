"""Lands the work of issues in a git repository (`ashep.landing.Landing`)."""

from ashep.adapters.landing.landing import GitLanding

__all__ = ["GitLanding"]
