"""What the suites need of a user, under the name that docs/extending.md publishes."""

from ashep.extras.testing.worlds import *  # noqa: F403 - all of its names are published
