"""The commands that only look: status, runs, show, why, usage, report. Nothing heavy is imported, not even typer.

Their docstrings are their help, and their parameters declare what they take (`ashep.cli.reading.options`).
"""

import os
import re
from collections.abc import Collection
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ashep.cli import output
from ashep.cli.context import config_of, current_time, picture, read_state
from ashep.cli.reading.options import Issue, Json, Option, Since
from ashep.core.policy.isolation_notice import unsaid
from ashep.errors import AshepError, TrackerMissing, UsageError
from ashep.journal.heads import head
from ashep.store.read_model import ReadModel, daemon_of, disk_of, servers_of
from ashep.views import evidence, issue_story
from ashep.views import report as reported
from ashep.views import runs as attempts
from ashep.views import status as standing
from ashep.views import usage as used
from ashep.views.times import local, moment, stamp

if TYPE_CHECKING:
    from ashep.views import json_types

EXAMPLES = {
    "status": ("ashep status", "ashep status --all", "ashep status --watch", "ashep status --at 03:00 --json"),
    "runs": ("ashep runs", "ashep runs t-1", "ashep runs --limit 0 --json"),
    "show": ("ashep show t-1/implement.1.1", "ashep show t-1/implement.1.1 --prompt"),
    "why": ("ashep why t-1", "ashep why t-1 --json"),
    "usage": ("ashep usage", "ashep usage --by day", "ashep usage --by issue --since 18:00 --json"),
    "report": ("ashep report", "ashep report --since 18:00", "ashep report --markdown > report.md"),
}
"""The end of each one's help."""

MOST_WAITING = 5
"""Issues that `ashep` alone names."""

TRACKER = 10.0
"""Seconds in which the tracker tells of answers."""


def _hint(seen: ReadModel) -> None:
    if seen.database is None:
        output.note("the daemon has only begun" if seen.daemon else "there is no journal yet: `ashep work` begins one")


def overview(project: Path | None) -> int:
    """Say what waits for a person and what to type: `ashep` without a command."""
    state = read_state(project)
    with picture(state) as reader:
        summary = standing.status(reader.database, daemon_of(reader))
    output.say_painted((standing.headline(summary, local), "bold"))
    output.say(standing.counts(summary))
    waiting = [issue for issue in summary["issues"] if issue["state"] in standing.WAITING]
    for issue in waiting[:MOST_WAITING]:
        output.say(f"  {issue['issue']}  {issue['title']}: {issue['reason']}")
    if len(waiting) > MOST_WAITING:
        output.say(f"  and {len(waiting) - MOST_WAITING} more: `ashep status`")
    output.say_lines(standing.next_steps(summary))
    return 0


def status(
    project: Path | None,
    *,
    everything: Annotated[bool, Option("Closed issues, too.", ("--all",))] = False,
    as_json: Json = False,
    watch: Annotated[bool, Option("On a screen that goes on until Ctrl-C.", ("--watch",))] = False,
    at: Annotated[str | None, Option("As it stood then: 03:00, 12h, 2026-01-31T03:00.", ("--at",), "TIME")] = None,
) -> int:
    """Say where every issue stands and why; those that wait for a person come first.

    With --watch on a live screen: what waits for you, what runs, for how long, and when it last showed a sign of life.
    With --at what waited and what ran at a moment, by the journal until then.
    """
    state = read_state(project)
    if at is not None:
        if watch or everything:
            raise UsageError("--at goes with neither --watch nor --all")
        return _print_past(state, _moment("--at", at), as_json=as_json)
    if watch:
        if as_json or everything:
            raise UsageError("--watch goes with neither --json nor --all")
        from ashep.cli.reading.watch import watch as live

        return live(state)
    with picture(state) as seen:
        told = standing.status(seen.database, {**daemon_of(seen), "disk": disk_of(state), **servers_of(state)})
        _hint(seen)
        asking = standing.asking(seen.database) if seen.daemon is None else {}
    if asking:
        _answers(state, told, asking)
    lacks = seen.database is None and seen.daemon is None and _lacks_tracker(state)
    if as_json:
        output.data(told)
        return TrackerMissing.exit_code if lacks else 0
    output.say_painted((standing.headline(told, local), "bold"))
    if paused := standing.paused(told, local):
        output.say_painted((paused, "bold"))
    output.say(standing.counts(told))
    if where := standing.workplace(told):
        output.say(where)
    if told["daemon"]["running"] and (how := unsaid(config_of(state), told["daemon"]["workspace"])):
        output.say(how)
    outages = (
        *standing.repository(told),
        *standing.edits(told, current_time()),
        *standing.runners(told, current_time()),
        *standing.servers(told),
        *standing.outages(told, current_time()),
        *standing.sources(told),
        *standing.quotas(told, current_time()),
        *standing.trees(told, current_time()),
        *standing.records(told, local),
    )
    output.say_lines((*outages, *standing.limits(told, current_time()), *standing.untold(told, current_time())))
    output.table(standing.COLUMNS, standing.table(told["issues"], current_time(), everything=everything))
    output.say_look()
    return TrackerMissing.exit_code if lacks else 0


