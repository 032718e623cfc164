"""The whole table: every way, and the test that tries it."""

from typing import NamedTuple

from chaos.attacks.sealing import SEALED, SETTINGS
from chaos.attacks.ways import DAEMON, JUDGED, LEFT, LOGINS, OUTPUT, SHELL, Way


class Row(NamedTuple):
    way: Way
    by: str


_SHELL, _SEALED = "chaos/attacks/test_shell.py", "chaos/attacks/test_sealed.py"
_LIVE = "tests/e2e/test_attacks.py"

_ASKS = "tests/test_asks.py"
ASKED = {
    "an ask that is a link, a pipe, a socket or a folder": (
        f"{_ASKS}::test_nothing_that_bears_the_name_of_an_ask_is_read_or_followed"
    ),
    "ten thousand asks": f"{_ASKS}::test_a_look_takes_a_few_however_many_there_are",
    "verifications without end": "tests/test_asked.py::test_one_is_carried_out_one_waits_and_so_many_in_all",
    "ask about the issue of another": (
        "tests/e2e/test_isolated.py::test_an_agent_asks_what_its_checks_find_and_mends_what_fails"
    ),
    "a git that leads elsewhere, while it is read for an ask": (
        "tests/test_places.py::test_nothing_of_a_place_reaches_out_while_it_is_copied"
    ),
    "answers of its own server without an end, packed, or drop by drop": (
        "tests/test_hostile_server.py::test_a_probe_has_a_bound_in_bytes_and_in_time"
    ),
    "answers of its own server with numbers and times that nothing can hold": (
        "tests/test_opencode.py::test_amounts_that_no_fact_can_hold_are_bounded"
    ),
    "half a character in what it says, which no file can hold": (
        "tests/claude/test_parts.py::test_half_a_character_is_none"
    ),
    "answers of its own server that nobody foresaw": (
        "tests/test_loop_unforeseen.py::test_a_session_that_cannot_be_read_keeps_no_other_waiting"
    ),
    "hundreds of refs that look saved": ("tests/test_places.py::test_a_seal_leaves_few_refs_however_many_look_saved"),
    "a pack of few bytes that unpacks without end": (
        "tests/test_packs.py::test_what_unpacks_without_end_stays_in_the_place"
    ),
    "a pack that takes over the git which looks at it": (
        "tests/test_packs.py::test_git_that_was_taken_over_by_a_pack_reaches_nothing"
    ),
    "a commit graph that names other parents, to lead past what a person brought to its branch": (
        "tests/test_places.py::test_a_commit_graph_that_lies_leads_past_nothing_that_others_brought"
    ),
    "a path that is too long for any work tree": (
        "tests/test_places.py::test_a_path_that_no_work_tree_can_hold_goes_back_to_who_wrote_it"
    ),
    "a file that our git reads whole, of the size of the memory": (
        "tests/test_places.py::test_a_git_that_reads_a_file_whole_has_a_bound"
    ),
    "a pipe that is called `.gitignore`, at which git waits": (
        "tests/test_places.py::test_a_pipe_for_a_file_that_git_reads_holds_nothing_up_for_long"
    ),
    "a file of its git that is larger than the memory": (
        "tests/test_places.py::test_a_file_of_its_git_may_be_larger_than_the_memory"
    ),
    "hundreds of connections to the gate of Claude Code": (
        "tests/claude/test_gate.py::test_strangers_are_few_and_keep_nobody_out"
    ),
}
_GROUNDS, _BYTE = "tests/test_grounds.py", "test_a_judge_is_told_what_the_base_says_to_the_byte_and_starts_nothing"
GROUNDS = (
    Row(
        Way("a file of every name that any kind of agent goes by, in any folder", "", bare="contained"),
        f"{_GROUNDS}::test_nothing_that_raises_the_flag_is_the_candidates_and_nothing_stands_that_starts_a_program",
    ),
    Row(
        Way("a link in the place of a folder of instructions, and other capitals", "", bare="contained"),
        f"{_GROUNDS}::test_links_and_other_capitals_lead_past_nothing",
    ),
    Row(
        Way("hooks and servers that a judge over ACP starts by itself", "", bare="untried"),
        f"tests/acp/test_apart.py::{_BYTE}",
    ),
    Row(
        Way("a program by the name of the agent that judges, for `npx` to find", "", bare="untried"),
        f"tests/acp/test_apart.py::{_BYTE}",
    ),
    Row(
        Way("a change of the program that the base's settings of judges start, or the user's", "", bare="untried"),
        "tests/test_isolated.py::test_what_settings_of_judges_start_never_starts_among_the_candidates_files",
    ),
    Row(
        Way("contents of Git LFS behind a pointer", "", bare="untried"),
        "tests/test_places.py::test_a_judge_sees_the_contents_of_git_lfs_that_land",
    ),
    Row(
        Way("a file that replaces the runner of a check, or decides how it runs", "", bare="contained"),
        "tests/verifier/test_scripts.py::test_a_file_that_shadows_the_runner_does_not_start",
    ),
    Row(
        Way("the same, compiled, or behind a link", "", bare="contained"),
        "tests/verifier/test_scripts.py::test_no_more_does_one_that_is_compiled",
    ),
    Row(
        Way("its own tests move what a later check finds in the history", "", bare="contained"),
        "tests/verifier/test_scripts.py::test_a_gate_finds_the_history_as_it_is_whatever_an_earlier_check_did_to_it",
    ),
    Row(
        Way("a change of a file that the base renames, to land where nobody judged it", "", bare="contained"),
        "tests/test_places.py::test_a_change_lands_in_the_file_in_which_it_was_judged",
    ),
)


def _rows(ways: tuple[Way, ...], by: str) -> list[Row]:
    return [Row(way, by) for way in ways]


ROWS: list[tuple[str, list[Row]]] = [
    *((title, _rows(ways, f"{_SHELL}::test_a_program_in_a_place")) for title, ways in SHELL.items()),
    ("Left for the next server", _rows(LEFT, f"{_SHELL}::test_what_is_left_behind")),
    ("Logins", _rows(LOGINS, "chaos/attacks/test_logins.py::test_a_login_that_is_an_order")),
    ("Too much of it", _rows(OUTPUT, f"{_SHELL}::test_much_output")),
    ("Programs in git's settings", _rows(SETTINGS, f"{_SEALED}::test_programs_in_gits_settings")),
    ("Left for our git, and for judges", _rows(SEALED, f"{_SEALED}::test_what_is_left_for_our_git")),
    ("What it asks the daemon", [Row(Way(name, "", bare="untried"), by) for name, by in ASKED.items()]),
    ("Left for judges of every kind", [*GROUNDS]),
    ("Under the real daemon", _rows((*DAEMON, *JUDGED), _LIVE)),
]
