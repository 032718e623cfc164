"""Git: trees of issues (`trees`), landing (`ashep.ports.landing`), and what is read of a repository.

Everything here calls one program, git. Never: which branch lands when.
"""

from ashep.adapters.git.base_update import GitLanding
from ashep.adapters.git.remotes import GitRemote

__all__ = ["GitLanding", "GitRemote"]
