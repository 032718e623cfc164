"""Load of this machine, as the kernel tells it (Linux: pressure stall information)."""

from contextlib import suppress
from pathlib import Path

PRESSURE = Path("/proc/pressure/cpu")


def cpu_pressure(file: Path = PRESSURE) -> float | None:
    """Returns the percent of the last minute in which a process waited for a processor; None where nobody can tell."""
    with suppress(OSError, ValueError, KeyError):
        for line in file.read_text().splitlines():
            kind, *fields = line.split()
            values = dict(field.split("=") for field in fields)
            if kind == "some":
                return float(values["avg60"])
    return None
