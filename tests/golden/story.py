"""A made-up but plausible journal that holds every type of record: one night, five issues, most of what can go wrong.

The golden journals were written from this story, each by the release in its name. It may change; they may not.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

from ashep.core.facts import commands as c
from ashep.core.facts import delivery, issues, resources, runs, sources, tracker
from ashep.core.facts import vocabulary as e
from ashep.core.facts.commands import Command
from ashep.core.facts.delivery import CheckResult, FileMap, Remark, Tree
from ashep.core.facts.outcome import CreatedIssue, Outcome
from ashep.core.facts.records import Entry
from ashep.core.facts.requests import Asked, Request
from ashep.core.facts.resources import Finding, Notice
from ashep.core.facts.runs import Life, Model
from ashep.core.facts.tracker import Change, Comment, Difference, Issue, LabelEvent, NewIssue, Stamp
from ashep.core.facts.vocabulary import Fact
from ashep.core.policy.agents import Agent, Agents
from ashep.core.policy.policies import Human, PermissionRule, Phase, Policies, Policy
from ashep.core.policy.settings import Settings

T0 = datetime(2026, 1, 1, 22, 0, tzinfo=UTC)
MINE, INSTANCE, BLOB = "ashep-host-1a2b3c4d", "0f" * 16, "ab" * 32
SONNET, SMALL = Model("acme", "large"), Model("other", "small")
RUN, REVIEW, SECOND, LOST = "demo-1/implement.1.1", "demo-1/review.1.1", "demo-1/implement.1.2", "demo-2/implement.1.1"

POLICIES = Policies(
    version=1, default_policy="standard",
    policies={
        "standard": Policy(
            phases=(
                Phase(name="implement", next={"success": "review"}),
                Phase(
                    name="review", verdicts=("approve", "needs_changes"),
                    next={"approve": "merge", "needs_changes": "implement"},
                ),
                Phase(name="merge", human=Human(ask="Merge this?", changes_requested="implement")),
            ),
        ),
    },
)  # fmt: skip
AGENTS = Agents(
    version=1,
    agents=(
        Agent(id="builder", capabilities=("implement", "debug"), read_write="write"),
        Agent(id="critic", capabilities=("review", "extract")),
    ),
)


def issue(number: int, status: str = "open", *labels: str, stamp: Stamp | None = None) -> Issue:
    """Give an issue as the tracker would."""
    who = MINE if status in ("in_progress", "blocked") else None
    title = f"Teach the parser „Umlaute“ \u2028 and\ttabs, no. {number}"
    return Issue(f"demo-{number}", title, status, "task", 2, T0, who, tuple(sorted(labels)), stamp=stamp)


def stamp(seq: int, run: str | None = None) -> Stamp:
    """Give our metadata."""
    return Stamp(INSTANCE, seq, run, visit=1, attempt=1, runs=1)


LIFE = Life(timedelta(minutes=4), "bash", timedelta(minutes=2), timedelta(seconds=30))


def planned(run: str, agent: str, access: Literal["read", "write"], **more: Any) -> runs.RunPlanned:
    """Plan a run."""
    name, _, rest = run.partition("/")
    phase, visit, attempt = rest.split(".")
    values: dict[str, Any] = {
        "slug": "build", "model": SONNET, "capabilities": (phase,), "timeout": timedelta(minutes=30), "reuse": None,
        "lock": access == "write", "why": "the only one that may write", "others": (("critic", "has no write access"),),
    }  # fmt: skip
    more = {"stall_after": timedelta(minutes=5), "tool_timeout": timedelta(hours=1)} | more
    return runs.RunPlanned(
        name, run, phase, int(visit), int(attempt), agent, "opencode", access=access, **(values | more)
    )  # type: ignore[arg-type]


QUOTA = runs.Quota(
    "acme", "ACME_TOKEN", "allowed_warning", "five_hour", T0 + timedelta(hours=5),
    (
        runs.QuotaWindow("five_hour", 0.93, T0 + timedelta(hours=5), "allowed_warning"),
        runs.QuotaWindow("seven_day", 0.4, T0 + timedelta(days=3)),
    ),
)  # fmt: skip
"""What a login has used of its quota."""


def turn(run: str, n: int, state: str, **more: object) -> runs.TurnSeen:
    """See a turn."""
    return runs.TurnSeen(run.partition("/")[0], run, n, f"msg_{n}", 60, state, "server-1", **more)  # type: ignore[arg-type]


def deliver(run: str, n: int, again: bool = False, slug: str | None = "build") -> c.SendPrompt:
    """Ask for a prompt's delivery."""
    name = run.partition("/")[0]
    return c.SendPrompt(
        f"{run}/send/{n}", name, run, n, "ses_1", f"msg_{n}", f"prt_{n}", BLOB, slug, SONNET, again, tries=int(again)
    )


