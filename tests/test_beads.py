"""What the Beads adapter survives of bd: lies, failures, timeouts, stopped processes. Beside the conformance suite.

A fake bd tells only what the real one was seen to tell: each cites its line of facts/beads.md.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from ashep.adapters.beads import BeadsTracker
from ashep.adapters.system import programs
from ashep.core.facts.tracker import NewIssue, Stamp
from ashep.errors import ClaimLost, TrackerMissing, TrackerUnavailable
from ashep.extras.testing.worlds import ACTOR
from ashep.ports.tracker import ClaimRequest, Creation, Look, PartialSnapshot, Update
from tests import databases
from tests.conformance.trackers import Beads, BeadsWorld

pytestmark = pytest.mark.slow  # starts programs that lie and hang

STAMP = Stamp("instance-1", 7, run="t-1/implement.1.1")
CLAIM = ClaimRequest("t-1", STAMP)
UPDATE = Update("t-1", "open", None, STAMP, "blocked", None, ("phase:a",))
HELP = "Manage issue labels\n\nUsage:\n  bd label [command]\n"
NO_DATABASE = "Error: no beads database found\nHint: run 'bd where' to inspect the resolved workspace\n"
GATE = "Error: a maintenance operation is running on this workspace; retry when it completes\n"
UNKNOWN = '{"error":"no issues found matching the provided IDs","schema_version":1}'


def row(**changes: Any) -> str:
    """What bd prints of an issue, in an array."""
    issue: dict[str, Any] = {
        "id": "t-1", "title": "Work", "status": "open", "priority": 2, "issue_type": "task",
        "created_at": "2026-01-02T03:04:05Z",
    }  # fmt: skip
    return json.dumps([issue | changes])


def stamped(seq: int, instance: str = STAMP.instance) -> dict[str, Any]:
    return {"ashep": {"instance": instance, "seq": seq}}


class Fake:
    """A program `bd` that answers by the word after `--actor`; unless told otherwise, `t-1` is an open issue."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = folder / "bd"
        self.program.write_text(
            "#!/bin/sh\n"
            'cd "$(dirname "$0")"\nprintf "%s\\n" "$*" >>log\nenv >environment\n'
            '[ -f "$2.sh" ] && . "./$2.sh"\n'
            'cat "$2.out"; cat "$2.err" >&2; exit "$(cat "$2.rc")"\n'
        )
        self.program.chmod(0o755)
        self.says("version", '{"version":"1.3.0"}')
        self.says("where", '{"path":"/x/.beads","prefix":"t"}')
        self.says("config", '{"value":"t"}')
        self.says("list", row())
        self.says("show", row())
        self.says("ready", row())

    def says(self, subcommand: str, out: str = "", err: str = "", rc: int = 0, first: str = "") -> None:
        """Let a subcommand answer this; `first`: lines of shell that it runs before."""
        for suffix, text in (("out", out), ("err", err), ("rc", str(rc)), ("sh", first)):
            (self.folder / f"{subcommand}.{suffix}").write_text(text)

    def hangs(self, subcommand: str) -> None:
        """Let a subcommand start a child and never end."""
        self.says(subcommand, first="sleep 600 & echo $! >>children\necho $$ >>children\nwait\n")

    def children(self) -> list[int]:
        return [int(line) for line in (self.folder / "children").read_text().split()]

    def tracker(self, timeout: float = 20) -> BeadsTracker:
        return BeadsTracker(self.folder, (str(self.program),), ACTOR, timeout)


@pytest.fixture
def fake(tmp_path: Path) -> Fake:
    return Fake(tmp_path)


