"""Write the golden journals of the coming release: `python -m tests.golden.make`.

`journal-X.Y.jsonl` holds every type of record, and beside it lies the World that it folds to; `life-rules-N.jsonl` was
lived under these rules, so that each decision in it can be derived again. Those of a release that is out are never
written again: they must fold for ever.
"""

import json
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from ashep.core.facts.records import Entry
from ashep.core.reconcile.evolve import evolve
from ashep.core.reconcile.step import RULES
from ashep.core.state.world import World
from ashep.journal.writer import Journal
from ashep.store.issue_row import issue_row
from ashep.store.sqlite_reader import FORM
from tests.core.chances import WILD
from tests.golden.picture import picture
from tests.golden.story import T0, story
from tests.recorded import life

HERE = Path(__file__).parent
COMING = HERE / "journal-0.5.jsonl"
KEYS = HERE / "issue-keys.json"
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


def keys_of(value: object, above: str = "") -> Iterator[str]:
    """Give the path of every key in a JSON value."""
    match value:
        case dict():
            for key, inner in value.items():
                yield f"{above}{key}"
                yield from keys_of(inner, f"{above}{key}.")
        case list() | tuple():
            for inner in value:
                yield from keys_of(inner, above)
        case _:
            pass


def row_keys() -> list[str]:
    """Give the keys of the rows of issues that the story leads to."""
    world = World()
    keys = set[str]()
    for batch in story():
        for entry in batch:
            world = evolve(world, entry)
        for issue in world.flows:
            row = issue_row(world, issue)
            keys.update(keys_of(row | {"body": json.loads(row["body"])}))
    return sorted(keys)


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
    KEYS.write_text(json.dumps({"form": FORM, "keys": row_keys()}, indent=1) + "\n")
