"""The service over HTTP: what it answers, whom, and what becomes of what goes wrong."""

import itertools
import json
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from ashep.api import application
from ashep.api.handlers import ticket_history
from ashep.core.state.branches import shared_branch
from ashep.core.state.delivery import MOST_PROOFS as KEPT
from ashep.errors import AshepError, TrackerUnavailable
from ashep.ports.tracker import IssueDraft, IssueText
from tests.service.worlds import CHECKS, TOKEN, World, git, repository

NO_CHECKS = "It works."


@pytest.fixture
def world(folder: Path) -> World:
    return World(repository(folder.parent / "project"))


async def ask(world: World, method: str, path: str, body: Any = None) -> tuple[int, dict[str, Any]]:
    async with world.client() as client:
        answer = await client.request(method, path, json=body)
    kind = "application/json" if answer.status_code in (200, 201) else "application/problem+json"
    assert answer.headers["content-type"] == kind
    return answer.status_code, answer.json()


async def test_an_issue_is_verified_at_the_tip_of_its_branch(world: World) -> None:
    world.issue()
    status, told = await ask(world, "POST", "/verify", world.request())
    assert status == 200
    assert {key: told[key] for key in ("ticket_id", "verification_status", "summary")} == {
        "ticket_id": "t-1",
        "verification_status": "passing",
        "summary": {"total": 3, "passed": 2, "failed": 0, "skipped": 1},
    }
    assert [(one["check_id"], one["type"], one["status"]) for one in told["checks"]] == [
        ("readme", "file_exists", "passed"),
        ("tests", "test_pass", "passed"),
        ("looks", "manual", "skipped"),
    ]
    request, before = world.verifier.requests
    assert request.repository == world.project
    assert request.commit == told["commit"] == git(world.project, "rev-parse", "ashep/t-1")
    assert request.base == told["base"] == git(world.project, "rev-parse", "main")
    assert (before.commit, before.base) == (request.base, request.base), "whether it was green before any work"
    assert (told["changed"], [one["proves_nothing"] for one in told["checks"]]) == (True, [True, True, False])


async def test_a_branch_that_changes_nothing_is_told_so(world: World) -> None:
    world.issue()
    git(world.project, "branch", "idle", "main")
    for branch, base, changed in (("idle", git(world.project, "rev-parse", "main"), False), ("main", None, None)):
        _, told = await ask(world, "POST", "/verify", world.request(branch_name=branch))
        assert (told["base"], told["changed"], told["verification_status"]) == (base, changed, "passing")


@pytest.mark.parametrize(
    ("finds", "status"), [({"tests": "failed"}, "failing"), ({"tests": "error"}, "blocked"), ({}, "passing")]
)
async def test_what_it_comes_to_is_written_down(world: World, finds: dict[str, Any], status: str) -> None:
    world.issue()
    assert (await ask(world, "GET", "/status/t-1"))[1] == {
        "ticket_id": "t-1", "verification_status": "pending", "checks": [], "current": None, "running": False,
        "failed_attempts": [],
    }  # fmt: skip
    world.verifier.finds = finds
    _, told = await ask(world, "POST", "/verify", world.request())
    assert told["verification_status"] == status
    assert told["checks"][1]["output"] == ("tests said\n" if finds.get("tests") == "failed" else "")
    found = await world.annotations.read("t-1")
    assert found is not None
    assert found.metadata["verification_status"] == status
    (entry,) = ticket_history.read(found.metadata)
    assert (entry.n, entry.status, entry.at) == (1, status, "2026-01-01T12:01:00Z")
    assert entry.failures == tuple(finds)
    _, stands = await ask(world, "GET", "/status/t-1")
    last = [{key: one[key] for key in ("check_id", "status", "message", "duration_ms")} for one in told["checks"]]
    failed = [entry.model_dump(mode="json")] if finds else []
    assert stands == {
        "ticket_id": "t-1", "verification_status": status, "checks": last, "current": True, "running": False,
        "failed_attempts": failed,
    }  # fmt: skip


