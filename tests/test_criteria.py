"""The block of checks in an issue's acceptance criteria: found, read, doubted, and put there."""

import json
import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ashep.config import ConfigErrors
from ashep.config.checks.lint import lint
from ashep.config.checks.parser import MAX_BLOCK, MAX_CHECKS, examine, fenced, read_criteria
from ashep.config.checks.writer import WrittenChecks, put, read_given
from ashep.core.policy.checks import CHECK_TYPES, Criteria, FileExists, FileExistsCheck, OwnCheck, hash_of
from tests.test_docs import DOCS, fences

pytestmark = pytest.mark.promise("F40")

WHERE = "acceptance criteria of t-1"
README = "checks: [{id: readme, type: file_exists, description: d, verify: {path: README.md}}]"


def fence(block: str, words: str = "yaml") -> str:
    return f"```{words}\n{textwrap.dedent(block).strip()}\n```\n"


def checks(*lines: str) -> str:
    return fence("\n".join(["checks:", *(f"  - {line}" for line in lines)]))


def wrong(text: str, types: tuple[str, ...] = ()) -> list[str]:
    with pytest.raises(ConfigErrors) as caught:
        read_criteria(text, WHERE, types)
    return [str(error).removeprefix(f"{WHERE}:") for error in caught.value.errors]


def ids(text: str) -> list[str] | None:
    found = read_criteria(text, WHERE)
    return None if found is None else [check.id for check in found.checks]


# --- found ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [
    fence(README),
    f"It works.\n\n{fence(README)}\nAnd is fast.",
    fence(README, "yml"),
    fence(README, "YAML title=checks"),
    fence(README).replace("```", "~~~"),
    fence(README).replace("```", "`````"),
    textwrap.indent(fence("checks:\n  - id: readme\n    type: file_exists\n    verify: {path: a}"), "    "),
    fence(README).replace("\n", "\r\n"),
    fence("key: value") + fence(README) + fence("other: {checks: []}"),
    fence('{"checks": [{"id": "readme", "type": "file_exists", "verify": {"path": "a"}}]}', "json"),
    fence('{\n\t"checks": [\n\t\t{"id": "readme", "type": "file_exists", "verify": {"path": "a"}}]}', "json"),
])  # fmt: skip
def test_a_block_is_found_wherever_it_stands(text: str) -> None:
    assert ids(text) == ["readme"]


@pytest.mark.parametrize("text", [
    "",
    "It works.",
    README,
    fence(README, "text"),
    fence("key: value"),
    fence("jobs:\n  checks: [1]\n  x: !reference [a]"),
    fence("- checks: []"),
    fence("text: |\n  checks:\n   - a"),
    f"````markdown\n{fence(README)}````\n",
])  # fmt: skip
def test_what_is_no_block_of_checks_is_nobodys(text: str) -> None:
    assert read_criteria(text, WHERE) is None


def test_two_blocks_are_refused_whatever_they_say() -> None:
    found = wrong(fence(README) + "\n" + fence("checks: []"))
    assert found == ["5: a second block of checks; one begins on line 1 already: join them"]


def test_a_block_without_an_end_is_refused() -> None:
    assert wrong(fence(README).removesuffix("```\n") + "\nAnd more words.") == [
        "1: the block that begins here does not end: close it with its fence"
    ]


def test_the_same_checks_have_the_same_hash_in_either_language() -> None:
    one = read_criteria(fence(README), WHERE)
    other = read_criteria(
        fence(
            '{"checks":[{"type":"file_exists","verify":{"path":"README.md"},"id":"readme","description":"d"}]}', "json"
        ),
        WHERE,
    )
    assert one is not None
    assert other is not None
    assert hash_of(one) == hash_of(other)
    changed = read_criteria(fence(README.replace("README.md", "README.MD")), WHERE)
    assert changed is not None
    assert hash_of(changed) != hash_of(one)


# --- read -------------------------------------------------------------------------------------------------------------


