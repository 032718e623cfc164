"""The real agent server stops answering in mid-turn, or holds more memory than it may: the run ends right."""

import os
import signal
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ashep.adapters.system.control_socket import ask
from ashep.extras.demo.scripted_model import ModelRequest, Reply, outcome_text
from tests.e2e.site import Site, until

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("managed")]


def lines(site: Site, kind: str) -> list[dict[str, Any]]:
    return [record for record in site.journal_all() if record["type"] == kind]


def tell(site: Site, began: datetime) -> None:
    """Say when the last turn that died was known to have; `pytest -rP` shows it."""
    died = datetime.fromisoformat(lines(site, "TurnDied")[-1]["at"])
    print(f"the turns' death was known after {(died - began).total_seconds():.1f} s")


@pytest.mark.full
def test_a_server_that_accepts_and_never_answers_is_replaced_in_mid_turn(site: Site) -> None:
    stopped = list[int]()

    def behaves(_: ModelRequest) -> Reply:
        return Reply(outcome_text()) if stopped else Reply("I think about it. " * 200, drip=0.3)

    issue = site.add("wedged", behaves=behaves)
    run = f"{issue}/implement.1.1"
    with site.working(issue, "--until-idle", "--idle-grace", "60s") as working:
        until(lambda: any(r["type"] == "PromptSent" for r in site.journal(issue)), 60, lambda: working.text)
        until(lambda: site.requests(run), 60, lambda: working.text)
        until(lambda: ask(site.state, {"do": "watch"})["signs"].get(run, {}).get("quiet", 99) < 9, 60)
        stopped.append(site.server_pid())
        began = datetime.now(UTC)
        os.kill(stopped[0], signal.SIGSTOP)
        assert working.wait(240) == 0, working.text
    done = site.runs(issue)
    assert [(one["state"], one["attempt"], one["restarts"]) for one in done] == [("succeeded", 1, 1)], working.text
    assert not Path(f"/proc/{stopped[0]}").exists()
    assert any(record["why"].startswith("it ended by itself") for record in lines(site, "ServerFailed"))
    tell(site, began)


@pytest.mark.promise("G1", "X11")
def test_a_server_that_is_killed_in_the_middle_of_three_runs(site: Site) -> None:
    killed = list[int]()

    def behaves(_: ModelRequest) -> Reply:
        return Reply(outcome_text()) if killed else Reply("I think about it. " * 200, drip=0.3)

    issues = [site.add(f"one of three, {number}", behaves=behaves) for number in range(3)]
    runs = [f"{issue}/implement.1.1" for issue in issues]
    site.config("worker: {max_concurrent_runs: 3, workspace: shared, lock_work_tree: false, allow_dirty: true}")
    try:
        with site.working(*issues, "--until-idle", "--idle-grace", "60s") as working:
            until(lambda: all(site.requests(run) for run in runs), 120, lambda: working.text)
            killed.append(site.server_pid())
            began = datetime.now(UTC)
            os.kill(killed[0], signal.SIGKILL)
            assert working.wait(240) == 0, working.text
    finally:
        site.config("")
    for issue, run in zip(issues, runs, strict=True):
        done = [(one["state"], one["attempt"], one["restarts"]) for one in site.runs(issue)]
        assert done == [("succeeded", 1, 1)], working.text
        assert site.requests(run) == 2, "each turn once more"
    assert lines(site, "ServerFailed")[-1]["why"].startswith("it ended by itself")
    tell(site, began)


def test_a_server_beyond_its_memory_limit_is_begun_anew_between_two_runs(site: Site) -> None:
    """One that has just begun holds more than the least that can be configured."""
    site.config("worker: {max_concurrent_runs: 1}\nrunners: {opencode: {memory_limit: 256MiB}}")
    before = len(lines(site, "ServerEnded"))
    issues = [site.add("beyond the limit"), site.add("and another one")]
    try:
        with site.working(*issues, "--until-idle", "--idle-grace", "20s") as working:
            assert working.wait(240) == 0, working.text
    finally:
        site.config("")
    ended = [record["why"] for record in lines(site, "ServerEnded")[before:]]
    assert ended.count("recycled") == 1, (working.text, lines(site, "ServerMemorySeen"))
    for issue in issues:
        assert [(one["state"], one["attempt"]) for one in site.runs(issue)] == [("succeeded", 1)]
