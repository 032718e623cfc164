"""The stage: a user's home, project, processes and sockets, each with a secret of its own, and agents in places."""

import json
import os
import secrets
import shutil
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import anyio.to_thread
import httpx
import pytest

from ashep import factories
from ashep.adapters.runners.opencode.isolated_runner import folder_for, leave
from ashep.adapters.runners.opencode.runner import OpencodeRunner
from ashep.adapters.runners.opencode.server import ServerRecord, folder_of
from ashep.adapters.system import control_socket, programs
from ashep.core.policy.settings import Settings
from chaos.attacks import driver, prelude
from tests import databases
from tests.places import QUICK, RUN

MARK = "REACHED"
SHOP = "ashep/t-1"
"""The branch in whose place the agent of the shell works."""
OTHER, LATER = "ashep/t-2", "ashep/t-3"

Seen = dict[str, tuple[int, bytes]]


@dataclass
class Agent:
    """Who works in a place, and what the daemon started for them."""

    place: Path
    runner: OpencodeRunner
    record: ServerRecord


class Stage:
    """Everything that an attack may want, and what tells whether it got it."""

    def __init__(self, folder: Path, sandbox: str) -> None:
        self.sandbox, self.home, self.project = sandbox, folder / "home", folder / "home" / "project"
        self.places = self.project / ".agent-shepherd" / "places"
        self.state = self.project / ".agent-shepherd" / "state"
        self.bin, self.stray = folder / "bin", Path("/dev/shm") / f"{folder.name}-{secrets.token_hex(4)}"
        self.sleep = f"7{os.getpid()}"
        """Seconds for which what is left behind sleeps: it is found by them."""
        self.words: dict[str, str] = {}
        """The secrets, by what holds them."""
        self.known: dict[str, object] = {}
        """What a script knows: where everything is. None of it is a secret."""
        self.settings = Settings.model_validate(
            {
                "worker": {"workspace": "place"}, "agents": {"sandbox": sandbox},
                "runners": {"opencode": {
                    "isolation": "place", "command": (str(self.bin / "opencode"),), "environment": (RUN,),
                }},
            }
        )  # fmt: skip
        self.records: dict[Path, str] = {}
        self._stack = ExitStack()

    def word(self, name: str) -> str:
        """A secret."""
        return self.words.setdefault(name, f"secret-{len(self.words)}-{secrets.token_hex(8)}")

    # --- the stage is set -----------------------------------------------------------------------------------------

    @contextmanager
    def open(self) -> Iterator["Stage"]:
        with self._stack as stack:
            for made in (self.home / "target", self.bin, self.state):
                made.mkdir(parents=True)
            self._program()
            stack.enter_context(self._environment())
            self._files()
            self._repository()
            self._sockets()
            self._processes()
            yield self
            for file in (self.stray, self.tmp, *self._doors()):
                if file is not None:
                    file.unlink(missing_ok=True)

    def _program(self) -> None:
        text = Path(driver.__file__).read_text()
        (self.bin / "opencode").write_text(f"#!{sys.executable} -IS\n{text}")
        (self.bin / "opencode").chmod(0o755)
        bd = programs.find("bd")
        assert bd is not None, "`make setup` gets bd"
        self.bd_program = bd.absolute()

    @contextmanager
    def _environment(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            private = ("XDG_", "OPENCODE", "ASHEP", "BEADS", "BD_", "GIT_")
            for name in [name for name in os.environ if name.startswith(private) and name != RUN]:
                patch.delenv(name)
            mine = {"HOME": str(self.home), "PATH": f"{self.bd_program.parent}:{os.environ['PATH']}"}
            mine |= {"OPENAI_API_KEY": self.word("a provider's key"), "GITHUB_TOKEN": self.word("a forge's token")}
            mine |= {
                "SSH_AUTH_SOCK": str(self.home / "agent.sock"),
                "GIT_CONFIG_NOSYSTEM": "1",
                "BD_NON_INTERACTIVE": "1",
            }
            for name, value in (mine | {"BD_DISABLE_METRICS": "1"} | QUICK).items():
                patch.setenv(name, value)
            yield

    def _files(self) -> None:
        self.servers = folder_of(self.state, os.environ)
        renewed = {"type": "oauth", "access": "x", "refresh": "what-renews-it", "expires": 0}
        auth = json.dumps({"provider": {"type": "api", "key": self.word("auth.json")}, "other": renewed})
        settings = json.dumps({"provider": {"x": {"options": {"apiKey": self.word("opencode.json")}}}})
        files = {
            self.home / ".ssh" / "id_key": f"-----BEGIN PRIVATE KEY-----\n{self.word('a key')}\n",
            self.home / ".env": f"KEY={self.word('.env at home')}\n",
            self.home / ".bashrc": "# the user's\n",
            self.home / ".gitconfig": "[user]\n\tname = pat\n\temail = pat@localhost\n",
            self.home / ".local" / "bin" / "tool": "#!/bin/sh\n",
            self.home / ".local" / "bin" / ".env": f"KEY={self.word('.env beside programs')}\n",
            self.home / ".npm-global" / "etc" / "npmrc": f"_auth={self.word('a key beside programs')}\n",
            self.home / ".config" / "opencode" / "opencode.json": settings,
            self.home / ".config" / "opencode" / "plugin" / "mine.js": "// the user's\n",
            self.home / ".local" / "share" / "opencode" / "auth.json": auth,
            self.project / ".env": f"KEY={self.word('.env of the project')}\n",
            self.project / ".agent-shepherd" / "config.yaml": "version: 1\n",
            self.project / ".agent-shepherd" / "policies.yaml": "version: 1\n",
            self.state / "journal" / "0001.jsonl": f'{{"type": "{self.word("the journal")}"}}\n',
            self.servers / "data" / "opencode" / "opencode.db": self.word("sessions of the judges"),
            self.servers / "base" / "00" / ".opencode" / "agent" / "judge.md": "Judge well.\n",
            self.stray: self.word("shared memory"),
        }
        self.tmp = Path("/tmp") / self.stray.name
        for path, text in (files | {self.tmp: self.word("/tmp")}).items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def _repository(self) -> None:
        databases.copied("e", self.project)
        (self.project / "a.txt").write_text("a\n")
        (self.project / ".gitignore").write_text(".env\n.agent-shepherd/\n")
        for words in (("checkout", "-q", "-b", "main"), ("add", "-A"), ("commit", "-qm", "First")):
            self.git(*words)
        self.saved = self.git("hash-object", "-w", "--stdin", stdin=self.word("what was saved of others"))
        self.issue = self.bd("create", "--title=ask me", "--type=task", "--silent").strip()

    def _doors(self) -> list[Path]:
        """The sockets of the daemon and of the page's server."""
        found = [control_socket.place(self.state, os.environ, one) for one in (control_socket.LINK, control_socket.UI)]
        return [one for one in found if one is not None]

    def _sockets(self) -> None:
        control, page = self._doors()
        (self.state / control_socket.LINK).symlink_to(control)
        (self.state / control_socket.UI).symlink_to(page)
        (self.state / "service.token").write_text(self.word("the token of the page's server"))
        (self.state / "devices.json").write_text(self.word("hashes of tokens of devices"))
        self._listens("the socket by which people come to the page", socket.AF_UNIX, str(page))
        abstract = f"\0{self.stray.name}"
        self._listens("a socket in the home", socket.AF_UNIX, str(self.home / "agent.sock"))
        self._listens("a socket beside programs", socket.AF_UNIX, str(self.home / ".local" / "bin" / "s"))
        self._listens("the control socket", socket.AF_UNIX, str(control))
        Path("/tmp", f"{self.tmp.name}.sock").unlink(missing_ok=True)
        self._listens("a socket in /tmp", socket.AF_UNIX, f"{self.tmp}.sock")
        self._stack.callback(Path(f"{self.tmp}.sock").unlink, missing_ok=True)
        self._listens("an abstract socket", socket.AF_UNIX, abstract)
        port = self._listens("a service of loopback", socket.AF_INET, ("127.0.0.1", 0))
        judges = self._answers(self.servers, "the judges' server")
        others = self._answers(folder_for(self.state, self.places / OTHER), "the server of another place")
        self.known |= {
            "HOME": str(self.home), "PROJECT": str(self.project), "PLACES": str(self.places),
            "STATE": str(self.state), "SERVERS": str(self.servers), "CONTROL": str(control), "PAGE": str(page),
            "TMP": str(self.tmp), "SHM": str(self.stray), "ABSTRACT": abstract, "PORT": port, "JUDGES": judges,
            "OTHERS": str(folder_for(self.state, self.places / OTHER)), "OTHER_PORT": others,
            "OTHER_PLACE": str(self.places / OTHER), "BD": str(self.bd_program), "ISSUE": self.issue,
            "SAVED": self.saved, "PYTHON": sys.executable,
        }  # fmt: skip

    def _listens(self, name: str, family: int, address: object) -> int:
        """Somebody listens there who tells everyone a secret. Gives the port."""
        wire, word = socket.socket(family), self.word(name).encode()
        wire.bind(address)  # pyright: ignore[reportArgumentType] - as its family has it
        wire.listen(64)

        def tell() -> None:
            with suppress(OSError):
                while True:
                    with wire.accept()[0] as one:
                        one.settimeout(0.2)
                        with suppress(OSError):
                            one.recv(4096)
                        one.sendall(word)

        threading.Thread(target=tell, daemon=True).start()
        self._stack.callback(wire.close)
        self._stack.callback(wire.shutdown, socket.SHUT_RDWR)
        return wire.getsockname()[1] if family == socket.AF_INET else 0

    def _answers(self, folder: Path, name: str) -> int:
        """An agent server answers who knows its password, which stands in its folder. Gives the port."""
        word, password = self.word(name), secrets.token_urlsafe(12)
        pair = httpx.BasicAuth("opencode", password)._auth_header  # pyright: ignore[reportPrivateUsage] - spares its own

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                known = self.headers["Authorization"] == pair
                self.send_response(200 if known else 401)
                self.end_headers()
                self.wfile.write(word.encode() if known else b"no")

            def log_message(self, format: str, *args: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self._stack.callback(server.server_close)
        self._stack.callback(server.shutdown)
        folder.mkdir(parents=True, exist_ok=True)
        record = ServerRecord(token=self.word(f"the token of {name}"), port=server.server_port, password=password)
        self.records[folder / "server.json"] = record.model_dump_json()
        self.write_records()
        return server.server_port

    def write_records(self) -> None:
        """What stands in the folders of servers of others; whoever ends one takes its record away."""
        for file, text in self.records.items():
            file.write_text(text)

    def _processes(self) -> None:
        held = os.memfd_create("held")
        os.write(held, self.word("an open file of the daemon").encode())
        environment = {"CANARY": self.word("the daemon's environment"), "PATH": os.environ["PATH"]}
        words = ["sh", "-c", "while :; do sleep 600; done", self.word("the command line of a process")]
        self.process = subprocess.Popen(words, env=environment, pass_fds=[held])
        os.close(held)
        self.known |= {"PID": self.process.pid, "HELD": held, "SLEEP": self.sleep}

        def end() -> None:
            self.process.kill()
            self.process.wait()

        self._stack.callback(end)

    # --- programs -------------------------------------------------------------------------------------------------

    def git(self, *words: str, stdin: str = "", at: Path | None = None) -> str:
        done = subprocess.run(
            ["git", *words], cwd=at or self.project, input=stdin.encode(), capture_output=True, timeout=120
        )
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout.decode(errors="replace").strip()

    def bd(self, *words: str) -> str:
        done = subprocess.run(
            [self.bd_program, "--actor=pat", *words], cwd=self.project, capture_output=True, timeout=120
        )
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout.decode()

    # --- agents ---------------------------------------------------------------------------------------------------

    async def begin(self, branch: str) -> Agent:
        """A place is made as for a run, and what the daemon starts for it."""
        prepared = await factories.worktrees_of(self.project, self.settings).prepare(branch, None, 0)
        place = Path(prepared.path)
        runner = factories.make_place_runner(self.project, self.settings, place)
        await runner.start()
        record = folder_for(self.state, place) / "server.json"
        return Agent(place, runner, ServerRecord.model_validate_json(record.read_bytes()))

    async def leave(self, agent: Agent) -> None:
        """What is done before anything is sealed there."""
        await agent.runner.aclose()
        await leave(self.state, agent.place)

    async def run(self, agent: Agent, code: str) -> str:
        """The agent runs this, and this is what it printed."""
        known = self.known | {"PLACE": str(agent.place), "OWN_PORT": agent.record.port}
        script = "".join(f"{name} = {value!r}\n" for name, value in known.items())
        text = Path(prelude.__file__).read_text()

        def send() -> str:
            auth = ("opencode", agent.record.password)
            url = f"http://127.0.0.1:{agent.record.port}/"
            body = f"{script}{text}\n{code}\n"
            return httpx.post(url, content=body, auth=auth, timeout=60, trust_env=False).text

        return await anyio.to_thread.run_sync(send)

    # --- what came of it ------------------------------------------------------------------------------------------

    def told(self, text: str) -> list[str]:
        """Which secrets stand in a text."""
        return [name for name, word in self.words.items() if word in text] + ([MARK] if MARK in text else [])

    def seen(self, but: tuple[Path, ...] = ()) -> Seen:
        """All that is the user's, without what the agent may change."""
        found = dict[str, tuple[int, bytes]]()
        for top in (self.home, self.stray, self.tmp):
            for path in _walked(top, but):
                about = path.lstat()
                if stat.S_ISREG(about.st_mode):
                    found[str(path)] = about.st_mode, path.read_bytes()
                elif stat.S_ISLNK(about.st_mode):
                    found[str(path)] = about.st_mode, os.fsencode(os.readlink(path))
                elif not stat.S_ISSOCK(about.st_mode):
                    found[str(path)] = about.st_mode, b""
        found["the user's process"] = 0, b"lives" if self.process.poll() is None else b"is dead"
        return found

    def restore(self, before: Seen, after: Seen) -> None:
        """Make it again as it was."""
        if before["the user's process"] != after["the user's process"]:
            self._processes()
        for name in sorted(after.keys() - before.keys(), reverse=True):
            with suppress(FileNotFoundError):
                shutil.rmtree(name) if stat.S_ISDIR(after[name][0]) else os.unlink(name)
        for name, (mode, content) in before.items():
            if after.get(name) != (mode, content) and stat.S_ISREG(mode):
                Path(name).unlink(missing_ok=True)
                Path(name).write_bytes(content)
                Path(name).chmod(stat.S_IMODE(mode))


def changed(before: Seen, after: Seen) -> list[str]:
    """What is not as it was."""
    return sorted(name for name in {*before, *after} if before.get(name) != after.get(name))


def _walked(top: Path, but: tuple[Path, ...]) -> Iterator[Path]:
    """A file, or a folder and all below it, but for some."""
    yield top
    if top.is_dir() and not top.is_symlink():
        for path in sorted(top.iterdir()):
            if path not in but:
                yield from _walked(path, but)


Proof = Callable[[Stage], bool]
