"""The conformance suites of the ports, for a tracker or a runner of your own: `pip install ashep[testing]`.

These are the names that docs/extending.md publishes; `ashep.extras.testing` holds the suites. Never: a suite itself.
"""

from ashep.extras.testing import ACTOR, Act, RunnerWorld, TrackerWorld, context

__all__ = ["ACTOR", "Act", "RunnerWorld", "TrackerWorld", "context"]
