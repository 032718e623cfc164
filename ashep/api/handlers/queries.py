"""What the page and programs look at: the views over the picture of the journal, read in threads, each a moment's.

It works where no daemon runs, which is when people look: what is behind is drawn first, next to the state folder's own
picture. It is never the reason why a daemon is slow: nothing is written, and a handful of reads go on at one time.
"""

import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TypeVar

import anyio
from anyio import to_thread

from ashep.api.handlers.drawing import PictureDrawer
from ashep.api.schemas import page
from ashep.config import ConfigErrors
from ashep.core.text import clean
from ashep.errors import AshepError
from ashep.journal.heads import head
from ashep.journal.lock import holder
from ashep.redaction import Redaction
from ashep.store.checkpoints import CheckpointWriter
from ashep.store.read_model import ReadModel, daemon_of, disk_of, open_read_model, servers_of
from ashep.store.row_types import DaemonJson, ProcessJson
from ashep.store.sqlite_reader import is_behind
from ashep.views import (
    edge_counts,
    issue_story,
    json_types,
    lists,
    policies,
    policy_graph,
    project,
    report,
    runs,
    status,
    times,
    usage,
)

AT_ONCE = 4
"""Reads at one time; others wait."""

LONGEST_TEXT = 400_000
"""Characters of a text of a run that are shown."""

