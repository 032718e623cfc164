"""Servers kept apart: one for each place where work is made, in a sandbox, and one for all that judge it.

On the real OpenCode with a scripted model; a place is a folder here (tests/test_places.py is about what is in one).
"""

import json
import os
import re
import signal
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from ashep import factories
from ashep.adapters.git.workspaces.clones import NOTES
from ashep.adapters.runners.opencode import isolated_runner
from ashep.adapters.runners.opencode.isolated_runner import IsolatedRunner, folder_for, forget, leave, living
from ashep.adapters.runners.opencode.sandbox_profiles import Profiles
from ashep.adapters.runners.opencode.server import LEFT, ServerRecord, folder_of
from ashep.adapters.sandboxes.logins import OPENCODE, Logins
from ashep.adapters.sandboxes.profiles import SandboxProfiles
from ashep.adapters.system import process_table, programs
from ashep.core.policy.agents import Sandbox
from ashep.core.policy.instructions import Instructions
from ashep.core.policy.settings import AgentPaths, AgentsSettings, Settings
from ashep.errors import RunnerRefused, ServerNotStarted, SessionUnavailable
from ashep.extras.demo.scripted_model import Call, ModelRequest, ModelServer, Reply, opencode_config, settle
from ashep.ports.runner import Prompt, SessionRequest, Turn
from ashep.store.read_model import servers_of
from ashep.views import status
from tests.conformance.runners import opencode, private_environment
from tests.full import repeated
from tests.places import RUN, has_bubblewrap

pytestmark = [pytest.mark.real, pytest.mark.may_block]

SANDBOXED = pytest.param(
    "bwrap", marks=pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap cannot be used here")
)
UNSANDBOXED = pytest.param("none", marks=(*SANDBOXED.marks, pytest.mark.full))


LOGINS = json.dumps({"one": {"type": "api", "key": "key of one"}})


class World:
    """A project with a place and a ground, and the runner that config.yaml describes."""

    def __init__(self, folder: Path, sandbox: str) -> None:
        self.folder, self.project = folder, folder / "home" / "project"
        self.state = self.project / ".agent-shepherd" / "state"
        self.places = self.project / ".agent-shepherd" / "places"
        self.place, self.ground = self.places / "ashep" / "t-1", self.places / ".ground" / "t-1"
        for made in (
            self.place,
            self.places / NOTES / "ashep%2Ft-1",
            self.ground,
            folder / "bin",
            self.project / ".agent-shepherd" / "state",
        ):
            made.mkdir(parents=True)
        (folder / "home" / "key").write_text("-----PRIVATE KEY-----")
        self.login = folder / "home" / ".local" / "share" / "opencode" / "auth.json"
        self.login.parent.mkdir(parents=True)
        self.login.write_text("{}")
        self.commands: dict[str, list[str]] = {}
        """What an agent runs in its shell, by a word in the prompt."""
        self.said: dict[str, list[str]] = {}
        """What came out, by the same word."""
        self.model = ModelServer(self._reply)
        self.config = folder / "home" / ".config" / "opencode"
        settle(self.config, {})
        self.environ = private_environment(folder / "home", folder / "bin")
        isolation = {"worker": {"workspace": "place"}, "agents": {"sandbox": sandbox}}
        self.settings = Settings.model_validate(
            {
                **isolation,
                "runners": {"opencode": {"isolation": "place", "command": (opencode(),), "environment": (RUN,)}},
            }
        )

    def given(self, **paths: tuple[str, ...]) -> None:
        """What agents.paths says from now on."""
        agents = self.settings.agents.model_copy(update={"paths": AgentPaths(**paths)})
        self.settings = self.settings.model_copy(update={"agents": agents})

    @asynccontextmanager
    async def runner(self) -> AsyncIterator[IsolatedRunner]:
        """The runner of one life of the daemon."""
        made = factories.runners_of(self.project, self.settings)["opencode"]
        assert isinstance(made, IsolatedRunner)
        async with aclosing(made):
            await made.start()
            yield made

    @property
    def servers(self) -> Path:
        return folder_of(self.state, self.environ)

    def record(self, place: Path | None = None) -> ServerRecord:
        folder = self.servers if place is None else folder_for(self.state, place)
        return ServerRecord.model_validate_json((folder / "server.json").read_bytes())

    async def end(self) -> None:
        """The place's server ends, and its run has not."""
        await leave(self.state, self.place)
        (folder_for(self.state, self.place) / LEFT).unlink()

    def has_record(self, place: Path) -> bool:
        return (folder_for(self.state, place) / "server.json").exists()

    def _reply(self, ask: ModelRequest) -> Reply:
        word = next((word for word in self.commands if word in ask.prompt), "")
        calls = list[Call]()
        for n, line in enumerate(self.commands.get(word, [])):  # in a script: what OpenCode's rules see is none of it
            (self.place / f"{n}.sh").write_text(line)
            calls.append(Call("bash", {"command": f"sh {n}.sh 2>&1", "description": "try"}))
        if len(ask.results) < len(calls):
            return Reply(calls=(calls[len(ask.results)],))
        self.said[word] = list(ask.results)
        return Reply("done", hang="hangs" in ask.prompt)


