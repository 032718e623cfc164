"""What a run changed, what was said in its session and what work may use, as the page is told it."""

import base64
import json
import sqlite3
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx
import pytest
from anyio import to_thread
from typer.testing import CliRunner

from ashep.api.handlers import events, issue_work, run_artifacts
from ashep.api.routes import V1
from ashep.cli.commands import app
from ashep.config import write_starter
from ashep.core.facts.delivery import Tree
from ashep.core.policy.budgets import Budget, Budgets
from ashep.core.policy.settings import Settings, WorkerSettings
from ashep.factories import runner_folder
from ashep.ports.tracker import IssueText
from ashep.ports.transcripts import TranscriptStep, write_steps
from ashep.store.sqlite_reader import NAME
from ashep.views import runs
from tests.core import given
from tests.recorded import Recorded, draw
from tests.service.worlds import World, git, repository

pytestmark = pytest.mark.anyio

RUN = "t-2/implement.1.1"
HOSTILE = "a\nb\x1b[31m.txt"
SECRET = "a-secret-of-the-machine"


BUDGETS = Budgets(day=Budget(tokens=10**6), issue=Budget(cost=1000), total=Budget(tokens=1), runs_per_hour=50)


def changes(project: Path) -> tuple[str, str]:
    """Commit what an agent may: a rename, a binary file, odd names, much, and attributes that name programs."""
    (project / "old.txt").write_text("".join(f"line {n}\n" for n in range(50)))
    git(project, "add", ".")
    git(project, "commit", "-qm", "before")
    base = git(project, "rev-parse", "HEAD")
    (project / ".gitattributes").write_text("* diff=own\nmore.txt -diff\n")
    git(project, "config", "diff.own.textconv", "touch ran; cat")
    git(project, "config", "diff.own.command", "touch ran")
    git(project, "config", "diff.external", "touch ran")
    git(project, "mv", "old.txt", "new.txt")
    with (project / "new.txt").open("a") as file:
        file.write(f"\x1b[31mred\x1b[0m \u202eback {SECRET}\n")
    (project / "image.bin").write_bytes(b"\0\1\2" * 100)
    (project / HOSTILE).write_text("odd\n")
    (project / "many.txt").write_text("".join(f"{n}\n" for n in range(5000)))
    (project / "huge.txt").write_text("x\n" * 2_200_000)
    (project / "wide.txt").write_text("y" * 100_000 + "\n")
    git(project, "add", ".")
    git(project, "commit", "-qm", "work")
    return base, git(project, "rev-parse", "HEAD")


def tell(project: Path, base: str, head: str) -> None:
    """Have the picture say that the run began and ended at these commits, as the daemon would have drawn it."""
    with sqlite3.connect(project / ".agent-shepherd" / "state" / NAME) as database:
        for kind, key, value in (("TreePrepared", "head", base), ("TreeSealed", "head", head)):
            found = "UPDATE facts SET body = json_set(body, ?, ?) WHERE run = ? AND type = ?"
            assert database.execute(found, [f"$.{key}", value, RUN, kind]).rowcount == 1


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    project = repository(tmp_path_factory.mktemp("work") / "project")
    write_starter(project / ".agent-shepherd")
    state, config = (
        project / ".agent-shepherd" / "state",
        Settings(budgets=BUDGETS, worker=WorkerSettings(workspace="worktree")),
    )
    made = Recorded(state)
    made.begin(*given.start(config=config, tree=Tree(True, "c0ffee", branch="main")))
    for issue in ("t-1", "t-2", "t-3"):
        made.open(issue)
    made.live(30)
    draw(state, made.journal)
    made.journal.close()
    return project


@pytest.fixture
def world(project: Path) -> World:
    return World(project)


@pytest.fixture
async def client(world: World) -> AsyncIterator[httpx.AsyncClient]:
    world.live.pictures.redaction.add(SECRET)
    async with world.client() as client:
        yield client
    assert world.said == []


