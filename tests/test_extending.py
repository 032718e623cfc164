"""A tracker and a runner of the user's own by dotted path: what is refused and how it is said, and a life with both."""

import importlib
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio import to_thread

from ashep.adapters.beads import BeadsTracker
from ashep.adapters.runners.opencode import OpencodeRunner
from ashep.config import ConfigErrors, examine, load
from ashep.core.facts.records import Entry
from ashep.core.facts.resources import Adopted
from ashep.core.facts.tracker import Issue
from ashep.core.policy.runner_kinds import OPENCODE
from ashep.core.policy.settings import Settings
from ashep.core.reconcile.evolve import evolve
from ashep.core.reconcile.step import RULES
from ashep.core.state.world import World
from ashep.errors import (
    ClaimLost,
    ConfigError,
    GuardTripped,
    RunnerUnavailable,
    TrackerError,
    TrackerMissing,
    TrackerRefused,
    TrackerUnavailable,
    UsageError,
)
from ashep.extras.simulation.memory.annotations import MemoryAnnotations
from ashep.extras.simulation.memory.runner import MemoryRunner, Play
from ashep.extras.simulation.memory.tracker import MemoryTracker
from ashep.factories import annotations_of, check, runners_of, tracker_of
from ashep.ports.runner import Runner, Sign
from ashep.ports.tracker import AnnotatedIssue, IssuePatch, IssueText, Look, Seen, Tracker
from ashep.ports.user_classes import Context, GuardedAdapter, NotUsable, make, misfits
from ashep.ports.user_classes import load as load_class
from ashep.redaction import MARK, Redaction
from tests.core.given import T0
from tests.memory import ManualClock
from tests.test_cli import ashep

ISSUE = Issue("t-1", "Paint it", "open", "task", 2, T0)
POLICIES = "version: 1\npolicies: {p: [implement]}\n"
AGENTS = "version: 1\nagents: [{id: a, capabilities: [implement], read_write: write, runner: {type: mine}}]\n"
CONFIG = """\
version: 1
tracker:
  type: "own_parts:Issues"
  options: {titles: [Paint it]}
runners:
  mine:
    type: "own_parts:Agents"
"""
PARTS = '''\
"""A tracker and a runner that live as long as the daemon."""

from ashep.extras.simulation.memory.scripted_sessions import Play
from ashep.extras.simulation.memory.runner import MemoryRunner, Play
from ashep.extras.simulation.memory.tracker import MemoryTracker

DONE = """```json
{"result": "success", "summary": "painted"}
```"""


class Issues(MemoryTracker):
    def __init__(self, context):
        super().__init__(context.clock.now, context.actor)
        for title in context.options["titles"]:
            self.add(title)


class Agents(MemoryRunner):
    def __init__(self, context):
        super().__init__(context.clock, lambda asked: Play(DONE))
'''


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    """A project with parts of its own; what it imported is forgotten afterwards."""
    folder = tmp_path / ".agent-shepherd"
    folder.mkdir()
    for name, text in (("policies", POLICIES), ("agents", AGENTS), ("config", CONFIG)):
        (folder / f"{name}.yaml").write_text(text)
    (tmp_path / "own_parts.py").write_text(PARTS)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.split(".")[0] in ("own_parts", "own_help", "deep", "broken"):
            del sys.modules[name]


def settings(project: Path, text: str = CONFIG) -> Settings:
    (project / ".agent-shepherd" / "config.yaml").write_text(text)
    return load(project / ".agent-shepherd").settings


def context(project: Path, **options: Any) -> Context:
    redaction = Redaction()
    return Context(
        options, project, project / "s", ManualClock(), "ashep-me", timedelta(seconds=3), lambda _: "", redaction.text
    )


# --- what keeps a port ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("found", [MemoryTracker, BeadsTracker])
def test_the_trackers_of_ashep_keep_their_port(found: type) -> None:
    assert list(misfits(found, Tracker)) == []


