"""A program of its own that makes markdown of a page: hostile HTML ends this process, and no other.

Standard input: `charset` (or an empty line), then the page. Standard output: markdown. Exit code 3: no library.
"""

import codecs
import re
import resource
import signal
import sys
from html.parser import HTMLParser

MISSING = 3
MOST = 400_000
"""Characters that are written; a page of lists in lists would be made megabytes of spaces."""
_MEMORY = 2 * 1024**3
_EACH = 5  # seconds of processor for each way
_LONG = 700_000  # characters; lxml takes minutes, in which no signal is heard, to find the main text of megabytes
_SHORT = 200  # characters; a page of which so little is left was not understood
_META = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w-]{1,40})""", re.IGNORECASE)
_SLOW = ("idna", "punycode")  # no page is written so, and they take a time that grows with the square of it


def decoded(content: bytes, charset: str) -> str:
    """Give the text: by a mark at its beginning, what the server says, what the page says, else UTF-8."""
    if content.startswith(codecs.BOM_UTF8):
        charset = "utf-8-sig"
    elif content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        charset = "utf-16"
    elif not charset and (found := _META.search(content[:4096])):
        charset = found[1].decode()
    try:
        if codecs.lookup(charset or "utf-8").name in _SLOW:
            charset = ""
        return content.decode(charset or "utf-8", errors="replace")
    except (LookupError, ValueError):
        return content.decode("utf-8", errors="replace")


class _Words(HTMLParser):
    """The text of a page, whatever its tags."""

    def __init__(self) -> None:
        super().__init__()
        self.found, self._hidden = list[str](), ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "style"):
            self._hidden = tag

    def handle_endtag(self, tag: str) -> None:
        if tag == self._hidden:
            self._hidden = ""

    def handle_data(self, data: str) -> None:
        if not self._hidden and data.strip():
            self.found.append(data.strip())


def words(page: str) -> str:
    """Give what a page says, without form."""
    parser = _Words()
    parser.feed(page)
    return "\n".join(parser.found)


def _main_text(page: str) -> str:
    if len(page) > _LONG:
        return ""
    from trafilatura import extract  # pyright: ignore[reportUnknownVariableType] - partly typed

    return extract(page, output_format="markdown", include_links=True, include_tables=True, favor_recall=True) or ""


def _whole(page: str) -> str:
    from markdownify import markdownify  # pyright: ignore[reportMissingTypeStubs] - it ships none

    return re.sub(r"\n{3,}", "\n\n", markdownify(page, heading_style="ATX")).strip()


def markdown(page: str) -> str | None:
    """Give the page as markdown, by the first way that understands it in its time; None where no library is there."""
    best, installed = "", False
    for way in (_main_text, _whole, words):
        if way is words and not installed:
            return None
        try:
            signal.setitimer(signal.ITIMER_PROF, _EACH, 1)  # again and again: a library may swallow one
            best = max(best, way(page).strip(), key=len)
            installed = True
        except ImportError:
            continue
        except Exception:  # whatever the libraries make of tags within tags; and their time was up
            installed = True
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        if len(best) >= _SHORT:
            break
    return best


def _late(*_: object) -> None:
    raise TimeoutError


def main() -> int:
    """Read, convert, write."""
    signal.signal(signal.SIGPROF, _late)
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    charset, _, content = sys.stdin.buffer.read().partition(b"\n")
    found = markdown(decoded(content, charset.decode(errors="replace").strip()))
    if found is None:
        return MISSING
    sys.stdout.buffer.write(found[:MOST].encode(errors="replace"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
