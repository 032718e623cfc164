"""Effects on pull requests: a branch is pushed, a pull request asks for it. For `ashep.daemon.effects.executor`."""

from collections.abc import Callable
from dataclasses import dataclass

import anyio
import anyio.to_thread

from ashep.core.delivery.pull_request_body import body
from ashep.core.facts.commands import OpenPullRequest
from ashep.core.facts.delivery import LandingRefused, PullRequestOpened, PullRequestSeen, Verification, WorkLanded
from ashep.core.facts.vocabulary import Fact
from ashep.core.policy.landing import ForgeSettings
from ashep.core.policy.settings import Settings
from ashep.core.state.flow import Flow
from ashep.core.state.world import World
from ashep.core.text import calling_nobody, clean
from ashep.daemon.effects.cached_factory import CachedFactory
from ashep.daemon.error_facts import failed
from ashep.errors import AshepError, ForgeError, ForgeRefused
from ashep.ports.landing import Forge, NotPushed, PullRequest, PullState, Remote

LACKING = "nothing here can open a pull request; set landing.forge, or landing.mode to branch"

CLOSING = 2.0
"""Seconds that connections get to be closed."""


@dataclass(frozen=True, slots=True)
class ForgeAdapters:
    """Where pull requests are opened, and what they are pushed to."""

    forge: Forge
    remote: Remote


class PullEffects:
    """Opens pull requests, and reads what became of them.

    `make`: what does so, as the settings say; None: nothing can.
    """

    def __init__(self, make: Callable[[ForgeSettings], ForgeAdapters] | None = None) -> None:
        self._pulls = CachedFactory(make, LACKING)
        self._making = anyio.Lock()

    async def execute(self, command: OpenPullRequest, world: World) -> list[Fact]:
        """Push, and open a pull request unless it stands. Each step is harmless to repeat, so nothing is probed.

        Raises `AshepError` with what a person can do.
        """
        issue, key, head, base = command.issue, command.key, command.head, command.base
        if head == command.since:
            return [WorkLanded(issue, key, base, head, head, already=True, empty=True)]
        try:
            pulls, flow = await self._open_forge(world.settings), world.flows[issue]
            if (late := await _merged_before(pulls.forge, command, flow, world.seq)) is not None:
                why = f"{late.by or 'somebody'} merged {flow.work.pull and flow.work.pull.url} without this work"
                return [late, LandingRefused(issue, key, "moved", why)]
            pushed = await pulls.remote.push(command.branch, head, base)
            if isinstance(pushed, NotPushed):
                return [LandingRefused(issue, key, pushed.code, pushed.why)]
            title = calling_nobody(command.title)  # of the body all that others wrote stands in fences
            request = PullRequest(
                command.name, command.branch, base, title, _body(command, flow, _closes(world, issue))
            )
            opened = await pulls.forge.open(request)
        except ForgeError as error:
            return failed(command, error)
        return [PullRequestOpened(issue, key, opened.number, opened.url, command.name, base, head)]

    async def state(self, settings: Settings, number: int) -> PullState:
        """Read what became of a pull request. Raises `AshepError`, of which `ForgeError` is one."""
        return await (await self._open_forge(settings)).forge.state(number)

    async def aclose(self) -> None:
        """Let go of connections."""
        if (pulls := self._pulls.forget()) is not None:
            with anyio.move_on_after(CLOSING, shield=True):
                await pulls.forge.aclose()

    async def _open_forge(self, settings: Settings) -> ForgeAdapters:
        forge = settings.forge
        if forge is None:
            raise AshepError(LACKING)
        async with self._making:
            if self._pulls.possible and not self._pulls.is_of(forge):
                await self.aclose()
                # its certificates are read from files
                return await anyio.to_thread.run_sync(self._pulls.get_part, forge)
            return self._pulls.get_part(forge)


async def _merged_before(forge: Forge, command: OpenPullRequest, flow: Flow, as_of: int) -> PullRequestSeen | None:
    """Say that the pull request that was to get the work was merged without it: people do not wait for us."""
    pull = flow.work.pull
    if pull is None or pull.name != command.name:
        return None
    try:
        found = await forge.state(pull.number)
    except ForgeRefused:
        return None  # it is gone: there will be another
    if found.state != "merged" or found.head in ("", command.head):
        return None
    by, commit = clean(found.by or ""), found.merged_as or ""
    return PullRequestSeen(command.issue, pull.number, as_of, "merged", found.head, by, commit)


def _closes(world: World, issue: str) -> str:
    """Name the issue at the forge, where it has one there."""
    record, forge = world.sources.get(issue), world.settings.forge
    if record is None or forge is None or forge.type not in ("github", "gh"):
        return ""
    same = record.view.source.casefold() == forge.repository.casefold()
    return f"#{record.view.number}" if same else f"{record.view.source}#{record.view.number}"


def _body(command: OpenPullRequest, flow: Flow, closes: str) -> str:
    said = (report.outcome.summary for report in reversed(flow.reports) if report.outcome is not None)
    found, runs = flow.work.evidence, [(report.run, report.trace) for report in flow.reports]
    shown = None
    if found is not None and found.results and found.commit == command.head:
        shown = Verification(found.commit, found.tree, "", found.results, found.isolated)
    return body(
        key=command.name, issue=command.issue, summary=next(said, ""), verification=shown, runs=runs, closes=closes
    )
