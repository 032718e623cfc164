"""Exact replay: what is derived again is what was recorded, wherever and whenever; any change of it is found."""

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ashep.core
from ashep.actions.replay import replay
from ashep.core.analysis.replay import DERIVED, Difference, Replay
from ashep.core.facts import issues, resources
from ashep.core.facts import vocabulary as e
from ashep.core.facts.commands import Command
from ashep.core.facts.records import Entry
from ashep.core.issues import human_overrides, routing
from ashep.core.policy.policies import Policies
from ashep.core.reconcile import dispatch
from ashep.core.reconcile.step import RULES
from ashep.core.state.world import World
from ashep.errors import AshepError
from ashep.journal.archive import archive
from ashep.journal.prune import prune
from ashep.journal.reader import batches
from ashep.journal.writer import Journal, Sizes
from tests.core.chances import WILD
from tests.core.given import T0
from tests.core.lives import live
from tests.core.mutants import Mutant, planted, private
from tests.core.world_of import MadeUp
from tests.full import amount
from tests.golden.make import LIFE
from tests.recorded import Recorded, life, replayed

ROOT = Path(__file__).resolve().parent.parent
Batches = list[list[Entry]]
RELEASED_RULES = 4
"""`RULES` of the last release: its golden life is never written again."""


def lived(seed: int, steps: int = 120) -> tuple[World, Batches]:
    """Live a life and keep its batches."""
    kept: Batches = []
    before = MadeUp.turn

    def turn(made: MadeUp, *facts: e.Fact, everything: bool = False) -> list[Entry]:
        entries = before(made, *facts, everything=everything)
        kept.append(entries)
        return entries

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MadeUp, "turn", turn)
        made = live(seed, steps)
    return made.world, [entries for entries in kept if entries]


def again(kept: Batches, issue: str | None = None) -> tuple[Replay, list[Difference]]:
    """Derive again."""
    made = Replay(issue=issue)
    return made, [one for entries in kept for one in made.batch(entries)]


def decided(kept: Batches, kind: type | tuple[type, ...] = (*e.DECISIONS,)) -> Iterator[tuple[int, int]]:
    """Find decisions: the number of the batch, and the place in it."""
    for number, entries in enumerate(kept):
        for place, entry in enumerate(entries):
            if isinstance(entry.body, kind):
                yield number, place


def numbered(kept: Sequence[Sequence[Entry]]) -> Batches:
    """Number entries anew, as a journal would that was written so."""
    seq, made = kept[0][0].seq, Batches()
    for entries in kept:
        made.append([replace(entry, seq=seq + place) for place, entry in enumerate(entries)])
        seq += len(entries)
    return made


# --- equal --------------------------------------------------------------------------------------------------------


@pytest.mark.promise("Y1")
@settings(max_examples=amount(5, 100), suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 2**32))
def test_every_life_is_derived_again_as_it_was(seed: int) -> None:
    world, kept = lived(seed)
    made, found = again(kept)
    assert found == []
    assert made.world == world
    assert made.decisions == sum(type(entry.body) in DERIVED for entries in kept for entry in entries) > 20
    assert not made.folded


@pytest.mark.promise("Y1")
def test_decisions_not_to_start_are_among_them() -> None:
    _, kept = lived(3)
    kinds = {type(entry.body) for entries in kept for entry in entries}
    assert issues.IssueHeld in kinds & DERIVED
    assert set(DERIVED) >= set(e.DECISIONS)


def test_whatever_the_rules_make_is_a_decision() -> None:
    """A rule that made any other fact would be taken for something that was told, and be derived twice."""
    for seed in range(3):
        _, kept = lived(seed)
        for entries in kept:
            bodies = [type(entry.body) for entry in entries]
            last_told = max(place for place, kind in enumerate(bodies) if kind not in DERIVED)
            assert all(kind in DERIVED for kind in bodies[last_told + 1 :])
    names, shell = {kind.__name__ for kind in e.DECISIONS}, [*(ROOT / "ashep" / "daemon").rglob("*.py")]
    assert len(shell) > 10
    for module in shell:
        calls = [node.func for node in ast.walk(ast.parse(module.read_text())) if isinstance(node, ast.Call)]
        made = {getattr(call, "id", getattr(call, "attr", "")) for call in calls} & names
        assert not made, f"{module} makes {made}, which only the core decides"


# --- different ----------------------------------------------------------------------------------------------------


