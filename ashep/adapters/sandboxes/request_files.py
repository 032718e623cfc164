"""What an agent in a sandbox asks the daemon, by files: an empty one with a fresh name, and the answer to that name.

Whoever asks may put anything into the folder of asks, at any moment. So nothing is read there, opened or followed: the
daemon takes names, a few at a time, by the folder itself, and answers where nobody inside can write.
"""

import os
import re
from collections.abc import AsyncGenerator
from contextlib import suppress
from itertools import islice
from pathlib import Path

import anyio
from watchfiles import awatch  # pyright: ignore[reportUnknownVariableType] - a part of its type is not shipped

from ashep.journal import durable_io

ASKS, ANSWERS = "asks", "answers"
"""In the folder of a server, for what is asked; and in that of its stubs, for what is answered."""

AT_ONCE = 16
"""Names that a look takes in: a folder may hold any number of them."""

_NAME = re.compile("[0-9a-f]{16}")
_KEPT = 16  # answers; whoever waits for one looks several times a second
_PAUSE, _LONGEST = 200, 1000  # milliseconds between looks, where something stirs and where nothing does

STUB = """#!/bin/sh
# Issues are Agent Shepherd's to change. What you have committed is checked by it when you ask: it answers to a file.
here="$(dirname "$0")"
if [ "$1" != verify ]; then
    echo "ashep is not in here, but for \\`ashep verify\\`: what you finish is checked when you say so" >&2
    exit 1
fi
name="$(od -An -N8 -tx1 /dev/urandom | tr -d ' \\n')"
ask="$here/../asks/$name" answer="$here/answers/$name" looks=0
trap 'rm -f "$ask"' EXIT
trap 'exit 130' HUP INT TERM
touch "$ask" || exit 69
echo "this waits for what the checks of your issue find in what you have committed" >&2
until [ -f "$answer" ]; do
    if [ $looks -ge 300 ] && [ -e "$ask" ]; then
        echo "nobody answers: the daemon is not there; what you finish is checked when you say so" >&2
        exit 69
    elif [ $looks -ge 9000 ]; then
        echo "it takes too long; what you finish is checked when you say so" >&2
        exit 69
    fi
    sleep 0.2
    looks=$((looks + 1))
done
{ read -r code; cat; } <"$answer"
exit "$code"
"""
"""What stands for `ashep` in there."""


async def stirring(folder: Path) -> AsyncGenerator[None]:
    """Yield after something came into a folder, and now and then when nothing did, for ever, never without a pause."""
    while True:
        with suppress(OSError):  # it is gone, or the machine has no more watches to give
            watch = awatch(folder, recursive=False, debounce=_PAUSE, rust_timeout=_LONGEST, yield_on_timeout=True)
            async for _ in watch:
                yield
        yield
        await anyio.sleep(_LONGEST / 1000)


def take(folder: Path) -> list[str]:
    """Take asks away, whatever they are, and give their names; what cannot be taken away is none. Blocks."""
    taken = list[str]()
    with suppress(OSError):
        at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            with os.scandir(at) as entries:
                for name in [entry.name for entry in islice(entries, AT_ONCE) if _NAME.fullmatch(entry.name)]:
                    with suppress(OSError):  # a folder
                        os.unlink(name, dir_fd=at)
                        taken.append(name)
        finally:
            os.close(at)
    return taken


def answer(folder: Path, name: str, code: int, text: str) -> None:
    """Put an answer where whoever asked finds it, whole; the oldest go. Blocks. `folder`: that of answers."""
    durable_io.replace(folder / name, f"{code}\n{text}".encode(errors="replace"))
    with suppress(OSError):  # two answers at once take the same away
        for old in sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime_ns)[:-_KEPT]:
            old.unlink()