def _answers(state: Path, told: "json_types.StatusJson", asking: Collection[str]) -> None:
    """Note what people have answered in the tracker while no daemon runs; a person is told where that is not known."""
    project = state.parent.parent
    own = re.search(r"^\s*type:\s*[\"']?[\w.]+:\w", config_of(state), re.MULTILINE)
    if (
        not own
        and "BEADS_DIR" not in os.environ
        and not any((one / ".beads").is_dir() for one in (project, *project.parents))
    ):
        return
    from contextlib import aclosing  # what follows takes long to import, and only where a question is open

    import anyio

    from ashep.actions.answers import find_answers
    from ashep.config import settings_in
    from ashep.factories import tracker_of

    async def read() -> None:
        with anyio.fail_after(TRACKER):
            async with aclosing(tracker_of(project, settings, "ashep-status")) as tracker:
                for issue, one in (await find_answers(tracker, settings, asking)).items():
                    standing.answered(told, issue, one.answer, one.by, one.at)

    try:
        settings = settings_in(state.parent)
        anyio.run(read)
    except (AshepError, TimeoutError) as error:
        output.note(f"whether somebody has answered meanwhile is not known: {str(error) or 'the tracker is too slow'}")


def _lacks_tracker(state: Path) -> bool:
    """Whether the tracker's program is missing, which a person is shown: nothing can be known then."""
    from ashep.adapters.system import programs  # what follows takes long to import, and only where nothing is known yet
    from ashep.config import ConfigErrors, settings_in

    with suppress(ConfigErrors):
        tracker = settings_in(state.parent).tracker
        if not tracker.is_own and (why := programs.lack_of(tracker.command[0])):
            output.note(f"{why}: no issue can be seen or worked on (`ashep install`)")
            return True
    return False


def _print_past(state: Path, moment: datetime, *, as_json: bool) -> int:
    from ashep.store.playback import open_past as back  # what follows takes long to import
    from ashep.views import point_in_time, policies

    with output.ProgressLine("folded") as progress, back(state, min(moment, current_time()), tell=progress) as found:
        told = point_in_time.describe_moment(found, min(moment, current_time()), policies.PastPolicyGraphs())
    if as_json:
        output.data(told)
        return 0
    output.say_painted((point_in_time.headline(told), "bold"))
    issues = [*told["waiting"], *told["running"]]
    output.table(standing.COLUMNS, standing.table(issues, moment, everything=False))
    return 0


def runs(
    project: Path | None,
    *,
    issue: Annotated[str | None, Option("Only this issue's.", metavar="ISSUE")] = None,
    limit: Annotated[int, Option("The newest so many; 0: all.", ("--limit", "-n"), "N", least=0)] = 50,
    as_json: Json = False,
) -> int:
    """List runs, the newest first."""
    with picture(read_state(project)) as seen:
        told = attempts.runs(seen.database, issue, limit)
        if issue is not None and not told["runs"] and not attempts.knows(seen.database, issue):
            raise AshepError(f"nothing is known of an issue {issue}")
        _hint(seen)
    if as_json:
        output.data(told)
    else:
        output.table(attempts.COLUMNS, attempts.table(told, current_time()))
    return 0


