"""What `requirements/setup.py` fetches has the hashes that stand in the repository; with fake npm, node and go."""

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
SETUP = ROOT / "requirements/setup.py"
NPM = """#!/bin/sh
mkdir -p node_modules/opencode-ai node_modules/.bin
cp "$FAKE_LOCK" node_modules/.package-lock.json
printf '#!/bin/sh\\necho 1.18.33\\n' > node_modules/.bin/opencode
chmod +x node_modules/.bin/opencode
claude=node_modules/@anthropic-ai/claude-code-linux-x64
mkdir -p $claude
printf '#!/bin/sh\\necho claude >> "$FAKE_LOG"\\necho 2.1.330\\n' > $claude/claude
chmod +x $claude/claude
"""
NODE = """#!/bin/sh
case "$*" in
  --version) echo v20.1.0;;
  *)
    echo "$@" >> "$FAKE_LOG"
    npm install --prefix elsewhere opencode-linux-x64-musl && echo fetched >> "$FAKE_LOG"
    exit 0;;
esac
"""
GO = """#!/bin/sh
echo "GOWORK=$GOWORK $@" >> "$FAKE_LOG"
while [ "$1" != -o ]; do shift; done
printf '#!/bin/sh\\necho 1.3.0\\n' > "$2"
chmod +x "$2"
"""


class Machine:
    """A machine on which neither tool is there, with programs that note how they were called."""

    def __init__(self, folder: Path) -> None:
        self.bin, self.cache, self.log, self.lock = (folder / name for name in ("bin", "cache", "log", "lock.json"))
        self.bin.mkdir()
        self.log.touch()
        for name in ("sh", "mkdir", "cp", "chmod"):
            found = shutil.which(name)
            assert found is not None
            (self.bin / name).symlink_to(found)

    def program(self, name: str, text: str) -> None:
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def setup(self, step: str, program: Path = SETUP) -> "subprocess.CompletedProcess[str]":
        environ = {**os.environ, "PATH": str(self.bin), "XDG_CACHE_HOME": str(self.cache)}
        environ |= {"FAKE_LOG": str(self.log), "FAKE_LOCK": str(self.lock)}
        argv = [sys.executable, str(program), step]
        return subprocess.run(argv, env=environ, capture_output=True, text=True, timeout=240, check=False)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def packages(tool: str) -> "dict[str, dict[str, Any]]":
    """What the lock of a tool pins."""
    return json.loads((ROOT / "requirements" / tool / "package-lock.json").read_text())["packages"]


@pytest.mark.parametrize(("tool", "needed"), [
    ("opencode", {"node_modules/opencode-ai", "node_modules/opencode-linux-x64"}),
    ("claude", {"node_modules/@anthropic-ai/claude-code-linux-x64"}),
    ("claude-agent-acp", {"node_modules/@agentclientprotocol/claude-agent-acp"}),
])  # fmt: skip
def test_every_package_of_the_lock_has_a_hash(tool: str, needed: set[str]) -> None:
    found = packages(tool)
    assert needed <= set(found)
    assert [name for name, one in found.items() if name and not one.get("integrity", "").startswith("sha512-")] == []


