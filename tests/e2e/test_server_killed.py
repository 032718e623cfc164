"""The agent server is killed at each phase of a turn: the turn is begun again where it has to be, and counted."""

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from threading import Timer
from typing import Any

import pytest

from ashep.extras.demo.scripted_model import Call, ModelRequest, Reply, outcome_text
from tests.e2e.site import Site, until
from tests.full import repeated

pytestmark = [pytest.mark.real, pytest.mark.usefixtures("managed")]


class Killer:
    """Kills the server once."""

    def __init__(self, site: Site) -> None:
        self.site, self.left = site, 1

    def now(self) -> None:
        if self.left:
            self.left -= 1
            with suppress(ProcessLookupError):
                os.kill(self.site.server_pid(), signal.SIGKILL)

    def soon(self, seconds: float) -> None:
        Timer(seconds, self.now).start()


Behaves = Callable[[Killer, ModelRequest], Reply]
DONE = Reply(outcome_text())


def work(command: str) -> Reply:
    return Reply(calls=(Call("bash", {"command": command, "description": "work"}),))


def under_way(killer: Killer, _: ModelRequest) -> Reply:
    if killer.left:
        killer.soon(0.8)
        return Reply("I think about it. " * 10 + outcome_text(), drip=0.1)
    return DONE


def as_it_is_asked(killer: Killer, _: ModelRequest) -> Reply:
    killer.now()
    return DONE


def tool_running(killer: Killer, ask: ModelRequest) -> Reply:
    if ask.results:
        return DONE
    if killer.left:
        killer.soon(1.0)
        return work("sleep 4")
    return work("true")


def between_steps(killer: Killer, ask: ModelRequest) -> Reply:
    if not ask.results:
        return work("true")
    killer.now()
    return DONE


def just_finished(killer: Killer, _: ModelRequest) -> Reply:
    killer.soon(0.15)
    return DONE


def in_the_recovery(killer: Killer, ask: ModelRequest) -> Reply:
    if "did not hold a valid report" not in ask.prompt:
        return Reply("I am done, and report nothing.")
    if killer.left:
        killer.soon(0.5)
        return Reply("I think about it. " * 10 + outcome_text(), drip=0.1)
    return DONE


PHASES: dict[str, tuple[Behaves, set[int]]] = {
    "as it is asked": (as_it_is_asked, {0, 1}),
    "under way": (under_way, {1}),
    "tool running": (tool_running, {1}),
    "between steps": (between_steps, {0, 1}),
    "just finished": (just_finished, {0, 1}),
    "in the recovery": (in_the_recovery, {1}),
}
"""By phase, how the model behaves, and how many turns may have to be started again."""


REPEATS = ("as it is asked", "under way", "between steps", "just finished")
"""What is seen elsewhere, too: test_server_bounds.py kills it with three turns under way, below it is as a
prompt is delivered, and the others wait as here."""


@pytest.mark.promise("G1")
@pytest.mark.parametrize("phase", [*(one for one in PHASES if one not in REPEATS), *repeated(*REPEATS)])
def test_the_server_is_killed_in_a_phase_of_a_turn(site: Site, phase: str) -> None:
    behaves, allowed = PHASES[phase]
    killer = Killer(site)
    issue = site.add(phase, behaves=lambda ask: behaves(killer, ask))
    run = f"{issue}/implement.1.1"
    assert site.work_until_idle(issue, 120) == 0
    check(site, issue, run, allowed, prompts=2 if phase == "in the recovery" else 1)
    assert not killer.left


@pytest.mark.parametrize("record", ["SendPrompt", *repeated("SessionOpened", "PromptSent")])
def test_the_server_is_killed_around_the_delivery_of_a_prompt(site: Site, record: str) -> None:
    issue = site.add(f"killed at {record}")
    run = f"{issue}/implement.1.1"

    def written() -> bool:
        return any(one["type"] == record and one.get("run") == run for one in site.journal(issue))

    killer = Killer(site)
    with site.working(issue, "--until-idle", "--idle-grace", "40s") as working:
        until(written, 60, lambda: working.text)
        killer.now()
        assert working.wait(240) == 0, working.text
    check(site, issue, run, {0, 1})


def check(site: Site, issue: str, run: str, allowed: set[int], prompts: int = 1) -> None:
    """The turn of each prompt once, and so many times more as the record says."""
    seen = site.issue(issue)
    assert seen["status"] == "closed", site.ashep("why", issue)
    lines: list[dict[str, Any]] = site.runs(issue)
    assert [(line["run"], line["state"]) for line in lines] == [(run, "succeeded")]
    restarts = lines[0]["restarts"]
    begun = sum(ask.kind == "turn" and f"Run: {run}" in ask.prompt for ask in site.model.asks)
    assert restarts in allowed
    assert prompts <= begun <= prompts + restarts, f"{begun} turns, {restarts} counted"
