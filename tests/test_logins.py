"""Copies of logins for sandboxes: without what renews them, which ashep does itself, with a scripted issuer."""

import json
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ashep.adapters.sandboxes.logins import OPENCODE, Logins, orders
from tests.claude.issuer import Issuer

pytestmark = pytest.mark.may_block

OURS = {"type": "oauth", "access": "access-0", "refresh": "refresh-0", "expires": 1000, "accountId": "mine"}
OTHERS = {
    "one": {"type": "api", "key": "k"},
    "github-copilot": {"type": "oauth", "access": "both", "refresh": "both", "expires": 0},
    "gitlab": {"type": "oauth", "access": "a", "refresh": "r", "expires": 1, "enterpriseUrl": "https://gitlab.example"},
}
PLAIN = {"organization": "of the user"}
KEPT = OTHERS | {"gitlab": OTHERS["gitlab"] | {"refresh": ""}}


@pytest.fixture
def issuer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Issuer]:
    if not shutil.which("openssl"):
        pytest.skip("openssl makes the issuer's certificate")
    with Issuer(tmp_path / "issuer") as made:
        threading.Thread(target=made.serve_forever, args=(0.05,), daemon=True).start()
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{made.server_port}")
        monkeypatch.setenv("NODE_EXTRA_CA_CERTS", str(made.ca))
        yield made
        made.shutdown()


@pytest.fixture
def logins(tmp_path: Path) -> Logins:
    made = Logins(tmp_path / "data" / "auth.json", lambda: tmp_path / "login", OPENCODE)
    made.file.parent.mkdir()
    made.file.write_text(json.dumps({"openai": OURS, **OTHERS} | PLAIN))
    return made


@pytest.mark.promise("I7")
async def test_what_is_about_to_end_is_renewed_and_the_rest_is_as_it_was(logins: Logins, issuer: Issuer) -> None:
    await logins.keep()
    await logins.keep()
    held, copied = json.loads(logins.file.read_text()), json.loads(logins.copy.read_text())
    ends = held["openai"]["expires"]
    assert ends / 1000 > time.time() + 20_000
    new = OURS | {"access": "access-1", "refresh": "refresh-1", "expires": ends}
    assert (held, issuer.asked) == ({"openai": new, **OTHERS, **PLAIN}, ["refresh-0"])
    assert copied == {"openai": new | {"refresh": ""}, **KEPT}
    assert logins.file.stat().st_mode & 0o777 == logins.copy.stat().st_mode & 0o777 == 0o600
    logins.file.unlink()
    await logins.keep()
    assert not logins.copy.exists()


async def test_an_issuer_that_refuses_or_is_not_there_changes_nothing(logins: Logins, issuer: Issuer) -> None:
    issuer.refuses = True
    await logins.keep()
    await logins.keep()
    assert issuer.asked == ["refresh-0"], "it is asked once"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
        await Logins(logins.file, lambda: logins.folder, OPENCODE).keep()
    assert json.loads(logins.file.read_text()) == {"openai": OURS, **OTHERS, **PLAIN}
    assert json.loads(logins.copy.read_text()) == {"openai": OURS | {"refresh": ""}, **KEPT}


def test_addresses_that_give_orders_are_known_from_the_first_look(tmp_path: Path) -> None:
    file, order = tmp_path / "auth.json", {"type": "wellknown", "key": "K", "token": "t"}
    file.write_text(json.dumps({"https://mine": order}))
    assert orders(file) == []
    file.write_text(json.dumps({"https://mine": order, "https://evil": order, "one": OTHERS["one"]}))
    assert orders(file) == orders(file) == ["https://evil"]
