"""Lands the work of issues in a git repository (`ashep.ports.landing.Landing`), and pushes it (`ashep.ports.landing.Remote`)."""

from ashep.adapters.git.advance import GitLanding
from ashep.adapters.git.push import GitRemote

__all__ = ["GitLanding", "GitRemote"]
