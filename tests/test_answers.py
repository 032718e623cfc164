"""What a person writes by way of ashep: the comment first, the label last, as the person, and only where asked."""

import os
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from ashep.actions.answers import (
    MOST,
    Answered,
    NotAsked,
    answer,
    answering,
    check_phase,
    find_answers,
    person,
    release,
    retry,
    say,
    take,
)  # fmt: skip
from ashep.adapters.runners.opencode.server import ServerRecord, folder_of, how_to_open
from ashep.core.facts.tracker import Stamp
from ashep.core.policy.policies import Phase, Policy
from ashep.core.policy.settings import Labels, OpencodeSettings, People, Runners, Settings, TrackerSettings
from ashep.errors import UsageError
from ashep.extras.simulation.memory.tracker import MemoryTracker
from ashep.ports.tracker import ClaimRequest, Update

AT = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
LABELS = Labels()
OURS, PERSON = "ashep-host-1", "Ann"
STAMP = Stamp("0f" * 8, 7, "t-1/implement.1.1", 1, 1, 1)


class Asked:
    """A tracker that ashep works with, the same one for a person, and an issue that is asked about."""

    def __init__(self, now: Callable[[], datetime] = lambda: AT) -> None:
        self.ours = MemoryTracker(now, OURS)
        self.person = self.ours.as_actor(PERSON)
        self.issue = self.ours.add("An issue")

    async def stands(self, status: str, *labels: str) -> None:
        """Let ashep hold the issue in this posture."""
        await self.ours.claim(ClaimRequest(self.issue, STAMP))
        await self.ours.update(Update(self.issue, "in_progress", OURS, STAMP, status, OURS, add_labels=labels))

    async def labels(self) -> set[str]:
        """The issue's labels now."""
        seen = await self.ours.issue(self.issue)
        assert seen is not None
        return set(seen.issue.labels)

    async def comments(self) -> list[tuple[str, str]]:
        """Who said what."""
        seen = await self.ours.issue(self.issue)
        assert seen is not None
        return [(comment.author, comment.text.split("\n")[0]) for comment in seen.text.comments]

    async def answer(self, *, approved: bool, comment: str | None = None, instead: str | bool = False) -> str:
        return await answer(self.person, LABELS, self.issue, approved=approved, comment=comment, at=AT, instead=instead)

    async def retry(self, **more: Any) -> None:
        values: dict[str, Any] = {"phase": None, "held": False, "comment": None, "at": AT} | more
        await retry(self.person, LABELS, self.issue, **values)


@pytest.fixture
def asked() -> Asked:
    return Asked()


@pytest.mark.promise("L4")
@pytest.mark.parametrize(("approved", "label"), [(True, "human:approved"), (False, "human:changes_requested")])
async def test_an_answer_is_a_label_by_the_person(asked: Asked, approved: bool, label: str) -> None:
    await asked.stands("blocked", "needs:human_approval", "phase:human_review")
    await asked.answer(approved=approved, comment="well done")
    assert label in await asked.labels()
    assert await asked.comments() == [(PERSON, "well done")]
    assert [(one.what, one.actor) for one in await asked.ours.changes(asked.issue)][:1] == [(("added", label), PERSON)]


async def test_the_comment_comes_before_the_label(asked: Asked) -> None:
    await asked.stands("blocked", "needs:human_approval")
    asked.person.fail("comment", UsageError("no room"))
    with pytest.raises(UsageError):
        await asked.answer(approved=True, comment="yes")
    assert "human:approved" not in await asked.labels()


@pytest.mark.promise("L4")
async def test_who_was_cut_off_behind_the_comment_says_it_again_and_it_stands_once() -> None:
    seconds = count()
    asked, label = Asked(lambda: AT + timedelta(seconds=next(seconds))), "needs:human_approval"
    await asked.stands("blocked", label)
    asked.person.fail("relabel", UsageError("the server was killed"))
    with pytest.raises(UsageError):
        await asked.answer(approved=False, comment="mind the tests")
    await asked.answer(approved=False, comment="mind the tests")
    assert await asked.comments() == [(PERSON, "mind the tests")]
    assert "human:changes_requested" in await asked.labels()
    await asked.ours.relabel(asked.issue, (), (label, "human:changes_requested"))
    await asked.ours.relabel(asked.issue, (label,), ())  # it comes back, and is as it was
    await asked.answer(approved=False, comment="mind the tests")
    assert await asked.comments() == [(PERSON, "mind the tests")] * 2


