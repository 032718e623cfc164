"""Watch of pull requests that wait for people: tells the shepherd what became of them. It decides nothing.

A read that shows what is known already leaves nothing in the journal.
"""

from functools import partial

from ashep.core.delivery.pull_requests import pull_read
from ashep.core.facts.delivery import PullRequestSeen, Remark
from ashep.core.state.delivery import Pull
from ashep.core.state.flow import Flow
from ashep.core.text import clean
from ashep.daemon.effects.pulls import PullEffects
from ashep.daemon.shepherd import Shepherd
from ashep.errors import AshepError, DiskFailed, ForgeRefused, ForgeUnavailable, JournalDamaged
from ashep.ports.journal import Blobs
from ashep.ports.landing import PullRequestComment, PullState

MOST_SAID = 20_000
"""Characters of them that an agent is shown."""

GONE = (404, 410)


class PullWatch:
    """A source of facts about pull requests."""

    def __init__(self, shepherd: Shepherd, effects: PullEffects, blobs: Blobs) -> None:
        self._shepherd, self._effects, self._blobs = shepherd, effects, blobs
        self._failures = 0

    async def run(self) -> None:
        """Watch for ever."""
        while True:
            waiting = self._waiting()
            if not waiting:
                await self._shepherd.until(lambda _: bool(self._waiting()))
                continue
            wait = await self._look(waiting)
            looked_at = _pulls(waiting)
            await self._shepherd.wait_while(lambda _, looked_at=looked_at: _pulls(self._waiting()) <= looked_at, wait)

    def _waiting(self) -> list[Flow]:
        world = self._shepherd.world
        if world.settings.landing.forge is None:
            return []
        return [world.flows[issue] for issue in sorted(world.indexes.reviewed)]

    async def _look(self, waiting: list[Flow]) -> float:
        """Read each, and say after how many seconds to look again; a forge that fails is left alone for longer."""
        settings = self._shepherd.world.settings
        forge = settings.landing.forge
        every = forge.poll_every.total_seconds() if forge is not None else 0.0
        for flow in waiting:
            try:
                await self._read(flow)
            except (DiskFailed, JournalDamaged):
                raise
            except ForgeRefused:
                continue  # this one: the others are looked at all the same, and it again the next time
            except AshepError as error:
                self._failures += 1
                asked = error.retry_after if isinstance(error, ForgeUnavailable) else 0.0
                return max(every * 2 ** min(self._failures, 5), asked)
        self._failures = 0
        return every

    async def _read(self, flow: Flow) -> None:
        pull, as_of, world = flow.work.pull, self._shepherd.world.seq, self._shepherd.world
        if pull is None:
            return
        try:
            found = await self._effects.state(world.settings, pull.number)
        except ForgeRefused as error:
            if error.status not in GONE:
                raise
            seen = PullRequestSeen(flow.issue.id, pull.number, as_of, "gone")
        else:
            seen = await self._build_fact(flow.issue.id, pull, found, as_of)
        self._shepherd.tell(partial(pull_read, seen=seen))

    async def _build_fact(self, issue: str, pull: Pull, reading: PullState, as_of: int) -> PullRequestSeen:
        fresh = [comment for comment in reading.said if comment.id not in pull.heard]
        text = words(pull.url, reading, fresh)
        log = await self._blobs.keep(text) if fresh or reading.failing else ""
        return PullRequestSeen(
            issue=issue,
            number=pull.number,
            as_of=as_of,
            state=reading.state,
            head=reading.head,
            by=clean(reading.by or ""),
            merged_as=reading.merged_as or "",
            ci=reading.ci,
            failing=tuple(clean(name) for name in reading.failing),
            remarks=tuple(Remark(one.id, one.kind, clean(one.by), one.bot) for one in fresh),
            log=log,
        )


def _pulls(flows: list[Flow]) -> set[int | None]:
    return {flow.work.pull and flow.work.pull.seq for flow in flows}


def words(url: str, found: PullState, said: list[PullRequestComment]) -> str:
    """Write down what CI found and people said, for whoever is to mend the work."""
    parts = [f"The pull request {url}"]
    if found.failing:
        parts.append(f"Checks of the forge that failed on {found.head[:12]}: {', '.join(found.failing)}")
        parts += found.failures
    for one in said:
        about = f", about {one.path}" if one.path else ""
        kind = {"comment": "says", "approved": "approves", "changes_requested": "requests changes"}[one.kind]
        parts.append(f"{one.by} {kind}{about}:\n{one.text}" if one.text else f"{one.by} {kind}{about}.")
    text = clean("\n\n".join(parts))
    return text if len(text) <= MOST_SAID else f"[…]{text[-MOST_SAID:]}"
