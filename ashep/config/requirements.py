"""What `requires` and `must_pass` of a phase may name: phases of its policy, and what those can end with."""

from collections.abc import Iterator

from ashep.config.explain import nearest
from ashep.config.findings import KeyPath
from ashep.core.policy.policies import Phase, Policy

Problem = tuple[str, KeyPath, str]
"""Code, path, message."""


def ends_of(phase: Phase) -> tuple[str, ...]:
    """What a phase can end with so that the issue goes on; a failure is no such end."""
    if phase.human is not None:
        return ("approved", "changes_requested")
    return (*phase.verdicts, "partial") if phase.verdicts else ("success", "partial")


def of_phase(policy: Policy, phase: Phase, path: KeyPath) -> Iterator[Problem]:
    """Names that mean nothing."""
    names = [other.name for other in policy.phases]
    for name, words in phase.requires.items():
        place: KeyPath = (*path, "requires", name)
        other = policy.phase(name)
        if other is None:
            yield "unknown-phase", place, f"this policy has no phase {name}{nearest(name, names)}"
        elif not words:
            yield "requires-nothing", place, f"name what {name} must have ended with: {', '.join(ends_of(other))}"
        else:
            yield from _words(other, words, place)
    yield from _words(phase, phase.must_pass, (*path, "must_pass"))


def _words(phase: Phase, words: tuple[str, ...], place: KeyPath) -> Iterator[Problem]:
    known = ends_of(phase)
    for index, word in enumerate(words):
        if word not in known:
            yield "unknown-end", (*place, index), f"{phase.name} never ends with {word}{nearest(word, known)}"
