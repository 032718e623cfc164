"""Which words of the command line are ours, which are Claude's, and what each start is given of them."""

import pytest

from ashep.foreman.launch import read, split

OURS = ["--plugin-dir", "P", "--append-system-prompt-file", "F"]


@pytest.mark.parametrize(
    ("words", "own", "claudes"),
    [
        ("", "", ""),
        ("--worker w --model opus -c", "--worker w", "--model opus -c"),
        ("--model opus --history --json", "--model opus --history --json", ""),
        ("--hand-over --file plan.md --worker w", "--hand-over --file plan.md --worker w", ""),
        ("--file a b --worker=w -p hello", "--worker=w", "--file a b -p hello"),
        ("fix it --unheard-of x --also", "", "fix it --unheard-of x --also"),
        ("--append-system-prompt --clear hello", "", "--append-system-prompt --clear hello"),
        ("--allowedTools A B --worker w", "--worker w", "--allowedTools A B"),
        ("--allowedTools A B --clear", "--allowedTools A B --clear", ""),
        ("--resume --doctor", "--resume --doctor", ""),
        ("mcp add --help", "", "mcp add --help"),
        ("--worker w mcp add --help", "--worker w", "mcp add --help"),
        ("-p -- --clear --worker x", "", "-p -- --clear --worker x"),
        ("--worker", "--worker", ""),
        ("--help", "--help", ""),
        ("-- --help", "", "-- --help"),
    ],
)
def test_our_own_words_are_told_from_claudes(words: str, own: str, claudes: str) -> None:
    assert split(words.split()) == (own.split(), claudes.split())


@pytest.mark.parametrize(
    ("words", "rest"),
    [
        ("", "--session-id S"),
        ("--model opus hello", "--session-id S --model opus hello"),
        ("-p --output-format json -- hello", "--session-id S -p --output-format json -- hello"),
        ("--session-id X hello", "--session-id X hello"),
        ("--session-id=X", "--session-id=X"),
        ("--resume X", "--resume X"),
        ("-rX --fork-session", "-rX --fork-session"),
        ("-c hello", "-c hello"),
        ("-pc hello", "-p -c hello"),
        ("--from-pr 7", "--from-pr 7"),
        ("--settings s.json --append-system-prompt t", "--session-id S --settings s.json --append-system-prompt t"),
        ("--append-system-prompt-file f -p", "--session-id S -p"),
        ("--append-system-prompt-file=f --append-system-prompt t", "--session-id S --append-system-prompt t"),
    ],
)
def test_the_first_start_has_ours_and_then_the_persons(words: str, rest: str) -> None:
    assert read(words.split()).first("P", "F", "S") == [*OURS, *rest.split()]


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        ("", ""),
        ("--model opus hello", "--model opus"),
        ("--add-dir a b --model opus", "--add-dir a b --model opus"),
        ("--allowedTools A B -- hello", "--allowedTools A B"),
        ("hello --verbose", "--verbose"),
        ("--resume X --fork-session --verbose", "--verbose"),
        ("-r --verbose", "--verbose"),
        ("-c hello", ""),
        ("--verbose --from-pr 7 --session-id X", "--verbose"),
        ("--append-system-prompt --resume --append-system-prompt-file f", "--append-system-prompt --resume"),
        ("-d hooks -n name -w tree", "-d hooks -n name -w tree"),
        ("--unheard-of x --verbose hello", "--unheard-of x --verbose"),
        ("--unheard-of hello", "--unheard-of"),
        ("-", ""),
    ],
)
def test_a_restart_leaves_out_the_prompt_and_what_chose_the_session(words: str, kept: str) -> None:
    anew = read(words.split()).anew("P", "F", "S2", "--resume me")
    assert anew == [*OURS, "--session-id", "S2", *kept.split(), "--", "--resume me"]


@pytest.mark.parametrize(
    ("words", "elsewhere"),
    [
        ("mcp list", True),
        ("update", True),
        ("--version", True),
        ("-v", True),
        ("--bg fix it", True),
        ("--resume X --bg", True),
        ("-- mcp", False),
        ("what does mcp mean", False),
        ("--model mcp", False),
        ("--append-system-prompt --version", False),
        ("", False),
    ],
)
def test_where_no_session_begins_here_nothing_of_ours_is_added(words: str, elsewhere: bool) -> None:
    given = read(words.split())
    assert given.elsewhere is elsewhere
    assert " ".join(given.words) == words


def test_what_the_person_chose_is_known() -> None:
    given = read(["-p", "--append-system-prompt-file", "a", "--append-system-prompt-file=b", "--session-id", "X"])
    assert (given.prints, given.file, given.session, given.resumes) == (True, "b", "X", False)
    given = read(["--append-system-prompt", "-p", "-c"])
    assert (given.prints, given.file, given.session, given.resumes) == (False, None, None, True)
    assert read(["--session-id"]).session == ""  # it says so itself
