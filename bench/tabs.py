"""The daemon's own figures while twelve tabs look at it, against one that works beside it and is not looked at.

Both at once: drawing twelve tabs takes what the machine has, and a daemon that waits longer for the same work looks at
its world more often. Against one that had the machine to itself that would be laid to the tabs' charge.
"""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from bench import browser
from bench.figures import Figure, times
from bench.issues import Side, by_ashep
from bench.page import served
from bench.place import Project, Tools, model, say, template

LONGEST = 480.0
"""Seconds, beyond which no pair is begun any more."""

PLACES = ("/", "/issues", "/runs", "/report")


def measure(tools: Tools, *, issues: int, pairs: int) -> list[Figure]:
    """Let two daemons walk so many issues each, with tabs that look at one of them, so many times."""
    if browser.CHROMIUM is None:
        say(browser.NONE)
        return [Figure(browser.NONE, 0, "", None)]
    full, found = template(tools, issues), list[tuple[tuple[Side, float], tuple[Side, float]]]()

    def walked(project: Project) -> tuple[Side, float]:
        at = time.monotonic()
        return by_ashep(project, url, issues, None), time.monotonic() - at

    with model(tools) as url, ThreadPoolExecutor(2) as both:
        began = time.monotonic()
        for number in range(pairs):
            if number and (time.monotonic() - began) * (number + 1) / number > LONGEST:
                say(f"tabs: no time is left for more than {number} of {pairs} pairs")
                break
            say(f"tabs: pair {number + 1} of {pairs}")
            # Which of the two is begun first changes, in case that the first one has it easier.
            first, second = (full.copy(f"tabs-{number}-{which}") for which in ("first", "second"))
            looked_at = (first, second)[number % 2]
            for project in (first, second):
                project.configure("", None)
            with _looked_at(looked_at):
                one, other = (both.submit(walked, project) for project in (first, second))
                sides = (one.result(), other.result())
            found.append((sides[number % 2], sides[1 - number % 2]))
    name = f"{browser.TABS} tabs against none: the daemon's"
    return [
        times(f"{name} own CPU", [(one.spent.own, other.spent.own) for (one, _), (other, _) in found], 1.05),
        times(f"{name} memory", [(one.memory / 1e6, other.memory / 1e6) for (one, _), (other, _) in found], 1.05, "MB"),
        times(f"{name} time", [(one, other) for (_, one), (_, other) in found], 1.05),
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
