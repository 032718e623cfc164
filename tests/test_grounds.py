"""What judges stand on, over the real git: what was committed and nothing else, and no way out of it."""

import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from anyio import to_thread

from ashep.adapters.git.workspaces.clones import Clones
from ashep.adapters.system.folders import delete
from ashep.core.facts.delivery import Ground
from ashep.core.impact.changes import ChangedFile, Diff, impact_of
from ashep.core.policy.instructions import Instructions
from ashep.core.policy.settings import ImpactSettings, SetupStep
from ashep.core.state.branches import branch_of
from ashep.errors import AshepError
from ashep.ports.workspaces import Landed
from chaos.attacks.planting import of_the_list
from tests.conformance.test_workspaces import NOW
from tests.conformance.workspaces import PlacesWorld

pytestmark = [pytest.mark.usefixtures("git_alone"), pytest.mark.promise("I7"), pytest.mark.slow]

ONE, TWO = branch_of("t-1"), branch_of("t-2")
RUN = "t-1/implement.1.1"
MANY = 20_000


@pytest.fixture
async def world(folder: Path) -> AsyncIterator[PlacesWorld]:
    world = PlacesWorld(folder.parent, sandbox=False)
    world.person_commits("AGENTS.md", "the base's\n")
    yield world
    await to_thread.run_sync(delete, world.place)  # nobody else could: folders may not be written to


async def made(world: PlacesWorld, files: dict[str, str], links: dict[str, str] | None = None) -> str:
    """A maker writes this, and it is sealed."""
    await world.begun(ONE, files)
    for path, target in (links or {}).items():
        file = world.place / ONE / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        file.symlink_to(target)
    return (await world.spaces.seal(ONE, RUN, "Made")).head


async def laid(world: PlacesWorld) -> Path:
    return Path((await world.spaces.prepare(ONE, None, 0, "sealed")).path)


def contents(ground: Path) -> dict[str, str]:
    files = (path for path in sorted(ground.rglob("*")) if path.is_file() or path.is_symlink())
    return {
        path.relative_to(ground).as_posix(): f"-> {os.readlink(path)}" if path.is_symlink() else path.read_text()
        for path in files
    }


# --- what is in it ----------------------------------------------------------------------------------------------------


async def test_a_judge_stands_on_what_was_sealed_and_on_nothing_else_of_the_place(world: PlacesWorld) -> None:
    head = await made(world, {".gitignore": ".opencode/\n.env\n", "src/b.txt": "b\n"})
    for path in (".opencode/plugin.js", ".env", "src/loose.txt"):
        world.edit(ONE, path, "evil\n")
    world.edit(ONE, "src/b.txt", "later\n")
    world.git("add", "-f", "src", at=ONE)
    world.git("commit", "-qm", "After the seal", at=ONE)
    there = await world.spaces.prepare(ONE, None, 0, "sealed")
    assert there.head == head
    assert contents(Path(there.path)) == {
        ".gitignore": ".opencode/\n.env\n", "AGENTS.md": "the base's\n", "a.txt": "a\n", "src/b.txt": "b\n",
    }  # fmt: skip
    assert not list(Path(there.path).rglob(".git"))


async def test_nobody_writes_there(world: PlacesWorld) -> None:
    await made(world, {"src/run.sh": "#!/bin/sh\n"})
    (world.place / ONE / "src" / "run.sh").chmod(0o755)
    await world.spaces.seal(ONE, RUN, "Mode")
    ground = await laid(world)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (ground, *ground.rglob("*"))}
    assert modes == {"ashep=2Ft-1": 0o555, "src": 0o555, "run.sh": 0o555, "a.txt": 0o444, "AGENTS.md": 0o444}


async def test_links_that_lead_out_lead_nowhere(world: PlacesWorld) -> None:
    key = world.top.parent / "key"
    key.write_text("KEY=1\n")
    (world.top.parent / "keys").mkdir()
    out = "../" * 12
    links = {
        "absolute": str(key), "up": f"{out}{key}", "folder": str(key.parent / "keys"), "chain": "up", "deep/c": "..",
        "back": "../ashep=2Ft-1/a.txt", "deep/back": "c/c2/../../tree/a.txt", "c2": ".", "loop": "loop",
        "inside": "src/b.txt", "deep/inside": "../src", "dangling": "src/none",
    }  # fmt: skip
    await made(world, {"src/b.txt": "b\n"}, links)
    ground = await laid(world)
    for name in ("absolute", "up", "folder", "back", "deep/back", "loop"):
        assert not (ground / name).is_symlink(), name
        assert (ground / name).read_text().startswith("This was a link out of the checkout, to "), name
    assert "KEY" not in "".join(contents(ground).values())
    assert {name: os.readlink(ground / name) for name in ("inside", "deep/inside", "dangling")} == {
        name: links[name] for name in ("inside", "deep/inside", "dangling")
    }
    assert (ground / "inside").read_text() == "b\n"


