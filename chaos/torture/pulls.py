"""Nights in which work lands by pull request: a forge that fails, its CI, and people who review, push, merge and close.

Everything here has dice of its own, so that nights without a forge are as they were.
"""

from collections import Counter
from typing import TYPE_CHECKING, Any, cast

import anyio

from ashep.core.delivery.pull_request_body import marker
from ashep.core.facts.delivery import PullRequestOpened, PullRequestReturned, PullRequestSeen
from ashep.core.facts.issues import IssueClosed
from ashep.core.facts.resources import DaemonStarted, JournalBegun
from ashep.core.policy.landing import ForgeSettings
from ashep.core.state.branches import branch_of
from ashep.daemon.effects.pulls import ForgeAdapters
from ashep.errors import AshepError, ForgeUnauthorized, ForgeUnavailable
from ashep.ports.landing import NotPushed, Opened, PullRequest, Pushed
from tests.memory import MemoryForge

if TYPE_CHECKING:
    from chaos.torture.landing import Repository
    from chaos.torture.life import Life
    from chaos.torture.world import World

FORGE = ForgeSettings(type="github", repository="acme/tools")
ANN = "ann"
NOTES = "theirs.txt"
"""What people push."""


class Site(MemoryForge):
    """A forge with a remote, and the people and the CI there. What became of them is judged here, not what is said."""

    def __init__(self, world: "World", own: "Repository") -> None:
        super().__init__(own.trees)
        self.world, self.own = world, own
        self.trouble: AshepError | None = None
        """What every call fails with."""
        self.theirs = set[str]()
        """Commits that people pushed."""
        self.red = set[str]()
        """Commits on which CI failed."""
        self.merged = dict[str, list[str]]()
        """By branch: its heads when somebody merged them."""
        self._wanted = dict[int, str]()
        """The commit of which somebody wants changes, and waits for them."""
        self._requests, self._returned = Counter[int](), Counter[int]()
        """How often somebody requested changes, and how often that sent the work back."""
        self._ends = False
        """Everything is to come to its end."""
        self._left = set[int]()
        """Pull requests of which the journal says that a person's commit was seen there."""

    # --- people, and CI ---

    async def live(self) -> None:
        """Look at what is open, now and then."""
        dice = self.world.dice.of("forge people")
        while True:
            await anyio.sleep(dice.uniform(4, 60))
            for number in self.open_ones():
                self._look(number)
            if self._ends:
                self._take_up()

    def open_ones(self) -> list[int]:
        """Give the pull requests that are open."""
        return [number for number in self.requests if self._states[number].state == "open"]

    def _look(self, number: int) -> None:
        dice, world, branch = self.world.dice.of("forge people"), self.world, self.requests[number].branch
        head = self.branches.get(branch)
        if head is None:  # somebody deleted it
            return self._end(number, "closed")
        if self._states[number].ci in ("none", "pending"):
            return self._check(number, head)
        if world.dice.roll("pull_reviews", 0.3):
            return self._say(number, head)
        if world.dice.roll("pull_pushes", 0.1):
            return self._push(number, branch, head)
        if world.dice.roll("pull_closes", 0.08):
            return self._end(number, "closed")
        if world.dice.calm:
            return self._judge(number, head)
        if dice.random() < 0.25:
            self._merge(number, head)
        return None

    def _check(self, number: int, head: str) -> None:
        if self.world.dice.roll("ci_fails", 0.4):
            self.red.add(head)
            self.world.tell(f"CI fails on {head[:12]} of {number}")
            return self.checks(number, "failing", "build")
        return self.checks(number, "pending" if self.world.dice.roll("ci_slow", 0.5) else "passing")

    def _say(self, number: int, head: str) -> None:
        kind = self.world.dice.of("forge people").choice(("comment", "approved", "changes_requested"))
        self.world.tell(f"ann says {kind} of {number}")
        self.says(number, kind, ANN, "Say it in other words.")
        if kind == "changes_requested":
            self._wants(number, head)
        else:
            self._wanted.pop(number, None)

    def _wants(self, number: int, head: str) -> None:
        self._wanted[number] = head
        self._requests[number] += 1

    def _push(self, number: int, branch: str, head: str) -> None:
        made = self.own.trees.grow(head, NOTES, f"{self.world.loop.time()}", "A person's")
        self.world.tell(f"ann pushes {made[:12]} to {branch} of {number}")
        self.theirs.add(made)
        self.branches[branch] = made
        self.checks(number, "none")
        if self.world.dice.of("forge people").random() < 0.5:  # whom that concerns is the one who pushed
            self.says(number, "changes_requested", "bob", "Not like this.")
            self._requests[number] += 1

    def _judge(self, number: int, head: str) -> None:
        """Once nothing disturbs any more people merge what is fine, and wait for what they asked for."""
        if head in self.theirs:
            if not self._merge(number, head):
                self._end(number, "closed")
        elif (
            self._states[number].ci == "passing" and self._wanted.get(number) != head and not self._merge(number, head)
        ):
            self.world.tell(f"ann wants {number} to fit main")
            self.says(number, "changes_requested", ANN, "Bring it onto main.")
            self._wants(number, head)

    def _merge(self, number: int, head: str) -> bool:
        dice, trees, branch = self.world.dice.of("forge people"), self.own.trees, self.requests[number].branch
        made = trees.merge(head, trees.base, f"Merge {number}", squash=dice.random() < 0.5)
        if not isinstance(made, str):
            return False
        trees.advance(trees.base, made)
        self.merged.setdefault(branch, []).append(head)
        self._end(number, "merged", made)
        if dice.random() < 0.4:
            self.branches.pop(branch)
        return True

    def _end(self, number: int, state: Any, made: str | None = None) -> None:
        self.world.tell(f"ann: {number} is {state}, {made and made[:12]}")
        self.ends(number, state, ANN, made)

    def calm(self) -> None:
        """The forge is well."""
        self.trouble = None

    def put_right(self) -> None:
        """People take away what they pushed and nobody merged: the branches there are ashep's again."""
        self._ends = True
        for branch, head in list(self.branches.items()):
            if head in self.theirs:
                for number in self.open_ones():
                    if self.requests[number].branch == branch:
                        self._end(number, "closed")
                self.world.tell(f"ann deletes {branch}")
                del self.branches[branch]

    def _take_up(self) -> None:
        """Have worked on again what was parked because its pull request was closed, as people do who still want it."""
        for issue, flow in self.world.known.flows.items():
            row = self.world.store.rows.get(issue)
            if flow.code == "landing_closed" and row is not None and "ashep:parked" in row.labels:
                self.world.tell(f"ann un-parks {issue}")
                self.world.store.set(issue, ANN, remove=("ashep:parked",))

    async def fail(self) -> None:
        """It is away for a while, or takes no token."""
        dice = self.world.dice.of("forge_away")
        wait = dice.choice((5, 40, 300))
        away = ForgeUnavailable("HTTP 503", retry_after=dice.choice((0.0, 0.0, 90.0)))
        self.trouble = dice.choice((away, away, ForgeUnauthorized("it refuses our token")))
        self.world.tell(f"the forge fails for {wait} s: {self.trouble!r}")
        await anyio.sleep(wait)
        self.trouble = None

    # --- the daemon's side ---

    def pulls(self, life: "Life") -> ForgeAdapters:
        """What pushes branches and opens pull requests, in this life."""
        site = cast("Any", Away(life, self))
        return ForgeAdapters(site, site)

    async def open(self, request: PullRequest) -> Opened:
        """Open one; there are never two of a branch, nor two of ours."""
        opened = await super().open(request)
        mine = [one for one in self.open_ones() if self.requests[one].branch == request.branch]
        if len(mine) > 1:
            self.world.laws.broken("a branch has one open pull request", f"{request.branch} has {mine}")
        same = [one for one in self.requests.values() if marker(request.key) in one.body]
        if len(same) > 1:
            self.world.laws.broken("a pull request is opened once", f"{request.key} {len(same)} times")
        return opened

    async def push(self, branch: str, commit: str, base: str) -> Pushed | NotPushed:
        """Bring the branch to the commit, and look at what became of it."""
        before = self.branches.get(branch)
        try:
            return await super().push(branch, commit, base)
        finally:
            after = self.branches.get(branch)
            if after is not None and after != before:
                self.world.tell(f"the forge: {branch} is at {after[:12]}")
                self._pushed(branch, before, after)

    def _pushed(self, branch: str, before: str | None, after: str) -> None:
        laws, trees = self.world.laws, self.own.trees
        if before in self.theirs:
            laws.broken("nothing is pushed over a person's commit", f"{branch} from {before} to {after}")
        elif before is not None and not trees.holds(after, before):
            laws.broken("a branch at the forge moves forward only", f"{branch} from {before} to {after}")
        if not branch.startswith("ashep/"):
            laws.broken("only branches of issues are pushed", branch)
        self.own.is_proven(after, f"pushed to {branch}")

    # --- the laws ---

    def durable(self, body: Any) -> None:
        """What sends work back, or closes an issue, is what became of its pull request."""
        match body:
            case JournalBegun():
                self._returned.clear()
                self._left.clear()
            case DaemonStarted():  # what became durable at the very end of the life before was shown to nobody
                known = self.world.known.flows
                self._left |= {
                    flow.work.pull.number
                    for flow in known.values()
                    if flow.work.pull and flow.work.pull.seen in self.theirs
                }
            case PullRequestOpened():
                self._left.discard(body.number)
            case PullRequestSeen() if body.head in self.theirs:
                self._left.add(body.number)
            case PullRequestReturned():
                self._sent_back(body)
            case IssueClosed(by="shepherd"):
                self._closed(body.issue)
            case _:
                pass

    def _sent_back(self, body: PullRequestReturned) -> None:
        laws, flow = self.world.laws, self.world.known.flows[body.issue]
        self._returned[body.number] += body.kind == "review"
        if body.number in self._left:
            laws.broken("what a person pushed is left to them", f"{body}")
        elif body.kind == "ci" and flow.work.pull is not None and flow.work.pull.head not in self.red:
            laws.broken("CI counts for what it saw", f"{body}: {flow.work.pull.head}")
        elif self._returned[body.number] > self._requests[body.number]:
            laws.broken("a review counts once", f"{body}: {self._requests[body.number]} were made")

    def _closed(self, issue: str) -> None:
        head, trees = self.own.heads.get(issue), self.own.trees
        if head is None or trees.holds(trees.base, head):
            return
        branch = self.own.branches.get(issue, branch_of(issue))
        if not any(trees.holds(one, head) for one in self.merged.get(branch, ())):
            self.world.laws.broken("what is closed was merged", f"{issue}, whose head is {head}")


class Away:
    """What the daemon calls, with boundaries at which it is killed; calls fail before or after they did something."""

    def __init__(self, life: "Life", site: Site) -> None:
        self._life, self._site = life, site

    async def aclose(self) -> None:
        """Nothing is open."""

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._site, name)

        async def call(*arguments: object) -> object:
            life, world = self._life, self._life.world
            dice = world.dice.of("forge")
            life.reach(f"forge {name} asked")
            await anyio.sleep(dice.uniform(0.05, 0.6) + self._slow())
            life.reach(f"forge {name} begins")
            if self._site.trouble is not None:
                raise self._site.trouble
            if world.dice.roll("forge_fails", 0.1):
                raise ForgeUnavailable("the connection was refused")
            answer = await method(*arguments)
            life.reach(f"forge {name} done")
            await anyio.sleep(self._slow())
            life.reach(f"forge {name} answered")
            if world.dice.roll("forge_loses", 0.15):
                raise ForgeUnavailable("the answer was lost", unknown=name in ("push", "open"))
            return answer

        return call

    def _slow(self) -> float:
        dice = self._life.world.dice
        return dice.of("forge_slow").choice((5.0, 25.0)) if dice.roll("forge_slow", 0.15) else 0.0
