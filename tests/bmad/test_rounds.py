"""A round of a story that somebody made long: what is written of it takes a time that grows with it, and no faster."""

from time import process_time

from ashep.bmad.review_round import write_round

HEAD = "# Story 1.2: Lists\n\nStatus: review\n\n## Acceptance Criteria\n\n1. a\n\n## Tasks\n\n- [x] t\n\n"


def test_thousands_of_open_findings_are_left_for_later_in_the_time_of_reading_them() -> None:
    """Each was written by itself, the whole file anew: 25,000 took 78 s, in which the daemon did nothing else."""
    text = f"{HEAD}## Senior Developer Review (AI)\n\n" + "- [ ] [High] x\n" * 4_000
    began = process_time()
    kept = write_round("docs/1-2-lists.md", text.encode(), None, "in-progress")
    read = process_time() - began
    done = write_round("docs/1-2-lists.md", text.encode(), None, "done")
    assert process_time() - began < 6 * read + 0.5
    assert (kept.lacking, done.state, len(done.put_off)) == ("", "complete", 4_000)
    assert (
        done.story
        == text.replace("Status: review", "Status: done")
        .replace("- [ ] [High] x", "- [x] [High] x \u2014 deferred")
        .encode()
    )
