"""What config.yaml must keep about classes of the user's own: one tracker, one runner, nothing without effect."""

from collections.abc import Iterator

from ashep.config.findings import KeyPath
from ashep.core.policy.checks import KINDS
from ashep.core.policy.language import is_name
from ashep.core.policy.settings import OPENCODE, Settings


def of_settings(settings: Settings) -> Iterator[tuple[str, KeyPath, str]]:
    """Say what is wrong with `tracker`, `runners` and `verification`, by the file alone: no class is imported."""
    tracker, runners = settings.tracker, settings.runners
    if tracker.own and "command" in tracker.model_fields_set:
        yield "pointless-key", ("tracker", "command"), f"has no effect with {tracker.type}; give it in `options`"
    if not tracker.own and tracker.options:
        yield "pointless-key", ("tracker", "options"), "only a class of your own takes options; remove them"
    for place, name in enumerate(runners.own):
        if not is_name(name):
            yield "bad-name", ("runners", name), "not a name: a letter, then letters, digits, _ or - (64 at most)"
        if place:
            message = f"a project has one runner, and {runners.name} is one already; remove one of them"
            yield "several-runners", ("runners", name), message
    if runners.own and OPENCODE in runners.model_fields_set:
        message = f"a project has one runner, and {runners.name} takes the place of opencode; remove one of them"
        yield "several-runners", ("runners", OPENCODE), message
    for name in settings.verification.types:
        if name in KINDS:
            message = f"{name} is built in; give your type another name"
            yield "taken-name", ("verification", "types", name), message
