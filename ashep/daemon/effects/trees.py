"""Effects in work trees, the shared one and those of issues. For `ashep.daemon.effects.executor`."""

from collections.abc import Callable
from dataclasses import replace

from ashep.core.facts.commands import PrepareTree, ReadTree, RemoveTree, SealTree
from ashep.core.facts.delivery import TreePrepared, TreeRemoved, TreeSealed, TreeSeen
from ashep.core.facts.vocabulary import Fact
from ashep.core.policy.settings import Settings
from ashep.core.state.flow import Flow
from ashep.core.state.world import World
from ashep.daemon.effects.cached_factory import CachedFactory
from ashep.daemon.error_facts import failed
from ashep.errors import AshepError
from ashep.ports.repository import Checkup
from ashep.ports.workspaces import Changes, Landed, Workspaces, WorkTree

TreeCommand = ReadTree | PrepareTree | RemoveTree


class TreeEffects:
    """Executes what is asked for about work trees.

    `workspaces`: what makes trees of issues' own as the settings say; None where nothing does.
    """

    def __init__(
        self,
        shared: WorkTree,
        workspaces: Callable[[Settings], Workspaces] | None = None,
        checkups: CachedFactory[Settings, Checkup] | None = None,
    ) -> None:
        """`checkups`: fetches where an issue begins; None: nothing is fetched."""
        self._checkups: CachedFactory[Settings, Checkup] = checkups or CachedFactory(None)
        lacking = "nothing here can make work trees of issues' own; set worker.workspace to shared"
        self.shared = shared
        self._own = CachedFactory(workspaces, lacking, by=lambda settings: (settings.worker, settings.git))

    async def execute(self, command: TreeCommand, settings: Settings) -> list[Fact]:
        """Do what a command says and give its answer; it may have been done before, in part or whole.

        Raises `AshepError` with what a person can do.
        """
        match command:
            case ReadTree():
                tree = await self.shared.read()
                commits = () if command.moment == "before" else await self.shared.between(command.since, tree.head)
                return [TreeSeen(tree, command.moment, command.issue, command.run, commits)]
            case PrepareTree():
                branch, ground, base = command.branch, command.ground, command.base
                if command.fetch and base is None and self._checkups.possible:
                    base = await self._checkups.get_part(settings).fetch(command.fetch)
                tree = await self._own.get_part(settings).prepare(branch, base, command.slot, ground)
                about = (command.issue, command.run, command.key)
                return [TreePrepared(*about, branch, tree.path, tree.base, tree.head, ground, command.seals)]
            case RemoveTree():
                landed = Landed(command.branch, command.head, command.onto, command.commit)
                try:
                    removed = await self._own.get_part(settings).retire(landed, command.quiet)
                except AshepError as error:
                    return failed(command, error)
                return [TreeRemoved(command.issue, command.key, command.branch, removed.freed, removed.saved)]

    async def seal(self, command: SealTree, settings: Settings) -> TreeSealed:
        """Seal a branch, and amend it; otherwise as `execute`."""
        own = self._own.get_part(settings)
        words = (command.branch, command.run, f"{command.issue}: what {command.run} left")
        refused, story, left = (), None, await own.seal(*words)
        told, lacking = left.told, left.lacking
        if command.amend is not None:
            amended = await own.amend(command.branch, command.run, left.head, command.amend)
            refused, story = amended.refused, amended.story
            if amended.head != left.head:
                left = await own.seal(*words)
        commits = tuple(commit.sha for commit in left.commits)
        about = (command.issue, command.run, command.key)
        sealed = TreeSealed(*about, left.head, left.tree, commits, told, lacking=lacking, unwritable=left.unwritable)
        return replace(sealed, refused=refused, story=story)

    async def changes(self, world: World, flow: Flow, since: str = "") -> Changes:
        """Give what the issue's runs changed, for a prompt; on a branch of its own since a commit, or its beginning."""
        if flow.work.own is not None and flow.work.own.base:
            return await self._own.get_part(world.settings).changes(flow.work.own.branch, since or flow.work.own.base)
        left_over = sorted(path for path, (_, issue) in world.left_over.items() if issue == flow.issue.id)
        return await self.shared.changes(flow.work.base, flow.issue.id, flow.work.commits, tuple(left_over))

    async def place(self, branch: str | None, settings: Settings) -> str | None:
        """Find the tree that stands for a branch."""
        if branch is None or not self._own.possible:
            return None
        return next((one.path for one in await self._own.get_part(settings).list() if one.branch == branch), None)
