"""Effects that write prompts. For `ashep.daemon.effects.executor`."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import anyio
from pydantic import TypeAdapter

from ashep.core.delivery.base_checks import failing_on_base, is_awaited
from ashep.core.delivery.workspaces import speaks_for_itself
from ashep.core.facts import commands, runs
from ashep.core.facts.tracker import Comment, EffectFailed
from ashep.core.facts.vocabulary import Fact
from ashep.core.issues.human_overrides import is_named, is_person
from ashep.core.state.flow import Flow
from ashep.core.state.world import World, phase_of
from ashep.core.text import clean
from ashep.daemon.effects.cached_factory import CachedFactory
from ashep.daemon.effects.trees import TreeEffects
from ashep.daemon.effects.work import WorkEffects
from ashep.errors import ConfigError, TrackerRefused
from ashep.ports.journal import Blobs
from ashep.ports.runner_router import RunnerRouter
from ashep.ports.tracker import IssueText, Tracker
from ashep.prompt.template_context import Brief, WorkFindings, evidence_of, story_brief
from ashep.prompt.templates import Templates, render

PATIENCE = 30.0
"""Seconds for which a task waits for the first look at the base."""

TRANSCRIPT = 20_000
"""Characters of a transcript that an extraction is shown."""

_TEXT: TypeAdapter[IssueText] = TypeAdapter(IssueText)
Render = Callable[[Brief, Templates | None], str]


def peoples(comments: tuple[Comment, ...], ours: str) -> tuple[Comment, ...]:
    """Give those of people."""
    return tuple(comment for comment in comments if is_person(comment.author, ours))


class PromptEffects:
    """Writes prompts from what is known of an issue. `folder`: that of the user's templates, for messages."""

    def __init__(
        self,
        tracker: Tracker,
        runners: RunnerRouter,
        trees: TreeEffects,
        blobs: Blobs,
        folder: Path | None = None,
        render: Render = render,
        work: WorkEffects | None = None,
        *,
        asks: bool = False,
    ) -> None:
        self._tracker, self._runners, self._trees, self._blobs = tracker, runners, trees, blobs
        self._render, self._work, self._asks = render, work, asks
        self._templates = CachedFactory[str, Templates | None](
            lambda blob: Templates.from_text(folder or Path(), blobs.text(blob)) if blob else None
        )

    async def prepare(self, command: commands.PreparePrompt, now: Callable[[], World]) -> list[Fact]:
        """Write a prompt's text, and keep it. A task waits a while for what the checks find on the base."""
        world = now()
        flow = world.flows[command.issue]
        with anyio.move_on_after(PATIENCE if command.kind == "task" else 0):
            while is_awaited(now(), flow.policy or ""):
                await anyio.sleep(0.2)
        world = replace(world, bases=now().bases)
        try:
            brief = await self._brief(command, world, flow)
            text = self._render(brief, self._templates.get_part(world.files.prompts))
        except ConfigError as error:
            return [EffectFailed(command.issue, command.key, f"the prompt: {clean(str(error))[:500]}", infra=False)]
        blob = await self._blobs.keep(text)
        shown = tuple(comment.id for comment in brief.comments)
        run, before = flow.run, ()
        if run is not None and run.session is not None and (command.n > 1 or run.session == run.reuse):
            before = await self._runners.find_runner(run.session).asked(run.session)
        return [runs.PromptPrepared(command.issue, command.run, command.key, command.n, blob, shown, before)]

    async def _brief(self, command: commands.PreparePrompt, world: World, flow: Flow) -> Brief:
        run, phase = flow.run, phase_of(world, flow)
        if run is None or phase is None:
            message = f"the policy {flow.policy} has no phase {flow.phase} any more"
            raise ConfigError(message, file="policies.yaml", key="phases")
        text = await self._text(flow) if command.kind in ("task", "resume") else IssueText(title=flow.issue.title)
        since = await self._work.fork(flow, world.settings) if self._work is not None else ""
        changes = await self._trees.changes(world, flow, since)
        source = dict(flow.sessions).get(run.phase)
        transcript = None
        if command.kind in ("extract", "diagnose") and source is not None:
            transcript = await self._runners.find_runner(source).transcript(source, TRANSCRIPT)
        said = (comment for comment in peoples(text.comments, self._tracker.actor) if is_named(world, comment.author))
        fresh = tuple(one for one in said if one.id not in flow.shown)
        return Brief(
            run=run.id,
            kind=command.kind,
            issue=command.issue,
            phase=phase,
            policy=flow.policy or "",
            visit=run.visit,
            attempt=run.attempt,
            agent=run.agent,
            text=text,
            reports=flow.reports,
            comments=fresh,
            changes=changes,
            wrong=run.prompt.wrong or None,
            transcript=transcript,
            secret=world.secret,
            writes=phase.writes,
            branch=run.branch or "",
            alone=speaks_for_itself(world, run),
            asks=self._asks and (run.sandbox or world.settings.agents.sandbox) != "none",
            slot=flow.work.own.slot if flow.work.own else 0,
            story=story_brief(world, flow),
            found=self._select_findings(world, flow, makes=phase.makes),
        )

    def _select_findings(self, world: World, flow: Flow, *, makes: bool) -> WorkFindings:
        """Who makes the work is told what to mend, and what nobody can; who judges it, what is known of exactly it."""
        if not makes:
            return WorkFindings(evidence=evidence_of(flow))
        flaw, evidence = flow.work.flaw, flow.work.evidence
        results = (*failing_on_base(world, flow.policy), *(evidence.results if evidence is not None else ()))
        on_base = {result.check_id: result for result in results if result.on_base and flow.work.own is not None}
        log = self._blobs.text(flaw.log) if flaw is not None and flaw.log else ""
        return WorkFindings(flaw, log, on_base=tuple(on_base.values()))

    async def _text(self, flow: Flow) -> IssueText:
        """The issue's words: those of our last write's answer, or a read where there are comments to be shown.

        They are read where they are not kept any more, too: the issue was done, and is worked on again.
        """
        if flow.text is not None and not flow.issue.comments and self._blobs.has(flow.text):
            return _TEXT.validate_json(self._blobs.text(flow.text))
        seen = await self._tracker.issue(flow.issue.id)
        if seen is None:
            raise TrackerRefused(f"the tracker has no issue {flow.issue.id}")
        return seen.text