def changed(entry: Entry) -> Entry:
    """Change what it says a little."""
    body: Any = entry.body
    name = "why" if hasattr(body, "why") else "key" if hasattr(body, "key") else "issue"
    return replace(entry, body=replace(body, **{name: getattr(body, name) + "!"}))


@pytest.mark.promise("Y1")
@settings(max_examples=amount(6, 100), suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 50), st.randoms(use_true_random=False))
def test_a_changed_decision_is_found_where_it_stands(seed: int, chance: Any) -> None:
    _, kept = lived(seed, 60)
    places = [*decided(kept, tuple(DERIVED))]
    number, place = chance.choice(places)
    entry = changed(kept[number][place])
    kept = [list(entries) for entries in kept]
    kept[number][place] = entry
    made = Replay()
    for entries in kept[:number]:
        assert made.batch(entries) == []
    found = made.batch(kept[number])
    assert entry.seq in [one.seq for one in found]
    assert any(one.recorded == entry and one.derived is not None for one in found)


@pytest.mark.promise("Y1")
@settings(max_examples=amount(5, 100), suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 50), st.randoms(use_true_random=False))
def test_a_decision_that_was_not_made_or_made_twice_is_found(seed: int, chance: Any) -> None:
    _, kept = lived(seed, 60)
    number, place = chance.choice([*decided(kept)])
    lacking = [list(entries) for entries in kept]
    gone = lacking[number].pop(place)
    made = Replay()
    for entries in lacking[:number]:
        assert made.batch(entries) == []
    found = made.batch(lacking[number])
    assert any(one.derived is not None and one.derived.body == gone.body for one in found)
    twice = [list(entries) for entries in kept]
    twice[number].insert(place, kept[number][place])
    made = Replay()
    for entries in twice[:number]:
        assert made.batch(entries) == []
    assert any(one.recorded is not None and one.recorded.body == gone.body for one in made.batch(twice[number]))


def test_after_a_difference_it_goes_on_from_what_was_recorded() -> None:
    """One wrong reason makes one difference, not a thousand."""
    _, kept = lived(5)
    number, place = next(iter(decided(kept, issues.PhaseEntered)))
    kept[number][place] = changed(kept[number][place])
    made, found = again(kept)
    assert len(found) == 1
    assert found[0].issue == kept[number][place].body.issue  # type: ignore[union-attr]
    assert made.world.flows


RULES_CHANGED = [
    Mutant("always the first phase", routing.enter, "(issue, target,", "(issue, policy.phases[0].name,"),
    Mutant("no reason for waiting", private(dispatch, "_hold"), "[] if told", "[] if True"),
    Mutant("excluding is not obeyed", human_overrides.obey, "if world.settings.labels.excluded in view.labels",
     "if False"),
    Mutant("a slot too many", dispatch.in_the_way, "room.slots <= 0", "room.slots < 0"),
    Mutant("another wait", routing.backoff, "0.8 + 0.4", "0.7 + 0.4"),
    Mutant("another sentence", private(dispatch, "_take"), "and the policy", "the policy"),
]  # fmt: skip


@pytest.mark.promise("Y1")
@pytest.mark.slow
@pytest.mark.parametrize("mutant", RULES_CHANGED, ids=lambda mutant: mutant.name)
def test_rules_that_decide_otherwise_are_found(mutant: Mutant) -> None:
    """Recorded by the right core, derived again by one with a mistake in it."""
    kept = [lived(seed)[1] for seed in range(12)]
    with planted(mutant):
        assert any(again(one)[1] for one in kept)


@pytest.mark.slow
def test_only_what_is_about_the_issue_is_compared() -> None:
    _, kept = lived(5)
    number, place = next(iter(decided(kept, issues.PhaseEntered)))
    issue = kept[number][place].body.issue  # type: ignore[union-attr]
    kept[number][place] = changed(kept[number][place])
    made, found = again(kept, issue)
    assert len(found) == 1
    others = {name for name in made.world.flows if name != issue}
    counts = [made.decisions]
    for other in sorted(others):
        made, found = again(kept, other)
        assert found == []
        counts.append(made.decisions)
    of_none = [entry for entries in kept for entry in entries if type(entry.body) in DERIVED]
    of_none = [entry for entry in of_none if getattr(entry.body, "issue", None) is None]
    assert sum(counts) + len(of_none) == again(kept)[0].decisions


