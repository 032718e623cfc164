"""What ashep says at a source: one comment that is kept up to date, and one more for each question and result.

Everything that an agent wrote is quoted, in a fence: no line of it begins with `/`, and GitHub reads no name, issue or
command in it. On `publish: state` nothing is published of costs, agents, prompts and paths of this machine.
"""

import re
from collections.abc import Iterator

from ashep.core.delivery.pull_request_body import fenced, marker
from ashep.core.policy.sources import GitHubSource
from ashep.core.runs.requests import get_open_request, question_of
from ashep.core.state.flow import Flow
from ashep.core.state.sources.source_issue import SourceIssue
from ashep.core.state.world import World
from ashep.core.text import calling_nobody, clean

STATE = "state"
"""The name of the comment that is kept up to date."""

ASKS_PEOPLE = ("edited", "reopened")
"""Why an issue waits for people whose word counts: they hear so."""

MOST = 6_000
"""Characters of what an agent said that are shown."""

MOST_WORDS = 4_000
"""Characters of what one comment says to ashep."""

_WORD = re.compile(r"/ashep[ \t]+(?P<verb>[A-Za-z]+)(?![^\s:,.!])[ \t:,]*(?P<rest>.*)", re.DOTALL)
_PATH = re.compile(
    r"(?<![\w/.])(?:file://)?(?:~[\w.-]*(?:/[\w.@+-]+)+|(?:/[\w.@+-]+){2,})/?|\b[A-Za-z]:[\\/][\w\\/.-]+"
)
_HTML = re.compile(r"<!--|-->")


def mark(issue: str, name: str) -> str:
    """Give the line by which a comment of ashep's is found again."""
    return marker(f"source/{issue}/{name}")


def read_word(text: str) -> tuple[str, str] | None:
    """Read what a comment says to ashep, as verb and what follows it. None: its first line says nothing to ashep."""
    match = _WORD.match(clean(text))
    return (match["verb"].lower(), match["rest"].strip()[:MOST_WORDS]) if match is not None else None


def settings_of(world: World, source: str) -> GitHubSource:
    """Give the settings of a source: those of the repository, or of the only one."""
    results = world.settings.sources.all
    matching = [item for item in results if (item.repository or "").casefold() == source.casefold()]
    return next(iter([*matching, *results]), GitHubSource())


def quoted(text: str, *, full: bool = False) -> str:
    """Quote what somebody said, so that nothing in it acts: no command, no call, no mark, no path of this machine."""
    visible = calling_nobody(clean(text).strip())
    visible = visible if full else _PATH.sub("…", visible)
    visible = visible if len(visible) <= MOST else f"{visible[: MOST - 1]}…"
    return "\n".join(f"> {line}".rstrip() for line in fenced(visible or "(nothing)").splitlines())


def _in_a_line(text: str) -> str:
    return _HTML.sub("--", " ".join(calling_nobody(clean(text)).split()))[:300]


def wanted_comments(world: World, issue: str, record: SourceIssue) -> Iterator[tuple[str, str]]:
    """Give the comments that should stand there now, by name: answers to people first, the state last."""
    yield from record.replies
    flow, full = world.flows.get(issue), settings_of(world, record.view.source).publish == "full"
    if flow is not None and record.code in ("", "edited"):  # what agents see was approved
        yield from _questions(world, flow, full)
    is_posted, is_begun = record.posted(STATE) is not None, flow is not None and flow.stage not in ("idle", "left")
    if is_posted and flow is not None and flow.stage == "closed" and flow.code == "shepherd":
        yield f"result.{flow.counters.cycle}", f"{result_text(flow)}."
    if is_posted or is_begun or record.code in ASKS_PEOPLE:
        yield STATE, _state(record, flow, full)


