"""Where programs of checks run: what they see, and what they cannot reach."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ashep.adapters.sandboxes.bubblewrap import PATH, Bubblewrap, View, system_calls, try_out
from ashep.core.policy.verification_settings import VerificationSettings

FILTER = 4
"""The file descriptor at which a program in the sandbox finds the system calls that it may make."""


@dataclass(frozen=True, slots=True)
class CheckFolders:
    """The folders of one verification."""

    place: Path
    """The folder around the others but `objects`."""
    tree: Path
    """The checkout, in which programs start."""
    home: Path
    """What programs take for the user's home."""
    tmp: Path
    """What they take for the place of temporary files."""
    objects: Path
    """The repository's objects, which the checkout's git reads."""


CACHES = (
    ".cache/pip", ".cargo/git", ".cargo/registry", ".m2/repository", ".npm/_cacache", ".rustup", "go/pkg/mod",
)  # fmt: skip
"""Caches of dependencies in the user's home, which hold nobody's keys: the private home of checks leads to them.

Without its toolchains rustup's cargo does not start."""


def link_caches(home: Path) -> None:
    """Have the private home of checks lead to the caches of dependencies in the user's, but where it has its own.
    Blocks.
    """
    for name in CACHES:
        if (Path.home() / name).is_dir() and not (home / name).exists():
            (home / name).parent.mkdir(parents=True, exist_ok=True)
            (home / name).symlink_to(Path.home() / name)


class Nothing:
    """No sandbox: a program can reach what the user can; its environment, time and output are bounded all the same."""

    isolated = False

    def wrap(self, argv: Sequence[str], folders: CheckFolders, path: str) -> list[str]:
        """Give the command line as it is."""
        return list(argv)

    def environment(self, folders: CheckFolders) -> dict[str, str]:
        """Variables of the environment that depend on the place."""
        return {"TMPDIR": str(folders.tmp)}


class Isolated:
    """Namespaces of its own for each program: it sees the machine's programs and the checkout, and can change that."""

    isolated = True

    def __init__(self, bubblewrap: Bubblewrap, network: bool, readable: Sequence[str], hidden: Sequence[Path]) -> None:
        self._bubblewrap, self._network = bubblewrap, network
        self._readable, self._hidden = tuple(Path(path).expanduser() for path in readable), tuple(hidden)

    def wrap(self, argv: Sequence[str], folders: CheckFolders, path: str) -> list[str]:
        """Give the command line that runs a program, looked for on `path`, in the sandbox. Blocks."""
        scripts = folders.tree / SCRIPTS
        ours = (folders.objects, Path(__file__).parent)
        view = View(
            at=folders.tree,
            writable=(folders.tree, folders.home),
            readable=(*self._readable, *(Path.home() / name for name in CACHES)),
            hidden=self._hidden,
            kept=(*ours, scripts) if scripts.is_dir() and not scripts.is_symlink() else ours,
            tmp=folders.tmp,
            path=path,
            network=self._network,
        )
        return self._bubblewrap.wrap(view, argv, (FILTER,) if system_calls() else ())

    def environment(self, folders: CheckFolders) -> dict[str, str]:
        """Variables of the environment that depend on the place."""
        return {"TMPDIR": "/tmp"}


Sandbox = Nothing | Isolated


@dataclass(frozen=True, slots=True)
class Isolation:
    """What there is on this machine, and what it leaves open."""

    sandbox: Sandbox
    unusable: str
    """Why there is no sandbox although one was wished for; empty: there is, or none was."""
    withheld: Literal["", "strangers", "all"]
    """Whose programs may not run without one: those of checks that stand in an issue's text, or all."""
    lines: tuple[str, ...]
    """What is isolated and what is not, for people."""

    def refused(self, *, stranger: bool) -> str:
        """Say why no program of a check runs; empty: it does. `stranger`: the check stands in an issue's text."""
        if self.withheld == "all":
            return f"`verification.sandbox` is bwrap, and {self.unusable}"
        if self.withheld == "strangers" and stranger:
            return (
                f"what an issue's text says is run in a sandbox alone, and {self.unusable}; install it, move the check "
                "to policies.yaml, or set `verification.sandbox: none`, knowing that it runs with your rights then"
            )
        return ""


async def probe(settings: VerificationSettings, hidden: Sequence[Path], scratch: Path) -> Isolation:
    """Find out what can be isolated here, by starting a shell in a sandbox.

    `hidden`: what no check sees, wherever it lies. `scratch`: an existing folder of ours.
    """
    if settings.sandbox == "none":
        return Isolation(Nothing(), "", "", _open("`verification.sandbox` is none"))
    found = await try_out(scratch)
    if isinstance(found, Bubblewrap):
        isolated = Isolated(found, settings.network, settings.paths, hidden)
        return Isolation(isolated, "", "", _closed(settings.network))
    return Isolation(Nothing(), found, "all" if settings.sandbox == "bwrap" else "strangers", _open(found))


def _closed(network: bool) -> tuple[str, ...]:
    reach = "the network is open (`verification.network`)" if network else "no network but a loopback of their own"
    return (
        f"checks run in bubblewrap: {reach}; they can write to their checkout alone, see no process of yours, "
        "and leave none",
        "they see the machine's programs, toolchains of your home, `verification.paths`, and no other file of yours; "
        "not bounded: disk space and processor time, but by a check's time",
    )


def _open(why: str) -> tuple[str, ...]:
    return (
        f"checks run without a sandbox: {why}",
        "not isolated: what agents wrote runs with your rights in checks, it can read and change your files, and reach "
        "the network; only environment, time, output, processes and the size of files have bounds",
    )


def environment(
    folders: CheckFolders, names: Sequence[str], environ: Mapping[str, str], sandbox: Sandbox
) -> dict[str, str]:
    """The whole environment of a check's program; `names`: variables of ours that it is given besides."""
    own = {
        "TERM": "dumb",
        "HOME": str(folders.home),
        # no folder's git looks into the one above it: the checkout may lie in the user's work tree
        "GIT_CEILING_DIRECTORIES": os.pathsep.join(map(str, folders.tree.parents)),
    }
    given = given_to(names, environ)
    return {**own, **sandbox.environment(folders), **given}


def given_to(names: Sequence[str], environ: Mapping[str, str]) -> dict[str, str]:
    """The part of a program's environment that comes from ours; the rest is the same for each."""
    usual = {"PATH": environ.get("PATH", PATH), "LANG": environ.get("LANG", "C.UTF-8")}
    return usual | {name: environ[name] for name in names if name in environ}


SCRIPTS = ".agent-shepherd"
"""The folder that comes from the base: an agent that edits its gate changes nothing."""
