"""Watch of the repository: reports what keeps every issue from a tree, and how far behind the base is.

A cheap look comes before anything begins, and now and then. Once a call of git has failed for an issue, a tree is made
and removed: if that fails too, the issue is not to blame.
"""

from ashep.core.delivery.repository import awaited_merges, is_behind, is_in_trouble, repository_read
from ashep.core.facts.delivery import RepositorySeen
from ashep.core.policy.settings import Settings
from ashep.core.state.world import World
from ashep.daemon.effects.cached_factory import CachedFactory
from ashep.daemon.shepherd import Shepherd
from ashep.errors import AshepError
from ashep.ports.clock import Clock
from ashep.ports.repository import Checkup

EVERY, AGAIN = 60.0, 15.0  # seconds between looks, and while something is wrong or a merge is waited for
FETCH_EVERY = 600.0  # seconds between fetches that nobody waits for
MOST_FAILURES = 5  # looks in a row that may fail, at a start, before that is a hold of its own
Trouble = frozenset[tuple[str, object]]


class RepositoryWatch:
    """A source of facts about the repository."""

    def __init__(self, shepherd: Shepherd, checkups: CachedFactory[Settings, Checkup], clock: Clock) -> None:
        self._shepherd, self._checkups, self._clock = shepherd, checkups, clock
        self._fetch_at = 0.0
        self._tried: Trouble = frozenset()  # what had failed at the last look that was thorough enough for it
        self._is_hidden = False  # only a thorough look finds what is wrong

    async def run(self) -> None:
        """Watch for ever."""
        failures = 0
        while True:
            world = self._shepherd.world
            if _is_shared(world):
                await self._shepherd.wait_while(_is_shared)
                continue
            merges = awaited_merges(world)
            try:
                seen, failures = await self._look(world, merges), 0
            except AshepError as error:  # git was too slow, or somebody holds a lock: that is nobody's fault
                failures += 1
                seen = RepositorySeen(f"git does not say how the repository stands: {error}")
            if not failures or (failures >= MOST_FAILURES and self._shepherd.world.repository is None):
                await self._shepherd.ask(lambda now, seen=seen: repository_read(now, seen))
            wrong = bool(seen.fault or seen.error) or is_behind(self._shepherd.world)
            await self._shepherd.wait_while(
                lambda now, merges=merges: _trouble(now) <= self._tried and awaited_merges(now) == merges,
                AGAIN if wrong else EVERY,
            )

    async def _look(self, world: World, merges: tuple[str, ...]) -> RepositorySeen:
        landing, checkup, trouble = world.settings.landing, self._checkups.get_part(world.settings), _trouble(world)
        branch, head = (world.tree.branch, world.tree.head) if world.tree is not None else (None, None)
        base = landing.base or branch or ""
        if landing.fetches and (is_behind(world) or self._clock.monotonic() >= self._fetch_at):
            await checkup.fetch(base)
            self._fetch_at = self._clock.monotonic() + FETCH_EVERY
        thorough = self._is_hidden or not trouble <= self._tried
        seen = await checkup.look(base, merges, thorough=thorough) if head is not None else RepositorySeen()
        self._tried, self._is_hidden = trouble, thorough and bool(seen.fault)
        return seen


def _is_shared(world: World) -> bool:
    return world.settings.worker.workspace == "shared" or world.tree is None


def _trouble(world: World) -> Trouble:
    """Return the issues whose last effect failed by git, each with when that began."""
    flows = (world.flows[issue] for issue in world.indexes.unclosed)
    return frozenset((flow.issue.id, flow.infra_began) for flow in flows if is_in_trouble(flow))
