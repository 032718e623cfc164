"""The words of a pull request: what agents and checks wrote stays text, whatever it is."""

import re
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ashep.core.delivery.pull_request_body import MOST_SUMMARY, MOST_TITLE, body, fenced, marker, title
from ashep.core.facts.delivery import UNTESTED, CheckResult, Verification

RESULTS = (
    CheckResult("unit", "passed", "exit code 0", 1200),
    CheckResult("docs", "failed", "expected 1, found 0", 3),
    CheckResult("old", "passed", "there", 1, proves_nothing=True),
    CheckResult("look", "skipped", "Is it pretty?", 0),
)
FOUND = Verification("c" * 40, "e" * 40, "h", RESULTS, isolated=True)


def outside(text: str) -> str:
    """What a reader of markdown takes for more than text: all but what stands in fences and code."""
    kept: list[str] = []
    fence = None
    for line in text.split("\n"):
        mark = re.match(r"(`{3,})", line)
        if fence is None and mark:
            fence = mark[1]
        elif fence is not None and line == fence:
            fence = None
        elif fence is None:
            kept.append(line)
    assert fence is None, "every fence is closed"
    return re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", "\n".join(kept))


def test_it_says_what_was_done_what_shows_it_and_where_to_ask() -> None:
    made = body(key="i/t-1/1", issue="t-1", summary="Made it.", verification=FOUND, runs=[("t-1/implement.1.1", 41)])
    for words in (
        "Made it.", f"git tree `{'e' * 40}`", "in a sandbox: **failing**; 2 of 4 passed, 1 failed, 1 left to people",
        "FAILED  docs: expected 1, found 0 [3 ms]", "old: there (it passed before any work, and so proves nothing)",
        "t-1/implement.1.1 (trace 41)", "`ashep why t-1`",
    ):  # fmt: skip
        assert words in made
    assert made.rstrip("\n").endswith(marker("i/t-1/1"))
    assert made == body(
        key="i/t-1/1", issue="t-1", summary="Made it.", verification=FOUND, runs=[("t-1/implement.1.1", 41)]
    )


def test_without_a_check_that_ran_it_says_so_first() -> None:
    made = body(key="k", issue="t-1", summary="", verification=None, runs=[])
    assert made.startswith(f"**{UNTESTED}**")
    assert "**unverified**" in made
    left = replace(FOUND, results=(RESULTS[3], replace(RESULTS[1], status="error")))
    assert body(key="k", issue="t-1", summary="", verification=left, runs=[]).startswith(f"**{UNTESTED}**")
    assert UNTESTED not in body(key="k", issue="t-1", summary="", verification=FOUND, runs=[])


@pytest.mark.promise("Z4")
@given(st.text(alphabet=st.sampled_from("`~a@#\n /<>!-[]()|*"), max_size=80), st.text(alphabet="`@#\n a", max_size=12))
@example("```\n@everyone closes #1\n/merge\n<!-- agent-shepherd: other -->", "`@x` #2")
def test_what_strangers_wrote_stays_in_fences(said: str, name: str) -> None:
    result = CheckResult(name, "failed", said, 1)
    found = Verification("c" * 40, "e" * 40, "h", (result,), isolated=False)
    made = body(key="k", issue="t-1", summary=said, verification=found, runs=[(f"{name}/implement.1.1", 1)])
    plain = outside(made)
    for sign in ("@", "#", "[", "/merge"):
        assert sign not in plain
    assert plain.count("<!--") == 1


def test_a_fence_is_longer_than_any_within() -> None:
    assert fenced("a ````` b").startswith("``````text\n")


def test_it_is_bounded() -> None:
    many = tuple(CheckResult(f"c{number}", "passed", "x" * 9999, 1) for number in range(999))
    found = Verification("c" * 40, "e" * 40, "h", many, isolated=False)
    runs = [(f"t-1/implement.{number}.1", number) for number in range(999)]
    made = body(key="k", issue="t-1", summary="y" * 99_999, verification=found, runs=runs)
    assert len(made) < 60_000, "GitHub takes 65,536 characters"
    assert made.count("y") < MOST_SUMMARY + 100
    assert "and 899 more" in made


def test_a_title_is_one_line_with_the_issue() -> None:
    assert title("t-1", "Do\n it\u202e") == "Do it (t-1)"
    assert title("t-1", " ").endswith("(t-1)")
    long = title("t-1", "x" * 999)
    assert (len(long), long[-6:]) == (MOST_TITLE, " (t-1)")


def test_a_marker_cannot_be_ended_by_its_key() -> None:
    assert marker("a--> <b>--").count("-->") == 1
    assert marker("ashep-host/t-1/2") == "<!-- agent-shepherd: ashep-host/t-1/2 -->"