@pytest.mark.parametrize("found", [MemoryRunner, OpencodeRunner])
def test_the_runners_of_ashep_keep_their_port(found: type) -> None:
    assert list(misfits(found, Runner)) == []
    assert len(list(misfits(object, Runner))) == len([name for name in dir(Runner) if not name.startswith("_")])


class Loose(MemoryTracker):
    """Takes more than it is given, and other words for it, where that does no harm."""

    async def look(self, deep: bool = False) -> Any: ...  # type: ignore[override]
    async def issue(self, *words: Any, **named: Any) -> Seen | None: ...  # type: ignore[override]
    def hints(self) -> AsyncIterator[None]: ...  # type: ignore[override]


class Missing(MemoryTracker):
    claim = None  # type: ignore[assignment]


class Blocking(MemoryTracker):
    def look(self) -> Any: ...  # type: ignore[override]


class Narrow(MemoryTracker):
    async def comment(self, issue: str, text: str) -> None: ...  # type: ignore[override]


class Wide(MemoryTracker):
    async def look(self, deep: bool) -> Any: ...  # type: ignore[override]


class Renamed(MemoryTracker):
    async def issue(self, id: str) -> Seen | None: ...  # type: ignore[override]


class Yielding(MemoryTracker):
    async def look(self) -> Any:  # type: ignore[override]
        yield


class Silent(MemoryRunner):
    async def signs(self) -> AsyncIterator[Sign]: ...  # type: ignore[override]


class Forgetful(MemoryRunner):
    async def turn(self, session: str, message_id: str) -> Any: ...  # type: ignore[override]


LOOK = "expected `async def look(self) -> Look`"


@pytest.mark.parametrize(("found", "port", "said"), [
    (Missing, Tracker, "the method claim is missing; expected `async def claim(self, request: ClaimRequest) -> Seen`"),
    (Blocking, Tracker, f"the method look is not `async def`; {LOOK}"),
    (Yielding, Tracker, f"the method look yields, and must return; {LOOK}"),
    (Wide, Tracker, f"the method look cannot be called as the port's (missing a required argument: 'deep'); {LOOK}"),
    (Narrow, Tracker, "the method comment cannot be called as the port's (too many positional arguments); expected"),
    (Renamed, Tracker, "the method issue names its parameters id; expected `async def issue(self, issue: str)"),
    (Silent, Runner, "the method signs returns, and must yield"),
    (Forgetful, Runner, "the method turn cannot be called as the port's (too many positional arguments); expected"),
])  # fmt: skip
def test_a_method_that_cannot_be_called_as_the_port_says(found: type, port: type, said: str) -> None:
    (wrong,) = misfits(found, port)
    assert wrong.startswith(said)


def test_more_than_the_port_asks_for_is_fine() -> None:
    assert list(misfits(Loose, Tracker)) == []


# --- what cannot be used ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dotted", "text", "said"), [
    ("own_nothing:X", "", "there is no module own_nothing; it was looked for among what is installed"),
    ("own_parts.deep:X", "", "there is no module own_parts.deep"),
    ("own_parts:issues", PARTS, "has no class issues; it has Agents, Issues, MemoryRunner, MemoryTracker, Play"),
    ("own_parts:DONE", PARTS, "own_parts:DONE is no class, but str: expected a class that keeps Tracker"),
    ("own_parts:Play", PARTS,
     "own_parts:Play is no Tracker (ashep.ports.tracker): the method settle is missing; expected"),
    ("own_parts:Issues", "import nothing_there", "own_parts cannot be imported: ModuleNotFoundError: No module named"),
    ("own_parts:Issues", "class Issues(\n", "own_parts cannot be imported: SyntaxError: '(' was never closed ("),
    ("own_parts:Issues", "1 / 0\n", "own_parts cannot be imported: ZeroDivisionError: division by zero ("),
    ("own_parts:Issues", "raise SystemExit(3)\n", "own_parts cannot be imported: SystemExit: 3 ("),
])  # fmt: skip
def test_a_class_that_cannot_be_used_is_one_clear_line(project: Path, dotted: str, text: str, said: str) -> None:
    (project / "own_parts.py").write_text(text)
    with pytest.raises(NotUsable) as refused:
        load_class(dotted, Tracker, project)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_class_that_cannot_be_made_says_why(project: Path) -> None:
    found = load_class("own_parts:Issues", Tracker, project)
    with pytest.raises(NotUsable, match=r"could not be made: KeyError: 'titles' \(.*own_parts.py:\d+\)"):
        make(found, "own_parts:Issues", Tracker, context(project))

    class Nameless(MemoryTracker):
        def __init__(self, context: Context) -> None:
            super().__init__(context.clock.now)
            self.actor = None  # type: ignore[assignment]

    with pytest.raises(NotUsable, match="its attribute `actor` is None; expected a text"):
        make(Nameless, "own_parts:Nameless", Tracker, context(project))


