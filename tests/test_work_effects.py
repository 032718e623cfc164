"""What is done about the work of issues: what is checked and what not again, what is told of it, and where it ends."""

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread
from pydantic import JsonValue

from ashep.adapters.verifier import LocalVerifier, wrong_patterns
from ashep.api.schemas.verification import Entry
from ashep.core.facts import delivery
from ashep.core.facts.commands import IntegrateWork, MoveBase, VerifyWork
from ashep.core.facts.tracker import EffectFailed, Issue
from ashep.core.facts.vocabulary import Fact
from ashep.core.policy.checks import canonical
from ashep.core.policy.policies import Phase, Verify
from ashep.core.policy.settings import Settings
from ashep.core.policy.verification_settings import VerificationSettings
from ashep.core.state.branches import branch_of
from ashep.core.state.delivery import Criteria, Evidence, Landing, OwnTree, Proof, Work
from ashep.core.state.flow import Counters, Flow
from ashep.core.state.world import World, put
from ashep.daemon.effects.work import AT_ONCE, MOST_LOG, DeliveryAdapters, WorkEffects
from ashep.errors import AshepError, TrackerRefused, TrackerUnavailable
from ashep.extras.simulation.memory.annotations import MemoryAnnotations, MemoryDiffs, MemoryVerifier
from ashep.extras.simulation.memory.tracker import MemoryTracker
from ashep.extras.simulation.memory.workspaces import MemoryLanding, MemoryWorkspaces
from ashep.journal.blobs import Blobs
from ashep.ports.landing import MoveRefused
from ashep.ports.tracker import AnnotatedIssue, IssueText, Seen
from ashep.ports.verifier import VerifyRequest
from tests.core.given import T0, policies, policy_of
from tests.loop_hands import Hands, landing_world
from tests.verifier.place import criteria_of, repository
from tests.waiting import wait_until

RUN = "t-1/implement.1.1"
BRANCH = "ashep/t-1"


def exists(name: str, path: str, *contains: str) -> dict[str, Any]:
    return {
        "id": name, "type": "file_exists", "description": f"there is {path}",
        "verify": {"path": path, "contains": contains},
    }  # fmt: skip


def block(*checks: dict[str, Any]) -> str:
    """Acceptance criteria that hold checks."""
    return f"It is done.\n\n```yaml\n{json.dumps({'checks': checks})}\n```\n"


class Verifier(MemoryVerifier):
    """Notes what it is asked for, and takes as long as it is told to."""

    def __init__(self, trees: MemoryWorkspaces) -> None:
        super().__init__(trees)
        self.asked: list[VerifyRequest] = []
        self.takes = 0.0
        self.at_once = self.most = 0
        self.ended = 0

    async def verify(self, request: VerifyRequest) -> delivery.Verification:
        self.asked.append(request)
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        try:
            await anyio.sleep(self.takes)
            return await super().verify(request)
        finally:
            self.at_once -= 1
            self.ended += 1


class Base(MemoryLanding):
    """Notes what it is told to forget."""

    def __init__(self, trees: MemoryWorkspaces) -> None:
        super().__init__(trees)
        self.forgot: list[str] = []

    async def forget(self, branch: str) -> None:
        self.forgot.append(branch)


