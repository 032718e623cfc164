"""What can go wrong, by name. A seed chooses some of it; a story is shrunk by taking names away.

Each kind rolls dice of its own, so that taking one away leaves the dice of the others as they were.
"""

import random
from collections.abc import Iterable

KINDS: dict[str, str] = {
    # --- bd ---
    "bd_slow": "waits for the store: p95 5 s, worst 17 s (facts/beads.md 7)",
    "bd_hangs": "never ends: a stopped bd blocks every other one; ours is killed at its time limit (beads.md 7)",
    "bd_killed": "killed before it wrote: no output, nothing stored (beads.md 7: 9 of 14)",
    "bd_killed_late": "killed after it wrote: no output, but stored (beads.md 7: 5 of 14)",
    "bd_fails": "exit 1 with words that nobody can place, nothing written (beads.md 8)",
    "bd_fails_late": "written, and all the same exit 1 (beads.md 7, 8: an exit code is no proof)",
    "bd_help": "exit 0, and what it prints is its help: nothing was done (beads.md 8)",
    "bd_cut": "written, exit 0, and its output ends in the middle (beads.md 7)",
    "bd_gate": "a maintenance operation is running: exit 1, nothing written (beads.md 7)",
    "bd_damaged": "a data file cut short: nothing is there, says exit 0, for a while (beads.md 8)",
    "bd_orphan": "a bd whose ashep was killed goes on alone: it has a process group of its own (beads.md 7)",
    "hints_lost": "some changes show in no hint (beads.md 9: never proof)",
    "hints_late": "hints come up to a second late, or twice (beads.md 9: 0 to 0.9 s)",
    "hints_none": "nothing can be watched (beads.md 9: off by default)",
    # --- the agent server ---
    "server_killed": "kill -9 in mid-turn: the turn is dead, the answer has no end (opencode.md 11)",
    "server_loses": "killed so soon after a prompt that its parts are lost, or all of it (opencode.md 11)",
    "server_young": "a young turn is not in the status map (opencode.md 26)",
    "server_slow": "every call takes up to two seconds",
    "server_refuses": "a connection is cut before the request (opencode.md 10)",
    "server_forgets": "a connection is cut after the request was done (opencode.md 10)",
    "turn_tools": "tool steps end with `tool-calls`, one after the other (opencode.md 24)",
    "turn_compacts": "a compaction: two user messages that are nobody's, a summary (opencode.md 25)",
    "turn_replays": "an overflow replays our prompt under a new id (opencode.md 25, from its source)",
    "turn_breaks": "the provider's stream is cut: finish `unknown`, asked again by itself (opencode.md 20)",
    "turn_waits": "a provider's 429: status `retry` for a while (opencode.md 5, 20)",
    "turn_hangs": "busy for ever (opencode.md 5, 10)",
    "turn_dies": "the turn is gone although the server lives: incomplete, not busy (opencode.md 11: 32010, 21524)",
    "turn_asks": "a permission or a question that waits for ever (opencode.md 6, 7, 19)",
    "turn_errs": "ends with an error of the provider (opencode.md 4, 5)",
    "turn_silent": "204, and nothing ever begins (opencode.md 16)",
    "signs_lost": "events that never come (opencode.md 10: 38458)",
    "signs_twice": "idle twice, or idle although nothing ended (opencode.md 4)",
    # --- agents ---
    "agent_fails": "reports failed or partial, or to repeat the phase",
    "agent_babbles": "reports nothing, or nothing valid",
    "agent_asks": "asks a person",
    "agent_creates": "asks for more issues",
    "agent_answers": "sets the answer label itself, under an agent's name or ashep's own",
    "agent_rejects": "the review wants changes",
    # --- people ---
    "people_close": "close, re-open, delete issues",
    "people_assign": "assign issues to themselves or nobody",
    "people_status": "set issues to open or deferred",
    "people_phase": "set or take off phase labels",
    "people_exclude": "exclude and pause, and take that off again",
    "people_comment": "comment, and label with words of their own",
    "people_answer_early": "answer before there is a question, say yes and no at once",
    "people_add": "add issues, some blocked by others",
    "people_write": "write in a session, or stop a turn there (opencode.md 3)",
    "people_between": "act exactly between our read and our write",
    # --- the machine ---
    "crash": "ashep is killed at any boundary",
    "crash_again": "and again soon after the start",
    "power": "the machine loses power: unsynced bytes and names, the server and bd with it",
    "disk_fails": "a write or fsync fails (EIO, ENOSPC)",
    "stop": "ashep is stopped in order",
    "clock": "the wall clock is set forward or back",
    "suspend": "the machine sleeps",
    "rival": "another daemon takes over issues whose lease ran out long ago (beads.md 6)",
    "paused": "nothing of ashep runs for minutes (SIGSTOP), then it goes on with what it believed",
    "order": "what is ready at the same time runs in another order",
    "git": "git fails, or somebody edits tracked files",
    "state_lost": "somebody deletes the state folder while ashep is dead",
    # --- the agent server itself ---
    "server_leaks": "its memory grows beyond its limit, or twice that (opencode.md 10: 20695, 36739)",
    "server_wedged": "accepts connections, and never answers again (opencode.md 10, 18)",
    "server_broken": "ends at its start, time after time, for a while",
    # --- the terminal beside it ---
    "hand_pauses": "pause, drain and resume, in all or a provider",
    "hand_cancels": "cancel an issue or a run",
    "files_change": "edits of the files count while it runs",
    "budgets": "limits of a run, an issue, a provider, a day, an hour and a minute, some of which are met",
}

