"""A provider that refuses, on the real OpenCode server: its phases wait, no attempt is used up, and they go on."""

import json
import time
from datetime import datetime, timedelta

import pytest

from ashep.extras.demo.scripted_model import ModelRequest, Reply, outcome_text
from tests.e2e.site import Site, until

pytestmark = pytest.mark.real


class Refusing:
    """A model that refuses while it is told to."""

    def __init__(self, reply: Reply) -> None:
        self.reply: Reply | None = reply
        self.since: float | None = None
        """When it refused first."""

    def __call__(self, ask: ModelRequest) -> Reply:
        if self.reply is None:
            return Reply(outcome_text())
        self.since = self.since or time.monotonic()
        return self.reply


def waiting(site: Site) -> list[tuple[str, int]]:
    """The providers that take nothing, each with how many issues wait."""
    daemon = json.loads(site.ashep("status", "--json"))["daemon"]
    return [(one["state"], one["waiting"]) for one in daemon["providers"]]


@pytest.mark.promise("U1")
def test_a_limit_ends_the_run_without_blame_and_it_goes_on_in_its_session(site: Site) -> None:
    model = Refusing(Reply("rate limit exceeded", status=429, retry_after=75))
    issue = site.add("limited", behaves=model)
    working = site.living()
    working.says(f"{issue}/implement.1.1 aborted", 60)
    assert model.since is not None
    print("noticed after", time.monotonic() - model.since)
    (refused,) = [one for one in site.journal_all() if one["type"] == "ProviderRefused" and issue in one["run"]]
    waits = datetime.fromisoformat(refused["until"]) - datetime.fromisoformat(refused["at"])
    assert timedelta(seconds=60) < waits < timedelta(seconds=81), "as long as the provider said, from then on"
    until(lambda: waiting(site) == [("limited", 1)], 30)
    model.reply = None
    working.says(f"{issue}/implement.1.2 goes to", 180)
    print("went on after", time.monotonic() - model.since)
    assert time.monotonic() - model.since > 70
    working.says(f"{issue} closed by shepherd", 60)
    assert waiting(site) == []
    runs = site.runs(issue)
    assert [(run["state"], run["session"] == runs[0]["session"]) for run in runs] == [
        ("aborted", True),
        ("succeeded", True),
    ]


def test_refused_credentials_wait_for_a_person_who_resumes(site: Site) -> None:
    model = Refusing(Reply("bad key", status=401))
    issue = site.add("barred", behaves=model)
    working = site.living()
    working.says(f"{issue}/implement.1.1 aborted", 60)
    until(lambda: waiting(site) == [("unauthorized", 1)], 30)
    asked = site.requests(f"{issue}/implement.1.1")
    time.sleep(5)
    assert site.requests(f"{issue}/implement.1.1") == asked, "nobody asks again"
    model.reply = None
    site.ashep("resume")
    working.says(f"{issue} closed by shepherd", 60)
    assert [run["state"] for run in site.runs(issue)] == ["aborted", "succeeded"]
