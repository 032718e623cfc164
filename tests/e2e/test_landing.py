"""Work that is looked into and brought onto the base, on the real git, Beads and OpenCode."""

import json
from collections.abc import Callable, Iterator

import pytest

from ashep.extras.demo.project import run_of
from ashep.extras.demo.scripted_model import Call, ModelRequest, Reply, outcome_text
from tests.e2e.site import Site, until

pytestmark = pytest.mark.real

PROGRAM = {"words.txt": "zero\n", "test.sh": "grep -qx zero words.txt && ! grep -vx '[a-z]*' words.txt\n"}
"""The program that issues work on, and its test: every word is a small one."""

OWN_CHECK = """Say it.

```yaml
checks:
  - {id: says_one, description: it says one, type: file_exists, verify: {path: words.txt, contains: [one]}}
```
"""


def by_run(**commands: str) -> Callable[[ModelRequest], Reply]:
    """An agent that runs the command which stands for its visit and attempt, `a1_2`, and says that it succeeded."""

    def behave(ask: ModelRequest) -> Reply:
        way = (run_of(ask.prompt) or "").partition(".")[2].replace(".", "_")
        if not ask.results and f"a{way}" in commands:
            return Reply(calls=(Call("bash", {"command": commands[f"a{way}"], "description": "work"}),))
        return Reply(outcome_text(summary=(ask.results or ("nothing was to be done",))[-1][:200]))

    return behave


def until_true(command: str) -> str:
    """Wait in an agent's shell."""
    return f"until {command} > /dev/null; do sleep 0.2; done"


@pytest.fixture
def base(site: Site) -> Iterator[str]:
    """The branch that work is to land on; it holds the program."""
    for name, text in PROGRAM.items():
        (site.project / name).write_text(text)
    site.run("git", "add", *PROGRAM)
    site.run("git", "commit", "-qm", "a program")
    site.config("worker: {workspace: worktree, max_concurrent_runs: 4}")
    yield site.run("git", "symbolic-ref", "--short", "HEAD").strip()
    site.config("")


def comments(site: Site, issue: str) -> list[str]:
    return [one["text"] for one in site.issue(issue).get("comments") or []]


def landed(site: Site, issue: str) -> str:
    """Give the commit that landed an issue, once; bd says so, and what was found in it."""
    assert site.issue(issue)["status"] == "closed"
    (fact,) = [one for one in site.journal(issue) if one["type"] == "WorkLanded"]
    assert site.run("git", "merge-base", "--is-ancestor", fact["commit"], "HEAD") == ""
    (comment,) = [one for one in comments(site, issue) if "Landed on" in one]
    tree = site.run("git", "rev-parse", f"{fact['commit']}^{{tree}}").strip()
    assert fact["commit"] in comment
    assert f"passed in tree {tree[:12]}" in comment
    return fact["commit"]


def verified(site: Site, issue: str) -> list[tuple[str, list[str]]]:
    """Give what was verified of an issue's runs: the run, and the checks that failed."""
    found = [one for one in site.journal(issue) if one["type"] == "WorkVerified" and one.get("run")]
    return [
        (one["run"].partition("/")[2], [r["check_id"] for r in one["results"] if r["status"] != "passed"])
        for one in found
    ]


def prompt(site: Site, run: str) -> str:
    """Give what a run's agent was told."""
    return next(ask.prompt for ask in site.model.asks if run_of(ask.prompt) == run)


def waiting(site: Site, issue: str) -> str | None:
    """Give why the base cannot be moved for an issue's work, if it waits for that."""
    told = json.loads(site.ashep("status", "--json"))["issues"]
    return next((one["reason"] for one in told if one["issue"] == issue and one["code"] == "landing_dirty"), None)


