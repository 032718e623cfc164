"""`ashep policy simulate`: every move does what the real thing would, a seed is a story, the command tells it."""

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ashep.cli import main
from ashep.config import read
from ashep.core.analysis.replay import Replay
from ashep.core.facts.records import Entry
from ashep.core.facts.vocabulary import Fact
from ashep.core.policy.base_types import format_duration
from ashep.core.policy.policies import Human, Limits, Phase, Policies, Policy, Retry, Stall
from ashep.core.policy.settings import Settings
from ashep.core.reconcile import decide
from ashep.core.runs import turns
from ashep.core.state.world import World
from ashep.errors import ConfigError, UsageError
from ashep.extras.simulation.actor_moves import IN_TIME, Point, moves
from ashep.extras.simulation.probabilities import ANSWER, DIAGNOSED, FIRST, MOST, TROUBLE, Chances, Dice
from ashep.extras.simulation.script import read_script, write_script
from ashep.extras.simulation.simulator import (
    PERSON_TAKES,
    RUN_TAKES,
    Cast,
    Distribution,
    SimulatedIssue,
    Spread,
    cast_of,
    live,
    starter_agents,
)

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "guides" / "policies.md"
FILE = Path("night.txt")
QUICKLY = Retry(max_attempts=2, initial_delay=timedelta(seconds=10))


def cast(*phases: Phase, **limits: Any) -> Cast:
    policy = Policy(phases=phases, limits=Limits(**limits))
    return Cast(Policies(version=1, policies={"made": policy}), "made", starter_agents(), Settings())


def lived(scene: Cast, text: str) -> SimulatedIssue:
    script = read_script(text, scene.rules, FILE)
    (life,) = live(scene, ["sim-1"], script)
    if script.error is not None:
        raise script.error
    assert not script.rest(), "the script is gone through to its end"
    return life


WORK = Phase(name="implement", retry=QUICKLY, max_visits=2, next={"success": "review", "failed": "ask"})
JUDGE = Phase(
    name="review", verdicts=("approve", "needs_changes"), next={"approve": "ask", "needs_changes": "implement"}
)
ASK = Phase(name="ask", human=Human(changes_requested="implement", deadline=timedelta(hours=2), on_deadline="review"))
ALL = cast(WORK, JUDGE, ASK)


# --- what a move does -------------------------------------------------------------------------------------------------


@pytest.mark.promise("F23")
@pytest.mark.parametrize(("text", "end", "code", "runs", "questions"), [
    ("implement: success; review: approve; ask: approved", "closed", "", 2, 1),
    ("implement: success*; review: needs_changes, approve; ask: approved", "closed", "", 4, 1),
    ("implement: failed, failed; ask: approved", "closed", "", 2, 1),
    ("implement: failed, success; review: approve; ask: approved", "closed", "", 3, 1),
    ("implement: partial, partial", "parked", "attempts", 2, 0),
    ("implement: no_outcome, timed_out; ask: approved", "closed", "", 2, 1),
    ("implement: stalled, success; review: approve; ask: approved", "closed", "", 3, 1),
    ("implement: need_human, approved, success; review: approve; ask: approved", "closed", "", 3, 2),
    ("implement: need_human, changes_requested, success; review: approve; ask: approved", "closed", "", 3, 2),
    ("implement: need_human, silence", "parked", "question_deadline", 1, 1),
    ("implement: success*; review: needs_changes*", "parked", "max_visits", 4, 0),
    ("implement: success*; review: approve*; ask: changes_requested, approved", "closed", "", 4, 2),
    ("implement: success; review: approve*; ask: silence, approved", "closed", "", 3, 2),
    ("implement: success", "waiting", "left_off", 2, 0),
])  # fmt: skip
def test_every_move_leads_where_the_policy_says(text: str, end: str, code: str, runs: int, questions: int) -> None:
    life = lived(ALL, text)
    assert (life.end, life.code, life.runs, life.questions) == (end, code, runs, questions), life


