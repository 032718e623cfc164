"""Secrets in lines that were added: tokens known by their form, private keys, and values that look like passwords.

Each rule is precise rather than broad: a person who is asked for nothing stops reading. What a rule found is named by
kind and place, never quoted. No pattern can be made slow by what it reads: every repetition is bounded or possessive,
and begins at a literal text or at a word of a short list.
"""

import math
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

Line = tuple[int, str]
"""A line's number in its file, from 1, and its text without the newline."""


@dataclass(frozen=True, slots=True)
class Leak:
    """A secret that somebody wrote down."""

    line: int
    kind: str


@dataclass(frozen=True, slots=True)
class _Rule:
    kind: str
    words: tuple[str, ...]
    """The pattern is tried only where one of these stands, in small letters: that costs next to nothing."""
    pattern: re.Pattern[str]
    """Its last group is the secret."""
    entropy: float = 3.0
    """Bits per character that the secret must have at least."""


def _rule(kind: str, words: str, pattern: str, entropy: float = 3.0, flags: int = 0) -> _Rule:
    return _Rule(kind, tuple(words.split()), re.compile(pattern, flags), entropy)


KNOWN = f"[a secret {'of this machine'}]"
"""What stands in a line in the place of a secret that is known: it is not shown, and must be found all the same."""

_TOKENS = (
    _rule("AWS access key", "akia asia abia acca", r"\b((?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16})\b"),
    _rule(
        "AWS secret key",
        "aws",
        r"aws_?(?:secret|session)?_?(?:access)?_?(?:key|token)[\"']?[ \t]{0,5}[=:][ \t]{0,5}[\"']?"
        r"([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        4.0,
        re.IGNORECASE,
    ),
    _rule("Google API key", "aiza", r"\b(AIza[\w-]{35})(?![\w-])"),
    _rule("Google client secret", "gocspx-", r"\b(GOCSPX-[\w-]{28})(?![\w-])"),
    _rule("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", r"\b(gh[pousr]_[A-Za-z0-9]{36})(?![A-Za-z0-9])"),
    _rule("GitHub token", "github_pat_", r"\b(github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59})\b"),
    _rule("GitLab token", "gl", r"\b(gl(?:pat|dt|ptt|rt|cbt|ft|imt|agent|oas|soat)-[\w-]{20,300}+)"),
    _rule("Slack token", "xox", r"\b(xox[abeoprs]-(?:[0-9]{1,14}-)?[0-9]{9,14}-[A-Za-z0-9-]{10,250}+)"),
    _rule("Slack token", "xapp-", r"\b(xapp-[0-9]-[A-Z0-9]{6,20}-[0-9]{6,20}-[a-z0-9]{20,100}+)"),
    _rule("Slack webhook", "hooks.slack.com", r"hooks\.slack\.com/(?:services|workflows|triggers)/([\w/+]{40,60}+)"),
    _rule("npm token", "npm_", r"\b(npm_[A-Za-z0-9]{36})(?![A-Za-z0-9])"),
    _rule("PyPI token", "pypi-age", r"\b(pypi-AgE[\w-]{60,400}+)"),
    _rule("Stripe key", "_live_ _test_", r"\b([rs]k_(?:live|test)_[A-Za-z0-9]{20,150}+)"),
    _rule("SendGrid key", "sg.", r"\b(SG\.[\w-]{22}\.[\w-]{43})(?![\w-])"),
    _rule("model provider's key", "sk-", r"\b(sk-(?:ant|proj|svcacct|admin|or)-[\w-]{40,300}+)"),
    _rule("age key", "age-secret-key-", r"\b(AGE-SECRET-KEY-1[A-Z0-9]{58})\b"),
    _rule("secret of this machine", "machine]", f"({re.escape(KNOWN)})", 0.0),
    _rule("password in a URL", "://", r"://[^\s/:@\"'`<>{}$%]{1,64}+:([^\s/:@\"'`<>{}$%]{8,128}+)@[\w\[]", 3.2),
)

_NAMED = (
    r"(?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|access[_-]?key|auth[_-]?key|private[_-]?key|credential)"
    r"[\w.-]{0,40}+[\"'\])]{0,2}+[ \t]{0,8}+(?::=|=>|=|:)[ \t]{0,8}+"
)
_WORDS = "passwd password passphrase secret token key credential"
_QUOTED = _rule("secret value", _WORDS, _NAMED + r"([\"'`])([^\s\"'`]{16,200}+)\1", 3.0, re.IGNORECASE)
_BARE = _rule("secret value", _WORDS, _NAMED + r"()([^\s\"'`#;,]{16,200}+)(?=[ \t;]*(?:#|$))", 3.0, re.I | re.M)
"""Without quotes only in files that hold nothing but settings: in a program an expression stands there."""

