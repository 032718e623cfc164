"""Which words of the command line are ours, which are Claude's, and what each start is given of them."""

import pytest

from ashep.extras.foreman.launch_args import read, split

OURS = ["--plugin-dir", "P", "--append-system-prompt-file", "F"]


@pytest.mark.parametrize(("words", "own", "claudes"), [
    ("", "", ""),
    ("--worker w --model opus -c", "--worker w", "--model opus -c"),
    ("--model opus --history --json", "--model opus --history --json", ""),
    ("--hand-over --file plan.md --worker w", "--hand-over --file plan.md --worker w", ""),
    ("--file a b --worker=w -p hello", "--worker=w", "--file a b -p hello"),
    ("fix it --unheard-of x --verbose=x", "", "fix it --unheard-of x --verbose=x"),
    ("--append-system-prompt --clear hello", "", "--append-system-prompt --clear hello"),
    ("--allowedTools A B --clear", "--allowedTools A B --clear", ""),
    ("--resume --doctor", "--resume --doctor", ""),
    ("--worker w mcp add --help", "--worker w", "mcp add --help"),
    ("-p -- --clear --worker x", "", "-p -- --clear --worker x"),
    ("--worker", "--worker", ""),
    ("-c --worker w", "--worker w", "-c"),
    ("-- --help", "", "-- --help"),
])  # fmt: skip
def test_our_own_words_are_told_from_claudes(words: str, own: str, claudes: str) -> None:
    assert split(words.split()) == (own.split(), claudes.split())


@pytest.mark.parametrize(("words", "first", "again"), [
    ("", "--session-id S", ""),
    ("--model opus hello", "--session-id S --model opus hello", "--model opus"),
    ("-p --output-format json -- hello", "--session-id S -p --output-format json -- hello", "-p --output-format json"),
    ("--verbose hello --model opus", "--session-id S --verbose hello --model opus", "--verbose --model opus"),
    ("--session-id X hello", "--session-id X hello", ""),
    ("--session-id=X", "--session-id=X", ""),
    ("--resume X --fork-session --verbose", "--resume X --fork-session --verbose", "--verbose"),
    ("-r --verbose", "-r --verbose", "--verbose"),
    ("-rX", "-rX", ""),
    ("-pc hello", "-p -c hello", "-p"),
    ("--verbose --from-pr 7", "--verbose --from-pr 7", "--verbose"),
    ("--append-system-prompt-file f -p", "--session-id S -p", "-p"),
    ("--append-system-prompt-file=f --system-prompt -t", "--session-id S --system-prompt -t", "--system-prompt -t"),
    ("--add-dir a b -- hello", "--session-id S --add-dir a b -- hello", "--add-dir a b"),
    ("--add-dir=a hello", "--session-id S --add-dir=a hello", "--add-dir=a"),
    ("-d hooks -n name -w tree", "--session-id S -d hooks -n name -w tree", "-d hooks -n name -w tree"),
    ("--unheard-of x --verbose hello", "--session-id S --unheard-of x --verbose hello", "--unheard-of x --verbose"),
    ("-", "--session-id S -", ""),
    ("--unheard-of hello", "--session-id S --unheard-of hello", "--unheard-of"),
    ("--replay-user-messages hello -p", "--session-id S --replay-user-messages hello -p", "--replay-user-messages -p"),
    ("hello --model opus", "--session-id S hello --model opus", "--model opus"),
])  # fmt: skip
def test_a_restart_leaves_out_the_prompt_and_what_chose_the_session(words: str, first: str, again: str) -> None:
    given = read(words.split())
    assert given.first("P", "F", "S") == [*OURS, *first.split()]
    anew = given.anew("P", "F", "S2", "--resume me")
    assert anew == [*OURS, "--session-id", "S2", *again.split(), "--", "--resume me"]


def test_what_the_person_chose_is_known() -> None:
    given = read(["-p", "--append-system-prompt-file", "a", "--append-system-prompt-file=b", "--session-id", "X"])
    assert (given.prints, given.file, given.session, given.resumes) == (True, "b", "X", False)
    given = read(["--append-system-prompt", "-p", "-c"])
    assert (given.prints, given.file, given.session, given.resumes) == (False, None, None, True)
    for words in ("mcp list", "--version", "-v", "--bg fix it", "--resume X --bg"):
        assert read(words.split()).elsewhere, words
    for words in ("-- mcp", "what does mcp mean", "--model mcp", "--append-system-prompt --version", ""):
        assert not read(words.split()).elsewhere, words