@pytest.mark.promise("L21")
async def test_an_id_alone_is_enough_where_branch_and_repository_are_known(world: World) -> None:
    world.issue()
    status, told = await ask(world, "POST", "/verify", {"ticket_id": "t-1"})
    assert (status, told["commit"]) == (200, git(world.project, "rev-parse", "ashep/t-1"))
    git(world.project, "branch", shared_branch("epic-1"), "main")
    world.tracker.person_sets("t-1", "Ann", add_labels=("branch:epic-1",))
    status, told = await ask(world, "POST", "/verify", {"ticket_id": "t-1"})
    assert (status, told["commit"]) == (200, git(world.project, "rev-parse", "main"))
    other = world.tracker.add("Work", id="t-2", text=IssueText(acceptance=CHECKS))
    status, told = await ask(world, "POST", "/verify", {"ticket_id": other})
    assert (status, told["detail"]) == (404, f"{world.project} has no branch ashep/t-2")


@pytest.mark.parametrize(("allowed", "status"), [((".", "../other"), 200), (("../a", "../b"), 422), (("../a",), 404)])
async def test_which_repository_is_meant_is_known_or_asked(folder: Path, allowed: tuple[str, ...], status: int) -> None:
    world = World(repository(folder.parent / "project"), *allowed)
    world.issue()
    found, told = await ask(world, "POST", "/verify", {"ticket_id": "t-1"})
    assert found == status, told
    if status == 422:
        assert told["detail"] == "repo_url: name one of the 2 repositories of `verification.repositories`"


@pytest.mark.promise("L21")
async def test_the_log_only_grows_at_its_end_and_is_bounded(world: World) -> None:
    world.issue()
    await world.annotations.annotate("t-1", {"theirs": 1, "verification_log": ["somebody's word"]})
    logs = list[list[dict[str, Any]]]()
    for _ in range(KEPT + 3):
        await ask(world, "POST", "/verify", world.request())
        logs.append((await ask(world, "GET", "/tickets/t-1/verification"))[1]["verification_log"])
    for before, after in itertools.pairwise(logs):
        assert after[:-1] == before[-(KEPT - 1) :], "what stood there stands there still"
    assert [entry["n"] for entry in logs[-1]] == list(range(4, KEPT + 4)), "and numbers tell of what was dropped"
    found = await world.annotations.read("t-1")
    assert found is not None
    assert found.metadata["theirs"] == 1
    assert len(json.dumps(found.metadata["verification_log"])) < 500 * KEPT


async def test_other_checks_make_it_out_of_date(world: World) -> None:
    world.issue()
    await ask(world, "POST", "/verify", world.request())
    world.tracker.person_rewrites("t-1", "Ann", CHECKS + "And is fast.")
    assert (await ask(world, "GET", "/status/t-1"))[1]["current"] is True
    world.tracker.person_rewrites("t-1", "Ann", CHECKS.replace("README.md", "LICENSE"))
    assert (await ask(world, "GET", "/status/t-1"))[1]["current"] is False
    world.tracker.person_rewrites("t-1", "Ann", NO_CHECKS)
    assert (await ask(world, "GET", "/tickets/t-1"))[1]["current"] is False


async def test_an_issue_is_shown_with_its_checks_or_what_is_wrong_with_them(world: World) -> None:
    world.issue()
    _, told = await ask(world, "GET", "/tickets/t-1")
    assert told["acceptance_criteria"] == CHECKS
    assert [check["id"] for check in told["checks"]["checks"]] == ["readme", "tests", "looks"]
    assert (told["title"], told["status"], told["problems"]) == ("Work", "open", [])
    world.issue(CHECKS.replace("path:", "pth:"), id="t-2")
    _, told = await ask(world, "GET", "/tickets/t-2")
    assert (told["checks"], told["criteria"]) == (None, None)
    assert told["problems"][0].startswith("acceptance criteria of t-2:5: checks[0].verify.pth: unknown key")
    status, told = await ask(world, "POST", "/verify", world.request(ticket_id="t-2"))
    assert (status, len(told["errors"])) == (422, 2)