@pytest.mark.promise("Y3")
@pytest.mark.parametrize("golden", sorted(LIFE.parent.glob("life-rules-*.jsonl")), ids=lambda path: path.stem)
def test_a_golden_life_is_derived_again_under_its_rules_and_folds_under_others(golden: Path, tmp_path: Path) -> None:
    (tmp_path / "journal").mkdir()
    shutil.copy(golden, tmp_path / "journal" / "000000000001.jsonl")
    made = Replay()
    found = [one.as_json() for one in replay(tmp_path, made)]
    number = int(golden.stem.rpartition("-")[2])
    assert not found, (
        f"The rules decide otherwise than before: {found[0]}. Raise RULES in ashep/core/reconcile/step.py, unless "
        f"it was raised since the release (its rules were {RELEASED_RULES}), and run `python -m tests.golden.make`."
    )
    assert (made.decisions if number == RULES else made.folded[number]) > 100


def test_the_present_rules_have_a_golden_life() -> None:
    assert LIFE.exists(), "run `python -m tests.golden.make`"
    assert RULES >= RELEASED_RULES


@pytest.mark.promise("Y3")
def test_what_other_rules_decided_is_folded_and_not_judged() -> None:
    def older(entry: Entry) -> Entry:
        return (
            replace(entry, body=replace(entry.body, rules=RULES + 7))
            if isinstance(entry.body, resources.Adopted)
            else entry
        )

    world, kept = lived(5)
    kept = [[older(entry) for entry in entries] for entries in kept]
    number, place = next(iter(decided(kept, issues.PhaseEntered)))
    kept[number][place] = changed(kept[number][place])
    made, found = again(kept)
    assert found == []
    assert made.decisions == 0
    assert made.folded == {RULES + 7: sum(type(entry.body) in DERIVED for entries in kept for entry in entries)}
    assert set(made.world.flows) == set(world.flows)
    # a start under the present rules begins to be judged with its first batch
    start = [entry for entry in kept[0] if not isinstance(entry.body, resources.JournalBegun)]
    now = [
        replace(entry, body=replace(entry.body, rules=RULES)) if isinstance(entry.body, resources.Adopted) else entry
        for entry in start
    ]
    made.batch([replace(entry, seq=made.world.seq + 1 + place, at=made.world.now) for place, entry in enumerate(now)])
    assert made.world.rules == RULES


# --- of nothing but facts -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give the state folder of a wild life."""
    folder = tmp_path_factory.mktemp("lived") / ".agent-shepherd"
    life(folder / "state", issues=5, steps=400, drawn=False, chances=WILD, seed=11)
    return folder / "state"


def repeated(state: Path, *mutant: str, **environ: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "tests.repeat", str(state), *mutant],
        cwd=ROOT, env={**os.environ, **environ}, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.promise("Y2")
@pytest.mark.slow
def test_nothing_but_facts_is_read(state: Path) -> None:
    told = repeated(state)
    assert told["impure"] == []
    assert told["differences"] == []
    assert told["decisions"] > 100


@pytest.mark.promise("Y2")
@pytest.mark.slow
@pytest.mark.parametrize("mutant", ["clock", "file", "chance"])
def test_anything_else_that_is_read_is_seen(state: Path, mutant: str) -> None:
    assert repeated(state, mutant)["impure"]


@pytest.mark.promise("Y2")
@pytest.mark.slow
def test_it_is_the_same_in_another_process_time_zone_and_order_of_sets(state: Path) -> None:
    for seed, zone in (("1", "Asia/Kolkata"), ("2", "America/St_Johns")):
        told = repeated(state, PYTHONHASHSEED=seed, TZ=zone, LC_ALL="C")
        assert told["differences"] == []


@pytest.mark.slow
def test_an_order_that_depends_on_the_process_is_found(state: Path) -> None:
    assert any(repeated(state, "order", PYTHONHASHSEED=seed)["differences"] for seed in "12345")


PURE = {
    "__future__", "abc", "ashep", "collections", "collections.abc", "contextlib", "dataclasses", "datetime", "difflib",
    "enum", "fnmatch", "functools", "hashlib", "heapq", "itertools",
    "json", "math", "operator", "pydantic", "re", "rpds",
    "shlex", "string", "tomllib", "types", "typing", "unicodedata", "urllib.parse", "bisect",
}  # fmt: skip
"""What the core may import: nothing in it does IO, tells the time or rolls dice of itself."""


