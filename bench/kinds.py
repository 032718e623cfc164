"""Issues on Claude Code against a bare loop of `claude -p`; how much later a prompt reaches the model than by hand; how
long until a permission is asked on the issue; and what the daemon holds with three kinds of agents.
"""

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

import anyio
import anyio.to_thread

from ashep.adapters.runners.claude import ClaudeRunner
from ashep.adapters.system import programs
from ashep.extras.demo.scripted_model import (
    Call,
    ModelRequest,
    ModelServer,
    Reply,
    claude_environment,
    opencode_config,
    outcome_text,
    settle,
)
from ashep.journal import durable_io
from ashep.ports.runner import Prompt, SessionRequest
from bench.figures import Figure, times
from bench.issues import AT_ONCE, PATIENCE, Side, plan_of, start_bare
from bench.place import THREE, Project, Tools, model, say, server, template
from bench.processes import watch

PHASES = 3
PAIRS, ASKED = 10, 3
AGENTS = """
version: 1
agents:
  - {{id: maker, capabilities: [implement], read_write: write, runner: {{{0}}}}}
  - {{id: judge, capabilities: [review], read_write: read, runner: {{{1}}}}}
  - {{id: arbiter, capabilities: [arbitrate], read_write: read, runner: {{{2}}}}}
"""
ON_CLAUDE = "type: claude, provider: anthropic, model: sonnet"
ONE = """
version: 1
default_policy: one
policies:
  one:
    match: {types: [task, bug, feature, chore]}
    phases:
      - name: implement
        capabilities: [implement]
        access: write
"""
BY_HAND = ("-p", "--output-format", "json", "--setting-sources", "user", "--strict-mcp-config", "--model=sonnet")


def measure(tools: Tools, *, issues: int) -> list[Figure]:
    """Measure all of it."""
    program = programs.find("claude")
    if program is None:
        raise RuntimeError("claude is missing: `make claude`")
    with model(tools) as url, _environment(tools, url):
        ours = _ashep(_project(tools, issues, "claude-mine", program), issues)
        plan = plan_of(ours[1]) | {"claude": [str(program), *BY_HAND]}
        bare = _bare(template(tools, issues).copy("claude-bare"), plan)
        beside = _bare(template(tools, issues).copy("claude-beside"), plan | {"at_once": AT_ONCE})
        held = _three_kinds(tools, url, program)
    later = anyio.run(_later, tools, str(program))
    mine, by_hand = (median(one) for one in zip(*later, strict=True))
    asked = anyio.run(_asked, tools, program)
    return [
        times(f"{issues} issues x {PHASES} runs on Claude Code: all CPU, against a bare loop of `claude -p`",
              [(ours[0].cpu, bare.cpu)], 1.15),
        times(f"  the same, against the loop with {AT_ONCE} at a time", [(ours[0].cpu, beside.cpu)], 1.15),
        Figure("  of it the daemon itself", ours[0].spent.own, "s"),
        Figure("a prompt reaches the model later than by hand", mine - by_hand, "s", 0.3,
               f"medians {mine:.2f} s and {by_hand:.2f} s of {len(later)} alternating pairs"),
        Figure("until a permission is asked on the issue", median(asked), "s", 2.0, f"at most {max(asked):.2f}"),
        Figure("memory of the daemon with three kinds of agents, at most", held / 1e6, "MB", 120.0),
    ]  # fmt: skip


@contextmanager
def _environment(tools: Tools, url: str) -> Iterator[None]:
    """Claude Code asks the scripted model and nobody else, whoever starts it."""
    given, before = claude_environment(url, tools.folder / "home"), dict(os.environ)
    os.environ.update(given)
    Path(given["CLAUDE_CONFIG_DIR"]).mkdir(exist_ok=True)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _project(tools: Tools, issues: int, name: str, program: Path, more: str = "") -> Project:
    """A project whose agents are all Claude Code's."""
    project = template(tools, issues).copy(name)
    project.configure(THREE, None)
    folder = project.folder / ".agent-shepherd"
    (folder / "agents.yaml").write_text(AGENTS.format(*[ON_CLAUDE] * PHASES))
    with (folder / "config.yaml").open("a") as file:
        file.write(more)
    _with_runners(folder / "config.yaml", f"claude: {{command: [{program}]}}")
    return project


def _with_runners(file: Path, more: str) -> None:
    file.write_text(file.read_text().replace("runners: {", f"runners: {{{more}, "))


# --- CPU --------------------------------------------------------------------------------------------------------------


def _ashep(project: Project, issues: int) -> tuple[Side, Project]:
    found = watch(project.work("--until-idle"), PATIENCE)
    side = Side(found.spent, 0.0, project.calls(), found.memory)
    closed = sum(record["type"] == "IssueClosed" for record in project.journal())
    if found.code or closed != issues:
        raise RuntimeError(f"ashep ended with {found.code}, {closed} of {issues} closed: {project.said()}")
    say(f"ashep: {side.cpu:.1f} s of CPU: itself {side.spent.own:.1f}, all others {side.spent.children:.1f}")
    return side, project


