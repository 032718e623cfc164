"""Commands about the journal itself: `ashep journal verify`, `export`, `prune`."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ashep.cli import output
from ashep.cli.commands import Json, complete_name, example, group, project_of
from ashep.cli.context import configured, current_time
from ashep.cli.output import ProgressLine
from ashep.errors import AshepError, JournalDamaged
from ashep.journal import verify as look
from ashep.journal.archive import archived
from ashep.journal.lock import Lock
from ashep.journal.prune import prune as pruned
from ashep.journal.reader import base
from ashep.journal.verify import NAMED, REST, as_line, exported, salvage
from ashep.journal.writer import Journal

journal = group("journal")


def _state(context: typer.Context) -> Path:
    state = configured(project_of(context)) / "state"
    if not (state / "journal").is_dir():
        raise AshepError("there is no journal yet: `ashep work` begins one")
    return state


@journal.command(
    epilog=example(
        "ashep journal verify",
        "ashep journal verify --json",
        "ashep journal verify --salvage /tmp/saved",
        f"ashep journal verify --head 5120:{'3f' * 16}",
    )
)
def verify(
    context: typer.Context,
    as_json: Json = False,
    to: Annotated[
        Path | None, typer.Option("--salvage", metavar="DIR", help="Write what can be read to this new folder.")
    ] = None,
    head: Annotated[
        str, typer.Option("--head", metavar="SEQ:HASH", help="Say whether it still holds this head, unchanged.")
    ] = "",
) -> None:
    """Check every line, batch and file of the journal, the archive's included; a daemon may run. Nothing is changed.

    The exit code is 1 where something is damaged, and file and line are told. With --salvage a new state folder is
    written: `journal/` with everything up to the damage, ready to be gone on with in place of the old one, and
    `rest.jsonl` with the records behind it, to be looked at. The old folder is never touched.

    Whoever can write the journal can write all of it again, so that it is good in itself. Its head stands in reports,
    messages, the metadata of closed issues and the trailers of commits that land: with --head it is 1, too, where what
    the head stands for was changed since, or is not there.
    """
    state = _state(context)
    if to is not None:
        raise typer.Exit(_salvage(state, to, as_json=as_json))
    try:
        with ProgressLine("checked") as progress:
            found = look.verify(state / "journal", progress, head)
    except JournalDamaged as damage:
        if as_json:
            output.data({"damaged": str(damage), "file": damage.file, "line": damage.line})
        else:
            output.note(str(damage))
        raise typer.Exit(1) from None
    if as_json:
        output.data({"damaged": None, **asdict(found)})
        raise typer.Exit(int(found.contains is False))
    archived = f", {found.archived} of them archived" if found.archived else ""
    output.say(f"records {found.first} to {found.last}: {found.batches} batches in {found.files} files{archived}, good")
    output.say(f"its head is {found.head}")
    if found.first > 1:
        output.say(f"what precedes record {found.first} was pruned")
    if found.torn:
        output.say(f"{found.torn} bytes behind the last batch are being written, or were never acted on")
    if head:
        gone = (
            "that was pruned: nobody can tell"
            if found.contains is None
            else "no: it was changed since, or is not there"
        )
        output.say(f"it holds {head}: {'yes, unchanged up to there' if found.contains else gone}")
    raise typer.Exit(int(found.contains is False))


def _salvage(state: Path, to: Path, *, as_json: bool) -> int:
    try:
        with ProgressLine("read") as progress:
            done = salvage(state, to, progress)
    except OSError as error:
        raise AshepError(f"{to}: {error}") from error
    if as_json:
        output.data(asdict(done))
        return int(bool(done.damage))
    output.say(f"{to / 'journal'} holds every record up to {done.last}, {to / 'blobs'} {done.blobs} texts")
    if done.damage:
        output.say(f"{to / REST} holds {done.rest} records behind the damage: {done.damage}")
    for place in done.places:
        output.say(f"left out: {place} cannot be read")
    if done.bad > len(done.places):
        output.say(f"left out: {done.bad - NAMED} more lines that cannot be read")
    for blob in done.bad_blobs:
        output.say(f"left out: the text {blob} is not what was kept")
    return int(bool(done.damage))


@journal.command(
    epilog=example(
        "ashep journal export > journal.jsonl", "ashep journal export --issue t-1", "ashep journal export --since 5000"
    )
)
def export(
    context: typer.Context,
    issue: Annotated[
        str | None,
        typer.Option("--issue", metavar="ISSUE", callback=complete_name, help="Only what is about this issue."),
    ] = None,
    since: Annotated[int, typer.Option("--since", min=0, metavar="N", help="Only from this number on.")] = 0,
) -> None:
    """Print every record of the journal as a line of JSON, the archive's included; its secret is left out."""
    state = _state(context)
    sys.stdout.flush()
    for record in exported(state / "journal", issue, since):
        sys.stdout.buffer.write(as_line(record))


@journal.command(epilog=example("ashep journal prune", "ashep journal prune --yes"))
def prune(
    context: typer.Context,
    yes: Annotated[bool, typer.Option("--yes", help="Do it: without this, only say what would go.")] = False,
    as_json: Json = False,
) -> None:
    """Delete the archived files of the journal for good, and the texts that nothing else names. No daemon may run.

    What is known of every issue stays: a snapshot stands for what is gone. But replay, verify, export, the database and
    runs.jsonl begin where the journal does from now on, and say so. That it was pruned is recorded. A daemon does this
    by itself where `journal.keep` is a duration, and spares what belongs to issues that are not done.
    """
    state = _state(context)
    files = archived(state / "journal")
    size, texts = sum(path.stat().st_size for path in files), 0
    if yes and files:
        with Lock.acquire(state, current_time()):
            opened = Journal.open(state, current_time())
            try:
                texts = pruned(opened, current_time()).texts
            finally:
                opened.close()
    begins = base(state / "journal").seq or 1
    if as_json:
        told = {"files": [path.name for path in files], "bytes": size, "deleted": yes, "texts": texts, "first": begins}
        output.data(told)
    elif not files:
        output.say("there is nothing in the archive")
    elif yes:
        what = f"{len(files)} files, {size} bytes, and {texts} texts that nothing names any more"
        output.say(f"deleted {what}; the journal begins with record {begins} now")
    else:
        what = f"{len(files)} files, {size} bytes, with the texts that nothing else names"
        output.say(f"would delete {what}: {files[0].name} to {files[-1].name}; add --yes to delete them for good")
