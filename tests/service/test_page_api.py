"""What the page and programs are told over HTTP: the same as commands print, page by page, and who may do what."""

import json
import re
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from anyio import to_thread
from typer.testing import CliRunner

from ashep.actions import answers
from ashep.api.handlers import events
from ashep.api.handlers.queries import LONGEST_TEXT
from ashep.api.routes import OPERATIONS, V1
from ashep.api.sessions import MACHINE, PERSON
from ashep.cli.commands import app
from ashep.config import write_starter
from ashep.core.facts.tracker import Stamp
from ashep.core.policy.settings import Labels
from ashep.extras.simulation.memory.tracker import MemoryTracker
from ashep.ports.tracker import ClaimRequest, Update
from ashep.views import runs as attempts
from ashep.views import status as standing
from tests.recorded import life
from tests.service.worlds import AT, PAGE, World, repository

pytestmark = pytest.mark.anyio

OURS = "ashep-host-1"
PREPARED = "SELECT run, body FROM facts WHERE issue = ? AND type = 'PromptPrepared' ORDER BY seq LIMIT 1"


@dataclass
class Page:
    """A service over a project with a few issues, one of which asks; and its commands."""

    world: World
    issue: str
    """The one that asks."""

    async def printed(self, *words: str) -> Any:
        """What a command prints with --json."""
        return await to_thread.run_sync(printed, self.world.project, *words)

    async def stands(self, stamp: Stamp | None = None) -> None:
        """Let the tracker know the issue as one that ashep asks about."""
        tracker, stamp = self.world.tracker, stamp or Stamp("0f" * 8, 7, f"{self.issue}/review.1.1", 1, 1, 1)
        tracker.add("Work", id=self.issue)
        ours = tracker.as_actor(OURS)
        await ours.claim(ClaimRequest(self.issue, stamp))
        asks = (Labels().needs_approval,)
        await ours.update(Update(self.issue, "in_progress", OURS, stamp, "blocked", OURS, add_labels=asks))

    async def tracked(self) -> tuple[set[str], list[str]]:
        """Its labels, and what was said."""
        seen = await self.world.tracker.issue(self.issue)
        assert seen is not None
        return set(seen.issue.labels), [comment.text.split("\n")[0] for comment in seen.text.comments]


def printed(project: Path, *words: str) -> Any:
    done = CliRunner().invoke(app, ["-C", str(project), *words])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = repository(tmp_path_factory.mktemp("page") / "project")
    write_starter(project / ".agent-shepherd")
    life(project / ".agent-shepherd" / "state", issues=5, until="person")
    return project


@pytest.fixture
def page(project: Path) -> Page:
    listed = printed(project, "status", "--json")["issues"]
    return Page(World(project), next(one["issue"] for one in listed if one["state"] == "person"))


@pytest.fixture
async def client(page: Page) -> AsyncIterator[httpx.AsyncClient]:
    async with page.world.client() as client:
        yield client


@pytest.fixture
async def person(page: Page) -> AsyncIterator[httpx.AsyncClient]:
    async with page.world.client(page.world.sessions.enter(page.world.sessions.code("Pat"))[0]) as client:
        yield client


async def told(client: httpx.AsyncClient, path: str, **query: Any) -> Any:
    answer = await client.get(f"{V1}{path}", params=query)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert found.pop("seq") > 0
    return found


def named(listed: Any) -> Any:
    """Lists of commands say no other issue's id (`ashep.views.id_masking`); so only what is about the issue itself.
    What its runs used says `ashep usage`.
    """
    left_out = ("reason", "title", "used", "at_work", "answer")  # `status` says what stands in the tracker, too
    return [{key: value for key, value in one.items() if key not in left_out} for one in listed]


