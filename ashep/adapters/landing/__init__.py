"""Lands the work of issues in a git repository (`ashep.ports.landing.Landing`), and pushes it (`ashep.ports.forge.Remote`)."""

from ashep.adapters.landing.landing import GitLanding
from ashep.adapters.landing.pushing import GitRemote

__all__ = ["GitLanding", "GitRemote"]
