"""The whole table: every way, and the test that tries it."""

from typing import NamedTuple

from tests.attacks.sealing import SEALED, SETTINGS
from tests.attacks.ways import DAEMON, JUDGED, LEFT, OUTPUT, SHELL, Way


class Row(NamedTuple):
    way: Way
    by: str


_SHELL, _SEALED = "tests/attacks/test_shell.py", "tests/attacks/test_sealed.py"
_LIVE = "tests/e2e/test_attacks.py"


def _rows(ways: tuple[Way, ...], by: str) -> list[Row]:
    return [Row(way, by) for way in ways]


ROWS: list[tuple[str, list[Row]]] = [
    *((title, _rows(ways, f"{_SHELL}::test_a_program_in_a_place")) for title, ways in SHELL.items()),
    ("Left for the next server", _rows(LEFT, f"{_SHELL}::test_what_is_left_behind")),
    ("Too much of it", _rows(OUTPUT, f"{_SHELL}::test_much_output")),
    ("Programs in git's settings", _rows(SETTINGS, f"{_SEALED}::test_programs_in_gits_settings")),
    ("Left for our git, and for judges", _rows(SEALED, f"{_SEALED}::test_what_is_left_for_our_git")),
    ("Under the real daemon", _rows((*DAEMON, *JUDGED), _LIVE)),
]
