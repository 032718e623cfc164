"""What a person waits for, and what it costs the browser: the page in a real Chromium, over ten thousand runs."""

import re
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles

from playwright.sync_api import Browser, BrowserContext, Page, Request, ViewportSize, sync_playwright

from bench.figures import Figure
from bench.place import ASHEP, say
from bench.writer import Writer

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
NONE = "browser: left out: there is no Chromium here"
PHONE = ViewportSize(width=390, height=844)
DESKTOP = ViewportSize(width=1440, height=900)
SLOW = {"offline": False, "latency": 150, "downloadThroughput": 1.6e6 / 8, "uploadThroughput": 750e3 / 8}
"""A phone's network; its processor is a fourth of this one."""

TABS = 12
QUIET = 3.0
"""Seconds in which a hidden tab is to ask for nothing, while something changes."""

VITALS = """
window.vitals = {fcp: 0, lcp: 0, cls: 0}
const on = (type, tell) => {
  new PerformanceObserver(list => list.getEntries().forEach(tell)).observe({type, buffered: true})
}
on('paint', one => { if (one.name === 'first-contentful-paint') vitals.fcp = one.startTime })
on('largest-contentful-paint', one => { vitals.lcp = one.startTime })
on('layout-shift', one => { if (!one.hadRecentInput) vitals.cls += one.value })
"""

_HIDE = """hidden => {
  Object.defineProperty(document, 'hidden', {configurable: true, get: () => hidden})
  Object.defineProperty(document, 'visibilityState', {configurable: true, get: () => hidden ? 'hidden' : 'visible'})
  document.dispatchEvent(new Event('visibilitychange'))
}"""

