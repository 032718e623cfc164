"""What single lines of programs say, in the languages that are common: tests, tests that are left out, and what a
module offers to others. A line is judged alone: a diff has no more.
"""

import re
from collections.abc import Iterable, Mapping

_ENDINGS: Mapping[str, str] = {
    "py": "python", "pyi": "python", "js": "js", "jsx": "js", "mjs": "js", "cjs": "js", "ts": "js", "tsx": "js",
    "mts": "js", "cts": "js", "vue": "js", "svelte": "js", "go": "go", "rs": "rust", "java": "java", "kt": "kotlin",
    "kts": "kotlin", "groovy": "java", "scala": "scala", "cs": "csharp", "fs": "csharp", "vb": "csharp", "rb": "ruby",
    "php": "php", "swift": "swift", "c": "c", "cc": "c", "cpp": "c", "cxx": "c", "h": "c", "hpp": "c", "ex": "elixir",
    "exs": "elixir", "bats": "bats", "dart": "js",
}  # fmt: skip
"""Which language a file is in, by the ending of its name."""


def _patterns(**languages: str) -> Mapping[str, re.Pattern[str]]:
    return {language: re.compile(pattern) for language, pattern in languages.items()}


_NOTHING = re.compile(r"(?!)")
_QUOTED = r"[\"'`]([^\"'`\n]{1,200})"
_NAMED_TESTS = _patterns(
    python=r"[ \t]*(?:async[ \t]+)?def[ \t]+(test\w*)[ \t]*\(",
    js=rf"[ \t]*(?:it|test|specify|testWidgets)(?:\.\w+)?[ \t]*\([ \t]*{_QUOTED}",
    go=r"func[ \t]+((?:Test|Benchmark|Fuzz|Example)\w*)[ \t]*\(",
    scala=rf"[ \t]*(?:test|it|should)[ \t]*(?:\([ \t]*)?{_QUOTED}",
    ruby=rf"[ \t]*(?:it|specify|scenario|test)[ \t(]+{_QUOTED}|[ \t]*def[ \t]+(test_\w+)",
    php=r"[ \t]*(?:(?:public|final)[ \t]+)*function[ \t]+(test\w*)[ \t]*\(",
    swift=r"[ \t]*(?:(?:public|internal)[ \t]+)?func[ \t]+(test\w*)[ \t]*\(",
    c=r"[ \t]*(?:TYPED_)?TEST(?:_[FP])?[ \t]*\([ \t]*(\w+[ \t]*,[ \t]*\w+)"
    r"|[ \t]*TEST_CASE[ \t]*\([ \t]*\"([^\"\n]{1,200})",
    elixir=rf"[ \t]*test[ \t(]+{_QUOTED}",
    bats=rf"[ \t]*@test[ \t]+{_QUOTED}",
)
_MARKED_TESTS = _patterns(
    rust=r"[ \t]*#\[(?:\w+::)*(?:test|rstest|test_case|quickcheck)\b",
    java=r"[ \t]*@(?:Test|ParameterizedTest|RepeatedTest|TestFactory|Property)\b",
    kotlin=r"[ \t]*@(?:Test|ParameterizedTest|RepeatedTest|TestFactory)\b",
    csharp=r"[ \t]*[\[<](?:Fact|Theory|Test|TestCase|TestMethod|DataTestMethod)\b",
    php=r"[ \t]*(?:#\[(?:\\?\w+\\)*Test\b|\*[ \t]*@test\b)",
    swift=r"[ \t]*@Test\b",
)
"""The mark of a test whose name stands on another line."""