@dataclass
class Place:
    """One issue whose run in its own tree is over, and the effects on its work."""

    folder: Path
    trees: MemoryWorkspaces = field(default_factory=lambda: MemoryWorkspaces({"a": "a\n", "both": "0\n"}))
    flow: Flow = field(init=False)
    phases: tuple[Phase, ...] = (Phase(name="implement", verify=Verify()),)

    def __post_init__(self) -> None:
        self.tracker = MemoryTracker(lambda: T0)
        self.people = self.tracker.as_actor("pat")
        self.blobs = Blobs(self.folder / "blobs")
        self.verifier, self.base = Verifier(self.trees), Base(self.trees)
        self.effects = WorkEffects(self.tracker, self.blobs, lambda _: self.means)
        own = OwnTree(BRANCH, 0, base=self.trees.base, onto="main")
        self.flow = Flow(
            Issue("t-1", "It", "in_progress", "task", 2, T0), stage="work", policy="standard", phase="implement",
            work=Work(own=own, criteria=Criteria("", ""), verifying=RUN), counters=Counters(cycle=1),
        )  # fmt: skip
        self.known: VerificationSettings | None = None

    @property
    def means(self) -> DeliveryAdapters:
        return DeliveryAdapters(
            self.folder, self.verifier, MemoryDiffs(self.trees), self.base, MemoryAnnotations(self.tracker)
        )

    @property
    def world(self) -> World:
        return put(World(policies=policies(policy_of(*self.phases))), "t-1", self.flow)

    @property
    def own(self) -> OwnTree:
        """The issue's tree."""
        assert self.flow.work.own is not None
        return self.flow.work.own

    def knows(self, **work: Any) -> None:
        """This is known of its work."""
        self.flow = replace(self.flow, work=replace(self.flow.work, **work))

    async def seen(self) -> Seen:
        """The issue, as the tracker has it."""
        issue = await self.tracker.issue("t-1")
        assert issue is not None
        return issue

    async def work(self, **files: str | None) -> str:
        """Have an agent write these files; give the commit that holds them."""
        await self.trees.prepare(BRANCH, self.own.base, 0)
        for path, content in files.items():
            self.trees.edit(BRANCH, path, content)
        sealed = await self.trees.seal(BRANCH, RUN, "work")
        self.knows(own=replace(self.own, head=sealed.head))
        return sealed.head

    async def adopt(self, *checks: dict[str, Any]) -> None:
        """Have the issue's own checks adopted."""
        self.knows(criteria=Criteria("hash", await self.blobs.keep(canonical(criteria_of(*checks)))))

    def command(self, **fields: Any) -> VerifyWork:
        own, criteria = self.own, self.flow.work.criteria
        run = {"run": RUN, "phase": "implement", "policy": "standard", "change": True}
        blob = criteria.blob if criteria else ""
        made = {"criteria": blob, "adopt": criteria is None, "base": own.base} | run | fields
        return VerifyWork(f"{RUN}/verify", "t-1", made.pop("commit", own.head), **made)

    async def verify(self, **fields: Any) -> delivery.WorkVerified:
        *_, verified = await self.effects.execute(self.command(**fields), lambda: self.world)
        assert isinstance(verified, delivery.WorkVerified)
        return verified

    async def text(self, blob: str) -> str:
        return await to_thread.run_sync(self.blobs.text, blob)

    def lands(self, commit: str = "") -> None:
        """It is finished, and on its way to the base."""
        self.knows(verifying="", landing=Landing(1, "main", True, commit=commit))
        self.flow = replace(self.flow, stage="finishing")


@pytest.fixture
def place(folder: Path) -> Place:
    return Place(folder)


def statuses(verified: delivery.WorkVerified) -> list[tuple[str, str]]:
    return [(one.check_id, one.status) for one in verified.results]


# --- what is checked ----------------------------------------------------------------------------------------------


async def test_the_phases_checks_and_the_issues_own_are_carried_out_and_what_failed_is_told(place: Place) -> None:
    place.phases = (
        Phase(name="implement", checks=criteria_of(exists("same", "b")).checks),
        Phase(name="polish", checks=criteria_of(exists("other", "c")).checks),
    )
    await place.adopt(exists("same", "d", "word"), {"id": "seen", "type": "manual", "verify": {"question": "Nice?"}})
    head = await place.work(b="b")
    verified = await place.verify()
    assert (verified.issue, verified.commit, verified.run, verified.changed) == ("t-1", head, RUN, True)
    assert statuses(verified) == [("same", "passed"), ("same-2", "failed"), ("seen", "skipped")]
    assert place.verifier.asked[-1].strangers == {"same-2", "seen"}, "they stand in the issue's text"
    assert verified.tree == place.trees.tree_of(head)
    log = await place.text(verified.log)
    assert log.startswith("same-2 (there is d): failed: d lacks")
    place.lands(head)
    landing = await place.verify(run="", phase="", change=False)
    assert [one for one, _ in statuses(landing)] == ["same", "other", "same-2", "seen"]


