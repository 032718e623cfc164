"""Where the agents of a place run, what is not theirs runs too: the set-up, over the real git and bubblewrap."""

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from ashep import factories
from ashep.adapters.git.workspaces.clones import Clones
from ashep.adapters.git.workspaces.router import GitWorkspaces
from ashep.adapters.runners.opencode.isolated_runner import folder_for
from ashep.adapters.sandboxes.bubblewrap import BindMount
from ashep.core.policy.settings import Settings, SetupStep
from ashep.core.state.branches import branch_of
from ashep.errors import AshepError
from tests.conformance.runners import private_environment
from tests.conformance.workspaces import PlacesWorld
from tests.places import has_bubblewrap, living_in

pytestmark = [pytest.mark.usefixtures("git_alone"), pytest.mark.slow, pytest.mark.may_block]
SANDBOXED = pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap cannot be used here")

ONE = branch_of("t-1")
RUN = "t-1/implement.1.1"
KEY = "-----PRIVATE KEY-----"


class World(PlacesWorld):
    """A project in a user's home, whose agents are sandboxed or not."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home = folder / "home"
        super().__init__(self.home)
        (self.top / ".agent-shepherd" / "state").mkdir(parents=True)
        (self.top / ".beads").mkdir()
        (self.home / ".ssh").mkdir()
        (self.home / ".ssh" / "id").write_text(KEY)
        for name in [name for name in os.environ if name.startswith(("XDG_", "OPENCODE"))]:
            monkeypatch.delenv(name)
        (folder / "bin").mkdir()
        for name, value in private_environment(self.home, folder / "bin").items():
            monkeypatch.setenv(name, value)
        monkeypatch.setenv("FORGE_TOKEN", "a-forges-token")
        self.place = self.top / ".agent-shepherd" / "places"
        self.spaces = Clones(self.top, self.place, sandbox=False)
        self.person_commits(".gitignore", ".agent-shepherd/\n.beads/\nout*\n.env\nconf/\n")

    def settings(self, sandbox: str, *setup: dict[str, Any]) -> Settings:
        worker = {"workspace": "place", "setup": setup}
        return Settings.model_validate({"worker": worker, "agents": {"sandbox": sandbox}})

    def with_setup(self, sandbox: str, *setup: dict[str, Any]) -> GitWorkspaces:
        return factories.worktrees_of(self.top, self.settings(sandbox, *setup))


@pytest.fixture
def world(folder: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return World(folder.parent, monkeypatch)


def script(*lines: str) -> dict[str, Any]:
    return {"run": ("sh", "-c", "; ".join(lines))}


TRIES = """exec >out 2>&1
cat "$ASHEP_MAIN/../.ssh/id" "$HOME/.ssh/id"
for one in .git/config .beads .agent-shepherd/state .agent-shepherd/places/.notes; do ls "$ASHEP_MAIN/$one"; done
echo evil >"$ASHEP_MAIN/a.txt"
cat "$ASHEP_MAIN/a.txt"
echo "$ASHEP_SLOT"
env
echo mine >"$HOME/cache"
git log --format=%s
setsid sleep 4321 &
"""


@SANDBOXED
@pytest.mark.promise("I6")
async def test_what_is_set_up_runs_where_the_agent_does(world: World) -> None:
    world.person_commits("package.sh", TRIES)
    spaces = world.with_setup("bwrap", {"run": ("sh", "package.sh")})
    await spaces.prepare(ONE, None, 3)
    said = world.read(ONE)["out"]
    assert KEY not in said
    assert said.count("No such file or directory") >= 4, said
    assert {"a", "3", "Edit"} <= {*said.splitlines()}, "the project's files are there, and the place's git works"
    assert "a-forges-token" not in said
    assert "OPENCODE_SERVER_PASSWORD" not in said
    assert (world.top / "a.txt").read_text() == "a\n"
    own = folder_for(world.top / ".agent-shepherd" / "state", world.place / ONE)
    assert (own / "home" / "cache").read_text() == "mine\n", "what it caches is the agent's, too"
    assert not (world.home / "cache").exists()
    assert not (world.place / ONE / ".beads").exists(), "no redirect to what is not there"
    with anyio.fail_after(5):
        while living_in(world.place / ONE):
            await anyio.sleep(0.05)
    assert (await spaces.remove(ONE)).saved == ()
    assert not own.exists()


@SANDBOXED
async def test_a_program_that_is_not_there_opens_nothing(world: World) -> None:
    """Its folder was taken to be the one that everything is in."""
    settings = world.settings("bwrap").model_dump(exclude_unset=True)
    lost = {"claude": {"command": ("no-such-program",)}}
    inside = await factories.inside_of(
        world.top, Settings.model_validate(settings | {"runners": lost}), world.top.parent
    )
    assert inside is not None
    assert [one for one in inside.view.readable if not one.is_absolute() or Path.cwd().is_relative_to(one)] == []


@SANDBOXED
async def test_a_person_has_the_login_as_agents_have_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    (world.home / ".credentials.json").write_text("{}")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(world.home))
    settings = world.settings("bwrap").model_dump(exclude_unset=True) | {"runners": {"claude": {}}}
    inside = await factories.inside_of(world.top, Settings.model_validate(settings), world.place / ONE)
    assert inside is not None
    folder = Path(inside.environment["CLAUDE_SECURESTORAGE_CONFIG_DIR"])
    assert (folder / ".credentials.json").read_text() == "{}"
    assert BindMount(folder, folder) in inside.view.placed


@SANDBOXED
async def test_a_step_that_fails_in_the_sandbox_is_told_and_bounded(world: World) -> None:
    with pytest.raises(AshepError, match=r"step 1 of worker.setup.*exit code 3 .*: no such package"):
        await world.with_setup("bwrap", script("echo 'no such package' >&2", "exit 3")).prepare(ONE, None, 0)
    with pytest.raises(AshepError, match=r"had not ended after 0.5 s"):
        await world.with_setup("bwrap", script("sleep 60") | {"timeout": "500ms"}).prepare(ONE, None, 0)
    assert not living_in(world.place / ONE)


@pytest.mark.parametrize("kind", ["shared", "none"])
async def test_without_a_sandbox_it_runs_as_it_did(world: World, kind: str) -> None:
    settings = world.settings("none", script("pwd >out", 'cat "$ASHEP_MAIN/.git/HEAD" >>out'))
    if kind == "none":
        opencode = {"opencode": {"isolation": "place"}}
        settings = Settings.model_validate(settings.model_dump(exclude_unset=True) | {"runners": opencode})
    await factories.worktrees_of(world.top, settings).prepare(ONE, None, 0)
    assert world.read(ONE)["out"] == f"{world.place / ONE}\nref: refs/heads/main\n"
    assert world.read(ONE)[".beads/redirect"] == f"{world.top / '.beads'}\n"


async def test_a_required_sandbox_that_is_not_there_sets_nothing_up(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr(
        "ashep.adapters.system.programs.find", lambda name: None if name == "bwrap" else Path("/usr/bin", name)
    )
    with pytest.raises(AshepError, match=r"`agents.sandbox` is bwrap, and bubblewrap .* is not installed"):
        await world.with_setup("bwrap", script("echo >out")).prepare(ONE, None, 0)
    assert "out" not in world.read(ONE)


@pytest.mark.parametrize("planted", ["conf", "sub"])
async def test_no_link_that_an_agent_planted_leads_a_set_up_elsewhere(world: World, planted: str) -> None:
    """A folder became a link on the branch: one that files are copied to, or one that the project is in."""
    theirs, project = world.home / "theirs", world.top / "sub" / "project"
    theirs.mkdir()
    project.mkdir(parents=True)
    for above in (world.top, project):
        (above / "conf").mkdir()
        (above / "conf" / "key.local").write_text("evil\n")
    await world.begun(ONE, {})
    (world.place / ONE / planted).symlink_to(theirs)
    world.git("add", "-Af", planted, at=ONE)
    await world.spaces.seal(ONE, RUN, "Mine")
    await world.spaces.remove(ONE)
    step = SetupStep.model_validate({"files": ("conf/*",)})
    world.spaces = Clones(world.top if planted == "conf" else project, world.place, sandbox=False, setup=(step,))
    with pytest.raises(AshepError, match=r"is beyond a symbolic link|is a link, and nothing is written"):
        await world.spaces.prepare(ONE, None, 0)
    assert [*theirs.iterdir()] == []


# --- ashep sandbox ---


def tried(world: World, *words: str, sandbox: str = "bwrap", stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run `ashep sandbox …` in the project."""
    config = f"worker: {{workspace: {'shared' if sandbox == 'none' else 'place'}}}\nagents: {{sandbox: {sandbox}}}\n"
    (world.top / ".agent-shepherd" / "config.yaml").write_text(config)
    command = [sys.executable, "-m", "ashep", "sandbox", *words]
    return subprocess.run(command, cwd=world.top, capture_output=True, text=True, input=stdin)


