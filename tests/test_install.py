"""`ashep install` says what is there, what is missing and what to do, and hangs on nothing."""

import json
import os
import shutil
import socket
import subprocess
from collections import namedtuple
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Literal

import pytest

from ashep.actions import doctor, doctor_git, doctor_security, verify
from ashep.actions.runners import opencode
from ashep.actions.runners.base import ServerCatalog
from ashep.adapters.system import programs
from ashep.cli import main
from ashep.config import write_starter
from ashep.core.facts.runs import Model
from ashep.core.policy.agents import Agents, RunnerChoice
from ashep.core.policy.isolation_notice import AS_YOU, unsaid
from ashep.core.policy.landing import ForgeSettings, LandingSettings
from ashep.core.policy.settings import (
    OpencodeSettings,
    People,
    Runners,
    Settings,
    WorkerSettings,
)
from ashep.core.policy.verification_settings import VerificationSettings
from ashep.factories import NamedRunner
from tests.conformance.trackers import Beads
from tests.core import given
from tests.places import has_bubblewrap

GOOD_BD = """#!/bin/sh
case "$*" in
  *version*) echo '{"version":"1.3.0"}';;
  *where*) echo '{"path":"PLACE/.beads","prefix":"t","database_path":"PLACE/.beads/db"}';;
  *events-journal*) echo '{"key":"events-journal","value":"JOURNAL"}';;
  *) echo '{}';;
esac
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a project, on a machine with git and nothing else."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("git", "sh", "sleep"):
        found = programs.find(name)
        assert found is not None
        (tools / name).symlink_to(found)
    monkeypatch.setenv("BEFORE", os.environ["PATH"])
    monkeypatch.setenv("PATH", str(tools))
    folder = tmp_path / "project"
    folder.mkdir()
    write_starter(folder / ".agent-shepherd")
    return folder


def program(project: Path, name: str, text: str) -> None:
    """Put a program on PATH."""
    file = project.parent / "bin" / name
    file.write_text(text.replace("PLACE", str(project)))
    file.chmod(0o755)


def git(project: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=project, check=True)


def only(lines: list[doctor.CheckLine], check: str) -> doctor.CheckLine:
    (line,) = [line for line in lines if line.check == check]
    return line


# --- providers ----------------------------------------------------------------------------------------------------


def test_a_server_without_any_login_is_an_error() -> None:
    (line,) = opencode.judged(given.TEAM, ServerCatalog((), (), None))
    assert (line.level, line.check) == ("error", "providers")
    assert "opencode auth login" in line.remedy


def test_what_agents_name_and_the_server_lacks_is_said_with_what_to_do() -> None:
    found = ServerCatalog((), (Model("acme", "large"), Model("acme", "tiny")), None)
    critic = given.CRITIC.model_copy(update={"runner": RunnerChoice(agent_slug=None, provider="zen", model="small")})
    first, slug, login = opencode.judged(Agents(version=1, agents=(given.BUILDER, critic)), found)
    assert first.what.startswith("OpenCode can use acme (2 models); default: the server's choice")
    assert slug.what == "builder cannot be used: OpenCode has no agent build"
    assert login.what == "critic cannot be used: OpenCode has no login for zen"
    assert {slug.level, login.level} == {"warning"}


async def test_a_server_that_cannot_be_asked_for_its_models_is_an_error(project: Path) -> None:
    settings = Settings(runners=Runners(opencode=OpencodeSettings(managed=False, url="http://127.0.0.1:9")))
    (line,) = await opencode.providers(NamedRunner(project, settings, "opencode"))
    assert (line.level, line.check) == ("error", "providers")


async def test_a_broken_registry_is_told_once(project: Path) -> None:
    (project / ".agent-shepherd" / "agents.yaml").write_text("agents: 7")
    assert await opencode.providers(NamedRunner(project, Settings(), "opencode")) == []


# --- bd -----------------------------------------------------------------------------------------------------------


async def test_a_missing_bd_is_an_error_with_a_remedy(project: Path) -> None:
    (line,) = await doctor.tracker(project, Settings())
    assert (line.level, line.check) == ("error", "bd")
    assert "make setup" in line.remedy


async def test_a_bd_that_is_too_old_is_an_error(project: Path) -> None:
    program(project, "bd", GOOD_BD.replace("1.3.0", "1.2.9"))
    (line,) = await doctor.tracker(project, Settings())
    assert line.level == "error"
    assert "1.2.9 is too old" in line.what


async def test_a_project_without_a_database_is_told_to_make_one(project: Path) -> None:
    program(project, "bd", '#!/bin/sh\ncase "$*" in *version*) echo \'{"version":"1.3.0"}\';; *) ' +
            'echo "Error: no beads database found" >&2; exit 1;; esac\n')  # fmt: skip
    (line,) = await doctor.tracker(project, Settings())
    assert (line.level, line.check) == ("error", "database")
    assert "bd init" in line.remedy


async def test_a_bd_that_says_nothing_useful_is_an_error(project: Path) -> None:
    program(project, "bd", "#!/bin/sh\necho hello\n")
    assert (await doctor.tracker(project, Settings()))[0].level == "error"


async def test_a_bd_that_hangs_is_given_up(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_ALL_OF_BD", 0.5)
    program(project, "bd", "#!/bin/sh\nsleep 60\n")
    (line,) = await doctor.tracker(project, Settings())
    assert line.level == "error"
    assert "no answer in 0.5 s" in line.what


@pytest.mark.parametrize(("journal", "levels"), [("true", []), ("false", ["ok"])])
async def test_a_good_bd_is_told_with_its_place_and_store(project: Path, journal: str, levels: list[str]) -> None:
    program(project, "bd", GOOD_BD.replace("JOURNAL", journal))
    (project / ".beads").mkdir()
    lines = await doctor.tracker(project, Settings())
    assert [line.level for line in lines] == ["ok", "ok", "ok", *levels]
    assert "prefix t" in only(lines, "database").what


async def test_a_large_store_is_worth_a_warning(project: Path) -> None:
    program(project, "bd", GOOD_BD)
    (project / ".beads").mkdir()
    with (project / ".beads" / "store").open("wb") as store:
        store.truncate(200 * 1024 * 1024)
    line = only(await doctor.tracker(project, Settings()), "store")
    assert (line.level, line.remedy) == ("warning", "run `bd gc` when it suits you")


@pytest.fixture
def beads(tmp_path_factory: pytest.TempPathFactory) -> Beads:
    return Beads.make(tmp_path_factory.getbasetemp() / "beads")


@pytest.mark.real
async def test_the_real_bd_is_good(beads: Beads, tmp_path: Path) -> None:
    settings = Settings.model_validate({"tracker": {"command": (str(beads.program),)}})
    lines = await doctor.tracker(beads.copy(tmp_path / "p"), settings)
    assert [line.level for line in lines] == ["ok", "ok", "ok", "ok"]


# --- OpenCode -----------------------------------------------------------------------------------------------------


async def test_a_missing_opencode_is_an_error(project: Path) -> None:
    (line,) = await opencode.agent_server(Settings(), {})
    assert (line.level, line.check) == ("error", "opencode")
    assert "Claude Code" not in line.remedy
    program(project, "claude", "#!/bin/sh\n")
    (line,) = await opencode.agent_server(Settings(), {})
    assert "or give its agents to Claude Code, which is here" in line.remedy


@pytest.mark.parametrize(("text", "level"), [
    (f"#!/bin/sh\necho {programs.OPENCODE_VERSION}\n", "ok"),
    ("#!/bin/sh\necho 0.9.1\n", "warning"),
    ("#!/bin/sh\necho what\n", "error"),
    ("#!/bin/sh\necho broken >&2; exit 3\n", "error"),
])  # fmt: skip
async def test_opencodes_version_is_looked_at(project: Path, text: str, level: str) -> None:
    program(project, "opencode", text)
    assert (await opencode.agent_server(Settings(), {}))[0].level == level


def attached(url: str) -> Settings:
    """Settings whose agent server is not ashep's own."""
    return Settings(runners=Runners(opencode=OpencodeSettings(managed=False, url=url)))


