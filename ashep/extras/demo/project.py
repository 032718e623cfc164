"""The stage of the real demonstration: a project in a temporary folder, and the model's script on real tools."""

import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ashep.adapters.sandboxes.bubblewrap import Bubblewrap, try_out
from ashep.adapters.system import programs
from ashep.adapters.system.tool_sources import how_to_get
from ashep.errors import AshepError, ProgramMissing
from ashep.extras.demo.progress import STILL
from ashep.extras.demo.scenario import BASE, CALC, TEST_PROGRAM, Scenario, merge_asked
from ashep.extras.demo.scripted_model import (
    MODELS_FILE,
    Call,
    ModelRequest,
    Reply,
    claude_environment,
    opencode_config,
    settle,
)

PERSON = "pat"
"""Who writes the issues and answers questions."""

_AT_ONCE = "  hold_when_busy: false  # the proof is that three are worked on at once, on a busy machine, too\n"

_INIT = ("init", "--prefix=calc", "--quiet", "--non-interactive", "--stealth", "--skip-hooks", "--skip-agents")


@dataclass(frozen=True, slots=True)
class DemoProject:
    """A project, a home of its own, and the programs that are used in it."""

    folder: Path
    bd: Path
    environ: Mapping[str, str]
    piece: Scenario = CALC

    @staticmethod
    def open_folder(folder: Path, piece: Scenario = CALC, *, claude: bool = False) -> "DemoProject":
        """Find the programs, Claude Code among them where it is to work; raises `ProgramMissing`."""
        found = {name: programs.find(name) for name in ("git", "bd", "opencode")}
        bd = found["bd"]
        missing = [name for name, path in found.items() if path is None]
        if missing or bd is None:
            what = " and ".join(missing)
            todo = "; ".join(how_to_get(name) for name in missing if name != "git") or "install git"
            raise ProgramMissing(f"{what} cannot be found: {todo}. `ashep demo --simulated` needs nothing")
        if claude and programs.find("claude") is None:
            raise ProgramMissing(f"Claude Code cannot be found: {how_to_get('claude')}. `ashep demo` goes without")
        return DemoProject(folder, bd, _environment(folder / "home"), piece)

    def asking(self, model: str) -> "DemoProject":
        """The same, in which Claude Code asks the scripted model at this address."""
        return replace(self, environ={**self.environ, **claude_environment(model, self.folder / "home")})

    @property
    def project(self) -> Path:
        """The repository."""
        return self.folder / "calc"

    async def build(self, model: str) -> str:
        """Make the repository, the issues and the configuration; `model` is the scripted model's address. Gives why no
        sandbox can be used here, empty where one can: what issues say is run then all the same, for it is ours.
        """
        config = self.folder / "home" / "config" / "opencode"
        for made in (self.folder / "home" / "tmp", self.project):
            made.mkdir(parents=True)
        settle(config, opencode_config(model))
        for name, text in self.piece.files.items():
            (self.project / name).parent.mkdir(parents=True, exist_ok=True)
            (self.project / name).write_text(text)
        begin = (("init", "-q", "-b", BASE, "."), ("add", "."), ("commit", "-qm", "A small program with a bug"))
        for words in begin:
            await self.run("git", *words)
        await self.person(*_INIT)
        for issue in self.piece.issues:
            flags = [f"--id={issue.id}", f"--type={issue.type}", f"--title={issue.title}"]
            flags += [f"--description={issue.description}", f"--acceptance={issue.acceptance()}"]
            await self.person("create", *flags, "--silent")
        await self.ashep(*self.piece.init)
        config_file = self.project / ".agent-shepherd" / "config.yaml"
        text = config_file.read_text().replace("\nworker:\n", f"\nworker:\n{_AT_ONCE}", 1)
        found = await try_out()
        text += "" if isinstance(found, Bubblewrap) else "\nverification: {sandbox: none}\n"
        config_file.write_text(text)
        return "" if isinstance(found, Bubblewrap) else found

    async def run(self, *argv: str | Path, check: bool = True) -> str:
        """Run a program in the project and give what it said."""
        done = await programs.run(argv, cwd=self.project, env=self.environ, timeout=STILL)
        said = done.stdout.decode(errors="replace")
        if check and done.returncode:
            raise AshepError(f"{' '.join(map(str, argv))} failed: {said}{done.stderr.decode(errors='replace')}")
        return said

    async def person(self, *words: str) -> str:
        """Let the person use bd."""
        return await self.run(self.bd, f"--actor={PERSON}", *words)

    async def ashep(self, *words: str, check: bool = True) -> str:
        """Use the command line as a person does."""
        return await self.run(*ashep(*words), check=check)

    async def issues(self) -> list[dict[str, Any]]:
        """What bd says of every issue, in the story's order."""
        listed: list[dict[str, Any]] = json.loads(await self.person("list", "--all", "-n", "0", "--json"))
        return sorted(listed, key=lambda issue: str(issue["id"]))

    async def test(self) -> bool:
        """Whether the program's own test passes."""
        done = await programs.run(
            (sys.executable, TEST_PROGRAM), cwd=self.project, env=self.environ, timeout=STILL
        )  # fmt: skip
        return done.returncode == 0


