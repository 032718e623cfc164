"""A turn that hangs on the real OpenCode server is looked into by another prompt, in a read session of its own."""

import pytest

from ashep.extras.demo.scripted_model import ModelRequest, Reply, outcome_text
from tests.e2e.site import Site

pytestmark = pytest.mark.real

SILENT = "fell silent: its turn was stopped"


@pytest.mark.promise("T12")
def test_a_turn_that_hangs_is_looked_into_and_tried_again(site: Site) -> None:
    asked: list[str] = []

    def behave(ask: ModelRequest) -> Reply:
        if SILENT in ask.prompt:
            asked.append(ask.prompt)
            return Reply(outcome_text("retry", summary="the provider said nothing"))
        return Reply(outcome_text()) if asked else Reply(hang=True)

    issue = site.add("get stuck", "policy:stuck", behaves=behave)
    working = site.living()
    began = working.says(f"{issue}/implement.1.1 goes to", 60)
    print("looked into and ended after", working.says(f"{issue}/implement.1.1 stalled", 120) - began)
    working.says(f"{issue} closed by shepherd", 120)
    first, second = site.runs(issue)
    assert (first["state"], second["state"]) == ("stalled", "succeeded")
    assert "says retry: the provider said nothing" in first["why"]
    assert len(asked) == 1
    assert "get stuck" in asked[0], "the end of the session holds the task"
    opened = [one for one in site.journal(issue) if one["type"] == "OpenSession"]
    assert [(one["access"], one["session_key"].endswith("/diagnose")) for one in opened] == [
        ("write", False),
        ("read", True),
        ("write", False),
    ]
