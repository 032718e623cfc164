"""The verifier: carries the checks of `ashep.core.criteria` out on a clean checkout of a commit."""

from ashep.adapters.verifier.engine import Keep, LocalVerifier

__all__ = ["Keep", "LocalVerifier"]
