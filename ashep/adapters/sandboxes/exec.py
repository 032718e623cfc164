"""Programs that run where the agents of a place run, and are none of theirs: the set-up, and what a person tries."""

import json
import os
import select
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO

import anyio.to_thread

from ashep.adapters.sandboxes import bubblewrap
from ashep.adapters.sandboxes.bubblewrap import Bubblewrap, View, filter_file
from ashep.adapters.sandboxes.profiles import SandboxProfile
from ashep.adapters.system import process_table
from ashep.adapters.system.programs import Finished
from ashep.errors import ProgramMissing

StandardFiles = tuple[int | IO[bytes], int | IO[bytes], int | IO[bytes]]
_FIRST = 60.0  # seconds until a sandbox says which its first process is


@dataclass(frozen=True, slots=True)
class PlaceSandbox:
    """The sandbox of a place."""

    sandbox: Bubblewrap
    view: View
    environment: Mapping[str, str]
    """What its agents have."""

    async def run(
        self, argv: Sequence[str], at: Path, env: Mapping[str, str], timeout: float, longest: float = 0.0
    ) -> Finished:
        """Run a program to its end, in a folder of the place; `env`: variables next to those that agents have.

        `longest` as `programs.run` has it.
        """
        view, both = replace(self.view, at=at), {**self.environment, **env}
        return await bubblewrap.run(self.sandbox, view, argv, env=both, timeout=timeout, longest=longest)

    def foreground(self, argv: Sequence[str], at: Path) -> int:
        """Run a program at our terminal and give its exit code, as a shell does. Blocks; what it started ends, too."""
        before = signal.signal(signal.SIGINT, _leave)  # it is the program's: what is ignored would be, there too
        try:
            with filter_file() as passed:
                wrapped = self.sandbox.wrap(replace(self.view, at=at), argv, passed)
                process = subprocess.Popen(wrapped, cwd="/", env=dict(self.environment), pass_fds=passed)
                code = process.wait()
        except OSError as error:
            raise ProgramMissing(f"{self.sandbox.program} cannot be started: {error}") from error
        finally:
            signal.signal(signal.SIGINT, before)
        return code if code >= 0 else 128 - code


def _leave(*_: object) -> None:
    """Do nothing about a signal."""


async def enter(
    profile: SandboxProfile | None, environment: Mapping[str, str], project: Path | None = None
) -> PlaceSandbox | None:
    """Give the sandbox of a place, as its agents have it with their environment; None: they run without.

    `project`: its files can be read there, too, as far as its profile does not hide them.
    """
    if profile is None or profile.sandbox is None:
        return None
    view = replace(profile.view, lasting=False)
    if project is not None:
        view = replace(view, readable=(*view.readable, await anyio.to_thread.run_sync(project.resolve)))
    return PlaceSandbox(profile.sandbox, view, environment)


def start(
    bubblewrap: Bubblewrap | None, view: View, argv: Sequence[str], env: Mapping[str, str], files: StandardFiles
) -> "tuple[subprocess.Popen[bytes], int | None]":
    """Start a program in a session of its own, to be reaped once it has ended; give its process and the id of its
    sandbox's first one: where that is killed all in it end. None: there is none, or it did not say so, and has ended or
    soon will.

    `bubblewrap`: None: it sees what we see. `files`: its standard input, output and error. Blocks for as long as a
    sandbox takes. Raises `OSError`.
    """
    begin = partial(
        subprocess.Popen[bytes], env=env, stdin=files[0], stdout=files[1], stderr=files[2], start_new_session=True
    )
    if bubblewrap is None:
        process = begin(argv, cwd=view.at)
        process_table.children[process.pid] = process
        return process, None
    ends = [*os.pipe()]
    read, write = ends
    try:
        with filter_file() as forbidding:
            wrapped = bubblewrap.wrap(view, argv, forbidding, write)
            process = begin(wrapped, cwd="/", pass_fds=(write, *forbidding))
        process_table.children[process.pid] = process
        os.close(ends.pop())
        told = b""
        while select.select([read], [], [], _FIRST)[0] and (more := os.read(read, 4096)):
            told += more
        with suppress(ValueError, KeyError):
            return process, int(json.loads(told)["child-pid"])
        return process, None
    finally:
        for end in ends:
            os.close(end)


def find_program_folders(program: Path | None) -> set[Path]:
    """Give the folders of a program; of a package of npm's all that it came with. None: there is no program. Blocks."""
    found = set[Path]()
    for one in (program.absolute(), program.resolve()) if program is not None else ():
        packages = [folder for folder in one.parents if folder.name == "node_modules"]
        found.add(packages[-1] if packages else one.parent)
    return found