def begin() -> list[list[Fact | Command]]:
    """Start the daemon and look around."""
    return [
        [resources.JournalBegun(INSTANCE, "5ec2e7")],
        [
            resources.DaemonStarted(4711, "0.1.0", only=("demo-1",), max_issues=5),
            resources.Adopted("policies", POLICIES.model_dump_json(), BLOB, 1),
            resources.Adopted("agents", AGENTS.model_dump_json(), BLOB, 1),
            resources.Adopted("settings", Settings().model_dump_json(), BLOB, 1),
        ],
        [
            tracker.TrackerSeen(MINE, "demo", "1.3.0"),
            resources.RunnerSeen(
                "up", instance="server-1", agents=("build", "plan"), models=(SONNET, SMALL), default=SONNET
            ),
            delivery.TreeSeen(Tree(True, "c0ffee", (("a.py", "11"),), ("new.txt",))),
            delivery.RepositorySeen("no room", "main is 14 commits behind origin/main", "no answer", ("f00d",)),
            *(tracker.IssueSeen(f"demo-{n}", issue(n), 1) for n in range(1, 6)),
            tracker.ReadySeen(tuple(f"demo-{n}" for n in range(1, 6)), 1),
            tracker.ReadyChanged(("demo-6",), ("demo-5",), 1),
            tracker.ChangeHinted(),
            issues.IssueHeld("demo-2", "slots", "all 1 slots are taken"),
        ],
    ]


