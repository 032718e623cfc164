"""Run a seed, tell its story, and find out which kinds of chaos it needs."""

import gc
import json
import secrets
import shutil
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import anyio
from anyio import to_thread
from anyio._backends._asyncio import CancelScope  # its sets are walked in the order of addresses

from ashep.core.facts.records import Entry
from ashep.daemon.effects import executor
from ashep.prompt.template_context import Brief
from chaos.torture import disk
from chaos.torture.chaos import Dice, Kinds, without
from chaos.torture.loop import LIFE, StandsStill, TortureLoop, cancelled_in_order
from chaos.torture.world import World
from tests.places import made as new_folder


@dataclass
class Story:
    """What became of a seed."""

    seed: int
    kinds: Kinds
    bad: list[str] = field(default_factory=list[str])
    happened: list[tuple[float, datetime, object]] = field(default_factory=list[tuple[float, datetime, object]])
    lives: int = 0
    lost: int = 0
    journal: bytes = b""

    def tell(self) -> str:
        """The whole story, and how to see it again."""
        kinds = ",".join(sorted(self.kinds))
        again = f"python -m chaos.torture --seed {self.seed} --kinds {kinds or '-'}"
        return "\n".join(
            [f"=== seed {self.seed} ===", *map(_line, self.happened), "", *self.bad, f"kinds: {kinds}", again]
        )


def _line(happened: tuple[float, datetime, object]) -> str:
    seconds, at, what = happened
    text = f"{what.seq} {what.body}" if isinstance(what, Entry) else str(what)
    return f"{seconds:9.3f} {at:%H:%M:%S} {text}"[:360]


def run(seed: int, kinds: Kinds | None = None, *, keep_journal: bool = False) -> Story:
    """Live through one story; call it inside `simulated`."""
    dice = Dice(seed, kinds)
    story = Story(seed, dice.kinds)
    root = new_folder("ashep-torture")
    worlds: list[World] = []

    async def main() -> None:
        worlds.append(World(dice, root))
        await worlds[0].play()

    try:
        anyio.run(main, backend_options={"loop_factory": TortureLoop})
    except StandsStill:
        story.bad.append("nothing waits for ever: no timer is set, and nobody is ready")
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        story.bad.append(f"no error is unforeseen: {_flat(error)}")
    finally:
        if worlds:
            world = worlds[0]
            story.bad += world.laws.bad
            story.happened, story.lives, story.lost = world.story, world.lives, world.disk.lost
            if keep_journal:
                files = sorted(world.state.rglob("*.jsonl"))
                story.journal = b"".join(path.read_bytes() for path in files)
        shutil.rmtree(root, ignore_errors=True)
        worlds.clear()
        if seed % 20 == 0:
            gc.collect()
    return story


def _flat(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(map(_flat, error.exceptions))
    return "".join(traceback.format_exception(error))[-1500:]


def shrink(story: Story, runs: int = 120) -> Story:
    """Leave out kinds of chaos for as long as the story stays bad."""
    kinds, found = story.kinds, story
    for kind in sorted(story.kinds):
        if runs <= 0:
            break
        runs -= 1
        shorter = run(story.seed, without(kinds, kind))
        if shorter.bad and _law(shorter) == _law(story):
            kinds, found = shorter.kinds, shorter
    return found


def _law(story: Story) -> str:
    return story.bad[0].partition(":")[0]


@contextmanager
def simulated() -> Iterator[None]:
    """Let a daemon's life have what is simulated: threads, chance, the process, the disk and the words of prompts."""
    with (
        disk.watched(),
        patch.object(to_thread, "run_sync", _in_this_thread(to_thread.run_sync)),
        patch.object(secrets, "token_hex", _token(secrets.token_hex)),
        patch("os.getpid", lambda: 4242),
        patch.object(executor, "render", _render),
        patch.object(CancelScope, "__init__", cancelled_in_order(CancelScope.__init__)),
    ):
        gc.disable()  # a story makes much that lives for a moment: collecting it between stories is a tenth cheaper
        try:
            yield
        finally:
            gc.enable()


def _in_this_thread(original: Callable[..., Any]) -> Callable[..., Any]:
    async def run_sync(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        life = LIFE.get()
        if life is None:
            return await original(function, *arguments, **options)
        with anyio.CancelScope(shield=True):  # as a thread is: what was begun comes to its end
            await anyio.sleep(0.002)
            life.reach("thread begins")
            answer = function(*arguments)
            await anyio.sleep(0.002)
            life.reach("thread is done")
            return answer

    return run_sync


def _token(original: Callable[[int], str]) -> Callable[[int], str]:
    def token_hex(count: int) -> str:
        life = LIFE.get()
        return original(count) if life is None else life.world.dice.of("secret").randbytes(count).hex()

    return token_hex


def _render(brief: Brief, overrides: Path | None = None) -> str:
    """The words of a prompt do not matter here; what it is about does."""
    comments = [comment.id for comment in brief.comments]
    return json.dumps([brief.run, brief.kind, brief.wrong, comments, len(brief.reports)])
