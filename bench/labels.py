"""How soon a person's answer is acted on: a label is set by bd, and the issue is closed."""

import os
import random
import signal
import time
from datetime import datetime
from statistics import median

from bench.figures import Figure
from bench.place import PEOPLE, Project, Tools, model, say, server, template
from bench.processes import end

PATIENCE = 60.0


def measure(tools: Tools, *, trials: int) -> list[Figure]:
    """Answer questions one after the other, at no moment in particular."""
    project = template(tools, trials).copy("labels")
    with model(tools) as url, server(tools, url, "server-labels") as agents:
        project.configure(PEOPLE, agents)
        daemon = project.work()
        try:
            issues = sorted(_waited(project, "CommentPosted", trials))
            say(f"labels: {trials} questions are asked")
            answered = {issue: _answer(project, issue, number) for number, issue in enumerate(issues, 1)}
            one_call = median(took for _, took in answered.values())
            os.kill(daemon.pid, signal.SIGTERM)
            daemon.wait(20)
        finally:
            end(daemon)
    heard, written = _waited(project, "PersonAnswered", trials), _closings(project)
    acted = [heard[issue] - at for issue, (at, _) in answered.items()]
    landed = [written[issue] - at for issue, (at, _) in answered.items()]
    middle = f"median {median(acted):.2f} s of {trials}, while one call of bd took {one_call:.2f} s"
    last = f"median {median(landed):.2f} s"
    return [
        Figure("a person's label is acted on, at most", max(acted), "s", 2.0, middle),
        Figure("  until ashep's own write has landed, at most", max(landed), "s", None, last),
    ]


def _waited(project: Project, kind: str, count: int) -> dict[str, float]:
    """When a fact of this kind was written for each issue, once there are so many."""
    deadline = time.monotonic() + PATIENCE + 3 * count
    while time.monotonic() < deadline:
        found = {str(one["issue"]): _moment(one["at"]) for one in project.journal() if one["type"] == kind}
        if len(found) >= count:
            return found
        time.sleep(0.3)
    raise TimeoutError(f"{count} {kind} did not come: {project.said()}")


def _answer(project: Project, issue: str, number: int) -> tuple[float, float]:
    """Set the label, and wait until the issue is closed; gives when bd had set it, and how long that took."""
    time.sleep(random.uniform(0.5, 2.0))
    begin = time.monotonic()
    project.tools.run(project.tools.bd, "label", "add", issue, "human:approved", cwd=project.folder)
    at, took = time.time(), time.monotonic() - begin
    _waited(project, "IssueClosed", number)
    say(f"labels: {number} answered")
    return at, took


def _closings(project: Project) -> dict[str, float]:
    """When the answer to each closing write was written down."""
    closing = {one["key"] for one in project.journal() if one["type"] == "WriteIssue" and one["kind"] == "close"}
    return {str(one["issue"]): _moment(one["at"]) for one in project.journal()
            if one["type"] == "IssueWritten" and one["key"] in closing}  # fmt: skip


def _moment(text: object) -> float:
    return datetime.fromisoformat(str(text)).timestamp()
