"""Laws of `ashep.core.text.clean`."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ashep.core.text import clean

BIDIRECTIONAL = {"ALM": "\u061c", "LRM": "\u200e", "RLO": "\u202e", "LRI": "\u2066", "PDI": "\u2069"}
everything = st.text(
    st.characters(exclude_categories=()) | st.sampled_from([*BIDIRECTIONAL.values(), "\t", "\n", "\r"])
)


@pytest.mark.promise("M2")
@given(everything)
def test_nothing_is_left_that_acts_on_a_reader(text: str) -> None:
    cleaned = clean(text)
    assert not [mark for mark in cleaned if unicodedata.category(mark) in ("Cc", "Cs") and mark not in "\n\t"]
    assert not set(cleaned) & set(BIDIRECTIONAL.values())
    assert not [mark for mark in cleaned if unicodedata.bidirectional(mark) in ("LRE", "RLE", "PDF", "LRO", "RLO")]
    assert not [mark for mark in cleaned if unicodedata.bidirectional(mark) in ("LRI", "RLI", "FSI", "PDI")]
    cleaned.encode()


@given(everything)
def test_cleaning_takes_away_and_changes_nothing_else(text: str) -> None:
    rest = iter(text)
    assert all(mark in rest for mark in clean(text))  # in order
    assert clean(clean(text)) == clean(text)


@given(st.text(st.characters(categories=("L", "N", "P", "S", "Zs")) | st.sampled_from("\n\t\u2028\u200d")))
def test_words_stay(text: str) -> None:
    assert clean(text) == text