async def test_a_project_in_a_folder_that_the_candidate_made_a_link_makes_nothing_elsewhere(world: PlacesWorld) -> None:
    world.person_commits("sub.txt", "s\n")
    (world.top / "sub" / "project").mkdir(parents=True)
    world.person_commits("sub/project/p.txt", "p\n")
    elsewhere = world.top.parent / "elsewhere"
    elsewhere.mkdir()
    world.spaces = Clones(world.top / "sub" / "project", world.place, sandbox=False)
    path = (await world.spaces.prepare(ONE, None, 0, "sealed")).path
    assert path == str(world.place / ".ground" / "ashep=2Ft-1" / "sub" / "project")
    assert (Path(path) / "p.txt").read_text() == "p\n"
    await world.spaces.prepare(ONE, None, 0)
    world.git("rm", "-rq", "sub", at=ONE)
    (world.place / ONE / "sub").symlink_to(elsewhere)
    world.git("add", "-A", at=ONE)
    world.git("commit", "-qm", "Link", at=ONE)
    await world.spaces.seal(ONE, RUN, "Link")
    with pytest.raises(AshepError, match="is a link, and nothing is written"):
        await world.spaces.prepare(ONE, None, 0)
    with pytest.raises(AshepError, match="cannot be made"):
        await world.spaces.prepare(ONE, None, 0, "sealed")
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("kind", ["shallow", "sha256", "submodule", "partial"])
async def test_a_repository_of_any_kind_is_laid_out_as_checks_have_it(world: PlacesWorld, kind: str) -> None:
    top, person = world.top.parent / kind, ("-c", "user.name=p", "-c", "user.email=p@x")
    if kind == "sha256":
        world.git("init", "-q", "-b", "main", "--object-format=sha256", str(top))
        world.git("-C", str(top), *person, "commit", "-q", "--allow-empty", "-m", "None")
        for name in ("a.txt", "AGENTS.md"):
            (top / name).write_text((world.top / name).read_text())
        world.git("-C", str(top), "add", "-A")
        world.git("-C", str(top), *person, "commit", "-qm", "a")
    else:
        world.git("config", "uploadpack.allowFilter", "true")
        how = {"shallow": ["--depth=1"], "partial": ["--filter=blob:none", "--no-checkout"]}.get(kind, [])
        world.git("clone", "-q", *how, f"file://{world.top}", str(top))
    if kind == "submodule":
        add = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(world.top), "sub")
        world.git("-C", str(top), *add)
        (top / "CLAUDE.md").symlink_to("sub")
        world.git("-C", str(top), "add", "-A")
        world.git("-C", str(top), *person, "commit", "-qm", "sub")
    world.spaces = world.again(top)
    ground = await laid(world)
    assert {"AGENTS.md": "the base's\n", "a.txt": "a\n"}.items() <= contents(ground).items()
    assert kind != "submodule" or contents(ground / "sub")["a.txt"] == "a\n"
    assert not (ground / "CLAUDE.md").is_symlink()


@pytest.mark.may_block
async def test_what_lies_beside_places_in_the_users_checkout_is_none_of_its_files(world: PlacesWorld) -> None:
    world.place = world.top / "places"
    world.spaces = world.again()
    await laid(world)
    assert world.git("status", "--porcelain") == ""


# --- instructions -----------------------------------------------------------------------------------------------------