def work() -> list[list[Fact | Command]]:
    """Take an issue, run two agents, meet a dead server and a bad outcome."""
    claimed = issue(1, "in_progress", "phase:implement", stamp=stamp(23))
    more = CreatedIssue(title="Test the edges", description="There are \x7f many.\n", priority=3)
    good = Outcome(result="success", summary="Done: “it works”", created_issues=(more,), pointers=("a.py:1", "c0ffee"))
    return [
        [
            issues.IssueTaken("demo-1", "standard", "the first ready one"),
            issues.CycleBegan("demo-1", 1, "claimed", True),
            issues.PhaseEntered("demo-1", "implement", 1, "the policy's first"),
            c.ClaimIssue("demo-1/claim/23", "demo-1", stamp(23), ("phase:implement",), ("phase:old",)),
        ],
        [
            tracker.IssueClaimed("demo-1", "demo-1/claim/23", claimed, BLOB),
            planned(RUN, "builder", "write"),
            c.ReadTree(f"{RUN}/tree/before", "demo-1", RUN, "before", None),
        ],
        [
            delivery.TreeSeen(Tree(True, "c0ffee"), "before", "demo-1", RUN),
            c.OpenSession(f"{RUN}/session", "demo-1", RUN, f"{INSTANCE}/{RUN}", "write", "build", SONNET, None),
        ],
        [
            c.PrepareTree(f"{RUN}/tree/own", "demo-1", RUN, "ashep/demo-1", "c0ffee", 2, fetch="main"),
            delivery.TreePrepared(
                "demo-1", RUN, f"{RUN}/tree/own", "ashep/demo-1", "/trees/demo-1", "c0ffee", "c0ffee",
            ),
            c.SealTree(f"{RUN}/tree/sealed", "demo-1", RUN, "ashep/demo-1"),
            c.RemoveTree("demo-1/tree/gone/1", "demo-1", "ashep/demo-1", "beef", "main", "f00d", timedelta(days=7)),
            delivery.TreeRests("demo-1", "ashep/demo-1", T0 + timedelta(days=7), timedelta(days=7), 1, "it is in use"),
            delivery.TreeKept("demo-1", "demo-1/tree/gone/1", "ashep/demo-1", "it is in use"),
            delivery.TreeRemoved(
                "demo-1", "demo-1/tree/gone/2", "ashep/demo-1", 4096, ("refs/ashep/saved/x/1/commit-1",),
            ),
            e.TreeLeft("demo-1", RUN, 'git add: error: open("x"): Permission denied'),
            delivery.TreeSealed(
                "demo-1", RUN, f"{RUN}/tree/sealed", "beef", "7ree", ("beef",), ("a merge was ended",), ("ci",),
                FileMap(("a",), ("b",), ("c",), 1), ("git refuses x",), ("git~1",),
            ),
        ],
        [
            delivery.CriteriaAdopted("demo-1", "ab" * 32, BLOB, 2, ("Is it pretty?",)),
            delivery.CriteriaChanged("demo-1", "cd" * 32, "somebody changed the checks"),
            delivery.VerificationWanted("demo-1", RUN, "implement", "implement succeeded: done"),
            c.VerifyWork(f"{RUN}/verify", "demo-1", "beef", "c0ffee", RUN, "standard", "implement", BLOB, change=True),
            delivery.WorkVerified(
                "demo-1", f"{RUN}/verify", "beef", "7ree", True, RUN, "ef" * 32,
                (CheckResult("tests", "failed", "exit code 1", 812, BLOB), CheckResult("pretty", "skipped", "", 0)),
                True, BLOB, must_change=False,
            ),
            delivery.BaseChecked("standard", "main", "c0ffee", delivery.Verification(
                "c0ffee", "7ree", "ef" * 32,
                (CheckResult("tests", "failed", "exit code 1", 812, BLOB, cause="network", on_base=True),), True,
            )),
            c.IntegrateWork("demo-1/integrate/9.0", "demo-1", "ashep/demo-1", "beef", "main", "merge", "Work (demo-1)"),
            delivery.WorkConflicted("demo-1", "demo-1/integrate/9.0", "beef", "c0ffee", ("calc.py",), BLOB),
            delivery.WorkIntegrated("demo-1", "demo-1/integrate/9.0", "beef", "c0ffee", "f00d", "7ree"),
            c.MoveBase("demo-1/land/9.0.0", "demo-1", "ashep/demo-1", "beef", "main", "c0ffee", "f00d"),
            delivery.LandingRefused("demo-1", "demo-1/land/9.0.0", "dirty", "calc.py has changes"),
            delivery.LandingRefused("demo-1", "demo-1/land/9.0.1", "failed", "git says: no"),
            delivery.WorkLanded("demo-1", "demo-1/land/9.0.1", "main", "beef", "f00d", told=("x.lock stays",)),
        ],
        [
            c.OpenPullRequest(
                "demo-1/pull/9.0", "demo-1", "ashep/demo-1", "beef", "c0ffee", "main", f"{INSTANCE}/demo-1/9", "Do it",
            ),
            delivery.LandingRefused("demo-1", "demo-1/pull/9.0", "away", "rate limit", timedelta(minutes=5)),
            delivery.PullRequestOpened(
                "demo-1", "demo-1/pull/9.1", 7, "https://forge.example/7", f"{INSTANCE}/demo-1/9", "main", "beef",
            ),
            delivery.PullRequestSeen(
                "demo-1", 7, 10**6, "open", "beef", ci="failing", failing=("build",), log=BLOB,
                remarks=(Remark("r/1", "changes_requested", "ann"), Remark("r/2", "comment", "lint", bot=True)),
            ),
            delivery.PullRequestReturned("demo-1", 7, "review", "ann requested changes", BLOB),
            delivery.PullRequestMerged("demo-1", 7, "f00d", "ann merged it"),
        ],
        [
            runs.SessionOpened("demo-1", RUN, f"{RUN}/session", "ses_1"),
            c.PreparePrompt(f"{RUN}/prepare/1", "demo-1", RUN, 1, "task"),
        ],
        [runs.PromptPrepared("demo-1", RUN, f"{RUN}/prepare/1", 1, BLOB, ("comment-1",)), deliver(RUN, 1)],
        [
            runs.TurnBegun("demo-1", RUN, 1, "msg_1"),
            runs.PromptSent("demo-1", RUN, f"{RUN}/send/1", 1, "server-1"),
            turn(RUN, 1, "running", tokens=120, cost=0.0012),
        ],
        [resources.TimerDue("stall:demo-1", T0 + timedelta(minutes=6)), turn(RUN, 1, "running", life=LIFE)],
        [
            tracker.TrackerSeen(
                MINE, "demo", "1.4.0", replaced="1.4.0 answers where 1.3.0 did; ashep is tried with 1.3.0",
            ),
            resources.RunnerSeen("away", "connection refused"),
            runs.TurnDied("demo-1", RUN, 1, "its server died"),
            deliver(RUN, 1, again=True),
        ],
        [runs.PromptSent("demo-1", RUN, f"{RUN}/send/1", 1, "server-2")],
        [
            runs.QuotaSeen("demo-1", RUN, "opencode", QUOTA),
            turn(RUN, 1, "finished", block="{}", text=BLOB, provider="acme", model="large", tokens=900, cost=0.0125,
                 ending="cut", agent_message_at=T0 + timedelta(minutes=7), human_message_at=T0 + timedelta(minutes=8),
                 steps=BLOB),
            runs.OutcomeRejected("demo-1", RUN, 1, "result: field required", "extract", "critic", "plan", SMALL),
            runs.PromptAbandoned("demo-1", RUN, 2, "30 s without a sign"),
        ],
        [
            turn(RUN, 2, "finished", block=good.model_dump_json(), tokens=100, cost=0.0005, people=("msg_9",)),
            runs.RunEnded("demo-1", RUN, "succeeded", "success", good),
            issues.CreationWanted(
                "demo-1", "demo-aaaaaaaa", NewIssue("Test the edges", "There are many.\n", priority=3), 1, True,
            ),
            c.CreateIssue(
                "demo-aaaaaaaa", "demo-1", "demo-aaaaaaaa", NewIssue("Test the edges"), stamp(60), True,
                ("ashep:parked",),
            ),
            c.ReadTree(f"{RUN}/tree/after", "demo-1", RUN, "after", "c0ffee"),
        ],
        [
            tracker.IssueCreated("demo-1", "demo-aaaaaaaa", "demo-aaaaaaaa"),
            delivery.TreeSeen(Tree(True, "beef", (("a.py", "12"),)), "after", "demo-1", RUN, ("beef",)),
            issues.PhaseEntered("demo-1", "review", 1, "success leads there"),
            planned(REVIEW, "critic", "read", slug=None, model=None),
        ],
        [
            runs.DiagnosisWanted("demo-1", REVIEW, 1, "no sign of life for 5m", "builder", "build", SONNET),
            runs.DeadlineReached("demo-1", REVIEW),
            runs.RunEnded("demo-1", REVIEW, "timed_out", "30m are over", error="it still ran", abort=True),
            c.StopTurn(f"{REVIEW}/stop", "demo-1", REVIEW, "ses_2"),
            issues.RetryScheduled("demo-1", "review", 1, T0 + timedelta(hours=1), "attempt 2 of 3"),
        ],
        [
            runs.TurnStopped("demo-1", REVIEW, f"{REVIEW}/stop", steps=BLOB),
            resources.TimerDue("wait:demo-1", T0 + timedelta(hours=1)),
        ],
        [
            planned(SECOND, "builder", "write"),
            runs.RunWithdrawn("demo-1", SECOND, "agent_gone", "the server lists no build"),
        ],
        [
            runs.SessionTaken("demo-1", "resume", "none", "a person wrote", timedelta(minutes=10), "ses_2", "msg_2"),
            runs.SessionSeen("demo-1", "ses_2", ("msg_9",), False, 70),
            runs.SessionReleased("demo-1", "quiet", "nobody wrote for 10m"),
            runs.SessionTaken("demo-1", "pause", "ours", "a person wrote", None, "ses_2", "msg_2"),
            runs.ReleaseWanted("demo-1", "the label was taken off"),
        ],
    ]  # fmt: skip


