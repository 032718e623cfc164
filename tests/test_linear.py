"""Whatever reads text of agents, issues or comments takes time in proportion to its length: one long answer, or one
that somebody made for that, keeps nobody else waiting.

What is bounded is how the time of one processor grows when a text gets twice as long, never the time itself.
"""

import gc
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ashep.adapters.git.integration import with_trailers
from ashep.adapters.git.objects import _below as below  # pyright: ignore[reportPrivateUsage]
from ashep.adapters.git.objects import _commit as read_commit  # pyright: ignore[reportPrivateUsage]
from ashep.adapters.runners.opencode import provider_errors, turns
from ashep.adapters.system import json_fields
from ashep.adapters.verifier.program_run import render_output
from ashep.config.checks.lint import lint
from ashep.config.checks.parser import examine, fenced
from ashep.core.delivery import pull_request_body
from ashep.core.facts.outcome import last_block, read_outcome
from ashep.core.facts.requests import Asked
from ashep.core.facts.tracker import Comment, Issue, Stamp
from ashep.core.impact import changes, secrets, source_signals
from ashep.core.policy.globs import Globs
from ashep.core.policy.permissions import matches
from ashep.core.policy.policies import Match
from ashep.core.reconcile.eligibility import _parse_run_id as named  # pyright: ignore[reportPrivateUsage]
from ashep.core.reconcile.eligibility import is_titled
from ashep.core.runs.requests import _words as answer_of  # pyright: ignore[reportPrivateUsage]
from ashep.core.runs.requests import chosen
from ashep.core.state.world import World
from ashep.core.text import clean
from ashep.ports.landing import Candidate
from ashep.prompt.fences import Fences, Foreign, on_lines
from ashep.prompt.template_context import _line as one_line  # pyright: ignore[reportPrivateUsage]
from ashep.redaction import Redaction
from ashep.views.id_masking import KnownIds

MIB = 1024 * 1024
FLOOR = 0.05
"""Seconds of a processor: what takes less is not measured well, and nothing that grows with the square takes less."""
MOST = 3.0
"""How many times as long a text of twice the length may take: 2, and what a busy machine adds; a square has 4."""
NOW = datetime(2026, 1, 1, tzinfo=UTC)
WORLD = World(name="ashep")

Read = Callable[[str], object]


def a_comment(text: str) -> object:
    return answer_of(WORLD, Comment("1", "ada", text, NOW))


def a_question(text: str) -> object:
    return chosen(Asked("which?", tuple(text.split(",")[:5]), several=True), text)


def a_title(text: str) -> object:
    issue = Issue("a-1", text, "open", "task", 2, NOW)
    return is_titled(Match(types=("task",), title="*a*b?a*:*a* *x"), issue)


def a_fence(text: str) -> object:
    return on_lines(Fences("secret", "name").fence(Foreign(text, 8_000)).text)


def a_diff(text: str) -> object:
    lines = tuple(enumerate(text.split("\n", 50), 1))
    names = ("a/test_x.py", "x.js", ".env")
    files = tuple(changes.ChangedFile(name, "modified", None, 1, 1, lines, lines[:9] + lines[10:]) for name in names)
    return changes.impact_of(changes.Diff("a", "b", files))


def a_link(text: str) -> object:
    return changes.impact_of(
        changes.Diff("a", "b", (changes.ChangedFile(text, "created", None, 1, 0, ((1, text),), (), link=True),))
    )


LANGUAGES = sorted({*source_signals._ENDINGS.values(), "bats"})  # pyright: ignore[reportPrivateUsage]


def lines_of_programs(text: str) -> object:
    ways = (source_signals.named_test, source_signals.marks_test, source_signals.skips, source_signals.offered_in)
    return [way(language, text) for language in LANGUAGES for way in ways]


def pieces(text: str) -> list[str]:
    return [text[place : place + 256] for place in range(0, len(text), 256)]


def a_turn(text: str) -> object:
    parts = [{"type": kind, "text": one} for one in pieces(text) for kind in ("step-start", "text")]
    message = {
        "info": {"id": "m2", "role": "assistant", "parentID": "m1", "time": {}, "finish": "stop"},
        "parts": parts,
    }
    prompt = {"info": {"id": "m1", "role": "user", "time": {}}, "parts": [{"type": "text", "text": "do"}]}
    read = turns.MESSAGES.validate_python([prompt, message])
    return turns.read_turn(turns.order(read), "m1", frozenset(), turns.Status(busy=False), "i")


