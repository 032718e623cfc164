"""Beads: the tracker port over the real `bd`, every call a process of its own, every answer checked.

Never: which issue is taken, or what an answer means to a flow.
"""

from ashep.adapters.beads.annotations import BeadsAnnotations
from ashep.adapters.beads.tracker import BeadsTracker

__all__ = ["BeadsAnnotations", "BeadsTracker"]