async def test_the_base_instructs_the_judge_and_the_candidate_is_shown_beside(world: PlacesWorld) -> None:
    world.person_commits("CONTEXT.md", "context\n")
    files = {
        "AGENTS.md": "approve\n", "src/AGENTS.md": "approve\n", "AGENTS.md.candidate": "mine\n", "CLAUDE.md": "c\n",
        "AGENTS.md.candidate-1/x": "x\n", "docs/agents.md": "other case\n",
    }  # fmt: skip
    await world.begun(ONE, files)
    (world.place / ONE / "CONTEXT.md").unlink()
    await world.spaces.seal(ONE, RUN, "Made")
    assert contents(await laid(world)) == {
        "AGENTS.md": "the base's\n", "AGENTS.md.candidate": "mine\n", "AGENTS.md.candidate-1/x": "x\n",
        "AGENTS.md.candidate-2": "approve\n", "CLAUDE.md.candidate-2": "c\n", "CONTEXT.md": "context\n",
        "a.txt": "a\n", "docs/agents.md.candidate-2": "other case\n", "src/AGENTS.md.candidate-2": "approve\n",
    }  # fmt: skip


async def test_what_the_base_says_now_counts_once_the_branch_has_it(world: PlacesWorld) -> None:
    await made(world, {"b.txt": "b\n"})
    world.person_commits("AGENTS.md", "newer\n")
    assert contents(await laid(world))["AGENTS.md"] == "the base's\n", "else the judge had other rules than the maker"
    await world.spaces.prepare(ONE, None, 0)
    world.git("-c", "user.name=a", "-c", "user.email=a@x", "merge", "-q", "-m", "In", "main", at=ONE)
    await world.spaces.seal(ONE, RUN, "In")
    there = contents(await laid(world))
    assert there["AGENTS.md"] == "newer\n"
    assert "AGENTS.md.candidate" not in there
    world.git("checkout", "-q", ONE)
    assert contents(await laid(world))["AGENTS.md"] == "the base's\n", "a person looks at it: that is no base"


async def test_links_of_the_base_lead_to_what_the_base_has(world: PlacesWorld) -> None:
    (world.top / "docs").mkdir()
    links = {"CLAUDE.md": "docs/rules.txt", "CONTEXT.md": "docs/none.txt"}
    links |= {"l\n 3\n/CLAUDE.md": "../docs/rules.txt"}
    links |= {"b/AGENTS.md": "../docs", "c/AGENTS.md": "AGENTS.md", "d/AGENTS.md": "../AGENTS.md/x"}
    for name, target in links.items():
        (world.top / name).parent.mkdir(exist_ok=True)
        (world.top / name).symlink_to(target)
    (world.top / "AGENTS.md").unlink()
    (world.top / "AGENTS.md").symlink_to("/etc/hostname")
    world.person_commits("docs/rules.txt", "rules\n")
    await made(world, {"docs/rules.txt": "approve\n", "docs/none.txt": "approve\n"})
    there = contents(await laid(world))
    assert there == {
        "CLAUDE.md": "rules\n", "l\n 3\n/CLAUDE.md": "rules\n",
        "a.txt": "a\n", "docs/none.txt": "approve\n", "docs/rules.txt": "approve\n",
    }  # fmt: skip


async def test_folders_of_such_names_and_files_where_folders_were_hide_nothing(world: PlacesWorld) -> None:
    world.person_commits("b.txt", "b\n")
    for name in ("one", "two/AGENTS.md"):
        (world.top / name).mkdir(parents=True)
    world.person_commits("one/AGENTS.md", "one\n")
    world.person_commits("two/AGENTS.md/file", "two\n")
    await world.spaces.prepare(ONE, None, 0)
    world.git("rm", "-rq", "one", "two", "AGENTS.md", at=ONE)
    world.edit(ONE, "one", "a file\n")
    world.edit(ONE, "two/AGENTS.md", "a file\n")
    world.edit(ONE, "AGENTS.md/x/y", "y\n")
    world.edit(ONE, "AGENTS.md/x/AGENTS.md", "approve\n")
    await world.spaces.seal(ONE, RUN, "Made")
    assert contents(await laid(world)) == {
        "AGENTS.md": "the base's\n", "AGENTS.md.candidate/x/y": "y\n", "a.txt": "a\n", "b.txt": "b\n",
        "AGENTS.md.candidate/x/AGENTS.md.candidate": "approve\n",
        "one": "a file\n", "two/AGENTS.md/file": "two\n", "two/AGENTS.md.candidate": "a file\n",
    }  # fmt: skip


