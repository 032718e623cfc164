"""The life that is killed: a review that rejects once, an issue that the first one leads to, a person who approves.

In work trees of issues' own what agents did is verified by a program, and lands on the base before its issue closes.
"""

import json

from ashep.extras.demo.project import run_of
from ashep.extras.demo.scripted_model import Call, ModelRequest, Reply, outcome_text

POLICIES = """
version: 1
default_policy: null
policies:
  whole:
    match: {types: [task]}
    phases:
      - {name: implement, capabilities: [implement], access: write, timeout: 2m, retry: {max_attempts: 1}}
      - name: review
        capabilities: [review]
        access: read
        timeout: 2m
        verdicts: [approve, needs_changes]
        retry: {max_attempts: 1}
        next: {approve: sign_off, needs_changes: implement}
      - {name: sign_off, human: {ask: "Fine?", approved: close}}
  short:
    match: {types: [chore]}
    phases:
      - {name: implement, capabilities: [implement], access: write, timeout: 2m, retry: {max_attempts: 1}}
"""
"""One attempt a phase: whatever burns one, parks the issue, and is seen."""

PROVEN = POLICIES.replace(
    "access: write,",
    "access: write, verify: true, checks: [{id: wrote, type: test_pass, verify: {command: [sh, test.sh]}}],",
)
"""The same, where what agents say is not believed."""

TEST = "cat effects-*.txt\n"
"""The project's own test: somebody did something."""

PHASES = ("implement.1.1", "review.1.1", "implement.2.1", "review.2.1")
"""The runs of the first issue; the one that it leads to has the first of them only."""

EFFECT = "effects.txt"
"""A file of the work tree to which the first run's tool adds a line: what a tool did twice is seen."""


def effect_of(issue: str) -> str:
    """The same file for an issue in a tree of its own: two that write one file would contradict each other."""
    return f"effects-{issue}.txt"


def play(ask: ModelRequest, *, commits: bool = True) -> Reply:
    """The agents, by the run that the prompt begins with; in trees of issues' own they leave the commit to ashep."""
    run = run_of(ask.prompt) or ""
    issue, _, way = run.partition("/")
    if way.startswith("review."):
        return Reply(outcome_text("needs_changes" if way.startswith("review.1") else "approve"))
    if way != "implement.1.1" or ask.session == "":
        return Reply(outcome_text())
    if not ask.results:
        command = f"echo {run} >> {EFFECT if commits else effect_of(issue)}"
        if commits:
            command += f" && git add {EFFECT} && git commit -qm work -m 'Ashep-Run: {run}'"
        return Reply(calls=(Call("bash", {"command": command, "description": "work"}),))
    body: dict[str, object] = {"result": "success", "summary": "done"}
    if issue.endswith("-1"):
        body["created_issues"] = [{"title": "found on the way", "type": "chore"}]
    return Reply(f"```json\n{json.dumps(body)}\n```\n")