def show(
    project: Path | None,
    *,
    run: Annotated[str, Option("The run's id: <issue>/<phase>.<visit>.<attempt>.", metavar="RUN")],
    prompt: Annotated[bool, Option("The text of its prompts, too.", ("--prompt",))] = False,
    as_json: Json = False,
) -> int:
    """Show everything that is known of a run."""
    state = read_state(project)
    with picture(state) as seen:
        text = partial(attempts.blob, state) if prompt else None
        told = attempts.show(seen.database, run, lambda name: str(attempts.blob_file(state, name)), text)
        kept = standing.kept_since(seen.database)
    if told is None:
        older = f"; of those before record {kept['first']} nothing is kept" if kept else ""
        raise AshepError(f"there is no run {run}{older}")
    if as_json:
        output.data(told)
        return 0
    for name, value in attempts.lines(told):
        output.say_painted((f"{name:>14}", "dim"), (value, None))
    for one in told["prompts"] if prompt else ():
        output.say()
        output.say_painted((f"--- prompt {one['n']} ---", "bold"))
        output.say(one.get("text") or "(the text is gone)")
    return 0


def why(project: Path | None, *, issue: Issue, as_json: Json = False) -> int:
    """Tell the story of an issue: what happened, why, and what it is waiting for now."""
    state = read_state(project)
    with picture(state) as seen:
        told = issue_story.tell_story(seen.database, issue, partial(attempts.blob, state))
        _hint(seen)
        if told is None:
            raise AshepError(issue_story.explain_unknown(seen.database, issue))
    if as_json:
        output.data(told)
        return 0
    output.say_painted((f"{told['issue']}: {told['title']}", "bold"))
    if told["kept_since"] is not None:
        output.say(f"what precedes {local(told['kept_since'])} is not kept")
    for line in told["story"]:
        reason = f" - {line['reason']}" if line["reason"] else ""
        at = (local(line["at"]), "dim")
        output.say_painted(at, (line["fact"] + reason, None), (f"[#{line['trace']}]", "dim"))
    output.say_lines(evidence.lines(told))
    for last in issue_story.closing(told):
        output.say_painted((last, "bold" if last.startswith("now:") else None))
    return 0


def usage(
    project: Path | None,
    *,
    by: Annotated[str, Option("provider, issue, phase, agent or day (UTC).", ("--by",), "WHAT")] = "provider",
    since: Since = None,
    as_json: Json = False,
) -> int:
    """Say what runs used, with a total: tokens, cost in US dollars, and how many runs it were.

    A run counts when it ended; one that is under way counts with what was seen of it. Sessions that are used again are
    counted once. Tokens and cost are what the agent's own program reports; runs and times are ashep's.
    """
    if by not in used.KINDS:
        raise UsageError(f"--by {by}: it is one of {', '.join(used.KINDS)}")
    start = _since(since) if since is not None else None
    with picture(read_state(project)) as seen:
        told = used.usage(seen.database, by, start)
        _hint(seen)
    if as_json:
        output.data(told)
        return 0
    output.table(used.columns(told), used.table(told))
    if seen.database is not None and not told["rows"]:
        output.say("nothing was used")
    return 0


def _since(text: str) -> str:
    """Read `--since`, as the database writes times."""
    return stamp(_moment("--since", text))


def _moment(option: str, text: str) -> datetime:
    try:
        return moment(text, current_time())
    except (ValueError, OverflowError) as error:
        remedy = "give a time (18:00), a span (90m, 12h, 7d), a date (2026-01-31) or both (2026-01-31T18:00)"
        raise UsageError(f"{option} {text}: {remedy}") from error


_REPORT_STYLES = {"title": ("bold", ""), "heading": ("bold", ""), "summary": ("dim", "    "), "nothing": ("dim", "  ")}


def report(
    project: Path | None,
    *,
    since: Since = None,
    as_json: Json = False,
    as_markdown: Annotated[bool, Option("Print Markdown.", ("--markdown",))] = False,
) -> int:
    """Tell what became of the night: what was closed, what waits for you, parked or goes on, cost, limits, servers.

    Every line names the records of the journal that it rests on. By default it begins where the last daemon did, or at
    18:00 of yesterday where that is longer ago than a day.
    """
    if as_json and as_markdown:
        raise UsageError("--json and --markdown exclude each other: give one of them")
    start, at = _since(since) if since is not None else None, current_time()
    with picture(state := read_state(project)) as seen:
        start = start or reported.default_since(seen.database, at)
        told = reported.report(seen.database, start, at, head(state / "journal"))
        _hint(seen)
    if as_json:
        output.data(told)
        return 0
    if as_markdown:
        output.say_lines(reported.markdown(told))
        return 0
    for text, kind in reported.lines(told):
        style, indent = _REPORT_STYLES.get(kind, (None, "  "))
        output.say_painted((f"{indent}{text}", style))
    return 0
