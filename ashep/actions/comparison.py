"""What other policies would have done with what a state folder's journal says: only read, whoever writes to it."""

import re
from collections.abc import Callable
from pathlib import Path

from ashep.core.analysis.counterfactual import Counterfactual
from ashep.core.policy.agents import Agents
from ashep.core.policy.policies import Policies
from ashep.journal.files import batches
from ashep.journal.snapshots import beginning

_NAMES_POLICY = re.compile(r"\{[{%][^}]*\bpolicy\b")


def compare(
    folder: Path,
    policies: Policies | None,
    agents: Agents | None,
    told: Callable[[int], None],
    *,
    strict: bool = False,
) -> tuple[Counterfactual, int]:
    """Compare the journal with what other policies, or agents, would have decided, up to the last complete batch.

    `folder` is `.agent-shepherd`; `told` gets the number of each batch's last record. Gives also the number of the
    journal's first record. Raises `JournalDamaged`.
    """
    journal = folder / "state" / "journal"
    world, after = beginning(journal)
    made = Counterfactual(world, policies, agents, strict=strict, named=_named(folder / "prompts"))
    for batch in batches(journal, after):
        made.batch(batch.entries)
        told(batch.end.seq)
    return made, after.seq + 1


def _named(prompts: Path) -> bool:
    """Whether templates of the user's own show the policy's name to agents; ours do not."""
    return any(_NAMES_POLICY.search(file.read_text("utf-8", "replace")) for file in sorted(prompts.glob("*.j2")))
