"""The suites that ashep ships find what they are for: each mistake of an adapter fails the test that stands for it."""

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from ashep.core.model import Change, Life
from ashep.errors import ClaimLost, GuardTripped, TrackerRefused
from ashep.extras.simulation.memory.runner import MemoryRunner
from ashep.extras.simulation.memory.tracker import MemoryTracker
from ashep.extras.testing import ACTOR, runners, trackers
from ashep.ports import Catalog, ClaimRequest, Creation, Look, Prompt, Seen, Sign, Turn, Update
from tests.conformance.runners import MemoryWorld as Agents
from tests.conformance.runners import SystemClock
from tests.conformance.trackers import MemoryWorld as Issues

# --- trackers ---------------------------------------------------------------------------------------------------------


class Nameless(MemoryTracker):
    async def changes(self, issue: str) -> tuple[Change, ...]:
        return tuple(replace(change, actor="") for change in await super().changes(issue))


class Stealing(MemoryTracker):
    async def claim(self, request: ClaimRequest) -> Seen:
        try:
            return await super().claim(request)
        except ClaimLost:
            self.person_sets(request.issue, self.actor, status="open", assignee="")
            return await super().claim(request)


class Unguarded(MemoryTracker):
    async def update(self, update: Update) -> Seen:
        try:
            return await super().update(update)
        except GuardTripped:
            seen = await self.issue(update.issue)
            assert seen is not None
            issue = seen.issue
            return await super().update(replace(update, if_status=issue.status, if_assignee=issue.assignee))


class HalfWriting(MemoryTracker):
    async def update(self, update: Update) -> Seen:
        seen = await super().update(replace(update, remove_labels=()))
        return replace(
            seen, issue=replace(seen.issue, labels=tuple(sorted({*seen.issue.labels} - {*update.remove_labels})))
        )


class Guessing(MemoryTracker):
    async def issue(self, issue: str) -> Seen | None:
        known = [one.issue.id for one in (await super().look()).issues]
        return await super().issue(next((one for one in known if one.startswith(issue)), issue))


class Everything(MemoryTracker):
    async def look(self) -> Look:
        look = await super().look()
        return replace(look, ready=tuple(one.issue.id for one in look.issues))


class Forgetting(MemoryTracker):
    async def look(self) -> Look:
        look = await super().look()
        return replace(look, issues=tuple(one for one in look.issues if one.issue.status == "open"))


class Unmarked(MemoryTracker):
    async def comment(self, issue: str, text: str, marker: str) -> None:
        await super().comment(issue, marker, text)


class Gullible(MemoryTracker):
    async def commented(self, issue: str, marker: str) -> bool:
        seen = await self.issue(issue)
        return seen is not None and any(marker in one.text for one in seen.text.comments)


class Twice(MemoryTracker):
    async def create(self, creation: Creation) -> None:
        if await self.issue(creation.id) is not None:
            raise TrackerRefused("there is one")
        await super().create(creation)


class Overwriting(MemoryTracker):
    async def create(self, creation: Creation) -> None:
        if await self.issue(creation.id) is None:
            await super().create(creation)


class Immortal(MemoryTracker):
    async def heartbeat(self, issue: str) -> None:
        await super().issue(issue)


class Chatty(MemoryTracker):
    async def hints(self) -> AsyncIterator[None]:
        while True:
            yield
            await self._database.changed.wait()


@pytest.mark.parametrize(("wrong", "test"), [
    (Nameless, trackers.test_changes_name_who_made_them),
    (Stealing, trackers.test_one_of_two_actors_holds_an_issue),
    (Unguarded, trackers.test_a_guard_that_trips_writes_nothing),
    (Unguarded, trackers.test_a_person_who_closes_first_is_not_overwritten),
    (HalfWriting, trackers.test_an_update_writes_all_of_it),
    (Guessing, trackers.test_only_an_issue_of_exactly_this_id_is_read),
    (Everything, trackers.test_children_of_a_blocked_parent_are_not_ready),
    (Forgetting, trackers.test_a_look_shows_every_issue_that_is_not_closed),
    (Unmarked, trackers.test_a_comment_arrives_whole_and_ends_with_its_marker),
    (Gullible, trackers.test_a_marker_that_a_person_quotes_is_none),
    (Twice, trackers.test_an_issue_is_created_once),
    (Overwriting, trackers.test_what_cannot_be_created_is_refused),
    (Immortal, trackers.test_a_heartbeat_renews_a_lease_and_is_refused_to_who_has_none),
    (Chatty, trackers.test_a_hint_comes_for_what_others_write_and_not_for_ours),
])  # fmt: skip
async def test_a_tracker_with_a_mistake_fails_the_test_that_stands_for_it(
    wrong: type[MemoryTracker], test: Any
) -> None:
    world = Issues()
    database = world.tracker._database  # pyright: ignore[reportPrivateUsage] - of the same world

    def made(actor: str) -> MemoryTracker:
        tracker = wrong(database.now, actor)
        tracker._database = database  # pyright: ignore[reportPrivateUsage]
        return tracker

    world.tracker, world.another = made(ACTOR), made
    await fails(test, world)


