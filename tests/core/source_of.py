"""A made-up repository with issues, where people whose word counts and a stranger do what they like."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any

from ashep.core.facts import sources
from ashep.core.facts.sources import SourceView, SourceWord, SourceWordSeen, Voice
from ashep.core.facts.vocabulary import Fact
from ashep.core.reconcile.sources import commit_of, commit_read, due, source_read, word_read
from ashep.core.state.world import World
from tests.core import given

if TYPE_CHECKING:
    from tests.core.world_of import MadeUp

REPOSITORY = "acme/shop"
RIGHTS = {"olga": "admin", "max": "write", "eve": "read"}
"""Who is there, and what they may do. Eve's word counts for nothing."""

VERBS = ("approve", "approve", "changes", "answer", "stop", "dance")


@dataclass
class Forge:
    """What is there, and what everybody did."""

    random: Random = field(default_factory=Random)
    views: dict[str, SourceView] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    """Comments of ashep's, by name."""
    numbers: dict[tuple[str, str], int] = field(default_factory=dict)
    """Comments of ashep's, by issue and name."""
    asked: dict[str, datetime | None] = field(default_factory=dict)
    """When somebody whose word counts asked last for an issue as it is now; None: nobody does."""
    events: int = 0
    clock: datetime = given.T0
    """By the clock there; no two things happen at one moment."""

    def tick(self, now: datetime) -> datetime:
        """Give the next moment there."""
        self.clock = max(now, self.clock + timedelta(milliseconds=1))
        return self.clock

    def open(self, number: int) -> str:
        """Somebody opens an issue."""
        issue = f"t-gh-{number}"
        self.views[issue] = SourceView(
            REPOSITORY, number, f"https://forge.example/{number}", "Add", "open", f"blob{number}"
        )
        return issue

    def voice(self, login: str, now: datetime, kind: str = "event") -> Voice:
        """Give an act of somebody an identity."""
        self.events += 1
        return Voice(f"{kind}/{10_000 + self.events}", login, self.tick(now), RIGHTS[login])

    def look(self, world: World, now: datetime, chance: float) -> list[Fact]:
        """Let something happen there, and read it."""
        news = due(world, REPOSITORY) if self.views else []
        if not self.views or self.random.random() >= chance:
            return news
        issue, login = self.random.choice(sorted(self.views)), self.random.choice(["olga", "olga", "max", "eve"])
        view = self.views[issue]
        acts: list[Callable[[], dict[str, Any]]] = [
            lambda: {"labelled": True, "label": self.voice(login, now)},
            lambda: {"labelled": True, "label": self.voice(login, now)},
            lambda: {"labelled": False, "label": None},
            lambda: {"text": f"{view.text}'", "edited": self.tick(now)},
            lambda: {"state": "closed", "closer": login},
            lambda: {"state": "open", "reopened": self.voice(login, now)},
            lambda: {"comments": f"{view.comments}+"},
        ]
        if self.random.random() < 0.2:
            return [*news, *self._pushed(world)]
        if self.random.random() < 0.5:
            return [*news, *self._speak(world, issue, login, now)]
        self._show(issue, replace(view, **self.random.choice(acts)()))
        return [*news, *source_read(world, issue, self.views[issue])]

    def _pushed(self, world: World) -> list[Fact]:
        """Somebody pushes the base, and what has landed there is seen."""
        flows = [world.flows[issue] for issue in sorted(self.views) if issue in world.flows]
        pushed = [(flow.issue.id, commit_of(world, flow)) for flow in flows if flow.stage == "closed"]
        return [fact for issue, work in pushed if work is not None for fact in commit_read(world, issue, work[1])]

    def _show(self, issue: str, view: SourceView) -> None:
        """Change an issue, and keep account of who asks for it."""
        earlier, self.views[issue] = self.views[issue], view
        counts = view.label is not None and view.label.login != "eve"
        if view.label != earlier.label:
            self.asked[issue] = view.label.moment if view.label is not None and counts else None
        by_stranger = view.reopened != earlier.reopened and view.reopened is not None and view.reopened.login == "eve"
        if by_stranger or view.edited != earlier.edited:
            self.asked[issue] = None

    def _speak(self, world: World, issue: str, login: str, now: datetime) -> list[Fact]:
        voice = self.voice(login, now, "comment")
        verb, edited = self.random.choice(VERBS), self.random.random() < 0.1
        text = "make it blue" if self.random.random() < 0.7 else ""
        word = SourceWord(voice, verb, text, edited, self.random.choice([0, 0, 0, *self.numbers.values()][:6]))
        return word_read(world, SourceWordSeen(issue, word, boxed=True))

    def judged(self, fact: sources.SourceWordJudged) -> None:
        """Keep account of what was said."""
        view = self.views.get(fact.issue)
        if fact.approves is not None and view is not None and view.labelled:
            self.asked[fact.issue] = fact.approves
        if fact.stops is not None:
            self.asked[fact.issue] = None

    def is_asked_for(self, issue: str) -> bool:
        """Whether somebody whose word counts asks for the issue as it is."""
        return self.views[issue].state == "open" and self.asked.get(issue) is not None

    def answer(self, made: "MadeUp", command: sources.SourceCommand) -> Fact:
        """Carry a command out."""
        match command:
            case sources.MirrorIssue():
                self._mirror(made, command)
                return sources.IssueMirrored(command.issue, command.key)
            case sources.SayAtSource(issue=issue, name=name):
                known = self.numbers.get((issue, name))
                assert command.comment in (None, known), f"{name} is written over another comment"
                self.texts[name] = command.text
                number = self.numbers.setdefault((issue, name), 1000 + len(self.numbers) + 1)
                return sources.SaidAtSource(issue, command.key, name, number, self.tick(made.now))
            case sources.CloseAtSource():
                if (view := self.views.get(command.issue)) is not None:
                    self._show(command.issue, replace(view, state="closed", closer="ashep"))
                return sources.ClosedAtSource(command.issue, command.key)

    def _mirror(self, made: "MadeUp", command: sources.MirrorIssue) -> None:
        view = made.tracker.get(command.issue)
        if view is None:
            made.open(command.issue)
        elif command.closed and view.assignee is None:
            made.change(command.issue, "ann", status="closed")
        elif command.closed is False and view.status == "closed":
            made.change(command.issue, "ann", status="open", assignee=None)