_SKIPS = _patterns(
    python=r"pytest\.(?:skip|importorskip)\(|mark\.(?:skip|skipif|xfail)\b|unittest\.(?:skip|expectedFailure)"
    r"|@(?:skip|skipIf|skipUnless|expectedFailure)\b|\.skipTest\(|collect_ignore",
    js=r"\b(?:it|test|describe|context|specify|suite)\.(?:\w+\.)?(?:skip|todo|fixme|fails|failing|only)\b"
    r"|(?:^|[^\w.])[xf](?:it|describe|test|context|specify)[ \t]*\(|\bthis\.skip\(",
    go=r"\b[tbf]\.Skip(?:f|Now)?\(",
    rust=r"#\[ignore\b",
    java=r"@(?:Ignore|Disabled\w*)\b|\bassume(?:True|False|That)\(",
    kotlin=r"@(?:Ignore|Disabled\w*)\b|\bassume(?:True|False|That)\(",
    scala=r"\bignore[ \t]*(?:\(|should|in\b)|\bassume\(|\bpending\b",
    csharp=r"\bSkip[ \t]*=|[\[<,][ \t]*Ignore\b|Assert\.(?:Ignore|Inconclusive)\(",
    ruby=r"(?:^|[^\w.])(?:skip|pending)\b|(?:^|[^\w.])[xf](?:it|describe|context|specify)\b|:skip\b",
    php=r"markTest(?:Skipped|Incomplete)\(",
    swift=r"\bXCTSkip|\.disabled\(",
    c=r"GTEST_SKIP|\bDISABLED_",
    elixir=r"@(?:module)?tag:?[ \t]+:?skip\b",
    bats=r"^[ \t]*skip\b",
)

_OFFERS = _patterns(
    python=r"(?:    |\t)?(?:async[ \t]+)?(?:def|class)[ \t]+((?!_)\w+)|(__all__)\b",
    js=r"[ \t]*export[ \t]+(?:default[ \t]+|declare[ \t]+|abstract[ \t]+|async[ \t]+)*"
    r"(?:function\*?|class|const|let|var|interface|type|enum|namespace)[ \t]+(\w+)|[ \t]*(export[ \t]+default)\b"
    r"|[ \t]*(module\.exports|exports\.\w+)\b",
    go=r"func[ \t]+(?:\([^()\n]{1,200}\)[ \t]*)?([A-Z]\w*)|(?:type|var|const)[ \t]+([A-Z]\w*)",
    rust=r"[ \t]*pub[ \t]+(?:const[ \t]+|async[ \t]+|unsafe[ \t]+|extern[ \t]+\"C\"[ \t]+)*"
    r"(?:fn|struct|enum|trait|type|mod|static|union|use|const)[ \t]+(\w+)",
    java=r"[ \t]*public[ \t]+(?:(?:static|final|abstract|default|synchronized|sealed)[ \t]+)*"
    r"([\w<>\[\],.?@]+(?:[ \t]+\w+)?)",
    csharp=r"[ \t]*public[ \t]+(?:(?:static|sealed|abstract|virtual|override|async|readonly|partial)[ \t]+)*"
    r"([\w<>\[\],.?]+(?:[ \t]+\w+)?)",
    php=r"[ \t]*public[ \t]+(?:static[ \t]+)?function[ \t]+(\w+)",
    swift=r"[ \t]*(?:public|open)[ \t]+(?:(?:static|class|final)[ \t]+)*"
    r"(?:func|var|let|class|struct|enum|protocol|init|actor)[ \t]*(\w*)",
)


def language_of(path: str) -> str:
    """Say which language a file is in; empty where none of those here."""
    return _ENDINGS.get(path.rpartition(".")[2].lower(), "")


def named_test(language: str, line: str) -> str | None:
    """Give the name of the test that begins in a line."""
    found = _NAMED_TESTS.get(language, _NOTHING).match(line)
    return " ".join(_first(found.groups()).split()) if found else None


def marks_test(language: str, line: str) -> bool:
    """Whether a line makes a test of what follows, whose name stands elsewhere, so that marks can only be counted."""
    return _MARKED_TESTS.get(language, _NOTHING).match(line) is not None


def skips(language: str, line: str) -> bool:
    """Whether a line leaves tests out, or expects them to fail."""
    return _SKIPS.get(language, _NOTHING).search(line) is not None


def offered_in(language: str, line: str) -> str | None:
    """Give the name of what a line declares for others: a public function, class, type."""
    found = _OFFERS.get(language, _NOTHING).match(line)
    return _first(found.groups()) if found else None


def _first(groups: Iterable[str | None]) -> str:
    return next((group for group in groups if group), "")
