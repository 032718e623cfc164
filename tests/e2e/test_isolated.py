"""Who makes works in a sandbox with a server of its own, who judges stands on what was committed: the real tools."""

import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from ashep.adapters.runners.opencode.isolated_runner import folder_for
from ashep.extras.demo.scripted_model import Call, ModelRequest, Reply, outcome_text
from tests.e2e.site import BEHAVES, POLICIES, Site, until
from tests.e2e.test_page import served
from tests.places import has_bubblewrap

pytestmark = [
    pytest.mark.real, pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap cannot be used here"),
]  # fmt: skip

JUDGED = """
  judged:
    match: null
    phases:
      - {name: implement, access: write, timeout: 2m, retry: {max_attempts: 2, initial_delay: 0s}}
      - name: review
        access: read
        timeout: 2m
        verdicts: [approve, request_changes]
        next: {approve: close, request_changes: implement}
        retry: {max_attempts: 2, initial_delay: 0s}
"""
READABLE = "{id: readable, type: file_exists, description: it is there, verify: {path: a.txt}}"
DEEP = "d=$(printf 'd/%.0s' $(seq 1500)); mkdir -p $d $HOME/$d"
"""More folders in folders than Python recurses, here and in a home."""
PROVEN = """
  proven_in_a_place:
    match: null
    phases:
      - name: implement
        access: write
        timeout: 2m
        retry: {max_attempts: 1}
        checks:
          - id: program
            description: its own
            type: test_pass
            verify: {command: [sh, -c, "DEEP; f=c; cat $f.txt; grep -q good $f.txt"]}
        next: {success: close}
""".replace("DEEP", DEEP)
BOTH = """
  both:
    match: null
    phases:
      - {name: implement, access: write, timeout: 2m, retry: {max_attempts: 1}, next: {success: polish}}
      - name: polish
        capabilities: [polish]
        access: write
        timeout: 2m
        retry: {max_attempts: 1}
        next: {success: close}
"""
CONFIG = """
worker: {workspace: place, max_concurrent_runs: 2}
landing: {mode: branch}
agents: {sandbox: bwrap}
"""


@pytest.fixture
def isolated(site: Site, managed: None) -> Iterator[Site]:
    policies, registry = (site.project / ".agent-shepherd" / f"{name}.yaml" for name in ("policies", "agents"))
    agents = registry.read_text()
    registry.write_text(f"{agents}  - {{id: bold, capabilities: [polish], read_write: write, sandbox: none}}\n")
    policies.write_text(POLICIES + JUDGED + PROVEN + BOTH)
    site.config(CONFIG)
    yield site
    site.ashep("stop", "--server")
    policies.write_text(POLICIES)
    registry.write_text(agents)
    site.config("")


def behaving(lines: list[str], drip: float = 0.0) -> Callable[[ModelRequest], Reply]:
    """Who may write runs these lines in its shell and reports; who judges reads a file, and approves."""

    def behave(ask: ModelRequest) -> Reply:
        calls = [Call("bash", {"command": line, "description": "work"}) for line in lines]
        if "bash" not in ask.tools:
            calls = [Call("read", {"filePath": "b.txt"})]
        if len(ask.results) < len(calls):
            return Reply(calls=(calls[len(ask.results)],))
        said = outcome_text("approve" if "bash" not in ask.tools else None, summary=ask.results[-1][:200])
        return Reply("I think about it, slowly. " * 3 + said if drip else said, drip=drip)

    return behave


def test_made_in_a_sandbox_killed_and_judged_on_clean_ground(isolated: Site) -> None:
    site = isolated
    issue = site.add(
        "make it", "policy:judged", behaves=behaving(["echo made >> b.txt; ls -a ~ | head; pwd"], drip=0.2)
    )
    run = f"{issue}/implement.1.1"
    with site.working(issue) as working:
        until(lambda: site.requests(run) > 1, 60, lambda: working.text)
        time.sleep(0.5)
        working.signal(signal.SIGKILL)
        assert working.wait(10) == -signal.SIGKILL
    with site.working(issue, "--until-idle", "--idle-grace", "20s") as working:
        working.says("closed by shepherd")
        assert working.wait(240) == 0
    assert (site.prompts(run), site.prompts(f"{issue}/review.1.1")) == (1, 1)
    assert site.run("git", "show", f"ashep/{issue}:b.txt") == "made\n"
    assert json.loads(site.ashep("trees", "list", "--json"))["trees"]
    with served(site) as (_, client):  # the maker's server ended with its run, the judge's does now
        site.ashep("stop", "--server")
        for name, tool, words in ((run, "bash", "made"), (f"{issue}/review.1.1", "read", "b.txt")):
            told = client.get(f"/runs/{name}/transcript").raise_for_status().json()
            assert told["unread"], told["why"]
            call = next(step for step in told["steps"] if step["role"] == "tool")
            assert (call["tool"], words in call["text"] + call["arguments"]) == (tool, True)
            assert [told["steps"][at]["role"] for at in (0, -1)] == ["user", "assistant"]