def _bare(project: Project, plan: dict[str, Any]) -> Side:
    found = watch(start_bare(project, "", plan), PATIENCE)
    if found.code:
        raise RuntimeError(f"the bare loop ended with {found.code}")
    side = Side(found.spent, 0.0, project.calls(), found.memory)
    say(f"bare loop: {side.cpu:.1f} s of CPU")
    return side


# --- memory -----------------------------------------------------------------------------------------------------------


def _three_kinds(tools: Tools, url: str, program: Path) -> int:
    """Bytes that the daemon holds at most while six issues go through three kinds."""
    project = _project(tools, 6, "kinds", program)
    settle(tools.folder / "home" / ".config" / "opencode", opencode_config(url))
    folder = project.folder / ".agent-shepherd"
    kinds = ("type: claude, provider: anthropic, model: sonnet", "type: opencode, agent_slug: plan", "type: agent")
    (folder / "agents.yaml").write_text(AGENTS.format(*kinds))
    with server(tools, url, "server-kinds", warm=project.folder) as agents:
        config = (folder / "config.yaml").read_text().replace("http://127.0.0.1:9", agents.url)
        (folder / "config.yaml").write_text(config)
        _with_runners(
            folder / "config.yaml",
            f"agent: {{type: acp, command: [{tools.opencode}, acp], modes: {{read: plan, write: build}}}}",
        )
        found = watch(project.work("--until-idle"), PATIENCE)
    closed = sum(record["type"] == "IssueClosed" for record in project.journal())
    if found.code or closed != 6:
        raise RuntimeError(f"ashep ended with {found.code}, {closed} of 6 closed: {project.said()}")
    return found.memory


# --- until the model is asked -----------------------------------------------------------------------------------------


async def _later(tools: Tools, program: str) -> list[tuple[float, float]]:
    """Seconds until the model is asked: by a runner of ours, whose gate writes each turn down, and by hand."""
    at, reached = [0.0], anyio.Event()

    def script(ask: ModelRequest) -> Reply:
        at[0] = time.monotonic()
        reached.set()
        return Reply(outcome_text())

    folder, pairs = tools.folder / "later", list[tuple[float, float]]()
    work = folder / "work"
    await anyio.Path(work).mkdir(parents=True)

    async def begin(session: str, message: str, why: str) -> bool:
        await anyio.to_thread.run_sync(durable_io.replace, folder / "begun", f"{session} {message} {why}".encode())
        return True

    async with ModelServer(script) as served:
        environ = {**tools.env, **claude_environment(served.url, tools.folder / "home")}
        config = Path(environ["CLAUDE_CONFIG_DIR"])
        runner = ClaudeRunner(
            (program,), directory=work, folder=folder / "kept", environ=environ, begin=begin, config=config
        )
        await runner.start()
        for n in range(PAIRS + 1):  # the first pair warms up
            session = await runner.open_session(SessionRequest(f"k{n}", "t", "write"))
            reached, begun = anyio.Event(), time.monotonic()
            await runner.send(Prompt(session, f"msg_{n}", f"prt_{n}", "Say it.", None, None))
            await reached.wait()
            ours = at[0] - begun
            while (await runner.turn(session, f"msg_{n}")).state != "finished":
                await anyio.sleep(0.05)
            reached, begun = anyio.Event(), time.monotonic()
            argv = [program, *BY_HAND, "--permission-mode", "acceptEdits"]
            await programs.run(argv, cwd=work, env=environ, timeout=60, stdin=b"Say it.")
            pairs += [(ours, at[0] - begun)] if n else []
            say(f"a prompt reached the model after {ours:.2f} s, and by hand after {at[0] - begun:.2f} s")
        await runner.aclose()
    return pairs


async def _asked(tools: Tools, program: Path) -> list[float]:
    """Seconds from the model's wish to use a tool until its permission is asked on the issue."""
    wished = dict[str, float]()

    def script(ask: ModelRequest) -> Reply:
        if ask.results:
            return Reply(outcome_text())
        wished[next(word for word in ask.prompt.split() if word.startswith("t-"))[:5]] = time.time()
        return Reply(calls=(Call("bash", {"command": "touch x", "description": "try"}),))

    async with ModelServer(script) as served:
        with _environment(tools, served.url):
            more = 'permissions: [{tool: bash, pattern: "touch *", action: ask}]\n'
            project = await anyio.to_thread.run_sync(_project, tools, ASKED, "asked", program, more)
            (project.folder / ".agent-shepherd" / "policies.yaml").write_text(ONE)
            daemon = await anyio.to_thread.run_sync(project.work)
            try:
                with anyio.fail_after(120):
                    while len(found := _comments(project)) < ASKED:
                        await anyio.sleep(0.5)
            finally:
                await anyio.to_thread.run_sync(_end, daemon)
    return [found[issue] - at for issue, at in wished.items()]


def _comments(project: Project) -> dict[str, float]:
    posted = (one for one in project.journal() if one["type"] == "CommentPosted")
    return {str(one["issue"]): datetime.fromisoformat(str(one["at"])).timestamp() for one in posted}


def _end(daemon: "subprocess.Popen[bytes]") -> None:
    daemon.terminate()
    daemon.wait(60)
