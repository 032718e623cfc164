"""Secrets in lines that were added. What looks like one here is made at run time: this file holds none."""

import random
import string
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ashep.core.impact import secrets
from ashep.core.impact.secrets import Leak, entropy, find_secrets

ROOT = Path(__file__).resolve().parent.parent.parent
LETTERS = string.ascii_letters + string.digits


def made_up(length: int, alphabet: str = LETTERS, seed: int = 7) -> str:
    return "".join(random.Random(seed).choices(alphabet, k=length))


def kinds(line: str, path: str = "a.py") -> list[str]:
    return [leak.kind for leak in find_secrets(path, ((1, line),))]


UPPER = string.ascii_uppercase + "234567"
URL_SAFE = LETTERS + "_-"
TOKENS = {
    "AWS access key": ["AKIA" + made_up(16, UPPER), "ASIA" + made_up(16, UPPER)],
    "Google API key": ["AIza" + made_up(35, URL_SAFE)],
    "Google client secret": ["GOCSPX-" + made_up(28, URL_SAFE)],
    "GitHub token": [
        *(f"gh{kind}_" + made_up(36) for kind in "pousr"),
        "github_pat_" + made_up(22) + "_" + made_up(59),
    ],
    "GitLab token": ["glpat-" + made_up(20, URL_SAFE), "glrt-" + made_up(20, URL_SAFE), "glptt-" + made_up(40)],
    "Slack token": [
        f"xoxb-{made_up(12, string.digits)}-{made_up(12, string.digits)}-{made_up(24)}",
        f"xoxp-{made_up(11, string.digits)}-{made_up(11, string.digits)}-{made_up(12, string.digits)}-{made_up(32)}",
        f"xapp-1-A{made_up(10, UPPER)}-{made_up(13, string.digits)}-{made_up(64, '0123456789abcdef')}",
    ],
    "Slack webhook": ["https://hooks." + f"slack.com/services/T{made_up(8)}/B{made_up(10)}/{made_up(24)}"],
    "npm token": ["npm_" + made_up(36)],
    "PyPI token": ["pypi-" + "AgEIcHlwaS5vcmc" + made_up(150, URL_SAFE)],
    "Stripe key": ["sk_live_" + made_up(24), "rk_test_" + made_up(99)],
    "SendGrid key": ["SG." + made_up(22, URL_SAFE) + "." + made_up(43, URL_SAFE)],
    "model provider's key": ["sk-ant-" + "api03-" + made_up(90, URL_SAFE), "sk-proj-" + made_up(48)],
    "age key": ["AGE-SECRET-KEY-1" + made_up(58, UPPER)],
    "password in a URL": ["postgres://app:" + made_up(14) + "@db.internal:5432/app"],
}


@pytest.mark.parametrize(("kind", "token"), [(kind, token) for kind, many in TOKENS.items() for token in many])
@pytest.mark.parametrize("around", ["{}", 'x = "{}"', "curl -H 'Authorization: {}' .", "key: {}", "<a>{}</a>", "[{}]"])
def test_a_token_is_known_by_its_form(kind: str, token: str, around: str) -> None:
    assert kind in kinds(around.format(token))


def test_a_token_is_named_once_a_line_by_its_own_kind() -> None:
    token = TOKENS["GitHub token"][0]
    assert kinds(f'github_token = "{token}"; other = "{token}"') == ["GitHub token"]
    assert kinds(f"TOKEN={token}", ".env") == ["GitHub token"]


@pytest.mark.parametrize("token", [many[0] for many in TOKENS.values()])
def test_what_is_written_in_the_place_of_a_token_is_none(token: str) -> None:
    head, rest = token[:12], len(token) - 12
    for filling in ("x", "0", "*", "A", "abcdefghijklmnopqrstuvwxyz", "0123456789", "EXAMPLE"):
        assert kinds(head + (filling * rest)[:rest]) == []


@pytest.mark.parametrize(
    "line",
    ["aws_secret_access_key = {}", 'AWS_SECRET_ACCESS_KEY: "{}"', "export AWS_SECRET_KEY={}", "aws_session_token={}"],
)
def test_a_secret_key_of_aws(line: str) -> None:
    assert "AWS secret key" in kinds(line.format(made_up(40, LETTERS + "/+")))
    assert kinds(line.format(made_up(64, LETTERS + "/+")), "a.sh") in ([], ["secret value"])


def key_head(kind: str = "RSA ") -> str:
    return "-----BEGIN " + kind + "PRIVATE KEY-----"


@pytest.mark.parametrize("lines", [
    [key_head(), made_up(64)],
    [key_head(""), made_up(64)],
    [key_head("OPENSSH "), made_up(64)],
    [key_head("ENCRYPTED "), made_up(64)],
    ["KEY = '''" + key_head("EC "), made_up(64)],
    [key_head(), "Proc-Type: 4,ENCRYPTED"],
    ['  "private_key": "' + key_head("") + "\\n" + made_up(64) + '\\n"'],
    ["  key: |", "    " + key_head(""), "    " + made_up(64)],
    ['"' + key_head("") + '\\n" +', '  "' + made_up(64) + '\\n" +'],
])  # fmt: skip
def test_a_private_key(lines: list[str]) -> None:
    numbered = tuple(enumerate(lines, 5))
    (found,) = find_secrets("a.txt", numbered)
    assert found.kind == "private key"
    assert "PRIVATE KEY" in dict(numbered)[found.line]