def test_an_agent_asks_what_its_checks_find_and_mends_what_fails(isolated: Site) -> None:
    """In its sandbox, where no ashep is: what is committed counts, of its own issue alone, and proves nothing yet."""
    site = isolated
    other = site.add("of another", "policy:judged", behaves=behaving(["true"]))
    commit = "git add c.txt && git commit -qm Work"
    verify = "ashep verify %s; echo it ended with $?"
    said: list[str] = []
    issue = site.add("make it", "policy:proven_in_a_place", acceptance=f"```yaml\nchecks:\n- {READABLE}\n```\n")
    lines = [
        f"{DEEP}; echo bad > c.txt; {commit}; rm c.txt; {verify % other}",
        f"echo good > c.txt; {verify % issue}",
        f"{commit}; {verify % issue}",
    ]
    BEHAVES[issue] = told(behaving(lines), said)
    with site.working(issue, other, "--until-idle", "--idle-grace", "20s") as working:
        assert working.wait(240) == 0
    failing, uncommitted, passing = said
    for one in (failing, uncommitted):
        assert f"{issue}: failing (1 passed, 1 failed, 0 skipped)" in one
        assert "program printed:\n    bad\n" in one
        assert "it ended with 1" in one
    assert f"{issue}: passing (2 passed, 0 failed, 0 skipped)" in passing
    assert "it ended with 0" in passing
    folder = folder_for(site.state, site.tree(issue), site.environ)
    assert ([*(folder / "asks").iterdir()], len([*(folder / "stubs" / "answers").iterdir()])) == ([], 3)
    (prompt, *_) = [ask.prompt for ask in site.model.asks if f"Run: {issue}/implement.1.1" in ask.prompt]
    assert "except `ashep verify` with the id of this issue" in prompt
    verified = [one for one in site.journal(issue) if one["type"] == "WorkVerified"]
    assert len(verified) == 2, "what the agent asked is no evidence"
    assert not [*(site.state / "checks").iterdir()], "nothing is left over"
    assert {one["type"] for one in (*site.journal(issue), *site.journal(other))} >= {"IssueClosed"}
    assert (folder / "home" / "d").is_dir()
    site.ashep("trees", "remove", issue, "--drop-ignored")
    assert not (folder / "home" / "d").exists(), "nor is anything of its home, and its place"
    assert not (site.tree(issue) / "d").exists()


def told(behave: Callable[[ModelRequest], Reply], said: list[str]) -> Callable[[ModelRequest], Reply]:
    """And keep what its shell printed."""

    def listening(ask: ModelRequest) -> Reply:
        said[:] = ask.results if len(ask.results) > len(said) else said
        return behave(ask)

    return listening


def test_an_agent_with_a_sandbox_of_its_own_works_in_the_place_of_one_without(isolated: Site) -> None:
    """The second of two in one place runs as the user, by its entry in agents.yaml, and finds what the first left."""
    site = isolated
    (Path(site.environ["HOME"]) / "key").write_text("-----PRIVATE KEY-----")
    line = "head ~/key > seen.$(ls | grep -c seen) 2>&1; ls"
    issue = site.add("make it, twice", "policy:both", behaves=behaving([line]))
    with site.working(issue, "--until-idle", "--idle-grace", "20s") as working:
        working.says("closed by shepherd")
        assert working.wait(240) == 0
    told = [site.run("git", "show", f"ashep/{issue}:seen.{n}") for n in range(2)]
    assert ["PRIVATE KEY" in one for one in told] == [False, True]
    opened = [one.get("sandbox") for one in site.journal(issue) if one["type"] == "RunPlanned"]
    assert opened == [None, "none"]


def test_a_person_takes_a_place_and_its_server_stays_until_they_are_done(isolated: Site) -> None:
    site = isolated
    behave, is_taken = behaving(["echo made >> b.txt"]), threading.Event()

    def behave_slowly(ask: ModelRequest) -> Reply:
        """Think until a person takes the issue, however slow the machine is."""
        reply = behave(ask)
        slow = replace(reply, text=f"{'I think. ' * 500}{reply.text}", drip=0.4)
        return reply if reply.calls or is_taken.is_set() else slow

    issue = site.add("take it", "policy:quick", behaves=behave_slowly)
    run = f"{issue}/implement.1.1"
    with site.working(issue) as working:
        until(lambda: site.requests(run) > 1, 60, lambda: working.text)
        place = site.tree(issue)
        record = folder_for(site.state, place, site.environ) / "server.json"
        pid = json.loads(record.read_text())["pid"]
        site.config(CONFIG.replace("bwrap}", "bwrap, paths: {read: [/usr/share]}}"))  # for servers that begin later
        told = site.ashep("take", issue)
        is_taken.set()
        assert f"attach http://127.0.0.1:{json.loads(record.read_text())['port']} --dir {place}" in told
        until(lambda: "RunEnded" in [one["type"] for one in site.journal(issue)], 30, lambda: working.text)
        (place / "person.txt").write_text("mine\n")
        time.sleep(2)
        assert json.loads(record.read_text())["pid"] == pid
        assert "TreeSealed" not in [one["type"] for one in site.journal(issue)]
        site.ashep("release", issue)
        working.says("closed by shepherd")
    assert site.run("git", "show", f"ashep/{issue}:person.txt") == "mine\n"
    assert not record.exists()