# --- runners ----------------------------------------------------------------------------------------------------------


class Eager(MemoryRunner):
    async def start(self) -> None: ...

    def _enter(self, method: str) -> None: ...


class Repeating(MemoryRunner):
    async def send(self, prompt: Prompt) -> str:
        number = self.deliveries[prompt.part_id]
        self.deliveries[prompt.part_id] += 1
        return await super().send(replace(prompt, message_id=f"{prompt.message_id}{number or ''}"))


class Newest(MemoryRunner):
    async def find_session(self, key: str, directory: str | None = None) -> str | None:
        found = [one.id for one in self.sessions.values() if one.request.key.startswith(key)]
        return found[-1] if found else None


class Lazy(MemoryRunner):
    async def abort(self, session: str) -> None: ...


class Blind(MemoryRunner):
    async def turn(self, session: str, message_id: str, ours: frozenset[str] = frozenset()) -> Turn:
        return replace(await super().turn(session, message_id, ours), people=())


class Suspicious(MemoryRunner):
    async def turn(self, session: str, message_id: str, ours: frozenset[str] = frozenset()) -> Turn:
        turn = await super().turn(session, message_id, frozenset())
        others = [one for one in await self.asked(session) if one != message_id]
        return replace(turn, people=tuple(others))


class Lavish(MemoryRunner):
    async def turn(self, session: str, message_id: str, ours: frozenset[str] = frozenset()) -> Turn:
        turn = await super().turn(session, message_id, ours)
        return replace(turn, tokens=turn.tokens * len(await self.asked(session)))


class Stubborn(MemoryRunner):
    async def catalog(self) -> Catalog:
        return replace(await super().catalog(), models=())


class Beginning(MemoryRunner):
    async def transcript(self, session: str, limit: int) -> str:
        return (await super().transcript(session, 100_000))[:limit]


class Deaf(MemoryRunner):
    async def reply(self, session: str, request: str, kind: Any, verdict: Any, answers: Any, message: str) -> bool:
        await super().reply(session, request, kind, verdict, answers, message)
        return True


class Nervous(MemoryRunner):
    async def life(self, session: str) -> Life:
        return replace(await super().life(session), quiet=timedelta(minutes=1))


class Unconnected(MemoryRunner):
    async def signs(self) -> AsyncGenerator[Sign]:
        first = True
        async for sign in super().signs():
            if not first:
                yield sign
            first = False


class Reborn(MemoryRunner):
    @property
    def instance(self) -> str:
        return "always the same"


@pytest.mark.parametrize(("wrong", "test"), [
    (Eager, runners.test_before_the_start_nothing_answers),
    (Repeating, runners.test_a_prompt_sent_again_starts_nothing_new),
    (Newest, runners.test_a_session_is_found_by_its_key),
    (Lazy, runners.test_an_abort_is_seen_to_have_stopped_the_turn),
    (Blind, runners.test_a_persons_message_ends_our_turn),
    (Suspicious, runners.test_another_prompt_of_ours_is_no_person),
    (Lavish, runners.test_each_turn_of_a_session_has_its_own_tokens),
    (Stubborn, runners.test_the_catalog_lists_what_can_be_chosen),
    (Beginning, runners.test_the_transcript_is_the_tail_of_the_text),
    (Deaf, runners.test_a_question_is_answered_with_any_text_and_the_turn_goes_on),
    (Nervous, runners.test_a_text_that_drips_in_is_a_sign_of_life),
    (Unconnected, runners.test_signs_tell_of_our_session_and_of_a_reconnect),
    (Reborn, runners.test_a_killed_server_leaves_a_turn_that_the_same_ids_start_once_more),
])  # fmt: skip
@pytest.mark.slow
async def test_a_runner_with_a_mistake_fails_the_test_that_stands_for_it(wrong: type[MemoryRunner], test: Any) -> None:
    world = Agents()
    world.runner = wrong(SystemClock(), world._play)  # pyright: ignore[reportPrivateUsage] - the same play
    await fails(test, world)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes a moment in memory is waited for as long as such a moment takes at most, not as a server's."""
    monkeypatch.setattr(runners, "BOUND", 6.0)


async def fails(test: Any, world: Any) -> None:
    """The test must fail, and not by being skipped."""
    try:
        await test(world)
    except pytest.skip.Exception:
        raise AssertionError("skipped") from None
    except (Exception, pytest.fail.Exception):
        return
    raise AssertionError(f"{test.__name__} found nothing")
