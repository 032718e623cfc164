"""What a person reads before they answer: what was asked, what agents say they did, and the sum of the change."""

from contextlib import aclosing

from anyio import to_thread

from ashep.api.handlers.actions import READER, ActionHandlers
from ashep.api.handlers.queries import NotFound, QueryHandlers
from ashep.api.handlers.run_artifacts import Changes, WhichLines, read_changes
from ashep.api.schemas import page
from ashep.config import settings_in
from ashep.core.text import clean
from ashep.ports.tracker import Seen
from ashep.views import issue_work, lists

LONGEST = 60_000
"""Characters of each text of an issue."""

TO_TRACKER = 20.0
"""Seconds for which the tracker is asked."""


async def read_work(acts: ActionHandlers, issue: str) -> page.IssueWork:
    """Give what was asked and what agents say. Raises `NotFound`."""
    seq, summaries = await acts.pictures.read(
        lambda model: (lists.seq(model.database), issue_work.summaries(model.database, issue))
    )
    if summaries is None:
        raise NotFound(f"nothing is known of an issue {issue}")
    return {"seq": seq, "words": await _read_words(acts, issue), "summaries": summaries}


async def _read_words(acts: ActionHandlers, issue: str) -> page.IssueTexts:
    """Read an issue's words in the tracker, which the journal does not hold."""
    pictures = acts.pictures

    async def read() -> Seen | None:
        settings = await to_thread.run_sync(settings_in, pictures.folder)
        async with aclosing(acts.tracker_of(pictures.folder.parent, settings, READER)) as tracker:
            return await tracker.issue(issue)

    view, reason = await pictures.ask_outside("The tracker", TO_TRACKER, read)
    if view is None:
        return page.IssueTexts(error=reason or "The tracker does not have this issue any more.")
    names = ("description", "acceptance", "design", "notes")
    texts = {name: clean(pictures.redaction.text(getattr(view.text, name))) for name in names}
    cut = {name: text if len(text) <= LONGEST else f"{text[:LONGEST]}…" for name, text in texts.items()}
    return page.IssueTexts(error=None, **cut)


async def read_diff(pictures: QueryHandlers, issue: str, query: WhichLines) -> Changes:
    """Say what an issue's work changes, all in all. Raises `NotFound`."""
    ends = await pictures.look_up(
        lambda model: issue_work.ends(model.database, issue), f"nothing is known of an issue {issue}"
    )
    return await read_changes(pictures, ends, query, "this issue")