@pytest.fixture(params=[SANDBOXED])
def placed(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(tmp_path, request.param)
    for name in [name for name in os.environ if name.startswith(("XDG_", "OPENCODE"))]:
        monkeypatch.delenv(name)
    for name, value in world.environ.items():
        monkeypatch.setenv(name, value)
    return world


@pytest.fixture
async def world(placed: World, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr(
        isolated_runner, "_READING", 120.0
    )  # a busy machine may need longer than a daemon's reader waits
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(placed.model)
        (placed.config / "opencode.json").write_text(json.dumps(opencode_config(placed.model.url)))
        yield placed
        await factories.runners_of(placed.project, placed.settings)["opencode"].stop_server()


async def turn_of(runner: IsolatedRunner, session: str, prompt: Prompt) -> Turn:
    await runner.send(prompt)
    with anyio.fail_after(60):
        while (turn := await runner.turn(session, prompt.message_id)).state != "finished":
            await anyio.sleep(0.1)
    return turn


def asking(session: str, text: str, n: int = 1) -> Prompt:
    return Prompt(session, f"msg_{n:012x}aaaaaaaaaaaaaa", f"prt_{n:012x}aaaaaaaaaaaaaa", text)


def write(world: World, run: str = "t-1/1", sandbox: Sandbox | None = None) -> SessionRequest:
    words = "Make it, please.\n"
    return SessionRequest(f"i:{run}", run, "write", directory=str(world.place), snapshot=words, sandbox=sandbox)


@pytest.mark.parametrize("placed", [SANDBOXED, *repeated("none")], indirect=True)
async def test_who_makes_is_alone(world: World) -> None:
    """A session that may write works in its place's server, and sees what it is given there; judges have another."""
    sandboxed = world.settings.agents.sandbox == "bwrap"
    world.login.write_text(LOGINS)
    async with world.runner() as runner:
        maker = await runner.open_session(write(world))
        judge = await runner.open_session(SessionRequest("i:t-1/2", "t-1/2", "read", directory=str(world.ground)))
        world.commands["make"] = [
            f"cat {world.folder}/home/key",
            f"ls -a {world.project}/.agent-shepherd",
            "echo made > made; touch ~/mine && echo home",
            "bd show t-1; bd list || ashep approve t-1",
        ]
        turn = await turn_of(runner, maker, asking(maker, "make it"))
        key, project, made, stubs = world.said["make"]
        assert turn.text == "done"
        assert (world.place / "made").exists()
        assert "home" in made
        assert ("PRIVATE KEY" in key) is not sandboxed
        assert ("state" in project) is not sandboxed
        assert (world.folder / "home" / "mine").exists() is not sandboxed
        assert not sandboxed or "Make it, please.\nbd is not in here" in stubs
        assert world.record().port != world.record(world.place).port
        assert turn.instance != (await runner.catalog()).instance
        count, held = living(world.servers)
        assert (count, held > 2 * 50 * 1024**2) == (2, True)
        shown: Any = {"daemon": servers_of(world.project / ".agent-shepherd" / "state")}
        assert [*status.servers(shown)] == [f"2 agent servers live and hold {held / 1024**3:.1f} GiB"]
        assert await runner.has_session(judge)
        assert await runner.has_session(maker)

        for record in (world.record(world.place), world.record()):  # none of them changes a login
            async with httpx.AsyncClient(auth=("opencode", record.password), trust_env=False) as http:
                answer = await http.put(
                    f"http://127.0.0.1:{record.port}/auth/one", json={"type": "api", "key": "key of another"}
                )
                assert (answer.status_code == 200) is not sandboxed
        assert (world.login.read_text() == LOGINS) is sandboxed

        for where in (str(world.ground), None):
            with pytest.raises(RunnerRefused):
                await runner.open_session(SessionRequest("i:t-1/3", "t-1/3", "write", directory=where))

    async with world.runner() as again:
        assert await again.find_session("i:t-1/1", str(world.place)) == maker
        assert await again.find_session("i:t-1/2") == judge, "whatever folder it judges"
        assert (await again.turn(maker, asking(maker, "").message_id)).text == "done"
        await again.stop_server()
    assert servers_of(world.project / ".agent-shepherd" / "state") == {}


@pytest.mark.parametrize(
    "placed", [SANDBOXED, pytest.param("none", marks=(*SANDBOXED.marks, pytest.mark.full))], indirect=True
)
async def test_a_session_runs_where_its_agent_is_to_run_whatever_the_project_says(world: World) -> None:
    """The server of a place is begun anew for a session that works, and for none that is only read."""
    other: Sandbox = "none" if world.settings.agents.sandbox == "bwrap" else "bwrap"
    world.commands = {word: [f"cat {world.folder}/home/key"] for word in ("as all", "otherwise", "once more")}
    async with world.runner() as runner:
        usual = await runner.open_session(write(world))
        await turn_of(runner, usual, asking(usual, "as all"))
        first = world.record(world.place)
        own = await runner.open_session(write(world, "t-1/2", other))
        await turn_of(runner, own, asking(own, "otherwise", 2))
        assert ("PRIVATE KEY" in world.said["as all"][0]) is (other == "bwrap")
        assert ("PRIVATE KEY" in world.said["otherwise"][0]) is (other == "none")
        second = world.record(world.place)
        assert first.token != second.token
        assert not process_table.holders_of(first.mark)
        await runner.send(asking(own, "hangs", 3))
        assert await read(runner, usual, own) == {own}
    async with world.runner() as again:
        assert await read(again, usual, own) == {own}
        assert world.record(world.place).token == second.token
        assert await again.find_session("i:t-1/2", str(world.place)) == own
        await again.abort(own)
        await turn_of(again, usual, asking(usual, "once more", 4))
        assert world.said["once more"] == world.said["as all"]
        third = world.record(world.place)
        assert await read(again, usual, own) == set()
        assert world.record(world.place).token == third.token
        await turn_of(again, own, asking(own, "otherwise", 5))
        assert ("PRIVATE KEY" in world.said["otherwise"][0]) is (other == "none")


async def read(runner: IsolatedRunner, usual: str, own: str) -> set[str]:
    """Read both sessions in each way, that of the usual sandbox first and last; those that run a turn."""
    for session in (usual, own, usual):
        await runner.turn(session, asking(session, "").message_id)
        await runner.life(session)
        assert await runner.asked(session)
        assert await runner.has_session(session)
    assert await runner.requests((usual, own)) == ()
    return set(await runner.busy((usual, own)))


async def test_a_session_whose_opening_was_cut_short_is_found_with_its_sandbox(world: World) -> None:
    """Of one that was opened, and of which nothing was written down: no other may open what it left to be found."""
    async with world.runner() as runner:
        own = await runner.open_session(write(world, sandbox="none"))
    noted = world.servers / "sessions"
    assert noted.read_text() == f"\n{own}\tnone\t{world.place}\n"
    noted.write_text("")
    world.commands["find"] = [f"cat {world.folder}/home/key"]
    async with world.runner() as again:
        assert await again.find_session("i:t-1/1", str(world.place)) == own
        await turn_of(again, own, asking(own, "find"))
        assert "PRIVATE KEY" in world.said["find"][0]
    assert noted.read_text() == f"\n{own}\tnone\t{world.place}\n"


async def test_whoever_reads_in_a_place_that_was_made_anew_begins_no_server_of_another_sandbox(world: World) -> None:
    """What an agent in a sandbox committed is there, too: nothing of it is run outside of one."""
    world.settings = world.settings.model_copy(update={"agents": AgentsSettings(sandbox="none")})
    async with world.runner() as runner:
        own = await runner.open_session(write(world, sandbox="bwrap"))
        await forget(world.state, world.place)
        assert await runner.find_session("i:t-1/2", str(world.place)) is None
        assert not folder_for(world.state, world.place).exists()
        assert not await runner.has_session(own)
        assert world.record(world.place).how.startswith("sandboxed")
        assert await runner.find_session("i:t-1/2", str(world.place)) is None


async def test_a_server_that_is_begun_when_another_is_chosen_is_not_used(world: World) -> None:
    """Whoever reads had it begun, as it was to be then."""
    async with world.runner() as runner:
        old = await runner.open_session(write(world, sandbox="none"))
        await world.end()
        world.commands["late"] = [f"cat {world.folder}/home/key"]
        async with anyio.create_task_group() as group:
            group.start_soon(runner.asked, old)
            with anyio.fail_after(60):
                while not world.has_record(world.place):
                    await anyio.sleep(0.01)
            own = await runner.open_session(write(world, "t-1/2", "bwrap"))
            await turn_of(runner, own, asking(own, "late"))
            assert "PRIVATE KEY" not in world.said["late"][0]


async def test_an_agents_own_sandbox_that_is_not_there_is_its_runs_matter(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who is to run without gets a server in the same place at once."""
    find = programs.find
    monkeypatch.setattr("ashep.adapters.system.programs.find", lambda name: None if name == "bwrap" else find(name))
    world.settings = world.settings.model_copy(update={"agents": AgentsSettings(sandbox="none")})
    async with world.runner() as runner:
        with pytest.raises(SessionUnavailable, match=r"t-1: `sandbox` is bwrap, and bubblewrap .* is not installed"):
            await runner.open_session(write(world, sandbox="bwrap"))
        assert await runner.open_session(write(world, "t-1/2", "none"))


async def test_what_agents_are_given_beside_their_place_is_never_what_judges_them(world: World) -> None:
    """A folder that holds the project is read without its git, issues and settings, by any name; and not written to."""
    (world.project / ".git").mkdir()
    (world.project / ".git" / "HEAD").write_text("x")
    (world.project / "code.txt").write_text("x")
    (world.folder / "link").symlink_to(world.folder / "home")
    for name in (".ssh", "other"):
        (world.folder / "home" / name).mkdir()
        (world.folder / "home" / name / "file").write_text("x")
    names = ("project/code.txt", "other/file", "project/.git/HEAD", "project/.agent-shepherd/state", ".ssh/file")
    for given in (world.folder / "home", world.folder / "link"):
        world.given(read=(str(given),))
        inside = await factories.inside_of(world.project, world.settings, world.place)
        assert inside is not None
        found = await inside.run(
            ["sh", "-c", "for f; do test -e $f && echo $f; done", "sh", *(str(given / one) for one in names)],
            world.place,
            {},
            20,
        )
        assert found.stdout.decode().split() == [str(given / one) for one in names[:2]]
        limits = await inside.run(["cat", "/proc/self/limits"], world.place, {}, 20)
        assert re.search(rb"Max processes +4096 +4096 ", limits.stdout), "a fork bomb fills its own sandbox"
    other, gemini = str(world.folder / "home" / "other"), world.folder / "home" / ".gemini"
    gemini.mkdir()
    (login := gemini / "oauth.json").write_text("mine")
    world.given(write=(str(login),))
    inside = await factories.inside_of(world.project, world.settings, world.place)
    assert inside is not None
    said = await inside.run(["sh", "-c", 'cat "$0"; echo evil >"$0"; cat "$0"', str(login)], world.place, {}, 20)
    assert (said.stdout, login.read_text()) == (b"mineevil\n", "mine"), "of a login nothing comes back"
    for paths, why in (
        ({"write": (str(gemini),)}, "take logins and orders"),
        ({"write": (str(world.folder),)}, "holds this project"),
        ({"write": (other,), "read": (f"{other}/file",)}, "lead elsewhere"),
    ):
        world.given(**paths)
        with pytest.raises(ServerNotStarted, match=why):
            await factories.inside_of(world.project, world.settings, world.place)


async def test_what_the_environment_says_to_opencode_is_said_to_judges_too_or_they_do_not_begin(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = factories.opencode_of(world.project, world.settings)
    monkeypatch.setenv("OPENCODE_CONFIG_CONTENT", '{"model": "x/y"} // JSON with a comment')
    with pytest.raises(ServerNotStarted, match="OPENCODE_CONFIG_CONTENT is not JSON"):
        await server.start()


@pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap cannot be used here")
async def test_what_settings_of_opencode_include_is_there_or_no_server_would_start(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key in a file of its own, as OpenCode's own pages advise, and prompts of agents; a project's by its base."""
    secret, own = world.folder / "home" / ".secrets" / "key", world.folder / "home" / "own" / "more.json"
    for file, text in ((secret, "sk-1"), (own.with_name("role"), "be brief"), (world.folder / "role", "be kind")):
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    settled = json.loads((world.config / "opencode.json").read_text())
    settled["agent"] = {"mine": {"mode": "all", "prompt": "{file:~/.secrets/key}"}}
    (world.config / "opencode.json").write_text(json.dumps(settled))
    project = {"opencode.json": '{"agent": {"ours": {"prompt": "{file:./docs/role.md}"}}}', "docs/role.md": "x"}
    for top in (world.project, world.place):
        for name, text in project.items():
            (top / name).parent.mkdir(exist_ok=True)
            (top / name).write_text(text)
    commit(world.project, *project)
    async with world.runner() as runner:
        assert {"mine", "ours"} <= set((await runner.catalog()).agents)
        maker = await runner.open_session(write(world))
        assert (await turn_of(runner, maker, asking(maker, "make it"))).text == "done"
        await runner.stop_server()
    more = {"role": {"prompt": "{file:role}"}, "other": {"prompt": f"{{file:{world.folder}/role}}"}}
    own.write_text(json.dumps({"agent": more}))
    monkeypatch.setenv("OPENCODE_CONFIG", str(own))
    async with world.runner() as runner:
        assert {"mine", "role", "other"} <= set((await runner.catalog()).agents)


async def test_ten_thousand_files_that_a_base_includes_keep_no_judge_from_starting(tmp_path: Path) -> None:
    asked = list[list[str]]()
    listed = ["x" * 10_000, "../up", "/etc/passwd", "~/key", *(f"./{n}" for n in range(10_000))]
    text = json.dumps({"instructions": [f"{{file:{one}}}" for one in listed]}).encode()

    async def base(names: Sequence[str]) -> dict[str, bytes]:
        asked.append([*names])
        return {} if asked[1:] else {"opencode.json": text}

    around = SandboxProfiles(tmp_path, tmp_path / "places", (), AgentsSettings(), {})
    made = Profiles(around, tmp_path / "ground", {}, base, nobodys(tmp_path))
    await made.judge(tmp_path / "server")
    assert len(asked[1]) == 100
    assert all(one.isdigit() for one in asked[1])


@pytest.mark.skipif(not has_bubblewrap(), reason="needs bubblewrap")
@pytest.mark.parametrize("plugins", [False, True])
async def test_in_a_sandbox_no_plugin_of_the_configuration_is_loaded_unless_that_is_allowed(
    tmp_path: Path, plugins: bool
) -> None:
    async def base(names: Sequence[str]) -> dict[str, bytes]:
        return {}

    agents = AgentsSettings(sandbox="bwrap", plugins=plugins)
    around = SandboxProfiles(tmp_path, tmp_path / "places", (), agents, {"HOME": str(tmp_path)})
    profiles = Profiles(around, tmp_path / "ground", {"HOME": str(tmp_path)}, base, nobodys(tmp_path))
    judge = await profiles.judge(tmp_path / "server")
    assert judge.environment.get("OPENCODE_PURE") == (None if plugins else "1")


async def test_judges_have_the_bases_configuration_and_instructions(world: World) -> None:
    """Not what stands in the user's folder, nor what a candidate has; and no page of the web."""
    base = {
        "AGENTS.md": "as the base has it",
        ".opencode/agent/judge.md": "---\ndescription: d\nmode: primary\n---\nBe fair.",
    }
    for name, text in base.items():
        (world.project / name).parent.mkdir(parents=True, exist_ok=True)
        (world.project / name).write_text(text)
    commit(world.project, "AGENTS.md", ".opencode")
    (world.project / "AGENTS.md").write_text("as the user is about to have it")
    (world.ground / "AGENTS.md").write_text("as the ground has it")
    (world.ground / ".opencode" / "agent").mkdir(parents=True)
    (world.ground / ".opencode" / "agent" / "evil.md").write_text(base[".opencode/agent/judge.md"])
    async with world.runner() as runner:
        agents = (await runner.catalog()).agents
        assert "judge" in agents
        assert "evil" not in agents
        judge = await runner.open_session(SessionRequest("i:t-1/2", "t-1/2", "read", directory=str(world.ground)))
        await turn_of(runner, judge, asking(judge, "judge it"))
        (ask,) = [one for one in world.model.asks if "judge it" in one.prompt]
        said = json.dumps(ask.messages)
        assert "as the base has it" in said
        assert "as the user" not in said
        assert "as the ground" not in said
        assert {"webfetch", "websearch", "bash", "write", "edit"}.isdisjoint(ask.tools)


async def test_what_settings_of_judges_start_never_starts_among_the_candidates_files(world: World) -> None:
    """The base's settings, and the user's, name a program; a file of that name is the candidate's."""
    ran = "import os, sys; open(os.path.expanduser(f'~/RAN-{name}-{os.getcwd().count(\".ground\")}'), 'w')"
    mcp = {"type": "local", "enabled": True}
    users = {
        "users": mcp | {"command": ["python3", "-m", "served"]},
        "far": {"type": "remote", "url": "http://x.invalid"},
    }
    off = {"off": mcp | {"command": ["python3", "-m", "served"], "enabled": False}}
    users["mine"] = mcp | {"command": ["python3", "-c", ran.replace("RAN-{name}", "mine")]}
    settled = json.loads((world.config / "opencode.json").read_text())
    plugin = "import fs from 'fs'; fs.writeFileSync(process.env.HOME + '/RAN-NAME', 'x'); export {}"
    (world.config / "named.js").write_text(plugin.replace("NAME", "named"))
    for folder in ("plugin", "plugins"):
        (world.config / folder).mkdir()
        (world.config / folder / "listed.js").write_text(plugin.replace("NAME", folder))
    more = {"mcp": users | off, "plugin": ["./named.js"]}
    (world.config / "opencode.jsonc").write_text(json.dumps(more) + "// a comment")
    (world.config / "opencode.json").write_text(json.dumps(settled))
    base = {
        "opencode.json": json.dumps(
            {
                "mcp": {"base": mcp | {"command": ["python3", "tools/mcp.py"]}},
                "plugin": ["./tools/plugin.js"],
                "formatter": {"own": {"command": ["tools/fmt"], "extensions": [".py"]}},
                "lsp": {"own": {"command": ["python3", "tools/mcp.py"], "extensions": [".txt"]}},
            }
        ),
        ".opencode/opencode.jsonc": json.dumps({"mcp": {"inner": mcp | {"command": ["sh", "-c", "sh tools/x.sh"]}}}),
        "AGENTS.md": "as the base has it",
    }
    candidates = {
        "tools/mcp.py": f"name = 'base'; {ran}", "served.py": f"name = 'users'; {ran}", "tools/x.sh": "touch ~/RAN-x",
        "tools/plugin.js": "import fs from 'fs'; fs.writeFileSync(process.env.HOME + '/RAN-plugin', 'x'); export {}",
        "tools/fmt": "#!/bin/sh\ntouch ~/RAN-fmt", "a.txt": "a\n",
    }  # fmt: skip
    # as a ground is laid: an opencode.json there would be read whatever its variables say (facts/opencode.md 28)
    laid = {name: text for name, text in (base | candidates).items() if not Instructions().acts(name)}
    assert "opencode.json" not in laid
    for top, files in ((world.project, base), (world.ground, laid)):
        for name, text in files.items():
            (top / name).parent.mkdir(parents=True, exist_ok=True)
            (top / name).write_text(text)
    commit(world.project, *base)
    async with world.runner() as runner:
        judge = await runner.open_session(SessionRequest("i:t-1/2", "t-1/2", "read", directory=str(world.ground)))
        await turn_of(runner, judge, asking(judge, "judge it"))
        (ask,) = [one for one in world.model.asks if "judge it" in one.prompt]
        assert "as the base has it" in json.dumps(ask.messages)
        url, known = f"http://127.0.0.1:{world.record().port}", httpx.BasicAuth("opencode", world.record().password)
        async with httpx.AsyncClient(base_url=url, auth=known, params={"directory": str(world.ground)}) as asked:
            states = {name: one["status"] for name, one in (await asked.get("/mcp", timeout=30)).json().items()}
    print(states, [one.name for one in world.folder.rglob("RAN*")])
    assert [*world.folder.rglob("RAN*")] == []
    assert [one.name for one in world.folder.rglob("mine-*")] == ["mine-0"], "it starts, and elsewhere"
    assert (states["off"], set(states)) == ("disabled", {"users", "mine", "far", "off", "base", "inner"})


@pytest.mark.parametrize("plugins", [False, True])
async def test_a_users_plugins_run_in_a_place_only_where_that_is_allowed(world: World, plugins: bool) -> None:
    """facts/opencode.md 28: OPENCODE_PURE alone does not keep them out of a place that has settings of its own."""
    plugin = "import fs from 'fs'; fs.writeFileSync(process.env.HOME + '/RAN-NAME', 'x'); export {}"
    for name in ("named.js", "plugin/listed.js", "plugins/listed.js"):
        (world.config / name).parent.mkdir(exist_ok=True)
        (world.config / name).write_text(plugin.replace("NAME", name.replace("/", "-")))
    (world.config / "opencode.jsonc").write_text('{"plugin": ["./named.js"], "username": "u"} // a comment')
    (world.place / "opencode.json").write_text('{"autoupdate": false}')
    agents = AgentsSettings(sandbox="bwrap", plugins=plugins)
    world.settings = world.settings.model_copy(update={"agents": agents})
    async with world.runner() as runner:
        maker = await runner.open_session(write(world))
        await turn_of(runner, maker, asking(maker, "make it"))
    expected = ["RAN-named.js", "RAN-plugin-listed.js", "RAN-plugins-listed.js"] if plugins else []
    assert sorted(file.name for file in world.folder.rglob("RAN-*")) == expected


async def test_what_an_agent_leaves_ends_with_its_place(world: World) -> None:
    """Whoever takes the mark off a process of theirs has it ended all the same, in a sandbox; sessions stay, until the
    place is forgotten.
    """
    async with world.runner() as runner:
        maker = await runner.open_session(write(world))
        world.commands["stay"] = [
            "env -i setsid sleep 4321 >/dev/null 2>&1 & echo",
            "setsid sleep 4322 >/dev/null 2>&1 &",
        ]
        await turn_of(runner, maker, asking(maker, "stay"))
        assert len(sleepers("4321")) == len(sleepers("4322")) == 1
        before = world.record(world.place)
        await leave(world.state, world.place)
        with anyio.fail_after(60):
            while sleepers("4321"):  # the kernel ends what is in the namespace a moment after its first process
                await anyio.sleep(0.05)
        assert not sleepers("4322")
        assert not process_table.holders_of(before.mark)
        with pytest.raises(RunnerRefused, match="was ended with its run"):  # what is in the place is being sealed
            await runner.turn(maker, asking(maker, "").message_id)
        assert not world.has_record(world.place)
        assert await runner.has_session(maker)  # a run may go on in it
        assert (await runner.turn(maker, asking(maker, "").message_id)).text == "done"
        await forget(world.state, world.place)
        assert not folder_for(world.state, world.place).exists()
        assert not await runner.has_session(maker)


async def test_a_server_that_an_agent_broke_is_nobody_elses(world: World) -> None:
    """Its run is told why; the others go on, and the server of the judges is as it was."""
    async with world.runner() as runner:
        judge = await runner.open_session(SessionRequest("i:t-1/2", "t-1/2", "read", directory=str(world.ground)))
        maker = await runner.open_session(write(world))
        await world.end()
        (folder_for(world.state, world.place) / "data" / "opencode" / "opencode.db").write_bytes(b"broken" * 1000)
        with pytest.raises(SessionUnavailable, match="t-1"):
            await runner.turn(maker, asking(maker, "").message_id)
        assert await runner.busy((maker, judge)) == frozenset()
        assert [one.session for one in await runner.requests((maker, judge)) if one.unlisted] == [maker]
        assert await runner.has_session(judge)


async def test_who_opens_a_session_tries_again_whatever_came_of_others_tries(world: World) -> None:
    """A read that found the server ended, and none that could be started, is no reason for the next run to fail."""
    database = folder_for(world.state, world.place) / "data" / "opencode" / "opencode.db"
    async with world.runner() as runner:
        first = await runner.open_session(write(world))
        await world.end()
        good = database.read_bytes()
        database.write_bytes(b"broken" * 1000)
        for said in ("ended at its start", "does not answer"):
            with pytest.raises(SessionUnavailable, match=said):
                await runner.turn(first, asking(first, "").message_id)
        database.write_bytes(good)
        assert await runner.has_session(await runner.open_session(write(world)))
        assert await runner.asked(first) == (), "whoever reads is not kept from it any more"


async def test_killed_server_of_a_place(world: World) -> None:
    """A turn whose server dies is seen by another instance, as dead; its sandbox died with it."""
    async with world.runner() as runner:
        maker = await runner.open_session(write(world))
        instance = await runner.send(asking(maker, "hangs"))
        record = world.record(world.place)
        os.kill(record.first[0] if record.first else record.pid or 0, signal.SIGKILL)
        with anyio.fail_after(60):
            turn = await runner.turn(maker, asking(maker, "").message_id)
        assert turn.state != "finished"
        assert turn.instance != instance


def nobodys(folder: Path) -> Logins:
    return Logins(folder / "auth.json", lambda: folder / "login", OPENCODE)


def commit(project: Path, *names: str) -> None:
    for words in (("init", "-q"), ("add", *names), ("commit", "-qm", "x")):
        subprocess.run(["git", "-c", "user.name=a", "-c", "user.email=a@x", *words], cwd=project, check=True)


def sleepers(seconds: str) -> list[int]:
    found = subprocess.run(["pgrep", "-f", f"^sleep {seconds}$"], capture_output=True, text=True).stdout
    return [int(pid) for pid in found.split()]
