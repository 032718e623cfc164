"""What was read of sessions so far: a file is read once, forward. Blocks; one thread at a time reads a session."""

import threading
from collections import OrderedDict
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from ashep.adapters.runners.claude import process, transcript, turn_state
from ashep.adapters.runners.claude.jsonl import Event
from ashep.adapters.runners.claude.session_store import Attempt, Before, SessionStore
from ashep.adapters.runners.claude.stream_json import Output
from ashep.adapters.runners.claude.transcript import Spent, Transcript
from ashep.ports.runner import Turn

KEPT = 200
"""Sessions of which it is kept; of others all is read once more."""


class SessionReading:
    """What was read of one session."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.outputs: dict[str, Output] = {}
        self.transcript: Transcript | None = None

    def output(self, attempt: Attempt) -> Output:
        """What an attempt's process told, as it was read last."""
        return self.outputs.setdefault(attempt.name, Output(attempt.folder / "stdout"))


class Readings:
    """The same of all sessions."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store
        self._kept: OrderedDict[str, SessionReading] = OrderedDict()
        self._lock = threading.Lock()

    @contextmanager
    def open_reading(self, session: str) -> Generator[SessionReading]:
        """That of a session, which no other thread reads meanwhile."""
        with self._lock:
            reading = self._kept.setdefault(session, SessionReading())
            self._kept.move_to_end(session)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        with reading.lock:
            yield reading

    def turn(self, session: str, message: str, known: frozenset[str]) -> Turn:
        """Read a turn; `known`: messages that are no person's, or stood there before it."""
        attempts = self._store.attempts(session, message)
        if not attempts:
            return Turn("missing", "")
        with self.open_reading(session) as reading:
            outputs = [(attempt, reading.output(attempt)) for attempt in attempts]
            leader = process.find_process(attempts[-1])
            turn = turn_state.read(outputs, leader, partial(self._find_final_usage, reading))
            people = self._people(reading, session, attempts[0].read_baseline().offset, known)
            written_at = reading.transcript.last_at(people) if reading.transcript is not None and people else None
            return replace(turn, people=people, human_message_at=written_at)

    def limits(self, session: str, message: str) -> Event | None:
        """What the last attempt of a prompt showed of its login's quota."""
        attempts = self._store.attempts(session, message)
        return self.output(attempts[-1]).limits if attempts else None

    def people(self, session: str, attempt: Attempt) -> tuple[str, ...]:
        """Who wrote since an attempt was begun."""
        with self.open_reading(session) as reading:
            return self._people(reading, session, attempt.read_baseline().offset, frozenset())

    def output(self, attempt: Attempt) -> Output:
        """What an attempt's process has told up to now."""
        with self.open_reading(attempt.session) as reading:
            output = reading.output(attempt)
            output.read()
            return output

    def asked(self, session: str) -> tuple[str, ...]:
        """The messages that people and we wrote in a session."""
        ours = self._store.prompts(session)
        with self.open_reading(session) as reading:
            record = self._transcript(reading, session)
            messages = record.written if record is not None else []
            return tuple(dict.fromkeys(ours.get(one.uuid, one.uuid) for one in messages))

    def size(self, session: str) -> int:
        """Bytes that stand in a session's transcripts."""
        with self.open_reading(session) as reading:
            record = self._transcript(reading, session)
        return transcript.grown(record.file) if record is not None else 0

    def read_baseline(self, session: str) -> Before:
        """What stands in a session now."""
        with self.open_reading(session) as reading:
            record = self._transcript(reading, session)
            return Before(offset=record.end, cost=record.spent.cost, tokens=record.spent.tokens) if record else Before()

    def _find_final_usage(self, reading: SessionReading, attempt: Attempt) -> Spent | None:
        record = self._transcript(reading, attempt.session)
        return record.find_final_usage(attempt.read_baseline().offset, attempt.uuid) if record is not None else None

    def _people(self, reading: SessionReading, session: str, since: int, known: frozenset[str]) -> tuple[str, ...]:
        record = self._transcript(reading, session)
        return record.people(since, self._store.prompts(session), known) if record is not None else ()

    def _transcript(self, reading: SessionReading, session: str) -> Transcript | None:
        if reading.transcript is None:
            file = self._store.transcript(session)
            reading.transcript = Transcript(file) if file is not None else None
        if reading.transcript is not None:
            reading.transcript.read()
        return reading.transcript
