"""Commands wait for an agent server that is alive and slow, and say so; what hangs still ends at its bound.

The server is a small program that answers what commands ask OpenCode's; the first answer to each list is late.
"""

import sys
from pathlib import Path

import anyio
import pytest

from ashep.actions import runner_wait
from ashep.adapters.runners.opencode import client, server
from ashep.adapters.runners.opencode.endpoints import AttachedServer
from ashep.adapters.runners.opencode.runner import OpencodeRunner
from ashep.adapters.system import programs
from ashep.cli import main
from ashep.config import write_starter
from ashep.errors import ProgramTimedOut, ServerSlow
from tests.test_server_bounds import PROGRAM, SPIN

LISTS = """
        late = {"/agent": 1.5, "/config/providers": 0, "/config": 0, "/global/health": HEALTH}
        path = self.path.partition("?")[0]
        if path not in kept:
            kept.append(path)
            time.sleep(late.get(path, 0))
        answer = {
            "/agent": b'[{"name": "build", "mode": "primary", "native": true, "permission": []}]',
            "/config/providers": b'{"providers": [{"id": "acme", "models": {"large": {}}}]}',
            "/config": b"{}",
        }.get(path)
        if answer is not None:
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(answer)
            return
"""
SERVER = PROGRAM.replace("def do_GET(self):", f"def do_GET(self):{LISTS}").replace("kept = []", "kept = []\nHEALTH = 0")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a project with a slow OpenCode."""
    for name in ("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    program = tmp_path / "opencode"
    program.write_text(SERVER.replace('print("listening"', f'{SPIN}print("listening"'))
    program.chmod(0o755)
    folder = tmp_path / "project"
    write_starter(folder / ".agent-shepherd")
    settings = f"version: 1\nworker: {{workspace: shared}}\nrunners: {{opencode: {{command: [{program}]}}}}\n"
    (folder / ".agent-shepherd" / "config.yaml").write_text(settings)
    return folder


@pytest.mark.promise("X9")
@pytest.mark.slow
def test_a_command_waits_for_a_server_that_starts_slowly_and_answers_late(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `ashep install` and `sync-agents`, which ended with `ReadTimeout` on a loaded machine."""
    monkeypatch.setattr(server, "FIRST_PATIENCE", 1.0)
    monkeypatch.setattr(client, "CALL", 1.0)
    assert main(["-C", str(project), "sync-agents", "--dry-run"]) == 0
    captured = capsys.readouterr()
    assert "# acme:\n+#   large" in captured.out
    lines = captured.err.splitlines()
    assert any("did not answer within 1 s, alive" in line and "waiting up to 2 s" in line for line in lines), lines
    assert any("GET /agent: no answer in 1 s; the agent server is alive" in line for line in lines), lines
    assert not list((project.parent / "XDG_STATE_HOME").rglob("server.json")), "it was ended again"


@pytest.mark.promise("X10")
async def test_a_command_asks_no_longer_than_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner_wait, "LONGEST", 0.2)
    said = list[str]()

    async def start() -> None:
        await anyio.sleep(0.05)

    async def ask() -> None:
        raise ServerSlow("GET /agent: no answer in 15 s")

    with anyio.fail_after(5), pytest.raises(ServerSlow, match=r"no answer in 15 s, for .* minutes. See its log"):
        await runner_wait.call_runner(start, ask, said.append)
    assert 1 <= len(said) <= 5


@pytest.mark.promise("X10")
@pytest.mark.may_block
async def test_an_attached_server_that_is_slow_gets_longer_each_time(tmp_path: Path) -> None:
    program = tmp_path / "opencode"
    program.write_text(SERVER.replace("HEALTH = 0", "HEALTH = 1.5").replace("if path not in kept:", "if True:"))
    port = server._free_port()
    async with await anyio.open_process([sys.executable, program, "--port", str(port)]) as process:
        environ = {"HOME": str(tmp_path)}
        endpoint = AttachedServer(url=f"http://127.0.0.1:{port}", password="x", state=tmp_path, environ=environ)
        runner = OpencodeRunner(endpoint, directory=tmp_path)
        with anyio.fail_after(60):
            while not any(port == used for used, _ in server.process_table.services() or [(port, "")]):
                await anyio.sleep(0.05)
        try:
            with pytest.raises(ServerSlow, match="within 1 s"):
                await runner.start()
            await runner.start()
        finally:
            await runner.aclose()
            process.kill()


@pytest.mark.promise("G6")
@pytest.mark.slow
async def test_a_program_that_works_at_its_bound_gets_longer_and_one_that_hangs_does_not() -> None:
    async def run(code: str, longest: float) -> bytes:
        argv = [sys.executable, "-c", f"import time\n{code}"]
        return (await programs.run(argv, cwd=None, env=None, timeout=1.0, longest=longest)).stdout

    assert await run(f"{SPIN}print('done')", 20.0) == b"done\n"
    with pytest.raises(ProgramTimedOut, match="after 1 s"):
        await run("time.sleep(60)", 20.0)
    with pytest.raises(ProgramTimedOut, match="after 2 s"):
        await run("while True: pass", 2.0)
