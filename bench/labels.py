"""How soon a person's answer is acted on: bd sets a label, and the issue is closed, with nothing to land or with work.

The second project has `OTHERS` more issues, which wait: a look at bd's database is a look at all of them.
"""

import os
import random
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median

from bench.figures import Figure
from bench.place import PEOPLE, Project, Tools, model, say, server, template
from bench.processes import end

PATIENCE = 60.0
OTHERS = 500
"""Issues beside those that are answered, in the project that lands."""

APPROVED = """
version: 1
default_policy: approved
policies:
  approved:
    match: {types: [task]}
    phases:
      - {name: implement, capabilities: [implement], access: write}
      - {name: asked, human: {ask: "Shall it land?", approved: close, changes_requested: implement}}
"""


def measure(tools: Tools, *, trials: int) -> list[Figure]:
    """Answer questions one after the other, at no moment in particular."""
    project = template(tools, trials).copy("labels")
    with model(tools) as url, server(tools, url, "server-labels") as agents:
        project.configure(PEOPLE, agents)
        answers = _answer_all(project, "CommentPosted", trials)
    one_call = median(answer.call for answer in answers)
    middle = f"median {{:.2f}} s of {trials}, while one call of bd took {one_call:.2f} s"
    acted, closed = _delays(project, answers, "PersonAnswered"), _closing_delays(project, answers)
    figures = [
        Figure("a person's label is acted on, at most", max(acted), "s", 2.0, middle.format(median(acted))),
        Figure("  until ashep's own write is done, at most", max(closed), "s", None, f"median {median(closed):.2f} s"),
    ]
    return figures + _measure_landing(tools, trials)


def _measure_landing(tools: Tools, trials: int) -> list[Figure]:
    """Approve work that then lands, in a project with many issues: what the time from the label is made of."""
    project = template(tools, trials, others=OTHERS).copy("approvals")
    with model(tools, "bench.parallel", "0") as url, server(tools, url, "server-approvals", project.folder) as agents:
        project.configure(APPROVED, agents, worker="workspace: worktree, max_concurrent_runs: 3")
        answers = _answer_all(project, "PersonAsked", trials)
    closed = _closing_delays(project, answers)
    parts = [
        f"{name} {median(_delays(project, answers, kind)):.2f} s"
        for name, kind in (("answer", "PersonAnswered"), ("landed", "WorkLanded"), ("closed", "IssueClosed"))
    ]
    made = f"{len(closed)} approvals in {trials + OTHERS} issues; {', '.join(parts)}; at most {max(closed):.2f} s"
    return [Figure("from approval to closed and landed, p50", median(closed), "s", 5.0, made)]


@dataclass(frozen=True)
class _Answer:
    """An issue, when bd had set the label (seconds since the epoch), and how long that call took."""

    issue: str
    at: float
    call: float


def _answer_all(project: Project, asked: str, trials: int) -> list[_Answer]:
    """Run the daemon until so many questions are asked, and answer each."""
    daemon = project.work()
    try:
        issues = sorted(_waited(project, asked, trials))
        say(f"labels: {trials} questions are asked")
        answers = [_answer(project, issue, number) for number, issue in enumerate(issues, 1)]
        os.kill(daemon.pid, signal.SIGTERM)
        daemon.wait(20)
    finally:
        end(daemon)
    return answers


def _delays(project: Project, answers: Sequence[_Answer], kind: str) -> list[float]:
    """Seconds from each label to this fact of its issue."""
    moments = _waited(project, kind, len(answers))
    return [moments[answer.issue] - answer.at for answer in answers]


def _waited(project: Project, kind: str, count: int) -> dict[str, float]:
    """When a fact of this kind was written for each issue, once there are so many."""
    deadline = time.monotonic() + PATIENCE + 3 * count
    while time.monotonic() < deadline:
        found = {str(one["issue"]): _moment(one["at"]) for one in project.journal() if one["type"] == kind}
        if len(found) >= count:
            return found
        time.sleep(0.3)
    raise TimeoutError(f"{count} {kind} did not come: {project.said()}")


def _answer(project: Project, issue: str, number: int) -> _Answer:
    """Set the label, and wait until the issue is closed."""
    time.sleep(random.uniform(0.5, 2.0))
    begin = time.monotonic()
    project.tools.run(project.tools.bd, "label", "add", issue, "human:approved", cwd=project.folder)
    answer = _Answer(issue, time.time(), time.monotonic() - begin)
    _waited(project, "IssueClosed", number)
    say(f"labels: {number} answered")
    return answer


def _closing_delays(project: Project, answers: Sequence[_Answer]) -> list[float]:
    """Seconds from each label to when the tracker had closed its issue."""
    closing = {record["key"] for record in project.journal()
               if record["type"] == "WriteIssue" and record["kind"] == "close"}  # fmt: skip
    written = {str(record["issue"]): _moment(record["at"]) for record in project.journal()
               if record["type"] == "IssueWritten" and record["key"] in closing}  # fmt: skip
    return [written[answer.issue] - answer.at for answer in answers]


def _moment(text: object) -> float:
    return datetime.fromisoformat(str(text)).timestamp()