@contextmanager
def server(password: str | None) -> Iterator[str]:
    """Serve /global/health, with a password or without."""
    import base64

    wanted = "Basic " + base64.b64encode(f"opencode:{password}".encode()).decode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            allowed = password is None or self.headers.get("Authorization") == wanted
            body = f'{{"healthy": true, "version": "{programs.OPENCODE_VERSION}"}}'.encode()
            self.send_response(200 if allowed else 401)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    listening = HTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=listening.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.server_port}"
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join()


@pytest.mark.parametrize(("password", "given", "levels"), [
    ("secret", "secret", ["ok", "ok", "warning"]),
    ("secret", "wrong", ["error", "ok", "warning"]),
    ("secret", None, ["error", "warning", "warning"]),
    (None, None, ["ok", "warning", "warning"]),
])  # fmt: skip
async def test_an_attached_server_is_asked(
    project: Path, password: str | None, given: str | None, levels: list[str]
) -> None:
    with server(password) as url:
        environ = {} if given is None else {"OPENCODE_SERVER_PASSWORD": given}
        lines = await opencode.agent_server(attached(url), environ)
    assert [line.level for line in lines] == levels
    assert [line.check for line in lines] == ["opencode", "password", "actor"]
    assert "git's user" in lines[2].what
    assert given is None or all(given not in line.what + line.remedy for line in lines)


