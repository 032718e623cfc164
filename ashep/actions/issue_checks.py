"""The checks of an issue: read from its acceptance criteria, and put there by a person.

Nothing here talks to the daemon, which adopts the checks of an issue when it takes it.
"""

from collections.abc import Collection

from ashep.config.checks.block import Wrong, read_criteria, wrong_pattern
from ashep.config.checks.put import Given, put
from ashep.core.policy.checks import Criteria
from ashep.core.policy.settings import Settings
from ashep.errors import AshepError
from ashep.ports.annotations import Annotations, Rewritten
from ashep.ports.tracker import Seen, Tracker


class NoSuchIssue(AshepError):
    """There is no such issue."""


class NoChecks(AshepError):
    """An issue's acceptance criteria hold no block of checks."""


def where(issue: str) -> str:
    """Name an issue's acceptance criteria as errors do."""
    return f"acceptance criteria of {issue}"


def types(settings: Settings) -> tuple[str, ...]:
    """Give the types of checks that the user registered."""
    return tuple(settings.verification.types)


async def seen(tracker: Tracker, issue: str) -> Seen:
    """Read an issue; `NoSuchIssue` where there is none."""
    found = await tracker.issue(issue)
    if found is None:
        raise NoSuchIssue(f"there is no issue {issue}")
    return found


def of(found: Seen, known: Collection[str], wrong: Wrong = wrong_pattern) -> Criteria:
    """Read the checks of an issue. Raises `ConfigErrors` where they are wrong, `NoChecks` where there are none."""
    issue = found.issue.id
    criteria = read_criteria(found.text.acceptance, where(issue), known, wrong)
    if criteria is None:
        raise NoChecks(f"the {where(issue)} hold no block of checks (`ashep criteria {issue} --set FILE` puts one)")
    return criteria


async def set_checks(annotations: Annotations, issue: str, given: Given, known: Collection[str]) -> bool:
    """Put checks into an issue's acceptance criteria, and leave every other word; False: they stand there so already.

    Raises `ConfigErrors` where it is not clear what they replace, and `NoSuchIssue`.
    """
    found = await annotations.read(issue)
    if found is None:
        raise NoSuchIssue(f"there is no issue {issue}")
    text = put(found.acceptance, given, where(issue), known)
    if text == found.acceptance:
        return False
    await annotations.rewrite(issue, Rewritten(acceptance=text))
    return True


def at_work(found: Seen) -> bool:
    """Whether the daemon has begun the issue, so that other checks count than those that are put there now."""
    return found.issue.stamp is not None and found.issue.status in ("in_progress", "blocked")