def test_each_built_in_type_is_shown_in_the_guide() -> None:
    blocks = [
        text for words, text in fences((DOCS / "guides" / "criteria.md").read_text()) if words in ("yaml", "json")
    ]
    read = [read_criteria(fence(text), WHERE) for text in blocks if "checks" in text]
    assert None not in read
    assert {check.type for one in read if one for check in one.checks} >= set(CHECK_TYPES)


COMMAND, REQUEST = "{command: [a], timeout: %s}", "{path: %s, service: {start: [a], port: %s}}"


@pytest.mark.parametrize(("kind", "verify", "said"), [
    ("file_exists", "{paht: a, path: b}", ".paht: unknown key; did you mean path?"),
    ("file_exists", "{path: ../a}", ".path: expected a path beneath the checkout"),
    ("file_exists", "{path: /etc/passwd}", ".path: expected a path beneath the checkout"),
    ("code_pattern", "{glob: a, pattern: '('}", ".pattern: not a regular expression: missing )"),
    ("code_pattern", "{glob: a, pattern: b, min: -1}", ".min: expected at least 0, found the number -1"),
    ("test_pass", "{command: true && false}", ".command: expected a command without `&&`, which only a shell"),
    ("test_pass", "{command: a > b}", ".command: expected a command without `>`, which only a shell reads"),
    ("test_pass", "{command: a `b`}", ".command: expected a command without ```, which only a shell reads"),
    ("test_pass", "{command: echo $(b)}", ".command: expected a command without `$(`, which only a shell reads"),
    ("test_pass", '{command: "a\\nb"}', ".command: expected a command without a line break, which only a shell"),
    ("test_pass", "{command: 'a \"b'}", ".command: expected a command that a shell can split into words (no clos"),
    ("test_pass", "{command: ''}", ".command: expected at least one entry"),
    ("test_pass", "{command: 3}", ".command: expected a program and its arguments: a list, or a text that is spl"),
    ("test_pass", "{command: []}", ".command: expected at least one entry"),
    ("test_pass", COMMAND % "7h", ".timeout: expected at most 6h, found '7h'"),
    ("test_pass", COMMAND % "0s", ".timeout: expected more than zero, found '0s'"),
    ("http_request", REQUEST % ("a", 8080), ".path: expected a path that begins with /"),
    ("http_request", REQUEST % ("/", 80), ".service.port: expected at least 1024"),
    ("http_request", "{path: /, method: get, service: {start: [a]}}", ".method: expected GET, HEAD"),
    ("manual", "&x {question: a}", ": an anchor (&x) is not allowed"),
    ("manual", "!!str x", ": a tag (!!str) is not allowed"),
    ("manual", "{question: a, question: b}", ".question: duplicate key"),
])  # fmt: skip
def test_a_mistake_is_one_line_with_its_place(kind: str, verify: str, said: str) -> None:
    found = wrong(checks(f"{{id: a, type: {kind}, verify: {verify}}}"))
    assert len(found) == 1, found
    assert found[0].startswith(f"3: checks[0].verify{said}")


@pytest.mark.parametrize(("line", "said"), [
    ("{type: file_exists, verify: {path: a}}", "3: checks[0].id: this key is missing; add it"),
    ("{id: a, verify: {path: a}}", f"3: checks[0].type: this key is missing; add it: one of {', '.join(CHECK_TYPES)}"),
    ("{id: a, type: file_exist}", "3: checks[0].type: unknown type 'file_exist'; did you mean file_exists?"),
    ("{id: a, type: [x], verify: {}}", "3: checks[0].type: expected one of http_request"),
    ("{id: a b, type: manual, verify: {question: a}}", "3: checks[0].id: expected a name: a letter"),
    ("{id: a, type: manual, verfy: {}, verify: {question: b}}", "3: checks[0].verfy: unknown key; did you mean v"),
    ("just a word", "3: checks[0]: expected a check ({id, type, description, verify}), found 'just a word'"),
    ("{id: a, type: manual, verify: {question: a}", "4: checks[0]: not valid YAML"),
])  # fmt: skip
def test_a_mistake_of_a_check_is_one_line_with_its_place(line: str, said: str) -> None:
    found = wrong(checks(line))
    assert len(found) == 1, found
    assert found[0].startswith(said)


