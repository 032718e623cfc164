"""The demonstration does what it shows: in memory within seconds, and on the real tools."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from ashep.adapters.system import programs
from ashep.bmad.review_round import write_round
from ashep.bmad.story import read
from ashep.cli.running.work import demo as command
from ashep.config.checks.parser import read_criteria
from ashep.errors import ProgramMissing, UsageError
from ashep.extras.demo.project import DemoProject, run_of, script
from ashep.extras.demo.run import demo
from ashep.extras.demo.scenario import FILES, ISSUES, RUNS, IssueScript, RunScript, part
from ashep.extras.demo.scripted_model import ModelRequest, Reply
from ashep.extras.demo.story_scenario import LACKS, LIED, MEAN, MEDIAN, README, SPRINT, SPRINT_FILE, STORIES
from ashep.extras.demo.story_scenario import RUNS as RUNS_OF_STORIES
from ashep.extras.simulation.virtual_time import VIRTUAL, LoopClock, wait_for_threads
from tests.docs_pages import Command, differs, steps
from tests.places import living_in, sweep


@pytest.mark.slow
def test_the_simulation_closes_everything_and_proves_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    said = list[str]()
    assert demo(simulation="tracker", say=said.append) == 0
    text = "\n".join(said)
    assert "FAILED" not in text
    assert "closed in the tracker: 3 of 3" in text
    assert f"prompts that the agents saw: {RUNS}, for {RUNS} runs" in text
    assert re.search(r"ok +decisions derived again: \d{3}, 0 differences\n +ok +audit: 3 issues, 0 findings", text)
    goes = [text.index(f"{issue.id}/implement.1.1 goes to builder") for issue in ISSUES]
    assert max(goes) < text.index("succeeded"), "nobody waits for another"
    assert "calc-3: implement says success, but these checks do not pass: command; attempt 1 of 3" in text
    assert "calc-2 implement: its work and main contradict each other in calc.py, test_calc.py" in text
    assert re.search(r"now: closed: landed on main as [0-9a-f]{12}", text)
    assert not list(tmp_path.iterdir()), "nothing is left"


@pytest.mark.slow
def test_the_simulation_with_issues_of_github_proves_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    said = list[str]()
    assert demo(simulation="github", say=said.append) == 0
    text = "\n".join(said)
    assert "GitHub #12, olga: /ashep approve" in text
    assert "what was said at its source counts - olga said approve" in text, "`ashep why 13` tells it"


@pytest.mark.slow
def test_it_can_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    said = list[str]()
    assert demo(simulation="tracker", keep=True, say=said.append) == 0
    (folder,) = tmp_path.iterdir()
    assert said[-1] == f"everything is in {folder}"
    assert (folder / ".agent-shepherd" / "state" / "journal").is_dir()


@pytest.mark.real
@pytest.mark.full
def test_the_real_tools_do_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Killed in its midst, and begun once more, it does so at each run: chaos/killed/test_demo_killed.py."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    try:
        assert demo() == 0, capsys.readouterr().out
    except BaseException:
        sweep(tmp_path)
        raise
    as_shown(capsys.readouterr().out)
    assert not list(tmp_path.iterdir())
    assert not living_in(tmp_path), "a process was left behind"


@pytest.mark.real
@pytest.mark.full  # tests/e2e/test_mixed.py sees the same, and this takes a minute
@pytest.mark.timeout(400)
def test_two_kinds_of_agents_in_one_life_which_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    try:
        assert demo(agents="mixed") == 0, capsys.readouterr().out
    except BaseException:
        sweep(tmp_path)
        raise
    mixed_as_shown(capsys.readouterr().out)
    assert not list(tmp_path.iterdir())
    assert not living_in(tmp_path), "a process was left behind"


@pytest.mark.full  # 77 s on two idle cores; `make test` sees `story run` in tests/bmad/test_running.py
@pytest.mark.real
@pytest.mark.timeout(1000)
def test_stories_are_worked_on_by_the_real_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Killed in its midst five times it does the same: chaos/killed/test_stories_killed.py."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    try:
        assert demo(piece=STORIES) == 0, capsys.readouterr().out
    except BaseException:
        sweep(tmp_path)
        raise
    stories_as_shown(capsys.readouterr().out)
    assert not list(tmp_path.iterdir())
    assert not living_in(tmp_path), "a process was left behind"


def shown_by(page: str, line: str, text: str, since: str = "") -> None:
    """It prints what a page shows below a command, from these words on."""
    there = (Path(__file__).parent.parent / page).read_text()
    blocks = (step.shown for step in steps(there) if isinstance(step, Command) and step.line == line)
    (shown,) = (block for block in blocks if block)
    assert not (wrong := differs(shown[shown.index(since) :], text[text.index(since) :])), wrong
    assert "FAILED" not in text


def stories_as_shown(text: str, since: str = "") -> None:
    """It prints what the guide shows, and proves what there is to prove."""
    shown_by("docs/guides/stories.md", "ashep demo --stories", text, since)
    assert f"prompts that the model saw: {RUNS_OF_STORIES}, for {RUNS_OF_STORIES} runs" in text


def mixed_as_shown(text: str) -> None:
    """It proves what two kinds of agents did, and what a kill in their midst did not."""
    assert "FAILED" not in text
    (run,) = re.findall(r"\$ kill -9 \d+   \(`ashep work`, in the midst of (\S+) on Claude Code\)", text)
    assert f"ok     killed with -9 in the midst of {run}, of which the model was told once" in text
    assert f"prompts that the model saw: {RUNS}, for {RUNS} runs" in text
    assert "ok     Claude Code was asked for 6 runs, all that implement; OpenCode for 10" in text
    assert "ok     turns of Claude Code that were let begin: 6, for 6 prompts" in text
    assert re.search(r"ok +ashep replay: \d+ decisions derived again: all as recorded", text)
    assert "ok     ashep audit: 3 issues: nothing is left over" in text


def as_shown(text: str, since: str = "") -> None:
    """It prints what README.md shows, and proves what there is to prove."""
    shown_by("README.md", "make demo", text, since)
    assert "closed in bd: 3 of 3" in text
    assert f"prompts that the model saw: {RUNS}, for {RUNS} runs" in text
    assert "ok     3 issues were worked on at once, in 3 places beside the user's own work tree" in text
    assert "ok     the check command had failed, as calc-3/implement.1.2 was told, which mended it" in text
    assert "ok     two issues were in conflict, as calc-2/implement.2.1 was told, which resolved it" in text
    assert "merged onto main, which is checked out and clean: ashep/calc-1, ashep/calc-2, ashep/calc-3" in text
    (tree,) = re.findall(r"ok     calc-2 landed as \w{12}; its 2 checks passed in that very tree, (\w{12})", text)
    assert re.search(rf"there passed; median passed - tree {tree}", text), "`ashep why` names the tree"
    assert re.search(r"ok +ashep replay: \d+ decisions derived again: all as recorded", text)
    assert "ok     ashep audit: 3 issues: nothing is left over" in text
    assert re.search(r"ok     an unsound edit of the policy was refused: \S+policies.yaml:\d+: policies.standard", text)
    assert "ok     a sound edit came into force, while runs went on" in text


@pytest.mark.real
def test_a_demonstration_that_is_stopped_leaves_nothing(tmp_path: Path) -> None:
    environ = os.environ | {"TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    argv = (sys.executable, "-m", "ashep", "demo")
    process = subprocess.Popen(argv, env=environ, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    try:
        with process.stdout as lines:
            assert any("goes to builder" in line for line in lines), "it works"
            process.send_signal(signal.SIGTERM)
            assert process.wait(100) == 128 + signal.SIGTERM
    except BaseException:
        process.kill()
        process.wait()
        sweep(tmp_path)
        raise
    assert not living_in(tmp_path), "a process was left behind"
    assert not list(tmp_path.iterdir())


def test_without_the_tools_it_says_what_is_missing_and_what_goes_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(ProgramMissing, match=r"git and bd and opencode cannot be found.*--simulated"):
        DemoProject.open_folder(tmp_path)


def test_without_claude_code_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(programs, "find", lambda name: None if name == "claude" else Path(name))
    assert DemoProject.open_folder(tmp_path).bd == Path("bd")
    with pytest.raises(ProgramMissing, match=r"or run `make claude` in \S+\. `ashep demo` goes without"):
        demo(agents="mixed", place=tmp_path / "demo", say=lambda _: None)
    assert not (tmp_path / "demo").exists(), "nothing was begun"


def test_stories_are_refused_where_they_make_no_sense() -> None:
    with pytest.raises(UsageError, match=r"--stories goes with the real tools.*files in git"):
        command(stories=True, simulated=True)
    with pytest.raises(UsageError, match=r"--stories goes with the real tools"):
        command(stories=True, ui=True)
    with pytest.raises(UsageError, match=r"--stories goes without --agents"):
        command(stories=True, agents="mixed")


def test_the_programs_see_nothing_of_the_users_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEADS_ACTOR", "somebody")
    monkeypatch.setenv("OPENCODE_SERVER_PASSWORD", "secret")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "secret")
    monkeypatch.setenv("CLAUDE_CODE_USE_BEDROCK", "1")
    monkeypatch.setattr(programs, "find", lambda name: Path(name))
    stage = DemoProject.open_folder(tmp_path, claude=True).asking("http://127.0.0.1:1")
    environ = stage.environ
    users = {"BEADS_ACTOR", "OPENCODE_SERVER_PASSWORD", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK"}
    assert not users & set(environ)
    assert environ["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:1"
    private = {name: value for name, value in environ.items() if name == "HOME" or name.startswith("XDG_")}
    cache = private.pop("XDG_CACHE_HOME")
    assert not cache.startswith(str(tmp_path))
    assert all(value.startswith(str(tmp_path)) for value in private.values())


MERGE = "1. Bring `main` into your branch: run `git merge main` in your work tree."


@pytest.mark.parametrize("order", [("calc-1", "calc-2"), ("calc-2", "calc-1")])
def test_every_edit_of_the_story_fits_whoever_lands_first(order: tuple[str, str]) -> None:
    first, second = order
    landed = edited(FILES, f"{first}/implement.1.1")
    assert edited(FILES, f"{second}/implement.1.1") != landed
    both = edited(landed, f"{second}/implement.2.1", MERGE)
    assert {name for name in both if both[name] != FILES[name]} == {"calc.py", "test_calc.py"}
    space: dict[str, Any] = {}
    exec(both["calc.py"], space)
    assert (space["mean"]([1, 2, 3]), space["median"]([9, 1, 2, 3])) == (2, 2.5)
    assert both["test_calc.py"].count("def test_") == 3


@pytest.mark.parametrize("order", [(MEAN, MEDIAN), (MEDIAN, MEAN)], ids=["mean", "median"])
def test_every_edit_of_the_stories_fits_whoever_lands_first(order: tuple[str, str]) -> None:
    files = rounds(dict(STORIES.files), order[0])
    last = rounds(dict(STORIES.files), order[1])
    both = played({**last, "calc.py": files["calc.py"], "test_calc.py": files["test_calc.py"]}, order[1], "developer.3")
    space: dict[str, Any] = {}
    exec(both["calc.py"], space)
    assert (space["mean"]([1, 2, 3]), space["median"]([9, 1, 2, 3])) == (2, 2.5)
    assert both["test_calc.py"].count("def test_") == 3


def test_of_a_story_that_is_said_to_be_done_the_second_round_is() -> None:
    lied = played(dict(STORIES.files), README, "developer.1")
    assert {path for path in lied if lied[path] != STORIES.files[path]} == {README, SPRINT_FILE}
    assert "python3 test_calc.py" in rounds(dict(STORIES.files), README)["README.md"]


def rounds(files: dict[str, str], path: str) -> dict[str, str]:
    """The files once a story is done, of which ashep writes the status, and what remains."""
    sprint, visit, status = SPRINT.encode(), 0, ""
    while status != "done":
        visit += 1
        for role in ("developer", "reviewer"):
            files = played(files, path, f"{role}.{visit}")
        said = part_of(path, f"arbiter.{visit}")
        status, remains = ("done", "") if said.verdict == "pass" else ("in-progress", said.summary)
        made = write_round(path, files[path].encode(), sprint, status, remains, f"t/arbiter.{visit}.1")
        assert (made.status, made.lacking, visit < 3) == (status, "", True)
        files[path] = (made.story or b"").decode()
        sprint = made.sprint or b""
    assert read(path, files[path].encode()).state == "complete"
    assert f"- [x] {({MEAN: LACKS, README: LIED}).get(path, '')}" in files[path]
    assert sprint.decode().count(": done") == sprint.decode().count("epic-1: in-progress") == 1
    return files


def part_of(path: str, run: str) -> RunScript:
    return STORIES.part(f"t/{run}.1", f"the file `{path}`, {MERGE if run == 'developer.3' else ''}")


def played(files: dict[str, str], path: str, run: str) -> dict[str, str]:
    """The files after a role's edits; reviewers' of other files are put back."""
    made = dict(files)
    for edit in part_of(path, run).edits:
        if "reviewer" in run and edit.path != path:
            continue
        there = made[edit.path].count(edit.old)
        assert there == 1 or (edit.every and there), (path, run, edit)
        made[edit.path] = made[edit.path].replace(edit.old, edit.new)
    return made


def test_the_third_issue_falls_short_of_its_check_at_first() -> None:
    files, held = FILES, list[bool]()
    (check,) = ISSUES[2].checks
    for run in ("calc-3/implement.1.1", "calc-3/implement.1.2", "calc-3/implement.2.1"):
        files = edited(files, run)
        held.append(all(words in files[check["verify"]["path"]] for words in check["verify"]["contains"]))
    assert held == [False, True, True]


@pytest.mark.parametrize("issue", ISSUES, ids=lambda issue: issue.id)
def test_the_checks_of_each_issue_can_be_read(issue: IssueScript) -> None:
    criteria = read_criteria(issue.acceptance(), issue.id)
    assert criteria is not None
    assert [check.id for check in criteria.checks] == [check["id"] for check in issue.checks]
    assert issue.acceptance("http_request") == ""


def edited(files: Mapping[str, str], run: str, prompt: str = "") -> dict[str, str]:
    """The files after a run's edits."""
    made, edits = dict(files), part(run, prompt).edits
    assert edits
    for edit in edits:
        assert made[edit.path].count(edit.old) == 1, (run, edit)
        made[edit.path] = made[edit.path].replace(edit.old, edit.new)
    return made


