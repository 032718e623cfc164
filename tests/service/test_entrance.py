"""A person comes in by a link that a running server gives to this user alone, and nobody comes in by it twice."""

import os
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from ashep.api.login_links import lock_entrance
from ashep.api.routes import V1
from ashep.config import write_starter
from tests.places import has_bubblewrap
from tests.recorded import life
from tests.service.worlds import git, repository
from tests.test_cli import ASHEP

pytestmark = pytest.mark.slow

LINK = re.compile(r"(http://127\.0\.0\.1:\d+)/#enter=([\w-]{20,})\n")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    project = repository(tmp_path / "project")
    git(project, "config", "user.name", "Pat")
    write_starter(project / ".agent-shepherd")
    return project


SAID: dict[int, str] = {}
"""Where servers listen, by their processes."""


@contextmanager
def server(project: Path, *words: str, last: tuple[str, ...] = ("--port", "0")) -> Iterator[subprocess.Popen[str]]:
    """A server, once it listens."""
    argv = [ASHEP, *words, *last]
    with subprocess.Popen(argv, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            said = process.stdout if words[0] == "serve" else process.stderr
            assert said is not None
            heard = (re.search(r"listening on (\S+);", line) for line in said)
            SAID[process.pid] = next(found[1] for found in heard if found)
            yield process
        finally:
            process.kill()


def ui(project: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    argv = [ASHEP, "ui", *words, "--port", "0"]
    return subprocess.run(argv, cwd=project, capture_output=True, text=True, timeout=240, env={**os.environ, **environ})


def until(there: Path) -> None:
    end = time.monotonic() + 20
    while not there.is_symlink():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_link_lets_in_once_and_a_stream_ends_with_the_server(project: Path) -> None:
    state = project / ".agent-shepherd" / "state"
    with server(project, "serve") as process:
        until(state / "ui")
        assert stat.S_IMODE((state / "ui").stat().st_mode) == 0o600
        told = LINK.fullmatch(ui(project).stdout)
        assert told is not None
        with httpx.Client(base_url=told[1], trust_env=False) as client:
            entered = client.post(f"{V1}/enter", json={"code": told[2]}).json()
            assert entered["person"] == "Pat"
            assert client.post(f"{V1}/enter", json={"code": told[2]}).status_code == 403
            known = {"Authorization": f"Bearer {entered['token']}"}
            assert client.get(f"{V1}/now", headers=known).json()["daemon"]["running"] is False
            assert client.get(f"{V1}/now", headers={"Host": "evil.example"} | known).status_code == 421
            with client.stream("GET", f"{V1}/events", headers=known) as stream:
                lines = stream.iter_lines()
                assert next(lines) == "event: changed"
                began = time.monotonic()
                process.send_signal(signal.SIGTERM)
                assert [line for line in lines if line.startswith("event")] == []
            assert process.wait(10) == 0
            assert time.monotonic() - began < 5
        assert not (state / "ui").is_symlink()
        token = entered["token"]
        assert not any(token in one.read_text(errors="replace") for one in state.rglob("*") if one.is_file())


def test_a_link_leads_to_the_page_of_an_issue_or_a_run(project: Path) -> None:
    life(project / ".agent-shepherd" / "state", issues=3, until="person")
    with server(project, "serve"):
        until(project / ".agent-shepherd" / "state" / "ui")
        for name, path in (
            ("t-1", "/issues/t-1"),
            ("2", "/issues/t-2"),
            ("t-1/implement.1.1", "/runs/t-1/implement.1.1"),
        ):
            assert re.fullmatch(rf"http://127\.0\.0\.1:\d+{path}#enter=[\w-]+\n", ui(project, name).stdout)
        for name, cause in (
            ("t-99", "known of an issue t-99"),
            ("t-1/implement.9.9", "`ashep runs t-1` lists its runs"),
        ):
            result = ui(project, name)
            assert (result.returncode, result.stdout, cause in result.stderr) == (1, "", True), result.stderr
    words = {"_ASHEP_COMPLETE": "complete_bash", "COMP_WORDS": "ashep ui t-1/", "COMP_CWORD": "2"}
    assert "t-1/implement.1.1" in ui(project, **words).stdout.split()


def test_the_example_of_the_guide_says_what_waits(project: Path) -> None:
    life(project / ".agent-shepherd" / "state", issues=3, until="person")
    text = (Path(__file__).parents[2] / "docs" / "guides" / "api.md").read_text()
    (program,) = re.findall(r'```python title="waiting.py"\n(.*?)```', text, re.DOTALL)
    with server(project, "serve") as process:
        argv = [sys.executable, "-c", program, SAID[process.pid]]
        with subprocess.Popen(argv, cwd=project, stdout=subprocess.PIPE, text=True) as view:
            assert view.stdout is not None
            seq, issue, question = view.stdout.readline().split(" ", 2)
            assert (seq.isdecimal(), issue) == (True, "t-1"), question
            process.send_signal(signal.SIGTERM)
            assert view.wait(20) == 0


def test_an_agent_gets_no_link(project: Path) -> None:
    result = ui(project, BEADS_ACTOR="ashep-agent")
    assert (result.returncode, "only a person answers" in result.stderr) == (2, True)


ASKS = """
import os, sys, urllib.error, urllib.request
address, state = sys.argv[1:]
for path in ("/", "/api/v1/now"):
    asked = urllib.request.Request(address + path, headers={"Accept": "text/html"})
    try:
        with urllib.request.urlopen(asked) as answer:
            print(answer.status, answer.read().count(b"t-1"))
    except urllib.error.HTTPError as error:
        print(error.code)
print(os.path.lexists(state))
"""
"""What an agent may try: the page, what it shows, and the folder with the token, the socket and who is paired."""


@pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap cannot be used here")
def test_an_agent_in_its_sandbox_gets_the_empty_page_and_finds_nothing_that_lets_it_in(project: Path) -> None:
    folder = project / ".agent-shepherd"
    (folder / "config.yaml").write_text("version: 1\nagents: {sandbox: bwrap}\nworker: {workspace: place}\n")
    life(folder / "state", issues=1, until="person")
    with server(project, "serve") as process:
        assert (folder / "state" / "service.token").exists()
        argv = [ASHEP, "sandbox", "--", "python3", "-c", ASKS, SAID[process.pid], str(folder / "state")]
        result = subprocess.run(argv, cwd=project, capture_output=True, text=True, timeout=240)
    assert result.stdout.splitlines() == ["200 0", "401", "False"], result.stderr


def test_where_no_server_listens_the_command_is_one(project: Path) -> None:
    with server(project, "ui") as process:
        assert process.stdout is not None
        told = LINK.fullmatch(process.stdout.readline())
        assert told is not None
        entered = httpx.post(f"{told[1]}{V1}/enter", json={"code": told[2]}, trust_env=False)
        assert entered.json()["person"] == "Pat"
        until(project / ".agent-shepherd" / "state" / "ui")
        with server(project, "serve"):  # a second one lets nobody in, and takes nothing away
            again = LINK.fullmatch(ui(project).stdout)
            assert again is not None
            assert again[1] == told[1]
        assert LINK.fullmatch(ui(project).stdout) is not None


def test_the_entrance_is_held_by_one(tmp_path: Path) -> None:
    with lock_entrance(tmp_path) as first:
        with lock_entrance(tmp_path) as second:
            assert (first, second) == (True, False)
        with lock_entrance(tmp_path) as third:
            assert not third
    with lock_entrance(tmp_path) as again:
        assert again
