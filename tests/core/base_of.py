"""A made-up base branch, and a made-up verifier: what the core asks about the work of issues is answered from here."""

from dataclasses import dataclass, field, replace
from random import Random

from ashep.core.delivery.pull_requests import pull_read
from ashep.core.facts import commands as c
from ashep.core.facts import delivery
from ashep.core.facts.delivery import CheckResult, Remark
from ashep.core.facts.vocabulary import Fact
from ashep.core.state.world import World

CHECK = "tests"

WRONG: dict[type, tuple[str, ...]] = {
    c.VerifyWork: ("fails", "unchanged"),
    c.IntegrateWork: ("conflict",),
    c.MoveBase: ("moved", "moved", "dirty", "dirty", "locked", "failed", "failed", "names", "protected", "gone"),
    c.OpenPullRequest: ("away", "away", "theirs", "refused"),
}

PEOPLE = ("merged", "closed", "gone", "late", "theirs", "ci", "ci", "review", "review", "bot")
"""What people, programs and CI do with a pull request, where not all is calm."""


@dataclass
class Base:
    """Holds what has landed."""

    tip: str = "c0ffee"
    landed: dict[str, list[str]] = field(default_factory=dict)
    """The heads that landed, by issue."""
    will: dict[tuple[str, type], list[str]] = field(default_factory=dict)
    """What goes wrong next, by issue and kind of command: `fails` or `unchanged` of a verification ·
    `conflict` of an integration · `moved`, `dirty`,
    `locked`, `failed`, `names`, `protected` or `gone` of a move · `theirs`, `refused` or `away` of a pull request."""
    asks: dict[str, int] = field(default_factory=dict)
    """Numbers of pull requests, by name."""

    random: Random = field(default_factory=Random)

    def goes_wrong(self, issue: str, *what: str) -> None:
        """Say what goes wrong next; `fine`: nothing does that time."""
        kinds: dict[str, type] = {"conflict": c.IntegrateWork}
        kinds |= dict.fromkeys(("fails", "unchanged", "fine"), c.VerifyWork)
        kinds |= dict.fromkeys(("theirs", "refused", "away"), c.OpenPullRequest)
        for word in what:
            self.will.setdefault((issue, kinds.get(word, c.MoveBase)), []).append(word)

    def happens(self, chance: float, *what: str) -> str:
        """Something of these, or nothing."""
        return self.random.choice(what) if chance and self.random.random() < chance else ""

    def answer(
        self, command: c.VerifyWork | c.IntegrateWork | c.MoveBase | c.OpenPullRequest, chance: float = 0.0
    ) -> Fact:
        """Carry a command out; `chance`: that something goes wrong."""
        scripted = self.will.get((command.issue, type(command)))
        wrong = scripted.pop(0) if scripted else self.happens(chance, *WRONG[type(command)])
        match command:
            case c.VerifyWork():
                return self._verify(command, wrong)
            case c.IntegrateWork():
                return self._integrate(command, wrong)
            case c.MoveBase():
                return self._move(command, wrong)
            case c.OpenPullRequest():
                return self._open(command, wrong)

    def _verify(self, command: c.VerifyWork, wrong: str) -> Fact:
        result = CheckResult(CHECK, "failed" if wrong == "fails" else "passed", "told so", 1)
        return delivery.WorkVerified(
            command.issue, command.key, command.commit, f"tree of {command.commit}", wrong != "unchanged", command.run,
            "checks", (result,), must_change=command.change,
        )  # fmt: skip

    def _integrate(self, command: c.IntegrateWork, wrong: str) -> Fact:
        issue, key, head = command.issue, command.key, command.head
        if wrong == "conflict":
            return delivery.WorkConflicted(issue, key, head, self.tip, ("calc.py",), "ef" * 32)
        if head in self.landed.get(issue, ()):
            return delivery.WorkLanded(issue, key, command.onto, head, self.tip, already=True)
        commit = f"{head} on {self.tip}"
        return delivery.WorkIntegrated(issue, key, head, self.tip, commit, f"tree of {commit}")

    def _move(self, command: c.MoveBase, wrong: str) -> Fact:
        if command.new == self.tip:
            return delivery.WorkLanded(command.issue, command.key, command.onto, command.head, self.tip)
        if wrong or command.old != self.tip:
            return delivery.LandingRefused(command.issue, command.key, wrong or "moved", "told so")
        self.tip = command.new
        self.landed.setdefault(command.issue, []).append(command.head)
        return delivery.WorkLanded(command.issue, command.key, command.onto, command.head, self.tip)

    def _open(self, command: c.OpenPullRequest, wrong: str) -> Fact:
        issue, key = command.issue, command.key
        if wrong:
            return delivery.LandingRefused(issue, key, wrong, "told so")
        number = self.asks.setdefault(command.name, len(self.asks) + 7)
        url = f"https://forge.example/{number}"
        return delivery.PullRequestOpened(issue, key, number, url, command.name, command.base, command.head)

    def looked(self, world: World, chance: float) -> list[Fact]:
        """People and CI do something with a pull request, which a look shows; in a calm they merge it."""
        if self.random.random() < 0.7:
            return []
        issue = self.random.choice(sorted(world.indexes.reviewed))
        flow = world.flows[issue]
        pull, own = flow.work.pull, flow.work.own
        assert pull is not None
        assert own is not None
        assert pull.head == own.head, f"people look at {pull}, and not at {own}"
        what = self.random.choice(PEOPLE) if chance else "merged"
        seen = delivery.PullRequestSeen(issue, pull.number, world.seq, "open", pull.head, "ann")
        match what:
            case "merged" | "closed" | "gone":
                seen = replace(seen, state=what)
            case "late":
                seen = replace(seen, state="merged", as_of=pull.seq - 1)
            case "theirs":
                seen = replace(seen, head="a person's")
            case "ci":
                seen = replace(seen, ci="failing", failing=("build",))
            case _:
                said = Remark(f"r/{len(pull.heard)}", "changes_requested", "ann", bot=what == "bot")
                seen = replace(seen, remarks=(*pull.remarks, said))
        told = pull_read(world, seen)
        if told and what == "merged" and own.head not in self.landed.get(issue, ()):
            self.landed.setdefault(issue, []).append(own.head)
        return [*told]
