"""What the page and programs look at: the views over the picture of the journal, read in threads, each a moment's.

It works where no daemon runs, which is when people look: what is behind is drawn first, next to the state folder's own
picture. It is never the reason why a daemon is slow: nothing is written, and a handful of reads go on at one time.
"""

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import anyio
from anyio import to_thread

from ashep.actions.runners.kinds import kind_of_session
from ashep.api.schemas import page
from ashep.config import ConfigErrors, settings_in
from ashep.core.text import clean
from ashep.errors import AshepError
from ashep.journal.heads import head
from ashep.journal.lock import holder
from ashep.redaction import Redaction
from ashep.store.checkpoints import CheckpointWriter
from ashep.store.read_model import ReadModel, daemon_of, disk_of, open_read_model, servers_of
from ashep.store.sqlite_reader import is_behind
from ashep.views import Data, edge_counts, issue_story, lists, policies, policy_graph, report, status, times, usage
from ashep.views import runs as attempts

AT_ONCE = 4
"""Reads at one time; others wait."""

LONGEST_TEXT = 400_000
"""Characters of a text of a run that are shown."""

_T = TypeVar("_T")
_Answer = TypeVar("_Answer", bound=page.Answer)


class NotFound(AshepError):
    """What was asked for is not there."""


class InvalidQuery(AshepError):
    """A value in the query means nothing."""