_SETTINGS_FILE = re.compile(
    r"(?:^|/)(?:\.env(?:\.[\w.-]+)?|\.npmrc|\.pypirc|\.netrc|credentials|[^/]*\.(?:env|ini|cfg|conf|properties|ya?ml|toml"
    r"|tfvars))$",
    re.IGNORECASE,
)

_PRIVATE_KEY = re.compile(r"-----BEGIN (?:[A-Z0-9]{2,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----(.{0,80})")
_KEY_BODY = re.compile(r"(?:\\[nr]|[\s\"'+>|,-])*+(?:[A-Za-z0-9+/=]{30}|(?:Proc-Type|DEK-Info|Version|Comment): )")
"""What follows a key's first line, there or on the next: the line alone is a mention of keys."""

_MADE_UP = re.compile(
    r"example|placeholder|change.?me|redacted|dummy|fake|sample|your.?|xxxx|\*\*\*|\.\.\.|"
    r"abcdef(?:gh|01|12)|01234567|12345678|deadbeef|[<>{}]|\$[({A-Za-z_]|%[(A-Za-z]|not.?a?.?(?:real|secret)",
    re.IGNORECASE,
)
"""What people write where a secret would stand."""


def find_secrets(path: str, lines: Sequence[Line]) -> tuple[Leak, ...]:
    """Find the secrets in lines of a file, each kind once a line, in the order of the lines."""
    if not lines:
        return ()
    text = "\n".join(line for _, line in lines)
    small = text.lower()
    starts = [0, *accumulate(len(line) + 1 for _, line in lines)]
    rules = (*_TOKENS, _QUOTED, *([_BARE] if _SETTINGS_FILE.search(path) else []))
    found = {(place, "private key") for place in _private_keys(text)}
    for rule in rules:
        if any(word in small for word in rule.words):
            for match in rule.pattern.finditer(text):
                value = match[match.re.groups]
                is_likely = not _MADE_UP.search(value) and entropy(value) >= rule.entropy
                if is_likely and (rule not in (_QUOTED, _BARE) or is_random(value)):
                    found.add((match.start(), rule.kind))
    places = {(bisect_right(starts, place) - 1, kind) for place, kind in found}
    known = {index for index, kind in places if kind != _QUOTED.kind}
    return tuple(
        Leak(lines[index][0], kind) for index, kind in sorted(places) if kind != _QUOTED.kind or index not in known
    )


def _private_keys(text: str) -> Iterator[int]:
    for match in _PRIVATE_KEY.finditer(text) if "PRIVATE KEY" in text else ():
        rest, end = match[1], text.find("\n", match.end())
        following = text[end + 1 : end + 200] if end >= 0 else ""
        if _KEY_BODY.match(rest) or (not rest.strip("\r\\n\"'`,+ \t") and _KEY_BODY.match(following)):
            yield match.start()


def is_random(value: str) -> bool:
    """Tell a random value from a name, a path, a sentence, a hash of something public or a call."""
    if entropy(value) < 3.5 and not _HEX.fullmatch(value):  # sixteen digits alone cannot have more than 4
        return False
    letters, digits = sum(map(str.isalpha, value)), sum(map(str.isdigit, value))
    marks = len(value) - letters - digits
    words = sum(1 for part in _PARTS.split(value) if _WORD.fullmatch(part))
    return digits >= 2 and letters >= 4 and marks * 4 <= len(value) and words < 2 and not _NO_VALUE.match(value)


_HEX = re.compile(r"[0-9a-fA-F]+")
_PARTS = re.compile(r"[^A-Za-z0-9]+")
_WORD = re.compile(r"[A-Za-z][a-z]{2,}|[A-Z]{3,}")
_NO_VALUE = re.compile(
    r"https?:|[./~@]|sha[0-9]{1,3}[:-]|[\w.]{1,200}+[(\[]|"
    r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$",
    re.IGNORECASE,
)
"""An address, a path, a digest, a call or an index, an id."""


def entropy(text: str) -> float:
    """Give Shannon's entropy of a text in bits per character."""
    return -sum(n / len(text) * math.log2(n / len(text)) for n in Counter(text).values()) if text else 0.0