async def test_what_was_green_before_any_work_proves_nothing(place: Place) -> None:
    await place.adopt(exists("before", "a"), exists("now", "b"))
    await place.work(b="b")
    verified = await place.verify()
    assert [one.proves_nothing for one in verified.results] == [True, False]
    assert verified.log == ""
    place.verifier.verified.clear()
    await place.work(a=None, b=None)
    await place.verify()
    assert len(place.verifier.verified) == 1, "the base has nothing to say about checks that failed"


@pytest.mark.promise("W1")
async def test_what_lands_is_held_against_what_was_there_before_any_work(place: Place) -> None:
    """Others may have landed meanwhile: what they made pass was not there when this work began."""
    await place.adopt(exists("before", "a"), exists("theirs", "c"), exists("now", "b"))
    head, own = await place.work(b="b", c="c"), place.own
    await place.trees.prepare("ashep/t-2", own.base, 1)
    place.trees.edit("ashep/t-2", "c", "c")
    newest = (await place.trees.seal("ashep/t-2", "t-2/implement.1.1", "c")).head
    place.lands(head)
    verified = await place.verify(run="", phase="", base=newest)
    assert [one.proves_nothing for one in verified.results] == [True, False, False]
    last = place.verifier.asked[-1]
    assert (last.commit, last.base) == (own.base, newest), "with the scripts of the newest base"


async def test_work_that_changes_nothing_is_told_so_where_it_is_to_change_something(place: Place) -> None:
    await place.work()
    verified = await place.verify()
    assert (verified.changed, verified.must_change, verified.results, verified.checks) == (False, True, (), "")
    assert "changes nothing" in await place.text(verified.log)
    told = await place.verify(change=False)
    assert (told.changed, told.must_change, told.log) == (False, False, ""), "what it need not do is told and no fault"


@pytest.mark.parametrize("already", [False, True])
async def test_what_lands_changes_something_if_the_issues_own_work_does(place: Place, already: bool) -> None:
    """Whoever brought it to the base: a person may have merged it, or squashed it, before ashep did."""
    head = await place.work(b="b")
    place.trees.base = head  # as after a merge by hand
    place.lands(head)
    landing, own = place.flow.work.landing, place.own
    assert landing is not None
    known = replace(own, since=head if already else "")  # as `WorkLanded` has it
    for files, changed in ((None, True), (delivery.FileMap(created=("b",)), True), (delivery.FileMap(), False)):
        place.knows(landing=replace(landing, landed=already), own=replace(known, files=files))
        assert (await place.verify(run="", phase="")).changed == changed
    place.lands(own.base)
    place.knows(own=replace(known, files=None, head=own.base))
    verified = await place.verify(run="", phase="", commit=own.base)
    assert (verified.changed, await place.text(verified.log)) == (
        False, "The work changes nothing: its tree is that of its base.",
    )  # fmt: skip


async def test_a_long_log_shows_something_of_every_check(place: Place) -> None:
    text = "x" * 9_000
    checks = [exists(f"c{number}", "none", text) for number in range(10)]
    await place.adopt(*checks)
    await place.work(b="b")
    log = await place.text((await place.verify()).log)
    assert len(log) < MOST_LOG + 1_000
    assert [f"c{number} (" in log for number in range(10)] == [True] * 10


async def test_nothing_lands_by_a_policy_that_is_gone(place: Place) -> None:
    head = await place.work(b="b")
    place.flow = replace(place.flow, policy="gone")
    await place.verify()  # what follows is the core's: the phase is gone, too
    place.lands(head)
    with pytest.raises(AshepError, match=r"policies\.yaml has no policy gone any more"):
        await place.verify(run="", phase="")


