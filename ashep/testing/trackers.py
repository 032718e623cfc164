"""Suite of the tracker, under the name that docs/extending.md publishes."""

from ashep.extras.testing.trackers import *  # noqa: F403 - all of its names are published
