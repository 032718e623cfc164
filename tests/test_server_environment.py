"""The environment of the agent server that ashep starts: agents' shells inherit a list, which holds no secret of ours.

The server is a program that writes down what it got; the real one is asked in its agent's shell.
"""

import json
import os
import re
import sys
from pathlib import Path

import anyio
import pytest

from ashep.actions import doctor_git
from ashep.actions.doctor import checks
from ashep.adapters.runners.opencode import OpencodeRunner
from ashep.adapters.runners.opencode.environment import PROVIDERS, filter_environment, past_proxies
from ashep.adapters.runners.opencode.server import ManagedServer
from ashep.core.policy.settings import Settings
from ashep.errors import ServerNotStarted
from ashep.extras.demo.scripted_model import Call, opencode_config
from ashep.extras.testing.worlds import settled
from ashep.factories import secret_variables
from ashep.ports.runner import Prompt, SessionRequest
from tests.conformance.runners import RealWorld, real_place

pytestmark = pytest.mark.promise("X13")

__all__ = ["real_place"]

ROOT = Path(__file__).parents[1]
SECRET_SETTINGS = {"apprise_env", "password_env", "token_env"}
FORGE = {"type": "github", "repository": "acme/tools", "token_env": "ANTHROPIC_BASE_URL"}
SETTINGS = Settings.model_validate_json(json.dumps({
    "landing": {"mode": "pull_request", "forge": FORGE},
    "notify": {"targets": [{"apprise_env": "XDG_PEOPLE"}]},
    "runners": {"opencode": {"environment": ["MY_PROVIDER", "XDG_PEOPLE", "ANTHROPIC_BASE_URL"]}},
}))  # fmt: skip
LOOPBACK = "localhost,127.0.0.1,::1"
PROXIES = {"HTTP_PROXY": "http://127.0.0.1:9", "https_proxy": "http://127.0.0.1:9"}
"""Of a company, whose people have forgotten `NO_PROXY`; nobody listens there."""
KEPT = {
    "LANG": "C", "LC_ALL": "C", "TZ": "UTC", "HTTPS_PROXY": "http://p", "no_proxy": "x", "SSL_CERT_FILE": "/c",
    "GIT_AUTHOR_NAME": "pat", "GIT_COMMITTER_EMAIL": "p@x", "VIRTUAL_ENV": "/v",
    "OPENCODE_CONFIG": "/o", "OPENAI_API_KEY": "o", "MY_PROVIDER": "m", "TERM": "xterm", "XDG_CONFIG_HOME": "/x",
}  # fmt: skip
SECRETS = {
    "GITHUB_TOKEN": "1", "GITLAB_TOKEN": "2", "GITEA_TOKEN": "3", "VERIFIER_TOKEN": "4", "PEOPLE_URLS": "5",
    "ANTHROPIC_BASE_URL": "6", "XDG_PEOPLE": "7", "SSH_AUTH_SOCK": "8", "ASHEP_ANYTHING": "9", "NOTIFY_SOCKET": "0",
    "PYTHONPATH": "/p", "GIT_DIR": "/g", "BEADS_DOLT_PASSWORD": "p", "DATABASE_URL": "d",
}  # fmt: skip


@pytest.mark.may_block
async def test_a_server_gets_what_is_listed_and_no_secret(tmp_path: Path) -> None:
    program = tmp_path / "opencode"
    told = f"import json, os; json.dump(dict(os.environ), open({str(tmp_path / 'told')!r}, 'w'))"
    program.write_text(f"#!{sys.executable} -I\n{told}\n")
    program.chmod(0o755)
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], **KEPT, **SECRETS}
    opencode = SETTINGS.runners.opencode.model_copy(update={"command": (str(program),)})
    runner = OpencodeRunner.from_settings(
        opencode, directory=tmp_path, state=tmp_path / "s", environ=environ, secret=secret_variables(SETTINGS)
    )
    with pytest.raises(ServerNotStarted):
        await runner.start()
    got = json.loads((tmp_path / "told").read_text())
    assert {name: got.get(name) for name in KEPT} == KEPT | {"no_proxy": f"x,{LOOPBACK}"}
    assert got["NO_PROXY"] == f"x,{LOOPBACK}"
    assert not SECRETS.keys() & got.keys()
    assert got["BEADS_ACTOR"] == "ashep-agent"
    assert {name for name in got if not name.startswith("GIT_CONFIG_")} <= {
        *KEPT, "NO_PROXY", "HOME", "PATH", "BEADS_ACTOR", "ASHEP_SERVER_TOKEN", "OPENCODE_DISABLE_AUTOUPDATE",
        "LC_CTYPE",
        "OPENCODE_SERVER_USERNAME", "OPENCODE_SERVER_PASSWORD", "XDG_DATA_HOME", "XDG_STATE_HOME",
    }  # fmt: skip


