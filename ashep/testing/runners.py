"""Suite of the runner, under the name that docs/extending.md publishes."""

from ashep.extras.testing.runners import *  # noqa: F403 - all of its names are published