@pytest.mark.parametrize(("text", "words"), [
    ("make test", ["make", "test"]),
    ("npm test -- --grep 'auth | middleware'", ["npm", "test", "--", "--grep", "auth | middleware"]),
    ('  printf "%s\\n" a\\ b "&& \\" c"  ', ["printf", "%s\\n", "a b", '&& " c']),
    ("grep -c \\| $HOME/*.txt #x", ["grep", "-c", "|", "$HOME/*.txt", "#x"]),
])  # fmt: skip
def test_a_command_may_be_a_text_which_is_split_and_is_the_same_check(text: str, words: list[str]) -> None:
    blocks = [fence(json.dumps({"checks": [{"id": "a", "type": "test_pass", "verify": {"command": one}}]}), "json")
              for one in (text, words)]  # fmt: skip
    read, same = (read_criteria(block, WHERE) for block in blocks)
    assert read is not None
    assert same is not None
    assert read.model_dump()["checks"][0]["verify"]["command"] == tuple(words)
    assert hash_of(read) == hash_of(same)


def test_every_mistake_is_told_in_the_order_of_the_text() -> None:
    text = "Words.\n\n" + checks("{id: a, type: x, verify: {}}", "{id: b, type: manual, verify: {}}") + "\n"
    assert [one.split(": ")[0] for one in wrong(text)] == ["5", "6"]


def test_an_id_stands_once() -> None:
    line = "{id: a, type: manual, verify: {question: a}}"
    assert wrong(checks(line, line)) == ["4: checks[1].id: another check is named 'a', on line 3; give each its own id"]


def test_other_keys_at_the_top_are_unknown() -> None:
    assert wrong(fence("checks: []\nchekcs: []")) == ["3: chekcs: unknown key; did you mean checks?"]
    assert wrong(fence("checks: {}")) == ["2: checks: expected a list of checks, found an empty mapping"]


def test_a_type_of_the_users_is_known_where_it_is_registered() -> None:
    text = checks("{id: a, type: coverage, verify: {least: 80}, timeout: 5m}")
    assert "registered by `verification.types`" in wrong(text)[0]
    misspelt = wrong(text.replace("coverage", "coverag"), ("coverage",))[0]
    assert misspelt.startswith("3: checks[0].type: unknown type 'coverag'; did you mean coverage?")
    found = read_criteria(text, WHERE, ("coverage",))
    assert found is not None
    (check,) = found.checks
    assert isinstance(check, OwnCheck)
    assert check.verify == {"least": 80}


@pytest.mark.parametrize(("block", "said"), [
    (f"checks: []\n# {'x' * MAX_BLOCK}", "1: a block of checks has at most 64 KiB"),
    ("checks: " + "[" * 40 + "]" * 40, "2: checks[0]"),
    ("checks: [" + "x, " * MAX_CHECKS + "x]", "2: checks: expected at most 100 checks"),
    ("checks: [] \x07", "2: a character that no text file holds"),
    ("checks:\n- {id: a", "4: checks[0]: not valid YAML"),
])  # fmt: skip
def test_it_is_bounded(block: str, said: str) -> None:
    assert wrong(fence(block))[0].startswith(said)


@pytest.mark.parametrize("mark", ["[", "{a: ", "- ", "("])
def test_deep_nesting_is_a_mistake_and_no_trouble(mark: str) -> None:
    for words in ("json", "yaml"):
        assert wrong(fence(f'{{"checks": {mark * 2000}', words))


def test_a_pattern_is_compiled_and_no_trouble() -> None:
    for pattern in ("(" * 900 + ")" * 900, "(a*)*" * 100, "a{99999999999}", "[[a]"):
        line = f"{{id: a, type: code_pattern, verify: {{glob: a, pattern: '{pattern}'}}}}"
        assert examine(checks(line), WHERE).blocks


def test_json_is_json() -> None:
    found = wrong(fence('{"checks": [\n{id: a, type: manual, verify: {question: b}}\n]}', "json"))
    assert found == ["3: not valid JSON: Expecting property name enclosed in double quotes"]