@SANDBOXED
async def test_a_person_tries_what_an_agent_would_see(world: World) -> None:
    done = tried(
        world,
        "--",
        "sh",
        "-c",
        "cat ~/.ssh/id; ls -A; ls -A ~; env; echo mine >~/x; read a; echo $a; exit 7",
        stdin="z\n",
    )
    assert (done.returncode, KEY in done.stdout, "a-forges-token" in done.stdout) == (7, False, False)
    assert "No such file or directory" in done.stderr
    assert done.stdout.splitlines()[-1] == "z", "it is at our terminal"
    assert not (world.home / "x").exists()
    assert tried(world, "--", "sh", "-c", "kill -9 $$").returncode == 137
    await world.with_setup("bwrap", script('echo cached >"$HOME/cache"')).prepare(ONE, None, 0)
    done = tried(world, "t-1", "--", "sh", "-c", "pwd; cat a.txt ~/cache; echo more >out")
    assert done.stdout.splitlines() == [str(world.place / ONE), "a", "cached"], done.stderr
    assert world.read(ONE)["out"] == "more\n"
    done = tried(world, "t-2")
    assert (done.returncode, "t-2 has no place that stands" in done.stderr) == (1, True)


@SANDBOXED
def test_a_shell_in_the_sandbox_has_the_terminal(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/bash")
    monkeypatch.chdir(world.top)
    tried(world, "--", "true")
    spawn = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"
    command = [sys.executable, "-c", spawn, sys.executable, "-m", "ashep", "sandbox"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as terminal:
        assert terminal.stdin is not None
        assert terminal.stdout is not None
        out, said = terminal.stdout.fileno(), b""

        def until(words: bytes) -> None:
            nonlocal said
            while words not in said:
                more = os.read(out, 4096)
                assert more, said
                said += more

        os.write(terminal.stdin.fileno(), b"tty; sleep 60; echo in''terrupted\n")
        until(b"/dev/")
        while not any("sleep" in Path(f"/proc/{one}/cmdline").read_text() for one in living_in(world.home)):
            time.sleep(0.05)
        os.write(terminal.stdin.fileno(), b"\x03")
        until(b"^C")
        os.write(terminal.stdin.fileno(), b"echo st''ill here; exit 9\n")
        until(b"still here")
        assert terminal.wait() == 9


def test_without_a_sandbox_nothing_is_tried(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    done = tried(world, "--", "touch", "out", sandbox="none")
    assert (done.returncode, "in no sandbox: in config.yaml set" in done.stderr) == (2, True)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(world.home / "none"))
    if Path("/usr/bin/bwrap").exists():
        pytest.skip("bubblewrap is installed here")
    for sandbox, words in (("bwrap", "is not installed"), ("auto", "`ashep install` says why")):
        done = tried(world, "--", "touch", "out", sandbox=sandbox)
        assert (done.returncode, words in done.stderr) == (2, True)
    assert not (world.top / "out").exists()
