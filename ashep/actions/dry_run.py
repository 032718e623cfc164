"""Preview, `ashep work --dry-run`: one look at the world, one step of the core, and nothing written anywhere."""

import os
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path

from anyio import fail_after, to_thread

from ashep import __version__
from ashep.actions.replay import recorded
from ashep.actions.runners import opencode
from ashep.actions.runners.base import missing_program
from ashep.actions.runners.opencode_files import describe_files
from ashep.adapters.git.user_work_tree import GitTree
from ashep.adapters.system.clock import RealClock
from ashep.config import Configuration, load
from ashep.core.delivery.workspaces import Mode, mode
from ashep.core.facts import records, resources, runs
from ashep.core.facts.tracker import TrackerSeen
from ashep.core.facts.vocabulary import Fact
from ashep.core.policy.runner_kinds import OPENCODE
from ashep.core.reconcile.evolve import evolve
from ashep.core.reconcile.observe import compare_tracker
from ashep.core.reconcile.step import RULES, step
from ashep.core.runs.agent_selection import named_in
from ashep.core.state.world import World
from ashep.errors import AshepError
from ashep.factories import NamedRunner, check, checkup_of, tracker_of
from ashep.ports.tracker import IssueText, TrackerInfo
from ashep.prompt.template_context import Brief, story_brief
from ashep.prompt.templates import render

_LONGEST = 20.0
"""Seconds for which an agent server is asked."""


@dataclass(frozen=True, slots=True)
class PlannedStart:
    """A run that would start now."""

    issue: str
    agent: str
    phase: str
    prompt: str


@dataclass(frozen=True, slots=True)
class DryRun:
    """What a daemon would do now: every start, and every issue that would not start with its code and reason."""

    starting: tuple[PlannedStart, ...]
    held: tuple[tuple[str, str, str], ...]
    workspace: Mode
    """Where issues that are begun now are worked on."""
    notes: tuple[str, ...] = ()
    """What a person should know before the night: a base that is behind, say."""
    titles: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of the issues that are named above."""


async def preview(
    project: Path,
    folder: Path,
    only: tuple[str, ...],
    max_issues: int | None,
    actor: str,
    backlog: resources.Backlog = "",
) -> DryRun:
    """Look once and say who would start and who would not. An agent server that runs is asked what it has; any other
    runner is taken to be up if its program is there.

    `actor` is the name of a state folder that has none of its own yet.

    Raises what `load` and the tracker raise.
    """
    configuration = load(folder)
    settings, world = configuration.settings, recorded(folder / "state")
    check(project, settings)
    actor = settings.tracker.actor or world.name or actor
    tracker = tracker_of(project, settings, actor)
    async with aclosing(tracker):
        info = await tracker.check()
        look, tree = await tracker.look(), await GitTree(project).read()
        server = await _ask_server(project, folder, configuration)
        world = _start_world(world, actor, only, max_issues, backlog, configuration, info, server)
        notes = list[str]()
        if settings.worker.workspace != "shared" and tree.head is not None:
            checkup = checkup_of(project, settings, writes=False)
            repository = await checkup.look(settings.landing.base or tree.branch or "")
            world = evolve(world, records.Entry(world.seq + 1, world.now, repository))
            notes += [repository.behind] if repository.behind else []
        seen = compare_tracker(world, look.ready, [issue.issue for issue in look.issues], tree, world.seq)
        world, entries = step(world, seen, RealClock().now(), world.seq + 1, everything=True)
        starts = [entry.body for entry in entries if isinstance(entry.body, runs.RunPlanned)]
        # the words of what would start are read as a claim would read them: a look has none
        texts = {start.issue: shown.text for start in starts if (shown := await tracker.issue(start.issue)) is not None}
    if OPENCODE in world.runners:
        lines = await to_thread.run_sync(describe_files, project, settings, configuration.policies, os.environ)
        notes += [f"{line.what}; {line.remedy}" for line in lines if line.level != "ok"]
    prompts = {start.issue: _prompt(start, world, configuration, texts, folder) for start in starts}
    unclosed = ((issue, flow) for issue, flow in sorted(world.flows.items()) if flow.stage != "closed")
    return DryRun(
        tuple(PlannedStart(start.issue, start.agent, start.phase, prompts[start.issue]) for start in starts),
        tuple((issue, flow.code or flow.stage, flow.why) for issue, flow in unclosed if issue not in prompts),
        mode(world),
        tuple(notes),
        {issue: flow.issue.title for issue, flow in world.flows.items()},
    )


async def _ask_server(project: Path, folder: Path, configuration: Configuration) -> resources.RunnerSeen | None:
    """Return what the agent server has; None: none runs, or no agent is of it. None is started."""
    server = NamedRunner(project, configuration.settings, OPENCODE)
    kinds = {agent.runner.type for agent in configuration.agents.agents}
    if OPENCODE not in kinds or not await to_thread.run_sync(opencode.is_up, server):
        return None
    try:
        with fail_after(_LONGEST):
            found = await opencode.offers(server)
    except (AshepError, TimeoutError) as error:
        return resources.RunnerSeen("away", str(error) or f"no answer within {_LONGEST:g} s")
    return resources.RunnerSeen("up", "", "", tuple(agent.name for agent in found.agents), found.models, found.default)


def _start_world(
    world: World,
    actor: str,
    only: tuple[str, ...],
    most: int | None,
    backlog: resources.Backlog,
    configuration: Configuration,
    info: TrackerInfo,
    server: resources.RunnerSeen | None,
) -> World:
    """The World of a daemon that starts with these."""
    slugs, models = named_in(configuration.agents)
    facts: list[Fact] = [] if world.instance else [resources.JournalBegun("dry-run", "dry-run", actor)]
    facts += [
        resources.DaemonStarted(os.getpid(), __version__, only, most, trees=True, backlog=backlog),
        resources.Adopted("settings", configuration.settings.model_dump_json(), "", RULES),
        resources.Adopted("agents", configuration.agents.model_dump_json(), "", RULES),
        resources.Adopted("policies", configuration.policies.model_dump_json(), "", RULES),
        TrackerSeen(actor, info.prefix, info.version),
        *(
            server
            if name == OPENCODE and server is not None
            else resources.RunnerSeen("away", lacks, runner=name)
            if (lacks := missing_program(configuration.settings, name))
            else resources.RunnerSeen("up", "not asked", agents=slugs, models=models, exhaustive=False, runner=name)
            for name in dict.fromkeys(agent.runner.type for agent in configuration.agents.agents if not agent.is_human)
        ),
    ]
    for fact in facts:
        world = evolve(world, records.Entry(world.seq + 1, world.now, fact))
    return world


def _prompt(
    planned: runs.RunPlanned, world: World, configuration: Configuration, texts: dict[str, IssueText], folder: Path
) -> str:
    flow = world.flows[planned.issue]
    policy = configuration.policies.policies[flow.policy or ""]
    phase = policy.phase(planned.phase)
    text = texts.get(planned.issue, IssueText(flow.issue.title))
    assert phase is not None, "the run was planned for it"
    brief = Brief(
        run=planned.run,
        kind="task",
        issue=planned.issue,
        phase=phase,
        policy=flow.policy or "",
        visit=planned.visit,
        attempt=planned.attempt,
        agent=planned.agent,
        text=replace(text, comments=()),
        reports=flow.reports,
        secret=world.secret,
        writes=phase.writes,
        branch=planned.branch or "",
        slot=planned.slot,
        story=story_brief(world, flow),
    )
    return render(brief, folder / "prompts")
