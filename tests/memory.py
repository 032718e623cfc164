"""Parts of a world in memory that only tests have: a forge, people who are told, and a clock that stands."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Literal

import anyio
import anyio.lowlevel

from ashep.core.delivery.pull_request_body import marker
from ashep.core.facts.delivery import RepositorySeen
from ashep.core.policy.settings import NotifyTarget
from ashep.errors import AshepError, ForgeRefused, ForgeUnavailable, NotSent
from ashep.extras.simulation.memory.workspaces import MemoryWorkspaces
from ashep.ports.landing import Ci, NotPushed, Opened, PullRequest, PullRequestComment, PullState, Pushed
from ashep.ports.notifier import Message


class MemoryCheckup:
    """A repository that somebody breaks and mends. `base` is where its base is at the remote, and comes by a fetch."""

    def __init__(self, workspaces: MemoryWorkspaces) -> None:
        self.fault, self.hidden, self.error = "", "", ""
        """`hidden`: what only a thorough look finds."""
        self.looks, self.fetches = list[bool](), 0
        self._workspaces = workspaces
        self.base = self._here = workspaces.base

    async def look(self, base: str, merges: Sequence[str] = (), *, thorough: bool = False) -> RepositorySeen:
        """Look, in depth where that is asked for, and compare."""
        await anyio.sleep(0.2)
        self.looks.append(thorough)
        behind = f"{base} is 1 commit behind origin/{base}" if self._here != self._workspaces.base else ""
        arrived = tuple(commit for commit in merges if self._workspaces.holds(self._here, commit))
        return RepositorySeen(self.fault or (self.hidden if thorough else ""), behind, self.error, arrived)

    async def fetch(self, base: str) -> str | None:
        """Fetch."""
        await anyio.sleep(0.5)
        self.fetches += 1
        self._here = self._here if self.error else self.base
        return self._here


class MemoryForge:
    """Pull requests by number, and branches as they were pushed; `away` is what every call fails with, if anything."""

    def __init__(self, workspaces: MemoryWorkspaces) -> None:
        self.requests: dict[int, PullRequest] = {}
        self.branches: dict[str, str] = {}
        """Commits of the remote's branches."""
        self.away: ForgeUnavailable | None = None
        self.loses_answer = False
        """The next write is carried out, and its answer lost."""
        self._workspaces, self._states = workspaces, dict[int, PullState]()

    # --- whoever looks at them ---

    def opens(self, branch: str, base: str = "main", body: str = "") -> int:
        """A person opens a pull request; give its number."""
        number = len(self.requests) + 1
        self.requests[number] = PullRequest("", branch, base, "A person's", body)
        self._states[number] = PullState("open", "")
        return number

    def says(self, number: int, kind: Literal["comment", "approved", "changes_requested"], by: str, text: str) -> None:
        """Somebody says something of it."""
        said = self._states[number].said
        remark = PullRequestComment(
            f"{number}/{len(said) + 1}", kind, by, f"2026-01-01T00:00:{len(said) % 60:02}Z", text
        )
        self._states[number] = replace(self._states[number], said=(*said, remark))

    def checks(self, number: int, ci: Ci, *failing: str) -> None:
        """CI says something of its newest commit."""
        names = tuple(sorted(failing))
        said = tuple(f"{name}: it fails" for name in names)
        self._states[number] = replace(self._states[number], ci=ci, failing=names, failures=said)

    def ends(self, number: int, state: Literal["merged", "closed"], by: str, merged_as: str | None = None) -> None:
        """Somebody merges it, as which commit, or closes it."""
        head = self.branches.get(self.requests[number].branch, "")  # what is pushed later is no part of it
        self._states[number] = replace(self._states[number], state=state, head=head, by=by, merged_as=merged_as)

    # --- the forge ---

    async def find(self, key: str, branch: str, base: str) -> Opened | None:
        """Look for the pull request of a key or branch."""
        self._answers()
        mine = [(number, one) for number, one in self.requests.items() if (one.branch, one.base) == (branch, base)]
        ours = [number for number, one in mine if marker(key) in one.body]
        still = [number for number, _ in mine if self._states[number].state == "open"]
        return next((Opened(number, f"memory:{number}") for number in [*reversed(ours), *reversed(still)]), None)

    async def open(self, request: PullRequest) -> Opened:
        """Open it, unless it stands."""
        if stands := await self.find(request.key, request.branch, request.base):
            return stands
        number = self.opens(request.branch, request.base)
        self.requests[number] = request
        self._written()
        return Opened(number, f"memory:{number}")

    async def state(self, number: int) -> PullState:
        """Read what became of it."""
        self._answers()
        if number not in self._states:
            raise ForgeRefused(f"there is no pull request {number}", status=404)
        state = self._states[number]
        if state.state != "open":
            return state
        return replace(state, head=self.branches.get(self.requests[number].branch, ""))

    async def aclose(self) -> None:
        """Nothing is open."""

    # --- the remote ---

    async def head(self, branch: str) -> str | None:
        """Ask where a branch is."""
        self._answers()
        return self.branches.get(branch)

    async def push(self, branch: str, commit: str, base: str) -> Pushed | NotPushed:
        """Bring the branch to the commit, if that holds all that stands there."""
        if branch == base:
            return NotPushed("protected", f"{branch} is a branch to which only people push")
        self._workspaces.holds(commit, commit)  # raises where there is none
        stands = await self.head(branch)
        if stands is not None and not self._ours(stands, commit):
            return NotPushed("theirs", f"{branch} is at {stands[:12]}, which {commit[:12]} does not hold")
        self.branches[branch] = commit
        if stands != commit:
            for number in (number for number, one in self.requests.items() if one.branch == branch):
                self.checks(number, "none")  # CI has not seen this commit
            self._written()
        return Pushed(commit)

    def _ours(self, stands: str, commit: str) -> bool:
        try:
            return self._workspaces.holds(commit, stands)
        except AshepError:
            return False  # somebody pushed what we do not have

    def _answers(self) -> None:
        if self.away is not None:
            raise self.away

    def _written(self) -> None:
        if self.loses_answer:
            self.loses_answer = False
            raise ForgeUnavailable("the answer was lost", unknown=True)


