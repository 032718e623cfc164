"""The daemon's own figures while twelve tabs look at it, against none: pairs, one after the other."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from tests.bench import browser
from tests.bench.figures import Figure, times
from tests.bench.issues import Side, by_ashep
from tests.bench.page import served
from tests.bench.place import Project, Tools, model, say, template

LONGEST = 480.0
"""Seconds, beyond which no pair is begun any more."""

PLACES = ("/", "/issues", "/runs", "/report")


def measure(tools: Tools, *, issues: int, pairs: int) -> list[Figure]:
    """Walk so many issues, with and without tabs, so many times each."""
    if browser.CHROMIUM is None:
        say(browser.NONE)
        return [Figure(browser.NONE, 0, "", None)]
    full, found = template(tools, issues), list[tuple[tuple[Side, float], tuple[Side, float]]]()

    def walked(number: int, watched: bool) -> tuple[Side, float]:
        project = full.copy(f"tabs-{number}-{watched}")
        project.configure("", None)
        with _looked_at(project) if watched else nullcontext():
            at = time.monotonic()
            return by_ashep(project, url, issues, None), time.monotonic() - at

    with model(tools) as url:
        began = time.monotonic()
        for number in range(pairs):
            if number and (time.monotonic() - began) * (number + 1) / number > LONGEST:
                say(f"tabs: no time is left for more than {number} of {pairs} pairs")
                break
            say(f"tabs: pair {number + 1} of {pairs}")
            first = walked(number, number % 2 == 0)
            second = walked(number, number % 2 == 1)
            found.append((first, second) if number % 2 == 0 else (second, first))
    name = f"{browser.TABS} tabs against none: the daemon's"
    return [
        times(f"{name} own CPU", [(one.spent.own, other.spent.own) for (one, _), (other, _) in found], 1.05),
        times(f"{name} memory", [(one.memory / 1e6, other.memory / 1e6) for (one, _), (other, _) in found], 1.05, "MB"),
        times(
            f"{name} time, on a machine that draws them, too", [(one, other) for (_, one), (_, other) in found], None
        ),
    ]


@contextmanager
def _looked_at(project: Project) -> Iterator[None]:
    with served(project.folder), browser.chromium() as chromium:
        context = browser.entered(chromium, project.folder)()
        for number in range(browser.TABS):
            shown = context.new_page()
            shown.goto(PLACES[number % len(PLACES)])
            shown.get_by_role("heading", level=1).wait_for()
        yield
