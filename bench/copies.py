"""A journal of any size within seconds: a life that the core has made, written down again under other names.

What is written is, byte for byte, what the core would have made of so many issues (tests/test_bench.py).
"""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from zlib import crc32

from ashep.core.facts.records import Entry, format_time
from ashep.core.facts.resources import DaemonStopped
from ashep.core.runs.prompt_commands import prompt_ids
from ashep.journal.framing import encode_batch
from bench.history import INSTANCE, RUNS, History, name_of

LIVED = 2
"""Lives that the core makes: the second is copied, since the first follows on a start."""

_NAMED = re.compile(
    r'"(?P<number>seq|as_of|posture)":(?P<seq>\d+)'
    r"|/write/(?P<written>\d+)"
    r'|"(?P<time>at|created_at)":"(?P<moment>[^"]+)"'
    r"|(?P<id>(msg|prt)_[0-9a-f]+)"
    r"|ses_(?P<session>\d+)"
    r"|(?P<issue>t-\d{5,})"
    r"|part (?P<part>\d+) of"
    r'|"crc":"(?P<crc>[0-9a-f]{8})"'
)
"""All that differs from life to life."""

_SENT = re.compile(r'"at":"([^"]+)","type":"SendPrompt".*"run":"t-\d+([^"]+)".*"session":"ses_(\d+)"')


class Life:
    """The lines of one life as a form to be filled in."""

    def __init__(self, text: str, number: int, first: int) -> None:
        """Take the lines of the life of issue `number`, whose first record has the sequence number `first`."""
        self._number, self._first = number, first
        self._seqs, self._moments = set[int](), set[str]()
        self._prompts = [(int(ses), run, datetime.fromisoformat(at)) for at, run, ses in _SENT.findall(text)]
        """Of each prompt: its session, its run without the issue, and when its ids were made."""
        self._ids = {id: name for name, id in self._derived(number, timedelta()).items()}
        lines = [line.rpartition("\t")[0].replace("%", "%%") for line in text.splitlines()]
        self._forms = [('"type":"Commit"' in line, _NAMED.sub(self._blank, line)) for line in lines]
        self.length = len(lines)
        """Sequence numbers that it takes."""

    def _blank(self, found: re.Match[str]) -> str:
        if found["number"]:
            return f'"{found["number"]}":%({self._place(found["seq"])})d'
        if found["written"]:
            return f"/write/%({self._place(found['written'])})d"
        if found["time"]:
            self._moments.add(found["moment"])
            return f'"{found["time"]}":"%({found["moment"]})s"'
        if found["id"]:
            return f"%({self._ids[found['id']]})s"
        if found["session"]:
            return f"ses_%(ses{int(found['session']) - RUNS * self._number})d"
        if found["crc"]:
            return '"crc":"%(crc)s"'
        return "%(issue)s" if found["issue"] else "part %(part)d of"

    def _place(self, seq: str) -> str:
        self._seqs.add(int(seq) - self._first)
        return f"seq{int(seq) - self._first}"

    def _derived(self, number: int, later: timedelta) -> dict[str, str]:
        found: dict[str, str] = {}
        for place, (session, run, at) in enumerate(self._prompts):
            session = f"ses_{session + RUNS * (number - self._number)}"
            ids = prompt_ids(INSTANCE, session, name_of(number) + run, 1, 0, at + later)
            found[f"msg{place}"], found[f"prt{place}"] = ids
        return found

    def copy(self, number: int, first: int, later: timedelta) -> bytes:
        """Write the life of another issue, so much later, from this sequence number on."""
        values: dict[str, object] = {f"seq{place}": first + place for place in self._seqs}
        values |= {f"ses{place}": RUNS * number + place for place in range(1 - RUNS, 1)}
        values |= {"issue": name_of(number), "part": number, **self._derived(number, later)}
        for moment in self._moments:
            at = format_time(datetime.fromisoformat(moment) + later)
            values[moment] = at if "." in moment else at.replace(".000000", "")
        lines, crc = list[bytes](), 0
        for ends_batch, form in self._forms:
            if ends_batch:
                values["crc"] = f"{crc:08x}"
            text = (form % values).encode()
            line = b"%b\t%08x\n" % (text, crc32(text))
            crc = 0 if ends_batch else crc32(line, crc)
            lines.append(line)
        return b"".join(lines)


def write(state: Path, lives: int, progress: Callable[[int], None] = lambda done: None, *, left_open: int = 0) -> int:
    """Write a journal in which so many issues were walked through three phases, while others were left open.

    Gives the sequence number of its last entry.
    """
    history = History(state)
    history.begin()
    if left_open:
        history.leave_open(left_open)
    path = history.journal.folder / history.journal.position.file
    begin, first, at = 0, 0, history.at
    for number in range(1, min(lives, LIVED) + 1):
        begin, first, at = path.stat().st_size, history.journal.next_seq, history.at
        history.issue(number)
    seq, now = history.journal.next_seq, history.at
    history.close()
    with path.open("r+b") as file:
        if lives > LIVED:
            file.seek(begin)
            life, took = Life(file.read().decode(), LIVED, first), now - at
            for number in range(LIVED + 1, lives + 1):
                file.write(life.copy(number, seq, took * (number - LIVED)))
                seq, now = seq + life.length, now + took
                if number % 1000 == 0:
                    progress(number)
        file.seek(0, 2)
        file.write(encode_batch([Entry(seq, now + timedelta(seconds=1), DaemonStopped("bench"))]))
    return seq
