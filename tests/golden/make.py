"""Write the golden journals of the coming release: `python -m tests.golden.make`.

`journal-X.Y.jsonl` holds every type of record, and beside it lies the World that it folds to; `life-rules-N.jsonl` was
lived under these rules, so that each decision in it can be derived again. Those of a release that is out are never
written again: they must fold for ever.
"""

import json
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from ashep.core.facts.records import Entry
from ashep.core.reconcile.evolve import evolve
from ashep.core.reconcile.step import RULES
from ashep.core.state.world import World
from ashep.journal.writer import Journal
from tests.core.chances import WILD
from tests.golden.picture import picture
from tests.golden.story import T0, story
from tests.recorded import life

HERE = Path(__file__).parent
COMING = HERE / "journal-0.5.jsonl"
LIFE = HERE / f"life-rules-{RULES}.jsonl"
SEED = 21


def main(target: Path) -> None:
    """Append the story to a new journal, take its file, and keep the World beside it."""
    batches = story()
    with tempfile.TemporaryDirectory() as folder:
        journal = Journal.open(Path(folder) / "state", T0)
        for batch in batches:
            journal.append_now(batch)
        journal.close()
        target.write_bytes((journal.folder / journal.position.file).read_bytes())
    keep(target, (entry for batch in batches for entry in batch))


def live(target: Path) -> None:
    """Live a wild life and keep its journal."""
    with tempfile.TemporaryDirectory() as folder:
        made = life(Path(folder) / "state", issues=4, steps=250, drawn=False, chances=WILD, seed=SEED)
        target.write_bytes((made.journal.folder / made.journal.position.file).read_bytes())


def keep(journal: Path, entries: Iterable[Entry]) -> None:
    """Write the World that a golden journal folds to."""
    world = World()
    for entry in entries:
        world = evolve(world, entry)
    text = json.dumps(picture(world), indent=1, ensure_ascii=False, sort_keys=True)
    journal.with_suffix(".world.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else COMING)
    live(LIFE)
