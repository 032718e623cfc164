"""A user's own colours and panel: seen by people, and let near to nothing."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import expect

from ashep.config.page_colours import DARK, FILE, ROOT
from tests.page.conftest import Site
from tests.page.test_acts import PHONE, drawn
from tests.page.test_axe import BESIDE, there

pytestmark = pytest.mark.slow

BOARD = b"""<!doctype html><title>b</title><p id=told>reads nothing</p><script>
for (const look of [() => parent.document.title, () => sessionStorage.length, () => document.cookie]) {
    try { look(); told.textContent = `reads by ${look}` } catch {}
}
</script>"""


class Board(BaseHTTPRequestHandler):
    """A program's page that would like to know more."""

    asked: list[dict[str, str]]

    def do_GET(self) -> None:
        self.asked.append({name.lower(): value for name, value in self.headers.items()})
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(BOARD)

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


@pytest.fixture
def board() -> Iterator[str]:
    Board.asked = []
    with ThreadingHTTPServer(("127.0.0.1", 0), Board) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/board"
        server.shutdown()


def test_a_view_of_ones_own_is_shown_and_learns_nothing(site: Site, board: str) -> None:
    folder, config = site.world.folder, (site.world.folder / "config.yaml").read_text()
    plain = site.opened(site.browser.new_context())
    expect(plain.get_by_role("link", name="Board")).to_have_count(0)
    there(site, plain, "/panel")
    expect(plain.get_by_role("heading", level=1)).to_have_text("Page not found")
    plain.context.close()
    (folder / FILE).parent.mkdir()
    (folder / FILE).write_text("\n".join([ROOT, "--paper: #fffdf0;", "}", DARK, ROOT, "--paper: #101010;", "}", "}"]))
    (folder / "config.yaml").write_text(f"{config}\npage: {{colours: true, panel: '{board}', title: Board}}\n")
    for scheme, paper in (("light", "rgb(255, 253, 240)"), ("dark", "rgb(16, 16, 16)")):
        context = site.browser.new_context(viewport=PHONE, color_scheme=scheme)  # type: ignore[arg-type]
        tab = site.opened(context)
        expect(tab.locator("body")).to_have_css("background-color", paper)
        tab.get_by_role("link", name="Board").click()
        expect(tab.get_by_role("heading", level=1)).to_have_text("Board")
        expect(tab.frame_locator("iframe").locator("#told")).to_have_text("reads nothing")
        assert tab.evaluate(BESIDE) <= 0
    assert Board.asked
    assert not any({"cookie", "authorization", "referer"} & one.keys() for one in Board.asked)
    (folder / FILE).write_text("\n".join([ROOT, "--ink: #fffdf0;", "}"]))  # it would hide what the page says
    drawn(site)
    expect(tab.locator(".lines")).to_contain_text("The page keeps its own colours")
    expect(tab.locator(".lines")).to_contain_text("colours.css:2: ink: #fffdf0 on paper")
    expect(tab.locator("body")).to_have_css("background-color", "rgb(20, 23, 28)")
