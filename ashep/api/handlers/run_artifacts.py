"""Work of a run as it lies elsewhere: what git has of it and what stands in its session; and what work may use.

Git and agent servers are asked when a person opens that, a few at one time and for a bounded time. What cannot be told
is told why.
"""

from contextlib import suppress
from functools import partial
from hashlib import sha256
from itertools import accumulate
from typing import Annotated, Literal

from anyio import to_thread
from pydantic import Field

from ashep.actions.runners.base import SessionReference
from ashep.actions.runners.kinds import RunnerKind, kind_of_session
from ashep.adapters.git.diffs import GitDiffs
from ashep.api.handlers.queries import QueryHandlers
from ashep.api.schemas import page
from ashep.api.schemas.actions import MOST_FILES
from ashep.api.schemas.verification import TICKET, Answer, Given
from ashep.config import settings_in
from ashep.core.text import clean
from ashep.ports.transcripts import MOST_STEPS, KeptSteps, format_steps, read_steps
from ashep.views import runs
from ashep.views.times import stamp

MOST_LINES = 2000
"""Lines of a file's diff in one answer."""

LONGEST = 400_000
"""Characters of a file's diff in one answer, about."""

TAIL = 200_000
"""Characters of a transcript."""

TO_GIT, TO_SERVERS = 30.0, 10.0
"""Seconds for which git, and an agent server, are asked."""

_SERVER = "Its agent server"

Path = Annotated[str, Field(min_length=1, max_length=4096)]
RUN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,199}/[A-Za-z][A-Za-z0-9_-]{0,99}\.[1-9][0-9]{0,8}\.[1-9][0-9]{0,8}$"
assert RUN.startswith(TICKET.removesuffix("$"))


class WhichLines(Given):
    """What is shown of a change."""

    path: Path | None = None
    """One of the files, by its path in the list; without it the files are listed."""
    after: page.Seq = 0
    """The `next` of the lines before."""
    lines: Annotated[int, Field(ge=1, le=MOST_LINES)] = MOST_LINES


class ChangedFile(Answer):
    """A file that a run changed."""

    path: str
    former: str | None
    """Where it was, if it was renamed."""
    status: Literal["created", "modified", "deleted", "renamed"]
    added: int
    removed: int
    unread: Literal["binary", "large", "submodule"] | None
    """Why its lines are neither counted nor shown."""
    link: bool
    """It is a symbolic link now."""


class Changes(Answer):
    """What a run changed: its files, or lines of one."""

    why: str | None
    """Why there is nothing."""
    base: str | None = None
    head: str | None = None
    files: tuple[ChangedFile, ...] = ()
    more: int = 0
    """Files that are not named."""
    lines: tuple[str, ...] = ()
    """Of the file that was asked for, each with its sign."""
    total: int = 0
    """How many there are of them."""
    next: int | None = None
    """Where they go on; null: these are the last."""


class After(Given):
    """What is known already."""

    after: Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")] | None = None
    """The `mark` of the answer before: the text is not sent again where it is the same."""


class TranscriptEntry(Answer):
    """A message of a session, or a call of a tool."""

    role: Literal["user", "assistant", "tool"]
    text: str
    """What was said; of a tool what it answered."""
    tool: str
    arguments: str
    """What the tool was asked."""
    failed: bool
    cost: float | None
    """In US dollars, by its provider; null: that is not known."""
    at: str | None


class Transcript(Answer):
    """The end of what was said in a session."""

    why: str | None
    """Why there is none."""
    text: str | None = None
    """Null: there is none, or it is the same as before."""
    mark: str | None = None
    cut: bool = False
    """More was said before."""
    steps: tuple[TranscriptEntry, ...] = ()
    """The same with the calls of tools; none where `text` is null."""
    unread: str | None = None
    """Why the session cannot be read now: what is given was kept at the end of the run's turns; null: it is the
    session's."""


class RunReference(Given):
    """Which run is looked at."""

    run: Annotated[str, Field(max_length=400, pattern=RUN)] | None = None
    """Its signs of life are told, too, while it goes on."""


async def diff(pictures: QueryHandlers, run: str, which: WhichLines) -> Changes:
    """Say what a run changed. Raises `NotFound`."""
    ends = await pictures.look_up(lambda seen: runs.ends(seen.database, run), f"there is no run {run}")
    return await read_changes(pictures, ends, which, "this run")