def test_a_stalled_turn_is_looked_into_where_the_policy_says_so() -> None:
    scene = cast(Phase(name="implement", stall=Stall(action="diagnose"), retry=QUICKLY))
    assert lived(scene, "implement: stalled, success; implement/diagnosis: retry").end == "closed"
    assert lived(scene, "implement: stalled, success; implement/diagnosis: change_agent").end == "closed"
    asked = lived(scene, "implement: stalled, approved, success; implement/diagnosis: ask_person")
    assert (asked.end, asked.questions) == ("closed", 1)


def test_a_suggestion_is_followed_where_it_may_be() -> None:
    scene = cast(Phase(name="implement", allow_suggested=("ask",)), JUDGE, ASK)
    assert "suggest:ask" in moves(scene.rules.phases[0], "run")
    life = lived(scene, "implement: suggest:ask; ask: approved")
    assert (life.end, life.runs) == ("closed", 1)
    assert moves(WORK, "run")[:2] == ("success", "failed"), "an edge for success leaves nothing to suggest"


def test_times_are_those_of_the_policy() -> None:
    scene = cast(WORK.model_copy(update={"timeout": timedelta(hours=1)}), JUDGE, ASK)
    said = "implement: success in 40m; review: approve in 5m; ask: approved in 90m"
    assert lived(scene, said).time == timedelta(minutes=40 + 5 + 90)
    late = lived(scene, said.replace("40m", "61m, success in 1m"))
    assert [step.move for _, step in late.moves] == ["success", "success", "approve", "approved"], (
        "it was aborted after an hour"
    )
    assert timedelta(minutes=60 + 1 + 5 + 90, seconds=8) < late.time < timedelta(minutes=60 + 1 + 5 + 90, seconds=12)
    stalled = lived(scene, said.replace("success", "stalled, success"))
    assert stalled.time - timedelta(minutes=5 + 40 + 5 + 90) < timedelta(seconds=13), "silent for stall.after"
    silent = lived(scene, "implement: success in 1m; review: approve in 1m*; ask: silence, approved in 1m")
    assert silent.time == timedelta(minutes=1 + 1 + 120 + 1 + 1), "until the deadline"


def test_silence_is_noticed_long_before_time_is_up() -> None:
    once = Retry(max_attempts=1)
    work = Phase(name="implement", stall=Stall(action="fail"), retry=once, next={"failed": "close"})
    ends = {move: lived(cast(work), f"implement: {move}") for move in ("stalled", "timed_out")}
    assert [life.time for life in ends.values()] == [timedelta(minutes=5), timedelta(minutes=30)]
    assert "no sign of life for 5m" in ends["stalled"].why
    assert "no outcome within 0:30:00" in ends["timed_out"].why


def test_what_takes_as_long_as_usual_is_in_time() -> None:
    hasty = ASK.model_copy(update={"human": Human(changes_requested="implement", deadline=timedelta(minutes=30))})
    scene = cast(WORK.model_copy(update={"timeout": timedelta(minutes=5)}), JUDGE, hasty)
    life = lived(scene, "implement: success; review: approve; ask: approved")
    assert (life.end, life.time) == ("closed", timedelta(minutes=4.5 + 10 + 27))


def test_an_agent_that_does_not_exist_is_waited_for() -> None:
    scene = cast(Phase(name="browsertest"))
    life = lived(scene, "")
    assert (life.end, life.code) == ("waiting", "no_agent")


def test_what_nothing_can_happen_to_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgets(*_: object) -> list[Fact]:
        return []

    monkeypatch.setattr(turns, "after_run", forgets)
    life = lived(ALL, "implement: success")
    assert life.end == "stuck"


@pytest.mark.promise("F23")
def test_it_is_the_real_thing_and_can_be_derived_again() -> None:
    again, differ = Replay(), []
    batches: list[Sequence[Entry]] = []

    def watch(entries: Sequence[Entry], _: World) -> None:
        batches.append(entries)

    live(ALL, [f"sim-{number}" for number in range(20)], Dice(ALL.rules, Chances(), 5), watch)
    for batch in batches:
        differ += again.batch(batch) if batch else []
    assert again.decisions > 400
    assert not differ


