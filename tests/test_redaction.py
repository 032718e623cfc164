"""What must not be written down is not: it is taken out where it comes in."""

import base64
import json
import sys
from pathlib import Path
from urllib.parse import quote, quote_plus

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ashep.adapters.beads import BeadsTracker
from ashep.adapters.runners.opencode.client import Address, Client
from ashep.app import secrets_of
from ashep.core.policy.landing import ForgeSettings, LandingSettings
from ashep.core.policy.settings import (
    Notify,
    NotifyTarget,
    Settings,
    VerificationSettings,
)
from ashep.errors import TrackerUnavailable
from ashep.redaction import MARK, SHORTEST, Redaction, guessed

SECRET = 'p"ss\\w<rd>&ü\n!'
"""Whatever has another form inside of JSON."""


@pytest.mark.promise("F5")
@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_secret_is_found_plain_and_inside_of_json(ascii_only: bool) -> None:
    redaction = Redaction((SECRET,))
    text = json.dumps({"text": f"it is {SECRET}, again {SECRET}."}, ensure_ascii=ascii_only)
    assert json.loads(redaction.text(text)) == {"text": f"it is {MARK}, again {MARK}."}
    assert json.loads(redaction.data(text.encode())) == {"text": f"it is {MARK}, again {MARK}."}
    assert redaction.text(f"a {SECRET} b") == f"a {MARK} b"


def test_go_writes_angle_brackets_in_its_own_way() -> None:
    printed = '{"text":"' + "token\\u003c1\\u003e\\u0026x" + '"}'
    assert json.loads(Redaction(("token<1>&x",)).text(printed)) == {"text": MARK}


def test_the_longer_of_two_secrets_is_taken_out_whole() -> None:
    assert Redaction(("password", "password-of-all")).text("the password-of-all!") == f"the {MARK}!"


def test_what_is_short_is_no_secret() -> None:
    redaction = Redaction(("x" * (SHORTEST - 1),))
    redaction.add(None)
    data = b"x" * 40
    assert redaction.data(data) is data


@pytest.mark.promise("F5")
@given(st.binary(max_size=7), st.text(min_size=SHORTEST, max_size=40), st.binary(max_size=7), st.integers(0, 20))
def test_a_secret_is_found_in_the_encodings_that_programs_print(
    before: bytes, secret: str, behind: bytes, many: int
) -> None:
    others = tuple(f"another secret, number {number} of those" for number in range(many))
    redaction, raw = Redaction((*others, secret)), secret.encode()
    within = before + raw + behind
    for printed in (
        base64.b64encode(within).decode(),
        base64.urlsafe_b64encode(within).decode(),
        within.hex(),
        within.hex().upper(),
        quote(secret),
        quote(secret, safe=""),
        quote_plus(secret),
        quote(secret, safe="").lower(),
    ):
        if printed != quote(secret, safe="").lower() or secret == secret.lower():
            text = redaction.text(f"so: {printed}.")
            assert MARK in text
            assert redaction.data(f"so: {printed}.".encode()) == text.encode()
    assert redaction.text(f"= {base64.b64encode(raw).decode()}") == f"= {MARK}"


def test_a_text_that_is_like_a_secret_stays() -> None:
    secrets = tuple(f"secret-{number:04}-of-this-machine" for number in range(40))
    redaction = Redaction((*secrets, *(f"s{number:07}" for number in range(20))))
    text = "secret-0041-of-this-machine s000001 " + base64.b64encode(b"secret-0041-of-this-machine").decode()
    assert redaction.text(text * 50) == text * 50
    assert all(redaction.text(f"{'x' * place}{one}") == "x" * place + MARK for place, one in enumerate(secrets))


@pytest.mark.promise("F5")
def test_variables_that_are_named_as_secrets_are_hold_some(tmp_path: Path) -> None:
    key = "-----BEGIN KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEF\n" * 2 + "-----END KEY-----"
    (tmp_path / "server.key").touch()
    environ = {
        "OPENAI_API_KEY": "sk-proj-0001", "npm_token": "npm_000002", "PGPASSWORD": "hunter2-3", "MYSQL_PWD": "pw-00004",
        "AWS_ACCESS_KEY_ID": "AKIA0005", "TOKEN_2": "tok-0006", "AWS_SECRET_ACCESS_KEY": "/abc+def0007/",
        "GOOGLE_CREDENTIALS": '{"key": 8}', "DEPLOY_KEY": key, "REDIS_URL": "redis://me:pass-0010@host/1",
    }  # fmt: skip
    found = [*guessed(environ)]
    assert set(environ.values()) - set(found) == {environ["REDIS_URL"]}
    assert {"pass-0010", "MIIEvQIBADANBgkqhkiG9w0BAQEF"} <= set(found)
    lines = '{\n  "type": "service_account",\n  "version": 1\n}'  # which another file may hold, too
    assert [*guessed({"GOOGLE_CREDENTIALS": lines})] == [lines]
    none = {
        "SSL_KEY": str(tmp_path / "server.key"), "TLS_KEY": str(tmp_path / "not-yet.key"), "A_SECRET": str(tmp_path),
        "SORT_KEY": "priority", "DB_PASSWORD": "postgres", "STATE_KEY": "in_progress", "CACHE_KEY": "20260101-0000",
        "USE_TOKEN": "true", "TOKENIZERS_PARALLELISM": "false-0001", "PATH": "/usr/bin:/bin", "MAX_TOKENS": "tok-0001",
        "HOME_URL": "https://example.org/a@b", "ODD_URL": "http://[a@b",
    }  # fmt: skip
    assert [*filter(None, guessed(none))] == []