@pytest.mark.promise("L4")
@pytest.mark.parametrize("approved", [True, False])
async def test_an_opposite_answer_is_replaced_by_nobody_who_does_not_name_it(asked: Asked, approved: bool) -> None:
    """Before, the later one took the other's label off, and said nothing."""
    await asked.stands("blocked", "needs:human_approval")
    kim = asked.ours.as_actor("Kim")
    await answer(kim, LABELS, asked.issue, approved=not approved, comment="by me", at=AT)
    before = await asked.labels()
    with pytest.raises(
        Answered, match=r"is answered already: Kim .* at 2026-01-01 12:00Z\. Nothing is written"
    ) as error:
        await asked.answer(approved=approved, comment="my words")
    assert error.value.exit_code == 1
    assert (await asked.labels(), await asked.comments()) == (before, [("Kim", "by me")])
    (stands,) = (await find_answers(asked.person, Settings(), {asked.issue})).values()
    assert stands.by == "Kim"
    with pytest.raises(Answered):  # of another answer than the one that they saw
        await asked.answer(approved=approved, instead="event-0")
    assert not await asked.answer(approved=approved, comment="my words", instead=stands.id)
    assert {LABELS.approved, LABELS.changes_requested} & await asked.labels() == {
        LABELS.approved if approved else LABELS.changes_requested
    }
    comment = (await asked.ours.issue(asked.issue)).text.comments[-1].text  # pyright: ignore[reportOptionalMemberAccess]
    assert comment.startswith("my words\n\nIn place of what was answered before: Kim ")


async def test_the_same_answer_needs_to_name_nothing_and_a_command_names_whatever_stands(asked: Asked) -> None:
    await asked.stands("blocked", "needs:human_approval")
    await answer(asked.ours.as_actor("Kim"), LABELS, asked.issue, approved=False, comment=None, at=AT)
    assert not await asked.answer(approved=False)
    assert not await asked.answer(approved=True, instead=True)
    assert LABELS.changes_requested not in await asked.labels()


class Between(MemoryTracker):
    """A tracker on which something happens behind the first read."""

    def __init__(self, tracker: MemoryTracker, happens: Callable[[], Awaitable[Any]]) -> None:
        super().__init__(lambda: AT, PERSON)
        self._database, self._happens = tracker._database, happens  # pyright: ignore[reportPrivateUsage]

    async def comment(self, issue: str, text: str, marker: str) -> None:
        await self._happens()
        await super().comment(issue, text, marker)


@pytest.mark.promise("L4")
@pytest.mark.parametrize("replaces", [False, True])
async def test_of_two_opposite_answers_of_one_moment_who_writes_last_is_told(asked: Asked, replaces: bool) -> None:
    await asked.stands("blocked", "needs:human_approval")
    kim = asked.ours.as_actor("Kim")
    if replaces:  # what they name is set again in this moment
        await answer(kim, LABELS, asked.issue, approved=True, comment=None, at=AT)
    other = Between(asked.ours, lambda: answer(kim, LABELS, asked.issue, approved=True, comment=None, at=AT))
    beside = await answer(other, LABELS, asked.issue, approved=False, comment="no", at=AT, instead=replaces)
    assert beside.startswith("in the same moment Kim approved it at 2026-01-01 12:00Z")


@pytest.mark.promise("L4")
@pytest.mark.parametrize("asks_again", [False, True])
async def test_an_answer_that_comes_too_late_counts_for_no_later_question(asked: Asked, asks_again: bool) -> None:
    await asked.stands("blocked", "needs:human_approval")

    async def goes_on() -> None:
        fresh, status = replace(STAMP, seq=8), "blocked" if asks_again else "in_progress"
        remove = () if asks_again else (LABELS.needs_approval,)
        await asked.ours.update(Update(asked.issue, "blocked", OURS, fresh, status, OURS, remove_labels=remove))

    late = Between(asked.ours, goes_on)
    with pytest.raises(NotAsked, match="ashep has gone on with t-1 in this moment"):
        await answer(late, LABELS, asked.issue, approved=True, comment="yes", at=AT)
    assert LABELS.approved not in await asked.labels()