_FRAMES = """() => {
  const begun = window.frames_
  window.frames_ = []
  if (begun) return
  let last = performance.now()
  const tick = now => { frames_.push(now - last); last = now; requestAnimationFrame(tick) }
  requestAnimationFrame(tick)
}"""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the browser; there must be one."""
    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=["--enable-precise-memory-info"])


def entered(browser: Browser, project: Path, viewport: ViewportSize = DESKTOP) -> Callable[..., BrowserContext]:
    """Come in by a link, once; give what makes contexts that are in."""
    said = subprocess.run([ASHEP, "ui"], cwd=project, capture_output=True, text=True, timeout=60, check=True).stdout
    shown = browser.new_page()
    shown.goto(next(word for word in said.split() if "#enter=" in word))
    shown.get_by_role("heading", level=1).wait_for()
    keys = ("ashep-token", "ashep-person")
    known = [(key, str(shown.evaluate("key => sessionStorage.getItem(key)", key))) for key in keys]
    address = shown.evaluate("location.origin")
    shown.close()

    def context(viewport: ViewportSize = viewport) -> BrowserContext:
        made = browser.new_context(viewport=viewport, base_url=address)
        for key, value in known:
            made.add_init_script(f"sessionStorage.setItem({key!r}, {value!r})")
        made.add_init_script(VITALS)
        return made

    return context


def hide(shown: Page, hidden: bool) -> None:
    """Tell a page that it is not, or is, in sight: no browser without a window does."""
    shown.evaluate(_HIDE, hidden)


def heap(shown: Page) -> float:
    """Say how many megabytes its objects have, once what nobody holds is gone."""
    session = shown.context.new_cdp_session(shown)
    for _ in range(3):
        session.send("HeapProfiler.collectGarbage")
    return float(session.send("Runtime.getHeapUsage")["usedSize"]) / 1e6


def counted(shown: Page, many: int, timeout: float = 60.0) -> None:
    """Wait until the page has counted so many issues that are not ready."""
    found = shown.locator(".counts .s-not_eligible b", has_text=re.compile(f"^{many}$"))
    found.wait_for(timeout=1000 * timeout)  # the page's policy forbids `wait_for_function`


def vitals(shown: Page, path: str, ready: str) -> dict[str, float]:
    """Open a page, wait until what is asked for is there and nothing more comes; give FCP and LCP (ms), and CLS."""
    shown.goto(path)
    shown.locator(ready).first.wait_for(timeout=60_000)
    shown.wait_for_timeout(4000)
    found: dict[str, float] = shown.evaluate("vitals")
    return found


def measure(project: Path, *, times: int, changes: int) -> list[Figure]:
    """Look at a project whose server listens."""
    if CHROMIUM is None:
        say(NONE)
        return [Figure(NONE, 0, "", None)]
    with chromium() as browser:
        context = entered(browser, project)
        say("browser: Now, Runs")
        figures = [*_now(context, times), *_runs(context, times)]
        say(f"browser: {changes} changes")
        with Writer(project / ".agent-shepherd" / "state") as writer:
            return [*figures, *_changes(context, writer, times, changes)]


def _now(context: Callable[..., BrowserContext], times: int) -> list[Figure]:
    figures = list[Figure]()
    for where, viewport, bounds in (("desktop", DESKTOP, (None, None)), ("a slow phone", PHONE, (2000.0, 2500.0))):
        found = list[dict[str, float]]()
        for _ in range(times):
            inside = context(viewport)
            shown = inside.new_page()
            if viewport is PHONE:
                session = inside.new_cdp_session(shown)
                session.send("Network.enable")
                session.send("Network.emulateNetworkConditions", SLOW)
                session.send("Emulation.setCPUThrottlingRate", {"rate": 4})
            found.append(vitals(shown, "/", ".cards, .empty"))
            inside.close()
        fcp, lcp, cls = ([one[name] for one in found] for name in ("fcp", "lcp", "cls"))
        figures += [
            Figure(f"browser: Now on {where}: first paint (FCP)", median(fcp), "ms", bounds[0], f"of {times}"),
            Figure(f"browser: Now on {where}: largest paint (LCP)", median(lcp), "ms", bounds[1], f"of {times}"),
            Figure(f"browser: Now on {where}: layout shift (CLS)", max(cls), "", 0.05, f"the most of {times}"),
        ]
    return figures


def _runs(context: Callable[..., BrowserContext], times: int) -> list[Figure]:
    first, frames = list[float](), dict[str, list[float]]()
    for _ in range(times):
        inside = context()
        shown = inside.new_page()
        shown.goto("/runs")
        shown.locator(".pointed", has_text="runs").wait_for(timeout=60_000)
        shown.evaluate("() => new Promise(requestAnimationFrame)")
        first.append(shown.evaluate("performance.getEntriesByName('runs drawn')[0].startTime"))
        shown.wait_for_timeout(1000)
        for name, hand in (("panning", _pan), ("zooming", _zoom)):
            shown.get_by_role("button", name="All", exact=True).click()
            shown.evaluate(_FRAMES)
            hand(shown)
            frames.setdefault(name, []).extend(shown.evaluate("frames_"))
        inside.close()
    return [
        Figure("browser: first picture of all runs", median(first), "ms", 1000,
               f"of {times}, at most {max(first):.0f}"),
        *(
            Figure(f"browser: a frame while {name}, 95 of 100", quantiles(took, n=20)[-1], "ms", 33,
                   f"median {median(took):.0f}, at most {max(took):.0f} ms, {len(took)} frames")
            for name, took in frames.items()
        ),
    ]  # fmt: skip


def _middle(shown: Page) -> tuple[float, float, float]:
    box = shown.locator(".runs-canvas").bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, box["width"] / 3


def _pan(shown: Page) -> None:
    x, y, far = _middle(shown)
    for _ in range(3):
        shown.mouse.move(x, y)
        shown.mouse.wheel(0, -300)
    for way in (far, -far, far):
        shown.mouse.move(x - way, y)
        shown.mouse.down()
        shown.mouse.move(x + way, y, steps=60)
        shown.mouse.up()


def _zoom(shown: Page) -> None:
    shown.mouse.move(*_middle(shown)[:2])
    for way in (-1, 1, -1):
        for _ in range(40):
            shown.mouse.wheel(0, way * 60)
            shown.wait_for_timeout(16)


def _changes(context: Callable[..., BrowserContext], writer: Writer, times: int, changes: int) -> list[Figure]:
    shown = context().new_page()
    shown.goto("/")
    shown.locator(".counts").first.wait_for()
    took = list[float]()
    for number in range(3 * times):
        time.sleep(1.1 + number % 5 / 10)  # at any moment between two looks
        at = time.monotonic()
        writer.change()
        counted(shown, writer.changes)
        took.append(time.monotonic() - at)
    start = heap(shown)
    for _ in range(changes):
        writer.change()
        counted(shown, writer.changes)
    grown = heap(shown) - start
    requests = asked_while_hidden(shown, writer, QUIET)
    shown.context.close()
    return [
        Figure("browser: a change on the screen", max(took), "s", 1,
               f"the most of {len(took)}, median {median(took):.2f}"),
        Figure(f"browser: heap after {changes} changes, beyond the start", grown, "MB", 5,
               f"{start:.1f} MB at the start"),
        Figure("browser: requests of a hidden tab", len(requests), "", 0, f"in {QUIET:.0f} s"),
    ]  # fmt: skip


def asked_while_hidden(shown: Page, writer: Writer, seconds: float) -> list[str]:
    """Give what a hidden tab asks for while things change for so long; once it is seen again it shows them."""
    found = list[str]()

    def note(request: Request) -> None:
        found.append(request.url)

    hide(shown, True)
    shown.on("request", note)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        writer.change()
        shown.wait_for_timeout(1000 * seconds / 3)
    shown.remove_listener("request", note)
    hide(shown, False)
    counted(shown, writer.changes)
    return found