async def test_acceptance_criteria_are_replaced_whole_or_in_their_block(world: World) -> None:
    world.issue()
    check = {"id": "new", "type": "file_exists", "description": "d", "verify": {"path": "LICENSE"}}
    _, told = await ask(world, "PUT", "/tickets/t-1", {"acceptance_criteria": {"checks": [check]}})
    assert told["acceptance_criteria"].startswith("It works.\n\n```json\n")
    assert [one["id"] for one in told["checks"]["checks"]] == ["new"]
    _, told = await ask(world, "PUT", "/tickets/t-1", {"acceptance_criteria": NO_CHECKS})
    assert (told["acceptance_criteria"], told["checks"]) == (NO_CHECKS, None)


@pytest.mark.promise("L21")
async def test_words_and_priority_are_replaced_and_what_is_not_given_stays(world: World) -> None:
    world.issue()
    _, before = await ask(world, "GET", "/tickets/t-1")
    status, told = await ask(
        world, "PUT", "/tickets/t-1", {"title": "Greet", "priority": 0, "description": "Say hello."}
    )
    assert status == 200
    assert (told["title"], told["priority"], told["description"]) == ("Greet", 0, "Say hello.")
    assert {key: told[key] for key in told if key not in ("title", "priority", "description")} == {
        key: before[key] for key in before if key not in ("title", "priority", "description")
    }
    assert (await ask(world, "GET", "/tickets/t-1"))[1] == told
    _, both = await ask(world, "PUT", "/tickets/t-1", {"description": "", "acceptance_criteria": NO_CHECKS})
    assert (both["title"], both["description"], both["acceptance_criteria"]) == ("Greet", "", NO_CHECKS)
    _, null = await ask(world, "PUT", "/tickets/t-1", {"title": None, "priority": 3})
    assert (null["title"], null["priority"]) == ("Greet", 3)


@pytest.mark.parametrize(("body", "said"), [
    ({}, "nothing is to change: give one of title, description, priority, acceptance_criteria"),
    ({"title": None}, "nothing is to change"),
    ({"title": ""}, "title: String should have at least 1 character"),
    ({"title": "a\nb"}, "title: String should match pattern"),
    ({"title": "x" * 501}, "title: String should have at most 500 characters"),
    ({"description": "x" * 60_001}, "description: String should have at most 60000 characters"),
    ({"description": "a\0b"}, "description: String should match pattern"),
    ({"priority": 5}, "priority: Input should be less than or equal to 4"),
    ({"priority": "1"}, "priority: Input should be a valid integer"),
    ({"status": "closed"}, "status: Extra inputs are not permitted"),
    ({"title": "New", "labels": ["human:approved"]}, "labels: Extra inputs are not permitted"),
    ({"title": "New", "acceptance_criteria": {"checks": [{"id": "a"}]}}, "checks[0].type"),
])  # fmt: skip
async def test_what_cannot_stand_on_an_issue_is_refused_with_its_key(world: World, body: Any, said: str) -> None:
    world.issue()
    before = await ask(world, "GET", "/tickets/t-1")
    status, told = await ask(world, "PUT", "/tickets/t-1", body)
    assert (status, said in told["detail"]) == (422, True), told
    assert await ask(world, "GET", "/tickets/t-1") == before


SHELL = {"command": "a;b"}
WANTED = {"title": "Greet", "acceptance_criteria": {"checks": [
    {"id": "ac-1", "type": "test_pass", "description": "d", "verify": {"command": "make test"}}]}}  # fmt: skip


async def created(world: World, body: Any = WANTED, key: str | None = None) -> httpx.Response:
    async with world.client() as client:
        return await client.post("/tickets", json=body, headers={} if key is None else {"Idempotency-Key": key})