def test_the_core_imports_nothing_but_what_computes() -> None:
    modules = [*Path(ashep.core.__file__).parent.rglob("*.py")]
    assert len(modules) > 50, "whatever folder they stand in"
    for path in modules:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                named = {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                named = {node.module or ""}
            else:
                continue
            for name in named:
                top = "ashep" if name.startswith("ashep.core") or name == "ashep.errors" else name
                assert top in PURE or name.split(".")[0] in PURE - {"ashep"}, f"{path.name} imports {name}"


# --- the command --------------------------------------------------------------------------------------------------

Run = Callable[..., Any]


@pytest.fixture
def run(state: Path, tmp_path: Path) -> Run:
    """Give `ashep replay` in a copy of the project, without any of its YAML files."""
    return replayed(state, tmp_path)


def rewritten(folder: Path, change: Callable[[Entry], Entry]) -> None:
    """Write the journal in a state folder anew, with changes."""
    kept = [list(batch.entries) for batch in batches(folder / "journal")]
    shutil.rmtree(folder / "journal")
    journal = Journal.open(folder, T0)
    for entries in kept:
        journal.append_now([change(entry) for entry in entries])
    journal.close()


@pytest.mark.promise("Y2")
def test_a_journal_is_enough(run: Run) -> None:
    done = run()
    assert done.exit_code == 0, done.output
    assert done.stdout.endswith("decisions derived again: all as recorded\n")
    told = json.loads(run("--json").stdout)
    assert (told["folded"], told["differences"]) == (0, [])
    assert told["decisions"] > 100
    mine = json.loads(run("t-1", "--json").stdout)
    assert 0 < mine["decisions"] < told["decisions"]


@pytest.mark.promise("Y1")
def test_a_difference_is_shown_with_its_number(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / ".agent-shepherd" / "state"
    held = next(
        entry
        for batch in batches(folder / "journal")
        for entry in batch.entries
        if isinstance(entry.body, issues.IssueHeld)
    )
    rewritten(folder, lambda entry: changed(entry) if entry == held else entry)
    done = run()
    assert done.exit_code == 1
    assert f"#{held.seq} {held.body.issue}\n- IssueHeld" in done.stdout  # type: ignore[union-attr]
    assert "\n+ IssueHeld" in done.stdout
    assert "decisions derived again: 1 differences" in done.stdout
    told = json.loads(run("--json").stdout)
    (one,) = told["differences"]
    assert (one["seq"], one["recorded"]["why"]) == (held.seq, one["derived"]["why"] + "!")


def test_an_issue_that_is_not_known_is_told(run: Run) -> None:
    done = run("t-99")
    assert isinstance(done.exception, AshepError)
    assert "nothing is known of an issue t-99" in str(done.exception)


@pytest.mark.promise("Y2")
def test_a_batch_that_is_being_written_is_left_out(run: Run, tmp_path: Path) -> None:
    before = json.loads(run("--json").stdout)
    (file,) = (tmp_path / ".agent-shepherd" / "state" / "journal").glob("*.jsonl")
    lines = file.read_bytes().splitlines(keepends=True)
    with file.open("ab") as journal:
        journal.write(lines[-2].replace(b'"seq":', b'"seq":9', 1)[:40])
    done = run("--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout) == before


def test_the_shell_reads_only_the_journal(state: Path) -> None:
    made = Replay()
    seen: list[int] = []
    assert list(replay(state, made, seen.append)) == []
    assert seen == sorted(seen)
    assert made.world.seq < seen[-1]
    assert isinstance(made.world.policies, Policies)


def test_commands_are_compared_too() -> None:
    _, kept = lived(7)
    assert any(isinstance(entry.body, Command) for entries in kept for entry in entries)
    assert all(
        kind in DERIVED
        for kind in (type(entry.body) for entries in kept for entry in entries)
        if issubclass(kind, Command)
    )


def test_a_pruned_journal_is_derived_again_from_where_it_begins(tmp_path: Path) -> None:
    made = Recorded(tmp_path, chances=WILD, seed=11)
    made.journal.close()
    made.journal = Journal.open(tmp_path, T0, Sizes(file=20_000, keep=40_000))
    made.begin()
    for number in range(4):
        made.open(f"t-{number}")
    made.live(400)
    archive(tmp_path / "journal", 40_000)
    assert prune(made.journal, T0).files, "something was archived, and is gone"
    made.journal.close()
    pruned = Replay()
    assert list(replay(tmp_path, pruned)) == []
    assert pruned.covers > 100
    assert pruned.decisions > 20
    assert pruned.world.flows == made.world.flows