@pytest.mark.parametrize(("tool", "ran", "name", "integrity"), [
    ("opencode", "postinstall.mjs", "opencode-linux-riscv", "sha512-abc="),  # a platform that the lock lacks
    ("opencode", "postinstall.mjs", "opencode-linux-x64", "sha512-abc="),
    ("opencode", "postinstall.mjs", "opencode-linux-x64", None),
    ("claude", "claude", "@anthropic-ai/claude-code-linux-arm64", "sha512-abc="),
    ("claude", "claude", "@anthropic-ai/claude-code-linux-x64", "sha512-abc="),
])  # fmt: skip
def test_what_the_lock_has_no_hash_of_is_refused_before_it_runs(
    machine: Machine, tool: str, ran: str, name: str, integrity: str | None
) -> None:
    machine.program("npm", NPM)
    machine.program("node", NODE)
    found = packages(tool)
    del found[""]
    machine.lock.write_text(json.dumps({"packages": found}))
    done = machine.setup(tool)
    assert (done.returncode, machine.log.read_text()) == (0, f"{ran}\n"), done.stderr
    shutil.rmtree(machine.cache)
    machine.log.write_text("")
    found[f"node_modules/{name}"] = {"version": "1.18.33", **({"integrity": integrity} if integrity else {})}
    machine.lock.write_text(json.dumps({"packages": found}))
    done = machine.setup(tool)
    assert (done.returncode, machine.log.read_text()) == (1, "")
    assert f"npm brought what package-lock.json has no hash of: node_modules/{name}\n" in done.stderr
    assert not [*machine.cache.rglob("node_modules")]


def test_the_demonstration_fetches_nothing_that_tests_alone_need() -> None:
    def fetched(target: str) -> set[str]:
        make = ["make", "--dry-run", "--no-print-directory", target]
        said = subprocess.run(make, cwd=ROOT, capture_output=True, text=True, timeout=240, check=True).stdout
        steps: dict[str, list[Callable[..., None]]] = runpy.run_path(str(SETUP))["STEPS"]
        return {step.__name__ for word in re.findall(r"setup\.py ([\w-]+)", said) for step in steps[word]}

    assert {"opencode", "bd"} <= fetched("demo")
    assert fetched("test") - fetched("demo") == {"claude", "claude_acp"}


def test_bd_is_built_from_sources_that_are_pinned_and_never_fetched(machine: Machine) -> None:
    machine.program("npm", 'echo npm >> "$FAKE_LOG"')
    machine.program("gcc", "#!/bin/sh\n")
    machine.program("go", GO)
    done = machine.setup("bd")
    assert done.returncode == 0, done.stderr
    assert (machine.cache / "ashep/tools/bd-1.3.0/bd").is_file()
    (called,) = machine.log.read_text().splitlines()
    assert called.startswith("GOWORK=off build -v -mod=readonly ")
    assert len((ROOT / "requirements/beads/go.sum").read_text().splitlines()) > 1000


def test_while_bd_is_being_built_the_demonstration_in_memory_is_shown(machine: Machine, tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    (clone / ".venv/bin").mkdir(parents=True)
    shutil.copytree(ROOT / "requirements", clone / "requirements")
    shutil.copy(ROOT / "pyproject.toml", clone)
    setup = clone / "requirements/setup.py"
    (clone / ".venv/.ashep-setup").write_text(runpy.run_path(str(setup))["fingerprint"]())
    (clone / ".venv/bin/python").touch()
    (clone / ".venv/bin/ashep").write_text('#!/bin/sh\necho "ashep $@" >> "$FAKE_LOG"\n')
    (clone / ".venv/bin/ashep").chmod(0o755)
    machine.program("gcc", "#!/bin/sh\n")
    waiting = 'until [ -s "$FAKE_LOG" ]; do :; done'  # it is not built before something was shown
    machine.program("go", GO.replace("#!/bin/sh\n", f"#!/bin/sh\n{waiting}\n"))
    for name in ("opencode", "bwrap"):
        machine.program(name, "#!/bin/sh\necho 1.18.33\n")
    done = machine.setup("demo", setup)
    assert done.returncode == 0, done.stderr
    first, second = machine.log.read_text().splitlines()
    assert first == "ashep demo --simulated"
    assert "build -v" in second
    machine.log.write_text("")
    assert machine.setup("demo", setup).returncode == 0
    assert machine.log.read_text() == "", "with bd there is nothing to wait for"
    machine.program("go", "#!/bin/sh\nexit 3\n")
    shutil.rmtree(machine.cache)
    done = machine.setup("demo", setup)
    assert (done.returncode, done.stderr.count("setup failed at: build bd")) == (1, 1)