# --- the issue's own checks ---------------------------------------------------------------------------------------


@pytest.mark.slow
async def test_patterns_that_take_long_to_be_compiled_keep_nobody_waiting(place: Place) -> None:
    """Five of 2,000 characters took 18 s, in which the daemon did nothing else: blocking the loop fails a test."""
    verify = [{"glob": "a", "pattern": "(?i)" + r"[\x00-\U0010ffff]" * 115 + str(n)} for n in range(20)]
    slow = [{"id": f"c{n}", "type": "code_pattern", "description": "d", "verify": one} for n, one in enumerate(verify)]
    effects = WorkEffects(place.tracker, place.blobs, lambda _: replace(place.means, compiled=wrong_patterns))
    place.people.add("It", text=IssueText(acceptance=block(*slow)))
    adopted = await effects.adopted(await place.seen(), Settings())
    assert "not a regular expression: it takes too long to be read (and" in adopted.error
    assert adopted.checks == 0
    assert await wrong_patterns(["a+", "("]) == {"(": "missing ), unterminated subpattern at position 0"}


async def test_an_issue_that_nobody_read_has_its_checks_adopted_first(place: Place) -> None:
    place.people.add("It", text=IssueText(acceptance=block(exists("there", "b"))))
    await place.work(b="b")
    place.knows(criteria=None)
    adopted, verified = await place.effects.execute(place.command(), lambda: place.world)
    assert isinstance(adopted, delivery.CriteriaAdopted)
    assert isinstance(verified, delivery.WorkVerified)
    assert (adopted.checks, statuses(verified)) == (1, [("there", "passed")])
    place.people.person_deletes("t-1", "pat")
    with pytest.raises(TrackerRefused, match="has no issue t-1"):
        await place.effects.execute(place.command(), lambda: place.world)


@pytest.mark.parametrize(("acceptance", "told"), [
    (block({"id": "x", "type": "file_exists", "verify": {"path": "../x"}}), "expected a path beneath the checkout"),
    (block(exists("x", "a", "Bearer opensesame")), "they hold a secret of this machine"),
])  # fmt: skip
async def test_checks_that_cannot_be_used_are_told_with_the_reason(place: Place, acceptance: str, told: str) -> None:
    place.blobs.redact = lambda text: text.replace("opensesame", "[redacted]")
    place.people.add("It", text=IssueText(acceptance=acceptance))
    adopted = await place.effects.adopted(await place.seen(), Settings())
    assert (adopted.hash, adopted.blob) == ("", "")
    assert told in adopted.error


async def test_a_change_of_the_checks_is_told_once_and_of_a_text_beside_them_never(place: Place) -> None:
    one, two = block(exists("one", "a")), block(exists("two", "b"))
    place.people.add("It", text=IssueText(acceptance=one))

    async def changed() -> list[Fact]:
        facts = await place.effects.changed(await place.seen(), place.flow, Settings())
        for fact in facts:
            assert isinstance(fact, delivery.CriteriaChanged)
            assert place.flow.work.criteria is not None
            place.knows(criteria=replace(place.flow.work.criteria, seen=fact.hash))
        return facts

    adopted = await place.effects.adopted(await place.seen(), Settings())
    place.knows(criteria=Criteria(adopted.hash, adopted.blob))
    counts: list[int] = []
    for text in (one, f"And fast.\n{one}", two, two, one, block({"id": "?"}), "", ""):
        place.people.person_rewrites("t-1", "pat", text)
        counts.append(len(await changed()))
    assert counts == [0, 0, 1, 0, 1, 1, 0, 0]
    assert place.flow.work.criteria is not None
    assert place.flow.work.criteria.blob == adopted.blob
    place.people.person_rewrites("t-1", "pat", two)
    place.flow = replace(place.flow, stage="idle")
    assert not await changed()