async def test_an_answer_that_is_taken_off_in_the_same_moment_is_told_as_lost(asked: Asked) -> None:
    await asked.stands("blocked", "needs:human_approval")

    class Off(MemoryTracker):
        async def relabel(self, issue: str, add: tuple[str, ...], remove: tuple[str, ...]) -> None:
            await super().relabel(issue, add, remove)
            asked.ours.person_sets(issue, "Kim", remove_labels=add)

    person = Off(lambda: AT, PERSON)
    person._database = asked.ours._database  # pyright: ignore[reportPrivateUsage]
    assert "took that off again" in await answer(person, LABELS, asked.issue, approved=True, comment=None, at=AT)


async def test_a_label_that_somebody_else_set_becomes_the_persons(asked: Asked) -> None:
    await asked.stands("blocked", "needs:human_approval", "human:approved")
    await asked.answer(approved=True)
    newest = (await asked.ours.changes(asked.issue))[0]
    assert (newest.what, newest.actor) == (("added", "human:approved"), PERSON)


@pytest.mark.parametrize(
    ("status", "labels"),
    [("in_progress", ()), ("in_progress", ("needs:human_approval",)), ("blocked", ()), ("blocked", ("ashep:parked",))],
)
async def test_where_nothing_is_asked_nothing_is_written(asked: Asked, status: str, labels: tuple[str, ...]) -> None:
    await asked.stands(status, *labels)
    before = await asked.labels()
    with pytest.raises(NotAsked, match=f"its status is {status}") as error:
        await asked.answer(approved=True, comment="yes")
    assert error.value.exit_code == 1
    assert (await asked.labels(), await asked.comments()) == (before, [])


async def test_an_issue_of_nobody_and_none_at_all_ask_nothing(asked: Asked) -> None:
    with pytest.raises(NotAsked, match="ashep does not hold it"):
        await asked.answer(approved=True)
    with pytest.raises(NotAsked, match="there is no issue t-none"):
        await answer(asked.person, LABELS, "t-none", approved=True, comment=None, at=AT)


@pytest.mark.promise("L4")
async def test_words_for_a_run_are_a_comment_that_is_addressed(asked: Asked) -> None:
    await asked.stands("blocked", "needs:human_input", "phase:implement")
    await say(asked.person, LABELS, asked.issue, "the second one", AT)
    assert await asked.comments() == [(PERSON, "@ashep the second one")]
    with pytest.raises(UsageError, match="an answer has words"):
        await say(asked.person, LABELS, asked.issue, " \n", AT)


@pytest.mark.promise("L4")
async def test_other_words_for_a_run_need_to_name_those_that_stand(asked: Asked) -> None:
    """Before, only the first counted, and whoever gave the second was told nothing."""
    await asked.stands("blocked", "needs:human_input", "phase:implement")
    kim = asked.ours.as_actor("Kim")
    assert not await say(kim, LABELS, asked.issue, "the first one", AT)
    assert not await say(kim, LABELS, asked.issue, "the first one", AT)  # again, as they were cut off
    with pytest.raises(Answered, match="Kim answered at"):
        await say(asked.person, LABELS, asked.issue, "the second one", AT)
    found = await find_answers(asked.person, Settings(), {asked.issue})
    assert found[asked.issue].words.startswith("@ashep the first one")
    assert not await say(asked.person, LABELS, asked.issue, "the second one", AT, instead=found[asked.issue].id)
    assert await asked.comments() == [("Kim", "@ashep the first one"), (PERSON, "@ashep the second one")]
    other = Between(asked.ours, lambda: say(kim, LABELS, asked.issue, "the third one", AT, instead=True))
    assert "in the same moment Kim answered" in await say(other, LABELS, asked.issue, "no", AT, instead=True)


@pytest.mark.promise("L4", "Q4")
async def test_a_question_whose_answers_lead_back_is_answered_with_words(asked: Asked) -> None:
    await asked.stands("blocked", "needs:human_approval", "needs:human_answer")
    assert not await say(asked.person, LABELS, asked.issue, "Postgres", AT, leads_back=True)
    assert not await say(asked.person, LABELS, asked.issue, "Postgres", AT, leads_back=True)
    assert (LABELS.approved in await asked.labels(), await asked.comments()) == (True, [(PERSON, "Postgres")])
    kim = asked.ours.as_actor("Kim")
    with pytest.raises(Answered, match="Ann approved it"):
        await say(kim, LABELS, asked.issue, "SQLite", AT, leads_back=True)
    assert not await say(kim, LABELS, asked.issue, "SQLite", AT, leads_back=True, instead=True)
    assert [who for who, _ in await asked.comments()] == [PERSON, "Kim"]


