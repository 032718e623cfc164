"""A model and a person that misbehave, on the real OpenCode server: how soon it is noticed, and how it ends.

A hang is in `test_stall.py`, refusals in `test_providers.py`, messages of a person in `test_takeover.py`, questions in
`test_asking.py`, a killed and a wedged server in `test_server_bounds.py`.
"""

import time
from pathlib import Path

import pytest

from ashep.extras.demo.scripted_model import Call, ModelRequest, Reply, outcome_text
from tests.e2e.site import Site, until

pytestmark = pytest.mark.real


class Bad:
    """Answers so many requests badly, then well."""

    def __init__(self, reply: Reply, times: int = 1) -> None:
        self.reply, self.left = reply, times
        self.since: float | None = None
        """When it was bad first."""

    def __call__(self, ask: ModelRequest) -> Reply:
        if self.left == 0:
            return Reply(outcome_text())
        self.left -= 1
        self.since = self.since or time.monotonic()
        return self.reply

    @property
    def age(self) -> float:
        """Seconds since it was bad first."""
        assert self.since is not None
        return time.monotonic() - self.since


def states(site: Site, issue: str) -> list[tuple[str, int]]:
    return [(run["state"], run["attempt"]) for run in site.runs(issue)]


def refusals(site: Site, issue: str) -> list[str]:
    """As what each refusal of a provider was taken that met this issue."""
    return [one["kind"] for one in site.journal_all() if one["type"] == "ProviderRefused" and issue in one["run"]]


def test_a_stream_that_breaks_off_is_asked_for_again_and_costs_nothing(site: Site) -> None:
    model = Bad(Reply("I begin, and", drop=True))
    issue = site.add("dropped", behaves=model)
    working = site.living()
    working.says(f"{issue} closed by shepherd", 90)
    print("ended right after", model.age)
    assert states(site, issue) == [("succeeded", 1)]
    assert site.requests(f"{issue}/implement.1.1") == 2


def test_a_provider_that_fails_three_times_is_waited_for_in_the_turn(site: Site) -> None:
    model = Bad(Reply("internal error", status=500), times=3)
    issue = site.add("failing", behaves=model)
    working = site.living()
    until(lambda: [one for one in site.journal_all() if one["type"] == "ProviderRefused" and issue in one["run"]], 60)
    print("noticed after", model.age)
    assert not [one for one in site.journal(issue) if one["type"] == "RunEnded"], "while the turn goes on"
    working.says(f"{issue} closed by shepherd", 90)
    print("ended right after", model.age)
    assert states(site, issue) == [("succeeded", 1)]
    assert set(refusals(site, issue)) == {"down"}


def test_output_without_an_end_is_stopped_at_the_deadline(site: Site) -> None:
    model = Bad(Reply("and on " * 7_000, drip=0.25))
    issue = site.add("endless", "policy:short", behaves=model)
    working = site.living()
    working.says(f"{issue}/implement.1.1 timed_out", 240)
    print("stopped after", model.age, "s of half an hour; its timeout is 15 s from the prompt on")
    working.says(f"{issue} closed by shepherd", 90)
    assert states(site, issue) == [("timed_out", 1), ("succeeded", 2)]


@pytest.mark.promise("G6")
def test_while_a_very_long_answer_is_read_the_daemon_answers(site: Site) -> None:
    """On one processor: 125 KiB of opened fences took more than a minute, in which nobody was answered."""
    model = Bad(Reply("```json\n" * 40_000 + outcome_text()))
    issue, alone = site.add("fences", behaves=model), site.add("alone")
    working = site.living()
    until(lambda: site.prompts(f"{issue}/implement.1.1"), 90)
    waited = list[float]()
    while f"{issue} closed by shepherd" not in working.text and len(waited) < 60:
        began = time.monotonic()
        assert "paused" in site.ashep("pause")
        waited.append(time.monotonic() - began)
        site.ashep("resume")
    print("answered after", sorted(waited)[-3:])
    working.says(f"{alone} closed by shepherd", 90)
    working.says(f"{issue} closed by shepherd", 90)
    # a command of its own takes the time of starting Python; one that waits for the fences took more than a minute
    assert max(waited) < 30


def test_what_lies_outside_is_denied_at_once_and_the_run_goes_on(site: Site) -> None:
    said: list[str] = []

    def behave(ask: ModelRequest) -> Reply:
        if not ask.results:
            return Reply(calls=(Call("read", {"filePath": "/etc/hostname"}),))
        said.append(ask.results[-1])
        return Reply(outcome_text())

    issue = site.add("curious", behaves=behave)
    working = site.living()
    began = working.says(f"{issue}/implement.1.1 goes to", 60)
    ended = working.says(f"{issue} closed by shepherd", 90)
    print("went on and ended after", ended - began)
    assert states(site, issue) == [("succeeded", 1)]
    assert said
    assert Path("/etc/hostname").read_text().strip() not in said[0]


def test_a_person_who_stops_the_turn_has_the_issue(site: Site) -> None:
    model = Bad(Reply("I think about it, slowly. " * 40, drip=0.4))
    issue = site.add("stopped", behaves=model)
    working = site.living()
    until(lambda: site.prompts(f"{issue}/implement.1.1"), 90)
    session = next(one["session"] for one in site.journal(issue) if one["type"] == "SessionOpened")
    until(lambda: [one for one in site.journal(issue) if one["type"] == "TurnSeen"], 30)
    stopped = time.monotonic()
    site.person_in(session, "abort")
    until(lambda: "ashep:paused" in site.issue(issue).get("labels", []), 60)
    print("paused after", time.monotonic() - stopped)
    asked = site.requests(f"{issue}/implement.1.1")
    time.sleep(5)
    assert site.requests(f"{issue}/implement.1.1") == asked, "nothing is sent"
    site.ashep("release", issue)
    working.says(f"{issue} closed by shepherd", 90)
    assert states(site, issue) == [("aborted", 1), ("succeeded", 2)]