async def test_an_issue_is_created_and_shown(world: World) -> None:
    answer = await created(world, WANTED | {"description": "Say hello.", "type": "bug", "priority": 0})
    told = answer.json()
    assert answer.status_code == 201
    assert answer.headers["location"] == f"/tickets/{told['ticket_id']}"
    assert (told["title"], told["status"], told["verification_status"]) == ("Greet", "open", "pending")
    assert told["checks"]["checks"][0]["verify"]["command"] == ["make", "test"]
    _, shown = await ask(world, "GET", answer.headers["location"])
    assert shown == told
    issue = world.tracker.everything()[told["ticket_id"]]
    assert (issue.type, issue.priority, issue.assignee, issue.labels) == ("bug", 0, None, ())
    found = await world.annotations.read(told["ticket_id"])
    assert found is not None
    assert found.metadata["verification_status"] == "pending"
    text = await created(world, {"title": "Other", "acceptance_criteria": CHECKS})
    assert text.json()["acceptance_criteria"] == CHECKS
    assert text.json()["ticket_id"] != told["ticket_id"]


@pytest.mark.promise("L21")
async def test_with_the_same_key_an_issue_is_created_once(world: World) -> None:
    answers = list[httpx.Response]()

    async def create() -> None:
        answers.append(await created(world, key="one"))

    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(create)
    assert {one.status_code for one in answers} == {201}
    assert len({one.json()["ticket_id"] for one in answers}) == len(world.tracker.everything()) == 1
    other = await created(world, WANTED | {"title": "Another"}, key="one")
    assert other.status_code == 422
    assert other.json()["detail"].startswith("Idempotency-Key: it was given before, with another request")
    assert (await created(world, key="two")).json()["ticket_id"] != answers[0].json()["ticket_id"]
    wrong = await created(world, key="a b")
    assert (wrong.status_code, wrong.json()["detail"][:16]) == (400, "Idempotency-Key:")


@pytest.mark.promise("L21")
@pytest.mark.parametrize("stored", [True, False])
async def test_a_lost_answer_of_the_tracker_creates_no_second_issue(world: World, stored: bool) -> None:
    create = world.annotations.create

    async def lost(fresh: IssueDraft) -> bool:
        if stored:
            await create(fresh)
        raise TrackerUnavailable("no answer", unknown=True)

    world.annotations.create = lost
    assert (await created(world, key="one")).status_code == (201 if stored else 503)
    world.annotations.create = create
    assert (await created(world, key="one")).status_code == 201
    assert len(world.tracker.everything()) == 1


@pytest.mark.parametrize(("body", "said"), [
    ({}, "title: Field required"),
    ({"title": ""}, "title: String should have at least 1 character"),
    ({"title": "a\nb"}, "title: String should match pattern"),
    ({"title": "a", "priority": 9}, "priority: Input should be less than or equal to 4"),
    ({"title": "a", "type": "x"}, "type: Input should be 'task', 'bug'"),
    ({"title": "a", "labels": ["human:approved"]}, "labels: Extra inputs are not permitted"),
    ({"title": "a", "acceptance_criteria": {"checks": [{"id": "a", "type": "test_pass", "verify": SHELL}]}},
     "checks[0].verify.command: expected a command without `;`"),
])  # fmt: skip
async def test_what_cannot_be_created_is_refused_with_its_key(world: World, body: Any, said: str) -> None:
    answer = await created(world, body)
    assert answer.status_code == 422
    assert said in answer.json()["detail"]
    assert world.tracker.everything() == {}


async def test_issues_are_listed_with_what_their_verifications_came_to(world: World) -> None:
    world.issue()
    world.issue(id="t-2")
    world.tracker.add("Done", id="t-3", status="closed")
    await ask(world, "POST", "/verify", world.request())
    _, told = await ask(world, "GET", "/tickets")
    assert [(one["ticket_id"], one["verification_status"]) for one in told["tickets"]] == [
        ("t-1", "passing"), ("t-2", "pending"),
    ]  # fmt: skip
    _, closed = await ask(world, "GET", "/tickets?status=closed")
    assert [one["title"] for one in closed["tickets"]] == ["Done"]
    assert len((await ask(world, "GET", "/tickets?status=all"))[1]["tickets"]) == 3
    for query, said in (("status=done", "status: Input should be 'open'"), ("state=open", "state: Extra inputs")):
        status, told = await ask(world, "GET", f"/tickets?{query}")
        assert (status, told["detail"][: len(said)]) == (422, said)