def alive(pid: int) -> bool:
    """Whether a process is there and no zombie (an orphan's zombie is its new parent's affair)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


# --- is it there? ---


async def test_a_missing_program_is_unmistakable(tmp_path: Path) -> None:
    tracker = BeadsTracker(tmp_path, (str(tmp_path / "nothing"),), ACTOR, 5)
    with pytest.raises(TrackerMissing, match="nothing"):
        await tracker.check()


@pytest.mark.parametrize("version", ["1.2.9", "0.99.0", "v1.2.0-rc1"])
async def test_an_old_bd_is_unmistakable(fake: Fake, version: str) -> None:
    fake.says("version", json.dumps({"version": version}))
    with pytest.raises(TrackerMissing, match="too old"):
        await fake.tracker().check()


@pytest.mark.parametrize("version", ["1.3.0", "1.10.0", "2.0.0", "v1.4.1-dev"])
async def test_a_newer_bd_will_do(fake: Fake, version: str) -> None:
    fake.says("version", json.dumps({"version": version}))
    assert (await fake.tracker().check()).version == version


@pytest.mark.parametrize(
    ("subcommand", "out", "err", "rc"),
    [
        ("version", HELP, "", 0),  # facts/beads.md 8: help with exit 0
        ("version", '{"version":"next"}', "", 0),
        ("version", "", "panic: runtime error", 2),
        ("where", "", "Error: loading config: parsing config: unexpected end of JSON input", 1),
        ("where", "", 'Error: issue "no beads database found" is in the way', 1),
    ],
)
async def test_any_other_trouble_may_pass(fake: Fake, subcommand: str, out: str, err: str, rc: int) -> None:
    fake.says(subcommand, out, err, rc)
    with pytest.raises(TrackerUnavailable):
        await fake.tracker().check()


@pytest.mark.promise("E3")
async def test_another_bd_in_its_place_is_noticed_and_asked_for_its_version_once(fake: Fake) -> None:
    tracker, program = fake.tracker(), fake.program.read_text()
    assert (await tracker.check()).version == "1.3.0"
    for _ in range(3):
        assert (await tracker.look()).version == "1.3.0"
    assert tracker.calls["version"] == 1
    fake.says("version", '{"version":"1.4.0"}')
    fake.program.unlink()
    with pytest.raises(TrackerUnavailable, match=r"bd-fake|is not on PATH"):
        await tracker.look()
    with pytest.raises(TrackerUnavailable):
        await tracker.claim(ClaimRequest("t-1", Stamp("i", 1)))
    fake.program.write_bytes(b"\x7fELF half of it")
    fake.program.chmod(0o755)
    with pytest.raises(TrackerUnavailable):
        await tracker.look()
    fake.program.write_text(program)
    looks = [await tracker.look() for _ in range(3)]
    assert {one.version for one in looks} == {"1.4.0"}
    assert (await tracker.check()).tried == programs.BD_VERSION
    assert tracker.calls["version"] == 1 + 3 + 1, "and once while it could not begin, with two more tries"
    fake.says("version", '{"version":"1.2.9"}')
    fake.program.touch()
    with pytest.raises(TrackerUnavailable, match="too old"):
        await tracker.look()
    fake.says("version", '{"version":"1.4.0"}')
    assert (await tracker.look()).version == "1.4.0"


async def test_no_database_is_unmistakable(fake: Fake) -> None:
    fake.says("where", '{"error":"no_beads_directory","message":"No active beads workspace found."}', rc=1)
    with pytest.raises(TrackerMissing, match="run `bd init`"):
        await fake.tracker().check()
    fake.says("list", err=NO_DATABASE, rc=1)
    with pytest.raises(TrackerMissing):
        await fake.tracker().look()


# --- looks that are no looks ---


@pytest.mark.promise("E7")
@pytest.mark.parametrize(
    ("subcommand", "out", "rc"),
    [
        ("list", HELP, 0),  # facts/beads.md 8
        ("ready", HELP, 0),
        ("list", "", 0),
        ("list", "null", 0),
        ("list", row()[:-40], 0),
        ("list", row(status=None), 0),
        ("list", row(), 2),
        ("ready", '{"error":"a maintenance operation is running on this workspace"}', 1),  # facts/beads.md 7
    ],
)
async def test_an_implausible_look_is_none(fake: Fake, subcommand: str, out: str, rc: int) -> None:
    fake.says(subcommand, out, rc=rc)
    with pytest.raises(TrackerUnavailable) as caught:
        await fake.tracker().look()
    assert not caught.value.unknown


@pytest.mark.promise("S1")
@pytest.mark.parametrize(("odd", "why"), [({}, "`bd list` hides it"), ({"is_template": True}, "a template in bd")])
async def test_what_is_ready_and_not_listed_is_held_and_hides_no_other(
    fake: Fake, odd: dict[str, Any], why: str
) -> None:
    fake.says("ready", json.dumps([*json.loads(row()), *json.loads(row(id="t-2", **odd))]))
    tracker = fake.tracker()
    for _ in range(3):
        look = await tracker.look()
        assert (look.ready, look.unread) == (("t-1",), ())
        hidden = {view.issue.id: view.issue.hidden for view in look.issues}
        assert (hidden["t-1"], why in hidden["t-2"]) == ("", True)
    assert tracker.calls["list"] == (3 if odd else 4), "once more at first, where the reason is not known"
    fake.says("list", "[]")
    assert [view.issue.id for view in (await tracker.look()).issues] == ["t-1", "t-2"], (
        "nothing else is listed any more"
    )


async def test_what_is_created_between_the_reads_is_not_hidden(fake: Fake) -> None:
    both = json.dumps([*json.loads(row()), *json.loads(row(id="t-2"))])
    fake.says("ready", both, first=f"cat >list.out <<'end'\n{both}\nend\n")
    look = await fake.tracker().look()
    assert (look.ready, [view.issue.hidden for view in look.issues]) == (("t-1", "t-2"), ["", ""])


async def test_a_row_of_the_list_that_cannot_be_read_hides_no_other(fake: Fake) -> None:
    fake.says("list", json.dumps([*json.loads(row()), *json.loads(row(id="t-2", created_at="soon"))]))
    fake.says("show", row(created_at="soon"))
    tracker = fake.tracker()
    look = await tracker.look()
    assert ([view.issue.id for view in look.issues], [issue for issue, _ in look.unread]) == (["t-1"], ["t-2"])
    with pytest.raises(TrackerUnavailable, match="at created_at"):
        await tracker.issue("t-1")


async def test_an_issue_that_changed_between_the_reads_is_not_ready(fake: Fake) -> None:
    fake.says("list", row(status="in_progress"))
    look = await fake.tracker().look()
    assert (look.ready, [one.issue.status for one in look.issues]) == ((), ["in_progress"])


@pytest.mark.parametrize("metadata", [
    None, "text", [], {"ashep": None}, {"ashep": "{"}, {"ashep": {"instance": 1}}, {"ashep": [1]}, {"ashep": 7},
    {"ashep": {"instance": "a\x1b", "seq": 1}},
])  # fmt: skip
async def test_a_stamp_that_cannot_be_read_is_none(fake: Fake, metadata: object) -> None:
    fake.says("list", row(metadata=metadata))
    [seen] = (await fake.tracker().look()).issues
    assert seen.issue.stamp is None


async def test_a_stamp_is_read_as_an_object_or_as_text(fake: Fake) -> None:
    for value in (stamped(3)["ashep"], json.dumps(stamped(3)["ashep"])):  # --metadata and --set-metadata
        fake.says("list", row(metadata={"ashep": value, "other": 1}))
        [seen] = (await fake.tracker().look()).issues
        assert seen.issue.stamp == Stamp("instance-1", 3)


# --- writes whose answer is none ---


@pytest.mark.promise("E6")
@pytest.mark.parametrize("answer", [HELP, "", "[]", row(id="t-12"), row(status="blocked"), row(metadata=stamped(7))])
async def test_an_answer_that_does_not_show_the_write_costs_one_read(fake: Fake, answer: str) -> None:
    fake.says("update", answer)
    tracker = fake.tracker()
    await tracker.look()
    with pytest.raises(TrackerUnavailable) as caught:
        await tracker.update(UPDATE)
    assert not caught.value.unknown  # the read showed that it is not done
    assert (tracker.calls["update"], tracker.calls["show"]) == (1, 1)


@pytest.mark.parametrize("metadata", [stamped(7), stamped(8)])
async def test_our_stamp_tells_that_a_write_landed(fake: Fake, metadata: dict[str, Any]) -> None:
    tracker = fake.tracker(timeout=0.5)
    await tracker.look()
    fake.hangs("update")
    fake.says("show", row(metadata=metadata, status="closed"))  # a person closed it since
    seen = await tracker.update(UPDATE)
    assert seen.issue.status == "closed"


@pytest.mark.parametrize("metadata", [None, stamped(6), stamped(7, "instance-2")])
async def test_without_our_stamp_a_write_did_not_land(fake: Fake, metadata: dict[str, Any] | None) -> None:
    tracker = fake.tracker(timeout=0.5)
    await tracker.look()
    fake.hangs("update")
    fake.says("show", row(metadata=metadata))
    for write in (tracker.update(UPDATE), tracker.claim(CLAIM), tracker.relabel("t-1", ("a",), ())):
        with pytest.raises(TrackerUnavailable) as caught:
            await write
        assert not caught.value.unknown


async def test_a_write_that_cannot_be_read_back_is_unknown_and_leaves_no_process(fake: Fake) -> None:
    tracker = fake.tracker(timeout=0.5)
    await tracker.look()
    for subcommand in ("update", "comment", "create", "show"):
        fake.hangs(subcommand)
    creation = Creation("t-2", NewIssue("x"), "t-1", STAMP)
    writes = (
        tracker.update(UPDATE), tracker.claim(CLAIM), tracker.relabel("t-1", ("a",), ()),
        tracker.comment("t-1", "text", "<!-- ashep:1 -->"), tracker.create(creation),
    )  # fmt: skip
    for write in writes:
        await tracker.look()  # the failed read forgot the issue
        with pytest.raises(TrackerUnavailable) as caught:
            await write
        assert caught.value.unknown
    children = fake.children()
    assert len(children) == 4 * len(writes)
    assert not any(map(alive, children))


async def test_a_cancelled_call_leaves_no_process(fake: Fake) -> None:
    fake.hangs("list")
    with anyio.move_on_after(1):
        await fake.tracker().look()
    assert fake.children()
    assert not any(map(alive, fake.children()))


STARTER = """
import sys
from pathlib import Path
import anyio
from ashep.adapters.beads import BeadsTracker
folder, program, actor = sys.argv[1:]
anyio.run(BeadsTracker(Path(folder), (program,), actor, 600).look)
"""


@pytest.mark.promise("E6")
async def test_what_a_killed_ashep_left_is_ended_before_anything_is_probed(fake: Fake) -> None:
    """facts/beads.md 7: a bd goes on without who started it. Another actor's does, too, and what a bd has started."""
    fake.hangs("list")
    for actor in (ACTOR, "ashep-other"):
        argv = [sys.executable, "-c", STARTER, str(fake.folder), str(fake.program), actor]
        (fake.folder / "children").touch()
        before = len(fake.children())
        async with await anyio.open_process(argv) as starter:
            with anyio.fail_after(60):
                while len(fake.children()) < before + 2:
                    await anyio.sleep(0.05)
            starter.kill()
    child, ours, others_child, others = fake.children()
    assert all(map(alive, (child, ours, others_child, others)))
    await fake.tracker().settle()
    assert [alive(pid) for pid in (ours, others)] == [False, True]
    for pid in (child, others_child, others):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


