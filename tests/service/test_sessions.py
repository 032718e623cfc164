"""Codes are good once, tokens for who came in by one, and the machine's token never for a person's scopes."""

import pytest

from ashep.api.paired_devices import IDLE
from ashep.api.sessions import CODE_LASTS, MACHINE, MOST, PERSON, Session, Sessions, WrongCode


class Clock:
    def __init__(self) -> None:
        self.at = 1000.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def sessions(clock: Clock) -> Sessions:
    return Sessions("the-machines-own-token", clock)


def test_a_code_is_good_once_and_not_for_long(sessions: Sessions, clock: Clock) -> None:
    code = sessions.code("Pat")
    token, session = sessions.enter(code)
    assert session == Session(PERSON, "Pat") == sessions.find_session(f"Bearer {token}")
    for wrong in (code, "", "another", token, "\ud800"):
        with pytest.raises(WrongCode):
            sessions.enter(wrong)
    late = sessions.code("Pat")
    clock.at += CODE_LASTS
    with pytest.raises(WrongCode):
        sessions.enter(late)


def test_a_session_ends_when_nobody_asks_for_long(sessions: Sessions, clock: Clock) -> None:
    token, _ = sessions.enter(sessions.code("Pat"))
    clock.at += IDLE.total_seconds() - 1
    assert sessions.find_session(f"bearer {token} ") is not None
    clock.at += IDLE.total_seconds() - 1
    assert sessions.find_session(f"Bearer {token}") is not None
    clock.at += IDLE.total_seconds()
    assert sessions.find_session(f"Bearer {token}") is None
    token, _ = sessions.enter(sessions.code("Pat"))
    sessions.leave(f"Bearer {token}")
    assert sessions.find_session(f"Bearer {token}") is None


def test_the_machines_token_never_answers(sessions: Sessions) -> None:
    session = sessions.find_session("Bearer the-machines-own-token")
    assert session == Session(MACHINE)
    assert not {"answer", "control"} & MACHINE
    for wrong in ("", "Bearer", "Bearer ", "Basic the-machines-own-token", "the-machines-own-token", "Bearer x\ud800"):
        assert sessions.find_session(wrong) is None


def test_what_is_kept_is_bounded(sessions: Sessions) -> None:
    first = sessions.code("Pat")
    for _ in range(MOST):
        sessions.code("Pat")
    with pytest.raises(WrongCode):
        sessions.enter(first)
    tokens = [sessions.enter(sessions.code("Pat"))[0] for _ in range(MOST + 1)]
    assert sessions.find_session(f"Bearer {tokens[0]}") is None
    assert all(sessions.find_session(f"Bearer {one}") for one in tokens[1:])
