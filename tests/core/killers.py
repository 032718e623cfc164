"""Who catches which deliberate mistake: a table for the ordinary run, and the search for it, which `make deep` does.

`python -m tests.core.killers` tries every mistake on every playbook (or life, or policy) until one catches it, the one
of the table first, and says where the table is wrong; `--afresh` goes through all of them in their order, `--write`
writes the table anew. 1 where nobody catches one.
"""

import argparse
import inspect
import json
import multiprocessing
import os
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path

from tests.core.laws import at_rest
from tests.core.lives import live
from tests.core.mutants import BROKEN_LAWS, BROKEN_PLAYBOOKS, Mutant, planted

FOLDER = Path(__file__).parent
TABLE = FOLDER / "killers.toml"
SEARCH = "`make deep ARGS=mutants` finds who does"

HEAD = """\
# Who catches which deliberate mistake: a playbook for those of tests/core/mutants.py, or the life or policy of a seed.
# `python -m tests.core.killers --write` writes this file; where it is to be somebody else, say so here.
"""

Key = str | int


@dataclass(frozen=True)
class Hunt:
    """Mistakes of one kind, those who may catch one, and how it is seen that one does."""

    mutants: Sequence[Mutant]
    keys: Sequence[Key]
    catches: Callable[[Key], bool]


def named(hunt: str) -> dict[str, Key]:
    """Who catches the mistakes of a hunt, by their names."""
    table = tomllib.loads(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {}
    return table.get(hunt, {})


def is_caught(hunt: str, mutant: Mutant) -> bool:
    """Whether the one of the table catches the mistake."""
    with planted(mutant):
        return hunts()[hunt].catches(named(hunt)[mutant.name])


def words(hunt: str, mutant: Mutant) -> str:
    """What is said where it does not."""
    return f"{hunt}: {named(hunt)[mutant.name]} no longer catches {mutant.name!r}; {SEARCH}"


@cache
def playbooks() -> dict[str, Callable[[], None]]:
    """All of them, by name."""
    found: dict[str, Callable[[], None]] = {}
    for file in sorted(FOLDER.glob("test_playbook_*.py")):
        for name, function in vars(import_module(f"tests.core.{file.stem}")).items():
            if name.startswith("test_") and not inspect.signature(function).parameters:
                found[f"{file.stem}::{name}"] = function
    return found


def is_spoilt(name: Key) -> bool:
    """Whether the playbook goes otherwise than it says."""
    one = playbooks().get(str(name))
    if one is None:
        return False  # it is gone, or has another name
    try:
        one()
    except Exception:
        return True
    return False


def is_broken(seed: Key) -> bool:
    """Whether a law is broken in the life of this seed."""
    try:
        made = live(int(seed), 150)
        made.settle(400)
        at_rest(made)
    except Exception:
        return True
    return False


@cache
def hunts() -> dict[str, Hunt]:
    """All hunts; those of other files know this one, so that they are not known before they are asked for."""
    from tests.core import test_dispatcher
    from tests.policies import test_soundness

    return {
        "playbooks": Hunt(BROKEN_PLAYBOOKS, [*playbooks()], is_spoilt),
        "laws": Hunt(BROKEN_LAWS, range(100), is_broken),
        "remembering": Hunt(test_dispatcher.MUTANTS, test_dispatcher.KEYS, test_dispatcher.remembers_wrongly),
        "checker": Hunt(test_soundness.BLIND, test_soundness.KEYS, test_soundness.is_seen),
    }


def _search(work: tuple[str, int, bool]) -> Key | None:
    """Who catches it, of all: first who did before, then those beside, or who catch others; or in their order."""
    hunt, number, afresh = work
    one, table = hunts()[hunt], {} if afresh else named(hunt)
    mutant = one.mutants[number]
    before = table.get(mutant.name, "")
    beside = f"{before}".partition("::")[0] + "::"
    others = {*table.values()}
    for key in sorted(one.keys, key=lambda key: (key != before, not f"{key}".startswith(beside), key not in others)):
        with planted(mutant):
            caught = one.catches(key)
        if caught and not one.catches(key):  # what goes wrong without the mistake shows nothing of it
            return key
    return None


def _lines(found: dict[tuple[str, str], Key]) -> Iterator[str]:
    yield HEAD.rstrip()
    for hunt in hunts():
        yield f"\n[{hunt}]"
        yield from (f"{json.dumps(name)} = {json.dumps(key)}" for (of, name), key in found.items() if of == hunt)


def main() -> int:
    """Search; 1 where nobody catches a mistake."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write who was found into the table")
    parser.add_argument("--afresh", action="store_true", help="do not try the one of the table first")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    began = time.monotonic()
    work = [(hunt, number, asked.afresh) for hunt, one in hunts().items() for number in range(len(one.mutants))]
    names = [(hunt, hunts()[hunt].mutants[number].name) for hunt, number, _ in work]
    was = {(hunt, name): key for hunt in hunts() for name, key in named(hunt).items()}
    found: dict[tuple[str, str], Key] = {}
    with multiprocessing.Pool(asked.jobs) as pool:
        for name, key in zip(names, pool.imap(_search, work, chunksize=1), strict=True):
            if key is None:
                print(f"NOBODY catches it: {': '.join(name)}", flush=True)
                continue
            found[name] = key
            if key != was.get(name) and not asked.afresh:
                print(f"{': '.join(name)}: {key} catches it, not {was.get(name, 'anybody')}", flush=True)
    for name in was.keys() - {*names}:
        print(f"there is no such mistake: {': '.join(name)}")
    if asked.write:
        TABLE.write_text("\n".join(_lines(found)) + "\n", encoding="utf-8")
    seconds = time.monotonic() - began
    print(f"{len(found)} of {len(names)} mistakes caught, {seconds:.0f} s on {asked.jobs} processes")
    return int(found.keys() != {*names} or (was.keys() != {*names} and not asked.write))


if __name__ == "__main__":
    sys.exit(main())