def question_name(world: World, flow: Flow) -> str:
    """Give the name of the comment that holds the open question; empty: none is."""
    if flow.stage == "person" and flow.question is not None:
        return f"ask.{world.instance[:8]}.{flow.question.asked:%Y%m%dT%H%M%S}"
    pending = get_open_request(flow)
    return f"input.{pending.request.id}" if pending is not None else ""


def _questions(world: World, flow: Flow, full: bool) -> Iterator[tuple[str, str]]:
    name, question, pending = question_name(world, flow), flow.question, get_open_request(flow)
    first = "Comment with one of these as the first line; the comment must not be edited afterwards:"
    if question is not None and name.startswith("ask."):
        ways = ["`/ashep answer …`"] if question.leads_back else ["`/ashep approve`", "`/ashep changes …`"]
        thumb = "\n\n👍 on this comment approves, too." if takes_thumb(flow) else ""
        text = f"**A question waits for an answer**\n\n{quoted(question.text, full=full)}\n\n{first}\n\n"
        yield name, text + "\n".join(f"- {way}" for way in (*ways, "`/ashep stop`")) + thumb
    elif pending is not None:
        words = quoted(question_of(pending.request), full=full)
        yield name, f"**The agent asks**\n\n{words}\n\n{first}\n\n- `/ashep answer …`\n- `/ashep stop`"


def takes_thumb(flow: Flow) -> bool:
    """Whether a thumbs-up is enough: not for work that is flagged, or that does not hold."""
    flags = flow.work.own.flags if flow.work.own is not None else ()
    return flow.question is not None and flow.question.about == "phase" and flow.question.human_phase and not flags


def _state(record: SourceIssue, flow: Flow | None, full: bool) -> str:
    head = f"**Agent Shepherd**: {_progress(record, flow)}."
    late = "Its text was changed since; work goes on with the text that was approved."
    if flow is not None and flow.stage == "closed":
        late = "Its text was changed since, and the new one was not approved: set the label again, and it is worked on."
    changed = record.admitted not in ("", record.view.text) and record.view.state == "open"
    head += f"\n\n{late}" if changed else ""
    if not full or flow is None:
        return head
    lines = [f"- phase {flow.phase}" if flow.phase and flow.stage in ("work", "person") else ""]
    lines += [f"- agent {flow.run.agent}" if flow.run is not None and not flow.run.ended else ""]
    lines += [f"- {flow.counters.runs} run{'' if flow.counters.runs == 1 else 's'}" if flow.counters.runs else ""]
    lines += [f"- cost of this cycle: {flow.counters.spent[1]:.2f}" if flow.counters.spent[1] else ""]
    lines += [f"- {_in_a_line(flow.why)}" if flow.why else ""]
    return "\n".join([head, "", *filter(None, lines)]).rstrip()


def _progress(record: SourceIssue, flow: Flow | None) -> str:
    if record.code and not (flow is not None and flow.stage in ("finishing", "closed")):
        return f"nothing is done about this: {_in_a_line(record.reason)}"
    if flow is None:
        return "this waits for its turn"
    match flow.stage:
        case "work":
            return (
                "this waits for an answer, below" if get_open_request(flow) is not None else "work on this is under way"
            )
        case "person":
            return "this waits for an answer, below"
        case "parked":
            return "work on this has stopped, and a person has to look at it where Agent Shepherd runs"
        case "finishing" if flow.reviewed and flow.work.pull is not None:
            return f"the pull request waits to be merged: {flow.work.pull.url}"
        case "finishing":
            return "the work is done and about to land"
        case "left":
            return "a person has taken this over"
        case "closed":
            return (
                result_text(flow)[:1].lower() + result_text(flow)[1:] if flow.code == "shepherd" else "this is closed"
            )
        case _:
            return "this waits for its turn"


def result_text(flow: Flow) -> str:
    """Say what became of it."""
    if flow.work.landed is None:
        return "Done"
    branch, commit = flow.work.landed
    return "Done; there was nothing to change" if flow.work.empty else f"Done: landed on `{branch}` as {commit[:12]}"