def a_session(text: str) -> object:
    """A session of many messages, some of them people's."""
    roles = ("user", "assistant")
    given = [
        {
            "info": {"id": f"m{n}", "role": roles[n % 2], "parentID": "m0", "time": {"created": n}, "finish": "stop"},
            "parts": [{"type": "text", "text": one}],
        }
        for n, one in enumerate(pieces(text))
    ]
    read = turns.MESSAGES.validate_python(given)
    return turns.read_turn(turns.order(read), "m0", frozenset(), turns.Status(busy=False), "i")


def in_a_block(language: str, text: str) -> object:
    return lint(f"```{language}\nchecks:\n{text}\n```\n", "here")


READERS: dict[str, Read] = {
    "outcome: last_block": last_block,
    "outcome: read_outcome": lambda text: read_outcome(last_block(f"```json\n{text}\n```"), ("pass",)),
    "text: clean": clean,
    "redaction": Redaction(("secret-secret", "aaaaaaaab")).text,
    "criteria: fenced": lambda text: list(fenced(text)),
    "criteria: examine": lambda text: examine(text, "here"),
    "criteria: lint": lambda text: lint(text, "here"),
    "criteria: in a block of yaml": partial(in_a_block, "yaml"),
    "criteria: in a block of json": partial(in_a_block, "json"),
    "asking: a comment": a_comment,
    "asking: a choice": a_question,
    "leaks": lambda text: secrets.find_secrets("a/.env", tuple(enumerate(text.split("\n"), 1))),
    "impact": a_diff,
    "impact: a link": a_link,
    "sources": lines_of_programs,
    "prompt: fence": a_fence,
    "prompt: one line": lambda text: one_line(text, 200),
    "pull request: fenced": pull_request_body.fenced,
    "pull request: title": lambda text: pull_request_body.title("a-1", text),
    "pull request: body": lambda text: pull_request_body.body(
        key="k", issue="a-1", summary=text, verification=None, runs=()
    ),
    "permissions: a rule": lambda text: matches("*git*push *--force*x", text),
    "permissions: a command": lambda text: matches("git *a* *b *", text),
    "globs": Globs(("**/a/**/*b*c", "a*b*c*/x")).has,
    "eligibility: a title": a_title,
    "orphans: a run's name": lambda text: named(Stamp("i", 1, run=text)),
    "views: names": lambda text: KnownIds(("ab-1", "ab-1.2", "x")).hide(text),
    "views: compound names": lambda text: KnownIds(("ab-1", "ab-1.2")).hide(text),
    "opencode: a turn": a_turn,
    "opencode: a session": a_session,
    "opencode: a refusal": lambda text: provider_errors.of_status(text, 1, None, None),
    "opencode: a date": provider_errors.server_time,
    "verifier: output": lambda text: render_output(text.encode(), b"", len(text.encode()), Redaction()),
    "landing: trailers": lambda text: with_trailers(text, Candidate("a-1", "b", "c" * 40, "main", text, "merge")),
    "landing: attributes": lambda text: list(below(b"a/b", text.encode())),
    "landing: a commit": lambda text: read_commit("c" * 40, f"tree {text}\ncommitter {text}\n\n{text}".encode()),
    "forges: a remark": lambda text: json_fields.remark({"body": text}, "body"),
}
"""What reads foreign text in the daemon, by where it is."""