async def test_it_says_what_the_commands_say(page: Page, client: httpx.AsyncClient) -> None:
    status, now = await page.printed("status", "--json"), await told(client, "/now")
    daemon = {key: value for key, value in now["daemon"].items() if key in status["daemon"]}
    assert daemon == status["daemon"]
    assert named(now["waiting"]) == named(one for one in status["issues"] if one["state"] == "person")
    listed = (await told(client, "/issues"))["items"]
    by_name = lambda one: one["issue"]  # noqa: E731
    assert named(sorted(listed, key=by_name)) == named(sorted(status["issues"], key=by_name))
    assert now["counts"] == {state: sum(one["state"] == state for one in listed) for state in now["counts"]}
    assert (await told(client, "/runs"))["items"] == (await page.printed("runs", "--limit", "0", "--json"))["runs"]
    assert await told(client, "/usage", by="agent") == await page.printed("usage", "--by", "agent", "--json")
    report, at = await page.printed("report", "--since", "2020-01-01", "--json"), "2020-01-01"
    assert (await told(client, "/report", since=at) | {"until": ""}) == report | {"until": ""}
    why, story = await page.printed("why", page.issue, "--json"), await told(client, f"/issues/{page.issue}")
    assert story["issue"] | {"used": story["usage"]} == next(
        one for one in now["waiting"] if one["issue"] == page.issue
    )
    for key in ("story", "depends_on", "kept_since", "verification", "verification_log", "files", "flags", "landing"):
        assert story[key] == why[key], key
    drawn = await page.printed("policy", "graph", "standard", "--format", "json", "--live")
    assert await told(client, "/policies/standard") == drawn
    run = (await told(client, f"/runs/{(await told(client, '/runs'))['items'][0]['run']}"))["run"]
    assert run == (await page.printed("show", run["run"], "--json"))["run"]


async def test_pages_go_on_where_the_one_before_ended(client: httpx.AsyncClient) -> None:
    for path, key in (("/issues", "after"), ("/runs", "before"), ("/records", "after")):
        whole, found, query = (await told(client, path, limit=500))["items"], list[Any](), dict[str, Any]()
        while True:
            part = await told(client, path, limit=2, **query)
            found += part["items"]
            if part["next"] is None:
                break
            query = {key: part["next"]}
        assert found == whole
        assert len(whole) > 3
    assert (await client.get(f"{V1}/issues", params={"after": "nonsense"})).status_code == 422
    assert (await client.get(f"{V1}/issues", params={"limit": 501})).status_code == 422


async def test_issues_are_found_by_a_part_of_their_words(page: Page, client: httpx.AsyncClient) -> None:
    assert [one["issue"] for one in (await told(client, "/issues", q=page.issue.upper()))["items"]] == [page.issue]
    for wild in ("%", "_", "!", "' OR 1=1 --"):
        assert (await told(client, "/issues", q=wild))["total"] == 0
    waiting = await told(client, "/issues", state="person", policy="standard")
    assert waiting["total"] == len(waiting["items"]) > 0
    assert (await told(client, "/issues", phase="none"))["items"] == []


async def test_a_question_is_a_step_between_runs(page: Page, client: httpx.AsyncClient) -> None:
    course = await told(client, f"/issues/{page.issue}/runs")
    assert [one["answer"] for one in course["asked"]][-1] is None
    assert course["edges"][-1]["target"] == f"#{course['asked'][-1]['seq']}"
    steps = len(course["runs"]) + len(course["asked"]) + len(course["delivery"])
    assert len(course["edges"]) == steps - 1
    record = await told(client, f"/records/{course['asked'][-1]['seq']}")
    assert record["record"]["type"] == "PersonAsked"


async def test_every_run_stands_in_the_columns(client: httpx.AsyncClient) -> None:
    runs, drawn = (await told(client, "/runs", limit=500))["items"], await told(client, "/timeline")
    assert drawn["run"] == [one["run"] for one in reversed(runs)]
    assert [drawn["issues"][n] for n in drawn["issue"]] == [one["issue"] for one in reversed(runs)]
    assert all(length >= 0 for length in drawn["length"])


