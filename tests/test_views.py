"""Views: every record has a sentence or is deliberately silent, and a list of issues says each id exactly once."""

import contextlib
import json
import re
import sqlite3
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st

from ashep.core.analysis.issue_status import account
from ashep.core.delivery.workspaces import Mode
from ashep.core.facts.delivery import RepositorySeen
from ashep.core.facts.records import TYPES, Entry
from ashep.core.facts.resources import EditMended, EditRefused, RecycleWanted, RunnerSeen, ServerRestartPlanned
from ashep.core.facts.sources import SourceStood
from ashep.core.facts.tracker import TrackerSeen
from ashep.core.facts.vocabulary import Fact
from ashep.core.state.world import World
from ashep.daemon.daemon import narrator
from ashep.journal.writer import Journal
from ashep.store.row_types import ProcessJson
from ashep.store.schema import edit_json, repository_json, runners_json, sources_json
from ashep.store.sqlite_reader import open_read_only
from ashep.views import issue_story, runs
from ashep.views import status as standing
from ashep.views.id_masking import ANOTHER, KnownIds
from ashep.views.times import distance, duration, local
from tests.core import given
from tests.core.chances import WILD
from tests.core.laws import folded
from tests.golden.story import RUN, T0
from tests.golden.story import story as golden
from tests.recorded import Recorded, draw, life