WORST: Sequence[tuple[str, str, str]] = (
    ("", "```json\n", ""), ("", "~~~json\n```json\n", ""), ("```json\n", "`", ""), ("", "~", "`"), ("", " ", "x"),
    ("@ashep", " ", "."), ("@ashep x", " ", "."), ("@ashep ", "1", ""), ("@ashep ", "(ashep answer, ", ""),
    ("@ashep ", "(ashep answer, x) ", "y"), ("", ",", ""), ("a,", "a,", "x"), ("", "/", ".1"), ("a/", ".1", "x"),
    ("", "a", ""), ("", "a-", "_"), ("", "a.", "/"), ("", "a/../", ""), ("", "../", ""), ("", "git push --force ", ""),
    ("", "git ab ", ""), ("", "```yaml\nchecks:\n```\n", ""), ("", "```yaml\n- checks\n```\n", ""),
    ("", "\n", "```json\n{}\n```"), ("```yaml\n", "{checks", ""), ("```yaml\nchecks:\n", "[", ""),
    ("```yaml\nchecks:\n", "- {a: b}\n", "```"), ("```yaml\n", "checks: ", "\n```"), ("{", '"a":{', ""), ("", "[", ""),
    ("", '{"result": ', ""), ("", "\x1b[0", ""), ("", "\x1b]", ""), ("", "password=", ""), ("", "://a:", "@"),
    ("", "-----BEGIN PRIVATE KEY-----", ""), ("", "public ", "("), ("", "def test_", "("), ("", "it.a", "("),
    ("", "<", ">"), ("", "A: b\n", "\x00"), ("x\n\n", "a-", ": b"), ("", '"\\', ""), ("", "'", ""), ("", "\u202e", ""),
    ("", "\u200d", ""), ("", "\u2764\ufe0f\u200d", "x"), ("", "\U0001f3f4\U000e0067", ""),
    ("", "\x02\x03", ""), ("Mon, ", " GMT", "x"),
)  # fmt: skip
"""What stands before, what is repeated, and what stands behind: found by hand, and by the law below."""


def made(shape: tuple[str, str, str], length: int) -> str:
    before, unit, behind = shape
    return before + unit * (max(length - len(before) - len(behind), 0) // len(unit)) + behind


def cost(read: Read, text: str, tries: int = 1) -> float:
    """The processor's time in seconds, of the best of some tries."""
    best = float("inf")
    gc.disable()
    try:
        for _ in range(tries):
            begun = time.thread_time()
            read(text)
            best = min(best, time.thread_time() - begun)
    finally:
        gc.enable()
    return best


def grows_too_fast(read: Read, shape: tuple[str, str, str], lengths: Sequence[int], floor: float) -> str:
    """Say by how much, at the first length where it does; each is twice the one before."""
    before = cost(read, made(shape, lengths[0] // 2))
    for length in lengths:
        now = cost(read, made(shape, length))
        for _ in range(3):  # once more: somebody else may have had the processor's caches
            if now <= floor or now <= MOST * before:
                break
            before, now = cost(read, made(shape, length // 2), 5), cost(read, made(shape, length), 5)
        else:
            if now > floor and now > MOST * before:
                return f"{length} characters of {shape} take {now:.2f} s, {now / before:.1f} times as long as half"
        before = now
    return ""


@pytest.mark.promise("G6")
@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_a_mebibyte_takes_about_twice_as_long_as_half_of_it(name: str) -> None:
    read = READERS[name]
    worst = max(WORST, key=lambda shape: cost(read, made(shape, 8192)))
    # what grows faster than it should is found long before it is as long as that
    assert grows_too_fast(read, worst, [MIB >> shift for shift in range(3, -1, -1)], FLOOR) == ""


PIECES = st.sampled_from([
    *"`~ \n\t,:;.-_/()[]{}<>\"'@#*?=a0", "json", "yaml", "checks", "\x1b[", "\x02", "@ashep", "(ashep answer, ", "```",
    "~~~", "def ", "test", "public ", "export ", "://", "secret", "BEGIN ", "git ", "A: ", "\\",
])  # fmt: skip


@pytest.mark.slow
@given(st.data(), st.lists(PIECES, max_size=3), st.lists(PIECES, min_size=1, max_size=5), st.lists(PIECES, max_size=3))
def test_no_shape_of_text_makes_any_of_them_slow(
    data: st.DataObject, before: list[str], unit: list[str], behind: list[str]
) -> None:
    read = READERS[data.draw(st.sampled_from(sorted(READERS)))]
    shape = ("".join(before), "".join(unit), "".join(behind))
    assert grows_too_fast(read, shape, (4096, 8192, 16384), FLOOR / 5) == ""


def slow(text: str) -> object:
    return sum(text.find("x" * 20, place, place + 1) + len(text[place:]) for place in range(len(text)))


@pytest.mark.slow
def test_what_grows_with_the_square_is_found() -> None:
    assert grows_too_fast(slow, ("", "a", ""), [2048 << shift for shift in range(8)], FLOOR)
