"""Telling people in the whole daemon, over memory and virtual time; and the commands around it."""

import json
import sys
from collections import Counter
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import anyio
import pytest

from ashep.cli import main as command
from ashep.cli.reading import read_commands
from ashep.core.facts.issues import PersonAsked, PersonReminded
from ashep.core.facts.resources import NoticeFailed, NoticeSent, NoticesGathered, NoticesGivenUp, NoticeWanted
from ashep.core.resources.notices import AWAY, FIRST_AGAIN, TRIES
from ashep.daemon.daemon import WorkOptions
from ashep.errors import TrackerUnavailable
from ashep.store.sqlite_reader import open_read_only
from ashep.views import report
from ashep.views import status as standing
from ashep.views.times import stamp
from tests.full import half
from tests.loop_world import Points, World, policy, simulate

pytestmark = pytest.mark.virtual

NOTIFY = "version: 1\nnotify:\n  targets: [{name: pager, command: [pager]}]\n"
CHECK = {"name": "check", "capabilities": ["review"], "retry": {"max_attempts": 1}}
SIGN = {"name": "sign", "human": {"ask": "Fine?", "changes_requested": "check"}}
POLICY = policy(CHECK, SIGN)


def told(world: World) -> list[str]:
    """The texts that came, in order."""
    return [notice.text for _, message in world.notifier.told for notice in message.notices]


async def test_who_waits_is_told_once_after_the_batch(folder: Path) -> None:
    world = World(folder, policies=POLICY, config=NOTIFY, issues=3)
    await world.live(lambda: len(told(world)) == 3)
    asked = [entry.at for entry in world.journal() if isinstance(entry.body, PersonAsked)]
    sent = [entry.at for entry in world.journal() if isinstance(entry.body, NoticeSent)]
    assert timedelta(0) <= min(sent) - min(asked) - timedelta(minutes=1) <= timedelta(seconds=2)
    assert all("Fine?" in text for text in told(world))
    assert len(world.notifier.told) == len(sent)
    assert max(Counter(told(world)).values()) == 1
    world.check()


async def test_people_are_reminded_after_a_restart_too_on_the_issue_and_by_the_targets(folder: Path) -> None:
    sign = {"name": "sign", "human": SIGN["human"] | {"reminder": "1h", "deadline": "210m"}}
    world, issue = World(folder, policies=policy(CHECK, sign), config=NOTIFY, issues=1), "t-1"

    def still() -> list[str]:
        return [text for text in told(world) if "still waits for you" in text]

    await world.live(lambda: len(still()) == 1)
    await anyio.sleep(timedelta(hours=1.5).total_seconds())  # nobody runs meanwhile
    await world.live(lambda: world.stands(issue) == "parked")
    assert len(still()) == 3
    comments = [text for text in world.comments(issue) if text.startswith("Still open")]
    assert len(comments) == len(world.bodies(PersonReminded)) == 3
    world.check()


@pytest.mark.promise("N3")
@pytest.mark.slow
@pytest.mark.parametrize("lost", [False, True])
def test_whatever_crashes_each_notice_comes_and_one_that_comes_twice_says_so(folder: Path, lost: bool) -> None:
    """At each boundary of the delivery: before and after its intent, with the message sent and not, answered or not."""
    seen: list[list[bool]] = []

    async def scenario(place: Path, crash_at: int) -> None:
        world = World(place, policies=POLICY, config=NOTIFY, issues=1)
        points = Points(crash_at)
        if lost and crash_at // 2 % 2:  # of every second boundary, since those of one commit are every second
            points.lose = dict.fromkeys(range(crash_at, crash_at + 2), "after")
        if not await world.live(lambda: bool(world.bodies(NoticeSent)), points):
            await world.live(lambda: any("waits for you" in text for text in told(world)) and not waiting(world))
        texts = [text for text in told(world) if "waits for you" in text]
        messages = [message for _, message in world.notifier.told if "waits" in message.text]
        assert texts
        assert [message.again for message in messages][1:] == [True] * (len(messages) - 1)
        seen.append([message.again for message in messages])
        world.check()

    def waiting(world: World) -> bool:
        return bool(world.world.notices.wanted)

    async def clean() -> None:
        world = World(folder / "clean", policies=POLICY, config=NOTIFY, issues=1)
        points = Points()
        await world.live(lambda: bool(world.bodies(NoticeSent)), points)
        names.extend(points.names)

    names: list[str] = []
    simulate(clean)
    first = names.index("send asked") - 2
    for crash_at in half(range(first, len(names) + 1)):
        simulate(lambda crash_at=crash_at: scenario(folder / str(crash_at), crash_at))
    assert [False, True] in seen, "a message whose answer was lost is sent again, and says so"
    assert [False] in seen