@pytest.mark.promise("L4")
async def test_answers_of_those_that_ask_are_read_in_a_bounded_number_of_calls() -> None:
    ours = MemoryTracker(lambda: AT, OURS)
    issues = [ours.add(str(number)) for number in range(MOST + 5)]
    for issue in issues:
        ours.person_sets(issue, "Kim", add_labels=(LABELS.approved,))
    reader = ours.as_actor("reader")
    assert len(await find_answers(reader, Settings(), set(issues))) == MOST
    assert reader.calls == {"look": 1, "changes": MOST}
    assert await find_answers(reader, Settings(), set()) == {}
    assert await find_answers(reader, Settings(people=People(tracker=("ann",))), set(issues)) == {}  # whose word counts
    assert reader.calls.total() == 2 * (1 + MOST)


async def test_words_are_no_approval_and_the_other_way_round(asked: Asked) -> None:
    await asked.stands("blocked", "needs:human_input", "phase:implement")
    with pytest.raises(NotAsked, match="`ashep answer t-1 …`"):
        await asked.answer(approved=True)
    other = Asked()
    await other.stands("blocked", "needs:human_approval")
    with pytest.raises(NotAsked, match="`ashep approve t-1`"):
        await say(other.person, LABELS, other.issue, "yes", AT)
    assert await asked.comments() == await other.comments() == []


async def test_retry_takes_the_parked_label_off(asked: Asked) -> None:
    await asked.stands("blocked", "ashep:parked", "phase:review")
    await asked.retry(comment="the server was down")
    assert await asked.labels() == {"phase:review"}
    assert await asked.comments() == [(PERSON, "the server was down")]


async def test_retry_with_a_phase_sets_its_label_in_the_place_of_the_old_one(asked: Asked) -> None:
    await asked.stands("blocked", "ashep:parked", "phase:review")
    await asked.retry(phase="implement")
    assert await asked.labels() == {"phase:implement"}


async def test_retry_of_what_is_not_parked_is_refused(asked: Asked) -> None:
    await asked.stands("in_progress", "phase:review")
    for more in ({}, {"phase": "implement"}, {"held": True}):
        with pytest.raises(NotAsked, match="is not parked"):
            await asked.retry(**more)
    assert await asked.labels() == {"phase:review"}


async def test_retry_of_a_held_issue_needs_a_phase(asked: Asked) -> None:
    await asked.stands("in_progress", "phase:gone")
    await asked.retry(held=True, phase="implement")
    assert await asked.labels() == {"phase:implement"}


def test_a_phase_must_be_known() -> None:
    short, long = (
        Policy(phases=tuple(Phase(name=name, access="read") for name in names)) for names in (["review"], ["implement"])
    )
    check_phase("review", {"short": short, "long": long}, "short")
    with pytest.raises(UsageError, match="there is no phase implement; there are review"):
        check_phase("implement", {"short": short, "long": long}, "short")
    with pytest.raises(UsageError, match="there is no phase revue; there are implement, review"):
        check_phase("revue", {"short": short, "long": long}, None)


# --- who it is ----------------------------------------------------------------------------------------------------


@pytest.fixture
def repository(tmp_path: Path, git_alone: None) -> Path:
    """Give a repository of its own settings."""
    subprocess.run(["git", "init", "-q", "."], cwd=tmp_path, check=True)
    return tmp_path


def named(repository: Path, name: str) -> None:
    subprocess.run(["git", "config", "user.name", name], cwd=repository, check=True)


@pytest.mark.promise("L4")
async def test_the_person_is_gits_user_whatever_the_environment_says(repository: Path) -> None:
    named(repository, "Ann Example")
    assert await person(repository, Settings(), {"BEADS_ACTOR": "somebody"}) == "Ann Example"


async def test_without_a_name_in_git_it_is_the_systems_user(repository: Path) -> None:
    assert await person(repository, Settings(), {"USER": "ann"}) == "ann"