@pytest.mark.real
async def test_an_agents_shell_sees_no_secret(real_place: RealWorld) -> None:
    world = real_place
    environ = {**world.environ, **SECRETS, "MY_PROVIDER": "m", **PROXIES}
    server = ManagedServer(
        command=world.server._command,  # pyright: ignore[reportPrivateUsage] - the same program
        directory=world.directory, state=world.state, environ=environ,
        names=SETTINGS.runners.opencode.environment, secret=secret_variables(SETTINGS),
    )  # fmt: skip
    runner = world.runner = OpencodeRunner(server, directory=world.directory)
    async with world.model:
        (world.directory / "opencode.json").write_text(json.dumps(opencode_config(world.model.url)))
        try:
            await runner.start()
            world.steps["environment"] = [Call("bash", {"command": "env > seen", "description": "d"})]
            session = await runner.open_session(SessionRequest("environment", "t", "write", agent="build"))
            await runner.send(Prompt(session, "msg_environment", "prt_environment", "environment", "build", None))
            await settled(world, session, "msg_environment", bound=60)
        finally:
            await runner.stop_server()
    seen = dict(line.split("=", 1) for line in (world.directory / "seen").read_text().splitlines() if "=" in line)
    assert seen["MY_PROVIDER"] == "m"
    assert seen["NO_PROXY"] == seen["no_proxy"] == LOOPBACK, "the model was reached past the proxy, which is not there"
    assert not SECRETS.keys() & seen.keys()


def test_install_names_what_is_left_out(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".agent-shepherd").mkdir(parents=True)
    text = SETTINGS.model_dump_json(exclude_defaults=True)
    (project / ".agent-shepherd" / "config.yaml").write_text(json.dumps({"version": 1, **json.loads(text)}))
    environ = {**os.environ, **KEPT, **SECRETS, "NOVEL_API_KEY": "n"}
    lines = [one for one in anyio.run(checks, project, environ) if one.check == "environment"]
    assert [line.level for line in lines] == ["warning", "ok"]
    assert "ANTHROPIC_BASE_URL" in lines[0].what
    assert "XDG_PEOPLE" in lines[0].what
    for name in ("GITHUB_TOKEN", "VERIFIER_TOKEN", "NOVEL_API_KEY"):
        assert name in lines[1].what
    assert "OPENAI_API_KEY" not in lines[1].what
    assert "runners.opencode.environment" in lines[1].remedy


def test_the_page_names_every_variable_of_providers() -> None:
    page = Path("docs/guides/service.md").read_text(encoding="utf-8").partition("## Variables of providers")[2]
    assert set(re.findall(r"`(\w+)`", page)) == PROVIDERS
    assert not {"GITHUB_TOKEN", "GITLAB_TOKEN", "GITEA_TOKEN"} & PROVIDERS


@pytest.mark.parametrize(("environ", "added"), [
    ({}, {}),
    ({"no_proxy": "x"}, {}),
    ({"HTTP_PROXY": ""}, {}),
    ({"HTTP_PROXY": "http://p"}, {"no_proxy": LOOPBACK, "NO_PROXY": LOOPBACK}),
    ({"all_proxy": "socks5://p", "NO_PROXY": "a.example, 127.0.0.1"},
     {"no_proxy": "a.example,127.0.0.1,localhost,::1", "NO_PROXY": "a.example,127.0.0.1,localhost,::1"}),
    ({"https_proxy": "http://p", "no_proxy": "*"}, {}),
    ({"https_proxy": "http://p", "no_proxy": LOOPBACK, "NO_PROXY": "b"}, {"NO_PROXY": f"b,{LOOPBACK}"}),
])  # fmt: skip
def test_loopback_is_reached_past_every_proxy_and_install_says_so(
    environ: dict[str, str], added: dict[str, str]
) -> None:
    assert past_proxies(environ) == added
    assert filter_environment(environ, (), ()) == environ | added
    assert [line.what.rpartition("agents get ")[2] for line in doctor_git.proxy(environ)] == [
        f"{name}={value}" for name, value in added.items() if name == max(added)
    ]


def test_every_setting_that_names_a_secret_is_known() -> None:
    """A new one belongs to `secret_variables`, or agents inherit the variable."""
    schema = (ROOT / "schemas" / "config.schema.json").read_text()
    assert set(re.findall(r'"(\w*(?:_env|_variable|secret\w*|password\w*|token))": \{', schema)) == SECRET_SETTINGS
    settings = Settings.model_validate_json(
        json.dumps({
            "landing": {"mode": "pull_request", "forge": FORGE},
            "notify": {"targets": [{"apprise_env": "A_TARGET"}]},
            "runners": {"opencode": {"password_env": "A_PASSWORD"}},
        })
    )  # fmt: skip
    assert secret_variables(settings) == {"A_TARGET", "A_PASSWORD", "ANTHROPIC_BASE_URL"}
