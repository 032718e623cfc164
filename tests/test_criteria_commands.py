"""`ashep criteria`, as a person and as an agent use it, on a database of the real bd."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from ashep.config import write_starter
from ashep.ports.tracker import IssueText
from tests.conformance.trackers import Beads, BeadsWorld
from tests.test_cli import ASHEP

YAML = "checks:\n- {id: readme, type: file_exists, description: d, verify: {path: README.md}}\n"
CLAIM = '--metadata={"ashep":{"instance":"0f","seq":7,"run":"r","visit":1,"attempt":1,"runs":1}}'


@pytest.mark.promise("F40")
@pytest.mark.real
def test_checks_are_shown_refused_and_set(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    world = BeadsWorld(Beads.make(tmp_path_factory.getbasetemp() / "beads"), tmp_path / "project")
    write_starter(world.project / ".agent-shepherd")
    subprocess.run(["git", "config", "user.name", "Ann Example"], cwd=world.project, check=True)
    env = dict(world.beads.env) | {"PATH": f"{world.beads.program.parent}:{os.environ['PATH']}"}

    def ashep(*words: str, stdin: str = "", **more: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [ASHEP, "criteria", *words], cwd=world.project, env=env | more, input=stdin, capture_output=True, text=True,
            timeout=240,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    def acceptance() -> str:
        return json.loads(world.bd("ann", "show", issue, "--json"))[0]["acceptance_criteria"]

    issue = world.add("Work", text=IssueText(acceptance="It works.\n\n```yaml\nchecks: 3\n```\nAnd is fast."))
    assert ashep(issue)[:2] == (
        1,
        f"error acceptance criteria of {issue}:4: checks: expected a list of checks, found the number 3 [wrong-type]\n",
    )
    before = acceptance()
    code, _, said = ashep(issue, "--set", "-", stdin=YAML.replace("path", "pth"))
    assert (code, said.split("\n")[0]) == (
        2,
        "ashep: standard input:2: checks[0].verify.pth: unknown key; did you mean path?",
    )
    code, _, said = ashep(issue, "--set", "-", stdin=YAML, BEADS_ACTOR="ashep-agent")
    assert code == 2
    assert "only a person" in said
    assert acceptance() == before, "nothing was written"

    world.bd("ashep-test", "update", issue, "--status=in_progress", "--assignee=ashep-test", CLAIM)
    (world.project / "checks.yaml").write_text(YAML)
    code, out, said = ashep(issue, "--set", "checks.yaml")
    assert code == 0, said
    assert out.startswith(f"{issue}: 1 check, hash ")
    assert "set as Ann Example" in out
    assert said == f"ashep: {issue} has begun: the checks that it had when it was taken go on to count\n"
    assert acceptance() == f"It works.\n\n```yaml\n{YAML}```\nAnd is fast."

    code, out, _ = ashep(issue, "--json")
    told = json.loads(out)
    assert (code, told["line"], [check["id"] for check in told["checks"]]) == (0, 3, ["readme"])
    assert ashep(issue, "--lint")[:2] == (0, f"{issue}: no mistake found\n")
    assert ashep("t-none")[0] == 1