async def test_a_bar_begins_when_the_run_was_wanted(page: Page, client: httpx.AsyncClient) -> None:
    drawn = await told(client, "/timeline")
    first = drawn["run"].index(f"{page.issue}/implement.1.1")
    entered = [one for one in (await told(client, "/records", limit=500))["items"] if one["type"] == "PhaseEntered"]
    wanted = datetime.fromisoformat(entered[0]["at"]).timestamp()
    assert entered[0]["issue"] == page.issue
    begun = drawn["epoch"] + drawn["begin"][first] - drawn["starting"][first] - drawn["held"][first]
    assert begun == pytest.approx(wanted, abs=2)


async def test_runs_are_counted_by_state_and_agent(client: httpx.AsyncClient) -> None:
    every = await told(client, "/runs", limit=1)
    assert every["total"] == sum(every["states"].values()) == sum(every["agents"].values()) > 1
    agent, many = next(iter(every["agents"].items()))
    of_one = await told(client, "/runs", agent=agent, state="succeeded", limit=500)
    assert of_one["total"] == len(of_one["items"]) == of_one["states"]["succeeded"] <= many
    assert of_one["agents"][agent] == of_one["total"]
    assert sum(of_one["states"].values()) == many


async def test_what_was_said_is_told_without_what_misleads(page: Page, client: httpx.AsyncClient) -> None:
    pictures = page.world.live.pictures
    (row,) = await pictures.read(lambda seen: seen.database.execute(PREPARED, [page.issue]).fetchall())  # pyright: ignore[reportOptionalMemberAccess]
    said = f"key=hunter2hunter2 \x1b[31mred\u202e {'x' * LONGEST_TEXT}"
    file = attempts.blob_file(pictures.state, json.loads(row["body"])["blob"])
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(said)
    pictures.redaction.add("hunter2hunter2")
    issue, _, run = row["run"].partition("/")
    told = (await client.get(f"{V1}/runs/{issue}/{run}/prompts/1")).json()
    assert told["cut"]
    assert re.match(r"key=\S+ \[31mred x+$", told["text"])
    assert "hunter2" not in told["text"]


async def test_how_a_session_is_opened_is_told_without_beginning_anything(client: httpx.AsyncClient) -> None:
    run = (await told(client, "/runs"))["items"][-1]
    answer = (await client.get(f"{V1}/runs/{run['run']}/session")).json()
    assert answer["said"].startswith(f"Its session is {run['session']}; the agent server is not running")
    assert answer["command"] is None


async def test_what_is_not_there_is_said_so(client: httpx.AsyncClient) -> None:
    for path in ("/runs/t-1/none.1.1", "/runs/t-1/plan.1.1/prompts/99", "/records/999999999", "/policies/none"):
        assert (await client.get(f"{V1}{path}")).status_code == 404, path
    assert (await client.get(f"{V1}/runs/t-1/..%2f..%2fx")).status_code == 404
    head = await client.head(f"{V1}/events")
    assert (head.status_code, head.content) == (200, b"")


async def test_who_accepts_json_is_told_at_the_short_paths_too(page: Page, client: httpx.AsyncClient) -> None:
    run = (await told(client, "/runs"))["items"][0]["run"]
    for path in ("/issues", f"/issues/{page.issue}/runs", f"/runs/{run}"):
        short = await client.get(path, headers={"Accept": "application/json"})
        assert short.json() == (await client.get(f"{V1}{path}")).json()
        assert short.headers["vary"] == "Accept"