def ashep(*words: str) -> tuple[str, ...]:
    """The command line of this installation, as a program of its own."""
    return (sys.executable, "-P", "-m", "ashep", *words)


def _environment(home: Path) -> dict[str, str]:
    """A home of its own for every program; only the cache, where the tools may lie, stays the user's."""
    private = ("XDG_", "BEADS", "BD_", "OPENCODE", "GIT_", "ASHEP", "ANTHROPIC_", "CLAUDE", "VERTEX_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(private)}
    git = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in _IDENTITY.items()}
    ours = {
        "HOME": str(home),
        "TMPDIR": str(home / "tmp"),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_DATA_HOME": str(home / "data"),
        "XDG_STATE_HOME": str(home / "state"),
        "XDG_CACHE_HOME": str(programs.tools_cache().parent.parent),
        "BD_DISABLE_METRICS": "1",
        "BD_NON_INTERACTIVE": "1",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_MODELS_PATH": str(home / "config" / "opencode" / MODELS_FILE),
    }
    return kept | git | ours


_IDENTITY = {"NAME": PERSON, "EMAIL": f"{PERSON}@localhost"}

# --- the model ----------------------------------------------------------------------------------------------------

_RUN = re.compile(r"^Run: (\S+)$", re.M)


def run_of(prompt: str) -> str | None:
    """The run that a prompt begins."""
    found = _RUN.search(prompt)
    return found[1] if found else None


def script(ask: ModelRequest, piece: Scenario = CALC) -> Reply:
    """Play a run's part through OpenCode's tools: read, edit, test, commit; then report."""
    run = run_of(ask.prompt)
    if run is None:
        return Reply("I was not told which run this is.")
    role, onto = piece.part(run, ask.prompt), merge_asked(ask.prompt)
    calls = [_merge(onto)] if onto and role.edits else []
    if calls and not ask.results:
        return Reply(calls=(calls[0],))
    unmerged = ask.results[0].split() if calls else []
    edits = [edit for edit in role.edits if not calls or edit.path in unmerged]
    for edit in edits:
        calls.append(Call("read", {"filePath": edit.path}))
        every = {"replaceAll": True} if edit.every else {}
        calls.append(Call("edit", {"filePath": edit.path, "oldString": edit.old, "newString": edit.new, **every}))
    if edits:
        calls.append(Call("bash", {"command": f"python3 {TEST_PROGRAM}", "description": "Run the tests"}))
    if edits and role.commits:
        others = (path for path in unmerged if path in piece.files)  # of these the other side's stay
        paths = " ".join(dict.fromkeys([*(edit.path for edit in edits), *others]))
        commit = f"git add {paths} && git commit -q -m '{role.summary}' -m 'Ashep-Run: {run}'"
        calls.append(Call("bash", {"command": commit, "description": "Commit the work"}))
    if not edits:
        calls.append(Call("read", {"filePath": "calc.py"}))
    if len(ask.results) < len(calls):
        return Reply(calls=(calls[len(ask.results)],))
    return Reply(role.message)


def _merge(onto: str) -> Call:
    """Merge, name the files that are in conflict, and begin with what the other side has in them."""
    unmerged = "git diff --name-only --diff-filter=U"
    command = f"git merge -q {onto} > /dev/null; {unmerged}; git checkout -q --theirs -- $({unmerged})"
    return Call("bash", {"command": command, "description": f"Merge {onto}"})