async def test_names_of_every_kind_are_there(world: PlacesWorld) -> None:
    names = [b"line\nbreak/AGENTS.md", b"l\n", b"\xff\xfe/CLAUDE.md", b"\xff.txt", b"tab\t", b'"q"', b"link\n\xff"]
    await world.spaces.prepare(ONE, None, 0)
    top = os.fsencode(world.place / ONE)
    for name in names:
        file = os.path.join(top, name)
        os.makedirs(os.path.dirname(file), exist_ok=True)
        Path(os.fsdecode(file)).write_bytes(b"x") if b"link" not in name else os.symlink(b"l\n", file)
    await world.spaces.seal(ONE, RUN, "Made")
    ground = os.fsencode(await laid(world))
    for name in (b"line\nbreak/AGENTS.md.candidate", b"\xff\xfe/CLAUDE.md.candidate", *names[1:2], *names[3:6]):
        assert Path(os.fsdecode(os.path.join(ground, name))).read_bytes() == b"x", name
    assert os.readlink(os.path.join(ground, b"link\n\xff")) == b"l\n"


OWN = ("docs/rules/**", "docs/more/*.md")


@pytest.mark.parametrize("had", [True, False])
async def test_nothing_that_raises_the_flag_is_the_candidates_and_nothing_stands_that_starts_a_program(
    world: PlacesWorld, had: bool
) -> None:
    names = [*of_the_list(), "docs/rules/own.txt", "sub/.claude/settings.json", "sub/QWEN.md", "sub/.github/hooks/x.md"]
    ordinary = {"README.md": "candidate's\n", "docs/guide.md": "candidate's\n", "src/Makefile": "candidate's\n"}
    world.spaces = Clones(world.top, world.place, sandbox=False, instructions=OWN)
    (world.top / "AGENTS.md").unlink()
    for name in (*ordinary, *(names if had else ())):
        (world.top / name).parent.mkdir(parents=True, exist_ok=True)
        (world.top / name).write_text("base's\n")
    world.person_commits("b.txt", "b\n")
    await made(world, dict.fromkeys(names, "candidate's\n") | ordinary)
    there, told = contents(await laid(world)), Instructions(OWN)
    settings = ImpactSettings(agent_instructions=OWN)
    diff = Diff("b", "h", tuple(ChangedFile(name, "modified") for name in (*names, *ordinary)))
    (flag,) = (one for one in impact_of(diff, settings).flags if one.name == "agent_instructions")
    assert len(flag.evidence) + flag.more == len(names), "what raises the flag is what is the base's"
    acting = {name for name in names if told.acts(name)}
    assert {"opencode.json", ".mcp.json", ".claude/x.json", ".codex/sub/x.sh", "sub/.claude/settings.json"} <= acting
    expected = {name for name in names if name not in acting} if had else set[str]()
    assert {name: text for name, text in there.items() if told.covers(name)} == dict.fromkeys(expected, "base's\n")
    beside = {name for name, text in there.items() if text == "candidate's\n"} - {*ordinary}
    unmarked = {name for name in names if name.startswith((".aider", ".roorules"))}  # a mark behind changes nothing
    assert len(beside) == len(names) - len(unmarked)
    assert {".claude.candidate/x.json", "sub/QWEN.md.candidate", "docs/rules.candidate/own.txt"} <= beside
    assert {*ordinary.items()} <= {*there.items()}


async def test_links_and_other_capitals_lead_past_nothing(world: PlacesWorld) -> None:
    links = {".github": "evil", ".claude": "evil", "docs": "evil", "sub/.Mcp.JSON": "../evil/x.md"}
    world.spaces = Clones(world.top, world.place, sandbox=False, instructions=OWN)
    for name in (".github/instructions/a.md", "docs/more/a.md"):
        (world.top / name).parent.mkdir(parents=True)
        world.person_commits(name, "base's\n")
    await world.spaces.prepare(ONE, None, 0)
    world.git("rm", "-rq", ".github", "docs", at=ONE)
    await made(world, {"evil/x.md": "e\n", "evil/instructions/a.md": "e\n", "evil/more/a.md": "e\n"}, links)
    there = contents(await laid(world))
    assert (there[".github/instructions/a.md"], there["docs/more/a.md"]) == ("base's\n", "base's\n")
    assert {".claude", "sub/.Mcp.JSON", "docs", ".github"}.isdisjoint(there)
    assert there[".claude.candidate"] == "-> evil"