@pytest.mark.promise("N4")
async def test_a_target_that_is_down_holds_nothing_up_and_is_told_in_the_end(folder: Path) -> None:
    world = World(folder, policies=POLICY, config=NOTIFY)
    world.notifier.down["pager"] = "no route to host"
    world.notifier.delay = 25.0
    names = [world.tracker.add(f"issue {number}") for number in range(4)]
    await world.live(lambda: len(world.bodies(NoticeFailed)) >= 3)
    assert all(world.stands(name) == "person" for name in names)
    failed = [entry.at for entry in world.journal() if isinstance(entry.body, NoticeFailed)]
    assert failed[1] - failed[0] >= FIRST_AGAIN + timedelta(seconds=25)
    world.tracker.person_sets(names[0], "pat", add_labels=("human:approved",))
    await world.live(lambda: world.stands(names[0]) == "closed")
    world.notifier.down.clear()
    await world.live(lambda: bool(world.notifier.told))
    assert {text.split(" ")[0] for text in told(world)} >= {*names[1:]}
    assert not any(text.startswith(names[0]) for text in told(world))
    assert len(world.notifier.told) == 1, "in one message"
    world.check()


@pytest.mark.slow
async def test_an_outage_is_told_and_the_night_goes_on(folder: Path) -> None:
    world, name = World(folder, policies=POLICY, config=NOTIFY, issues=1), "t-1"
    await world.live(lambda: name in world.world.flows and world.world.flows[name].run is not None)
    for method in ("look", "issue", "update", "comment", "commented", "heartbeat"):
        world.tracker.fail(method, TrackerUnavailable("gone"), times=10_000)
    began = world.clock.now()
    await world.live(lambda: any("the tracker is away" in text for text in told(world)))
    passed = world.clock.now() - began
    assert AWAY <= passed <= AWAY + timedelta(minutes=2)
    world.tracker._failures.clear()  # pyright: ignore[reportPrivateUsage]
    await world.live(lambda: world.stands(name) in ("person", "parked"))  # ten failures in a row park it
    assert world.world.notices.outages == ()
    assert sum("the tracker is away" in text for text in told(world)) == 1
    world.check()


@pytest.mark.promise("N2")
async def test_quiet_hours_by_the_clock(folder: Path) -> None:
    """Between 08:00 and 10:00 of the simulated machine's time nobody is told."""
    zone = world_zone()
    config = NOTIFY + f"  quiet_hours: [{{at: '0 {(8 + zone) % 24} * * *', lasts: 2h}}]\n"
    world, name = World(folder, policies=POLICY, config=config, issues=1), "t-1"
    await world.live(lambda: name in world.world.flows and world.stands(name) == "person")
    await world.live(lambda: bool(world.notifier.told))
    (gathered,) = [entry.at for entry in world.journal() if isinstance(entry.body, NoticesGathered)]
    assert (gathered.hour, gathered.minute) == (10, 0)
    world.check()


def world_zone() -> int:
    """Hours that the machine's time is ahead of UTC in the simulated winter."""
    from ashep.extras.simulation.virtual_time import EPOCH

    offset = EPOCH.astimezone().utcoffset()
    assert offset is not None
    return int(offset / timedelta(hours=1))


async def test_until_idle_tells_before_it_ends(folder: Path) -> None:
    world = World(folder, policies=POLICY, config=NOTIFY, issues=1)
    async with world.living(options=WorkOptions(until_idle=True), sources=False) as running:
        info = await world.tracker.check()
        assert await running.until(info, WorkOptions(until_idle=True), world.said.append) == 0
    assert len(told(world)) == 1


# --- how it is shown ------------------------------------------------------------------------------------------------