@settings(max_examples=50)
@given(st.text(alphabet=st.sampled_from("`~ \n\t{}[]:-#'\"abchecks,&*!|>"), max_size=200))
def test_no_text_is_trouble(text: str) -> None:
    for one in (text, f"```yaml\nchecks:{text}\n```", f"```json\n{{'checks': {text}\n```"):
        reading = lint(one, WHERE)
        assert reading.criteria is None or not [one for one in reading.findings if one.severity == "error"]
        assert all(finding.line is None or 1 <= finding.line <= one.count("\n") + 1 for finding in reading.findings)


# --- doubted ----------------------------------------------------------------------------------------------------------


PATTERN = "{glob: a, pattern: %s}"


@pytest.mark.parametrize(("kind", "verify", "codes"), [
    ("file_exists", "{path: a}", []),
    ("manual", "{question: a}", ["only-manual"]),
    ("code_pattern", PATTERN % "b, min: 0", ["cannot-fail"]),
    ("code_pattern", PATTERN % "b, min: 0, max: 3", []),
    ("code_pattern", PATTERN % "b, min: 2, max: 1", ["cannot-pass"]),
    ("code_pattern", PATTERN % ".*", ["cannot-fail"]),
    ("code_pattern", PATTERN % "b, must: not_match, min: 0", ["pointless-key"]),
    ("code_pattern", PATTERN % "b, must: not_match", []),
    ("test_pass", "{command: [make, test]}", []),
    ("test_pass", "{command: [/bin/true]}", ["cannot-fail"]),
    ("test_pass", "{command: [sh, -c, make test]}", ["shell"]),
    ("test_pass", "{command: [bash, -ec, make test || true]}", ["cannot-fail", "shell"]),
    ("test_pass", "{command: [sh, check.sh]}", []),
    ("http_request", "{path: /, service: {start: [a]}}", []),
    ("http_request", "{path: /}", ["no-service"]),
    ("http_request", "{path: /, service: {start: [a], port: 9000}}", ["fixed-port"]),
    ("http_request", "{path: /, headers: {Cookie: x}, service: {start: [a]}}", ["secret"]),
])  # fmt: skip
def test_what_is_most_likely_not_meant_is_told(kind: str, verify: str, codes: list[str]) -> None:
    line = f"{{id: a, type: {kind}, description: d, verify: {verify}}}"
    reading = lint(checks(line), WHERE)
    assert reading.criteria is not None, "a doubt is no error"
    assert [finding.code for finding in reading.findings] == codes
    assert all(finding.severity == "warning" and finding.line in (2, 3) for finding in reading.findings)


def test_a_check_without_a_description_is_told() -> None:
    line = "{id: a, type: file_exists, verify: {path: a}}"
    assert [finding.code for finding in lint(checks(line), WHERE).findings] == ["no-description"]


@pytest.mark.parametrize(
    "text", [fence(README, ""), fence(README, "text"), fence("check: []"), fence("criteria: [{id: a}]")]
)
def test_a_block_that_nobody_reads_is_told(text: str) -> None:
    (finding,) = lint("Words.\n\n" + text, WHERE).findings
    assert (finding.code, finding.severity, finding.line) == ("stray-block", "warning", 3)


def test_nothing_else_is_a_stray_block() -> None:
    assert lint(fence("services: {}") + fence(README) + fence("check: 1"), WHERE).findings == []
    assert [finding.code for finding in lint(fence("checks: []"), WHERE).findings] == ["no-checks"]


# --- put --------------------------------------------------------------------------------------------------------------

GIVEN = read_given(README, "checks.yaml")


@pytest.mark.parametrize(("before", "after"), [
    ("", f"{fence(README)}"),
    ("It works.", f"It works.\n\n{fence(README)}"),
    ("It works.\n", f"It works.\n\n{fence(README)}"),
    (f"A\n\n{fence('checks: [] # old')}B\r\n", f"A\n\n{fence(README)}B\r\n"),
    (f"A\n{fence('checks: 3')}", f"A\n{fence(README)}"),
    (textwrap.indent(fence("checks: []", "json"), "  ") + "B", textwrap.indent(fence(README), "  ") + "B"),
])  # fmt: skip
def test_it_takes_the_place_of_the_block_and_leaves_every_other_word(before: str, after: str) -> None:
    assert put(before, GIVEN, WHERE) == after
    assert put(after, GIVEN, WHERE) == after


