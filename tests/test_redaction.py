"""What must not be written down is not: it is taken out where it comes in."""

import json
import sys
from pathlib import Path

import httpx
import pytest

from ashep.adapters.beads import BeadsTracker
from ashep.adapters.opencode.client import Address, Client
from ashep.app import secrets_of
from ashep.core.policy.settings import Settings
from ashep.errors import TrackerUnavailable
from ashep.redaction import MARK, SHORTEST, Redaction

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
    client._http = httpx.AsyncClient(transport=httpx.MockTransport(lambda _: answer), base_url="http://server")
    assert (await client.call("GET", "/x")).json() == {"text": MARK}
    await client.aclose()