@pytest.mark.parametrize("given", [CHECKS + CHECKS, {"checks": [{"id": "a"}]}, "```yaml\nchecks: 3\n```", 3, None])
async def test_wrong_checks_are_refused_and_nothing_is_written(world: World, given: Any) -> None:
    world.issue()
    status, told = await ask(world, "PUT", "/tickets/t-1", {"acceptance_criteria": given})
    assert status == 422
    assert told["detail"]
    assert (await ask(world, "GET", "/tickets/t-1"))[1]["acceptance_criteria"] == CHECKS


@pytest.mark.promise("L21")
@pytest.mark.parametrize(("more", "status", "detail"), [
    ({"ticket_id": "t-none"}, 404, "there is no issue t-none"),
    ({"branch_name": "ashep/other"}, 404, "no branch ashep/other"),
    ({"branch_name": "a..b"}, 404, "no name of a branch"),
    ({"repo_url": "/etc"}, 403, "verification.repositories"),
    ({"repo_url": "https://example.org/a.git"}, 403, "verification.repositories"),
    ({"repo_url": "ext::sh -c touch% /tmp/x"}, 403, "verification.repositories"),
    ({"repo_url": "../project/../../etc"}, 403, "verification.repositories"),
    ({"branch_name": "--upload-pack=x"}, 422, "branch_name"),
    ({"branch_name": "a b"}, 422, "branch_name"),
    ({"more": 1}, 422, "more"),
    ({"ticket_id": 3}, 422, "ticket_id"),
])  # fmt: skip
async def test_what_cannot_be_verified_is_refused(world: World, more: dict[str, Any], status: int, detail: str) -> None:
    world.issue()
    found, told = await ask(world, "POST", "/verify", world.request(**more))
    assert (found, told["status"]) == (status, status)
    assert detail in told["detail"]
    assert world.verifier.requests == []


async def test_an_issue_without_checks_is_refused(world: World) -> None:
    world.issue(NO_CHECKS)
    status, told = await ask(world, "POST", "/verify", world.request())
    assert status == 422
    assert "no block of checks" in told["detail"]


@pytest.mark.parametrize("name", [".", "file", "same"])
async def test_the_project_has_several_names(world: World, name: str) -> None:
    world.issue()
    url = {".": ".", "file": world.project.as_uri(), "same": f"{world.project}/../project/"}[name]
    assert (await ask(world, "POST", "/verify", world.request(repo_url=url)))[0] == 200


async def test_a_repository_from_elsewhere_is_fetched_if_it_is_allowed(folder: Path) -> None:
    elsewhere = repository(folder.parent / "elsewhere")
    world = World(repository(folder.parent / "project"), "../elsewhere")
    world.issue()
    assert (await ask(world, "POST", "/verify", world.request(repo_url=str(elsewhere))))[0] == 200
    assert (await ask(world, "POST", "/verify", world.request()))[0] == 403, "only what is named"


async def test_one_verification_of_an_issue_at_a_time(world: World) -> None:
    world.issue()
    world.issue(id="t-2")
    world.verifier.goes = anyio.Event()
    answers = dict[str, int]()

    async def verify(name: str, issue: str) -> None:
        answers[name] = (await ask(world, "POST", "/verify", world.request(ticket_id=issue)))[0]

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(verify, "first", "t-1")
            group.start_soon(verify, "other", "t-2")
            while len(world.verifier.requests) < 2:
                await anyio.sleep(0.01)
            assert (await ask(world, "GET", "/status/t-1"))[1]["running"] is True
            await verify("second", "t-1")
            world.verifier.goes.set()
    assert answers == {"first": 200, "other": 200, "second": 409}
    assert (await ask(world, "POST", "/verify", world.request()))[0] == 200, "and then again"