def people() -> list[list[Fact | Command]]:
    """Ask, be answered, be refused, park, give back, lose the tracker, close, stop."""
    asked = issue(1, "blocked", "needs:human_approval", "phase:merge")
    set_by = LabelEvent("7", "human:approved", "nobody", T0)
    said = Comment("comment-2", "ann", "Please rename it.\n", T0)
    moved: tuple[Difference, ...] = (("added", "phase:merge"),)
    return [
        [
            issues.PersonAsked(
                "demo-1", "merge", "Merge this?", T0 + timedelta(days=7), True, "approve leads there",
                T0 + timedelta(days=1),
            ),
            issues.PersonReminded(
                "demo-1", "merge", "Merge this?", T0 + timedelta(days=7), None, "nobody has answered yet"
            ),
            c.WriteIssue(
                "demo-1/ask/80", "demo-1", "ask", "in_progress", MINE, stamp(80), "blocked", MINE,
                ("needs:human_approval", "phase:merge"), ("phase:review",),
            ),
            issues.CommentWanted("demo-1", "question-80", "Merge this?"),
            c.PostComment("demo-1/comment/question-80", "demo-1", "question-80", "Merge this?"),
        ],
        [
            tracker.IssueWritten("demo-1", "demo-1/ask/80", 80, asked, BLOB),
            tracker.CommentPosted("demo-1", "demo-1/comment/question-80", "question-80"),
            resources.ClockJumped(timedelta(minutes=61)),
        ],
        [c.ReadAnswer("demo-1/answer/90", "demo-1")],
        [
            tracker.AnswerRead("demo-1", "demo-1/answer/90", asked, (set_by,), (said,)),
            issues.AnswerRefused("demo-1", ("human:approved",), "an agent has set it"),
            c.TakeOffLabels("demo-1/labels/92", "demo-1", ("human:approved",)),
        ],
        [e.ChangeDoubted("demo-1", moved), c.ReadAuthors("demo-1/authors/93", "demo-1", moved)],
        [
            e.AuthorsRead("demo-1", "demo-1/authors/93", (Change("9", moved[0], "ashep-agent", T0),)),
            e.ChangeJudged("demo-1", (), moved, "ashep-agent set the label phase:merge", ("9",)),
        ],
        [
            tracker.LabelsTakenOff("demo-1", "demo-1/labels/92"),
            issues.PersonAnswered("demo-1", "approved", "ann", "ann said so"),
        ],
        [
            issues.IssueFinished("demo-1", "approved by ann"),
            issues.IssueClosed("demo-1", "shepherd", "approved by ann"),
        ],
        [
            issues.IssueTaken("demo-2", "standard", "next"),
            planned(LOST, "builder", "write"),
            runs.RunEnded("demo-2", LOST, "lost", "nobody can tell", error="HTTP 500"),
            c.ReadIssue("demo-2/read/99", "demo-2"),
            tracker.EffectFailed("demo-2", "demo-2/read/99", "timeout", True),
            tracker.EffectFailed("demo-2", "demo-2/integrate/1", "locked", True, "/p/.git/x.lock"),
            issues.IssueParked("demo-2", "attempts", "3 attempts failed"),
        ],
        [
            tracker.ClaimRefused("demo-3", "demo-3/claim/1", "bob has it"),
            issues.IssueLeft("demo-3", "assigned", "bob has it"),
        ],
        [
            tracker.GuardRefused("demo-4", "demo-4/park/1"),
            tracker.WriteRefused("demo-4", "demo-4/close/2", "an open blocker"),
        ],
        [
            issues.IssueGivenBack("demo-4", "opened", "somebody did", T0 + timedelta(minutes=10)),
            tracker.IssueGone("demo-5", 90),
        ],
        [resources.BacklogHeld(("demo-3",), "11 issues are ready")],
        [resources.MachineSeen("busy", "late"), resources.MachineSeen("ok")],
        [resources.DiskSeen("low"), resources.DiskSeen("ok"), resources.JournalPruned(7, ("000000000001.jsonl",))],
        [resources.FolderLeft("places/x cannot be deleted (busy). It is left in places/.ashep-undeletable/1")],
        [resources.EditRefused(("policies.yaml:2: x: wrong",), 1), resources.EditMended()],
        [
            resources.WorkPaused("ann", "the machine moves", T0 + timedelta(hours=8), "acme", drain=True),
            resources.WorkResumed("bob"),
        ],
        [resources.WorkPaused("the configuration", "nights", T0 + timedelta(hours=8), window="nights")],
        [resources.WorkResumed("ann", "a person is up", "acme"), issues.IssueCancelled("demo-2", "ann", LOST)],
        [resources.AccountAudited((Finding("no_end", "demo-4", "waits for a time, and has none"),), 1)],
        [
            resources.BudgetWarned("issue", "demo-2", "tokens", 900.0, 1000.0, "nearly used up", None, "demo-2"),
            resources.BudgetReached("issue", "demo-2", "tokens", 1000.0, 1000.0, "used up", None, "demo-2"),
            resources.BudgetReached("day", "2026-01-02", "cost", 5.5, 5.0, "used up", T0 + timedelta(hours=26)),
            resources.WriteDelayed("demo-2", "demo-2/park/1", T0 + timedelta(hours=2), "as many as may be"),
            issues.RetryScheduled("demo-4", "review", 0, T0 + timedelta(hours=2), "stopped; used up", "budget"),
        ],
        [
            resources.QuietSeen(T0 + timedelta(hours=8)),
            resources.NoticeWanted("parked", "demo-2 is parked", ("pager", "desk"), "demo-2", cause=97),
            resources.NoticeWanted("provider_down", "the tracker is away", ("pager",), about="the tracker"),
        ],
        [
            resources.NoticesGathered("pager", (130, 131), "2 to be told", (129,)),
            c.SendNotice(
                "notice/pager/133", "pager", (Notice(130, T0, "parked", "demo-2 is parked", "demo-2", cause=97),), 1
            ),
        ],
        [
            resources.NoticeFailed("notice/pager/133", "pager", "no route to host"),
            resources.NoticesDelayed("pager", T0 + timedelta(hours=3), "failure 1: no route to host"),
            resources.NoticeSent("notice/desk/135", "desk"),
            resources.NoticesGivenUp("pager", (130,), "20 failures, the last: no route to host"),
        ],
        [
            resources.ServerMemorySeen("server-1", 5 * 1024**3, 4 * 1024**3),
            resources.RecycleWanted("server-1", T0 + timedelta(minutes=90), False, "it holds 5.00 GiB"),
            resources.ServerEnded("server-1", "recycled"),
            resources.ServerFailed("server-2", "it ended by itself"),
            resources.ServerRestartPlanned(2, T0 + timedelta(hours=3), "it ended by itself"),
            resources.ProviderRefused("acme", "limited", "slow down", T0 + timedelta(hours=3), 1, "demo-4/review.1.1"),
            resources.ProviderRefused("other", "unauthorized", "bad key", None, 1, "demo-4/review.1.1"),
            resources.ProviderRefused("third", "down", "overloaded", T0 + timedelta(hours=3), 2, "demo-4/review.1.1"),
            resources.ProviderRecovered("third", "demo-4/review.1.1 was not refused", "demo-4/review.1.1"),
        ],
        [tracker.TrackerLost("bd: no answer in 30 s"), resources.DaemonStopped("SIGTERM")],
    ]  # fmt: skip


