"""Globs over paths of a repository."""

import time
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ashep.core.policy.globs import Globs, parse_glob


@pytest.mark.parametrize(("glob", "fits", "not_this"), [
    ("a", ["a", "A"], ["a/b", "b/a", "aa", ""]),
    ("*.py", ["a.py", ".py"], ["d/a.py", "a.pyc", "a.py/b"]),
    ("a/*", ["a/b"], ["a", "a/b/c"]),
    ("a?c", ["abc"], ["ac", "a/c", "abbc"]),
    ("**", ["a", "a/b"], []),
    ("a/**", ["a/b", "a/b/c"], ["a", "ab/c", "b/a/c"]),
    ("**/a", ["a", "b/a", "c/b/a"], ["ba", "a/b"]),
    ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["ab", "a/xb", "a/b/c"]),
    ("**/a/**/*.x", ["a/.x", "a/a/q.x", "z/a/b/c.x"], ["a.x", "b/c.x"]),
    ("**/**/a", ["a", "b/a"], ["ba"]),
    ("a*b*c", ["abc", "axbxbc", "abcc"], ["ab", "abcd", "a/bc"]),
    ("**/x*/y", ["x/y", "b/x1/x2/y"], ["y", "x/z/y"]),
    ("a**b", ["ab", "axb"], ["a/b"]),
    ("a.b", ["a.b"], ["axb"]),
    ("**/a/b/**/c", ["a/b/c", "a/a/b/x/c"], ["a/x/b/c"]),
    ("**/a/**/b/**", ["a/b/a/x", "a/b/b/a"], ["a/b", "b/a/x"]),
    ("a/**/b*c", ["a/bc", "a/b/bc"], ["a/b/c"]),
    ("*", ["a\nb"], ["a/b"]),
])  # fmt: skip
def test_what_a_glob_fits(glob: str, fits: list[str], not_this: list[str]) -> None:
    globs = Globs([glob])
    assert [path for path in fits if not globs.has(path)] == []
    assert [path for path in not_this if globs.has(path)] == []


def test_several_globs_and_none() -> None:
    assert Globs(["a", "**/b"]).has("x/b")
    assert not Globs([]).has("")
    assert not Globs([]).has("a")


def test_exact_ones_tell_capitals_from_small_letters() -> None:
    assert Globs(["*Test.java"]).has("Latest.java")
    assert not Globs(["*Test.java"], exact=True).has("Latest.java")


@pytest.mark.parametrize("value", ["/a", "~/a", "../a", "a/../b", "a//b", "a/", "", "a\\b", "!a", "a\0b"])
def test_what_is_no_glob(value: str) -> None:
    with pytest.raises(ValueError, match="expected a glob"):
        parse_glob(value)


def by_the_book(glob: str, path: str) -> bool:
    """Say slowly what a glob means."""

    @cache
    def names(globs: tuple[str, ...], parts: tuple[str, ...]) -> bool:
        if not globs:
            return not parts
        if globs[0] == "**":
            if len(globs) == 1:
                return bool(parts)
            return any(names(globs[1:], parts[skipped:]) for skipped in range(len(parts) + 1))
        return bool(parts) and name(globs[0], parts[0]) and names(globs[1:], parts[1:])

    @cache
    def name(glob: str, text: str) -> bool:
        if not glob:
            return not text
        if glob[0] == "*":
            return any(name(glob[1:], text[skipped:]) for skipped in range(len(text) + 1))
        return bool(text) and glob[0] in ("?", text[0]) and name(glob[1:], text[1:])

    return names(tuple(glob.split("/")), tuple(path.split("/")))


GLOB = st.lists(st.sampled_from(["**", "*", "a", "b", "a*", "*b", "a*b", "?", "*a*b*", "a?*"]), min_size=1, max_size=5)
PATH = st.lists(st.text("ab", min_size=1, max_size=5), min_size=1, max_size=6)


@given(GLOB.map("/".join), PATH.map("/".join))
def test_it_means_what_the_book_says(glob: str, path: str) -> None:
    if "**/**" not in glob or not glob.endswith("**"):  # `**/**` is `**`; the book counts names
        assert Globs([glob]).has(path) == by_the_book(glob, path)


@pytest.mark.promise("L12")
@pytest.mark.parametrize("glob", ["*a*a*a*a*a*a*a*a*a*b", "**/a/**/a/**/a/**/a/**/a/b", "**/*a*a*/**/*a*a*/**/*a*b"])
def test_no_glob_makes_a_path_slow(glob: str) -> None:
    globs = Globs([glob])
    began = time.process_time()
    assert not globs.has("a" * 4000)
    assert not globs.has("/".join("a" * 2000))
    assert time.process_time() - began < 0.5
