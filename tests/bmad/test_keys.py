"""Files that are merged by key: changes of different keys are all there, and nothing else changes."""

import re
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ashep.bmad.yaml_merge import LARGEST, NotMerged, merge

KEYS = {
    ("generated",): "2026-01-01", ("project",): '"A: b"', ("notes",): "[one, two]",
    ("status", "epic-1"): "in-progress", ("status", "1-1-a"): "'done'", ("status", "1-2-b"): "backlog",
    ("status", "epic-2"): "backlog", ("status", "2-1-c"): "{status: backlog, owner: me}",
    ("nested", "s1", "status"): "done", ("nested", "s1", "owner"): "somebody else", ("nested", "s2", "status"): "",
    ("action_items",): "\n- epic: 1\n  action: look\n- epic: 2", ("text",): "|\n  one\n\n  two",
}  # fmt: skip
KEPT = {("generated",), ("status", "epic-1"), ("nested", "s1", "status"), ("nested", "s2", "status")}
"""The first of each mapping: nothing takes it away."""
ABOVE = {("status", "epic-2"): "\n  # Epic 2\n", ("nested", "s2", "status"): "", ("text",): "\n# at the end\n"}
BEHIND = {("status", "1-2-b"): "  # waits for 1-1", ("generated",): " # by hand"}


@dataclass(frozen=True)
class Change:
    """What a branch does to keys."""

    said: dict[tuple[str, ...], str] = field(default_factory=dict[tuple[str, ...], str])
    gone: frozenset[tuple[str, ...]] = frozenset()
    more: dict[tuple[str, ...], str] = field(default_factory=dict[tuple[str, ...], str])
    """Keys added behind others, by these."""


def written(*changes: Change, crlf: bool = False, last: bool = True, apart: int = 2) -> bytes:
    """A file with these changes made, line by line and without YAML."""
    text, open_ = "# the sprint\n# status: any\n\n", tuple[str, ...]()
    for path, said in KEYS.items():
        for deep, name in enumerate(path[:-1]):
            if open_[: deep + 1] != path[: deep + 1]:
                text += f"{' ' * apart * deep}{name}:\n"
        open_, margin = path[:-1], " " * apart * (len(path) - 1)
        text += ABOVE.get(path, "")
        said = next((one.said[path] for one in changes if path in one.said), said)
        if not any(path in one.gone for one in changes):
            space = "" if said == "" or said.startswith("\n") else " "
            text += f"{margin}{path[-1]}:{space}{said}{BEHIND.get(path, '')}\n"
        text += "".join(f"{margin}{one.more[path]}" for one in changes if path in one.more)
    text = text if last else text.removesuffix("\n")
    return text.replace("\n", "\r\n" if crlf else "\n").encode()


@st.composite
def two(draw: st.DrawFn) -> tuple[Change, Change]:
    """Two branches, of which no key is changed by both."""
    made = Change(), Change()
    for at, path in enumerate(KEYS):
        mine = made[draw(st.integers(0, 1))]
        what = draw(st.sampled_from(["", "", "say", "go", "more", "say more"]))
        if "say" in what and "\n" not in KEYS[path]:
            mine.said[path] = draw(st.sampled_from(["done", '"x: # y"', "[a, b]", "{a: b}", "two words", "2"]))
        if what == "go" and path not in KEPT:
            object.__setattr__(mine, "gone", mine.gone | {path})
        if "more" in what:
            mine.more[path] = draw(st.sampled_from([f"new-{at}: backlog # new\n", f"new-{at}: [a]\n"]))
    return made


@settings(max_examples=40)
@given(two(), st.booleans(), st.booleans(), st.sampled_from([1, 2, 4]))
def test_different_keys_are_no_conflict_whichever_comes_first(
    changes: tuple[Change, Change], crlf: bool, last: bool, apart: int
) -> None:
    how = {"crlf": crlf, "last": last, "apart": apart}
    one, other = changes
    old, first, second = written(**how), written(one, **how), written(other, **how)
    both = written(one, other, **how)
    assert merge(old, first, second) == both
    assert merge(old, second, first) == both
    assert merge(old, both, first) == both, "what is there already is not there twice"
    assert merge(old, old, first) == first


D_E = "  d: 1\n  e: 2"
SMALL = f"# head\na: backlog\nb: x\nc:\n{D_E}\n"


def changed(old: str, new: str, text: str = SMALL) -> str:
    assert old in text
    return text.replace(old, new)


