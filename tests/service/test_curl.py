"""The interface as its clients call it: curl, the real `ashep serve`, the real bd, and a folder that was empty."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from ashep.adapters import programs
from tests.databases import init
from tests.service.worlds import git

TOKEN = "a-token-that-somebody-chose"


class Protected(BaseHTTPRequestHandler):
    """A service that runs by itself, and lets nobody in without a token."""

    def do_GET(self) -> None:
        self.send_response(200 if self.headers.get("Authorization") else 401)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


class Client:
    """A folder, `ashep serve` in it, and curl."""

    def __init__(self, folder: Path) -> None:
        bd = programs.find("bd")
        assert bd is not None, "no bd on PATH nor in the tools cache: `make setup`"
        assert shutil.which("curl"), "no curl"
        self.folder, self.bd_program = folder, bd
        home = folder.parent / "home"
        home.mkdir()
        path = f"{Path(sys.executable).parent}:{bd.absolute().parent}:{os.environ['PATH']}"
        self.env = {"PATH": path, "HOME": str(home), "VERIFIER_TOKEN": TOKEN, "GOGC": "off"}
        self.env |= {"BD_DISABLE_METRICS": "1", "BD_NON_INTERACTIVE": "1", "BEADS_ACTOR": "ann"}
        self.headers = folder.parent / "token.header"
        self.headers.write_text(f"Authorization: Bearer {TOKEN}\n")
        self.server: subprocess.Popen[str] | None = None
        self.url = ""

    def run(self, *argv: str) -> str:
        done = subprocess.run(argv, cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, (argv, done.stdout, done.stderr)
        return done.stdout

    def serve(self) -> None:
        argv = ["ashep", "serve", "--port", "0", "--token-env", "VERIFIER_TOKEN"]
        pipe = subprocess.PIPE
        self.server = subprocess.Popen(argv, cwd=self.folder, env=self.env, stdout=pipe, stderr=pipe, text=True)
        assert self.server.stdout is not None
        said = self.server.stdout.readline()
        assert said.startswith("listening on http://127.0.0.1:"), said
        self.url = said.split()[2].rstrip(";")

    def stop(self) -> None:
        assert self.server is not None
        self.server.send_signal(signal.SIGTERM)
        _, said = self.server.communicate(timeout=30)
        assert (self.server.returncode, said) == (0, "")
        self.server = None

    def curl(self, path: str, body: Any = None, *more: str) -> tuple[int, Any]:
        given = () if body is None else ("--json", body if isinstance(body, str) else json.dumps(body))
        argv = ("curl", "-sS", "-w", "\n%{http_code}", "-H", f"@{self.headers}", *given, *more, f"{self.url}{path}")
        text, _, status = self.run(*argv).rpartition("\n")
        return int(status), json.loads(text)

    def shown(self, issue: str) -> dict[str, Any]:
        return json.loads(self.run(str(self.bd_program), "show", issue, "--json"))[0]


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    folder = tmp_path / "empty"
    folder.mkdir()
    made = Client(folder)
    yield made
    if made.server is not None:
        made.server.kill()
        made.server.wait()


@pytest.fixture
def service_url() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Protected)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def criteria(wanted: str = "Hello") -> dict[str, Any]:
    """The checks of an issue as clients write them: a command is a text, and a request names no service."""
    request = {"method": "GET", "path": "/api/protected", "expect_status": 401}
    return {
        "checks": [
            {"id": "ac-1", "type": "file_exists", "description": "it is there",
             "verify": {"path": "greet.sh", "contains": [wanted]}},
            {"id": "ac-2", "type": "test_pass", "description": "its tests pass",
             "verify": {"command": "sh greet.sh 'Ann and Bob'", "expect_exit_code": 0}},
            {"id": "ac-3", "type": "http_request", "description": "nobody gets in without a token", "verify": request},
            {"id": "ac-4", "type": "http_request", "description": "with one they do",
             "verify": {**request, "headers": {"Authorization": "Bearer test"}, "expect_status": 200}},
        ]
    }  # fmt: skip


@pytest.mark.promise("L21")
@pytest.mark.real
def test_an_empty_folder_is_served_as_clients_of_the_interface_call_it(client: Client, service_url: str) -> None:
    folder = client.folder
    client.run("git", "init", "-q", "-b", "main", ".")
    client.run(str(client.bd_program), *init("t"))
    client.run("ashep", "init")
    config = folder / ".agent-shepherd" / "config.yaml"
    config.write_text(f"version: 1\nverification: {{service_url: {service_url}}}\n")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    client.serve()

    # an issue, once
    assert client.curl("/tickets") == (200, {"tickets": []})
    wanted = {"title": "Test with criteria", "acceptance_criteria": criteria("Goodbye")}
    key = ("-H", "Idempotency-Key: SWARM-042")
    status, made = client.curl("/tickets", wanted, *key)
    issue = made["ticket_id"]
    assert (status, made["title"], made["verification_status"]) == (201, "Test with criteria", "pending")
    assert made["checks"]["checks"][1]["verify"]["command"] == ["sh", "greet.sh", "Ann and Bob"]
    assert client.curl("/tickets", wanted, *key) == (201, made)
    assert client.curl("/tickets", wanted | {"title": "Other"}, *key)[0] == 422
    row = {"ticket_id": issue, "title": "Test with criteria", "status": "open", "verification_status": "pending"}
    assert client.curl("/tickets") == (200, {"tickets": [row]})
    pending = {"ticket_id": issue, "verification_status": "pending", "checks": [], "current": None, "running": False}
    assert client.curl(f"/status/{issue}") == (200, pending)
    assert client.shown(issue)["metadata"]["verification_status"] == "pending"

    # its work, which falls short; what bd keeps is told by another life of the service too
    git(folder, "checkout", "-q", "-b", f"ashep/{issue}")
    (folder / "greet.sh").write_text('echo "Hello, $1"\ntest "$1" = "Ann and Bob"\n')
    git(folder, "add", "greet.sh")
    git(folder, "commit", "-qm", "work")
    git(folder, "checkout", "-q", "main")
    verify = {"ticket_id": issue, "branch_name": f"ashep/{issue}", "repo_url": "."}
    status, found = client.curl("/verify", verify)
    assert (status, found["verification_status"]) == (200, "failing"), found
    assert found["summary"] == {"total": 4, "passed": 3, "failed": 1, "skipped": 0}, found
    client.stop()
    client.serve()
    _, stands = client.curl(f"/status/{issue}")
    assert (stands["verification_status"], stands["current"]) == ("failing", True)
    assert [(one["check_id"], one["status"]) for one in stands["checks"]] == [
        ("ac-1", "failed"), ("ac-2", "passed"), ("ac-3", "passed"), ("ac-4", "passed"),
    ]  # fmt: skip
    assert stands["checks"][2]["message"] == (
        f"GET /api/protected: status 401 (at {service_url}, which is not of this commit)"
    )

    # other criteria
    status, edited = client.curl(f"/tickets/{issue}", {"acceptance_criteria": criteria()}, "-X", "PUT")
    assert (status, edited["verification_status"], edited["current"]) == (200, "failing", False)
    assert client.curl("/verify", verify)[1]["verification_status"] == "passing"
    _, history = client.curl(f"/tickets/{issue}/verification")
    assert [one["status"] for one in history["verification_log"]] == ["failing", "passing"]
    assert client.curl("/tickets?status=open")[1]["tickets"][0]["verification_status"] == "passing"
    assert client.shown(issue)["metadata"]["verification"]["passed"] == 4

    # other words, beside the criteria and what was verified
    words = {"title": "Greet both", "description": "Say --hello.\n", "priority": 1}
    status, told = client.curl(f"/tickets/{issue}", words, "-X", "PUT")
    assert (status, {key: told[key] for key in words}) == (200, words)
    assert (told["verification_status"], told["current"], told["checks"]) == ("passing", True, edited["checks"])
    row = client.shown(issue)
    assert {key: row[key] for key in words} == words
    assert (row["status"], row["metadata"]["verification"]["passed"]) == ("open", 4)
    status, told = client.curl(f"/tickets/{issue}", {"description": "", "acceptance_criteria": criteria()}, "-X", "PUT")
    assert (status, told["title"], told["description"], told["current"]) == (200, "Greet both", "", True)

    # what is wrong is told with its key, and writes nothing
    before = client.shown(issue)
    shell = {"checks": [{"id": "a", "type": "test_pass", "verify": {"command": "npm test && npm run lint"}}]}
    for path, body, more, expected, said in (
        ("/tickets", "{", (), 400, "Invalid JSON"),
        ("/tickets", {"titel": "x"}, (), 422, "title: Field required"),
        ("/tickets", {"title": "x", "acceptance_criteria": shell}, (), 422, "expected a command without `&&`"),
        ("/tickets/t-none", None, (), 404, "there is no issue t-none"),
        ("/status/t-none", None, (), 404, "there is no issue t-none"),
        ("/tickets/t-none", {"acceptance_criteria": ""}, ("-X", "PUT"), 404, "there is no issue t-none"),
        (f"/tickets/{issue}", "{", ("-X", "PUT"), 400, "Invalid JSON"),
        (f"/tickets/{issue}", {}, ("-X", "PUT"), 422, "nothing is to change: give one of title, description"),
        (f"/tickets/{issue}", {"title": "a", "priority": 9}, ("-X", "PUT"), 422, "priority: Input should be less"),
        (f"/tickets/{issue}", {"title": "a", "status": "closed"}, ("-X", "PUT"), 422, "status: Extra inputs"),
        ("/tickets/t-none", {"title": "a"}, ("-X", "PUT"), 404, "there is no issue t-none"),
        ("/verify", {"ticket_id": issue}, (), 422, "branch_name: Field required"),
        ("/tickets?status=done", None, (), 422, "status: Input should be 'open'"),
    ):
        status, told = client.curl(path, body, *more)
        assert (status, said in told["detail"]) == (expected, True), told
    assert client.shown(issue) == before
    assert len(client.curl("/tickets?status=all")[1]["tickets"]) == 1
    client.stop()
