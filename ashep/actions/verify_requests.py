"""`ashep verify` of agents that are alone in a place: they ask by files, and hear what the checks of their issue find.

What is verified is what the place has committed, for the issue whose run is under way there, whatever was asked.
Nothing of it is written down or used again: what is sealed is verified as if nobody had asked.
"""

from contextlib import aclosing, suppress
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
from anyio.streams.memory import MemoryObjectReceiveStream

from ashep import factories
from ashep.actions.verify import CODES, NoChecks, Outputs, verify
from ashep.adapters.git.remotes import VerifiedCommit
from ashep.adapters.git.workspaces.clones import place_at
from ashep.adapters.runners.opencode.isolated_runner import folder_for
from ashep.adapters.sandboxes.profiles import STUBS
from ashep.adapters.sandboxes.request_files import ANSWERS, ASKS, answer, stirring, take
from ashep.adapters.verifier.checkout import make_checkout_folder
from ashep.core.delivery.workspaces import speaks_for_itself
from ashep.core.state.world import World
from ashep.core.text import clean
from ashep.daemon.effects.work import to_check
from ashep.daemon.shepherd import Shepherd
from ashep.errors import AshepError
from ashep.ports.verifier import Verifier
from ashep.redaction import Redaction

MOST = 20
"""Asks of a run that are answered by a verification."""

AT_ONCE = 2
"""Verifications that are executed at once, next to those of the daemon; one for each run."""

LONGEST = 64 * 1024
"""Characters of an answer."""

_REFUSED = CODES["blocked"]


class VerifyResponder:
    """Answers those who ask, for as long as the daemon runs."""

    def __init__(self, project: Path, shepherd: Shepherd, redaction: Redaction) -> None:
        self._project, self._shepherd, self._redaction = project, shepherd, redaction
        self._state = project / factories.FOLDER / "state"
        self._room = anyio.CapacityLimiter(AT_ONCE)

    async def run(self) -> None:
        """Serve each run while it is under way, for ever."""
        served = set[str]()
        async with anyio.create_task_group() as group:
            while True:
                found = under_way(self._shepherd.world)
                for run in found.keys() - served:
                    group.start_soon(self._serve, run, *found[run])
                served = {*found}
                await self._shepherd.until(lambda world, served=served: under_way(world).keys() != served)

    async def _serve(self, run: str, issue: str, path: str) -> None:
        places = factories.places_of(self._project, self._shepherd.world.settings)
        if (place := await anyio.to_thread.run_sync(place_at, places, path)) is None:
            return
        folder = await anyio.to_thread.run_sync(folder_for, self._state, place)
        asks, tell = folder / ASKS, partial(self._tell, folder / STUBS / ANSWERS)
        if not await anyio.Path(asks).is_dir():  # there is no sandbox
            return
        count, (send, receive) = 0, anyio.create_memory_object_stream[str](1)
        async with send, receive, aclosing(stirring(asks)) as stirs, anyio.create_task_group() as group:
            group.start_soon(self._until_over, run, group.cancel_scope)
            group.start_soon(self._each, issue, folder / STUBS / ANSWERS, receive)
            async for _ in stirs:
                for name in await anyio.to_thread.run_sync(take, asks):
                    count += 1
                    if count > MOST:
                        await tell(name, _REFUSED, f"this run has asked {MOST} times: what it finishes is checked")
                        continue
                    try:
                        send.send_nowait(name)
                    except anyio.WouldBlock:
                        await tell(name, _REFUSED, "the checks are carried out already, and once more after that")

    async def _until_over(self, run: str, serving: anyio.CancelScope) -> None:
        await self._shepherd.wait_while(lambda world: run in under_way(world))
        serving.cancel()

    async def _each(self, issue: str, answers: Path, asked: MemoryObjectReceiveStream[str]) -> None:
        outputs = Outputs(self._redaction.text)
        settings = self._shepherd.world.settings
        # one of its own: what an agent tried until it passed is not known to the daemon's
        made = partial(factories.verifier_of, self._project, settings, outputs.keep, redaction=self._redaction)
        verifier: Verifier | None = None
        async for name in asked:
            try:
                async with self._room:
                    verifier = verifier or made()
                    code, text = await self._verified(issue, verifier, outputs)
            except AshepError as error:
                code, text = error.exit_code, str(error)
            except Exception as error:  # whatever it is, the daemon goes on
                code, text = 1, f"it could not be carried out: {error!r}"
            await self._tell(answers, name, code, text)

    async def _tell(self, answers: Path, name: str, code: int, text: str) -> None:
        said = clean(self._redaction.text(text))[:LONGEST].rstrip("\n")
        with suppress(OSError):  # the place may be gone
            await anyio.to_thread.run_sync(answer, answers, name, code, f"{said}\n")

    async def _verified(self, issue: str, verifier: Verifier, outputs: Outputs) -> tuple[int, str]:
        world = self._shepherd.world
        flow = world.flows[issue]
        run, own, known = flow.run, flow.work.own, flow.work.criteria
        if run is None or own is None or not own.base:
            raise AshepError(f"no run of {issue} is under way here")
        text = await anyio.to_thread.run_sync(self._shepherd.blobs.text, known.blob) if known and known.blob else ""
        criteria, strangers = to_check(world.policy(flow), run.phase, text)
        if not criteria.checks:
            raise NoChecks(f"neither {issue} nor its phase {run.phase} has checks")
        trees = factories.worktrees_of(self._project, world.settings, redaction=self._redaction)
        async with make_checkout_folder(self._state / "checks") as scratch:
            repository = scratch / "repository"
            await anyio.Path(repository).mkdir()
            commit = await trees.copy(own.branch, own.base, repository)
            candidate = VerifiedCommit(repository, commit, own.base, "HEAD")
            found = await verify(verifier, issue, criteria, candidate, strangers)
        return CODES[found.status], found.as_text(outputs)


def under_way(world: World) -> dict[str, tuple[str, str]]:
    """Give the runs at work alone in a place, with their issues and where they work."""
    flows = [world.flows[issue] for issue in world.indexes.live]
    return {
        run.id: (flow.issue.id, own.path)
        for flow in flows
        if (run := flow.run) and (own := flow.work.own) and own.path
        if run.session and not run.ended and speaks_for_itself(world, run)
    }
