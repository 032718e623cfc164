"""`ashep journal verify`, `export` and `prune`, and what a salvage saves."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from ashep.actions.replay import replay
from ashep.adapters.git.integration import with_trailers
from ashep.cli import main
from ashep.cli.context import FOLDER
from ashep.core.analysis.replay import Replay
from ashep.core.facts import records
from ashep.core.facts.delivery import CriteriaAdopted
from ashep.core.facts.resources import DaemonStopped, JournalPruned, Notice
from ashep.core.facts.tracker import IssueSeen
from ashep.core.state.world import World
from ashep.errors import DiskFailed
from ashep.journal import prune as journal_prune
from ashep.journal import snapshots
from ashep.journal.archive import archive, archived
from ashep.journal.blobs import Blobs
from ashep.journal.heads import head
from ashep.journal.lock import Lock
from ashep.journal.prune import prune
from ashep.journal.reader import BASE, batches, journal_files
from ashep.journal.writer import Journal
from ashep.ports.landing import Candidate
from ashep.ports.notifier import message_of
from ashep.store.writer import Store
from tests.core.laws import entries_of
from tests.golden.story import T0
from tests.test_journal_snapshots import SMALL, folded, lived, opened, recovered


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, World]:
    project = tmp_path_factory.mktemp("commands")
    world = lived(project / FOLDER / "state")
    archive(project / FOLDER / "state" / "journal", 30_000)
    return project, world


@pytest.fixture
def project(made: tuple[Path, World], tmp_path: Path) -> Path:
    shutil.copytree(made[0], tmp_path / "project")
    return tmp_path / "project"


def state_of(project: Path) -> Path:
    return project / FOLDER / "state"


def run(project: Path, capsysbinary: pytest.CaptureFixture[bytes], *words: str) -> tuple[int, str, str]:
    code = main(["-C", str(project), "journal", *words])
    said = capsysbinary.readouterr()
    return code, said.out.decode(), said.err.decode()


def rewritten(state: Path, change: Callable[[records.Entry], records.Entry]) -> None:
    """Write the whole journal anew, good in itself, as whoever may write its folder can."""
    old = [batch.entries for batch in batches(state / "journal")]
    shutil.rmtree(state / "journal")
    shutil.rmtree(state / "snapshots", ignore_errors=True)
    fresh = Journal.open(state, old[0][0].at, SMALL)
    for entries in old:
        fresh.append_now([change(replace(one, seq=fresh.next_seq + at)) for at, one in enumerate(entries)])
    fresh.close()


def test_a_journal_that_was_written_anew_does_not_hold_the_head_of_before(
    project: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    state = state_of(project)
    rewritten(state, lambda entry: entry)
    before = head(state / "journal")
    seq = int(before.partition(":")[0])
    assert run(project, capsysbinary, "verify", "--head", before)[0] == 0
    assert before in run(project, capsysbinary, "verify")[1]
    begun = Journal.open(state, T0, SMALL)
    assert begun.head == before
    begun.append_now([records.Entry(begun.next_seq, T0, DaemonStopped("it was told to"))])
    assert begun.head == head(state / "journal") != before
    begun.close()
    assert run(project, capsysbinary, "verify", "--head", before)[0] == 0, "what came later changes nothing"
    rewritten(state, lambda entry: replace(entry, at=entry.at + timedelta(1)) if entry.seq == seq - 1 else entry)
    assert run(project, capsysbinary, "verify")[0] == 0, "it is good in itself"
    code, said, _ = run(project, capsysbinary, "verify", "--head", before)
    assert (code, "it was changed since" in said) == (1, True)
    assert run(project, capsysbinary, "verify", "--head", f"{seq + 999}:{'0' * 32}")[0] == 1
    assert run(project, capsysbinary, "verify", "--head", "x")[0] == 2


def test_the_head_is_told_where_others_keep_it() -> None:
    told = message_of((Notice(7, T0, "waiting", "It waits"),), "i", "k", head="7:ab")
    assert (told.as_json("p")["journal"], told.text.splitlines()[-1]) == ("7:ab", "(journal 7:ab)")
    landed = with_trailers("Land it", Candidate("t-1", "ashep/t-1", "c0ffee", "main", journal="7:ab"))
    assert landed.endswith("\nAshep-Head: c0ffee\nAshep-Journal: 7:ab\n")


def flip(path: Path, line: int) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    raw = lines[line - 1]
    lines[line - 1] = raw[:20] + bytes([raw[20] ^ 1]) + raw[21:]
    path.write_bytes(b"".join(lines))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_good_journal_is_said_to_be_good(project: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    folder = state_of(project) / "journal"
    files = journal_files(folder)
    assert archived(folder)
    before = contents(project)
    code, out, _ = run(project, capsysbinary, "verify", "--json")
    told = json.loads(out)
    batches_there = list(batches(folder))
    with opened(state_of(project)) as journal:
        last = journal.position.seq
    assert code == 0
    assert told == {
        "damaged": None, "first": 1, "last": last, "batches": len(batches_there),
        "entries": sum(len(batch.entries) for batch in batches_there), "files": len(files),
        "archived": len(archived(folder)), "torn": 0, "head": head(folder), "contains": None,
    }  # fmt: skip
    with files[-1].open("ab") as file:
        file.write(b"half a line")
    code, out, _ = run(project, capsysbinary, "verify")
    assert code == 0
    assert f"records 1 to {told['last']}: " in out
    assert "11 bytes behind the last batch" in out
    files[-1].write_bytes(files[-1].read_bytes()[:-11])
    assert contents(project) == before


@pytest.mark.promise("J12")
@pytest.mark.parametrize("place", ["archived", "sealed", "last"])
def test_damage_is_told_with_file_and_line(
    project: Path, capsysbinary: pytest.CaptureFixture[bytes], place: str
) -> None:
    folder = state_of(project) / "journal"
    with opened(state_of(project), SMALL._replace(file=1 << 20)) as journal:
        for _ in range(3):
            journal.append_now([records.Entry(journal.next_seq, T0, JournalPruned(1, ()))])
    files = journal_files(folder)
    path = {"archived": archived(folder)[1], "sealed": files[-3], "last": files[-1]}[place]
    flip(path, 3)
    code, out, err = run(project, capsysbinary, "verify")
    assert (code, out) == (1, "")
    assert f"{path}:3: the checksum does not match" in err
    code, out, _ = run(project, capsysbinary, "verify", "--json")
    told = json.loads(out)
    assert (code, told["file"], told["line"]) == (1, str(path), 3)


def test_work_on_a_damaged_journal_ends_with_file_line_and_remedy(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from ashep.config.starter import write_starter

    write_starter(project / FOLDER)
    path = journal_files(state_of(project) / "journal")[-3]
    flip(path, 4)
    before = contents(project)
    assert main(["-C", str(project), "work"]) == 65
    err = capsys.readouterr().err
    assert f"{path}:4: the checksum does not match" in err
    assert "Restore the folder" in err
    assert "verify --salvage" in err
    after = contents(project)
    after.pop(f"{FOLDER}/state/lock")
    before.pop(f"{FOLDER}/state/lock", None)
    assert after == before


# --- salvage ----------------------------------------------------------------------------------------------------------


@pytest.mark.promise("J12")
@pytest.mark.parametrize(("number", "line"), [(0, 1), (0, 3), (3, 4), (-2, 1)])
def test_a_salvage_saves_all_that_can_be_read(
    project: Path, capsysbinary: pytest.CaptureFixture[bytes], number: int, line: int
) -> None:
    state = state_of(project)
    blobs = Blobs(state / "blobs")
    good, bad = (snapshots.sha256(text).hexdigest() for text in (b"good", b"bad"))
    for name, text in ((good, b"good"), (bad, b"good")):
        blobs.path(name).parent.mkdir(parents=True)
        blobs.path(name).write_bytes(text)
    everything = {entry.seq for batch in batches(state / "journal") for entry in batch.entries}
    path = journal_files(state / "journal")[number]
    flip(path, line)
    before = contents(project)
    target = project / "saved"
    code, out, _ = run(project, capsysbinary, "verify", "--salvage", str(target))
    assert code == 1
    assert f"left out: {path}:{line} cannot be read" in out
    assert f"left out: the text {bad}" in out
    assert {name: data for name, data in contents(project).items() if not name.startswith("saved")} == before
    rest = [json.loads(raw)["seq"] for raw in (target / "rest.jsonl").read_bytes().splitlines()]
    saved: list[int] = []
    if (target / "journal").exists() and any((target / "journal").iterdir()):
        with opened(target) as journal:  # it can be gone on with
            saved = [entry.seq for entry in entries_of(journal.batches())]
            assert journal.cut == 0
    damaged_entry = everything - {*saved} - {*rest}
    assert len(damaged_entry) <= 1, "nothing but the line itself is lost"
    assert not {*saved} & {*rest}
    assert Blobs(target / "blobs").text(good) == "good"
    assert not Blobs(target / "blobs").path(bad).exists()


def test_a_salvage_writes_into_an_empty_folder_only(project: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    (project / "full").mkdir()
    (project / "full" / "x").write_text("mine")
    for target in (project / "full", project / "full" / "x", state_of(project) / "journal" / "new"):
        code, _, err = run(project, capsysbinary, "verify", "--salvage", str(target))
        assert code == 2, err
    assert (project / "full" / "x").read_text() == "mine"
    assert not (state_of(project) / "journal" / "new").exists()


def test_a_salvage_of_a_good_journal_is_a_copy(
    project: Path, made: tuple[Path, World], capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    code, out, _ = run(project, capsysbinary, "verify", "--salvage", str(project / "saved"), "--json")
    assert (code, json.loads(out)["damage"]) == (0, "")
    assert recovered(project / "saved")[0] == made[1]
    assert not (project / "saved" / "rest.jsonl").exists()


# --- export -----------------------------------------------------------------------------------------------------------


def exported(project: Path, capsysbinary: pytest.CaptureFixture[bytes], *words: str) -> list[dict[str, Any]]:
    code, out, _ = run(project, capsysbinary, "export", *words)
    assert code == 0
    assert out.isascii()
    return [json.loads(line) for line in out.splitlines()]


def test_every_record_is_exported_but_for_the_secret(project: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    entries = [entry for batch in batches(state_of(project) / "journal") for entry in batch.entries]
    told = exported(project, capsysbinary)
    assert [line["seq"] for line in told] == [entry.seq for entry in entries]
    assert told[0]["type"] == "JournalBegun"
    assert "secret" not in told[0]
    issue = next(entry.body.issue for entry in entries if isinstance(entry.body, IssueSeen))
    about = exported(project, capsysbinary, "--issue", issue)
    assert [line["seq"] for line in about] == [
        entry.seq for entry in entries if getattr(entry.body, "issue", None) == issue
    ]
    since = entries[len(entries) // 2].seq
    assert [line["seq"] for line in exported(project, capsysbinary, "--since", str(since))] == [
        entry.seq for entry in entries if entry.seq >= since
    ]


# --- prune ------------------------------------------------------------------------------------------------------------


def test_pruning_says_first_what_would_go(project: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    before = contents(project)
    code, out, _ = run(project, capsysbinary, "prune")
    assert code == 0
    assert "would delete" in out
    assert "--yes" in out
    assert contents(project) == before


@pytest.mark.promise("J11")
def test_a_pruned_journal_knows_the_same_and_says_where_it_begins(
    project: Path, made: tuple[Path, World], capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    state = state_of(project)
    files = archived(state / "journal")
    code, out, _ = run(project, capsysbinary, "prune", "--yes", "--json")
    told = json.loads(out)
    assert (code, told["deleted"], told["files"]) == (0, True, [path.name for path in files])
    assert archived(state / "journal") == []
    first = told["first"]
    assert first == int(journal_files(state / "journal")[0].stem)
    shutil.rmtree(state / "snapshots")  # nothing but what stands for the pruned part is left
    world, _ = recovered(state)
    again = {name: getattr(world, name) for name in ("flows", "instance", "policies", "ready", "indexes")}
    assert again == {name: getattr(made[1], name) for name in again}
    last = [batch.entries for batch in batches(state / "journal")][-1]
    assert [entry.body for entry in last] == [JournalPruned(first, tuple(path.name for path in files))]
    code, out, _ = run(project, capsysbinary, "verify")
    assert (code, f"what precedes record {first} was pruned" in out) == (0, True)
    assert exported(project, capsysbinary)[0]["seq"] == first + 1
    made_again = Replay()
    list(replay(state, made_again))
    assert made_again.world == folded(state)
    with opened(state) as journal:
        Store.open(state, journal).close()
        assert journal.begun is not None
        assert journal.begun.instance == made[1].instance
    assert run(project, capsysbinary, "prune", "--yes")[1] == "there is nothing in the archive\n"


@pytest.mark.promise("J11")
def test_a_text_that_nothing_names_any_more_goes_with_the_archive(
    project: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    blobs = Blobs(state_of(project) / "blobs")
    gone = anyio.run(blobs.keep, "nothing names it")
    with opened(state_of(project)) as journal:
        named = anyio.run(blobs.keep, "a record names it")
        body = CriteriaAdopted("t-0", "", named)
        journal.append_now([records.Entry(journal.next_seq, T0, body)])
    told = json.loads(run(project, capsysbinary, "prune", "--yes", "--json")[1])
    assert (told["texts"], blobs.has(gone), blobs.has(named)) == (1, False, True)


@pytest.mark.promise("J11")
def test_what_is_not_kept_is_said_where_people_look_for_it(
    project: Path, made: tuple[Path, World], capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    def look(*words: str) -> tuple[int, str, str]:
        code = main(["-C", str(project), *words])
        said = capsysbinary.readouterr()
        return code, said.out.decode(), said.err.decode()

    issue = min(made[1].flows)
    assert json.loads(look("status", "--json")[1])["daemon"]["journal"] is None
    assert "not kept" not in look("status")[1] + look("why", issue)[1]
    first = json.loads(run(project, capsysbinary, "prune", "--yes", "--json")[1])["first"]
    told = json.loads(look("status", "--json")[1])["daemon"]["journal"]
    assert told["first"] == first
    assert told["since"] is not None
    assert "are not kept (`ashep journal verify`)" in look("status")[1]
    code, out, _ = look("why", issue)
    assert (code, "is not kept" in out, "now:" in out) == (0, True, True)
    assert json.loads(look("why", issue, "--json")[1])["kept_since"] == told["since"]
    code, _, err = look("show", "t-0/implement.1.99")
    assert (code, f"of those before record {first} nothing is kept" in err) == (1, True)
    assert look("runs", issue)[0] == 0


def test_a_journal_is_pruned_twice(project: Path, made: tuple[Path, World]) -> None:
    state = state_of(project)
    for keep in (20_000, 8_000):
        archive(state / "journal", keep)
        with opened(state) as journal:
            assert prune(journal, T0).files
        shutil.rmtree(state / "snapshots", ignore_errors=True)
        assert recovered(state)[0].flows == made[1].flows


@pytest.mark.promise("J11")
@pytest.mark.parametrize("step", ["before anything", "fact", "snapshot", "first file"])
def test_pruning_that_was_interrupted_can_be_done_again(
    project: Path, made: tuple[Path, World], step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = state_of(project)
    shutil.rmtree(state / "snapshots")

    def fails(*_: object) -> None:
        raise OSError(5, "the machine went away")

    unlink, unlinked = Path.unlink, list[Path]()

    def second_fails(path: Path) -> None:
        if path.suffix == ".jsonl" and len(unlinked) == (1 if step == "first file" else 0):
            raise OSError(5, "the machine went away")
        unlinked.append(path)
        unlink(path)

    with monkeypatch.context() as patch:
        if step == "before anything":
            patch.setattr(journal_prune, "_folded", fails)
        elif step == "fact":
            patch.setattr(snapshots, "write", fails)
        else:
            patch.setattr(Path, "unlink", second_fails)
        with opened(state) as journal, pytest.raises(DiskFailed, match="can be done again"):
            prune(journal, T0)
    assert recovered(state)[0].flows == made[1].flows
    with opened(state) as journal:
        assert prune(journal, T0).files
    assert archived(state / "journal") == []
    assert (state / "journal" / BASE).exists()
    assert recovered(state)[0].flows == made[1].flows


def test_nothing_is_pruned_under_a_running_daemon(project: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    before = contents(project / FOLDER / "state" / "journal")
    with Lock.acquire(state_of(project), T0):
        code, _, err = run(project, capsysbinary, "prune", "--yes")
    assert (code, "another daemon holds" in err) == (3, True)
    assert contents(project / FOLDER / "state" / "journal") == before


def test_without_a_journal_that_is_said(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    (tmp_path / FOLDER).mkdir()
    for command in ("verify", "export", "prune"):
        code, out, err = run(tmp_path, capsysbinary, command)
        assert (code, out) == (1, "")
        assert "there is no journal yet" in err