async def told(client: httpx.AsyncClient, place: str, **query: Any) -> Any:
    answer = await client.get(f"{V1}{place}", params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.fixture(scope="module")
def ends(project: Path) -> tuple[str, str]:
    found = changes(project)
    tell(project, *found)
    return found


async def test_what_a_run_changed_is_told_by_file(
    project: Path, ends: tuple[str, str], client: httpx.AsyncClient
) -> None:
    found = await told(client, f"/runs/{RUN}/diff")
    assert (found["base"], found["head"], found["why"]) == (*ends, None)
    files = {one["path"]: one for one in found["files"]}
    assert {path: (one["status"], one["added"], one["removed"], one["unread"]) for path, one in files.items()} == {
        ".gitattributes": ("created", 2, 0, None),
        "a b[31m.txt": ("created", 1, 0, None),
        "huge.txt": ("created", 0, 0, "large"),
        "image.bin": ("created", 0, 0, "binary"),
        "many.txt": ("created", 5000, 0, None),
        "new.txt": ("renamed", 1, 0, None),
        "wide.txt": ("created", 1, 0, None),
    }
    assert files["new.txt"]["former"] == "old.txt"
    assert not (project / "ran").exists()


async def test_lines_of_a_file_are_text_and_go_on(
    project: Path, ends: tuple[str, str], client: httpx.AsyncClient
) -> None:
    lines = (await told(client, f"/runs/{RUN}/diff", path="new.txt"))["lines"]
    assert lines[0].startswith("@@ -48,3 +48,4 @@")
    assert lines[-1] == "+[31mred[0m back [redacted]"
    assert (await told(client, f"/runs/{RUN}/diff", path="a b[31m.txt"))["lines"][-1] == "+odd"
    assert len((await told(client, f"/runs/{RUN}/diff", path="wide.txt"))["lines"][-1]) < 3000
    for path, why in (("huge.txt", "large"), ("image.bin", "binary")):
        assert why in (await told(client, f"/runs/{RUN}/diff", path=path))["why"]
    whole, query = list[str](), {"after": 0}
    while query["after"] is not None:
        part = await told(client, f"/runs/{RUN}/diff", path="many.txt", **query)
        assert len(part["lines"]) <= run_artifacts.MOST_LINES
        whole, query = [*whole, *part["lines"]], {"after": part["next"]}
    assert whole[1:] == [f"+{n}" for n in range(5000)]
    assert not (project / "ran").exists()


@pytest.mark.parametrize("path", ["../../etc/passwd", "/etc/passwd", ":(top)*", "new.txt\n", "--output=x", "README.md"])
async def test_a_path_is_one_of_those_that_changed_or_none(
    ends: tuple[str, str], client: httpx.AsyncClient, path: str
) -> None:
    found = await told(client, f"/runs/{RUN}/diff", path=path)
    assert found["lines"] == []
    assert found["why"] == "It did not change that file."


async def test_what_git_does_not_have_any_more_is_said(
    project: Path, ends: tuple[str, str], client: httpx.AsyncClient
) -> None:
    tell(project, ends[0], "0" * 39 + "1")
    try:
        found = await told(client, f"/runs/{RUN}/diff")
    finally:
        tell(project, *ends)
    assert found["files"] == []
    assert found["why"] == "Git does not have the commits of this run any more: 000000000000."
    assert (await client.get(f"{V1}/runs/t-2/implement.7.7/diff")).status_code == 404


# --- the work of an issue ------------------------------------------------------------------------------------------


async def test_the_sum_of_an_issue_s_work_is_what_lies_between_its_base_and_its_last_commit(
    project: Path, ends: tuple[str, str], client: httpx.AsyncClient
) -> None:
    with sqlite3.connect(project / ".agent-shepherd" / "state" / NAME) as database:  # as git has them
        for key, value in zip(("base", "head"), ends, strict=True):
            found = "UPDATE facts SET body = json_set(body, ?, ?) WHERE issue = 't-2' AND type = 'TreePrepared'"
            database.execute(f"{found} AND (run <> ? OR ? = 'base')", [f"$.{key}", value, RUN, key])
    changes = await told(client, "/issues/t-2/diff")
    assert (changes["base"], changes["head"]) == ends
    assert changes == await told(client, f"/runs/{RUN}/diff")
    assert (await told(client, "/issues/t-2/diff", path="a b[31m.txt"))["lines"][-1] == "+odd"
    assert (await client.get(f"{V1}/issues/t-9/diff")).status_code == 404


async def test_what_was_asked_and_what_agents_say_stand_side_by_side(world: World, client: httpx.AsyncClient) -> None:
    work = await told(client, "/issues/t-2/work")
    assert work["words"]["error"] == "The tracker does not have this issue any more."
    world.tracker.add(
        "Add", id="t-2", text=IssueText("Add", f"Two numbers.\x1b[31m {SECRET}", acceptance="1 + 1 is 2.")
    )
    work = await told(client, "/issues/t-2/work")
    assert work["words"] == {
        "error": None, "description": "Two numbers.[31m [redacted]", "acceptance": "1 + 1 is 2.", "design": "",
        "notes": "",
    }  # fmt: skip
    assert [(one["phase"], one["result"], one["summary"]) for one in work["summaries"]][-1:] == [
        ("implement", "success", "done")
    ]
    assert (await client.get(f"{V1}/issues/t-9/work")).status_code == 404


async def test_of_a_long_text_the_beginning_is_given(world: World, client: httpx.AsyncClient) -> None:
    world.tracker.add("Add", id="t-2", text=IssueText("Add", "x" * 1024**2))
    description = (await told(client, "/issues/t-2/work"))["words"]["description"]
    assert (len(description), description[-2:]) == (issue_work.LONGEST + 1, "x…")


# --- transcripts --------------------------------------------------------------------------------------------------

CLAUDE, ACP = "0f" * 4 + "-0000-0000-0000-" + "0f" * 6, "acp_" + "0f" * 16
CONFIG = """
runners:
  opencode: {managed: false, url: %s}
  claude: {}
  mine: {type: "mine.runner:Mine"}
  other: {type: acp, command: [agent]}
"""


class Server(BaseHTTPRequestHandler):
    """An agent server with one session, slow in another."""

    words = "done"

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if "ses_slow" in path:
            threading.Event().wait(3)
        info = {"id": "msg_1", "role": "assistant", "time": {"created": 1}}
        state = {"status": "error", "input": {"command": f"echo {SECRET}"}, "error": "it ended with 1"}
        call = {"type": "tool", "tool": "bash", "callID": "c", "state": state}
        messages = [
            {"info": info, "parts": [call, {"type": "tool", "tool": "odd", "state": {"input": [1], "output": 7}}]},
            {
                "info": info | {"id": "msg_2", "cost": 0.5},
                "parts": [{"type": "text", "text": f"\x1b[1m{self.words}\x1b[0m {SECRET}"}],
            },
        ]
        known: dict[str, Any] = {
            "/global/health": {"healthy": True, "version": "1"}, "/session/ses_1": {"id": "ses_1"},
            "/session/ses_1/message": messages,
        }  # fmt: skip
        self.send_response(200 if path in known else 404)
        self.send_header("Content-Type", "application/json")
        with suppress(
            ConnectionError
        ):  # of the slow one nobody waits for the end: what is printed then is another test's
            self.end_headers()
            self.wfile.write(json.dumps(known.get(path, {})).encode())

    def log_message(self, format: str, *args: Any) -> None: ...


@pytest.fixture(scope="module")
def agents() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def sessions(project: Path, agents: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session of each kind of runner."""
    for name, folder in (("CLAUDE_CONFIG_DIR", "claude"), ("XDG_STATE_HOME", "state")):
        monkeypatch.setenv(name, str(tmp_path / folder))
    (project / ".agent-shepherd" / "config.yaml").write_text(CONFIG % agents)
    use = {"type": "tool_use", "id": "c", "name": "Bash", "input": {"command": "ls"}}
    result = {
        "type": "tool_result",
        "tool_use_id": "c",
        "content": [{"type": "text", "text": SECRET}],
        "is_error": True,
    }
    messages = (
        {"type": "assistant", "message": {"content": [{"type": "text", "text": "well done"}, use]}},
        {"type": "user", "uuid": "u", "message": {"content": [result]}},
    )
    (tmp_path / "claude" / "projects" / "p").mkdir(parents=True)
    (tmp_path / "claude" / "projects" / "p" / f"{CLAUDE}.jsonl").write_text("\n".join(map(json.dumps, messages)) + "\n")
    own = runner_folder(project, "other") / "sessions" / ACP
    own.mkdir(parents=True)
    (own / "session.json").write_text("{}")
    call = {"k": "tool", "id": "c", "name": "bash", "status": "pending"}
    messages = (
        {"k": "agent", "x": "all "},
        {"k": "agent", "x": f"is well {SECRET}"},
        call,
        call | {"status": "failed"},
    )
    (own / "record.jsonl").write_text("\n".join(map(json.dumps, messages)) + "\n")


def in_session(project: Path, session: str | None) -> None:
    with sqlite3.connect(project / ".agent-shepherd" / "state" / NAME) as database:
        database.execute("UPDATE runs SET session = ? WHERE run = ?", [session, RUN])


@pytest.mark.usefixtures("sessions")
@pytest.mark.parametrize(
    ("session", "text", "tools"),
    [
        (
            "ses_1", "assistant:\n[1mdone[0m [redacted]\n",
            [("bash", '{"command": "echo [redacted]"}', "it ended with 1", True), ("odd", "[1]", "7", False)],
        ),
        (f"claude:{CLAUDE}", "assistant:\nwell done\n", [("Bash", '{"command": "ls"}', "[redacted]", True)]),
        (f"other:{ACP}", "assistant:\nall is well [redacted]\n", [("bash", "", "", True)]),
    ],
)  # fmt: skip
async def test_what_was_said_and_done_in_a_session_is_told(
    project: Path, client: httpx.AsyncClient, session: str, text: str, tools: list[tuple[str, str, str, bool]]
) -> None:
    await to_thread.run_sync(in_session, project, session)
    found = await told(client, f"/runs/{RUN}/transcript")
    steps = found.pop("steps")
    assert found == {"why": None, "text": text, "mark": found["mark"], "cut": False, "unread": None}
    calls = [step for step in steps if step["role"] == "tool"]
    assert [(step["tool"], step["arguments"], step["text"], step["failed"]) for step in calls] == tools
    assert [step["cost"] for step in steps if step["cost"]] == ([0.5] if session == "ses_1" else [])
    again = await told(client, f"/runs/{RUN}/transcript", after=found["mark"])
    assert again == {"why": None, "text": None, "mark": found["mark"], "cut": False, "steps": [], "unread": None}


@pytest.mark.usefixtures("sessions")
@pytest.mark.parametrize(
    ("session", "why"),
    [
        (None, "It has no session."),
        ("ses_2", "the agent server has no session ses_2, or not any more"),
        (f"claude:{CLAUDE[::-1]}", "Claude Code has no session"),
        (f"other:{ACP[:-1]}0", "other has no session"),
        ("mine:1", "mine is a runner of your own: only the daemon asks it"),
        ("gone:1", "gone is gone"),
    ],
)
async def test_why_there_is_no_transcript_is_said(
    project: Path, client: httpx.AsyncClient, session: str | None, why: str
) -> None:
    await to_thread.run_sync(in_session, project, session)
    found = await told(client, f"/runs/{RUN}/transcript")
    assert found["text"] is None
    assert why in found["why"]


async def test_where_no_agent_server_runs_that_is_said(
    project: Path, client: httpx.AsyncClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (project / ".agent-shepherd" / "config.yaml").write_text("")
    await to_thread.run_sync(in_session, project, "ses_1")
    found, why = await told(client, f"/runs/{RUN}/transcript"), "no managed agent server runs"
    assert found["why"] == f"{why}; nothing was kept of it"
    assert (await told(client, f"/runs/{RUN}/session"))["why"] == why
    assert not [*tmp_path.rglob("server.json")]
    await to_thread.run_sync(keep_steps, project, "well done", "and more")
    found = await told(client, f"/runs/{RUN}/transcript")
    assert (found["why"], found["unread"], found["text"]) == (
        None,
        why,
        "assistant:\nwell done\n\nassistant:\nand more\n",
    )
    again = await told(client, f"/runs/{RUN}/transcript", after=found["mark"])
    assert (again["text"], again["unread"], again["mark"]) == (None, why, found["mark"])
    await to_thread.run_sync(keep_steps, project)
    assert (await told(client, f"/runs/{RUN}/transcript"))["why"] == f"{why}; nothing was kept of it"


def keep_steps(project: Path, *said: str) -> None:
    """Keep a turn of `RUN` for each of these answers; none: its texts can be read no more."""
    state = project / ".agent-shepherd" / "state"
    with sqlite3.connect(state / NAME) as database:
        for number, words in enumerate(said or ("{",)):
            blob, n = f"{number:064}", number + 1
            file = runs.blob_file(state, blob)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(write_steps([TranscriptStep("assistant", words)], str) if said else words)
            row = database.execute("SELECT max(seq) FROM facts").fetchone()[0] + 1
            body = json.dumps({"n": n, "steps": blob})
            values = (row, "2030-01-01T00:00:00Z", "fact", "TurnSeen", "t-2", RUN, body)
            database.execute("INSERT INTO facts VALUES (?, ?, ?, ?, ?, ?, ?)", values)


@pytest.mark.usefixtures("sessions")
async def test_a_server_that_says_nothing_keeps_nobody_waiting(
    project: Path, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await told(client, "/now")
    monkeypatch.setattr(run_artifacts, "TO_SERVERS", 0.7)
    await to_thread.run_sync(in_session, project, "ses_slow")
    order = list[str]()

    async def ask(path: str) -> None:
        found = await told(client, path)
        order.append(found.get("why") or path)

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(ask, f"/runs/{RUN}/transcript")
        await anyio.sleep(0.1)
        group.start_soon(ask, "/now")
    assert order == ["/now", *["Its agent server did not answer in 1 s; nothing was kept of it"] * 3]


@pytest.mark.usefixtures("sessions")
async def test_a_session_has_a_link_without_a_password(project: Path, agents: str, client: httpx.AsyncClient) -> None:
    config = project / ".agent-shepherd" / "config.yaml"
    config.write_text(CONFIG % agents.replace("//", "//opencode:pass-word@"))
    await to_thread.run_sync(in_session, project, "ses_1")
    found = await told(client, f"/runs/{RUN}/session")
    folder = base64.urlsafe_b64encode(b"/trees/ashep/t-2").decode().rstrip("=")
    assert (found["link"], found["why"]) == (f"{agents}/{folder}/session/ses_1", None)
    await to_thread.run_sync(in_session, project, f"claude:{CLAUDE}")
    found = await told(client, f"/runs/{RUN}/session")
    assert (found["link"], found["why"]) == (None, "a session of claude has no page")


# --- signs of life, budgets ---------------------------------------------------------------------------------------


async def test_signs_of_life_are_told_while_a_run_is_looked_at(
    project: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "LOOK", 0.05)
    asked = list[Any]()
    world.live.ask = lambda *given: asked.append(given) or {"signs": {RUN: {"quiet": 3.0}}}

    def goes_on(ended: str | None) -> None:
        with sqlite3.connect(project / ".agent-shepherd" / "state" / NAME) as database:
            database.execute("UPDATE runs SET ended_at = ? WHERE run = ?", [ended, RUN])

    async def first_two(run: str | None) -> list[bytes]:
        lines = (await world.live.watch(run)).lines
        found = [await anext(lines)]
        with anyio.move_on_after(0.4):
            found.append(await anext(lines))
        return found

    assert len(await first_two(None)) == len(await first_two(RUN)) == 1, "it has ended"
    assert asked == []
    await to_thread.run_sync(goes_on, None)
    try:
        changed, signs = await first_two(RUN)
    finally:
        await to_thread.run_sync(goes_on, "2026-01-01T22:00:00.000000Z")
    assert changed.startswith(b"event: changed\n")
    kind, data = signs.decode().strip().split("\ndata: ")
    assert kind == "event: signs"
    told = json.loads(data)[RUN]
    assert told["quiet"] == 3.0
    assert {"tokens", "cost", "heard"} < told.keys()


async def test_budgets_say_what_the_commands_say(project: Path, client: httpx.AsyncClient) -> None:
    def printed(*words: str) -> Any:
        done = CliRunner().invoke(app, ["-C", str(project), *words, "--json"])
        assert done.exit_code == 0, done.output
        return json.loads(done.stdout)

    (project / ".agent-shepherd" / "config.yaml").write_text("")
    status = await to_thread.run_sync(printed, "status")
    limits = (await told(client, "/budgets"))["limits"]
    by = {(one["scope"], one["unit"]): one for one in limits}
    assert {*by} == {("day", "tokens"), ("total", "tokens"), ("issue", "cost"), ("runs_per_hour", "runs")}
    assert [one["scope"] for one in status["daemon"]["budgets"]] == ["total"]
    for one in status["daemon"]["budgets"]:
        assert by[one["scope"], one["unit"]].items() >= one.items()
    used = (await to_thread.run_sync(printed, "usage"))["total"]
    assert by["total", "tokens"]["used"] == by["day", "tokens"]["used"] == used["tokens"]
    assert by["day", "tokens"]["warn_at"] == 0.8 * 10**6
    held = [one["issue"] for one in status["issues"] if one["code"] == "budget_total"]
    assert held
    assert by["total", "tokens"]["holds"] == sorted(held)
    assert by["day", "tokens"]["holds"] == by["issue", "cost"]["holds"] == []
    assert by["day", "tokens"]["until"] == "2026-01-02T00:00:00.000000Z"
    days = (await told(client, "/usage/days"))["rows"]
    by_day = (await to_thread.run_sync(printed, "usage", "--by", "day"))["rows"]
    assert {one["day"]: one["tokens"] for one in days} == {one["name"]: one["tokens"] for one in by_day}