@dataclass
class QueryHandlers:
    """The pictures of one project."""

    folder: Path
    """`.agent-shepherd` of the project."""
    now: Callable[[], datetime]
    say: Callable[[str], None]
    redaction: Redaction = field(default_factory=Redaction)
    beside: anyio.Semaphore = field(default_factory=lambda: anyio.Semaphore(2))
    """Who asks git or an agent server: a few at one time."""
    keeper: CheckpointWriter | None = None
    """Makes what moments of the past are told from."""
    recalled: policies.PastPolicyGraphs = field(default_factory=policies.PastPolicyGraphs)
    folds: anyio.Semaphore = field(default_factory=lambda: anyio.Semaphore(1))
    """Who goes back to a moment: one at a time."""
    _reads: anyio.CapacityLimiter | None = None
    _taken: edge_counts.EdgeCounts = field(default_factory=edge_counts.EdgeCounts)
    _draws: threading.Lock = field(default_factory=threading.Lock)
    _timeline: page.Timeline | None = None
    _columns: threading.Lock = field(default_factory=threading.Lock)

    @property
    def state(self) -> Path:
        """The state folder."""
        return self.folder / "state"

    async def read(self, look: Callable[[ReadModel], _T]) -> _T:
        """Look at the picture as it is in one moment. Raises what `ashep.store.read_model.open_read_model` does."""
        self._reads = self._reads or anyio.CapacityLimiter(AT_ONCE)
        return await to_thread.run_sync(self._read, look, limiter=self._reads)

    def _read(self, look: Callable[[ReadModel], _T]) -> _T:
        if holder(self.state) is None and is_behind(self.state):
            with self._draws, open_read_model(self.state, self.say, 0.0):  # drawn once, whoever else waits for it
                pass
        with open_read_model(self.state, self.say, 0.0) as seen:
            if seen.database is not None:
                seen.database.execute("BEGIN")
            return look(seen)

    async def _told(self, kind: type[_Answer], look: Callable[[ReadModel], Data | None], missing: str = "") -> _Answer:
        def told(seen: ReadModel) -> _Answer:
            found = look(seen)
            if found is None:
                raise NotFound(missing)
            return kind.model_validate_json(json.dumps({"seq": lists.seq(seen.database), **found}))

        return await self.read(told)

    async def current(self) -> int:
        """Give the number of the last record that is drawn."""
        return await self.read(lambda seen: lists.seq(seen.database))

    # --- issues ---------------------------------------------------------------------------------------------------

    async def home(self) -> page.Now:
        """What a person looks at first."""

        def look(seen: ReadModel) -> Data:
            daemon = daemon_of(seen) | {"disk": disk_of(self.state)} | servers_of(self.state)
            return status.now(seen.database, daemon) | {"at": times.stamp(self.now()), "policies": self._names()}

        return await self._told(page.Now, look)

    async def issues(self, which: page.WhichIssues) -> page.Issues:
        """A page of issues. Raises `InvalidQuery`."""

        def look(seen: ReadModel) -> Data:
            given = which.model_dump()
            try:
                return lists.issues(seen.database, text=given.pop("q"), **given)
            except ValueError as error:
                raise InvalidQuery(f"after: {error}") from error

        return await self._told(page.Issues, look)

    async def issue(self, issue: str) -> page.IssueStory:
        """Why an issue is where it is. Raises `NotFound`."""

        def look(seen: ReadModel) -> Data | None:
            told = issue_story.why(seen.database, issue, self._blob)
            if told is None or seen.database is None:
                return None
            query = "SELECT count(*) AS runs, coalesce(sum(tokens), 0) AS tokens, coalesce(sum(cost), 0.0) AS cost"
            used = seen.database.execute(f"{query} FROM runs WHERE issue = ?", [issue]).fetchone()
            under_way = told.pop("now")["under_way"]
            del told["title"]
            return told | {"issue": status.shown(seen.database, issue), "under_way": under_way, "usage": dict(used)}

        return await self._told(page.IssueStory, look, f"nothing is known of an issue {issue}")

    async def course(self, issue: str) -> page.Course:
        """An issue's runs and questions, and what led from one to the next. Raises `NotFound`."""
        missing = f"nothing is known of an issue {issue}"
        return await self._told(page.Course, lambda seen: lists.course(seen.database, issue), missing)

    # --- runs -----------------------------------------------------------------------------------------------------

    async def runs(self, which: page.WhichRuns) -> page.Runs:
        """A page of runs."""
        return await self._told(page.Runs, lambda seen: lists.runs(seen.database, **which.model_dump()))

    async def run(self, run: str) -> page.Run:
        """Everything that is known of a run. Raises `NotFound`."""

        def look(seen: ReadModel) -> Data | None:
            told = attempts.show(seen.database, run, str)
            if told is not None:
                told["prompts"] = [{key: one[key] for key in ("n", "sent")} for one in told["prompts"]]
                for turn in told["turns"]:
                    turn["answered"] = turn.pop("answer") is not None
            return told

        return await self._told(page.Run, look, f"there is no run {run}")

    async def words(self, run: str, what: str, n: int) -> page.Words:
        """The text of a prompt of a run, or of the answer to it, without secrets. Raises `NotFound`."""

        def look(seen: ReadModel) -> page.Words:
            told = attempts.show(seen.database, run, str) or {"prompts": (), "turns": ()}
            key = {"prompts": "blob", "turns": "answer"}[what]
            names = [one[key] for one in told[what] if one["n"] == n and one[key]]
            if not names:
                raise NotFound(f"{run} has no such text {n}")
            text = self._blob(names[-1])
            cut = text is not None and len(text) > LONGEST_TEXT
            return page.Words(text=text and clean(self.redaction.text(text[:LONGEST_TEXT])), cut=cut)

        return await self.read(look)

    async def session(self, run: str) -> page.Opening:
        """How the session of a run is opened. Raises `NotFound`, `ConfigErrors`."""

        def look(seen: ReadModel) -> tuple[str | None, str | None]:
            told = attempts.show(seen.database, run, str)
            if told is None or seen.database is None:
                raise NotFound(f"there is no run {run}")
            return told["run"]["session"], attempts.folder_of(seen.database, run)

        session, folder = await self.read(look)
        if session is None:
            return page.Opening(said="It has no session yet.", command=None)
        settings = await to_thread.run_sync(settings_in, self.folder)
        kind, reference = kind_of_session(self.folder.parent, settings, session, folder)
        said = await kind.open_command(reference, run.partition("/")[0], False)
        told = self.redaction.text(said)
        indented = [line.strip() for line in told.splitlines() if line.startswith("  ")]
        return page.Opening(said=told, command=indented[0] if indented else None if told.startswith("Its ") else told)

    @cached_property
    def _policies(self) -> policies.PolicyGraphs:
        return policies.PolicyGraphs(self.folder)

    def _names(self) -> list[str]:
        with suppress(ConfigErrors):  # the page says what is wrong with an edit where it shows the daemon
            return [*self._policies.all()]
        return []

    def _blob(self, name: str) -> str | None:
        return attempts.blob(self.state, name)

    async def timeline(self) -> page.Timeline:
        """Every run, as columns; made once for all who ask, until something changes."""

        def look(seen: ReadModel) -> page.Timeline:
            seq = lists.seq(seen.database)
            with self._columns:
                if self._timeline is None or self._timeline.seq != seq:
                    drawn = lists.timeline(seen.database, self.now() if seen.daemon else None)
                    self._timeline = page.Timeline.model_validate({"seq": seq, **drawn})
                return self._timeline

        return await self.read(look)

    # --- the rest -------------------------------------------------------------------------------------------------

    async def report(self, since: str | None) -> page.Report:
        """What became of the night. Raises `InvalidQuery`."""
        start = self._since(since)

        def look(seen: ReadModel) -> Data:
            at = self.now()
            told = report.report(seen.database, start or report.default_since(seen.database, at), at)
            return told | {"journal": head(self.state / "journal")}

        return await self._told(page.Report, look)

    async def usage(self, by: str, since: str | None) -> page.Usage:
        """What runs used. Raises `InvalidQuery`."""
        start = self._since(since)
        return await self._told(page.Usage, lambda seen: usage.usage(seen.database, by, start))

    def _since(self, text: str | None) -> str | None:
        try:
            return None if text is None else times.stamp(times.moment(text, self.now()))
        except (ValueError, OverflowError) as error:
            raise InvalidQuery("since: give a time (18:00), a span (12h), a date (2026-01-31) or both") from error

    async def policy(self, name: str) -> page.Policy:
        """A policy, with how many issues are where. Raises `NotFound`, `ConfigErrors`."""

        def look(seen: ReadModel) -> Data | None:
            known = self._policies.all().get(name)
            with self._draws:
                went = self._taken.of(seen.database, name)
            return known and policies.counted(known, policy_graph.stands(seen.database, name), went)

        return await self._told(page.Policy, look, f"there is no policy {name}")

    async def record(self, number: int) -> page.OneRecord:
        """A record of the journal. Raises `NotFound`."""

        def look(seen: ReadModel) -> Data | None:
            found = lists.record(seen.database, number)
            return None if found is None else {"record": found}

        return await self._told(page.OneRecord, look, f"there is no record {number}, or not any more")

    async def records(self, which: page.WhichRecords) -> page.Records:
        """A page of records."""
        return await self._told(page.Records, lambda seen: lists.records(seen.database, **which.model_dump()))

    told, since = _told, _since
    """For `work` next to this."""