@pytest.mark.virtual
async def test_an_agent_that_edits_its_checks_changes_nothing_and_is_told_of(folder: Path) -> None:
    class Edits(Hands):
        def __call__(self, world: Any, asked: Any) -> Any:
            world.tracker.person_rewrites("t-1", world.tracker.actor, "It is fine as it is.")
            return super().__call__(world, asked)

    hands = Edits(lambda _: ("mine.py",))
    world = landing_world(folder, hands)
    world.tracker.add("It", text=IssueText(acceptance=block(exists("it", "never.py"))))
    await world.live(lambda: world.issues()["t-1"].status == "blocked")
    (changed,) = world.bodies(delivery.CriteriaChanged)
    assert (changed.issue, "those that were adopted" in changed.why) == ("t-1", True)
    for verified in world.bodies(delivery.WorkVerified):
        assert ("it", "failed") in statuses(verified)
    assert not world.bodies(delivery.WorkLanded)


# --- what is known ------------------------------------------------------------------------------------------------


async def test_what_was_found_is_known_until_a_person_begins_anew(place: Place) -> None:
    head = await place.work(b="b")
    results = (delivery.CheckResult("c", "failed", "no", 1),)
    evidence = Evidence(head, "tree", results, changed=True, isolated=False, log="", run=RUN, checks="ab")
    place.knows(evidence=evidence)
    await place.verify()
    assert place.verifier.asked[-1].known == delivery.Verification(head, "tree", "ab", results, isolated=False)
    place.knows(evidence=None)
    await place.verify()
    assert (place.verifier.asked[-1].known, place.verifier.asked[-1].afresh) == (None, False)
    place.flow = replace(place.flow, counters=replace(place.flow.counters, cycle=2))
    await place.verify()
    assert place.verifier.asked[-1].afresh, "a person may have put the machine in order"
    place.knows(evidence=evidence)
    await place.verify()
    assert not place.verifier.asked[-1].afresh


# --- how long -----------------------------------------------------------------------------------------------------


async def test_only_so_many_are_verified_at_once(place: Place) -> None:
    await place.work(b="b")
    place.verifier.takes = 0.05
    async with anyio.create_task_group() as group:
        for _ in range(AT_ONCE + 3):
            group.start_soon(place.verify)
    assert (place.verifier.most, place.verifier.ended) == (AT_ONCE, AT_ONCE + 3)


def goes_back(place: Place) -> None:
    place.flow = replace(place.flow, stage="left", work=replace(place.flow.work, verifying=""))


def another_run(place: Place) -> None:
    place.knows(verifying="t-1/implement.2.1")