@pytest.mark.promise("F5")
def test_what_the_configuration_takes_a_secret_from_is_known_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    urls = "slack://t0ken-a/b0t-tok3n/#night  json://ann:hunter2-hunter2@host/services/"
    for name, value in (
        ("WHERE", urls), ("FORGE", "tok-123456789"), ("CHECKED", "q8Zk2pLw91xTv5"), ("IMAGE", "python:3.11-slim"),
    ):  # fmt: skip
        monkeypatch.setenv(name, value)
    settings = Settings(
        notify=Notify(targets=(NotifyTarget(apprise_env="WHERE"),)),
        landing=LandingSettings(
            mode="pull_request", forge=ForgeSettings(type="github", repository="a/b", token_env="FORGE")
        ),
        verification=VerificationSettings(environment=("CHECKED", "IMAGE")),
    )
    redaction = secrets_of(settings, print)
    for secret in (*urls.split(), "b0t-tok3n", "hunter2-hunter2", "tok-123456789", "q8Zk2pLw91xTv5"):
        assert redaction.text(f"so {secret}.") == f"so {MARK}."
    plain = "services in python:3.11-slim"
    assert redaction.text(plain) == plain


@pytest.mark.promise("F5")
def test_the_environment_names_the_secrets_and_a_person_hears_of_those_that_are_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FORGE_TOKEN", "tok-123456789")
    monkeypatch.setenv("SHORT", "abc")
    monkeypatch.delenv("MISSING", raising=False)
    monkeypatch.setenv("OPENCODE_SERVER_PASSWORD", "server-password")
    said: list[str] = []
    redaction = secrets_of(Settings(redact=("FORGE_TOKEN", "SHORT", "MISSING")), said.append)
    assert redaction.text("tok-123456789 server-password abc") == f"{MARK} {MARK} abc"
    assert [line.split(": ")[2] for line in said] == [
        "SHORT is too short to be found in a text", "MISSING is not set",
    ]  # fmt: skip


def fake_bd(folder: Path, body: str) -> tuple[str, ...]:
    """A program that prints what a bd would."""
    program = folder / "bd.py"
    program.write_text(f"import sys\n{body}\n")
    return (sys.executable, str(program))


@pytest.mark.promise("F5")
async def test_what_bd_prints_has_lost_its_secrets(tmp_path: Path) -> None:
    row = {"id": "t-1", "title": f"uses {SECRET}", "status": "open", "issue_type": "task", "priority": 2}
    rows = json.dumps([row | {"created_at": "2026-01-01T00:00:00Z"}], ensure_ascii=False)
    command = fake_bd(tmp_path, f"sys.stdout.buffer.write({rows.encode()!r})")
    tracker = BeadsTracker(tmp_path, command, "ashep-x", 30, Redaction((SECRET,)))
    seen = await tracker.issue("t-1")
    assert seen is not None
    assert seen.issue.title == f"uses {MARK}"


async def test_what_bd_complains_of_has_lost_its_secrets(tmp_path: Path) -> None:
    command = fake_bd(tmp_path, "sys.exit('cannot reach https://user:tok-123456789@host')")
    tracker = BeadsTracker(tmp_path, command, "ashep-x", 30, Redaction(("tok-123456789",)))
    with pytest.raises(TrackerUnavailable, match=r"user:\[redacted\]@host"):
        await tracker.check()


@pytest.mark.promise("F5")
async def test_what_the_agent_server_answers_has_lost_its_secrets() -> None:
    client = Client(Address(url="http://server", password=None, instance="x"), "/tmp", redaction=Redaction((SECRET,)))
    answer = httpx.Response(200, json={"text": SECRET})
    client.http = httpx.AsyncClient(transport=httpx.MockTransport(lambda _: answer), base_url="http://server")
    assert (await client.call("GET", "/x")).json() == {"text": MARK}
    await client.aclose()
