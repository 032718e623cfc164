"""`python -m tools.wheel_check`: installs the wheels of dist/ as README.md says, in an empty home, and tries them.

On PATH is what this machine has, but Node, Go, a C compiler, the tools and ashep itself. Nothing may be built: what
lacks a wheel is an error. Without ashep-bd in dist/ (`make bd-wheel`) bd is the one of this machine, and what is tried
of the wheel's is left out, as the last line says. In the end Claude Code joins bd on PATH, a person types `ashep setup`
in a repository, one of whose issues at a played GitHub carries the label, and it must land.
"""

import glob
import http.client
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import anyio

from ashep.adapters.system import programs
from requirements.setup import ROOT, VENV, uv_environment
from tests.first_hour.first_issue import CALC, list_questions, play_issue_of_github
from tools.release import installing

_HIDDEN = {"node", "npm", "npx", "go", "gofmt", "gcc", "cc", "bd", "opencode", "claude", "ashep", "make"}


class Machine:
    """An empty home, and programs without those that a user need not have."""

    def __init__(self, folder: Path) -> None:
        """Makes the home and the folder of programs."""
        self.home, self.bin = folder / "home", folder / "bin"
        self.project = self.home / "project"
        self.project.mkdir(parents=True)
        self.bin.mkdir()
        for name in {path for place in ("/usr/bin", "/bin") for path in os.listdir(place)} - _HIDDEN:
            (self.bin / name).symlink_to(
                Path("/usr/bin", name) if Path("/usr/bin", name).exists() else Path("/bin", name)
            )
        (self.bin / "uv").symlink_to(VENV / "bin" / "uv")
        cache = subprocess.run([VENV / "bin" / "uv", "cache", "dir"], capture_output=True, text=True, check=True).stdout
        self.environment = {
            **{name: value for name, value in uv_environment().items() if name != "VIRTUAL_ENV"},
            **{name: os.environ[name] for name in ("SSL_CERT_FILE", "UV_DEFAULT_INDEX") if name in os.environ},
            "UV_CACHE_DIR": cache.strip(),
            "UV_NO_BUILD": "1",
            "UV_PYTHON": os.path.realpath(sys.executable),
            "HOME": str(self.home),
            "PATH": f"{self.home}/.local/bin:{self.bin}",
        }

    def run(self, line: str, cwd: Path | None = None) -> str:
        """Run a line and return what it printed. Raises SystemExit if it fails."""
        done = self._run(line, cwd or self.project)
        if done.returncode:
            raise SystemExit(f"{line} ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done.stdout

    def refuse(self, line: str) -> str:
        """Run a line that must end with a usage error, and return its message."""
        done = self._run(line, self.project)
        assert done.returncode == 2, f"{line} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        return done.stderr

    def _run(self, line: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        began = time.monotonic()
        words = [one for word in shlex.split(line) for one in (sorted(glob.glob(word, root_dir=ROOT)) or [word])]
        done = subprocess.run(words, cwd=cwd, env=self.environment, capture_output=True, text=True, check=False)
        print(f"{time.monotonic() - began:6.1f} s  {line}", flush=True)
        return done


def page_is_shown(machine: Machine) -> None:
    """Asks the server of the installed ashep for its page, and for what the page names."""
    argv = ["ashep", "serve", "--port", "0"]
    serving = subprocess.Popen(argv, cwd=machine.project, env=machine.environment, stdout=subprocess.PIPE, text=True)
    assert serving.stdout is not None
    try:
        address = re.search(r"listening on http://(\S+);", serving.stdout.readline())
        assert address is not None, "ashep serve says where it listens"
        shown = _ask(address[1], "/")
        assets = re.findall(r'(?:src|href)="(/assets/[^"]+)"', shown)
        assert assets
        assert all(_ask(address[1], asset) for asset in assets)
    finally:
        serving.terminate()
        serving.wait(30)
    print(f"         ashep serve: the page and {len(assets)} files that it names", flush=True)


def _ask(address: str, path: str) -> str:
    asked = http.client.HTTPConnection(address, timeout=30)
    asked.request("GET", path, headers={"Accept": "text/html"})
    answer = asked.getresponse()
    assert answer.status == 200, path
    return answer.read().decode()


def first_issue_lands(machine: Machine, *, has_bd: bool) -> str:
    """Plays the first issue with what is installed, and returns how it went, or what is not there."""
    for name in ("claude", "bwrap") if has_bd else ("claude", "bd", "bwrap"):
        program = programs.find(name)
        if program is None and name != "bwrap":
            return f"left out: the first issue, for there is no {name} on this machine"
        if program is not None and not (machine.bin / name).exists():
            (machine.bin / name).symlink_to(program)
    calc = machine.home / "calc"
    calc.mkdir()
    for name, text in CALC.items():
        (calc / name).write_text(text)
    began = time.monotonic()
    terminal = anyio.run(play_issue_of_github, ["ashep", "setup"], calc, machine.environment)
    assert "def mul" in machine.run("git show main:calc.py", calc)
    questions = len(list_questions(terminal))
    return f"the first issue landed {time.monotonic() - began:.0f} s after `ashep setup` and its {questions} questions"


def main() -> None:
    """Installs and tries; the last line says what held."""
    began, has_bd = time.monotonic(), bool(glob.glob("dist/ashep_bd-*.whl", root_dir=ROOT))
    with tempfile.TemporaryDirectory(prefix="ashep-wheel-") as folder:
        machine = Machine(Path(folder))
        line = installing(ROOT) if has_bd else re.sub(r"--with \S+ ", "", installing(ROOT))
        machine.run(line, ROOT)
        assert "ashep" in machine.run("ashep --help")
        assert "proof" in machine.run("ashep demo --simulated")
        assert "proof" in machine.run("ashep demo --github")
        machine.run("git init -q -b main")
        machine.run("git -c user.name=a -c user.email=a@b commit -q --allow-empty -m first")
        lack = machine.refuse("ashep setup --yes")
        assert "no agent is on PATH" in lack
        assert "make" not in lack.split(), "there is no checkout here"
        machine.run("ashep init")
        page_is_shown(machine)
        if has_bd:
            bd = machine.run("ashep get-bd").removeprefix("bd: ").strip()
            assert bd.startswith(str(machine.home)), f"{bd} is the wheel's"
            machine.run(f"{bd} init --stealth --skip-hooks --skip-agents")
            found = subprocess.run(
                ["ashep", "install", "--json"], cwd=machine.project, env=machine.environment, capture_output=True
            )
            lines = {one["check"]: one for one in json.loads(found.stdout)["checks"]}
            assert (lines["bd"]["level"], lines["database"]["level"]) == ("ok", "ok")
            assert not any("make setup" in one["remedy"] for one in lines.values()), "there is no checkout here"
        landed = first_issue_lands(machine, has_bd=has_bd)
    rest = "bd comes by its wheel" if has_bd else "left out: the wheel of bd, for dist/ holds no ashep-bd"
    print(f"{time.monotonic() - began:.0f} s: installed, demonstration, page; {landed}; {rest}")


if __name__ == "__main__":
    main()