async def test_a_write_that_did_not_begin_needs_no_read(fake: Fake) -> None:
    tracker = fake.tracker()
    await tracker.look()
    for subcommand in ("update", "comment", "create"):
        fake.says(subcommand, err=GATE, rc=1)  # facts/beads.md 7
    creation = Creation("t-2", NewIssue("x"), "t-1", STAMP)
    for write in (tracker.update(UPDATE), tracker.comment("t-1", "text", "m"), tracker.create(creation)):
        with pytest.raises(TrackerUnavailable) as caught:
            await write
        assert not caught.value.unknown
    assert tracker.calls["show"] == 0


async def test_a_name_cannot_change_what_an_error_means(fake: Fake) -> None:
    tracker = fake.tracker()
    await tracker.look()
    name = "x\nError: no beads database found"
    failed = {
        "error": "1 of 1 issues failed",
        "failed": [{"error": f"updating issue: issue already claimed by {name}"}],
    }
    fake.says("update", err=f"Error updating t-1: issue already claimed by {name}\n{json.dumps(failed)}\n", rc=1)
    with pytest.raises(ClaimLost):
        await tracker.claim(CLAIM)


async def test_the_environment_is_ours(fake: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BD_JSON_ENVELOPE", "1")  # facts/beads.md 2
    monkeypatch.setenv("BEADS_ACTOR", "person")
    monkeypatch.delenv("GOMEMLIMIT", raising=False)
    await fake.tracker().look()
    environment = (fake.folder / "environment").read_text().splitlines()
    assert not any(line.startswith("BD_JSON_ENVELOPE") for line in environment)
    for line in ("BD_DISABLE_METRICS=1", "BD_NON_INTERACTIVE=1", "BD_NO_PAGER=1", f"BEADS_ACTOR={ACTOR}"):
        assert line in environment
    assert "GOMEMLIMIT=1GiB" in environment, "what bd may hold has a bound"
    assert all(line.startswith(f"--actor={ACTOR} ") for line in (fake.folder / "log").read_text().splitlines())


# --- the real bd ---


@pytest.fixture
def world(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> BeadsWorld:
    beads = Beads.make(tmp_path_factory.getbasetemp() / "beads")
    monkeypatch.setenv("HOME", str(beads.home))
    return BeadsWorld(beads, tmp_path / "project")


@pytest.mark.real
async def test_each_operation_is_one_process_and_a_look_two(world: BeadsWorld) -> None:
    issue = world.add("Work")
    tracker = world.tracker
    await tracker.look()
    assert tracker.calls == {"list": 1, "ready": 1}
    await tracker.claim(ClaimRequest(issue, STAMP, ("a",)))
    await tracker.update(Update(issue, "in_progress", ACTOR, Stamp("i", 8), "blocked", None, ("b",), ("a",)))
    await tracker.relabel(issue, ("c",), ())
    await tracker.comment(issue, "text", "<!-- ashep:1 -->")
    await tracker.create(Creation("t-abcd2345", NewIssue("x", "y"), issue, STAMP, parked=True, labels=("l",)))
    assert tracker.calls == {"list": 1, "ready": 1, "update": 3, "comment": 1, "create": 1}
    await tracker.issue(issue)
    await tracker.changes(issue)
    assert tracker.calls == {"list": 1, "ready": 1, "update": 3, "comment": 1, "create": 1, "show": 1, "history": 1}


FAILS = '#!/bin/sh\nread next <{folder}/fails; sed -i 1d {folder}/fails\n[ "$next" = no ] || exit 1\nexec {bd} "$@"\n'


@pytest.mark.promise("E3")
@pytest.mark.real
async def test_looks_go_on_where_nearly_every_second_call_fails(world: BeadsWorld, tmp_path: Path) -> None:
    issue = world.add("Work")
    chance = random.Random(16)
    tmp_path.joinpath("fails").write_text("".join(chance.choice(["no"] * 11 + ["yes"] * 9) + "\n" for _ in range(99)))
    tmp_path.joinpath("bd").write_text(FAILS.format(folder=tmp_path, bd=world.beads.program))
    tmp_path.joinpath("bd").chmod(0o755)
    tracker = BeadsTracker(world.project, (str(tmp_path / "bd"),), ACTOR, 60)
    seen: list[tuple[int, int]] = []
    for _ in range(8):
        try:
            look = await tracker.look()
        except PartialSnapshot as half:
            look = half.look
        except TrackerUnavailable:
            look = Look((), ())
        assert {*look.ready} <= {issue}
        seen.append((len(look.issues), len(look.ready)))
    assert sum(issues for issues, _ in seen) >= 7, seen
    assert sum(ready for _, ready in seen) >= 6, seen


@pytest.mark.promise("E3")
async def test_a_read_that_failed_is_made_again_and_a_write_is_not(fake: Fake) -> None:
    tracker = fake.tracker()
    once = "[ -f {0}.failed ] || {{ touch {0}.failed; exit 2; }}\n"
    for read in ("list", "ready", "show", "history"):
        fake.says(read, row() if read != "history" else "null", first=once.format(read))
    assert (await tracker.look()).ready == ("t-1",)
    assert await tracker.issue("t-1") is not None
    await tracker.changes("t-1")
    assert {name: tracker.calls[name] for name in ("list", "ready", "show", "history")} == {
        "list": 2, "ready": 2, "show": 2, "history": 2,
    }  # fmt: skip
    fake.says("update", "", "Error: nobody knows", 1)
    with pytest.raises(TrackerUnavailable):
        await tracker.claim(CLAIM)
    assert tracker.calls["update"] == 1


@pytest.mark.promise("E3")
async def test_a_read_is_made_three_times_at_most_and_once_where_it_took_long(fake: Fake) -> None:
    fake.says("list", "", "Error: nobody knows", 1)
    tracker = fake.tracker()
    with pytest.raises(TrackerUnavailable, match="nobody knows"):
        await tracker.look()
    assert tracker.calls == {"list": 3}
    fake.hangs("list")
    hasty = fake.tracker(timeout=0.5)
    with pytest.raises(TrackerUnavailable, match=r"had not ended after 0\.5 s"):
        await hasty.look()
    assert hasty.calls == {"list": 1}


async def test_where_what_is_ready_cannot_be_read_the_issues_count(fake: Fake) -> None:
    fake.says("ready", "", "Error: nobody knows", 1)
    with pytest.raises(PartialSnapshot, match="nobody knows") as told:
        await fake.tracker().look()
    assert [one.issue.id for one in told.value.look.issues] == ["t-1"]


@pytest.mark.promise("S1")
@pytest.mark.real
async def test_texts_of_any_size_blind_no_look(world: BeadsWorld, tmp_path: Path) -> None:
    """Two issues whose descriptions print as 34 MiB each, beside one of two words."""
    words = {"t-big1": "<" * 6_000_000, "t-big2": "<" * 6_000_000, "t-small": "two words"}  # each prints as \\u003c
    row = {"issue_type": "task", "status": "open", "acceptance_criteria": "it works"}
    rows = [row | {"id": issue, "title": issue, "description": text} for issue, text in words.items()]
    tmp_path.joinpath("big.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    world.bd("person", "import", str(tmp_path / "big.jsonl"), "--json")
    look = await world.tracker.look()
    assert ({*look.ready}, {one.issue.id for one in look.issues}) == ({*words}, {*words})
    claimed = [await world.tracker.claim(ClaimRequest(issue, STAMP, ("phase:a",))) for issue in sorted(words)]
    assert [one.issue.labels for one in claimed] == [("phase:a",)] * 3
    assert [one.text.acceptance for one in claimed] == ["it works"] * 3
    assert [one.text.left_out for one in claimed] == [("description: 34.3 MiB",)] * 2 + [()]
    assert claimed[2].text.description == "two words"
    world.person_comments("t-big1", "person", "hello")
    shown = await world.tracker.issue("t-big1")
    assert shown is not None
    assert [one.text for one in shown.text.comments] == ["hello"]
    assert ("added", "phase:a") in [one.what for one in await world.tracker.changes("t-big1")]  # in no order: facts 9


@pytest.mark.real
async def test_other_metadata_stays(world: BeadsWorld) -> None:
    issue = world.add("Work")
    world.bd("person", "update", issue, "--set-metadata=theirs=5")
    await world.tracker.claim(ClaimRequest(issue, STAMP))
    assert json.loads(world.bd("person", "show", issue, "--json"))[0]["metadata"]["theirs"] == 5


@pytest.mark.real
async def test_issues_without_history_are_listed_and_ephemeral_ones_are_not(world: BeadsWorld) -> None:
    kept = world.bd("person", "create", "--title=x", "--no-history", "--silent").strip()
    world.bd("person", "create", "--title=y", "--ephemeral", "--silent")
    look = await world.tracker.look()
    assert (look.ready, [one.issue.id for one in look.issues]) == ((kept,), [kept])


@pytest.mark.promise("S1")
@pytest.mark.real
async def test_a_formula_that_is_kept_as_a_proto_is_hidden_and_hides_no_other(world: BeadsWorld) -> None:
    """facts/beads.md 5. The statuses and types are an owner's own."""
    steps = [{"id": "a", "title": "Do A"}, {"id": "b", "title": "Do B", "depends_on": ["a"]}]
    formula = {"formula": "mol-x", "description": "x", "version": 1, "type": "workflow", "steps": steps}
    (world.project / "x.formula.json").write_text(json.dumps(formula))
    world.bd("person", "config", "set", "status.custom", "triage:active,shipped:done")
    world.bd("person", "config", "set", "types.custom", "story")
    world.bd("person", "cook", "x.formula.json", "--persist")
    issue = world.add("Work", type="story", labels=("human",))
    for status in ("triage", "shipped"):
        world.person_sets(world.add(status), "person", status=status)
    look = await world.tracker.look()
    assert (look.ready, look.unread) == ((issue,), ())
    rows = {(view.issue.id, view.issue.status, bool(view.issue.hidden)) for view in look.issues}
    assert {row[1:] for row in rows if row[0] not in (issue, "mol-x.a")} == {("triage", False)}
    assert {(issue, "open", False), ("mol-x.a", "open", True)} < rows


@pytest.mark.promise("E7")
@pytest.mark.real
async def test_a_damaged_store_is_not_an_empty_one(world: BeadsWorld) -> None:
    shutil.rmtree(world.project / ".beads")  # a folded one that is cut is what it was before (facts/beads.md 8)
    world.bd("person", *databases.init("t"))
    issue = world.add("Work")
    await world.tracker.look()
    [data] = world.project.glob(".beads/embeddeddolt/*/.dolt/noms/v*")
    os.truncate(data, 20_000)  # facts/beads.md 8: `ready` gave [] with exit 0; `show` finds nothing
    with pytest.raises(TrackerUnavailable):
        await world.tracker.look()
    with pytest.raises(TrackerUnavailable):
        await world.tracker.issue(issue)
    with pytest.raises(TrackerUnavailable):
        await world.tracker.check()


@pytest.mark.real
async def test_where_there_is_no_database(world: BeadsWorld, tmp_path: Path) -> None:
    (world.project / ".beads/embeddeddolt").rename(tmp_path / "gone")
    for read in (world.tracker.check(), world.tracker.look()):
        with pytest.raises(TrackerMissing):
            await read
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(TrackerMissing):
        await BeadsTracker(empty, (str(world.beads.program),), ACTOR, 60).check()


@pytest.mark.real
async def test_a_database_outside_of_git_can_be_used(world: BeadsWorld, tmp_path: Path) -> None:
    (world.project / ".git").rename(tmp_path / "git")
    assert (await world.tracker.check()).prefix == "t"
    assert (await world.tracker.look()).issues == ()


@pytest.mark.promise("S3")
@pytest.mark.real
async def test_of_many_actors_exactly_one_claims(world: BeadsWorld) -> None:
    issue = world.add("Work")
    winners: list[str] = []

    async def claim(actor: str) -> None:
        try:
            await world.another(actor).claim(ClaimRequest(issue, STAMP))
            winners.append(actor)
        except ClaimLost:
            pass

    async with anyio.create_task_group() as group:
        for number in range(4):
            group.start_soon(claim, f"actor-{number}")
    seen = await world.tracker.issue(issue)
    assert seen is not None
    assert winners == [seen.issue.assignee]


@pytest.mark.promise("E6")
@pytest.mark.real
async def test_a_stopped_bd_of_others_costs_a_timeout_and_no_more(world: BeadsWorld) -> None:
    issue = world.add("Work")
    begun = time.monotonic()
    await world.tracker.look()
    hasty = world.another(ACTOR, timeout=max(1, 8 * (time.monotonic() - begun)))  # what a loaded machine never needs
    stopped = await _stopped_holder(world, issue, hasty)
    try:
        with pytest.raises(TrackerUnavailable):  # facts/beads.md 7: it blocks every other bd
            await hasty.look()
    finally:
        stopped.kill()
        stopped.wait()
    assert [one.issue.id for one in (await world.tracker.look()).issues] == [issue]


async def _stopped_holder(world: BeadsWorld, issue: str, hasty: BeadsTracker) -> subprocess.Popen[bytes]:
    """Start a bd and stop it while it holds the store: the longer after its start, the slower the machine is."""
    for wait in (0.06 * 1.15**attempt for attempt in range(28)):
        holder = world.starts("comment", issue, "hi")
        await anyio.sleep(wait)
        holder.send_signal(signal.SIGSTOP)
        try:
            await hasty.issue(issue)
        except TrackerUnavailable:
            return holder
        holder.kill()
        holder.wait()
    raise AssertionError("no bd could be stopped while it held the store")


@pytest.mark.promise("E6")
@pytest.mark.real
async def test_an_answer_that_is_lost_is_read_back(world: BeadsWorld, tmp_path: Path) -> None:
    issue = world.add("Work")
    mute = tmp_path / "bd"
    mute.write_text(
        f'#!/bin/sh\ncase "$2" in show|list|ready) exec {world.beads.program} "$@";; esac\n'
        f'{world.beads.program} "$@" >/dev/null\necho panic >&2\nexit 2\n'
    )
    mute.chmod(0o755)
    tracker = BeadsTracker(world.project, (str(mute),), ACTOR, 60)
    seen = await tracker.claim(ClaimRequest(issue, STAMP, ("a",)))
    assert (seen.issue.assignee, seen.issue.stamp, seen.issue.labels) == (ACTOR, STAMP, ("a",))
    await tracker.relabel(issue, ("b",), ("a",))
    await tracker.comment(issue, "text", "<!-- ashep:1 -->")
    await tracker.create(Creation("t-abcd2345", NewIssue("x"), issue, STAMP))
    look = await world.tracker.look()
    shown = {one.issue.id: one.issue for one in look.issues}
    assert (shown[issue].labels, shown[issue].comments, shown["t-abcd2345"].stamp) == (("b",), 1, STAMP)


@pytest.mark.real
async def test_a_creation_that_is_killed_can_be_repeated(world: BeadsWorld) -> None:
    origin = world.add("Origin")
    await world.tracker.look()
    for number, timeout in enumerate((0.1, 0.15, 0.2)):
        creation = Creation(f"t-abcd234{number}", NewIssue("x"), origin, STAMP, parked=True, labels=("ashep:parked",))
        hasty = world.another(ACTOR, timeout)
        hasty._read.update(world.tracker._read)  # so that the first call is the creation
        with suppress(TrackerUnavailable):  # it may have been quick enough
            await hasty.create(creation)
        await world.tracker.create(creation)
        seen = await world.tracker.issue(creation.id)
        assert seen is not None
        assert (seen.issue.status, seen.issue.labels) == ("blocked", ("ashep:parked",))
        assert [one.type for one in seen.text.dependencies] == ["discovered-from"]


@pytest.mark.real
async def test_the_events_journal_gives_hints_where_it_is_on(world: BeadsWorld) -> None:
    world.bd("person", "config", "set", "events-journal", "true")
    issue = world.add("Before")
    await anyio.sleep(1)  # bd's times are rounded to seconds: what was just before may seem to come behind
    assert (await world.tracker.check()).journal
    hints = 0
    arrived = anyio.Event()

    async def listen() -> None:
        nonlocal hints
        async for _ in world.tracker.hints():
            hints += 1
            arrived.set()

    async with anyio.create_task_group() as group:
        group.start_soon(listen)
        await anyio.sleep(2)
        await world.tracker.claim(ClaimRequest(issue, STAMP))
        await anyio.sleep(2)
        assert hints == 0
        world.person_comments(issue, "person", "hello")
        with anyio.fail_after(60):
            await arrived.wait()
        assert world.tracker.calls["events --follow"] == 1
        group.cancel_scope.cancel()
    await world.tracker.aclose()
    followers = [path for path in Path("/proc").glob("[0-9]*/cwd") if _is_in(path, world.project)]
    assert followers == []


@pytest.mark.real
async def test_a_watch_of_the_files_ends_soon_after_it_was_told_to(world: BeadsWorld) -> None:
    async def listen() -> None:
        async for _ in world.tracker.hints():
            pass

    asked = anyio.current_time()
    async with anyio.create_task_group() as group:
        group.start_soon(listen)
        await anyio.sleep(2)
        asked = anyio.current_time()
        group.cancel_scope.cancel()
    assert anyio.current_time() - asked < 1.5, "a stop of ashep waits for the watch"


def _is_in(link: Path, folder: Path) -> bool:
    try:
        return link.readlink() == folder
    except OSError:
        return False