# --- scripts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "said"), [
    ("implement: success\n\nreveiw: approve", "3: reveiw: the policy has no phase reveiw; did you mean review?"),
    ("implement success", "1: expected `phase: move`, found 'implement success'"),
    ("review: succes", "1: review: there is no move succes; expected one of approve,"),
    ("ask: success", "1: ask: there is no move success; expected one of approved, changes_requested"),
    ("review:", "1: review: expected a move, such as `approve`, `approve in 20m` or `approve*`, found ''"),
    ("review: approve in 5 minutes", "1: review: expected a move, such as"),
    ("review: approve in 5", "1: review: expected a duration such as 500ms, 30s, 5m, 6h or 7d, found '5'"),
    ("# x\nreview: approve*; review: approve", "2: review: comes after approve*, which is for ever (line 2)"),
    ("review/diagnosis: retry", "1: review/diagnosis: a stalled turn of review is not looked into"),
    ("implement: success\nreview: approved", "2: review: approved is not possible where an agent works"),
    ("implement: need_human, success", "1: implement: success is not possible where a person is asked"),
])  # fmt: skip
def test_a_mistake_is_told_with_its_line(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"night.txt:{said}")):
        lived(ALL, text)


def test_a_life_can_be_written_as_a_script_and_lived_again() -> None:
    first = live(ALL, [f"sim-{number}" for number in range(10)], Dice(ALL.rules, Chances(), 9))
    for life in first:
        again = lived(ALL, write_script(life.moves))
        assert (again.end, again.code, again.runs, again.visits) == (life.end, life.code, life.runs, life.visits)


# --- chance -----------------------------------------------------------------------------------------------------------


def figures(found: Sequence[SimulatedIssue]) -> list[Any]:
    return [(life.issue, life.end, life.code, life.moves, life.time, life.visits) for life in found]


@pytest.mark.slow
@pytest.mark.promise("F23")
def test_no_life_depends_on_another() -> None:
    issues = [f"sim-{number}" for number in range(6)]
    together = live(ALL, issues, Dice(ALL.rules, Chances(), 3))
    alone = [live(ALL, [issue], Dice(ALL.rules, Chances(), 3))[0] for issue in reversed(issues)]
    assert figures(together) == figures(alone[::-1])
    assert figures(together) != figures(live(ALL, issues, Dice(ALL.rules, Chances(), 4)))


@pytest.mark.promise("F23")
@pytest.mark.slow
def test_a_seed_gives_the_same_numbers_in_any_process(tmp_path: Path) -> None:
    said = [ashep(tmp_path, "standard", "--runs", "40", "--json", PYTHONHASHSEED=one) for one in ("1", "2")]
    assert said[0].stdout == said[1].stdout
    assert json.loads(said[0].stdout)["lives"] == 40