async def test_everybody_gets_the_empty_page(page: Page) -> None:
    html = {"Accept": "text/html,application/xhtml+xml", "Accept-Encoding": "identity"}
    async with page.world.client(None) as stranger:
        for path in ("/", "/issues", "/issues/t-1", "/issues/t-1/runs", "/runs/t-1/plan.1.1", "/report", "/index.html"):
            answer = await stranger.get(path, headers=html)
            assert (answer.status_code, answer.content) == (200, PAGE["index.html"]), path
            assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
        asset = await stranger.get("/assets/a-1.js")
        assert asset.content == PAGE["assets/a-1.js"]
        assert (asset.headers["content-encoding"], asset.headers["content-type"]) == (
            "gzip",
            "text/javascript; charset=utf-8",
        )
        assert "immutable" in asset.headers["cache-control"]
        for path in ("/api/v1/now", "/api/v1/nothing", "/assets/none.js", "/../secret", "/tickets"):
            accept = html if path.startswith("/api") else {"Accept": "*/*"}
            assert (await stranger.get(path, headers=accept)).status_code == 401, path
        assert (await stranger.post("/", headers=html)).status_code in (401, 405)


# --- who may ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.name)
async def test_nothing_is_told_without_a_token_and_nothing_beyond_it(
    page: Page, client: httpx.AsyncClient, person: httpx.AsyncClient, operation: Any
) -> None:
    if operation.scope is None:
        return
    path = re.sub(r"{\w+}", "1", operation.path)
    async with page.world.client(None) as stranger:
        for headers in ({}, {"Authorization": "Bearer none"}, {"Authorization": f"Basic {'x' * 40}"}):
            assert (await stranger.request(operation.method, path, headers=headers)).status_code == 401
    for who, scopes in ((client, MACHINE), (person, PERSON)):
        if operation.scope not in scopes:
            assert (await who.request(operation.method, path, json={})).status_code == 403


async def test_the_guard_stands_before_tokens(page: Page, person: httpx.AsyncClient) -> None:
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}, {"Origin": "null"}):
        for path in ("/", "/health", f"{V1}/now", "/openapi.json", "/nothing"):
            answer = await person.get(path, headers=headers)
            assert answer.status_code in (403, 421), (path, headers)
            assert answer.headers["x-frame-options"] == "DENY"
    plain = await person.post(f"{V1}/issues/{page.issue}", data={"do": "approve"})
    assert plain.status_code == 415
    foreign = await person.post(f"{V1}/pause", json={}, headers={"Sec-Fetch-Site": "same-site"})
    assert foreign.status_code == 403
    answer = await person.get(f"{V1}/now")
    assert answer.headers["cache-control"] == "no-store"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "set-cookie" not in answer.headers


async def test_a_code_is_exchanged_once(page: Page) -> None:
    async with page.world.client(None) as stranger:
        code = page.world.sessions.code("Pat")
        entered = await stranger.post(f"{V1}/enter", json={"code": code})
        assert entered.json()["person"] == "Pat"
        assert (await stranger.post(f"{V1}/enter", json={"code": code})).status_code == 403
        known = {"Authorization": f"Bearer {entered.json()['token']}"}
        assert (await stranger.get(f"{V1}/now", headers=known)).status_code == 200
        assert (await stranger.post(f"{V1}/leave", headers=known)).status_code == 200
        assert (await stranger.get(f"{V1}/now", headers=known)).status_code == 401


# --- answers ------------------------------------------------------------------------------------------------------


@pytest.fixture
async def asked(page: Page) -> Page:
    await page.stands()
    return page


async def question(client: httpx.AsyncClient, issue: str) -> str:
    waiting = (await told(client, "/now"))["waiting"]
    return next(one["question"]["asked"] for one in waiting if one["issue"] == issue)


async def test_an_answer_is_written_once_as_the_person(asked: Page, person: httpx.AsyncClient) -> None:
    wanted = {"do": "approve", "message": "well done", "asked": await question(person, asked.issue)}
    answer = await person.post(f"{V1}/issues/{asked.issue}", json=wanted)
    assert (answer.status_code, answer.json()) == (200, {"said": f"{asked.issue}: approved as Pat"}), answer.text
    labels, comments = await asked.tracked()
    assert Labels().approved in labels
    assert comments == ["well done"]
    again = await person.post(f"{V1}/issues/{asked.issue}", json=wanted)
    assert (again.status_code, "already" in again.json()["detail"]) == (409, True)
    assert (await asked.tracked())[1] == ["well done"]


