"""What phases ended with in the present cycle, and what a phase requires of that."""

from ashep.core.policy.settings import Phase

Passed = tuple[tuple[str, str], ...]
"""Phases, each with the verdict, the result or the person's answer that it last ended with."""


def noted(passed: Passed, phase: str, word: str | None) -> Passed:
    """What a phase ended with takes the place of what it ended with before; None: it is not passed (any more)."""
    rest = tuple(one for one in passed if one[0] != phase)
    return rest if word is None else (*rest, (phase, word))


def unmet(phase: Phase, passed: Passed) -> str:
    """What a phase requires that did not happen in this cycle; empty where nothing is lacking."""
    ended = dict(passed)
    lacking = (
        f"{name}: {' or '.join(words)}" for name, words in phase.requires.items() if ended.get(name) not in words
    )
    return ", ".join(lacking)