def orphans() -> list[list[Fact | Command]]:
    """Lose a lease, adopt an issue, and take another one over from a daemon that died."""
    gone, dead = T0 - timedelta(minutes=20), "ashep-other-77"
    return [
        [
            tracker.LeaseLost("demo-1", "issue not claimable"),
            tracker.LeaseExpired("demo-3", dead, gone),
            issues.TakeoverWanted("demo-3", dead, "its lease ran out"),
            c.ReclaimIssue("demo-3/reclaim/120", "demo-3", dead),
        ],
        [
            tracker.IssueReclaimed("demo-3", "demo-3/reclaim/120", dead, True),
            issues.IssueAdopted(
                "demo-5", "standard", "implement", "work", 2, 3, 4, "the tracker shows it as ours",
                orphan="another:demo-5/implement.2.3",
            ),
            c.StopOrphan("demo-5/orphan/another:demo-5/implement.2.3", "demo-5", "another:demo-5/implement.2.3"),
        ],
        [
            runs.OrphanStopped("demo-5", "demo-5/orphan/another:demo-5/implement.2.3", True),
            issues.IssueAdopted(
                "demo-5", "standard", "review", "ask", 1, 0, 2, "the tracker shows it as ours",
                question="Merge this?", due=T0 + timedelta(days=7), human_phase=True,
            ),
        ],
    ]  # fmt: skip