WORK: dict[str, str] = {
    "work_contradicts": "agents write what others write, too",
    "work_falls_short": "agents leave the project's check broken",
    "work_idle": "agents say success and change nothing",
    "work_touches_ci": "agents change what a person is always asked about",
    "work_fails": "git or the verifier fails, before or after it did what it was asked for",
    "work_slow": "a verification or a landing takes long",
    "checks_flaky": "checks fail by chance",
    "base_moves": "people commit to the base, sometimes what contradicts everybody",
    "base_dirty": "people work where the base is checked out",
    "work_resists": "agents leave trees that cannot be sealed, or remove their own",
}
"""Of work that is verified and lands, where issues have work trees of their own; chosen by dice of their own."""

FORGE: dict[str, str] = {
    "forge_away": "the forge answers 503 for a while, or takes no token",
    "forge_fails": "a call of the forge is refused, and nothing was done",
    "forge_loses": "a call of the forge is done, and its answer lost",
    "forge_slow": "the forge takes long, before or after it did what it was asked for",
    "ci_fails": "CI fails on what was pushed",
    "ci_slow": "CI takes long",
    "pull_reviews": "people comment, approve, request changes",
    "pull_pushes": "people push to the branch of a pull request",
    "pull_closes": "people close pull requests",
}
"""Of work that lands by pull request; chosen by dice of their own."""

MOVES: dict[str, str] = {
    "agent_moves": "sets phases, takes pauses and parking off, closes, under an agent's name, what ashep works on"
}
"""Of agents that move issues; chosen by dice of their own."""

SLOW: dict[str, str] = {
    "turn_late": "a turn begins up to three minutes after its prompt (opencode.md 26, on a loaded machine)",
    "abort_lost": "a call to stop a turn gets no answer, and takes effect up to a minute later",
    "server_late": "the server needs up to five minutes to start",
}
"""Of a machine that is merely slow; chosen by dice of their own."""

KINDS |= WORK | FORGE | MOVES | SLOW

Kinds = frozenset[str]

MOST_SLOW = 30
"""Rolls of what is slow once the chaos is over."""


class Dice:
    """The chances of a seed."""

    def __init__(self, seed: int, kinds: Kinds | None = None) -> None:
        self.seed = seed
        self.calm = False
        """The chaos is over."""
        self.slow = 0
        """Rolls of what is slow since then."""
        self._dice: dict[str, random.Random] = {}
        self.kinds = self._some() if kinds is None else kinds

    def _some(self) -> Kinds:
        """Few kinds in some seeds, most of them in others: what hides behind one lie shows without it."""
        dice = self.of("kinds")
        share = dice.choice((0.08, 0.15, 0.3, 0.5, 0.8))
        some = frozenset(kind for kind in KINDS if kind not in WORK | FORGE | MOVES | SLOW and dice.random() < share)
        dice = self.of("kinds of work")
        share = dice.choice((0.2, 0.5, 0.9))
        some |= frozenset(kind for kind in WORK if dice.random() < share)
        dice = self.of("kinds of forge")
        share = dice.choice((0.2, 0.5, 0.9))
        some |= frozenset(kind for kind in FORGE if dice.random() < share)
        dice = self.of("kinds of moves")
        some |= frozenset(kind for kind in MOVES if dice.random() < 0.3)
        dice = self.of("kinds of slow")
        return some | frozenset(kind for kind in SLOW if dice.random() < 0.3)

    def of(self, name: str) -> random.Random:
        """The dice of this name."""
        if name not in self._dice:
            self._dice[name] = random.Random(f"{self.seed}/{name}")
        return self._dice[name]

    def roll(self, kind: str, chance: float) -> bool:
        """Whether this happens now."""
        if self.calm:  # what is slow goes on for a while: it takes longer than the rest
            self.slow += kind in SLOW and kind in self.kinds
            if kind not in SLOW or self.slow > MOST_SLOW:
                return False
        return kind in self.kinds and self.of(kind).random() < chance

    def on(self, kind: str) -> bool:
        """Whether this kind is in the story."""
        return kind in self.kinds


def without(kinds: Iterable[str], *left_out: str) -> Kinds:
    """The kinds but these."""
    return frozenset(kinds) - frozenset(left_out)
