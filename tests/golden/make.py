"""Write a golden journal: `python -m tests.golden.make tests/golden/journal-X.Y.jsonl`, once a release, never again."""

import sys
import tempfile
from pathlib import Path

from ashep.journal.log import Journal
from tests.golden.story import T0, story


def main(target: Path) -> None:
    """Append the story to a new journal and take its file."""
    with tempfile.TemporaryDirectory() as folder:
        journal = Journal.open(Path(folder) / "state", T0)
        for batch in story():
            journal.append_now(batch)
        journal.close()
        target.write_bytes((journal.folder / journal.position.file).read_bytes())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
