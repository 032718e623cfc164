"""Looking back: what is told of a moment is what the picture said then, from whatever checkpoint it is folded."""

import shutil
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ashep.core.facts.delivery import TreeRemoved, TreeRests
from ashep.core.policy.policies import Phase
from ashep.journal.archive import archive
from ashep.journal.prune import prune
from ashep.journal.reader import ReadBatch, batches, journal_files
from ashep.journal.writer import Journal, Sizes
from ashep.store import checkpoints, playback
from ashep.store.checkpoints import NAME, CheckpointWriter, opened, places
from ashep.store.journal_reader import JournalView
from ashep.store.sqlite_reader import open_read_only
from ashep.store.writer import Store
from ashep.views import Data, lists, point_in_time, policies, policy_graph, status
from tests.core import given
from tests.core.chances import WILD
from tests.core.test_playbook_workspaces import TREE, own
from tests.recorded import Recorded

STEP = timedelta(microseconds=1)
RECALLED = policies.PastPolicyGraphs()


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints stand so near to each other, and are so few, that a small journal has all that a large one has."""
    monkeypatch.setattr(checkpoints, "EVERY", 60)
    monkeypatch.setattr(checkpoints, "MOST", 12)
    monkeypatch.setattr(checkpoints, "BEHIND", 1)


def lived(state: Path, seed: int, *, steps: int = 500, sizes: Sizes | None = None) -> Recorded:
    """Write the journal of a wild life."""
    made = Recorded(state, chances=WILD, seed=seed)
    if sizes is not None:
        made.journal.close()
        made.journal = Journal.open(state, given.T0, sizes)
    made.begin()
    for number in range(8):
        made.open(f"t-{number}")
    made.live(2 * steps // 3)
    for name, view in made.tracker.items():
        if view.status == "closed":  # what rested is worked on again
            made.change(name, "ann", status="open", assignee=None)
    made.live(steps // 3)
    made.journal.close()
    return made


def kept(state: Path) -> CheckpointWriter:
    """Make all checkpoints."""
    keeper = CheckpointWriter(state)
    while keeper.advance(1.0):
        pass
    return keeper


def back(state: Path, moment: datetime, issue: str | None = None, **more: Any) -> Any:
    with playback.open_past(state, moment, issue, **more) as found:
        return point_in_time.describe_moment(found, moment, RECALLED, issue)


def picture(state: Path, end: ReadBatch, scratch: Path) -> Iterator[tuple[str, Any]]:
    """What a picture says that is drawn of the journal up to a batch."""
    shutil.rmtree(scratch, ignore_errors=True)
    (scratch / "state" / "journal").mkdir(parents=True)
    for path in journal_files(state / "journal"):
        if path.name <= end.end.file:
            data = path.read_bytes()[: end.end.offset if path.name == end.end.file else None]
            (scratch / "state" / "journal" / path.name).write_bytes(data)
    Store.open(scratch / "state", JournalView(scratch / "state" / "journal")).close()
    with closing(open_read_only(scratch / "state")) as database:
        yield "seq", lists.seq(database)
        yield from status.first(database).items()
        for name in ("standard", "quick"):
            yield name, policy_graph.counts(database, name)
        for row in status.issue_rows(database):
            yield row["issue"], status.entry(row)


def counted(told: Data, name: str) -> dict[str, int]:
    """The boxes of a policy in which there are issues."""
    boxes = next((one["phases"] for one in told["policies"] if one["policy"] == name), [])
    return {box["name"]: box["issues"] for box in boxes if box["issues"]}


@pytest.mark.parametrize("seed", [3, 11])
def test_a_moment_is_told_as_the_picture_of_then(tmp_path: Path, seed: int) -> None:
    state, random = tmp_path / "state", Random(seed)
    lived(state, seed)
    kept(state)
    with opened(state) as database:
        assert database is not None
        known, rested = places(database, state), database.execute("SELECT count(*) FROM flows WHERE rests").fetchone()
    assert 8 <= len(known) <= 12, "there are enough of them that some went"
    assert rested[0], "some issue was at rest"
    all_of_them = list(batches(state / "journal"))
    ends = {one.at for one in known}
    # right at a checkpoint and its neighbours, where one too many or too few would be seen, and anywhere
    near = [place for place, one in enumerate(all_of_them) if checkpoints.number(one.entries[-1].at) in ends]
    chosen = {place + by for place in random.sample(near, 3) for by in (-1, 0, 1)}
    chosen |= set(random.sample(range(len(all_of_them)), 4))
    differ = 0
    for place in sorted(one for one in chosen if one < len(all_of_them) - 1):
        at = all_of_them[place].entries[-1].at
        last = max(one for one, batch in enumerate(all_of_them) if batch.entries[-1].at <= at)
        expected = dict(picture(state, all_of_them[last], tmp_path / "scratch"))
        following = all_of_them[last + 1].entries[-1].at if last + 1 < len(all_of_them) else at + STEP
        told = back(state, following - STEP)
        assert told == back(state, at) | {"at": told["at"]}
        for key in ("seq", "counts", "waiting", "running"):
            assert told[key] == expected[key], (key, at)
        for issue in random.sample([one for one in expected if one.startswith("t-")], 3):
            assert back(state, at, issue)["issue"] == expected[issue], (issue, at)
        assert counted(told, "standard") == {
            name: many for name, many in expected["standard"].items() if name in (*given_phases(told), "close", "park")
        }
        differ += told["seq"] != back(state, at - STEP)["seq"]
    assert differ, "the moment before is another one"


def given_phases(told: Data) -> list[str]:
    return [box["name"] for one in told["policies"] for box in one["phases"]]


def test_checkpoints_go_on_and_others_are_made_anew(tmp_path: Path) -> None:
    state, other = tmp_path / "state", tmp_path / "other"
    made = lived(state, 5, steps=150)
    kept(state)
    before = (state / NAME).stat().st_ino
    made.journal = Journal.open(state, given.T0)
    made.live(150)
    made.journal.close()
    assert kept(state).busy is False
    assert (state / NAME).stat().st_ino == before, "what was made is gone on with"
    end = made.world.now
    expected = back(state, end)
    assert back(state, end, most=10) == expected, "little was folded behind the last one"

    lived(other, 6, steps=150)
    shutil.copy(state / NAME, other / NAME)
    assert back(other, end, most=100_000)["counts"] is not None
    kept(other)
    with opened(other) as database:
        assert database is not None, "they were made anew, of its own journal"

    data = bytearray((state / NAME).read_bytes())
    data[len(data) // 3 :] = bytes(len(data) - len(data) // 3)
    (state / NAME).write_bytes(data)
    keeper = CheckpointWriter(state)
    assert back(state, end) == expected, "who reads alone folds all of the journal"
    keeper.forget()
    kept(state)
    assert back(state, end, most=10) == expected


def test_what_a_record_of_another_issue_changes_does_not_rest(tmp_path: Path) -> None:
    """A branch that issues share goes for all of them, also for one of which nothing is due."""
    state = tmp_path / "state"
    made = Recorded(state)
    made.begin(*given.start(given.policies(given.policy_of(Phase(name="implement"))), config=own(), tree=TREE))
    for name in ("t-1", "t-2"):
        made.open(name, "branch:epic")
    while "t-2" not in made.world.flows or any(one.stage != "closed" or one.busy for one in made.world.flows.values()):
        made.tick()
    made.turn(TreeRests("t-1", "ashep/+epic", None, None))
    made.journal.close()
    kept(state)
    made.journal = Journal.open(state, given.T0)
    made.turn(TreeRemoved("t-2", "t-2/tree/gone/1", "ashep/+epic"))
    made.journal.close()
    with playback.open_past(state, made.world.now, "t-1") as found:
        assert found.stood is not None
        assert found.stood.world.flows["t-1"] == made.world.flows["t-1"]
        gone = found.stood.world.flows["t-1"].work.own
    assert gone is not None
    assert gone.path == ""


def test_what_was_pruned_is_told_and_what_is_not_yet_made(tmp_path: Path) -> None:
    state = tmp_path / "state"
    made = lived(state, 11, steps=400, sizes=Sizes(file=20_000, keep=40_000))
    keeper = CheckpointWriter(state)
    for told in (back(state, made.world.now, most=100), back(state, made.world.now, keeper=keeper)):
        assert (told["ready"], told["counts"]) == (False, None), "it would take longer than a server may"
    folded = list[int]()
    assert back(state, made.world.now, tell=folded.append)["counts"] is not None
    assert folded[-1] == made.world.seq + 1, "who waits for all of it is told how far it has got"
    kept(state)
    first, end = given.T0, made.world.now
    whole = back(state, end)
    assert back(state, first)["counts"] is not None
    made.journal = Journal.open(state, given.T0, Sizes(file=20_000, keep=40_000))
    archive(state / "journal", 80_000)
    assert prune(made.journal, end + STEP).files
    made.journal.close()
    told = back(state, first)
    assert (told["ready"], told["counts"]) == (True, None)
    begins = datetime.fromisoformat(told["kept_from"])
    assert first < begins < end
    assert back(state, begins)["counts"] is not None
    assert back(state, begins - STEP)["counts"] is None
    assert back(state, end) | {"kept_from": ""} == whole | {"kept_from": ""}
    assert back(state, datetime(2020, 1, 1, tzinfo=UTC))["counts"] is None