@pytest.mark.promise("Q7")
async def test_what_counts_only_signed_is_approved_on_a_terminal(asked: Page, person: httpx.AsyncClient) -> None:
    config = asked.world.folder / "config.yaml"
    before = config.read_text()
    config.write_text(f"{before}\npeople: {{tracker: [Pat], signed: required}}\n")
    try:
        wanted = {"do": "approve", "asked": await question(person, asked.issue)}
        answer = await person.post(f"{V1}/issues/{asked.issue}", json=wanted)
    finally:
        config.write_text(before)
    assert (answer.status_code, f"`ashep approve {asked.issue} --sign`" in answer.json()["detail"]) == (409, True)
    assert await asked.tracked() == ({Labels().needs_approval}, [])


@pytest.mark.promise("L4")
async def test_an_answer_of_somebody_else_is_replaced_by_who_has_seen_it_alone(
    asked: Page, person: httpx.AsyncClient
) -> None:
    """Before, this answered 200 three times out of three, and the first answer was gone."""
    kim = asked.world.tracker.as_actor("Kim")
    path, seen = f"{V1}/issues/{asked.issue}", await question(person, asked.issue)
    wanted = {"do": "approve", "message": "", "asked": seen}
    assert (await told(person, "/answers")) == {"running": False, "items": []}
    assert (await person.post(path, json=wanted)).status_code == 200
    (mine,) = (await told(person, "/answers"))["items"]  # also after a reload, and where the server begins anew
    assert (mine["issue"], mine["answer"], mine["by"]) == (asked.issue, "approved", "Pat")
    await answers.answer(kim, Labels(), asked.issue, approved=False, comment=None, at=AT, instead=True)
    for _ in range(2):  # as well where this server remembers that they approved
        refused = await person.post(path, json=wanted)
        assert (refused.status_code, "Kim asked for changes at" in refused.json()["detail"]) == (409, True)
    assert (await person.post(path, json=wanted | {"instead": mine["id"]})).status_code == 409
    (theirs,) = (await told(person, "/answers"))["items"]
    assert (theirs["answer"], theirs["by"]) == ("changes_requested", "Kim")
    assert (await person.post(path, json=wanted | {"instead": theirs["id"]})).status_code == 200
    assert Labels().changes_requested not in (await asked.tracked())[0]


async def test_the_tracker_is_asked_for_answers_now_and_then_where_something_asks(
    asked: Page, person: httpx.AsyncClient
) -> None:
    readers = list[MemoryTracker]()

    def reader(*given: Any) -> MemoryTracker:
        readers.append(asked.world.tracker.as_actor(given[-1]))
        return readers[-1]

    asked.world.acts.tracker_of = reader
    await asked.world.tracker.relabel(asked.issue, (Labels().approved,), ())
    for _ in range(5):
        assert [
            one["by"] for one in (await told(person, "/answers"))["items"]
        ] == []  # the service's own counts for none
    assert sum((one.calls for one in readers), Counter()) == {"look": 1, "changes": 1}


async def test_another_question_is_not_answered(asked: Page, person: httpx.AsyncClient) -> None:
    for seen in (None, "", "2020-01-01T00:00:00.000000Z"):
        for do in ("approve", "reject", "answer"):
            wanted = {"do": do, "message": "no", "asked": seen}
            assert (await person.post(f"{V1}/issues/{asked.issue}", json=wanted)).status_code == 409
    assert await asked.tracked() == ({Labels().needs_approval}, [])


async def test_what_was_answered_meanwhile_is_told(asked: Page, person: httpx.AsyncClient) -> None:
    wanted = {"do": "approve", "asked": await question(person, asked.issue)}
    await asked.world.tracker.relabel(asked.issue, (), (Labels().needs_approval,))
    answer = await person.post(f"{V1}/issues/{asked.issue}", json=wanted)
    assert (answer.status_code, "asks nothing" in answer.json()["detail"]) == (409, True)