@pytest.mark.promise("N4")
@pytest.mark.slow
async def test_status_and_report_say_what_could_not_be_told(folder: Path) -> None:
    world = World(folder, policies=POLICY, config=NOTIFY)
    world.notifier.down["pager"] = "no route to host"
    name = world.tracker.add("first")
    await world.live(lambda: len(world.bodies(NoticeFailed)) == 2)
    world.draw()
    with closing(open_read_only(folder / "state")) as database:
        (shown,) = standing.of_daemon(database, "notices")
        status = standing.status(database, {"running": False})
        lines = report.report(database, stamp(world.clock.now() - timedelta(hours=1)), world.clock.now())
    assert (shown["target"], shown["failures"], shown["waiting"], shown["given_up"]) == ("pager", 2, 1, 0)
    (line,) = standing.untold(status, world.clock.now())
    assert line.startswith("pager is not told since ")
    assert ": no route to host; 1 to be told, tried again in " in line
    (line,) = lines["sections"]["notices"]
    failures = [entry.seq for entry in world.journal() if isinstance(entry.body, NoticeFailed)]
    assert (line["text"], line["seqs"]) == ("pager was not told, 2 times in a row: no route to host", failures)
    await world.live(lambda: bool(world.bodies(NoticesGivenUp)), patience=12 * 3600)
    (given_up,) = world.bodies(NoticesGivenUp)
    world.draw()
    with closing(open_read_only(folder / "state")) as database:
        lines = report.report(database, stamp(world.clock.now() - timedelta(hours=12)), world.clock.now())
        (shown,) = standing.of_daemon(database, "notices")
    first, second = lines["sections"]["notices"]
    assert f"pager was not told, {TRIES} times in a row" in first["text"]
    assert len(given_up.notices) == 2, "the question, and that the life before ended without a word"
    assert second["text"] == f"pager was never told 2 notices: {given_up.why}"
    assert (shown["given_up"], shown["waiting"]) == (2, 0)
    world.notifier.down.clear()
    world.tracker.person_sets(name, "pat", add_labels=("human:changes_requested",))
    other = world.tracker.add("second")
    await world.live(lambda: any(text.startswith(other) for text in told(world)))
    world.draw()
    with closing(open_read_only(folder / "state")) as database:
        assert standing.of_daemon(database, "notices") == []


def project(tmp_path: Path, *targets: object, **environ: str) -> Path:
    folder = tmp_path / ".agent-shepherd"
    world_config = {"version": 1, "notify": {"targets": [*targets]}}
    from ashep.config import write_starter

    write_starter(folder, force=True)
    (folder / "config.yaml").write_text(json.dumps(world_config))
    return tmp_path


def run(*arguments: str) -> int:
    return command([*arguments])


@pytest.mark.may_block
def test_the_command_tells_each_target_and_says_what_came_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keeps = {"name": "desk", "command": [sys.executable, "-c", "import sys; open('told','w').write(sys.stdin.read())"]}
    place = project(tmp_path, keeps)
    assert run("-C", str(place), "notify", "test") == 0
    assert capsys.readouterr().out == "desk: told\n"
    message = json.loads((tmp_path / "told").read_text())
    assert (message["test"], message["source"], message["notices"]) == (True, tmp_path.name, [])
    (tmp_path / "told").unlink()
    place = project(tmp_path, {"command": ["false"]}, keeps, {"apprise_env": "NOBODY_SET_THIS"})
    assert run("-C", str(place), "notify", "test") == 1
    out = capsys.readouterr().out.splitlines()
    assert out == [
        "command-1: not told: false ended with 1:",
        "desk: told",
        "apprise-3: not told: the environment variable NOBODY_SET_THIS holds no URL",
    ]
    assert (tmp_path / "told").exists()
    assert run("-C", str(place), "notify", "test", "--json") == 1
    assert [one["told"] for one in json.loads(capsys.readouterr().out)] == [False, True, False]
    assert run("-C", str(project(tmp_path)), "notify", "test") == 1
    assert "no `notify.targets`" in capsys.readouterr().err


def test_what_is_told_stands_in_the_story_of_the_issue(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async def scenario() -> None:
        world = World(folder, policies=POLICY, config=NOTIFY)
        name = world.tracker.add("first")
        await world.live(lambda: bool(world.bodies(NoticeWanted)))
        world.draw()
        assert read_commands.why(folder.parent, issue=name) == 0

    simulate(scenario)
    assert "people are to be told: waiting" in capsys.readouterr().out


@pytest.mark.promise("N1")
async def test_a_message_links_to_its_issue_where_the_page_is_known(folder: Path) -> None:
    world = World(folder, policies=POLICY, config=f"{NOTIFY}ui: {{origins: ['https://box.example.net']}}\n", issues=1)
    await world.live(lambda: bool(world.notifier.told))
    ((_, message),) = world.notifier.told
    (notice,) = message.as_json("p")["notices"]
    assert notice["link"] == f"https://box.example.net/issues/{notice['issue']}"
    assert message.text.splitlines()[0] == f"- {notice['text']} {notice['link']}", "which lets nobody in"
    assert "://" not in notice["text"], "what is decided knows no address"
    world.check()