_T = TypeVar("_T")


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
    drawer: PictureDrawer = field(init=False)
    about: project.ProjectReader = field(init=False)
    _policies: policies.PolicyGraphs = field(init=False)
    _policy_names: policies.PolicyNames = field(init=False)
    _reads: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(AT_ONCE))
    _taken: edge_counts.EdgeCounts = field(default_factory=edge_counts.EdgeCounts)
    _draws: threading.Lock = field(default_factory=threading.Lock)
    _timeline: json_types.TimelineJson | None = None
    _columns: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._policies, self._policy_names = policies.PolicyGraphs(self.folder), policies.PolicyNames(self.folder)
        self.about, self.drawer = project.ProjectReader(self.folder), PictureDrawer(self.state, self.say)

    @property
    def state(self) -> Path:
        """The state folder."""
        return self.folder / "state"

    async def read(self, look: Callable[[ReadModel], _T]) -> _T:
        """Look at the picture as it is in one moment.

        Raises `NotReady`, and what `ashep.store.read_model.open_read_model` does.
        """
        return await to_thread.run_sync(self._read, look, limiter=self._reads)

    def _read(self, look: Callable[[ReadModel], _T]) -> _T:
        if holder(self.state) is None and is_behind(self.state):
            self.drawer.draw()
        with open_read_model(self.state, self.say, 0.0) as seen:
            if seen.database is not None:
                seen.database.execute("BEGIN")
            return look(seen)

    async def look_up(self, look: Callable[[ReadModel], _T | None], missing: str) -> _T:
        """Look at something that may not be there. Raises `NotFound`."""
        answer = await self.read(look)
        if answer is None:
            raise NotFound(missing)
        return answer

    async def ask_outside(self, who: str, seconds: float, ask: Callable[[], Awaitable[_T]]) -> tuple[_T | None, str]:
        """Ask git, the tracker or an agent server for so long; give its answer, and a sentence why there is none."""
        try:
            with anyio.fail_after(seconds):
                async with self.beside:
                    return await ask(), ""
        except TimeoutError:
            return None, f"{who} did not answer in {seconds:.0f} s."
        except AshepError as error:
            return None, clean(self.redaction.text(str(error)))

    async def current(self) -> int:
        """Give the number of the last record that is drawn."""
        return await self.read(lambda seen: lists.seq(seen.database))

    # --- issues ---------------------------------------------------------------------------------------------------

    async def home(self) -> page.Now:
        """What a person looks at first."""
        names = list[str]()
        with suppress(ConfigErrors):  # the page says what is wrong with an edit where it shows the daemon
            names += await to_thread.run_sync(self._policy_names.all)
        about = await to_thread.run_sync(self.about.read)

        def look(seen: ReadModel) -> page.Now:
            process: ProcessJson = {**daemon_of(seen), "disk": disk_of(self.state), **servers_of(self.state)}
            now = status.build_dashboard(seen.database, process)
            daemon: DaemonJson = {
                "pid": None, "since": None, "version": None, "behind": False, "ended": None, "why": None,
                "servers": None, **now["daemon"],
            }  # fmt: skip
            seq = lists.seq(seen.database)
            present: page.Now = {
                **now, "seq": seq, "daemon": daemon, "at": times.stamp(self.now()), "policies": names, "project": about,
            }  # fmt: skip
            return present

        return await self.read(look)

    async def issues(self, which: page.WhichIssues) -> json_types.IssuesJson:
        """A page of issues. Raises `InvalidQuery`."""

        def look(seen: ReadModel) -> json_types.IssuesJson:
            query = which.model_dump()
            try:
                return lists.issues(seen.database, text=query.pop("q"), **query)
            except ValueError as error:
                raise InvalidQuery(f"after: {error}") from error

        return await self.read(look)

    async def issue(self, issue: str) -> page.IssueStory:
        """Why an issue is where it is. Raises `NotFound`."""

        def look(seen: ReadModel) -> page.IssueStory | None:
            story = issue_story.tell_story(seen.database, issue, self._blob)
            entry = status.read_issue(seen.database, issue)
            if story is None or entry is None or seen.database is None:
                return None
            query = "SELECT count(*) AS runs, coalesce(sum(tokens), 0) AS tokens, coalesce(sum(cost), 0.0) AS cost"
            used = seen.database.execute(f"{query} FROM runs WHERE issue = ?", [issue]).fetchone()
            return {
                "seq": lists.seq(seen.database), "issue": entry, "depends_on": story["depends_on"],
                "kept_since": story["kept_since"],
                "story": story["story"], "under_way": story["now"]["under_way"],
                "verification": story["verification"], "verification_log": story["verification_log"],
                "files": story["files"], "flags": story["flags"], "landing": story["landing"],
                "usage": {"runs": used["runs"], "tokens": used["tokens"], "cost": used["cost"]},
                "answered": issue_story.last_answer(seen.database, issue),
            }  # fmt: skip

        return await self.look_up(look, f"nothing is known of an issue {issue}")

    async def course(self, issue: str) -> json_types.CourseJson:
        """An issue's runs and questions, and what led from one to the next. Raises `NotFound`."""
        missing = f"nothing is known of an issue {issue}"
        return await self.look_up(lambda seen: lists.course(seen.database, issue), missing)

    # --- runs -----------------------------------------------------------------------------------------------------

    async def runs(self, which: page.WhichRuns) -> json_types.RunsJson:
        """A page of runs."""
        query = which.model_dump()
        return await self.read(lambda seen: lists.runs(seen.database, text=query.pop("q"), **query))

    async def run(self, run: str) -> page.Run:
        """Everything that is known of a run. Raises `NotFound`."""

        def look(seen: ReadModel) -> page.Run | None:
            told = runs.show(seen.database, run, str)
            if told is None:
                return None
            return {
                "seq": lists.seq(seen.database),
                **told,
                "prompts": [{"n": prompt["n"], "sent": prompt["sent"]} for prompt in told["prompts"]],
                "turns": [
                    {
                        "n": turn["n"], "at": turn["at"], "error": turn["error"], "provider": turn["provider"],
                        "model": turn["model"], "tokens": turn["tokens"], "cost": turn["cost"],
                        "answered": turn["answer"] is not None,
                    }
                    for turn in told["turns"]
                ],
            }  # fmt: skip

        return await self.look_up(look, f"there is no run {run}")

    async def words(self, run: str, what: str, n: int) -> page.Words:
        """The text of a prompt of a run, or of the answer to it, without secrets. Raises `NotFound`."""

        def look(seen: ReadModel) -> page.Words:
            told = runs.show(seen.database, run, str)
            texts = {
                "prompts": [(prompt["n"], prompt["blob"]) for prompt in told["prompts"]],
                "turns": [(turn["n"], turn["answer"]) for turn in told["turns"]],
            }[what] if told else []  # fmt: skip
            names = [name for number, name in texts if number == n and name]
            if not names:
                raise NotFound(f"{run} has no such text {n}")
            text = self._blob(names[-1])
            cut = text is not None and len(text) > LONGEST_TEXT
            return page.Words(text=text and clean(self.redaction.text(text[:LONGEST_TEXT])), cut=cut)

        return await self.read(look)

    def _blob(self, name: str) -> str | None:
        return runs.blob(self.state, name)

    async def timeline(self) -> json_types.TimelineJson:
        """Every run, as columns; made once for all who ask, until something changes."""

        def look(seen: ReadModel) -> json_types.TimelineJson:
            seq = lists.seq(seen.database)
            with self._columns:
                if self._timeline is None or self._timeline["seq"] != seq:
                    self._timeline = lists.timeline(seen.database, self.now() if seen.daemon else None)
                return self._timeline

        return await self.read(look)

    # --- the rest -------------------------------------------------------------------------------------------------

    async def report(self, since: str | None) -> page.Report:
        """What became of the night. Raises `InvalidQuery`."""
        start = self._since(since)

        def look(seen: ReadModel) -> page.Report:
            now = self.now()
            since = report.default_since(seen.database, now) if start is None else start
            journal = head(self.state / "journal")
            return {"seq": lists.seq(seen.database), **report.report(seen.database, since, now, journal)}

        return await self.read(look)

    async def usage(self, by: str, since: str | None) -> page.Usage:
        """What runs used. Raises `InvalidQuery`."""
        start = self._since(since)
        return await self.read(lambda seen: {"seq": lists.seq(seen.database), **usage.usage(seen.database, by, start)})

    async def days(self, since: str | None) -> json_types.DaysJson:
        """What runs used, by day and provider. Raises `InvalidQuery`."""
        start = self._since(since)
        return await self.read(lambda seen: usage.days(seen.database, start))

    async def budgets(self) -> json_types.BudgetsJson:
        """Every limit, and what is used of it."""
        return await self.read(lambda seen: usage.budgets(seen.database, self.now()))

    def _since(self, text: str | None) -> str | None:
        try:
            return None if text is None else times.stamp(times.moment(text, self.now()))
        except (ValueError, OverflowError) as error:
            raise InvalidQuery("since: give a time (18:00), a span (12h), a date (2026-01-31) or both") from error

    async def policy(self, name: str) -> json_types.PolicyJson:
        """A policy, with how many issues are where. Raises `NotFound`, `ConfigErrors`."""

        def look(seen: ReadModel) -> json_types.PolicyJson | None:
            known = self._policies.all().get(name)
            with self._draws:
                went = self._taken.count_edges(seen.database, name)
            return known and {
                "seq": lists.seq(seen.database),
                **policies.counted(known, policy_graph.stands(seen.database, name), went),
            }

        return await self.look_up(look, f"there is no policy {name}")

    async def record(self, number: int) -> page.OneRecord:
        """A record of the journal. Raises `NotFound`."""

        def look(seen: ReadModel) -> page.OneRecord | None:
            record = lists.record(seen.database, number)
            return record and {"seq": lists.seq(seen.database), "record": record}

        return await self.look_up(look, f"there is no record {number}, or not any more")

    async def records(self, which: page.WhichRecords) -> json_types.RecordsJson:
        """A page of records."""
        return await self.read(lambda seen: lists.records(seen.database, **which.model_dump()))
