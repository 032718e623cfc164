"""Pauses: while one stands no run starts and no issue is taken; what runs goes on to its end.

A person pauses and resumes; quiet hours do the same by the clock. A pause of a provider keeps only the agents that run
on it. Its end is a due time in the World, so that it outlives a restart; one without an end lasts until somebody
resumes. What a person resumes in the midst of quiet hours stays so until these are over.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from ashep.core.facts.resources import WorkPaused, WorkResumed
from ashep.core.facts.vocabulary import Fact
from ashep.core.state.holds import PAUSED, Hold

BY_HAND, QUIET_HOURS = PAUSED
TIMER = "pause"
"""The name of the timer that ends a pause."""


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause, in all or of a provider, by a person or in a window of the configuration."""

    by: str
    why: str
    since: datetime
    until: datetime | None = None
    """None: until somebody resumes."""
    provider: str | None = None
    """None: all of them."""
    window: str = ""
    """The window's name; empty: a person's."""
    drain: bool = False
    lifted: bool = False
    """A person resumed before the window was over: it is kept so that it does not begin once more."""

    @property
    def key(self) -> str:
        """What a later pause must have in common with it to replace it."""
        return f"{self.window}/{self.provider or ''}"

    @property
    def sentence(self) -> str:
        """Say who, what and until when."""
        what = f"{self.provider} is paused" if self.provider else "paused"
        end = f"until {self.until:%Y-%m-%d %H:%M:%S}Z" if self.until else "until `ashep resume`"
        return f"{what} by {self.by} {end}" + (f": {self.why}" if self.why else "")


Pauses = tuple[Pause, ...]


def begin_pause(pauses: Pauses, fact: WorkPaused, time: datetime) -> Pauses:
    """A pause began; it takes the place of the one before of its kind."""
    fresh = Pause(fact.by, fact.why, time, fact.until, fact.provider, fact.window, fact.drain)
    return (*(pause for pause in pauses if pause.key != fresh.key), fresh)


def end_pause(pauses: Pauses, fact: WorkResumed) -> Pauses:
    """Somebody resumed: in all, or a provider; or a window is no longer in the configuration."""
    if fact.window:
        return tuple(pause for pause in pauses if pause.window != fact.window)
    if fact.provider is not None:
        return tuple(pause for pause in pauses if pause.window or pause.provider != fact.provider)
    return tuple(replace(pause, lifted=True) for pause in pauses if pause.window)


def expire_pause(pauses: Pauses, key: str, due: datetime) -> Pauses:
    """The time of a pause has passed."""
    return tuple(pause for pause in pauses if (pause.key, pause.until) != (key, due))


def dues(pauses: Pauses) -> list[tuple[str, datetime]]:
    """The end of each pause that has one, by its timer's key."""
    return [(f"{TIMER}:{pause.key}", pause.until) for pause in pauses if pause.until is not None]


def find_hold(pauses: Pauses, provider: str | None) -> Hold | None:
    """Give the hold of a run on this provider (None: on none in particular), of the pause that lasts longest."""
    standing = [pause for pause in pauses if not pause.lifted and pause.provider in (None, provider)]
    if not standing:
        return None
    longest = max(standing, key=lambda pause: (pause.until is None, pause.until or pause.since, pause.key))
    return Hold(QUIET_HOURS if longest.window else BY_HAND, longest.sentence, longest.key)


def until(pauses: Pauses, key: str) -> datetime | None:
    """The end of the pause that a hold is of."""
    return next((pause.until for pause in pauses if pause.key == key), None)


def windows_read(pauses: Pauses, windows: Mapping[str, datetime], now: datetime) -> list[Fact]:
    """Compare the windows that are in force, each with its end, with the pauses: only what differs is a fact."""
    known = {pause.window: pause for pause in pauses if pause.window}
    gone = [
        WorkResumed("the configuration", f"{name} is not in force any more", window=name)
        for name, pause in sorted(known.items())
        if name not in windows and (pause.until is None or pause.until > now)
    ]
    begins = [
        WorkPaused("the configuration", name, end, window=name)
        for name, end in sorted(windows.items())
        if end > now and (name not in known or known[name].until != end)
    ]
    return [*gone, *begins]


FOLDS = {WorkPaused: begin_pause}
