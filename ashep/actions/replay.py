"""What a state folder's journal says, whoever writes to it: nothing else is read, and nothing is written."""

import re
from collections.abc import Iterator
from pathlib import Path

from ashep.core.analysis.counterfactual import Counterfactual
from ashep.core.analysis.replay import Difference, Replay
from ashep.core.policy.agents import Agents
from ashep.core.policy.policies import Policies
from ashep.core.reconcile.evolve import evolve
from ashep.core.state.world import World
from ashep.journal.reader import Told, batches, nobody
from ashep.journal.snapshots import beginning, newest


def replay(state: Path, again: Replay, told: Told = nobody) -> Iterator[Difference]:
    """Derive every decision again, up to the last complete batch; give what differs, as it comes.

    `again` counts, and holds the World at the end. It begins where the journal does: at what stands for the part that
    was pruned, where one was. Raises `JournalDamaged`.
    """
    again.world, after = beginning(state / "journal")
    again.covers = after.seq + 1
    for batch in batches(state / "journal", after):
        yield from again.batch(batch.entries)
        told(batch.end.seq)


def recorded(state: Path) -> World:
    """Fold the journal up to the last complete batch, also next to a daemon that writes. Raises `JournalDamaged`."""
    world = World()
    if (state / "journal").is_dir():
        world, after = newest(state)
        for batch in batches(state / "journal", after):
            for entry in batch.entries:
                world = evolve(world, entry)
    return world


_NAMES_POLICY = re.compile(r"\{[{%][^}]*\bpolicy\b")


def compare(
    folder: Path, policies: Policies | None, agents: Agents | None, told: Told, *, strict: bool = False
) -> tuple[Counterfactual, int]:
    """Compare the journal with what other policies, or agents, would have decided, up to the last complete batch.

    `folder` is `.agent-shepherd`; `told` gets the number of each batch's last record. Gives also the number of the
    journal's first record. Raises `JournalDamaged`.
    """
    journal = folder / "state" / "journal"
    world, after = beginning(journal)
    prompts = sorted((folder / "prompts").glob("*.j2"))  # of the user's own: ours do not show the policy's name
    named = any(_NAMES_POLICY.search(file.read_text("utf-8", "replace")) for file in prompts)
    made = Counterfactual(world, policies, agents, strict=strict, named=named)
    for batch in batches(journal, after):
        made.batch(batch.entries)
        told(batch.end.seq)
    return made, after.seq + 1
