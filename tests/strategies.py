"""Made-up records of every type, for laws about the journal and the store."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from ashep.core.facts.outcome import CreatedIssue, Outcome
from ashep.core.facts.records import TYPES, Entry

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
TIMES = st.datetimes(datetime(2001, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))
GAPS = st.timedeltas(timedelta(), timedelta(days=400))

st.register_type_strategy(str, TEXT)
st.register_type_strategy(datetime, TIMES)
st.register_type_strategy(timedelta, GAPS)
st.register_type_strategy(float, st.floats(allow_nan=False, allow_infinity=False))
st.register_type_strategy(
    Outcome,
    st.builds(
        Outcome, result=st.sampled_from(["success", "partial", "failed"]), summary=TEXT, verdict=st.none() | TEXT,
        created_issues=st.lists(st.builds(CreatedIssue, title=TEXT.filter(str.strip)), max_size=2).map(tuple),
        pointers=st.lists(TEXT, max_size=2).map(tuple),
    ),
)  # fmt: skip

BODIES: st.SearchStrategy[Any] = st.sampled_from(list(TYPES.values())).flatmap(st.from_type)
BATCHES = st.lists(st.lists(st.tuples(TIMES, BODIES), min_size=1, max_size=4), max_size=4)


def numbered(first: int, batch: list[tuple[datetime, Any]]) -> list[Entry]:
    """Give a batch its sequence numbers."""
    return [Entry(seq, at, body) for seq, (at, body) in enumerate(batch, first)]
