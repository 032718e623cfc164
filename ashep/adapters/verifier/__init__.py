"""The verifier: carries the checks of `ashep.core.policy.checks` out on a clean checkout of a commit.

Never: what is to be checked, or what follows where it does not hold.
"""

from ashep.adapters.verifier.engine import Keep, LocalVerifier
from ashep.adapters.verifier.sandbox import Isolation, probe
from ashep.adapters.verifier.static_checks import wrong_patterns

__all__ = ["Isolation", "Keep", "LocalVerifier", "probe", "wrong_patterns"]