@pytest.mark.promise("Z5")
def test_four_ways_onto_the_base(site: Site, base: str) -> None:
    """In one life, for that costs seconds to begin: `first` fails a check and mends it · `second` began from the same
    base, contradicts `first` and resolves that · `nothing` changes nothing, and a person lets it pass · `third` waits
    for the person who is at work where the base is checked out.
    """
    both = "printf 'zero\\none\\ntwo\\n' > words.txt && git add words.txt && git commit -qm both"
    second = site.add(
        "say two",
        "policy:proven",
        behaves=by_run(
            a1_1=f"{until_true(f'git show {base}:words.txt | grep -qx one')} && echo two >> words.txt && echo done",
            a2_1=f"git merge -q {base} > /dev/null; {both} && echo merged",
        ),
    )
    first = site.add(
        "say one",
        "policy:proven",
        acceptance=OWN_CHECK,
        behaves=by_run(
            a1_1=f"{until_true(f'git rev-parse -q --verify ashep/{second}')} && echo One >> words.txt",
            a1_2="printf 'zero\\none\\n' > words.txt && cat words.txt",
        ),
    )
    third = site.add(
        "say three",
        "policy:proven",
        behaves=by_run(
            a1_1=f"{until_true('git rev-parse -q --verify refs/tags/go')} && echo three > 3.txt && echo three >> a.txt"
        ),
    )
    nothing = site.add("say nothing", "policy:proven", behaves=by_run())
    with site.working(first, second, third, nothing) as working:
        asked = until(lambda: comments(site, nothing), 180, lambda: working.text)  # after its label
        assert "changes nothing" in asked[-1]
        assert site.issue(nothing)["status"] == "blocked"
        site.label(nothing, "human:approved")
        for issue in (first, second, nothing):
            working.says(f"{issue} closed by shepherd", 180)
        assert (site.project / "words.txt").read_text() == "zero\none\ntwo\n"
        (site.project / "a.txt").write_text("a person is at work here\n")
        site.run("git", "tag", "go")
        assert "uncommitted changes: a.txt" in until(lambda: waiting(site, third), 120, lambda: working.text)
        assert (site.project / "a.txt").read_text() == "a person is at work here\n"
        site.run("git", "checkout", "-q", "a.txt")
        working.says(f"{third} closed by shepherd", 180)
    heads = [landed(site, issue) for issue in (first, second, third)]
    assert site.run("git", "rev-parse", base).strip() == heads[-1]
    assert (site.project / "3.txt").read_text() == "three\n"
    site.run("sh", "test.sh")
    assert verified(site, first) == [("implement.1.1", ["program", "says_one"]), ("implement.1.2", [])]
    assert verified(site, second) == [("implement.1.1", []), ("implement.2.1", [])]
    assert [run for run, _ in verified(site, nothing)] == ["implement.1.1", "implement.1.2"]
    (failed, *_) = [one for one in site.journal(first) if one["type"] == "WorkVerified"]
    for result in failed["results"]:
        assert result["check_id"] in prompt(site, f"{first}/implement.1.2")
        assert result["message"] in prompt(site, f"{first}/implement.1.2")
    assert "<<<<<<<" in prompt(site, f"{second}/implement.2.1")
    assert len([one for one in site.journal(third) if one["type"] == "WorkIntegrated"]) == 1


OFFLINE = """It builds.

```yaml
checks:
  - id: builds
    type: test_pass
    description: it builds
    verify: {command: [sh, -c, "echo Could not resolve host; exit 6"]}
```
"""


@pytest.mark.promise("Z7")
def test_a_check_that_cannot_pass_here_costs_one_attempt_and_a_question(site: Site, base: str) -> None:
    words = by_run(a1_1="echo four >> words.txt && echo done")
    issue = site.add("say four", "policy:proven", acceptance=OFFLINE, behaves=words)
    with site.working(issue) as working:
        asked = until(lambda: comments(site, issue), 180, lambda: working.text)
        assert "builds fails on the base, too (likely cause: " in asked[-1]
        assert site.issue(issue)["metadata"]["verification_log"][-1]["reason"] == "base_failure"
        *_, known = (one for one in site.journal_all() if one["type"] == "BaseChecked")  # other tests have theirs
        assert (known["policy"], known["branch"], known.get("error", "")) == ("proven", base, "")
        assert not any(result.get("on_base") for result in known["found"]["results"])
        site.label(issue, "human:approved")
        working.says(f"{issue} closed by shepherd", 180)
    assert [run["run"] for run in site.runs(issue)] == [f"{issue}/implement.1.1"]
    assert not [one for one in site.journal(issue) if one["type"] == "RetryScheduled"]
