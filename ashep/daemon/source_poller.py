"""Watch of sources: tells the shepherd how issues stand there, and who speaks to ashep. It decides nothing.

A read that shows what is known already leaves nothing in the journal. A request a minute is all where nothing happens.
"""

import json
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from functools import partial

from ashep.core.delivery.pull_request_body import OURS
from ashep.core.facts.sources import SourceView, SourceWord, SourceWordSeen, Voice
from ashep.core.issues.admission import against, is_other, source_id
from ashep.core.reconcile.sources import availability_read, closes, commit_of, commit_read, due, source_read, word_read
from ashep.core.runs.source_comments import question_name, read_word, settings_of, takes_thumb
from ashep.core.state.sources.source_issue import SourceIssue
from ashep.core.state.world import World
from ashep.core.text import clean
from ashep.daemon.effects.executor import ReadSignatures
from ashep.daemon.effects.sources import SourceEffects
from ashep.daemon.error_facts import is_final, short
from ashep.daemon.shepherd import Shepherd
from ashep.errors import AshepError, ForgeError, ForgeRefused, ForgeUnavailable
from ashep.ports.journal import Blobs
from ashep.ports.sources import Source, SourceComment, SourceEvent, SourceIssueRead

ALL_AGAIN = 15
"""After so many looks all that carry the label are listed: what was deleted or transferred shows nowhere else."""

MOST_FAILED = 3
"""Issues that cannot be read in one look before the source counts as away."""

PUSHED_EVERY = 5
"""After so many looks it is asked whether what landed was pushed."""

MOST_SAID = 20_000
"""Characters of comments that agents are shown."""