def asking() -> list[list[Fact | Command]]:
    """A session asks for a tool and a question; nobody answers the one, a person the other."""
    tool = Request("per_1", "ses_9", "permission", "bash", ("npm publish",), "npm publish && git push")
    which = Request("que_1", "ses_9", "question", asks=(Asked("Which one?", ("red", "green"), several=True),))
    due, key = T0 + timedelta(hours=3), f"{RUN}/answer/"
    return [
        [planned("demo-4/arbitrate.1.1", "builder", "write")],
        [
            runs.RequestOpened("demo-4", "demo-4/arbitrate.1.1", tool, 140),
            runs.RequestJudged("demo-4", "demo-4/arbitrate.1.1", "per_1", "deny", "no rule", message="do without it"),
            runs.RequestOpened("demo-4", "demo-4/arbitrate.1.1", which, 140),
            runs.RequestJudged("demo-4", "demo-4/arbitrate.1.1", "que_1", "ask", "implement asks", due=due),
            runs.InputWanted("demo-4", "demo-4/arbitrate.1.1", "que_1", "Which one?", due, "it waits"),
            c.AnswerRequest(f"{key}per_1", "demo-4", "demo-4/arbitrate.1.1", "per_1", "permission", "deny", (), "no"),
        ],
        [
            runs.RequestAnswered("demo-4", "demo-4/arbitrate.1.1", f"{key}per_1", "per_1", taken=False),
            c.ReadAnswer("demo-4/answer/150", "demo-4", "demo-4/comment/input.que_1"),
            runs.RequestJudged(
                "demo-4", "demo-4/arbitrate.1.1", "que_1", "answer", "ann said so", (("green",),), by="ann", used=(0,)
            ),
        ],
        [
            e.ReadRefused("demo-4", "demo-4/arbitrate.1.1", "requests", "GET /permission: 400", 155),
            runs.RequestGone("demo-4", "demo-4/arbitrate.1.1", "que_1", 160),
            runs.InputEnded("demo-4", "demo-4/arbitrate.1.1", "what it asked is answered"),
            c.OpenSession(
                "demo-4/arbitrate.1.1/session", "demo-4", "demo-4/arbitrate.1.1", "k", "write", None, None, None,
                (PermissionRule(tool="bash", pattern="npm *", action="ask"),),
            ),
        ],
    ]  # fmt: skip


