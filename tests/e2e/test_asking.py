"""What an agent asks in the midst of its work, on the real tools: answered by a person, by nobody, and over a kill."""

import json
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from ashep.extras.demo.scripted_model import Call, ModelRequest, Reply, outcome_text
from tests.e2e.site import Site, until

pytestmark = pytest.mark.real

WHICH = {"question": "Which colour?", "header": "colour", "options": [{"label": "red", "description": "warm"}]}
WHICH["options"] = [{"label": name, "description": name} for name in ("red", "green")]


def calling(*calls: Call) -> Callable[[ModelRequest], Reply]:
    """An agent that makes these calls, one after the other, and repeats in its summary what the last one said."""

    def play(ask: ModelRequest) -> Reply:
        if len(ask.results) < len(calls):
            return Reply(calls=(calls[len(ask.results)],))
        return Reply(outcome_text(summary=ask.results[-1][:300]))

    return play


@pytest.fixture
def rules(site: Site) -> Iterator[Callable[..., None]]:
    """Write rules and the bound of questions into config.yaml."""
    path = site.project / ".agent-shepherd" / "config.yaml"
    before = path.read_text()

    def write(deadline: str, *permissions: dict[str, str]) -> None:
        path.write_text(f"{before}questions: {{deadline: {deadline}}}\npermissions: {json.dumps(permissions)}\n")

    yield write
    path.write_text(before)


def asked(site: Site, issue: str) -> dict[str, Any]:
    """The issue, once the question stands on it."""

    def stands() -> dict[str, Any] | None:
        seen = site.issue(issue)
        comments = seen.get("comments") or []
        waits = seen["status"] == "blocked" and "needs:human_input" in (seen.get("labels") or [])
        return seen if waits and any("asks:**" in one["text"] for one in comments) else None

    return until(stands, 60, lambda: site.issue(issue))


def summary(site: Site, issue: str) -> str:
    (ended,) = [one for one in site.journal(issue) if one["type"] == "RunEnded"]
    assert ended["state"] == "succeeded"
    return str(ended["outcome"]["summary"])


@pytest.mark.promise("H4")
def test_a_person_answers_a_question_although_ashep_was_killed_meanwhile(site: Site, rules: Any) -> None:
    rules("10m")
    issue = site.add("asks which", behaves=calling(Call("question", {"questions": [WHICH]})))
    with site.working(issue) as working:
        asked(site, issue)
        status = json.loads(site.ashep("status", "--json"))
        (entry,) = [one for one in status["issues"] if one["issue"] == issue]
        assert (entry["state"], entry["code"]) == ("person", "input")
        assert "Which colour?" in entry["question"]["text"]
        working.signal(signal.SIGKILL)
        assert working.wait(10) == -signal.SIGKILL
    site.bd("comment", issue, "@ashep red", actor="ashep-agent")  # no person
    assert "answered as" in site.ashep("answer", issue, "2")
    answered = time.monotonic()
    with site.working(issue, "--until-idle", "--idle-grace", "20s") as working:
        closed = working.says("closed by shepherd")
        assert working.wait(240) == 0
    assert '"Which colour?"="green"' in summary(site, issue)
    assert site.prompts(f"{issue}/implement.1.1") == 1
    print(f"\nfrom the answer to the end of the issue, with a start of ashep between: {closed - answered:.1f} s")
    kinds = [one["type"] for one in site.journal(issue)]
    assert [kinds.count(kind) for kind in ("InputWanted", "RequestAnswered", "InputEnded")] == [1, 1, 1]
    assert "needs:human_input" not in (site.issue(issue).get("labels") or [])


@pytest.mark.promise("H5")
def test_what_a_rule_asks_about_is_allowed_by_a_comment_and_denied_by_time(site: Site, rules: Any) -> None:
    asks = {"tool": "bash", "pattern": "echo made *", "action": "ask"}
    rules("5m", asks)
    made = Call("bash", {"command": "echo made > by-leave.txt", "description": "write it"})
    first = site.add("asks for leave", behaves=calling(made))
    with site.working(first, "--until-idle", "--idle-grace", "20s") as working:
        asked(site, first)
        assert not (site.tree(first) / "by-leave.txt").exists()
        site.bd("comment", first, "@ashep yes")
        working.says("closed by shepherd")
    assert (site.tree(first) / "by-leave.txt").read_text() == "made\n"
    rules("10s", asks)
    made = Call("bash", {"command": "echo made > by-nobody.txt", "description": "write it"})
    second = site.add("asks, and nobody is there", behaves=calling(made))
    with site.working(second, "--until-idle", "--idle-grace", "20s") as working:
        working.says("closed by shepherd")
    assert site.tree(second).is_dir()
    assert not (site.tree(second) / "by-nobody.txt").exists()
    assert "nobody answered within 10s" in summary(site, second)
    records = site.journal(second)
    at = {one["type"]: one["at"] for one in records}
    assert {"RequestOpened", "InputWanted", "RequestAnswered", "InputEnded"} <= at.keys()
    print(f"\nopened {at['RequestOpened']}, answered {at['RequestAnswered']}, bound 10 s")


def test_what_no_rule_allows_is_denied_at_once_and_the_agent_goes_on(site: Site, rules: Any) -> None:
    rules("10m")
    write = Call("bash", {"command": "echo x > secret.env", "description": "write it"})
    issue = site.add("reads a secret", behaves=calling(write, Call("read", {"filePath": "secret.env"})))
    assert site.work_until_idle(issue) == 0
    assert "no rule allows it. Go on without it" in summary(site, issue)
    records = [one for one in site.journal(issue) if one["type"] in ("RequestOpened", "RequestAnswered")]
    assert [one["type"] for one in records] == ["RequestOpened", "RequestAnswered"]
