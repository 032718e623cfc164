"""Words for what a check found."""

from ashep.ports.verifier import Found


def passed(message: str, output: str = "") -> Found:
    """It is as expected."""
    return Found("passed", message, output)


def failed(message: str, output: str = "") -> Found:
    """It is otherwise than expected."""
    return Found("failed", message, output)


def error(message: str, output: str = "") -> Found:
    """It could not be carried out, which proves nothing."""
    return Found("error", message, output)
