"""What the branch of an issue is called."""

import subprocess

from hypothesis import given
from hypothesis import strategies as st

from ashep.core.state.branches import branch_in, branch_of, folder_of, issue_of

ODD = ("t-1", "t-1.2", "a..b", "a...b", ".a", "a.", "a.lock", "x.lock.lock", "-a", "@", "a@{b", "a/b", "a b",
       "~^:?*[\\", "ä€", "%41", "A", "", "a" * 300, "a" * 299 + "b", "." * 7, "a.b" * 60, "\x7f\x01")  # fmt: skip


def test_git_takes_the_branch_of_any_issue() -> None:
    for issue in ODD:
        branch = branch_of(issue)
        done = subprocess.run(["git", "check-ref-format", "--branch", branch], capture_output=True)
        assert done.returncode == 0, (issue, branch)
        assert len(branch) < 200
    assert [branch_of(issue) for issue in ODD[:2]] == ["ashep/t-1", "ashep/t-1.2"]
    assert len({branch_of(issue) for issue in ODD}) == len(ODD)


@given(st.text(max_size=60) | st.text("a.@%/~lock", max_size=60))
def test_the_issue_can_be_told_from_its_branch(issue: str) -> None:
    branch = branch_of(issue)
    word = branch.removeprefix("ashep/")
    assert issue_of(branch) == (issue if issue and "@" not in word else None)
    assert ".." not in word
    assert not word.startswith(".")
    assert not word.endswith((".", ".lock"))
    assert not any(character in " ~^:?*[\\/" or character < " " for character in word)


@given(st.text(max_size=40) | st.text("a%=/25D3F+", max_size=40), st.booleans())
def test_the_branch_can_be_told_from_its_folder_which_has_no_percent_sign(branch: str, flat: bool) -> None:
    folder = folder_of(branch, flat=flat)
    assert branch_in(folder) == branch
    assert not {"%", *("/" if flat else "")} & {*folder}
    assert folder == branch or {"%", "=", "/"} & {*branch}
    assert branch_in(issue := branch_of(branch)) == issue, "a folder of before is called as its branch"


def test_other_branches_are_of_no_issue() -> None:
    for branch in ("main", "ashep/a b", "ashep/a/b", "ashep/", "ashep/a@b", "ashep/%61"):
        assert issue_of(branch) is None
