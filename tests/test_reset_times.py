"""Times that providers name in their words, as they were seen to write them."""

from datetime import UTC, datetime, timedelta
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ashep.daemon.reset_times import find_reset

SINCE = datetime(2026, 10, 1, 20, 30, 12, tzinfo=UTC)


def at(month: int, day: int, hour: int = 0, minute: int = 0, *, year: int = 2026) -> datetime:
    return datetime(year, month, day, hour, minute, tzinfo=UTC)


@pytest.mark.promise("U1")
@pytest.mark.parametrize(("words", "reset"), [
    # Claude Code
    ("You've hit your 5-hour limit · resets 11:09pm (UTC)", at(10, 1, 23, 9)),
    ("You've hit your weekly limit · resets 3am (Europe/Berlin)", at(10, 2, 1)),
    ("You've hit your weekly limit · resets Oct 5, 3pm (UTC)", at(10, 5, 15)),
    ("You've hit your Opus limit · resets Jan 1, 2027, 4:10pm (Asia/Kolkata)", at(1, 1, 10, 40, year=2027)),
    ("Claude usage limit reached. Your limit will reset at 12am (UTC).", at(10, 2)),
    ("spend limit reached, try again after it resets on October 5 at 15:00 UTC.", at(10, 5, 15)),
    # others
    ("Rate limit reached for x on tokens per min. Please try again in 6m0s.", SINCE + timedelta(minutes=6)),
    ("Please try again in 20ms. Visit the page", SINCE + timedelta(milliseconds=20)),
    ("Your quota will reset after 2h10m5s.", SINCE + timedelta(hours=2, minutes=10, seconds=5)),
    ("You exceeded your quota. Please retry in 34.07s.", SINCE + timedelta(seconds=34.07)),
    ("try again in 3 days 2 hours and 5 minutes", SINCE + timedelta(days=3, hours=2, minutes=5)),
    ("Too many requests, please wait 30 seconds", SINCE + timedelta(seconds=30)),
    ("or try again at Oct 5th, 2026 3:05 PM UTC.", at(10, 5, 15, 5)),
    ('{"error": {"type": "usage_limit_reached", "resets_at": 1791212400}}', at(10, 5, 15)),
    ("the limit resets 2026-10-05T15:00:00Z", at(10, 5, 15)),
    ("the limit resets at 2026-10-05 17:00 +02:00", at(10, 5, 15)),
    ("It resets at midnight UTC", at(10, 2)),
    ("available again at 10pm CET", at(10, 2, 20)),
    # just over: the seconds were left out
    ("resets 8:29pm (UTC)", at(10, 1, 20, 29)),
    ("resets 8:20pm (UTC)", at(10, 2, 20, 20)),
])  # fmt: skip
def test_a_time_is_read_out_of_words(words: str, reset: datetime) -> None:
    assert find_reset(words, SINCE) == reset


@pytest.mark.parametrize("words", [
    "", "slow down", "try again later", "Limit 10000, used 9000", "resets 3pm (Nowhere/Known)", "resets 3pm (XYZ)",
    "resets 25:00 (UTC)", "resets Feb 30, 3pm", "resets 13pm or so", "attempt 3 of 5: try again",
    "resets in 999999999 days", "resets_at: 9999999999999",
    "this model was available until Oct 5, 3pm", "Connection reset by peer (104)", "request 30 of 50",
])  # fmt: skip
def test_words_that_name_no_time_name_none(words: str) -> None:
    assert find_reset(words, SINCE) is None


def test_a_time_without_a_zone_is_one_of_this_machine() -> None:
    here = SINCE.astimezone()
    assert find_reset("resets 11:59pm", SINCE) == here.replace(hour=23, minute=59, second=0)
    assert find_reset("resets Oct 5", SINCE) == here.replace(day=5, hour=0, minute=0, second=0)


def test_a_date_without_a_year_lies_ahead() -> None:
    silvester = datetime(2026, 12, 31, 23, 0, tzinfo=UTC)
    assert find_reset("resets Jan 2, 3am (UTC)", silvester) == at(1, 2, 3, year=2027)
    assert find_reset("resets Dec 31, 10pm (UTC)", silvester) == at(12, 31, 22), "it is over"


@pytest.mark.promise("G6")
@pytest.mark.parametrize("piece", ["resets ", "again 1 ", "1", "again 1 m ", "again jan ", "retry and ", "3:05 ", " "])
def test_words_without_end_cost_no_time(piece: str) -> None:
    began = perf_counter()
    find_reset(f"resets {piece * 300_000}", SINCE)
    assert perf_counter() - began < 1


@given(st.text(st.sampled_from("resets again in at (UTC)/+-:., 0123456789ampOctMonhdZ\n")))
def test_no_words_break_it(words: str) -> None:
    reset = find_reset(f"resets {words}", SINCE)
    assert reset is None or reset.tzinfo is not None
