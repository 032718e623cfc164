"""Who works in a place next to its server: processes of other kinds of agents, so that whoever needs the place for
itself ends all of them, also when the runner that started them is not there.
"""

import json
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import anyio.to_thread

from ashep.adapters.system import process_table
from ashep.errors import AshepError
from ashep.journal import durable_io

_FOLDER = "occupants"


def note(folder: Path, mark: process_table.ProcessMark, first: tuple[int, int] | None) -> None:
    """Write down who works in the place that has its things in `folder`: before it is started without, and then with
    the first process of its sandbox and that one's start time. Blocks.
    """
    name = sha256(mark.value.encode()).hexdigest()[:16]
    durable_io.make_folder(folder / _FOLDER)
    durable_io.replace(folder / _FOLDER / name, json.dumps([*mark, first]).encode())


async def evict(folder: Path, error: type[AshepError]) -> None:
    """End all who work there, and see them dead. Raises `error` where one does not end."""
    for file in await anyio.to_thread.run_sync(lambda: sorted((folder / _FOLDER).glob("*"))):
        with suppress(FileNotFoundError, ValueError):
            variable, value, argument, first = json.loads(await anyio.to_thread.run_sync(file.read_bytes))
            if first is not None:
                pid, started = first
                await process_table.kill(pid, started, error)
            await process_table.end(process_table.ProcessMark(variable, value, argument), error)
        await anyio.to_thread.run_sync(lambda file=file: file.unlink(missing_ok=True))