# --- what agents write into the project -------------------------------------------------------------------------------

LOADS = """
import sys
from pathlib import Path

looked = []

class Spy:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if path is None:
            looked.append(name)

sys.meta_path.append(Spy)
from ashep.ports.user_classes import load
from ashep.ports.tracker import Tracker

load("own_parts:Issues", Tracker, Path(sys.argv[1]))
import ashep.app, ashep.api, httpx

httpx.Client().close()
print(*dict.fromkeys(looked))
"""


def loads(project: Path) -> list[str]:
    """Load a class of the project in a process of its own; what it and libraries looked for in vain then."""
    argv = [sys.executable, "-P", "-c", LOADS, str(project)]
    done = subprocess.run(argv, cwd=project, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.slow
@pytest.mark.promise("F30")
def test_nothing_that_an_agent_writes_into_the_project_becomes_a_part_of_the_daemon(project: Path) -> None:
    names = {*loads(project), "yaml", "sitecustomize", "usercustomize", "pytest", "brotli", "socksio", "h2"}
    names.remove("own_parts")
    hostile = f"open({str(project / 'ran')!r}, 'a').write(__name__)\n"
    for name in names:
        (project / name).mkdir()
        (project / name / "__init__.py").write_text(hostile)
        (project / f"{name}.py").write_text(hostile)
    again = loads(project)
    assert not (project / "ran").exists(), (project / "ran").read_text()
    assert len(again) > 2, "some are looked for in vain, or this tries nothing"
    assert set(again) <= {*names, "own_parts"}


@pytest.mark.promise("F30")
@pytest.mark.skipif(sys.flags.safe_path, reason="nothing is looked for there")
def test_it_is_called_in_a_project_as_a_module(project: Path) -> None:
    for name in ("json", "anyio", "typer", "yaml", "pydantic"):
        (project / f"{name}.py").write_text(f"open({str(project / 'ran')!r}, 'w').close()\n")
    argv = [sys.executable, "-m", "ashep", "policy", "check"]
    done = subprocess.run(argv, cwd=project, capture_output=True, text=True, timeout=240, check=False)
    assert (done.returncode, (project / "ran").exists()) == (0, False), done.stderr


HELPED = """
import importlib

from deep.inside import Base


class Issues(Base):
    def later(self):
        import broken

        return broken.word, importlib.import_module("deep.more").word
"""


def test_a_module_of_the_project_imports_what_lies_beside_it(project: Path) -> None:
    before = list(sys.path)
    (project / "deep").mkdir()  # a package without __init__.py
    (project / "deep" / "inside.py").write_text(
        "from own_help import Base as Base\nfrom . import more\nimport yaml\nassert yaml.safe_load('1') == 1\n"
    )
    (project / "deep" / "more.py").write_text("import own_parts\nword = 'more'\n")
    (project / "own_help.py").write_text(
        "from ashep.extras.simulation.memory.tracker import MemoryTracker\nclass Base(MemoryTracker): ...\n"
    )
    (project / "yaml.py").write_text("raise RuntimeError")
    (project / "broken.py").write_text("word = 'late'\n")
    (project / "own_parts.py").write_text(HELPED)
    found: Any = load_class("own_parts:Issues", Tracker, project)
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("broken")  # nobody but a module of the project gets it
    assert found(lambda: T0, "me").later() == ("late", "more")
    assert sys.path == before


@pytest.mark.promise("F30")
def test_the_place_in_the_file_is_told(project: Path) -> None:
    wrong = settings(project, CONFIG.replace("own_parts:Agents", "own_parts:Issues"))
    with pytest.raises(ConfigError) as refused:
        check(project, wrong)
    assert (refused.value.line, refused.value.key, refused.value.exit_code) == (7, "runners.mine.type", 2)
    said = f"{project}/.agent-shepherd/config.yaml:7: runners.mine.type: own_parts:Issues is no Runner ("
    assert str(refused.value).startswith(said)
    wrong = settings(project, CONFIG.replace("titles", "title"))
    with pytest.raises(ConfigError, match=r"config.yaml:3: tracker.type: own_parts:Issues could not be made: KeyError"):
        tracker_of(project, wrong, "me", clock=ManualClock())


@pytest.mark.parametrize(("text", "said"), [
    ("tracker: {type: jira}", "tracker.type: expected beads, or a class as package.module:Class, found 'jira'"),
    ("tracker: {type: 'a.b:C', command: [x]}", "tracker.command: has no effect with a.b:C; give it in `options`"),
    ("tracker: {options: {x: 1}}", "tracker.options: only a class of your own takes options; remove them"),
    ("runners: {mine: {type: a.b}}",
     "runners.mine.type: expected claude, acp, or a class as package.module:Class, found 'a.b'"),
    ("runners: {mine: {type: 'a:b', url: x}}",
     "runners.mine.url: unknown key; expected one of type, command, environment, modes, instructions, "
     "start_timeout, options, max_runs"),
    ("runners: {opencod: {}}",
     "runners.opencod: needs a `type`: a kind, or a class as package.module:Class; did you mean opencode?"),
    ("runners: {a b: {type: 'a:b'}}", "runners.'a b': not a name: a letter, then letters"),
    ("runners: {acp: {}}", "runners.acp: an agent that speaks ACP takes a `command`, as `[opencode, acp]`"),
    ("runners: {more: {type: claude, options: {x: 1}}}", "runners.more.options: has no effect with claude; remove it"),
    ("runners: {claude: {modes: {read: plan}}}", "runners.claude.modes: has no effect with claude; remove it"),
    ("runners: {acp: {command: [x], options: {x: 1}}}", "runners.acp.options: has no effect with acp; remove it"),
    ("runners: {mine: {type: 'a:b', command: [x]}}", "runners.mine.command: has no effect with a:b; remove it"),
])  # fmt: skip
def test_a_mistake_in_the_settings_is_told_without_an_import(project: Path, text: str, said: str) -> None:
    (project / ".agent-shepherd" / "agents.yaml").write_text(AGENTS.replace(", runner: {type: mine}", ""))
    (project / ".agent-shepherd" / "config.yaml").write_text(f"version: 1\n{text}\n")
    of_settings = [str(one) for one in examine(project / ".agent-shepherd").findings if "config.yaml" in one.file]
    assert len(of_settings) == 1
    assert f"config.yaml:2: {said}" in of_settings[0]


def test_agents_run_on_the_runners_of_the_project(project: Path) -> None:
    agents = project / ".agent-shepherd" / "agents.yaml"
    agents.write_text(AGENTS.replace("mine", "opencode"))
    load(project / ".agent-shepherd")  # which is there beside it
    agents.write_text(AGENTS.replace("mine", "min"))
    with pytest.raises(ConfigErrors, match="there is no runner min in this project"):
        load(project / ".agent-shepherd")
    agents.write_text(
        AGENTS.replace("capabilities", "is_human: true, capabilities").replace(", runner: {type: mine}", "")
    )
    load(project / ".agent-shepherd")


# --- what they are given ----------------------------------------------------------------------------------------------


@pytest.mark.promise("F30")
def test_what_a_class_is_made_with(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "own_parts.py").write_text(
        f"{PARTS}\n\nclass Kept(Issues):\n    def __init__(self, context):\n"
        "        super().__init__(context)\n        self.context = context\n"
    )
    monkeypatch.setenv("OWN_TOKEN", "a-long-secret")
    redaction, clock = Redaction(), ManualClock()
    text = CONFIG.replace(":Issues", ":Kept").replace("  options", "  timeout: 7s\n  options")
    made: Any = tracker_of(project, settings(project, text), "ashep-me", redaction=redaction, clock=clock)
    given: Context = made.context
    assert given.options == {"titles": ["Paint it"]}
    assert (given.project, given.state) == (project, project / ".agent-shepherd" / "state" / "own" / "tracker")
    assert (given.actor, given.timeout, given.clock) == ("ashep-me", timedelta(seconds=7), clock)
    assert given.secret("OWN_NOTHING") == ""
    assert given.secret("OWN_TOKEN") == "a-long-secret"
    assert redaction.text("it is a-long-secret") == given.redact("it is a-long-secret") == f"it is {MARK}"
    assert not given.state.exists()
    runner: Any = runners_of(project, settings(project), clock=clock)["mine"].runner  # type: ignore[attr-defined]
    assert runner.agents == ("build", "plan")  # what is none of the port's is as it is


def test_the_world_knows_both_and_counts_on_no_instance(project: Path) -> None:
    adopted = Adopted("settings", settings(project).model_dump_json(), "", RULES)
    world = evolve(World(), Entry(1, T0, adopted))
    assert world.settings == settings(project)
    assert world.settings.runners.custom["mine"].type == "own_parts:Agents"
    assert not world.dies("mine")
    assert evolve(World(), Entry(1, T0, Adopted("settings", Settings().model_dump_json(), "", RULES))).dies(OPENCODE)


# --- what comes from them ---------------------------------------------------------------------------------------------


class Odd(MemoryTracker):
    """Makes every mistake."""

    gives: Any = None
    fails: Exception | None = None
    takes = 0.0

    async def look(self) -> Any:
        await anyio.sleep(self.takes)
        if self.fails is not None:
            raise self.fails
        return self.gives

    async def hints(self) -> AsyncIterator[None]:
        yield
        raise self.fails or OSError("cut off")


def odd(**more: Any) -> tuple[GuardedAdapter, Odd]:
    made = Odd(ManualClock().now, "me")
    for name, value in more.items():
        setattr(made, name, value)
    return GuardedAdapter(made, "own:Odd", Tracker, timedelta(seconds=0.2), Redaction(("a-long-secret",)).text), made


@pytest.mark.parametrize(("mistake", "said"), [
    ({"fails": KeyError("x")}, r"own:Odd.look KeyError: 'x' \(.*test_extending.py:\d+\)"),
    ({"fails": ConfigError("no", file="f")}, "own:Odd.look ConfigError: f: no"),
    ({"takes": 60.0}, "own:Odd.look did not answer in time: it has 0.2 s"),
    ({"gives": None}, "own:Odd.look gave NoneType; expected `async def look"),
    ({"gives": ()}, "own:Odd.look gave tuple; expected `async def look"),
])  # fmt: skip
async def test_a_mistake_of_a_class_looks_like_a_tracker_that_is_away(mistake: dict[str, Any], said: str) -> None:
    guarded, _ = odd(**mistake)
    with pytest.raises(TrackerUnavailable, match=said) as told:
        await guarded.look()
    assert told.value.unknown, "of a write nobody knows whether it landed"


async def test_errors_and_answers_of_the_port_are_handed_on() -> None:
    for error in (GuardTripped("x"), TrackerUnavailable("x"), TrackerMissing("x"), ClaimLost("x")):
        guarded, _ = odd(fails=error)
        with pytest.raises(type(error)) as told:
            await guarded.look()
        assert told.value is error
    look = Look((), ())
    guarded, _ = odd(gives=look)
    assert await guarded.look() is look
    assert guarded.actor == "me"
    with pytest.raises(AttributeError):
        _ = guarded.nothing


async def test_hints_that_break_off_are_told_at_the_next_look_and_once() -> None:
    guarded, _ = odd(gives=Look((), ()))
    assert [hint async for hint in guarded.hints()] == [None]
    with pytest.raises(TrackerUnavailable, match=r"own:Odd.hints OSError: cut off"):
        await guarded.look()
    assert await guarded.look() == Look((), ())


async def test_items_of_an_answer_are_looked_at_too() -> None:
    class Wrong(MemoryRunner):
        async def asked(self, session: str) -> Any:
            return ("a", 1) if session else ("a", "b")

        async def find_session(self, key: str, directory: str | None = None) -> Any:
            return {"none": None, "one": "ses_1"}.get(key, 1)

    runner = GuardedAdapter(Wrong(ManualClock(), lambda _: Play()), "own:Wrong", Runner, timedelta(seconds=1), str)
    assert await runner.asked("") == ("a", "b")
    assert (await runner.find_session("none"), await runner.find_session("one")) == (None, "ses_1")
    for call in (runner.asked("x"), runner.find_session("x")):
        with pytest.raises(RunnerUnavailable, match=r"own:Wrong.(asked gave tuple|find_session gave int); expected"):
            await call
    with pytest.raises(RunnerUnavailable, match="not running"):
        await runner.busy(("ses_1",))


async def test_what_a_class_answers_and_raises_has_lost_its_secrets() -> None:
    seen = Seen(
        replace(ISSUE, title="is a-long-secret", labels=("x", "a-long-secret")), IssueText("it", "a-long-secret")
    )
    guarded, _ = odd(gives=Look((), (seen,)))
    (found,) = (await guarded.look()).issues
    assert (found.issue.title, found.issue.labels) == (f"is {MARK}", ("x", MARK))
    assert found.text == IssueText("it", MARK)
    for error in (GuardTripped("with a-long-secret"), KeyError("a-long-secret")):
        guarded, _ = odd(fails=error)
        with pytest.raises(TrackerError) as told:
            await guarded.look()
        assert "a-long-secret" not in str(told.value)
        assert MARK in str(told.value)


async def test_a_time_without_a_zone_is_one_of_utc() -> None:
    """Else the first comparison with another time would end the daemon."""
    at = datetime(2026, 1, 2, 3, 4)
    guarded, _ = odd(gives=Look((), (Seen(replace(ISSUE, created_at=at), IssueText("it")),)))
    (seen,) = (await guarded.look()).issues
    assert seen.issue.created_at == at.replace(tzinfo=UTC)


async def test_a_tracker_of_the_users_that_keeps_the_other_port_has_its_issues_annotated(project: Path) -> None:
    wanted = await to_thread.run_sync(settings, project)
    with pytest.raises(UsageError, match=r"own_parts:Issues is .* without a class `Annotations`: write .* its own"):
        await to_thread.run_sync(annotations_of, project, wanted, "me")
    issues = sys.modules["own_parts"].Issues

    class Notes(MemoryAnnotations):
        def __init__(self, context: Context) -> None:
            super().__init__(issues(context))

    issues.Annotations = Notes
    notes = await to_thread.run_sync(annotations_of, project, wanted, "me")
    (issue,) = await notes.listed(None)
    await notes.rewrite(issue.id, IssuePatch(acceptance="- [ ] It is red", metadata={"colour": ["red"]}))
    assert await notes.read(issue.id) == AnnotatedIssue("- [ ] It is red", {"colour": ["red"]})
    ((seen, metadata),) = await notes.marked("colour")
    assert (seen.issue.id, metadata) == (issue.id, {"colour": ["red"]})
    with pytest.raises(TrackerRefused):
        await notes.annotate("t-99", {})
    issues.Annotations = object
    with pytest.raises(ConfigError, match=r"own_parts:Issues.Annotations is no Annotations .*: the method prefix is"):
        await to_thread.run_sync(annotations_of, project, wanted, "me")


# --- a life with both -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_issue_goes_its_way_on_a_tracker_and_a_runner_of_the_users_own(project: Path) -> None:
    done = ashep("work", "--until-idle", cwd=project)
    assert (done.code, done.err) == (0, "")
    assert "own_parts:Issues memory" in done.out
    assert "idle: 1 closed" in done.out
    assert "Paint it" in ashep("status", "--all", cwd=project).out
    again = ashep("replay", cwd=project)
    assert (again.code, again.err) == (0, "")
    installed = ashep("install", "--json", cwd=project).json
    assert {"tracker", "runner"} <= {one["check"] for one in installed["checks"] if one["level"] == "ok"}
    assert ashep("stop", "--server", cwd=project).code == 0


FLAKY = """

class Flaky(Issues):
    looks = 0

    def __init__(self, context):
        super().__init__(context)
        self.token = context.secret("OWN_TOKEN")
        self.add(f"Oil it with {self.token}")

    async def look(self):
        Flaky.looks += 1
        if Flaky.looks in (1, 3):
            raise KeyError(self.token)
        return await super().look()


class Shaky(Agents):
    turns = 0

    async def turn(self, session, message_id, ours=frozenset()):
        Shaky.turns += 1
        return None if Shaky.turns == 2 else await super().turn(session, message_id, ours)
"""


@pytest.mark.slow
def test_a_tracker_and_a_runner_that_make_mistakes_end_nothing_and_give_nothing_away(project: Path) -> None:
    (project / "own_parts.py").write_text(PARTS + FLAKY)
    config = CONFIG.replace(":Issues", ":Flaky").replace(":Agents", ":Shaky")
    (project / ".agent-shepherd" / "config.yaml").write_text(config)
    done = ashep("work", "--until-idle", cwd=project, env={"OWN_TOKEN": "a-long-secret"})
    assert (done.code, done.err) == (0, "")
    assert "the tracker does not answer: own_parts:Flaky.look KeyError" in done.out
    assert "idle: 2 closed" in done.out
    assert f"Oil it with {MARK}" in ashep("status", "--all", cwd=project).out
    state = project / ".agent-shepherd"
    kept = [file for file in state.rglob("*") if file.is_file() and b"a-long-secret" in file.read_bytes()]
    assert (kept, "a-long-secret" in done.out) == ([], False)


@pytest.mark.promise("F30")
@pytest.mark.slow
def test_a_daemon_does_not_begin_with_a_class_that_does_not_fit(project: Path) -> None:
    (project / "own_parts.py").write_text(PARTS.replace("(MemoryRunner)", ""))
    for command in (["work"], ["work", "--dry-run"]):
        done = ashep(*command, cwd=project)
        assert (done.code, done.out) == (2, "")
        assert done.err.startswith(
            f"ashep: {project}/.agent-shepherd/config.yaml:7: runners.mine.type: own_parts:Agents"
        )
        expected = "`async def requests(self, sessions: Collection[str]) -> tuple[Request, ...]`"
        assert f"the method requests is missing; expected {expected}" in done.err
        assert done.err.count("\n") == 1
    assert not (project / ".agent-shepherd" / "state").exists()
    assert ashep("sync-agents", cwd=project).err == (
        "ashep: agents of a class of your own are not asked, and the agents of this project are of mine: "
        "write them by hand\n"
    )