@pytest.mark.parametrize("lines", [
    [key_head()],
    [key_head(), "..."],
    [f'if text.startswith("{key_head()}"):', "    raise ValueError(text)"],
    [key_head().replace("PRIVATE", "PUBLIC"), made_up(64)],
    [key_head("").replace("BEGIN", "END"), made_up(64)],
])  # fmt: skip
def test_a_mention_of_a_private_key_is_none(lines: list[str]) -> None:
    assert find_secrets("a.py", tuple(enumerate(lines, 1))) == ()


@pytest.mark.parametrize("line", [
    'password = "{}"', "'client_secret': '{}',", 'const apiKey = "{}";', 'api_key := "{}"', '"access_token" => "{}"',
    'DB_PASSWORD="{}"', "config['secret_key'] = `{}`",
])  # fmt: skip
def test_a_random_value_that_is_called_a_secret(line: str) -> None:
    assert kinds(line.format(made_up(24))) == ["secret value"]
    assert kinds(line.format(made_up(32, "0123456789abcdef"))) == ["secret value"]


@pytest.mark.parametrize(
    ("path", "found"), [(".env", 1), ("app/.env.local", 1), ("a.yml", 1), (".npmrc", 1), ("a.py", 0)]
)
def test_a_value_without_quotes_counts_in_files_of_settings(path: str, found: int) -> None:
    assert len(kinds("DB_PASSWORD=" + made_up(24), path)) == found
    assert len(kinds("db_password: " + made_up(24) + "  # the real one", path)) == found


@pytest.mark.parametrize("line", [
    'password = "short1"',
    'password = "correct horse battery staple 12"',
    'token = "needs:human_approval-or-input-2024"',
    'token_url = "https://host.invalid/oauth2/token/v2/a1b2c3"',
    'secret = "${SECRET_FROM_THE_VAULT_2}"',
    'password = "{{ vault.password_1234 }}"',
    'api_key = "your-api-key-goes-here-123"',
    'api_key = "0123456789abcdef0123456789abcdef"',
    'secret_name = "projects/my-project-12/secrets/db"',
    'token = "aaaaaaaaaaaaaaaaaaaaaa11"',
    'token_id = "123e4567-e89b-12d3-a456-426614174000"',
    'token_digest = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"',
    "key = 'AAAAB3NzaC1yc2EAAAADAQABAAABAQ'",
    "password = os.environ['PASSWORD_FOR_2024_X']",
    'tokenizer = "bert-base-uncased-v2-12layers"',
    'PASSWORD_RESET_TIMEOUT = "PT12H30M15S-and-2-more-Days"',
])  # fmt: skip
def test_what_only_sounds_like_a_secret(line: str) -> None:
    assert kinds(line) == []
    assert kinds(line, "a.yaml") == []


def test_lines_keep_their_numbers() -> None:
    token = TOKENS["npm token"][0]
    lines = ((3, "a"), (9, f"b {token}"), (10, ""), (40, token))
    assert find_secrets("a", lines) == (Leak(9, "npm token"), Leak(40, "npm token"))
    assert find_secrets("a", ()) == ()


def test_entropy() -> None:
    assert entropy("") == entropy("aaaa") == 0
    assert entropy("ab" * 8) == 1
    assert entropy("0123456789abcdef") == 4


@pytest.mark.slow
def test_this_repository_holds_none() -> None:
    """What nobody would call a secret: some five million characters of our own."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, timeout=240)
    paths = [name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()]
    texts = {name: (ROOT / name).read_bytes() for name in paths}
    found = {
        name: secrets
        for name, data in texts.items()
        if b"\0" not in data
        and (secrets := find_secrets(name, tuple(enumerate(data.decode(errors="replace").split("\n"), 1))))
    }
    assert len(texts) > 400
    assert found == {}


RULES = (*secrets._TOKENS, secrets._QUOTED, secrets._BARE)  # pyright: ignore[reportPrivateUsage] - each of them is tried
PIECES = [
    "a", " ", "\n", "=", ":", '"', "\\n", "-", "/", "@", "password", "token", "secret_key", "api_key", "AKIA", "AIza",
    "ghp_", "glpat-", "xoxb-", "1234567890-", "npm_", "://", "://u:", "sk-ant-", "-----BEGIN ", "PRIVATE KEY-----",
    "aws_", "RSA ", "Z9", "SG.", "'", "]", "=>", "AgE", "pypi-", "\t",
]  # fmt: skip


def seconds(text: str) -> float:
    lines = tuple(enumerate(text.split("\n"), 1))
    began = time.process_time()
    find_secrets("a.env", lines)
    return time.process_time() - began


@pytest.mark.promise("L12")
@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=6))
def test_no_text_is_slow(pieces: list[str]) -> None:
    """Repeat whatever a pattern may begin with: quadratic time would need many seconds for these characters."""
    piece = "".join(pieces)
    assert seconds(piece * (30_000 // len(piece))) < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("filling", ["a", "0-", " ", "=", "token"])
def test_no_pattern_is_slow_behind_its_own_beginning(filling: str) -> None:
    for word in {word for rule in RULES for word in rule.words}:
        for head in (word, word.upper()):
            assert seconds(head + filling * (20_000 // len(filling))) < 0.5
