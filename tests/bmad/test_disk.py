"""Stories on a disk, as `ashep story` shows them: whatever lies there, and nothing is written but by `write`."""

import json
import os
import time
from itertools import pairwise
from pathlib import Path

import pytest

from ashep.actions.story_catalog import look, write
from ashep.bmad.text import LARGEST, NotWritable
from ashep.cli import main
from ashep.errors import UsageError

OK = "# Story {id}: T\n\nStatus: {said}\n\n## Acceptance Criteria\n\n1. a\n\n## Tasks\n\n- [x] a\n"
STORIES = "docs/stories"


def put(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return root


def story(id_: str, said: str = "done") -> str:
    return OK.format(id=id_, said=said)


def bomb(base: str) -> str:
    names = "abcdefghij"
    more = "".join(f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n" for old, new in pairwise(names))
    return f"a: &a [x]\n{more}{base}: *j\n"


HOSTILE: dict[str, tuple[str | bytes, str]] = {
    "1-1-large.md": (story("1.1") + "x" * LARGEST, f"it has more than {LARGEST} bytes, and is not read"),
    "1-2-nul.md": (story("1.2").encode() + b"\0", "this is no text"),
    "1-3-latin.md": (story("1.3").encode() + b"\xff", "this is not UTF-8"),
    "1-4-sixteen.md": (story("1.4").encode("utf-16"), "this is not UTF-8"),
    "1-5-merge.md": (
        "# Story 1.5: T\n\n<<<<<<< a\nStatus: review\n=======\nStatus: done\n>>>>>>> b\n\n## Tasks\n\n- [x] a\n",
        "a merge was left half done: its markers stand here",
    ),
    "1-6-open.md": ("---\nstatus: done\n\n" + story("1.6"), "its front matter has no end"),
    "1-7-broken.md": ("---\nstatus: [\n---\n" + story("1.7"), "its front matter is no YAML: expected the node content"),
    "1-8-deep.md": (
        f"---\n{'- ' * 3000}\n---\n{story('1.8')}",
        "its front matter is no YAML: it is nested too deeply",
    ),
    "1-9-nothing.md": ("# Story 1.9: T\n\n## Tasks\n\n- [x] a\n", "it says no status"),
    "1-10-odd.md": (story("1.10", "\x1b[2Jgone\u202e"), "gone is no status that is known"),
}
"""Files, each with what is told of it."""

HARMLESS: dict[str, str | bytes] = {
    "2-1-quotes.md": story("2.1") + ">" * 100_000,
    "2-2-lists.md": story("2.2") + "- " * 50_000,
    "2-3-links.md": story("2.3") + "[" * 200_000,
    "2-4-boxes.md": story("2.4") + "- [x] b\n" * 3_000,
    "2-5-stairs.md": story("2.5") + "".join(f"{' ' * deep}- x\n" for deep in range(400)),
    "2-6-bomb.md": f"---\n{bomb('warnings')}---\n{story('2.6')}",
    "2-7-ends.md": ("\ufeff" + story("2.7").replace("\n", "\r\n", 3).replace("## Tasks\n", "## Tasks\r")).encode(),
    "2-8-tabs.md": story("2.8").replace("- [x] a", "-\t[x]\ta").replace("Status: ", "Status:\t"),
    "2-9-contents.md": story("2.9").replace("## Tasks\n", "## Tasks\n\n- [ ] [Tasks](#tasks)\n"),
    "2-10-old.md": story("2.10").replace("\n", "\r").encode(),
}


def test_each_hostile_file_gets_one_clear_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(tmp_path / STORIES, {name: text for name, (text, _) in HOSTILE.items()} | HARMLESS)
    folder = tmp_path / STORIES
    (folder / "3-1-folder.md").mkdir()
    (folder / "3-2-loop.md").symlink_to("3-2-loop.md")
    (folder / "3-3-nowhere.md").symlink_to("nowhere")
    (folder / "around").symlink_to(folder)
    os.mkfifo(folder / "3-4-pipe.md")
    put(tmp_path, {f"{STORIES}/sprint-status.yaml": bomb("x") + "development_status:\n  1-1-large: done\n"})
    told = {name: said for name, (_, said) in HOSTILE.items()} | {
        "3-2-loop.md": "it cannot be read: Too many levels of symbolic links",
        "3-3-nowhere.md": "it cannot be read: No such file or directory", "3-4-pipe.md": "it is no file",
    }  # fmt: skip
    assert main(["-C", str(tmp_path), "story", "check"]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    for name, said in told.items():
        assert len([line for line in lines if f"/{name}:" in line and said in line]) == 1, out
    assert len(lines) == len(told) + 1, out
    assert "\x1b" not in out
    assert not err


@pytest.mark.parametrize("name", [*HOSTILE, *HARMLESS])
def test_no_file_takes_a_second(tmp_path: Path, name: str) -> None:
    put(tmp_path, {name: HARMLESS[name] if name in HARMLESS else HOSTILE[name][0]})
    before = time.process_time()
    look(tmp_path, [tmp_path / name])
    assert time.process_time() - before < 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_told(tmp_path: Path) -> None:
    (put(tmp_path, {"1-1-a.md": story("1.1")}) / "1-1-a.md").chmod(0)
    assert "Permission denied" in look(tmp_path, [tmp_path]).found[0].problems[0].said


def test_check_tells_what_contradicts_what(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status = "development_status:\n  1-1-a: review\n  1-3-c: done\n  1-4-d: backlog\n"
    put(
        tmp_path,
        {"docs/sprint-status.yaml": status, f"{STORIES}/1-1-a.md": story("1.1"), f"{STORIES}/note.md": "# N\n"},
    )
    assert main(["-C", str(tmp_path), "story", "check"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "error docs/sprint-status.yaml:3: 1-3-c is done, and has no file",
        "error docs/stories/1-1-a.md:3: it says done, and the sprint status review (line 2)",
        "1 story of 2 files read",
    ]
    assert main(["-C", str(tmp_path), "story", "check", STORIES, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert [(one["path"], one["kind"]) for one in found] == [
        (f"{STORIES}/1-1-a.md", "story"),
        (f"{STORIES}/note.md", "other"),
    ]
    assert {key: found[0][key] for key in ("id", "status", "said", "state", "tasks", "sprint")} == {
        "id": "1-1", "status": "done", "said": {"text": "done", "line": 3}, "state": "complete",
        "tasks": {"done": 1, "all": 1}, "sprint": {"key": "1-1-a", "status": "review", "line": 2},
    }  # fmt: skip


def test_two_files_of_one_story_are_told(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "1-1-a.md": story("1.1"),
        "old/1-1-a.md": story("1.1", "review"),
        "1-1-b.md": story("1.1"),
    }
    seen = look(put(tmp_path, files), [tmp_path])
    told = {one.path: [(problem.said, problem.disagrees) for problem in one.problems] for one in seen.found}
    assert told["1-1-a.md"] == [("1-1-b.md is 1-1, too", False), ("old/1-1-a.md is 1-1, too", True)]
    assert told["1-1-b.md"] == [("1-1-a.md is 1-1, too", False), ("old/1-1-a.md is 1-1, too", False)]
    with pytest.raises(UsageError, match=r"1\.1 is one of 1-1-a\.md, 1-1-b\.md, old/1-1-a\.md: say which, by its path"):
        seen.find_story("1.1")
    assert seen.find_story("old/1-1-a.md").path == "old/1-1-a.md"
    with pytest.raises(UsageError, match="there is no story 9-9"):
        seen.find_story("9-9")


def test_planned_stories_without_a_file_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    specs = "_bmad-output/specs/x"
    planned = '- id: "1"\n  title: One\n- id: "2"\n  title: Two\n- id: "12"\n  title: Twelve\n'
    files: dict[str, str | bytes] = {
        f"{specs}/stories.yaml": planned, f"{specs}/stories/1-one.md": "---\ntitle: One\nstatus: blocked\n---\n",
        f"{specs}/stories/12-a.md": "---\ntitle: A\nstatus: draft\n---\n", f"{STORIES}/1-1-a.md": story("1.1"),
        f"{specs}/stories/12-b.md": "---\ntitle: B\nstatus: draft\n---\n",
        "docs/epics.md": "## Epic 1: E\n### Story 1.1: A\n### Story 1.2: B\n",
    }  # fmt: skip
    put(tmp_path, files)
    assert main(["-C", str(tmp_path), "story", "list"]) == 0
    rows = [(line.split()[0], line.split()[2]) for line in capsys.readouterr().out.splitlines()[1:]]
    assert rows == [
        ("1-1", "complete"),
        ("1", "unknown"),
        ("12", "unknown"),
        ("12", "unknown"),
        ("2", "planned"),
        ("1-2", "planned"),
    ]
    assert [said.said for _, said in look(tmp_path).problems if said.disagrees] == [
        f"12 has 2 files: {specs}/stories/12-a.md, {specs}/stories/12-b.md"
    ]
    assert main(["-C", str(tmp_path), "story", "show", "1"]) == 0
    assert "blocked (line 3)" in capsys.readouterr().out


def test_a_project_without_stories_says_where_they_would_be(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-C", str(tmp_path), "story", "list"]) == 2
    assert "has no folder of stories: _bmad-output/implementation-artifacts, docs/stories" in capsys.readouterr().err
    put(tmp_path, {"docs/sprint-status.yaml": "story_location: '{project-root}/work'\n", "work/1-1-a.md": story("1.1")})
    assert [one.path for one in look(tmp_path).found] == ["work/1-1-a.md"]
    put(tmp_path, {"_bmad/config.toml": '[modules.bmm]\nimplementation_artifacts = "gone"\n'})
    with pytest.raises(UsageError, match=r"no folder of stories; _bmad/config\.toml says gone"):
        look(tmp_path)


def test_a_file_is_written_whole_and_only_as_it_was_read(tmp_path: Path) -> None:
    file, link = tmp_path / "1-1-a.md", tmp_path / "link.md"
    file.write_bytes(b"old")
    file.chmod(0o640)
    link.symlink_to(file.name)
    write(link, b"old", b"new")
    assert (file.read_bytes(), file.stat().st_mode & 0o777, link.is_symlink()) == (b"new", 0o640, True)
    with pytest.raises(NotWritable, match="was changed meanwhile"):
        write(file, b"old", b"newer")
    assert file.read_bytes() == b"new"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["1-1-a.md", "link.md"], "nothing is left beside it"
    with pytest.raises(NotWritable, match="it cannot be read"):
        write(tmp_path / "gone.md", b"", b"x")


@pytest.mark.slow
def test_five_hundred_stories_are_checked_in_two_seconds(tmp_path: Path) -> None:
    notes = "".join(
        f"### Note {number}\n\n{'Words of it that go on. ' * 20}\n\n- a point\n- another\n\n" for number in range(20)
    )
    text = (
        story("{id}").replace("- [x] a\n", "- [x] a task of it\n  - [x] and a part\n" * 15)
        + f"\n## Dev Notes\n\n{notes}"
    )
    ids = [f"{epic}-{number}" for epic in range(1, 26) for number in range(1, 21)]
    put(tmp_path, {f"{id_}-a.md": text.replace("{id}", id_.replace("-", ".")) for id_ in ids})
    put(tmp_path, {"sprint-status.yaml": "development_status:\n" + "".join(f"  {id_}-a: done\n" for id_ in ids)})
    assert 9_000 < len(text) < 11_000
    before = time.process_time()
    seen = look(tmp_path, [tmp_path])
    took = time.process_time() - before
    assert len(seen.found) == 500
    assert not seen.disagrees
    assert took < 6, f"{took:.1f} s; two on a machine that does nothing else, and others work on this one"


def test_a_link_that_an_agent_laid_beside_a_story_is_not_written_through(tmp_path: Path) -> None:
    story, elsewhere = tmp_path / "1-1-a.md", tmp_path / "elsewhere"
    story.write_bytes(b"Status: review\n")
    elsewhere.write_bytes(b"mine\n")
    (tmp_path / "1-1-a.md.tmp").symlink_to(elsewhere)
    with pytest.raises(NotWritable, match="cannot be written"):
        write(story, b"Status: review\n", b"Status: done\n")
    assert (story.read_bytes(), elsewhere.read_bytes()) == (b"Status: review\n", b"mine\n")