class MemoryNotifier:
    """Whoever is told, by the target's name (or its program's)."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Message]] = []
        self.down: defaultdict[str, str] = defaultdict(str)
        """Why a target does not take messages; empty: it does."""
        self.delay = 0.0
        """Seconds that a delivery takes."""

    async def send(self, target: NotifyTarget, message: Message) -> None:
        """Hand a message to a target. Raises `NotSent`."""
        name = name_of(target)
        await anyio.lowlevel.checkpoint()
        if self.delay:
            await anyio.sleep(self.delay)
        if self.down[name]:
            raise NotSent(self.down[name])
        self.told.append((name, message))


def name_of(target: NotifyTarget) -> str:
    """Say how a target is called in memory."""
    return target.name or (target.command or ("apprise",))[0]


class ManualClock:
    """A clock that stands until it is moved; for tests and simulations."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._now, self._monotonic = start, 0.0
        self._moved = anyio.Event()

    def now(self) -> datetime:
        """Where it was moved to."""
        return self._now

    def monotonic(self) -> float:
        """Seconds that it was moved by, jumps not included."""
        return self._monotonic

    async def sleep_until(self, when: datetime) -> None:
        """Return once it was moved to `when` or further."""
        while self._now < when:
            await self._moved.wait()
        await anyio.lowlevel.checkpoint()

    def move(self, by: timedelta) -> None:
        """Let time pass."""
        self._monotonic += by.total_seconds()
        self.jump(by)

    def jump(self, by: timedelta) -> None:
        """Set the wall clock, as a person or a suspend does."""
        self._now += by
        moved, self._moved = self._moved, anyio.Event()
        moved.set()