# --- the agent ----------------------------------------------------------------------------------------------------


def asks(run: str, prompt: str, *results: str) -> ModelRequest:
    text = f"Run: {run}\n{prompt}"
    return ModelRequest("step" if results else "turn", "s", "m", text, results, (), ("read", "edit", "bash"))


def commands(reply: Reply) -> list[object]:
    return [call.arguments.get("command", call.arguments.get("filePath")) for call in reply.calls]


def test_an_agent_that_is_told_of_a_conflict_merges_and_mends_what_is_in_conflict_alone() -> None:
    run = "calc-2/implement.2.1"
    (merge,) = commands(script(asks(run, MERGE)))
    assert str(merge).startswith("git merge -q main")
    said, results = list[object](), ["test_calc.py\n"]
    while reply := script(asks(run, MERGE, *results)):
        if not reply.calls:
            break
        said += commands(reply)
        results.append("done")
    assert said[:2] == ["test_calc.py", "test_calc.py"], "calc.py was merged by git"
    assert str(said[-1]).startswith("git add test_calc.py && git commit")
    assert f"Ashep-Run: {run}" in str(said[-1])


def test_an_agent_may_leave_its_work_for_ashep_to_commit() -> None:
    results, said = list[str](), list[object]()
    while (reply := script(asks("calc-3/implement.1.1", "", *results))).calls:
        said += commands(reply)
        results.append("done")
    assert said == ["README.md", "README.md", "python3 test_calc.py"]


def test_a_run_is_named_by_the_line_of_its_prompt() -> None:
    assert run_of("Run: calc-1/review.2.1\nPhase: review") == "calc-1/review.2.1"
    assert run_of("a text that mentions Run: calc-1/x") is None


def test_virtual_time_jumps_but_not_over_a_worker_thread() -> None:
    async def main() -> tuple[float, float]:
        wait_for_threads()
        clock, seen = LoopClock(), list[float]()

        async def timer() -> None:
            await anyio.sleep(3600)
            seen.append(clock.monotonic())

        async with anyio.create_task_group() as group:
            group.start_soon(timer)
            await anyio.to_thread.run_sync(lambda: __import__("time").sleep(0.05))
            seen.append(clock.monotonic())
        return seen[0], seen[1]

    after_thread, after_timer = anyio.run(main, backend_options=dict(VIRTUAL))
    assert after_thread < 1
    assert after_timer == pytest.approx(3600)
