"""Load of the machine: when it counts as behind, so that less starts on it. Pure: who measures is elsewhere."""

PRESSURE = 95.0, 80.0
"""Percent of the last minute in which a process waited for a processor: from the first on the machine is busy, below
the second it no longer is."""

LAG = 1.0, 0.3
"""The same of ashep's own event loop: seconds by which its timers are late, on average over the last minute."""


def busy_reason(pressure: float | None, lag: float, *, was_busy: bool) -> str:
    """Returns why the machine counts as behind; empty: it does not. `pressure` is None where the kernel tells none."""
    bound = 1 if was_busy else 0
    if lag >= LAG[bound]:
        return f"ashep's own timers are {lag:.1f} s late"
    if pressure is not None and pressure >= PRESSURE[bound]:
        return f"processes waited for a processor in {pressure:.0f} % of the last minute"
    return ""