@pytest.mark.promise("L4")
@pytest.mark.parametrize(("name", "environ", "actor"), [
    ("ashep-agent", {}, None),
    ("Ann", {"BEADS_ACTOR": "ashep-agent"}, None),
    ("Ann", {"BD_ACTOR": "ashep-host-1"}, None),
    ("Robot", {}, "Robot"),
])  # fmt: skip
async def test_an_agent_is_no_person(repository: Path, name: str, environ: dict[str, str], actor: str | None) -> None:
    named(repository, name)
    with pytest.raises(UsageError) as error:
        await person(repository, Settings(tracker=TrackerSettings(actor=actor)), environ | {"PATH": os.environ["PATH"]})
    assert error.value.exit_code == 2


@pytest.mark.promise("P14")
async def test_who_is_not_named_is_told_before_anything_is_written(repository: Path) -> None:
    named(repository, "Ann Example")
    assert await answering(repository, Settings(people=People(tracker=("bob", "ann  example"))), {}) == "Ann Example"
    with pytest.raises(UsageError, match=r"Ann Example is not named in `people\.tracker` of config\.yaml"):
        await answering(repository, Settings(people=People(tracker=("bob",))), {})


# --- taking over --------------------------------------------------------------------------------------------------


@pytest.mark.promise("L4")
async def test_an_issue_is_taken_and_released_by_the_person(asked: Asked) -> None:
    await asked.stands("in_progress", "phase:implement")
    assert await take(asked.person, LABELS, asked.issue, comment="I do it", at=AT)
    assert "ashep:paused" in await asked.labels()
    assert not await take(asked.person, LABELS, asked.issue, comment=None, at=AT)
    newest = (await asked.ours.changes(asked.issue))[0]
    assert (newest.what, newest.actor) == (("added", "ashep:paused"), PERSON)
    await release(asked.person, LABELS, asked.issue, comment="done", at=AT)
    assert "ashep:paused" not in await asked.labels()
    assert await asked.comments() == [(PERSON, "I do it"), (PERSON, "done")]
    with pytest.raises(NotAsked, match="has no label ashep:paused"):
        await release(asked.person, LABELS, asked.issue, comment=None, at=AT)


async def test_a_closed_issue_is_not_taken(asked: Asked) -> None:
    await asked.stands("closed")
    with pytest.raises(NotAsked, match="is closed"):
        await take(asked.person, LABELS, asked.issue, comment=None, at=AT)


@pytest.mark.promise("L9")
def test_how_a_session_is_opened_shows_no_password(tmp_path: Path) -> None:
    """The shell that runs the line gets the password where it lies; there it is the one that was written."""
    project, state = tmp_path / "it's mine", tmp_path / "state"
    environ = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path / "states")}
    away = how_to_open(Settings(), project, folder_of(state, environ), "ses_1")
    assert away == "Its session is ses_1; the agent server is not running, and starts with the next run."
    folder = folder_of(state, environ)
    folder.mkdir(parents=True)
    record = ServerRecord(token="t0", port=4711, password="s3cret-of_mine", pid=1, started=2)
    (folder / "server.json").write_text(record.model_dump_json())
    told = how_to_open(Settings(), project, folder_of(state, environ), "ses_1")
    assert "s3cret" not in told
    line = told.splitlines()[1].replace("opencode attach", 'printf "%s\\n" "$OPENCODE_SERVER_PASSWORD" attach', 1)
    line = line.replace(" printf", "; printf", 1)  # the variable is for the program; here the shell shows it
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True, timeout=120)
    told_by_shell = ["s3cret-of_mine", "attach", "http://127.0.0.1:4711", "--dir", str(project), "--session", "ses_1"]
    assert done.stdout.splitlines() == told_by_shell


def test_how_a_session_of_an_attached_server_is_opened(tmp_path: Path) -> None:
    server = OpencodeSettings(managed=False, url="https://box:1", password_env="BOX")
    settings = Settings(runners=Runners(opencode=server))
    told = how_to_open(settings, tmp_path, tmp_path, "ses_1")
    line = f'OPENCODE_SERVER_PASSWORD="$BOX" opencode attach https://box:1 --dir {tmp_path} --session ses_1'
    assert told.splitlines()[1].strip() == line