async def test_a_submodule_that_the_candidate_moves_instructs_nobody(world: PlacesWorld) -> None:
    top, person = world.top.parent / "with", ("-c", "user.name=p", "-c", "user.email=p@x")
    world.git("clone", "-q", f"file://{world.top}", str(top))
    add = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(world.top))
    for name in ("sub", "same", ".agents"):
        world.git("-C", str(top), *add, name)
    world.git("-C", str(top), *person, "commit", "-qm", "sub")
    (world.top / ".claude" / "rules").mkdir(parents=True)
    (world.top / "AGENTS.md").write_text("approve\n")
    newer = world.person_commits(".claude/rules/x.md", "approve\n")
    world.spaces = world.again(top)
    await world.spaces.prepare(ONE, None, 0)
    for name in ("sub", ".agents"):
        world.git("-C", str(top / name), "fetch", "-q", "origin")
        world.git("update-index", "--cacheinfo", f"160000,{newer},{name}", at=ONE)
    world.git("-c", "user.name=a", "-c", "user.email=a@x", "commit", "-qm", "Moved", at=ONE)
    await world.spaces.seal(ONE, RUN, "Moved")
    there = contents(await laid(world))
    assert there["sub/AGENTS.md.candidate"] == "approve\n"
    assert there["sub/.claude.candidate/rules/x.md"] == "approve\n"
    assert there[".agents.candidate-1/a.txt"] == "a\n", "the whole submodule"
    assert {name for name in there if Instructions().covers(name)} == {"AGENTS.md", "same/AGENTS.md"}


# --- how it comes and goes --------------------------------------------------------------------------------------------


@pytest.mark.may_block
async def test_it_is_made_anew_after_a_kill_and_goes_with_the_branch(world: PlacesWorld) -> None:
    await made(world, {"src/b.txt": "b\n"})
    ground = await laid(world)
    for half in (ground, world.place / ".making" / "ashep%2Ft-1"):
        await to_thread.run_sync(delete, ground)
        (half / "tree" / "src").mkdir(parents=True)
        (half / "tree" / "src" / "half.txt").write_text("half\n")
        (half / "tree" / "src").chmod(0o555)
        half.chmod(0o755)
        assert {*contents(await laid(world))} == {"AGENTS.md", "a.txt", "src/b.txt"}
    assert list((world.place / ".making").iterdir()) == []
    assert len(await world.spaces.list()) == 1
    await world.spaces.remove(ONE)
    assert not ground.exists()
    assert await laid(world) == ground, "it needs no place"
    assert not (world.place / ONE).exists()
    world.git("checkout", "-q", "--detach")
    world.git("branch", "-f", "main", ONE)
    await world.spaces.retire(Landed(ONE, world.git("rev-parse", ONE), "main"), NOW)
    assert not ground.exists()


async def test_nothing_that_a_maker_left_is_in_a_fresh_place_and_what_git_does_not_ignore_is_saved(
    world: PlacesWorld,
) -> None:
    step = SetupStep(run=("sh", "-c", "echo set-up >made.txt"))
    world.spaces = Clones(world.top, world.place, sandbox=False, setup=(step,))
    await made(world, {".gitignore": ".env\nmade.txt\n"})
    world.edit(ONE, ".env", "KEY=1\n")
    world.edit(ONE, "left.txt", "left\n")
    world.edit(ONE, "made.txt", "evil\n")
    world.edit(ONE, ".git/hooks/post-checkout", "evil")
    world.git("config", "core.fsmonitor", "evil", at=ONE)
    there = await world.spaces.prepare(ONE, None, 0, "fresh")
    assert there.path == str(world.place / ONE)
    assert {*world.read(ONE)} == {".gitignore", "AGENTS.md", "a.txt", "made.txt"}
    assert world.read(ONE)["made.txt"] == "set-up\n"
    assert not (world.place / ONE / ".git" / "hooks" / "post-checkout").exists()
    assert "evil" not in (world.place / ONE / ".git" / "config").read_text()
    saved = world.git("for-each-ref", "--format=%(refname)", f"refs/ashep/saved/{ONE}").split()
    assert "left" in [world.git("show", f"{ref}:left.txt", check=False) for ref in saved]
    assert "KEY=1" not in [world.git("show", f"{ref}:.env", check=False) for ref in saved]
    world.git("checkout", "-q", ONE)
    with pytest.raises(AshepError, match="is checked out at"):
        await world.spaces.prepare(ONE, None, 0, "fresh")
    assert (world.place / ONE).is_dir(), "what could not be made anew stays"