class SourceWatch:
    """A source of facts about issues that are kept elsewhere. `boxed`: this machine has a sandbox for agents."""

    def __init__(
        self,
        shepherd: Shepherd,
        effects: SourceEffects,
        blobs: Blobs,
        signatures: ReadSignatures | None,
        *,
        boxed: bool,
    ) -> None:
        self._shepherd, self._effects, self._blobs, self._signatures = shepherd, effects, blobs, signatures
        self._boxed, self._failures = boxed, 0
        self._looks = dict[str, int]()
        self._wrong = dict[str, tuple[dict[int, ForgeError], dict[int, ForgeError]]]()
        """What is wrong with single issues of each source: with reading them, and with looking further."""
        self._read = dict[str, str]()
        """How each issue stood when it was read last, by its id."""
        self._rights = dict[str, str]()
        """What accounts may do, for one look."""

    async def run(self) -> None:
        """Watch for ever."""
        while True:
            if not _has_sources(self._shepherd.world):
                await self._shepherd.until(_has_sources)
            sources = self._shepherd.world.settings.sources
            wait = min(item.poll_every for item in sources.all).total_seconds()
            try:
                adapters = await self._effects.adapters(self._shepherd.world.settings)
            except AshepError as error:
                for item in sources.all:
                    self._tell_trouble(item.repository or item.remote, short(error))
                self._failures += 1
            else:
                for name in {*self._shepherd.world.trouble} - {*adapters.sources}:
                    self._tell_trouble(name, "")
                wait = max([wait, *[await self._look(source) for source in adapters.sources.values()]])
            pause = min(wait * 2 ** min(self._failures, 5), max(wait, 1800.0))
            await self._shepherd.wait_while(lambda world, sources=sources: world.settings.sources == sources, pause)

    async def _look(self, source: Source) -> float:
        """Look once, and say after how many seconds to look again at the soonest."""
        wait, reason = 0.0, ""
        try:
            reason = await self._look_at(source)
            self._failures = 0
        except Exception as error:
            if is_final(error) or not isinstance(error, AshepError):
                raise
            self._failures, reason = self._failures + 1, short(error)
            wait = error.retry_after if isinstance(error, ForgeUnavailable) else 0.0
        self._tell_trouble(source.name, reason)
        self._shepherd.tell(partial(due, source=source.name))
        return wait

    def _tell_trouble(self, name: str, reason: str) -> None:
        self._shepherd.tell(partial(availability_read, source=name, reason=reason))

    async def _look_at(self, source: Source) -> str:
        """Read what has changed, and say what is wrong with single issues."""
        await self._shepherd.until(lambda world: world.tracker is not None)
        self._rights = {}
        looks = self._looks.get(source.name, 0)
        everything = looks % ALL_AGAIN == 0
        listed = {item.number: item for item in await source.changed(everything=everything) or ()}
        views = [record.view for record in self.records_of(source).values()]
        missing = [view.number for view in views if everything and view.labelled and view.state == "open"]
        ids = dict[str, str]()  # they stay when a repository is renamed, or another one is added
        for issue, record in self._shepherd.world.sources.items():
            ids |= dict.fromkeys([f"{record.view.source}#{record.view.number}", record.view.key], issue)

        async def read(number: int) -> None:
            await self._tell(source, listed.get(number) or await source.issue(number), ids)

        wrong, wrong_later = self._wrong.setdefault(source.name, ({}, {}))
        unread = [number for number, error in wrong.items() if isinstance(error, ForgeUnavailable)]
        if everything:
            wrong.clear()  # what is still wrong is found again below
        await self._do_each(dict.fromkeys([*listed, *missing, *unread]), read, wrong)
        source.confirm()
        records = {record.view.number: (issue, record) for issue, record in self.records_of(source).items()}
        await self._do_each(records, lambda number: self._look_further(source, *records[number]), wrong_later)
        self._looks[source.name] = looks + 1
        return next((f"#{number}: {short(error)}" for number, error in [*wrong.items(), *wrong_later.items()]), "")

    async def _do_each(
        self, numbers: Iterable[int], job: Callable[[int], Awaitable[None]], wrong: dict[int, ForgeError]
    ) -> None:
        """Do something about each issue. One that fails leaves the others alone, unless several do: the source is away.

        `wrong`: what is wrong with issues, which this keeps up to date.
        """
        failures = 0
        for number in numbers:
            try:
                await job(number)
                wrong.pop(number, None)
            except (ForgeRefused, ForgeUnavailable) as error:
                wrong[number] = error
                failures += isinstance(error, ForgeUnavailable)
                if failures == MOST_FAILED or (isinstance(error, ForgeUnavailable) and error.retry_after):
                    raise

    def records_of(self, source: Source) -> dict[str, SourceIssue]:
        """Give what is known of the issues of a source."""
        return {issue: item for issue, item in self._shepherd.world.sources.items() if item.view.source == source.name}

    async def _look_further(self, source: Source, issue: str, record: SourceIssue) -> None:
        """Look for what shows in no list of issues: a thumbs-up, and a commit that was pushed."""
        world = self._shepherd.world
        flow = world.flows.get(issue)
        if flow is None:
            return
        posted = record.posted(question_name(world, flow)) if takes_thumb(flow) else None
        if posted is not None:
            for event in await source.thumbs(posted.id):
                voice = await self._voice(source, event)
                await self._tell_word(issue, SourceWord(voice, "approve", target=posted.id))
        pushed = self._looks.get(source.name, 0) % PUSHED_EVERY == 0
        pushed_commit = commit_of(world, flow) if pushed and closes(world, issue, record) else None
        if pushed_commit is not None and pushed_commit[1] != record.commit and await source.holds(*pushed_commit):
            self._shepherd.tell(partial(commit_read, issue=issue, commit=pushed_commit[1]))

    # --- one issue --------------------------------------------------------------------------------------------------

    async def _tell(self, source: Source, read: SourceIssueRead, ids: dict[str, str]) -> None:
        """Tell how an issue is there, and what people say to ashep."""
        world = self._shepherd.world
        prefix, several = (
            (world.tracker.prefix if world.tracker is not None else ""),
            len(world.settings.sources.all) > 1,
        )
        new_id = source_id(prefix, source.name, read.number, several=several)
        issue = (ids.get(read.key) if read.key else None) or ids.get(f"{source.name}#{read.number}") or new_id
        record = world.sources.get(issue)
        if not (read.labelled or record) or self._read.get(issue) == read.updated:
            return
        if record is not None and is_other(record.view, source.name, read.number, read.key):
            raise ForgeRefused(f"{issue} is {record.view.url} already, and no issue of {source.name}")
        if read.state == "gone":
            if record is not None:
                view = replace(record.view, state="gone")
                self._shepherd.tell(partial(source_read, issue=issue, view=view))
            return
        history = await source.history(read.number)
        comments = await source.comments(read.number) if read.comments else ()
        label = await self._voice(source, history.label) if history.label is not None and read.labelled else None
        reopening = await self._voice(source, history.reopened) if history.reopened is not None else None
        words = {"title": history.title or read.title, "body": history.body}
        view = SourceView(
            source.name, read.number, read.url, words["title"], read.state,
            await self._blobs.keep(json.dumps(words, ensure_ascii=False)),
            edited=history.edited, unknown=clean(history.unknown)[:200],
            label=label, labelled=read.labelled, reopened=reopening,
            closer=history.closer if read.state == "closed" else "",
            comments=await self._comments_text(source, comments, record), locked=read.locked, key=read.key,
        )  # fmt: skip
        await self._shepherd.ask(partial(source_read, issue=issue, view=view))
        if issue in self._shepherd.world.sources:
            for comment in comments:
                if (word := read_word(comment.text)) is not None and not _is_ours(comment, record):
                    voice = await self._voice(source, comment.event)
                    await self._tell_word(issue, SourceWord(voice, *word, comment.edited))
        self._read[issue] = read.updated

    async def _comments_text(
        self, source: Source, comments: tuple[SourceComment, ...], record: SourceIssue | None
    ) -> str:
        """Keep what people said that agents may read; empty: nothing."""
        world, parts = self._shepherd.world, list[str]()
        settings = settings_of(world, source.name)
        for comment in comments:
            if _is_ours(comment, record):
                continue
            voice = await self._voice(source, comment.event)
            if settings.strangers == "read" or not against(world.settings, voice):
                parts.append(f"{voice.login} at {voice.moment:%Y-%m-%d %H:%M}Z:\n\n{clean(comment.text)}")
        text = "\n\n---\n\n".join(parts)
        text = text if len(text) <= MOST_SAID else f"[…]{text[-MOST_SAID:]}"
        return await self._blobs.keep(f"Comments at {source.name}:\n\n{text}") if parts else ""

    async def _voice(self, source: Source, event: SourceEvent) -> Voice:
        if event.login not in self._rights:
            self._rights[event.login] = await source.permission(event.login)
        permission, is_ours = self._rights[event.login], event.login == await source.account()
        return Voice(event.id, event.login, event.moment, permission, event.bot, is_ours)

    async def _tell_word(self, issue: str, word: SourceWord) -> None:
        fact = SourceWordSeen(issue, word, boxed=self._boxed)
        if word_read(self._shepherd.world, fact):
            fact = replace(fact, signed_only=await self._signed_only())
            self._shepherd.tell(partial(word_read, fact=fact))

    async def _signed_only(self) -> bool:
        world = self._shepherd.world
        branch = world.settings.landing.base or (world.tree.branch if world.tree is not None else None)
        if self._signatures is None or not branch:
            return world.settings.signed_only
        return (await self._signatures(world.settings, branch, ()))[1] or world.settings.signed_only


def _has_sources(world: World) -> bool:
    return bool(world.settings.sources.all)


def _is_ours(comment: SourceComment, record: SourceIssue | None) -> bool:
    """Whether it is a comment of ashep's, or looks like one: such words never count, and agents do not read them."""
    return OURS in comment.text or (record is not None and comment.number in record.ours)
