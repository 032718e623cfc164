"""The conformance suites of the ports, for a tracker or a runner of your own: `pip install ashep[testing]`.

`ashep.extras.testing.trackers` and `ashep.extras.testing.runners` hold the tests, `ashep.extras.testing.worlds` what
they need of you. The tests of ashep hold its own adapters to the very same. Only this package imports pytest.

Never: a promise of the specification alone; what a suite asks, a port says.
"""

try:
    import pytest
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("ashep.testing needs pytest: install ashep[testing]", name=error.name) from error

from ashep.extras.testing.worlds import ACTOR, Act, RunnerWorld, TrackerWorld, context

pytest.register_assert_rewrite("ashep.extras.testing.trackers", "ashep.extras.testing.runners")

__all__ = ["ACTOR", "Act", "RunnerWorld", "TrackerWorld", "context"]