@pytest.mark.parametrize("text", [fence(README) * 2, "```\nan example", fence(README).removesuffix("```\n")])
def test_where_it_is_not_clear_what_it_replaces_it_is_refused(text: str) -> None:
    with pytest.raises(ConfigErrors):
        put(text, GIVEN, WHERE)


@pytest.mark.parametrize(("text", "name"), [
    (README, "a.yaml"),
    (f"---\n{README}\n", "a.yaml"),
    (f"Words\n{fence(README)}", "a.md"),
    (json.dumps(GIVEN.criteria.model_dump(mode="json")), "a.json"),
    (json.dumps(GIVEN.criteria.model_dump(mode="json"), indent="\t"), "standard input"),
])  # fmt: skip
def test_a_file_is_yaml_json_or_a_text_with_a_block(text: str, name: str) -> None:
    assert read_given(text, name).criteria == GIVEN.criteria


@pytest.mark.parametrize(("text", "said"), [
    ("", "a.yaml:1: checks: the key `checks` is missing"),
    ("check: []", "a.yaml:1: checks: the key `checks` is missing"),
    ("checks: 3", "a.yaml:1: checks: expected a list of checks"),
    ("\nchecks:\n- {id: a}", "a.yaml:3: checks[0].type: this key is missing"),
    ("checks: [", "a.yaml:2: checks: not valid YAML"),
])  # fmt: skip
def test_a_wrong_file_is_told_with_its_own_lines(text: str, said: str) -> None:
    with pytest.raises(ConfigErrors) as caught:
        read_given(text, "a.yaml")
    assert str(caught.value).startswith(said)


WORDS = st.text(alphabet=st.sampled_from("ab \n\t\r`-*é\u2028"), max_size=60)


@settings(max_examples=50)
@given(WORDS, WORDS, st.text(alphabet=st.sampled_from("a`~ \n\t:{#"), max_size=30), st.sampled_from(["", "  ", "\t"]))
def test_whatever_stands_around_stays_and_what_is_put_is_read(before: str, after: str, body: str, indent: str) -> None:
    """The description is any text, with fences in it, too; the words around may hold fences of their own."""
    check = FileExistsCheck(id="a", type="file_exists", description=body, verify=FileExists(path="b"))
    criteria = Criteria(checks=(check,))
    new = read_given(json.dumps(criteria.model_dump(mode="json"), indent=1), "a.json")
    old = "\n".join(f"{indent}{line}" for line in fence(README).splitlines())
    text = f"{before}\n{old}\n{after}"
    if not is_clear(text):
        return
    put_there = put(text, new, WHERE)
    assert put_there.startswith(f"{before}\n")
    assert put_there.endswith(f"\n{after}")
    read = read_criteria(put_there, WHERE)
    assert read is not None
    assert hash_of(read) == hash_of(criteria)


def is_clear(text: str) -> bool:
    """Whether the words around open no fence that swallows the block, or is left open."""
    return len(examine(text, WHERE).blocks) == 1 and all(block.last is not None for block in fenced(text))


def test_a_block_scalar_keeps_its_ends() -> None:
    written = "checks:\n- id: a\n  type: manual\n  verify:\n    question: |+\n      one\n\n\n"
    given_here: WrittenChecks = read_given(written, "a.yaml")
    read = read_criteria(put("A\n", given_here, WHERE), WHERE)
    assert read == given_here.criteria


FENCES_INSIDE = """checks:
- id: a
  type: manual
  verify:
    question: |
      Is this right?
      ```
      code
      ```
"""


def test_a_fence_is_longer_than_what_stands_inside_and_only_its_like_closes_it() -> None:
    given_here = read_given(FENCES_INSIDE, "a.yaml")
    text = put("A\n", given_here, WHERE)
    assert text == f"A\n\n````yaml\n{FENCES_INSIDE}````\n"
    assert read_criteria(text, WHERE) == given_here.criteria