@pytest.mark.parametrize("meanwhile", [goes_back, another_run])
@pytest.mark.parametrize("waits", [False, True])
async def test_what_nobody_wants_to_know_any_more_is_ended(
    place: Place, meanwhile: Callable[[Place], None], waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ashep.daemon.effects.work.UNWANTED", 0.01)
    await place.work(b="b")
    place.verifier.takes = 20.0
    answers: list[list[Fact]] = []

    async def one() -> None:
        answers.append(await place.effects.execute(place.command(), lambda: place.world))

    async with anyio.create_task_group() as group:
        for _ in range(AT_ONCE + waits):
            group.start_soon(one)
        await wait_until(lambda: len(place.verifier.asked) >= AT_ONCE)
        assert not answers
        meanwhile(place)
    assert len(answers) == AT_ONCE + waits
    for answer in answers:
        (failed,) = answer
        assert isinstance(failed, EffectFailed)
        assert (failed.key, failed.infra) == (f"{RUN}/verify", False)
    assert place.verifier.ended == len(place.verifier.asked) == AT_ONCE


async def test_a_landing_that_is_over_is_not_verified_to_the_end(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ashep.daemon.effects.work.UNWANTED", 0.01)
    head = await place.work(b="b")
    place.lands(head)
    assert (await place.verify(run="", phase="", commit=head)).commit == head
    place.lands("another")
    place.verifier.takes = 20.0
    (failed,) = await place.effects.execute(place.command(run="", commit=head), lambda: place.world)
    assert isinstance(failed, EffectFailed)


@pytest.mark.may_block
async def test_no_program_of_an_ended_verification_lives(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ashep.daemon.effects.work.UNWANTED", 0.05)
    real = repository(place.folder.parent / "repository")
    head = real.commit({"a": "a"})
    place.knows(own=OwnTree(BRANCH, 0, base=head, head=head))
    nap = f"sleep {4_000 + (hash(place.folder) % 999)}.5"
    await place.adopt({"id": "naps", "type": "test_pass", "verify": {"command": ["sh", "-c", f"{nap}; true"]}})
    scratch = place.folder / "scratch"
    verifier = LocalVerifier(VerificationSettings(sandbox="none"), scratch, place.blobs.keep)
    means = DeliveryAdapters(real.folder, verifier, MemoryDiffs(place.trees), place.base)
    effects = WorkEffects(place.tracker, place.blobs, lambda _: means)

    def lives() -> bool:
        listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        return any(line == nap for line in listed.splitlines())

    async with anyio.create_task_group() as group:
        group.start_soon(partial(effects.execute, place.command(commit=head, change=False), lambda: place.world))
        await wait_until(lives, 30)
        goes_back(place)
    assert not lives()
    assert not list(scratch.glob("*"))


# --- landing ------------------------------------------------------------------------------------------------------


def integrate(place: Place, head: str) -> IntegrateWork:
    return IntegrateWork("t-1/integrate/1.0", "t-1", BRANCH, head, "main", "merge", "It (t-1)")


async def test_each_step_of_landing_may_be_repeated_and_what_was_kept_is_let_go(place: Place) -> None:
    head = await place.work(b="b")
    place.lands()
    (made,) = await place.effects.execute(integrate(place, head), lambda: place.world)
    assert isinstance(made, delivery.WorkIntegrated)
    assert [made] == await place.effects.execute(integrate(place, head), lambda: place.world)
    assert place.trees.files(made.commit)["b"] == "b"
    assert place.trees.base == made.base
    move = MoveBase("t-1/land/1.0.0", "t-1", BRANCH, head, "main", made.base, made.commit)
    assert place.base.forgot == []
    for _ in range(2):
        (landed,) = await place.effects.execute(move, lambda: place.world)
        assert landed == delivery.WorkLanded("t-1", move.key, "main", head, made.commit)
    assert place.base.forgot == [BRANCH, BRANCH]
    (again,) = await place.effects.execute(integrate(place, head), lambda: place.world)
    assert again == delivery.WorkLanded("t-1", "t-1/integrate/1.0", "main", head, made.commit, already=True)
    assert place.base.forgot == [BRANCH] * 3, "an earlier round may have kept something"


async def test_a_conflict_is_told_with_what_contradicts_what(place: Place) -> None:
    head = await place.work(both="mine\n")
    base = place.trees.commit("both", "theirs\n")
    (conflict,) = await place.effects.execute(integrate(place, head), lambda: place.world)
    assert isinstance(conflict, delivery.WorkConflicted)
    assert (conflict.head, conflict.base, conflict.paths) == (head, base, ("both",))
    assert "theirs" in await place.text(conflict.log)


async def test_a_base_that_is_not_moved_is_told_with_the_reason(place: Place) -> None:
    head = await place.work(b="b")
    (made,) = await place.effects.execute(integrate(place, head), lambda: place.world)
    assert isinstance(made, delivery.WorkIntegrated)
    move = MoveBase("t-1/land/1.0.0", "t-1", BRANCH, head, "main", made.base, made.commit)
    place.base.refuses = MoveRefused("dirty", "main is checked out in /x, and there are uncommitted changes: a")
    told = await place.effects.execute(move, lambda: place.world)
    assert told == [delivery.LandingRefused("t-1", move.key, "dirty", place.base.refuses.why)]
    place.trees.commit("c", "c")
    (moved,) = await place.effects.execute(move, lambda: place.world)
    assert isinstance(moved, delivery.LandingRefused)
    assert (moved.code, place.base.forgot) == ("moved", [])


async def test_without_means_it_is_said_what_to_do(place: Place) -> None:
    effects = WorkEffects(place.tracker, place.blobs)
    await effects.settle(Settings())
    with pytest.raises(AshepError, match=r"set landing\.mode to branch"):
        await effects.execute(integrate(place, "0" * 40), lambda: place.world)


async def test_all_that_an_issue_changed_is_flagged(place: Place) -> None:
    head = await place.work(**{"AGENTS.md": "Be kind.\n"})
    sealed = delivery.TreeSealed("t-1", RUN, "key", head, "tree", ())
    found = await place.effects.touched(sealed, place.flow, place.world)
    assert (found.flags, found.files) == (("agent_instructions",), delivery.FileMap(("AGENTS.md",), lines=(1, 0)))
    nothing = replace(sealed, head=place.own.base)
    found = await place.effects.touched(nothing, place.flow, place.world)
    assert (found.flags, found.files) == ((), delivery.FileMap())
    assert branch_of("t-1") == BRANCH


async def test_an_agent_that_moves_the_base_hides_nothing(place: Place) -> None:
    """Whoever works in a tree of the repository can move its branches, too."""
    head = await place.work(**{".github/workflows/ci.yml": "mine"})
    place.trees.advance(place.trees.base, head)
    sealed = delivery.TreeSealed("t-1", RUN, f"{RUN}/tree/after", head, "7ree", (head,))
    found = await place.effects.touched(sealed, place.flow, place.world)
    assert "ci" in found.flags
    place.knows(own=replace(place.own, since=head))
    found = await place.effects.touched(sealed, place.flow, place.world)
    assert (found.flags, found.files) == (
        (),
        delivery.FileMap(),
    )  # it was brought onto that once: what comes after is its own


# --- what is written down with the close ---------------------------------------------------------------------------

WHEN = datetime(2026, 3, 1, 12, 30, 1, 5, UTC)
MADE = Proof(WHEN, "failing", BRANCH, "c" * 40, "7" * 40, "", 1, 1, 0, ("tests",))


async def test_the_log_on_the_issue_is_only_added_to_and_each_entry_once(place: Place) -> None:
    theirs: dict[str, JsonValue] = {"n": 6, "status": "passing", "by": "somebody else"}
    place.tracker.add("It", id="t-1")
    annotations = MemoryAnnotations(place.tracker)
    await annotations.annotate("t-1", {"verification_log": [theirs]})
    place.knows(proofs=(MADE, replace(MADE, at=WHEN + timedelta(minutes=1), status="passing")))
    first = (await place.effects.notes(place.flow, place.world, closed=True))["verification_log"]
    assert isinstance(first, list)
    assert first[0] == theirs
    assert first[1] == {
        "n": 7, "at": "2026-03-01T12:30:01Z", "status": "failing", "branch": BRANCH, "commit": "c" * 40,
        "tree": "7" * 40, "criteria": "", "passed": 1, "failed": 1, "skipped": 0, "failures": ["tests"],
    }  # fmt: skip
    assert Entry.model_validate(first[1]), "the service reads it"
    assert [one["n"] for one in first if isinstance(one, dict)] == [6, 7, 8]
    await annotations.annotate("t-1", {"verification_log": first})
    assert (await place.effects.notes(place.flow, place.world, closed=True))["verification_log"] == first, (
        "closed again"
    )


async def test_where_the_log_cannot_be_read_it_is_left_alone(place: Place) -> None:
    class Lost(MemoryAnnotations):
        async def read(self, issue: str) -> AnnotatedIssue | None:
            raise TrackerUnavailable(f"{issue}: no answer")

    effects = WorkEffects(place.tracker, place.blobs, lambda _: replace(place.means, annotations=Lost(place.tracker)))
    place.knows(proofs=(MADE,))
    notes = await effects.notes(place.flow, place.world, closed=True)
    assert "verification_log" not in notes
    assert notes["verification_status"] == "unverified"