STOPPED: Any = {"running": False}
UNKNOWN: Any = {"daemon": {}}


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the state folder of the golden story, which holds every type of record."""
    state = tmp_path_factory.mktemp("told") / ".agent-shepherd" / "state"
    journal = Journal.open(state, T0)
    for batch in golden():
        journal.append_now(batch)
    draw(state, journal)
    journal.close()
    return state


@pytest.mark.promise("G7")
def test_every_record_has_a_sentence_or_is_deliberately_silent() -> None:
    assert set(issue_story.SENTENCES) | issue_story.SILENT == set(TYPES)
    assert not set(issue_story.SENTENCES) & issue_story.SILENT


def test_every_command_is_said_while_it_has_no_answer() -> None:
    assert set(issue_story.WORDS) <= issue_story.SILENT


def test_untracked_files_are_warned_about_before_a_write_run() -> None:
    files = [f"new-{number}.txt" for number in range(7)]
    body = {"moment": "before", "tree": {"present": True, "untracked": files}}
    assert issue_story.SENTENCES["TreeSeen"](issue_story.Telling(), body) == (
        "warning: 7 untracked paths stand in the work tree, and the run may take them into its commits",
        "new-0.txt, new-1.txt, new-2.txt, new-3.txt, new-4.txt, …",
    )
    assert (
        issue_story.SENTENCES["TreeSeen"](issue_story.Telling(), {"moment": "before", "tree": {"present": True}})
        is None
    )


@pytest.mark.parametrize(
    ("code", "awaited"), [("budget_total", "there is budget"), ("provider_down", "its provider takes work again")]
)
def test_what_was_stopped_says_what_it_waits_for(code: str, awaited: str) -> None:
    body = {"phase": "implement", "code": code, "why": "stopped"}
    assert issue_story.SENTENCES["RetryScheduled"](issue_story.Telling(), body) == (
        f"implement goes on when {awaited}",
        "stopped",
    )


def test_every_sentence_can_be_said(told: Path) -> None:
    with contextlib.closing(open_read_only(told)) as database:
        issues = [row["issue"] for row in standing.issue_rows(database)]
        tales = [issue_story.tell_story(database, issue, lambda _: None) for issue in issues]
    lines = [line for tale in tales if tale for line in tale["story"]]
    assert {line["type"] for line in lines} == set(issue_story.SENTENCES)
    assert not [line for line in lines if re.search(r"[{}]|None|\[\]", line["fact"] + line["reason"])]
    assert all(
        closing.startswith(("now: ", "depends on ")) for tale in tales if tale for closing in issue_story.closing(tale)
    )


@pytest.mark.promise("G7")
def test_a_story_goes_from_the_first_look_to_what_it_waits_for(tmp_path: Path) -> None:
    state = tmp_path / "state"
    life(state, issues=1, until="person")
    with contextlib.closing(open_read_only(state)) as database:
        tale = issue_story.tell_story(database, "t-1", lambda _: None)
    assert tale is not None
    said = [line["fact"] for line in tale["story"]]
    order = ["first seen: task", "taken under the policy", "run t-1/implement.1.1 goes to builder", "claimed", "asks a"]
    places = [next(place for place, fact in enumerate(said) if fact.startswith(word)) for word in order]
    assert places == sorted(places)
    assert [line["seq"] for line in tale["story"]] == sorted(line["seq"] for line in tale["story"])
    assert issue_story.closing(tale)[-1].startswith("now: waits for a person, until ")
    chosen = next(line for line in tale["story"] if line["type"] == "RunPlanned")
    assert "not critic: lacks the capability implement" in chosen["reason"]
    assert {line["trace"] for line in tale["story"] if "implement.1.1 succeeded" in line["fact"]} == {chosen["seq"]}


def test_a_command_without_an_answer_is_under_way(tmp_path: Path) -> None:
    made = Recorded(tmp_path / "state")
    made.begin()
    made.open("t-1")
    made.look()
    draw(tmp_path / "state", made.journal)
    made.journal.close()
    with contextlib.closing(open_read_only(tmp_path / "state")) as database:
        tale = issue_story.tell_story(database, "t-1", lambda _: None)
    assert tale is not None
    assert "claim it" in tale["now"]["under_way"]
    assert "(under way: claim it" in issue_story.closing(tale)[-1]


def test_dependencies_of_every_kind_are_told(tmp_path: Path) -> None:
    state = tmp_path / "state"
    life(state, issues=2)
    words = json.dumps({"dependencies": [{"on": "t-2", "type": "discovered-from"}, {"on": "x-9", "type": "related"}]})
    with contextlib.closing(open_read_only(state)) as database:
        body: Any = {"blocked_by": ["t-2"]}
        found = issue_story._dependencies(database, body, words)
    assert [(edge["issue"], edge["type"]) for edge in found] == [
        ("t-2", "blocks"), ("t-2", "discovered-from"), ("x-9", "related"),
    ]  # fmt: skip
    assert found[2]["state"] is None


def test_a_run_in_a_tree_of_its_own_is_found_there(told: Path) -> None:
    with contextlib.closing(open_read_only(told)) as database:
        assert runs.folder_of(database, RUN) == "/trees/demo-1"


def test_nothing_is_told_of_what_is_not_known(told: Path) -> None:
    with contextlib.closing(open_read_only(told)) as database:
        assert issue_story.tell_story(database, "nope-1", lambda _: None) is None
        assert runs.show(database, "nope-1/implement.1.1", str) is None
        assert runs.folder_of(database, "nope-1/implement.1.1") is None
    assert issue_story.tell_story(None, "t-1", lambda _: None) is None
    assert standing.status(None, STOPPED) == {
        "daemon": STOPPED
        | {"findings": 0, "pauses": [], "budgets": [], "providers": [], "notices": [], "runners": [], "edit": None}
        | {
            "sources": [],
            "workspace": None,
            "repository": None,
            "trees": {"kept": 0, "next": None},
            "journal": None,
            "quotas": [],
        },
        "issues": [],
    }


def test_status_says_how_many_trees_are_kept_and_when_the_next_goes() -> None:
    seen: Any = {"daemon": {"trees": {"kept": 2, "next": (T0 + timedelta(days=3)).isoformat()}}}
    assert [*standing.trees(seen, T0)] == [
        "2 work trees of closed issues stand; the next is to go in 3d (`ashep trees gc --dry-run`)"
    ]
    assert "is to go now" in next(standing.trees(seen, T0 + timedelta(days=4)))
    assert [*standing.trees(UNKNOWN, T0)] == []


@pytest.mark.promise("U5")
def test_status_says_how_much_of_a_quota_is_used_and_until_when(told: Path) -> None:
    with contextlib.closing(open_read_only(told)) as database:
        seen = standing.status(database, STOPPED)
    (quota,) = seen["daemon"]["quotas"]
    assert quota["resets"] is not None
    assert (quota["runner"], quota["provider"], quota["login"]) == ("opencode", "acme", "ACME_TOKEN")
    assert (quota["status"], quota["window"]) == ("allowed_warning", "five_hour")
    assert datetime.fromisoformat(quota["resets"]) == T0 + timedelta(hours=5)
    assert [(one["name"], one["used"], one["status"]) for one in quota["windows"]] == [
        ("five_hour", 0.93, "allowed_warning"), ("seven_day", 0.4, None),
    ]  # fmt: skip
    five, seven = (local(one["resets"]) for one in quota["windows"])
    assert [*standing.quotas(seen, T0)] == [
        f"quota of acme on the agent server: 93% of five_hour used (nearly all) until {five}; "
        f"40% of seven_day used until {seven}"
    ]
    assert [*standing.quotas(seen, T0 + timedelta(hours=6))] == [
        f"quota of acme on the agent server: 40% of seven_day used until {seven}"
    ]
    assert [*standing.quotas(seen, T0 + timedelta(days=4))] == []


def test_status_says_on_top_who_paused_and_until_when(told: Path) -> None:
    with contextlib.closing(open_read_only(told)) as database:
        (pause,) = standing.status(database, STOPPED)["daemon"]["pauses"]
    assert (pause["by"], pause["why"], pause["provider"], pause["drain"]) == (
        "the configuration", "nights", None, False,
    )  # fmt: skip
    assert pause["until"] is not None
    assert datetime.fromisoformat(pause["until"]) == T0 + timedelta(hours=8)
    seen: Any = {"daemon": {"pauses": [pause, pause | {"by": "ann", "why": "", "until": None, "provider": "acme"}]}}
    assert standing.paused(seen, lambda at: at[11:16]) == (
        "paused until 06:00 by the configuration (nights): no run starts; "
        "acme is paused until `ashep resume` by ann: no run starts"
    )
    assert standing.paused(standing.status(None, STOPPED), str) == ""


def daemon_with(key: str, written: Callable[[World], str], facts: Iterable[Fact]) -> Any:
    """What is shown of the daemon after these facts, of which a row of the database tells."""
    entries = [Entry(number, T0, fact) for number, fact in enumerate((*given.start(), *facts), 1)]
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        database.row_factory = sqlite3.Row
        database.execute("CREATE TABLE meta (key, value)")
        database.execute("INSERT INTO meta VALUES (?, ?)", [key, written(folded(entries))])
        return {"daemon": {key: standing.of_daemon(database, key)}}


def test_status_says_which_source_does_not_answer(told: Path) -> None:
    def lines(*facts: Fact) -> list[str]:
        return [*standing.sources(daemon_with("sources", sources_json, facts))]

    away = SourceStood("github", "HTTP 503")
    assert lines(away) == ["github does not answer: HTTP 503; no new issue comes from it until it does"]
    assert lines(away, SourceStood("github")) == []
    with contextlib.closing(open_read_only(told)) as database:
        assert standing.of_daemon(database, "sources") == []  # the writer has it


def test_status_says_what_is_wrong_with_the_agent_server() -> None:
    now = T0 + timedelta(hours=2)

    def said(*facts: Fact) -> list[str]:
        return [*standing.runners(daemon_with("runners", runners_json, facts), now)]

    assert said() == []
    away = RunnerSeen("away", "no answer")
    assert said(away) == ["the agent server is away for 2h: no answer"]
    planned = ServerRestartPlanned(4, now + timedelta(minutes=3), "it ended by itself")
    assert said(planned, away)[0] == "the agent server failed 4 times in a row; it is started again in 3m"
    wanted = RecycleWanted("server-1", now, False, "it holds 5.00 GiB")
    assert said(wanted) == ["the agent server is begun anew once it is at rest: it holds 5.00 GiB"]
    assert [*standing.runners(UNKNOWN, now)] == []
    upgraded = RunnerSeen("up", "1.19.0", replaced="1.19.0 answers where 1.18.33 did")
    assert said(upgraded) == ["the agent server was replaced: 1.19.0 answers where 1.18.33 did; sessions go on"]
    bd = TrackerSeen("me", "t", "1.4.0", replaced="1.4.0 answers where 1.3.0 did")
    assert said(bd, RunnerSeen("up")) == ["the tracker's program was replaced: 1.4.0 answers where 1.3.0 did"]


def test_status_says_where_issues_are_worked_on(told: Path) -> None:
    running: ProcessJson = {"running": True, "pid": 1, "since": None, "version": "1", "behind": False}
    with contextlib.closing(open_read_only(told)) as database:
        seen = standing.status(database, running)
        assert (seen["daemon"]["workspace"], standing.workplace(seen)) == ("shared", standing.WORKPLACE["shared"])
        assert standing.status(database, STOPPED)["daemon"]["workspace"] is None, "what will be in force is not known"
    assert standing.workplace(standing.status(None, running)) == ""
    assert set(standing.WORKPLACE) == set(get_args(Mode))


@pytest.mark.promise("Z6")
def test_status_and_log_say_what_is_wrong_with_the_repository_and_how_far_the_base_is_behind() -> None:
    def said(*facts: Fact) -> tuple[list[str], list[str]]:
        logged = list[str]()
        log = narrator(logged.append)
        entries = [Entry(number, T0, fact) for number, fact in enumerate(facts, 1)]
        for entry in entries:
            log([entry], folded(entries))
        return [*standing.repository(daemon_with("repository", repository_json, facts))], logged

    assert said() == ([], [])
    assert said(RepositorySeen(merges=("beef00",))) == ([], [])
    words = "main is 14 commits behind origin/main (as of 2026-01-01 09:12)"
    behind = RepositorySeen("", words)
    later = replace(behind, behind=words.replace("09:12", "09:22"))
    assert said(behind, behind, later) == ([later.behind], [words]), "once is enough"
    told = [words, "origin cannot be fetched: no answer"]
    assert said(replace(behind, error=told[1])) == (told, told)
    status, log = said(RepositorySeen("no room"), RepositorySeen())
    assert (status, log) == ([], ["nothing begins until this is mended: no room"])
    assert said(RepositorySeen("no room"))[0] == ["nothing begins: no room"]


def test_status_says_that_an_edit_is_not_in_force() -> None:
    now = T0 + timedelta(hours=2)

    def said(*facts: Fact) -> list[str]:
        return [*standing.edits(daemon_with("edit", edit_json, facts), now)]

    assert said() == []
    refused = EditRefused(("policies.yaml:3: x: wrong", "policies.yaml:4: y: wrong"), 1)
    begins = "an edit of 2h ago is not in force, what was before it is: policies.yaml:3: x: wrong"
    assert said(refused) == [f"{begins} (and 2 more: `ashep policy check`)"]
    assert said(EditRefused(refused.problems[:1])) == [begins]
    assert said(refused, EditMended()) == []
    assert [*standing.edits(UNKNOWN, now)] == []


# --- status -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_each_known_issue_stands_once_and_no_id_outside_of_its_own_entry(tmp_path: Path, seed: int) -> None:
    state = tmp_path / "state"
    made = life(state, issues=6, steps=400, seed=seed, chances=WILD)
    with contextlib.closing(open_read_only(state)) as database:
        seen = standing.status(database, STOPPED)
    ids = [entry["issue"] for entry in seen["issues"]]
    assert sorted(ids) == sorted(made.world.flows)
    for entry in seen["issues"]:
        own = entry["issue"]
        assert entry["state"] == account(made.world, own).state
        text = json.dumps({key: value for key, value in entry.items() if key != "run"} | {"run": ""})
        others = [other for other in ids if other != own and re.search(rf"(?<![\w-]){re.escape(other)}(?!\w)", text)]
        assert others == [], text
        assert entry["run"] is None or entry["run"].startswith(f"{own}/")
    assert not re.search("|".join(map(re.escape, ids)), json.dumps(seen["daemon"]))


def test_people_come_first_and_closed_issues_only_if_asked_for(told: Path) -> None:
    with contextlib.closing(open_read_only(told)) as database:
        seen = standing.status(database, STOPPED)
    places = [list(standing.STATES).index(entry["state"]) for entry in seen["issues"]]
    assert places == sorted(places)
    shown = standing.table(seen["issues"], T0, everything=False)
    assert {len(row) for row in shown} == {len(standing.COLUMNS)}
    assert len(shown) == sum(entry["state"] != "closed" for entry in seen["issues"]) < len(seen["issues"])
    assert len(standing.table(seen["issues"], T0, everything=True)) == len(seen["issues"])
    assert standing.counts(seen).startswith(f"{len(seen['issues'])} issues: ")


def test_the_last_end_is_told(told: Path) -> None:
    with contextlib.closing(open_read_only(told)) as database:
        seen = standing.status(database, STOPPED)
    assert seen["daemon"].get("why") == "SIGTERM"
    assert standing.headline(seen, str) == f"ashep is not running since {seen['daemon'].get('ended')} (SIGTERM)"


def test_limits_that_were_passed_are_told_until_their_time_is_over(told: Path) -> None:
    with contextlib.closing(open_read_only(told)) as database:
        seen = standing.status(database, STOPPED)
    until = T0 + timedelta(hours=26)
    (mark,) = seen["daemon"]["budgets"]
    assert (mark["scope"], mark["used"], mark["limit"], mark["reached"]) == ("day", 5.5, 5.0, True)
    (line,) = standing.limits(seen, T0)
    assert line == f"budget used up: 5.5 of 5 cost of 2026-01-02, until {local(until.isoformat())}"
    assert [*standing.limits(seen, until)] == []


# --- names --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "told"), [
    ("t-2 holds the work tree", f"{ANOTHER} holds the work tree"),
    ("it depends on t-2, t-1.1.", f"it depends on {ANOTHER}, {ANOTHER}."),
    ("t-1/review.1.1 by critic", "t-1/review.1.1 by critic"),
    ("t-2/review.1.1 by critic", f"{ANOTHER}/review.1.1 by critic"),
    ("see t-1 and t-20 and at-2", "see t-1 and t-20 and at-2"),
    ("a-b-t-2-c", f"a-b-{ANOTHER}-c"),
    ("(t-2)", f"({ANOTHER})"),
    ("alone", ANOTHER),
])  # fmt: skip
def test_ids_of_others_are_hidden(text: str, told: str) -> None:
    assert KnownIds({"t-1", "t-2", "t-1.1", "alone"}).hide(text, "t-1") == told


@hypothesis_given(st.lists(st.sampled_from(["t-1", "t-2", "t-1.1", "t", "-", ".", " ", "x", "/"]), max_size=12))
def test_no_id_of_another_is_left_in_any_text(parts: list[str]) -> None:
    told = KnownIds({"t-1", "t-2", "t-1.1"}).hide("".join(parts), "t-1")
    assert not re.search(r"(?<![A-Za-z0-9])(t-2|t-1\.1)(?![A-Za-z0-9])", told)


# --- runs and times -----------------------------------------------------------------------------------------------


def test_a_run_is_told_with_its_agent_the_others_and_its_prompts(told: Path) -> None:
    with contextlib.closing(open_read_only(told)) as database:
        run = runs.runs(database, None, 0)["runs"][-1]["run"]
        seen = runs.show(database, run, lambda name: f"/blobs/{name}", lambda name: f"text of {name}")
        assert len(runs.runs(database, None, 2)["runs"]) == 2
        assert {one["issue"] for one in runs.runs(database, "demo-1", 0)["runs"]} == {"demo-1"}
    assert seen is not None
    assert seen["choice"] is not None
    assert seen["choice"]["agent"] == seen["run"]["agent"]
    assert seen["prompts"][0].get("text") == f"text of {seen['prompts'][0]['blob']}"
    names = [name for name, _ in runs.lines(seen)]
    assert {"run", "state", "agent", "chosen", "not chosen", "prompt 1", "session", "planned", "trace"} <= set(names)
    assert {"agent wrote", "person wrote"} <= set(names)


@pytest.mark.parametrize(("seconds", "said"), [(0, "0s"), (59, "59s"), (61, "1m"), (7300, "2h"), (200000, "2d")])
def test_distances(seconds: int, said: str) -> None:
    now = datetime(2026, 1, 2, tzinfo=UTC)
    assert distance((now - timedelta(seconds=seconds)).isoformat(), now) == said
    assert distance((now + timedelta(seconds=seconds)).isoformat(), now) == said
    assert duration(None, None, now) == ""