async def test_where_no_policy_can_be_read_nothing_is_approved(page: Page, person: httpx.AsyncClient) -> None:
    """It could ask that every file was seen; and the person learns which line to mend."""
    await page.stands()
    wanted = {"do": "approve", "asked": await question(person, page.issue)}
    policies = page.world.folder / "policies.yaml"
    text = policies.read_text()
    try:
        policies.write_text(f"{text}\n  - {{")
        answer = await person.post(f"{V1}/issues/{page.issue}", json=wanted)
        assert (answer.status_code, "policies.yaml:" in answer.text) == (422, True), answer.text
        assert await page.tracked() == ({Labels().needs_approval}, [])
    finally:
        policies.write_text(text)


async def test_a_picture_that_is_behind_answers_nothing(page: Page, person: httpx.AsyncClient) -> None:
    """The next question may stand in the tracker, where what is drawn still shows the one before."""
    pictures = page.world.live.pictures
    instance, drawn = await pictures.read(lambda seen: standing.read_model_position(seen.database))
    await page.stands(Stamp(instance, drawn + 1, f"{page.issue}/review.2.1", 2, 1, 1))
    wanted = {"do": "approve", "asked": await question(person, page.issue)}
    answer = await person.post(f"{V1}/issues/{page.issue}", json=wanted)
    assert (answer.status_code, "look at it again" in answer.json()["detail"]) == (409, True)
    assert await page.tracked() == ({Labels().needs_approval}, [])


async def test_without_a_daemon_what_needs_one_says_so(person: httpx.AsyncClient) -> None:
    for path, body in (("pause", {"minutes": 5}), ("resume", {}), ("cancel", {"target": "t-1"})):
        answer = await person.post(f"{V1}/{path}", json=body)
        assert (answer.status_code, "is not running" in answer.json()["detail"]) == (503, True)


# --- live ---------------------------------------------------------------------------------------------------------


async def test_a_change_is_told_to_all_who_watch(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = page.world.live
    seqs = iter([7, 7, 9])
    changed: list[int] = []

    async def current() -> int:
        changed.append(next(seqs, 9))
        return changed[-1]

    monkeypatch.setattr(watch.pictures, "current", current)
    monkeypatch.setattr(events, "LOOK", 0.02)
    streams = [await watch.watch() for _ in range(3)]
    heard: list[list[bytes]] = [[] for _ in streams]

    async def listen(n: int) -> None:
        async for line in streams[n].lines:
            heard[n].append(line)
            if len(heard[n]) == 2:
                return

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for n in range(3):
                group.start_soon(listen, n)
    for lines in heard:
        assert [json.loads(line.split(b"data: ")[1])["seq"] for line in lines] == [7, 9]
    assert len(changed) < 3 * 3  # one look for all


async def test_streams_are_bounded_and_end_with_the_server(page: Page) -> None:
    watch = page.world.live
    streams = [(await watch.watch()).lines for _ in range(events.MOST)]
    for one in streams:
        await anext(one)
    with pytest.raises(events.TooManyStreams):
        await watch.watch()
    watch.end()
    with anyio.fail_after(5):
        for one in streams:
            assert [line async for line in one] == []
    await watch.watch()


async def test_names_of_policies_need_no_other_file(page: Page, client: httpx.AsyncClient) -> None:
    names, agents = (await told(client, "/now"))["policies"], page.world.folder / "agents.yaml"
    kept, other = agents.read_text(), page.world.folder / "policies" / "other.yaml"
    other.parent.mkdir(exist_ok=True)
    try:
        agents.write_text("agents: [")
        other.write_text("policies: {other: {extends: preset:quick}}\n")
        assert (await told(client, "/now"))["policies"] == [*names, "other"]
    finally:
        agents.write_text(kept)
        other.unlink()
    assert (await told(client, "/now"))["policies"] == names != []