def ashep(folder: Path, *words: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    argv = (sys.executable, "-m", "ashep", "policy", "simulate", *words)
    env = {**os.environ, **environ}
    return subprocess.run(argv, cwd=folder, env=env, capture_output=True, text=True, timeout=240, check=False)


def share(dice: Dice, phase: Phase, kind: Any, move: str) -> float:
    dice.forget()
    points = (Point(f"sim-{number}", phase, kind, timedelta(hours=1)) for number in range(2000))
    return Counter(step.move for point in points if (step := dice(point)))[move] / 2000


def test_chances_are_kept_and_the_rest_is_shared() -> None:
    chances = Chances().but(["review.approve=0.9", "*.failed=0.1", "implement.failed=0", "ask.silence=1"])
    dice = Dice(ALL.rules, chances, 1)
    assert share(dice, JUDGE, "run", "approve") == pytest.approx(0.9, abs=0.03)
    assert share(dice, JUDGE, "run", "failed") == pytest.approx(0.1, abs=0.03)
    assert share(dice, JUDGE, "run", "stalled") == 0, "nothing is left for it"
    assert share(dice, WORK, "run", "failed") == 0
    assert share(dice, WORK, "run", "success") == pytest.approx(0.85 / 0.95, abs=0.03)
    assert share(dice, ASK, "question", "silence") == 1
    assert share(Dice(ALL.rules, Chances(), 1), JUDGE, "run", "needs_changes") == pytest.approx(0.85 * 0.3, abs=0.03)


@pytest.mark.parametrize(("words", "said"), [
    (["review.approve"], "--chance review.approve: expected PHASE.MOVE=NUMBER"),
    (["review.approve=2"], "the number from 0 to 1"),
    (["reviw.approve=1"], "chances of reviw: the policy has no such phase; did you mean review?"),
    (["ask.success=1"], "chances of ask: there is no move success"),
    (["*.aprove=1"], "chances of *: there is no move aprove; did you mean approve"),
    (["review.approve=0.7", "review.needs_changes=0.7"], "the chances of review add up to 1.4"),
    (["ask.approved=0.1", "ask.changes_requested=0.1", "ask.silence=0.1"], "the chances of ask add up to 0.3"),
])  # fmt: skip
def test_chances_that_cannot_be_are_refused(words: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        Dice(ALL.rules, Chances().but(words), 1)


@pytest.mark.slow
def test_who_never_has_enough_is_left_off() -> None:
    dice = Dice(ALL.rules, Chances().but(["review.approve=1", "implement.success=1", "ask.changes_requested=1"]), 1)
    (life,) = live(ALL, ["sim-1"], dice)
    assert (life.end, life.code, len(life.moves)) == ("waiting", "left_off", MOST)


def test_a_spread_is_of_the_nearest_rank() -> None:
    assert Spread.from_values([4, 1, 3, 2]) == Spread(1, 2, 4, 4, 2.5)
    assert Spread.from_values(range(1, 11)) == Spread(1, 5, 9, 10, 5.5)
    assert Spread.from_values([7]) == Spread(7, 7, 7, 7, 7)


def test_lives_are_summed_up() -> None:
    found = [
        lived(ALL, "implement: partial, partial"),
        lived(ALL, "implement: success; review: approve; ask: approved"),
    ]
    told = Distribution.from_lives(found, ["implement", "review", "ask"]).as_json()
    assert told["ends"] == [
        {"end": "closed", "code": None, "lives": 1}, {"end": "parked", "code": "attempts", "lives": 1},
    ]  # fmt: skip
    assert told["per_issue"]["runs"] == {"min": 2, "median": 2, "p90": 2, "max": 2, "mean": 2}
    assert told["per_issue"]["questions"]["max"] == 1
    assert told["visits_of"]["review"] == {"min": 0, "median": 0, "p90": 1, "max": 1, "mean": 0.5}
    assert told["per_issue"]["seconds"]["max"] == 60 * (10 + 10 + 60)


# --- the command ------------------------------------------------------------------------------------------------------


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["policy", "simulate", *words])
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_script_is_told_as_a_story(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ("implement: success", "human_review: changes_requested, approved, approved", "implement: success")
    (folder / "night.txt").write_text("\n".join(lines))
    code, out, err = told(capsys, "quick", "--script", "night.txt")
    assert code == 0
    assert "    10m  sim-1 waits for a person: " in out
    assert out.endswith("2 runs, 2 questions to people, 2h 20m\n")
    assert "night.txt:2: human_review: approved was not reached" in err
    code, out, _ = told(capsys, "quick", "--script", "night.txt", "--json")
    data = json.loads(out)
    assert (data["end"], data["runs"], data["seconds"]) == ("closed", 2, 140 * 60)
    assert data["not_reached"] == ["human_review: approved"]
    assert data["moves"][0] == {"point": "implement", "move": "success"}
    assert not any((folder / ".agent-shepherd").glob("*")), "nothing is written"


@pytest.mark.slow
def test_the_projects_policy_and_a_draft_of_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--force"]) in (0, 1, 2)
    (folder / "draft.yaml").write_text("version: 1\npolicies:\n  mine: [implement]\n")
    assert cast_of(folder / ".agent-shepherd", "mine", folder / "draft.yaml").rules.phases[0].name == "implement"
    capsys.readouterr()
    (folder / "s.txt").write_text("implement: success")
    assert told(capsys, "mine", "draft.yaml", "--script", "s.txt")[0] == 0
    code, _, err = told(capsys, "mien", "draft.yaml", "--script", "s.txt")
    assert code == 2
    assert "there is no policy mien; did you mean mine?" in err
    (folder / "draft.yaml").write_text("version: 1\npolicies:\n  mine: [{name: implement, next: {success: nowhere}}]\n")
    code, _, err = told(capsys, "mine", "draft.yaml", "--runs", "1")
    assert code == 2
    assert "draft.yaml:3: policies.mine[0].next.success: this policy has no phase nowhere" in err


@pytest.mark.slow
def test_made_up_people_are_heard_whoever_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--force"]) in (0, 1, 2)
    words = ("standard", "--runs", "5", "--json")
    capsys.readouterr()
    anybody = told(capsys, *words)
    (folder / ".agent-shepherd" / "config.yaml").write_text("version: 1\npeople: {tracker: [ann]}\n")
    assert told(capsys, *words) == anybody
    assert anybody[0] == 0


def test_an_unsound_policy_can_be_tried_out_and_is_called_so(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    phase = "{name: review, verdicts: [approve, needs_changes], next: {approve: implement, needs_changes: implement}}"
    (folder / "draft.yaml").write_text(f"version: 1\npolicies:\n  round:\n    phases: [implement, {phase}]\n")
    code, out, err = told(capsys, "round", "draft.yaml", "--runs", "5")
    assert code == 0
    assert re.search(r"parked +max_visits +\d", out)
    assert "closed" not in out
    assert "ashep: unsound, so that no daemon would run it: draft.yaml:" in err


def test_bad_usage_is_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, said in (
        (["standard"], "nobody can be asked here; give --script FILE or --runs N"),
        (["standard", "--runs", "2", "--script", "x"], "--script and --runs are two ways; take one"),
        (["standard", "--chance", "review.approve=1", "--script", "x"], "--chance and --chances need --runs"),
        (["standard", "--script", "x"], "x: cannot be read"),
        (["standard", "x.yaml", "--runs", "1"], "x.yaml: there is no such file"),
        (["standart", "--runs", "1"], "there is no policy standart; did you mean standard?"),
    ):
        code, out, err = told(capsys, *words)
        assert (code, out, err.count("\n")) == (2, "", 1), err
        assert said in err
    (folder / "c.yaml").write_text("version: 1\nphases:\n  review: {chance: {approve: 7}}\n")
    code, _, err = told(capsys, "standard", "--runs", "1", "--chances", "c.yaml")
    assert code == 2
    assert "c.yaml:3: phases.review.chance.approve: " in err


def test_chances_and_times_of_a_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "c.yaml").write_text(
        "version: 1\nruns_take: [1m, 1m]\nphases:\n  '*': {chance: {approved: 1}}\n"
        "  implement: {chance: {success: 1}}\n  human_review: {takes: [2h, 2h]}\n"
    )
    code, out, _ = told(capsys, "quick", "--runs", "3", "--chances", "c.yaml", "--json")
    data = json.loads(out)
    assert code == 0
    assert data["ends"] == [{"end": "closed", "code": None, "lives": 3}]
    assert data["per_issue"]["seconds"] == dict.fromkeys(("min", "median", "p90", "max", "mean"), 121 * 60)


def test_a_life_that_gets_stuck_is_a_failure(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def forgets(*_: object) -> list[Fact]:
        return []

    monkeypatch.setattr(decide, "after_deadline", forgets)
    code, out, err = told(
        capsys, "quick", "--runs", "3", "--chance", "*.success=1", "--chance", "human_review.silence=1"
    )
    assert code == 1
    assert re.search(r"stuck +circle +1 +33.3%", out)
    assert "nothing can happen any more after: implement: success in " in err


def typed(folder: Path, text: str) -> tuple[int, str]:
    """Run the command on a terminal, type when it first asks, and give what was shown."""
    import pty

    ours, theirs = pty.openpty()
    argv = (sys.executable, "-m", "ashep", "policy", "simulate", "quick")
    streams: dict[str, Any] = {
        "stdin": theirs, "stdout": theirs, "stderr": theirs, "env": os.environ | {"NO_COLOR": "1"},
    }  # fmt: skip
    with subprocess.Popen(argv, cwd=folder, start_new_session=True, **streams) as process:
        os.close(theirs)
        shown, sent, limit = b"", False, time.monotonic() + 60
        while time.monotonic() < limit:
            try:
                if select.select([ours], [], [], 1)[0]:
                    shown += os.read(ours, 4096)
                elif sent and text == "^C":  # it had asked, and did not read yet: a person presses it again
                    process.send_signal(signal.SIGINT)
            except OSError:
                break
            if not sent and b"> " in shown:
                sent = True
                if text == "^C":
                    process.send_signal(signal.SIGINT)
                else:
                    os.write(ours, text.encode())
        if time.monotonic() >= limit:
            process.kill()
        code = process.wait(10)
    os.close(ours)
    return code, shown.decode().replace("\r\n", "\n")


@pytest.mark.slow
def test_a_person_says_what_happens(folder: Path) -> None:
    code, shown = typed(folder, "2\nsu\nchanges\nx\n\napp\n")
    assert code == 0, shown
    assert "implement (builder, visit 1.1): 1 success  2 failed  3 partial" in shown
    assert "which one: success, failed, partial" in shown, "there is no move x"
    said = "implement: failed; implement: success; human_review: changes_requested; implement: success"
    assert f"as a script: {said}; human_review: approved\n" in shown
    assert "3 runs, 2 questions to people" in shown


@pytest.mark.slow
@pytest.mark.parametrize("end", ["^C", "\x04"], ids=["Ctrl-C", "Ctrl-D"])
def test_a_person_who_has_enough_ends_it(folder: Path, end: str) -> None:
    code, shown = typed(folder, end)
    assert code == 0, shown
    assert "waiting (left_off): nobody says what happens at implement" in shown
    assert "Traceback" not in shown


# --- the documentation ------------------------------------------------------------------------------------------------


def test_the_page_says_how_likely_what_is() -> None:
    page = " ".join(PAGE.read_text().split())
    trouble = sorted(TROUBLE.items(), key=lambda one: -one[1])
    assert [f"{share:.0%}" for _, share in trouble] == ["5%", "3%", "2%", "2%", "2%", "1%"]
    assert "5 % are `failed`, 3 % `partial`, 2 % each `need_human`, `no_outcome` and `stalled`, 1 % `timed_out`" in page
    assert f"{round(100 * (1 - sum(TROUBLE.values())))} % of runs succeed (with verdicts: {100 * FIRST:.0f} %" in page
    assert ANSWER == {"approved": 0.75, "changes_requested": 0.2, "silence": 0.05}
    assert "approves in 75 %, wants changes in 20 %, and is silent in 5 %" in page
    assert DIAGNOSED == {"retry": 0.6, "change_agent": 0.2, "ask_person": 0.1, "no_outcome": 0.1}
    assert "`retry` in 60 %, `change_agent` in 20 %, `ask_person` in 10 %" in page
    runs, people = (tuple(map(format_duration, takes)) for takes in (Chances().runs_take, Chances().people_take))
    assert f"takes {runs[0]} to {runs[1]}, an answer {people[0]} to {people[1]}" in page
    assert f"within {100 * IN_TIME:.0f} % of the timeout" in page
    assert f"for {MOST} moves" in page
    usual = (format_duration(RUN_TAKES), format_duration(PERSON_TAKES))
    assert f"A run takes {usual[0]} and a person {usual[1]} where" in page


def test_a_file_of_chances_on_the_page_is_one() -> None:
    found = re.search(r"^```yaml title=\"chances.yaml\"\n(.*?)^```", PAGE.read_text(), re.M | re.S)
    assert found is not None
    assert read(Chances, found[1], Path("chances.yaml")).phases["review"].chance == {"approve": 0.9}