def elsewhere() -> list[list[Fact | Command]]:
    """Mirror an issue of a source, ask there, and hear an answer."""
    voice = sources.Voice("event/7", "olga", T0, "admin")
    view = sources.SourceView(
        "acme/demo", 9, "https://forge.example/9", "Add it", "open", BLOB, label=voice, labelled=True
    )
    name, said = "demo-gh-9", replace(voice, id="comment/8", bot=True, is_ours=True)
    word = sources.SourceWord(said, "approve", "fine", True, 5)
    again = replace(view, reopened=voice, closer="eve", comments=BLOB, edited=T0, unknown="no", locked=True)
    return [
        [sources.SourceStood("acme/demo", "no answer"), sources.SourceStood("acme/demo")],
        [
            sources.SourceSeen(name, view),
            sources.SourceAdmitted(name, BLOB, why="olga set the label"),
            sources.MirrorIssue(f"{name}/mirror/1", name, view, BLOB, "", None),
        ],
        [
            sources.IssueMirrored(name, f"{name}/mirror/1"),
            tracker.IssueSeen(name, replace(issue(9), id=name), 1),
            sources.SayAtSource(f"{name}/said/state/1", name, "acme/demo", 9, "state", "It waits.", 5, 1),
        ],
        [sources.SaidAtSource(name, f"{name}/said/state/1", "state", 5, T0)],
        [
            sources.SourceSeen(name, again),
            sources.SourceHeld(name, "edited", why="its text was changed"),
            sources.SourceWordSeen(name, word, True, True),
            sources.SourceWordJudged(name, "comment/8", True, "Thanks.", T0, T0, why="olga said so"),
            sources.SourceHasCommit(name, "c0ffee"),
            sources.CloseAtSource(f"{name}/closed/1", name, "acme/demo", 9),
        ],
        [sources.SourceFailed(name, f"{name}/closed/1", "no answer", timedelta(minutes=1), True)],
        [sources.SourceDue(name), sources.CloseAtSource(f"{name}/closed/1", name, "acme/demo", 9, 1)],
        [sources.ClosedAtSource(name, f"{name}/closed/1")],
    ]


def story() -> list[list[Entry]]:
    """Number the story as a journal does: 1 is the file's header, and each batch is followed by its commit."""
    batches: list[list[Entry]] = []
    seq, at = 2, T0
    for bodies in (*begin(), *work(), *people(), *orphans(), *asking(), *elsewhere()):
        batches.append([Entry(seq + n, at + timedelta(microseconds=n), body) for n, body in enumerate(bodies)])
        seq, at = seq + len(bodies) + 1, at + timedelta(seconds=41, microseconds=3)
    return batches