async def read_changes(pictures: QueryHandlers, ends: tuple[str, str] | str, query: WhichLines, source: str) -> Changes:
    """Read what lies between two commits; `ends` is a sentence where there are none. `source`: whose they are."""
    if isinstance(ends, str):
        return Changes(why=ends)
    git = GitDiffs(pictures.folder.parent, TO_GIT, pictures.redaction)

    async def read() -> Changes:
        if gone := [end[:12] for end in ends if await git.find(end) is None]:
            return Changes(why=f"Git does not have the commits of {source} any more: {', '.join(gone)}.")
        return await (_files(git, *ends) if query.path is None else _lines(git, *ends, query.path, query))

    changes, reason = await pictures.ask_outside("Git", TO_GIT, read)
    return changes or Changes(why=reason)


_UNREAD = {"binary": "It is binary.", "large": "It is too large.", "submodule": "It is a submodule."}


async def _files(git: GitDiffs, base: str, head: str) -> Changes:
    found = await git.read(base, head)
    files = tuple(
        ChangedFile(
            path=file.path, former=file.former, status=file.kind, added=file.added, removed=file.removed,
            unread=file.unread,
            link=file.link,
        )
        for file in found.files[:MOST_FILES]
    )  # fmt: skip
    why = None if files else "It changed no file."
    return Changes(why=why, base=found.base, head=found.head, files=files, more=len(found.files) - len(files))


async def _lines(git: GitDiffs, base: str, head: str, path: str, which: WhichLines) -> Changes:
    found = await git.patch(base, head, path, which.after, which.lines)
    if found is None:
        return Changes(why="It did not change that file.")
    if found.unread is not None:
        return Changes(why=_UNREAD[found.unread])
    lengths = accumulate(map(len, found.lines))
    lines = found.lines[: max(1, sum(length <= LONGEST for length in lengths))]
    end = which.after + len(lines)
    return Changes(why=None, lines=lines, total=found.total, next=end if end < found.total else None)


async def _find_session(pictures: QueryHandlers, run: str) -> tuple[RunnerKind, SessionReference] | None:
    """Find the session of a run; None: it has none. Raises `NotFound`, `ConfigErrors`."""
    session, folder = await pictures.look_up(lambda seen: runs.session_of(seen.database, run), f"there is no run {run}")
    if session is None:
        return None
    settings = await to_thread.run_sync(settings_in, pictures.folder)
    return kind_of_session(pictures.folder.parent, settings, session, folder)


async def transcript(pictures: QueryHandlers, run: str, known: str | None) -> Transcript:
    """Give the end of what was said in a run's session. Raises `NotFound`, `ConfigErrors`."""
    if (session := await _find_session(pictures, run)) is None:
        return Transcript(why="It has no session.")
    kind, reference = session
    read = partial(kind.read_steps, reference, pictures.redaction)
    steps, reason = await pictures.ask_outside(_SERVER, TO_SERVERS, read)
    if steps is None:
        end = await _read_kept(pictures, run)
        if not end.steps:
            return Transcript(why=f"{reason.rstrip('.')}; nothing was kept of it")
    else:
        end = KeptSteps(steps, cut=len(steps) >= MOST_STEPS)
    if not end.steps:
        return Transcript(why="Nothing was said in it yet.")
    mark = sha256(repr((end, reason)).encode()).hexdigest()[:16]
    if mark == known:
        return Transcript(why=None, mark=mark, unread=reason or None)
    text, end = clean(format_steps(end.steps, TAIL)), end.shorten(LONGEST)
    entries = tuple(
        TranscriptEntry(
            role=step.role, text=clean(step.text)[-TAIL:], tool=clean(step.tool), arguments=clean(step.arguments),
            failed=step.failed, cost=step.cost, at=step.written_at and stamp(step.written_at),
        )
        for step in end.steps
    )  # fmt: skip
    return Transcript(why=None, text=text, mark=mark, cut=end.cut, steps=entries, unread=reason or None)


async def _read_kept(pictures: QueryHandlers, run: str) -> KeptSteps:
    names = await pictures.read(lambda model: runs.kept_steps(model.database, run))
    texts = await to_thread.run_sync(lambda: [runs.blob(pictures.state, name) for name in names])
    with suppress(ValueError):
        return read_steps([text for text in texts if text is not None])
    return KeptSteps()


async def opening(pictures: QueryHandlers, run: str) -> page.Opening:
    """Say how a run's session is opened, and where a browser shows it. Raises `NotFound`, `ConfigErrors`."""
    if (session := await _find_session(pictures, run)) is None:
        return page.Opening(said="It has no session yet.", command=None, why="It has no session.")
    kind, reference = session
    words = pictures.redaction.text(await kind.open_command(reference, run.partition("/")[0], False))
    indented = [line.strip() for line in words.splitlines() if line.startswith("  ")]
    command = indented[0] if indented else None if words.startswith("Its ") else words
    address, reason = await pictures.ask_outside(_SERVER, TO_SERVERS, partial(kind.link, reference))
    return page.Opening(said=words, command=command, link=address, why=reason or None)