async def test_an_attached_server_that_is_down_is_an_error(project: Path) -> None:
    lines = await opencode.agent_server(attached("http://127.0.0.1:9"), {})
    assert lines[0].level == "error"


@pytest.mark.parametrize(("url", "password", "level"), [
    ("http://server.example:4096", None, "error"),
    ("http://server.example:4096", "secret", "warning"),
    ("https://server.example", "secret", "ok"),
    ("http://localhost:4096", None, "warning"),
    ("http://[::1]:4096", "secret", "ok"),
])  # fmt: skip
def test_a_server_elsewhere_needs_a_password_and_https(url: str, password: str | None, level: str) -> None:
    settings = attached(url).runners.opencode
    assert opencode._password(settings, password, local=opencode._is_loopback(url)).level == level


# --- git, disk, files ---------------------------------------------------------------------------------------------

OWN = Settings(worker=WorkerSettings(workspace="worktree"))


async def test_git_is_worth_a_warning_only(project: Path) -> None:
    (line,) = await doctor.git(project, Settings())
    assert line.level == "warning"
    git(project, "init", "-q", ".")
    assert (await doctor.git(project, Settings()))[0].level == "ok"
    (project.parent / "bin" / "git").unlink()
    assert (await doctor.git(project, Settings()))[0].what == "git is not on PATH"


@pytest.mark.promise("W3")
async def test_what_separates_checks_from_the_machine_is_told(project: Path) -> None:
    def settings(wish: Literal["auto", "bwrap", "none"]) -> Settings:
        return Settings(verification=VerificationSettings(sandbox=wish))

    cases: list[tuple[Literal["auto", "bwrap"], str]] = [("auto", "warning"), ("bwrap", "error")]
    for wish, level in cases:
        (line,) = await doctor.sandbox(project, settings(wish))
        assert (line.level, "is not installed" in line.what) == (level, True)
    assert (await doctor.sandbox(project, settings("none")))[0].level == "ok"
    fake = project.parent / "bin" / "bwrap"
    # where the checkout lies below /tmp, the real one makes folders in what it binds there
    fake.write_text('#!/bin/sh\nwhile [ $# -gt 0 ]; do [ "$1" = --bind ] && /bin/mkdir -p "$2/made"; shift; done\n:\n')
    fake.chmod(0o755)
    before = sorted(project.rglob("*"))
    isolated, rest = await doctor.sandbox(project, settings("auto"))
    assert (isolated.level, isolated.what[:25]) == ("ok", "checks run in bubblewrap:")
    assert "no other file of yours" in rest.what
    assert sorted(project.rglob("*")) == before