@pytest.mark.parametrize(
    ("base", "branch", "merged"),
    [
        (changed("backlog", "review"), changed("backlog", "done"), changed("backlog", "done")),
        (changed("backlog", "'done'"), changed("backlog", "in-progress"), changed("backlog", "'done'")),
        (changed("backlog", "Done"), changed("backlog", "done"), changed("backlog", "Done")),
        (changed("# head", "# one"), changed("b: x", "b: y"), changed("# head", "# one", changed("b: x", "b: y"))),
        (changed("b: x", "b: x # why"), changed("b: x", "b: y"), changed("b: x", "b: y # why")),
        (changed(D_E, "  e: 2\n  d: 1"), changed("d: 1", "d: 3"), changed(D_E, "  e: 2\n  d: 3")),
        (SMALL + "f:\n  g: 1\n", SMALL + "f:\n  h: 2\n", SMALL + "f:\n  h: 2\n  g: 1\n"),
        (SMALL + "z: 1\n", SMALL + "z: 1\ny: 2\n", SMALL[:-1] + "\ny: 2\nz: 1\n"),
        (changed("b: x\n", ""), SMALL.replace("b: x\n", "b: x\nz: 1\n"), changed("b: x\n", "z: 1\n")),
        (SMALL.replace("\n", "\r\n"), SMALL + "z:\n- 1\n- 2\n", (SMALL + "z:\n- 1\n- 2\n").replace("\n", "\r\n")),
    ],
)  # fmt: skip
def test_what_comes_of_two_changes(base: str, branch: str, merged: str) -> None:
    assert merge(SMALL.encode(), base.encode(), branch.encode()).decode() == merged


@pytest.mark.parametrize(
    ("base", "branch", "why"),
    [
        (changed("b: x", "b: y"), changed("b: x", "b: z"), "b was changed on both sides"),
        (changed("b: x", "b: Review of y"), changed("b: x", "b: Done by z"), "b was changed on both sides"),
        (changed("a: backlog", "a: blocked"), changed("a: backlog", "a: done"), "a was changed on both sides"),
        (changed("b: x\n", ""), changed("b: x", "b: z"), "b was changed on both sides"),
        (changed("b: x", "b: x # why"), changed("b: x\n", ""), "b was changed on one side, and removed"),
        (changed("b: x", "b: z"), changed("b: x\n", ""), "b was changed on"),
        (changed("d: 1", "d: 3"), changed("c:\n  d: 1\n  e: 2", "c: {d: 2}"), "c.d was changed on both sides"),
        (changed("c:\n  d: 1\n  e: 2", "c: {d: 2}"), changed("d: 1", "d: 3"), "c"),
        (SMALL + "z: 1\n", SMALL + "z: 2\n", "z was changed on both sides"),
        (changed("b: x", "b: y"), changed("# head", "# tail"), "more than values"),
        (changed("b: x", "b: y"), changed("a: backlog\nb: x", "b: x\na: backlog"), "more than values"),
        (changed("b: x", "b: y"), SMALL.replace("\n", "\r\n"), "more than values"),
        (changed("b: x", "b: y"), SMALL.rstrip("\n"), "more than values"),
        (changed(D_E, "   d: 1\n   e: 2"), changed("  e: 2\n", "  e: 2\n  f: 3\n"), "line 7: "),
        (changed("b: x", "b: &q x"), changed("d: 1", "d: 3"), "anchors"),
        (changed("b: x", "a: x"), changed("d: 1", "d: 3"), "line 3: a key stands there twice"),
        (changed("b: x", "b: x: y"), changed("d: 1", "d: 3"), "line 3: "),
        ("{a: 1}\n", changed("d: 1", "d: 3"), "no keys"),
        ("- a\n", changed("d: 1", "d: 3"), "no keys"),
        ("", changed("d: 1", "d: 3"), "no keys"),
        (SMALL + "z: 1\0\n", changed("d: 1", "d: 3"), "no text"),
        (SMALL + "#" * LARGEST, changed("d: 1", "d: 3"), "bytes"),
        (SMALL, changed("d: 1", "d: " + "[" * 3000 + "]" * 3000), "too deeply"),
    ],
)  # fmt: skip
def test_what_stays_a_conflict(base: str, branch: str, why: str) -> None:
    with pytest.raises(NotMerged, match=re.escape(why)):
        merge(SMALL.encode(), base.encode(), branch.encode())
