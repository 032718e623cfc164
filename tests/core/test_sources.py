"""What single lines of programs say: tests, tests that are left out, what is offered to others."""

import time

import pytest

from ashep.core.impact.source_signals import language_of, marks_test, named_test, offered_in, skips


@pytest.mark.parametrize(("path", "line", "name"), [
    ("test_a.py", "def test_one() -> None:", "test_one"),
    ("test_a.py", "    async def test_two(self):", "test_two"),
    ("a.test.ts", "  it('adds numbers', () => {", "adds numbers"),
    ("a.spec.js", 'test.each([[1]])("x", f)', None),
    ("a.spec.js", 'test.concurrent("goes on", async () => {', "goes on"),
    ("a_test.go", "func TestAdd(t *testing.T) {", "TestAdd"),
    ("a_test.go", "func FuzzAdd(f *testing.F) {", "FuzzAdd"),
    ("a_spec.rb", "  it 'adds' do", "adds"),
    ("a_test.rb", "  def test_adds", "test_adds"),
    ("ATest.php", "    public function testAdds(): void", "testAdds"),
    ("ATests.swift", "    func testAdds() throws {", "testAdds"),
    ("a_test.cc", "TEST_F(Adder, Adds) {", "Adder, Adds"),
    ("a_test.cc", 'TEST_CASE("it adds", "[x]") {', "it adds"),
    ("a_test.exs", '  test "adds" do', "adds"),
    ("a.bats", '@test "adds" {', "adds"),
    ("ASpec.scala", '  test("adds") {', "adds"),
    ("test_a.py", "# def test_one() -> None:", None),
    ("test_a.py", "def helper(test_one):", None),
    ("test_a.py", "    def testing", None),
    ("a_test.go", "func helper(t *testing.T) {", None),
    ("a.txt", "def test_one():", None),
    ("a", "def test_one():", None),
])  # fmt: skip
def test_a_test_is_known_by_its_first_line(path: str, line: str, name: str | None) -> None:
    assert named_test(language_of(path), line) == name


@pytest.mark.parametrize(("path", "line", "marks"), [
    ("a.rs", "    #[test]", True),
    ("a.rs", "#[tokio::test(flavor = 1)]", True),
    ("a.rs", "#[derive(Debug)]", False),
    ("ATest.java", "    @Test", True),
    ("ATest.java", "    @ParameterizedTest(name = 1)", True),
    ("ATest.java", "    @TestConfiguration", False),
    ("ATest.kt", "@Test", True),
    ("ATests.cs", "    [Fact]", True),
    ("ATests.cs", "    [Theory, Trait(1)]", True),
    ("ATest.php", "    #[Test]", True),
    ("ATest.php", "     * @test", True),
    ("test_a.py", "@Test", False),
])  # fmt: skip
def test_a_mark_makes_a_test(path: str, line: str, marks: bool) -> None:
    assert marks_test(language_of(path), line) is marks


@pytest.mark.parametrize(("path", "line", "left_out"), [
    ("test_a.py", '@pytest.mark.skip(reason="later")', True),
    ("test_a.py", "    @pytest.mark.xfail", True),
    ("test_a.py", "pytestmark = pytest.mark.skipif(True)", True),
    ("test_a.py", '    pytest.skip("no")', True),
    ("test_a.py", "        self.skipTest('no')", True),
    ("test_a.py", '@unittest.skip("no")', True),
    ("test_a.py", '@unittest.skipIf(True, "no")', True),
    ("test_a.py", "    skipped = 1", False),
    ("test_a.py", "@pytest.mark.parametrize('a', [1])", False),
    ("a.test.ts", "it.skip('adds', () => {", True),
    ("a.test.ts", "  describe.only('x', () => {", True),
    ("a.test.ts", "xit('adds', () => {", True),
    ("a.test.ts", "exit(1)", False),
    ("a.test.ts", "await it.next()", False),
    ("a_test.go", '\tt.Skip("later")', True),
    ("a_test.go", "\ttt.Skipped()", False),
    ("a.rs", "    #[ignore]", True),
    ("ATest.java", '  @Disabled("later")', True),
    ("ATest.java", "  @DisabledOnOs(OS.MAC)", True),
    ("ATests.cs", '[Fact(Skip = "later")]', True),
    ("a_spec.rb", "  xit 'adds' do", True),
    ("a_spec.rb", "  skip 'later'", True),
    ("a_spec.rb", "  before_action.skip_it", False),
    ("ATest.php", "$this->markTestSkipped('later');", True),
    ("a_test.cc", "TEST(A, DISABLED_Adds) {", True),
    ("a_test.exs", "  @tag :skip", True),
    ("a.bats", "  skip", True),
    ("a.md", "it.skip(", False),
])  # fmt: skip
def test_a_line_leaves_tests_out(path: str, line: str, left_out: bool) -> None:
    assert skips(language_of(path), line) is left_out


@pytest.mark.parametrize(("path", "line", "name"), [
    ("a.py", "def add(a, b):", "add"),
    ("a.py", "    async def add(self):", "add"),
    ("a.py", "class Adder:", "Adder"),
    ("a.py", "def _add(a):", None),
    ("a.py", "        def inner():", None),
    ("a.py", "__all__ = ['add']", "__all__"),
    ("a.ts", "export async function add(a: number) {", "add"),
    ("a.ts", "export const x = 1", "x"),
    ("a.ts", "export default class Adder {", "Adder"),
    ("a.ts", "export default add", "export default"),
    ("a.js", "module.exports = { add }", "module.exports"),
    ("a.js", "function add() {", None),
    ("a.go", "func Add(a int) int {", "Add"),
    ("a.go", "func (a *Adder) Add(b int) {", "Add"),
    ("a.go", "type Adder struct {", "Adder"),
    ("a.go", "func add() {", None),
    ("a.rs", "pub async fn add() {", "add"),
    ("a.rs", "    pub struct Adder {", "Adder"),
    ("a.rs", "pub(crate) fn add() {", None),
    ("A.java", "public final class Adder {", "class Adder"),
    ("A.java", "    public static List<String> names() {", "List<String> names"),
    ("A.java", "    private int x;", None),
    ("A.cs", "    public async Task<int> Add() {", "Task<int> Add"),
    ("A.php", "    public static function add() {", "add"),
    ("A.swift", "    public func add() {", "add"),
    ("a.txt", "def add():", None),
])  # fmt: skip
def test_a_line_declares_something_for_others(path: str, line: str, name: str | None) -> None:
    assert offered_in(language_of(path), line) == name


LANGUAGES = [language_of(f"a.{ending}") for ending in
             ("py", "js", "go", "rs", "java", "kt", "scala", "cs", "rb", "php", "swift", "c", "exs",
              "bats")]  # fmt: skip


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_line_is_slow(language: str) -> None:
    assert language
    for piece in (
        " ", "\t", "(", "[ ", "it ", "public ", "export default ", "xit ", "@tag ", "#[a::", "<a>,", "skip ", "a",
    ):  # fmt: skip
        for line in (piece * 5_000, "public " + piece * 5_000, "func (" + piece * 5_000, "#[" + piece * 5_000):
            began = time.process_time()
            for look in (named_test, marks_test, skips, offered_in):
                look(language, line)
            assert time.process_time() - began < 0.3, (piece, line[:20])