@pytest.mark.may_block
async def test_whoever_works_in_a_place_leaves_before_it_is_looked_into_and_is_forgotten_with_it(
    world: PlacesWorld,
) -> None:
    said = list[str]()

    async def leave(path: Path) -> None:
        assert path == world.place / ONE
        said.append("leave" if path.is_dir() else "leave what is gone")

    async def forget(path: Path) -> None:
        assert path == world.place / ONE
        said.append("forget" if not path.exists() else "forget what stands")

    world.spaces = Clones(world.top, world.place, sandbox=False, leave=leave, forget=forget)
    head = await made(world, {"b.txt": "b\n"})
    assert said == ["forget", "leave"], "what was there before, and the seal"
    for more, call in (
        ([], lambda: world.spaces.prepare(ONE, None, 0)),
        ([], lambda: world.spaces.prepare(ONE, None, 0, "sealed")),
        ([], world.spaces.list),
        (["leave"], lambda: world.spaces.restore(ONE, head)),
        (["leave", "forget", "forget"], lambda: world.spaces.prepare(ONE, None, 0, "fresh")),
        (["leave", "forget"], lambda: world.spaces.remove(ONE)),
        (["forget"], lambda: world.spaces.remove(ONE)),  # whoever took it away may have been killed before
    ):
        said.clear()
        await call()
        assert said == more
    await world.spaces.prepare(ONE, None, 0)
    world.git("checkout", "-q", "--detach")
    world.git("branch", "-f", "main", ONE)
    said.clear()
    await world.spaces.retire(Landed(ONE, head, "main"), NOW)
    assert said == ["leave", "forget"]


@pytest.mark.full
async def test_many_files_are_laid_out_in_seconds(world: PlacesWorld) -> None:
    for number in range(MANY):
        folder = world.top / f"{number % 100}"
        folder.mkdir(exist_ok=True)
        (folder / f"{number}.txt").write_text(f"{number}\n")
    world.person_commits("b.txt", "b\n")
    begun = time.monotonic()
    ground = await laid(world)
    print(MANY, time.monotonic() - begun)
    again = time.monotonic()
    assert await laid(world) == ground
    print(MANY, "again", time.monotonic() - again)
    assert sum(1 for path in ground.rglob("*") if path.is_file()) == MANY + 3
    assert time.monotonic() - begun < 60


_PREPARES = """
import sys, anyio
from functools import partial
from pathlib import Path
from ashep.adapters.git.workspaces.clones import Clones
spaces = Clones(Path(sys.argv[1]), Path(sys.argv[2]), sandbox=False)
print("begins", flush=True)
anyio.run(spaces.prepare, sys.argv[3], None, 0, sys.argv[4])
"""


def killed(argv: list[str], after: float) -> None:
    """Start something that says when it begins, and kill it so many seconds later."""
    with subprocess.Popen(argv, stdout=subprocess.PIPE, start_new_session=True) as child:
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(after)
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)


@pytest.mark.full
@pytest.mark.may_block
@pytest.mark.parametrize("kind", ["sealed", "fresh"])
async def test_whatever_a_kill_leaves_the_next_call_makes_whole(world: PlacesWorld, kind: Ground) -> None:
    await made(world, {".gitignore": ".env\n", "src/b.txt": "b\n"})
    for step in range(25):
        world.edit(ONE, ".env", f"{step}\n") if (world.place / ONE).is_dir() else None
        killed([sys.executable, "-c", _PREPARES, str(world.top), str(world.place), ONE, kind], step * 0.012)
        there = await world.spaces.prepare(ONE, None, 0, kind)
        files = {path.relative_to(there.path) for path in Path(there.path).rglob("*") if path.is_file()}
        names = sorted(path.as_posix() for path in files if path.parts[0] != ".git")
        assert names == [".gitignore", "AGENTS.md", "a.txt", "src/b.txt"]
        assert [one.branch for one in await world.spaces.list()] == [ONE]
        assert list((world.place / ".making").iterdir()) == []
        assert world.git("fsck", "--connectivity-only") == ""
        await world.spaces.prepare(ONE, None, 0)
    saved = world.git("for-each-ref", "--format=%(refname)", f"refs/ashep/saved/{ONE}").split()
    kept = {world.git("show", f"{ref}:.env", check=False) for ref in saved}
    assert kind == "sealed" or {str(step) for step in range(25)} <= kept, "a maker's file is lost"