@pytest.mark.promise("Z7")
@pytest.mark.may_block
async def test_a_check_that_fails_before_any_work_is_named_with_the_likely_cause(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(name: str, *command: str) -> dict[str, Any]:
        return {"id": name, "type": "test_pass", "verify": {"command": command}}

    folder = project / ".agent-shepherd"
    settings = Settings(worker=WorkerSettings(workspace="worktree"), verification=VerificationSettings(sandbox="none"))
    git(project, "init", "-q", "-b", "main", ".")
    git(project, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "--allow-empty", "-m", "x")
    assert await verify.verify_base(project, settings) == [], "the starter has none"
    checks = [check("builds", "sh", "-c", "exit 0"), check("deps", "nonesuch")]
    phase = {"name": "implement", "checks": checks}
    (folder / "policies.yaml").write_text(json.dumps({"version": 1, "policies": {"mine": {"phases": [phase]}}}))
    (line,) = await verify.verify_base(project, settings)
    told = "deps of the policy mine fails on HEAD, before any work (likely cause: a program is not found)"
    assert (line.level, line.check) == ("warning", "checks")
    assert line.what.startswith(told)
    checks[1] = check("deps", "sleep", "5")
    (folder / "policies.yaml").write_text(json.dumps({"version": 1, "policies": {"mine": {"phases": [phase]}}}))
    monkeypatch.setattr(verify, "LONGEST_ON_BASE", 1.0)
    (line,) = await verify.verify_base(project, settings)
    assert (line.level, "take longer than 1 s" in line.what) == ("ok", True)
    shared = settings.model_copy(update={"worker": WorkerSettings(workspace="shared")})
    assert await verify.verify_base(project, shared) == [], "nothing is verified there"


async def test_a_dirty_tree_is_worth_a_warning(project: Path) -> None:
    git(project, "init", "-q", ".")
    (project / "file").write_text("text")
    git(project, "add", "file")
    (line,) = await doctor.git(project, Settings())
    assert "1 tracked files are changed (file…): phases with write access do not start" in line.what
    (line,) = await doctor.git(project, OWN)
    assert line.what.endswith("the work of issues waits before it lands here")
    assert line.remedy == "commit or stash them"


async def test_it_says_where_issues_will_be_worked_on(project: Path) -> None:
    git(project, "init", "-q", ".")
    (line,) = await doctor.git(project, OWN)
    assert (line.level, line.remedy) == ("warning", "commit something")
    git(project, "-c", "user.name=p", "-c", "user.email=p@localhost", "commit", "-q", "--allow-empty", "-m", "first")
    for settings, words in ((OWN, "each issue gets a work tree of its own"), (Settings(), "all agents share it")):
        assert (await doctor.git(project, settings))[0].what.endswith(words)


# --- the repository, tried ------------------------------------------------------------------------------------------

PLACES = Settings(worker=WorkerSettings(workspace="place"))


@pytest.fixture
def committed(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the project in a repository with a commit of it, on a machine with all programs."""
    monkeypatch.setenv("PATH", os.environ["BEFORE"])
    git(project, "init", "-q", "-b", "main", ".")
    git(project, "config", "user.name", "p")
    git(project, "config", "user.email", "p@localhost")
    (project / "a.txt").write_text("a\n")
    git(project, "add", "-A")
    git(project, "commit", "-q", "-m", "first")
    return project


def everything(project: Path) -> dict[Path, bytes | None]:
    return {one: one.read_bytes() if one.is_file() else None for one in sorted(project.rglob("*"))}


@pytest.mark.promise("I8")
@pytest.mark.parametrize("settings", [OWN, PLACES])
async def test_one_of_each_kind_of_call_of_a_night_is_tried_and_leaves_nothing(
    committed: Path, settings: Settings
) -> None:
    git(committed, "status")
    before = everything(committed)
    (line,) = await doctor_git.trial(committed, settings, ask=True)
    assert (line.level, line.check) == ("ok", "repository")
    assert everything(committed) == before
    assert await doctor_git.trial(committed, Settings(), ask=True) == [], "in the shared tree no issue has one"


@pytest.mark.parametrize("settings", [OWN, PLACES])
async def test_what_would_stop_every_issue_is_an_error_and_leaves_nothing(committed: Path, settings: Settings) -> None:
    git(committed, "branch", "ashep")
    before = everything(committed)
    (line,) = await doctor_git.trial(committed, settings, ask=True)
    assert line.level == "error"
    assert "the branch `ashep` is in the way" in line.what
    assert everything(committed) == before


@pytest.mark.parametrize("settings", [OWN, PLACES])
async def test_what_only_a_trial_finds_names_the_step_that_failed(committed: Path, settings: Settings) -> None:
    git(committed, "config", "filter.odd.clean", "no-such-program")
    git(committed, "config", "filter.odd.required", "true")
    (committed / ".git/info/attributes").write_text("ashep-install-trial filter=odd\n")
    before = {one for one in everything(committed) if "objects" not in one.parts}
    (line,) = await doctor_git.trial(committed, settings, ask=True)
    assert line.level == "error"
    assert "a trial could not" in line.what
    assert {one for one in everything(committed) if "objects" not in one.parts} == before


@pytest.mark.promise("Z6")
async def test_a_base_behind_its_upstream_is_told_with_what_to_do(committed: Path) -> None:
    near = committed.parent / "near"
    git(committed, "clone", "-q", str(committed), str(near))
    git(near, "config", "user.name", "p")
    git(near, "config", "user.email", "p@localhost")
    git(committed, "commit", "-q", "--allow-empty", "-m", "second")
    assert [line.check for line in await doctor_git.trial(near, OWN, ask=True)] == ["repository"], "nobody fetched yet"
    git(near, "fetch", "-q")
    _, line = await doctor_git.trial(near, OWN, ask=True)
    assert (line.level, line.check, line.remedy) == ("warning", "base", "`git pull` before the night")
    assert line.what.startswith("main is 1 commit behind origin/main (as of 2")
    forge = ForgeSettings(type="github", repository="acme/tools")
    landing = LandingSettings(mode="pull_request", forge=forge)
    pulls = OWN.model_copy(update={"landing": landing})
    levels = [line.level for line in await doctor_git.trial(near, pulls, ask=True)]
    assert levels == ["ok", "ok"], "that is where issues begin"
    git(near, "remote", "set-url", "origin", str(committed.parent / "gone"))
    assert (await doctor_git.trial(near, pulls, ask=True))[-1].what.startswith("origin cannot be fetched: fatal: ")


@pytest.mark.parametrize(("free", "level"), [(50, "error"), (500, "warning"), (5000, "ok")])
def test_the_disks_room(project: Path, monkeypatch: pytest.MonkeyPatch, free: int, level: str) -> None:
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: usage(free * 1024 * 1024))
    assert doctor.disk(project)[0].level == level


def test_mistakes_in_files_are_told(project: Path) -> None:
    assert doctor.configuration(project)[0].level == "ok"
    (project / ".agent-shepherd" / "config.yaml").write_text("version: 1\nwroker: {}\n")
    (line,) = doctor.configuration(project)
    assert line.level == "error"
    assert "config.yaml:2: wroker" in line.what
    assert doctor.configuration(project.parent)[0].remedy == "run `ashep setup`"
    assert doctor.configuration(project.rename(project.with_name("a%20b")))[-1].remedy == "move the project"


def test_who_counts_is_said() -> None:
    named, _ = doctor_security.people(Settings(people=People(tracker=("Ann Example", "bob"))))
    assert named.what == "only the word of Ann Example, bob counts"


# --- where agents run ---------------------------------------------------------------------------------------------


def isolated(sandbox: str, **agents: Any) -> Settings:
    worker = {"workspace": "place", "setup": ({"run": ("npmx", "ci")}, {"run": ("git", "lfs", "pull")})}
    return Settings.model_validate({"worker": worker, "agents": {"sandbox": sandbox, **agents}})


async def test_without_a_sandbox_it_is_said_that_agents_run_as_you(project: Path) -> None:
    (line,) = await doctor_security.agents(project, Settings())
    assert (line.level, f"{line.what}: {line.remedy}") == ("warning", AS_YOU)
    for sandbox, level in (("auto", "warning"), ("bwrap", "error")):
        (line,) = await doctor_security.agents(project, isolated(sandbox))
        assert (line.level, "is not installed" in line.what) == (level, True)
    own = Settings.model_validate({"runners": {"mine": {"type": "mine:Runner"}}})
    assert (await doctor_security.agents(project, own))[0].what == "where agents run is the business of the runner mine"
    for more, said in (
        ({"gemini": {"type": "acp", "command": ("gemini",)}}, "agents run as you and reach all that you can"),
        ({"mine": {"type": "mine:Runner"}}, "with the runner mine no agent is in a sandbox"),
    ):
        beside = Settings.model_validate({"runners": {"claude": {}, **more}})
        (line,) = await doctor_security.agents(project, beside)
        assert (line.level, line.what.endswith(said), bool(line.remedy)) == ("warning", True, True)


@pytest.mark.skipif(not has_bubblewrap(), reason="bubblewrap cannot be used here")
async def test_what_weakens_their_sandbox_and_what_they_lack_there_is_named(project: Path) -> None:
    (project.parent / "bin" / "bwrap").symlink_to(str(shutil.which("bwrap", path=os.environ["BEFORE"])))
    real = project.parent / "real" / "npmx"
    real.parent.mkdir()
    real.write_text("#!/bin/sh\n")
    real.chmod(0o755)
    (project.parent / "bin" / "npmx").symlink_to(real)
    paths = {"write": ("~/shared",)}
    lines = await doctor_security.agents(project, isolated("bwrap", openings=("docker",), paths=paths))
    assert [line.level for line in lines] == ["ok", "warning", "warning", "warning"], lines
    assert lines[0].what.startswith("agents that change files run in bubblewrap 0.")
    assert "docker: by its socket they are you, or root" in lines[1].what
    assert "agents may change ~/shared" in lines[2].what
    assert lines[3].what.startswith("npmx is ")
    assert lines[3].remedy == f"add {real.parent} to `agents.paths.read`"
    reasons = {
        str(Path.home() / "shared" / "shop"): "they write what their checks are given",
        "~/": "checks, which run the work of agents, get a copy of your home",
    }
    for cache, reason in reasons.items():
        update = {"verification": VerificationSettings(cache=cache)}
        settings = isolated("bwrap", paths=paths).model_copy(update=update)
        errors = [line for line in await doctor_security.agents(project, settings) if line.level == "error"]
        assert errors[0].what.endswith(f": {reason}")
    named = isolated("bwrap", paths={"read": (str(real.parent),)})
    assert [line.level for line in await doctor_security.agents(project, named)] == ["ok"]
    (project.parent / "bin" / "lint").symlink_to(real)
    checks = "[{id: lint, type: test_pass, verify: {command: lint .}}]"
    phase = f"{{name: a, capabilities: [code], access: write, checks: {checks}, next: {{success: close}}}}"
    policies = f"version: 1\npolicies:\n  p:\n    phases:\n    - {phase}\n"
    (project / ".agent-shepherd" / "policies.yaml").write_text(policies)
    _, *lacking = await doctor_security.agents(project, isolated("bwrap"))
    assert [line.what[:8] for line in lacking] == ["npmx is ", "lint is "], doctor.configuration(project)


async def test_agents_that_run_where_others_do_not_are_named(project: Path) -> None:
    file = project / ".agent-shepherd" / "agents.yaml"
    entry = "- {{id: {}, capabilities: [code], read_write: {}, sandbox: {}}}\n"
    found = [("bold", "write", "none"), ("calm", "write", "bwrap"), ("dull", "read", "none"), ("easy", "write", "null")]
    file.write_text(file.read_text() + "".join(entry.format(*one).replace("- ", "  - ", 1) for one in found))
    (project / ".agent-shepherd" / "config.yaml").write_text(
        "version: 1\nworker: {workspace: place}\nrunners: {opencode: {isolation: place}}\n"
    )
    _, line = await doctor_security.agents(project, isolated("auto"))
    assert (line.level, line.what.rpartition(": ")[2]) == ("warning", "bold")
    assert "run in no sandbox, as you" in line.what
    _, line = await doctor_security.agents(project, Settings())
    assert (line.level, line.what) == ("ok", "by their own `sandbox` these run in one: calm")


async def test_the_state_of_a_project_is_told_line_by_line(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = {line.check: line for line in await doctor_security.security(project, Settings())}
    assert {line.level for name, line in lines.items() if name not in ("agents", "network", "sockets", "files")} == {
        "warning"
    }
    assert "shares the server" in lines["judges"].what
    forge = {"mode": "pull_request", "forge": {"type": "github", "repository": "a/b"}}
    people = {"tracker": ("ann",), "forge": ("MEMBER",)}
    settings = isolated("auto").model_copy(
        update={"landing": LandingSettings.model_validate(forge), "people": People.model_validate(people)}
    )
    (project / ".beads").mkdir()
    about = {"dolt_mode": "server", "dolt_server_port": 3307}
    (project / ".beads" / "metadata.json").write_text(json.dumps(about))
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0{project}")
        monkeypatch.setattr(doctor_security, "_SHOWN", 10_000)
        lines = {line.check: line for line in await doctor_security.security(project, settings)}
        name = Path("/proc/self/comm").read_text().strip()
        assert f"{server.getsockname()[1]} ({name})" in lines["network"].what
        assert int(lines["sockets"].what.split()[2]) >= 1
    assert [lines[one].level for one in ("judges", "people", "forge", "database")] == ["ok", "ok", "ok", "warning"]
    assert "server of Dolt's at port 3307" in lines["database"].what
    assert lines["forge"].what == "at the forge only the word of MEMBER counts"


async def test_files_that_agents_see_and_logins_that_end_are_told(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logins = {"gitlab": {"type": "oauth", "access": "a", "refresh": "r"}, "openai": {"type": "oauth", "refresh": "r"}}
    files = {".local/bin/.env": "A=1", ".local/share/opencode/auth.json": json.dumps(logins), ".local/bin/tool": ""}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr(doctor_security, "_SHOWN", 10_000)
    found = await doctor_security.security(project, Settings())
    seen, login, covered = (line for line in found if line.check in ("files", "logins"))
    assert str(tmp_path / ".local/bin") in seen.what.split(": ")[1].split(", ")
    assert str(tmp_path / ".local/bin/.env") in covered.what.split(": ")[1].split(", ")
    assert login.what.rpartition(": ")[2] == "gitlab"


def test_the_table_is_printed_and_ends_with_0(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In a process of its own loop: the command has one, too."""
    assert main(["-C", str(project), "install", "--security"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[:5] == ["warning", "agents", "agents", "run", "as"]
    assert main(["-C", str(project), "install", "--security", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["lines"][0]["what"] == "agents run as you and reach all that you can"


def test_the_server_can_be_ended_whatever_is_wrong_in_policies(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / ".agent-shepherd" / "policies.yaml").write_text("policies: [")
    assert main(["-C", str(project), "stop", "--server"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "there is no agent server of ashep's to end"


async def test_everything_is_checked_and_bun_is_not_needed(project: Path) -> None:
    (project / "opencode.json").write_text('{"permission": {"bash": {"*": "ask"}}}')
    lines = await doctor.checks(project, os.environ)
    assert only(lines, "permissions").what.startswith(f"{project}/opencode.json asks a person about bash `*`")
    assert {"ashep", "configuration", "bd", "opencode", "bun", "git", "sandbox", "disk"} <= {
        line.check for line in lines
    }
    assert only(lines, "bun").level == "ok"
    said, forged = [line.what for line in lines if line.check == "people"]
    assert said.startswith("config.yaml has no `people`")
    assert "can forge an answer by any name" in forged
    assert all(line.remedy for line in lines if line.level in ("warning", "error"))


def test_rules_in_the_folder_of_policies_count(project: Path) -> None:
    (project / "opencode.json").write_text('{"permission": {"bash": {"make *": "ask"}}}')
    settings = doctor.settings_of(project)
    assert [line.check for line in opencode.describe_configuration(project, settings, os.environ)] == ["permissions"]
    rule = '{tool: bash, pattern: "make *", action: allow}'
    made = project / ".agent-shepherd" / "policies" / "made.yaml"
    made.parent.mkdir()
    phase = f"{{name: implement, access: write, permissions: [{rule}], next: {{success: close}}}}"
    made.write_text(f"match: {{types: [chore]}}\nphases: [{phase}]\n")
    assert opencode.describe_configuration(project, settings, os.environ) == []


def test_who_never_heard_of_sandboxes_is_told_of_them(project: Path) -> None:
    starter = (project / ".agent-shepherd" / "config.yaml").read_text()
    for text in ("", "version: 1\n# agents: {sandbox: auto}\nworker: {x: {agents: 1}}\n", starter):
        assert (unsaid(text, "shared"), unsaid(text, "worktree"), unsaid(text, None)) == (AS_YOU, "", "")
    for text in ("worker: {workspace: shared}\n", "runners:\n  opencode:\n    url: http://x\n",
                 "worker:\n  lock_work_tree: true\n"):  # fmt: skip
        assert unsaid(text, "worktree") == AS_YOU
        assert unsaid(f"{text}agents: {{sandbox: none}}\n", "shared") == ""
    assert unsaid('version: 1\n"agents" :\n  sandbox: none\n', "shared") == ""