async def test_an_end_of_the_service_is_told_to_who_waits(world: World) -> None:
    world.issue()
    world.verifier.goes = anyio.Event()
    answers = list[tuple[int, dict[str, Any]]]()

    async def verify() -> None:
        answers.append(await ask(world, "POST", "/verify", world.request()))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(verify)
            while not world.verifier.requests:
                await anyio.sleep(0.01)
            world.tickets.end()
        await verify()
    assert [(status, told["detail"]) for status, told in answers] == [
        (503, "the service ends: t-1 was not verified")
    ] * 2
    assert (await ask(world, "GET", "/status/t-1"))[1]["verification_status"] == "pending"


@pytest.mark.promise("L21")
async def test_a_failure_ends_the_verification_and_not_the_service(world: World) -> None:
    world.issue()
    for error, status in (
        (AshepError("no room"), 502),
        (TrackerUnavailable("bd is away"), 503),
        (RuntimeError("a mistake in /home/ann"), 500),
    ):
        world.verifier.raises = error
        found, told = await ask(world, "POST", "/verify", world.request())
        assert found == status
        assert "Traceback" not in str(told)
        assert "/home/ann" not in str(told)
    assert [word for word in world.said if "/home/ann" in word], "but whoever runs the service reads it"
    assert (await ask(world, "GET", "/status/t-1"))[1]["running"] is False


# --- whom, and how much ---------------------------------------------------------------------------------------------


@pytest.mark.promise("L21")
@pytest.mark.parametrize("header", [None, "Bearer ", "Bearer wrong", "Basic YTpi", TOKEN, "Bearer é"])
async def test_without_the_token_nothing_is_told(world: World, header: str | None) -> None:
    world.issue()
    async with world.client(None) as client:
        headers = {} if header is None else {"Authorization": header.encode()}
        for method, path in (("GET", "/status/t-1"), ("PUT", "/tickets/t-1"), ("POST", "/verify"), ("GET", "/nowhere")):
            answer = await client.request(method, path, headers=headers)  # pyright: ignore[reportArgumentType] - bytes are fine
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert (await client.get("/health")).json()["status"] == "ok"
        assert (await client.get("/openapi.json")).json()["openapi"] == "3.1.0"


async def test_bodies_are_bounded_and_json(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.issue()
    async with world.client() as client:

        async def post(content: Any, kind: str = "application/json") -> httpx.Response:
            return await client.post("/verify", content=content, headers={"Content-Type": kind})

        assert (await post(b"{}", "text/plain")).status_code == 415
        assert (await post(b"{")).status_code == 400
        assert (await post(b"\xff")).status_code == 400
        assert (await post(b"[" * 100_000)).status_code == 400
        assert (await post(b" " * (application.MAX_BODY + 1))).status_code == 413
        monkeypatch.setattr(application, "READING", 0.05)

        async def slowly() -> Any:
            yield b"{"
            await anyio.sleep(5)

        assert (await post(slowly())).status_code == 408


async def test_what_is_not_there_is_a_problem_too(world: World) -> None:
    for method, path, status in (
        ("GET", "/nowhere", 404),
        ("GET", "/tickets/t-1/", 404),
        ("GET", "/status/%2e%2e", 404),
        ("GET", "/status/-x", 404),
        ("DELETE", "/tickets/t-1", 405),
        ("GET", "/verify", 405),
    ):
        assert (await ask(world, method, path))[0] == status


async def test_each_method_of_a_path_is_named(world: World) -> None:
    async with world.client() as client:
        allowed = (await client.delete("/tickets/t-1")).headers["allow"]
    assert {one.strip() for one in allowed.split(",")} == {"GET", "HEAD", "PUT"}
