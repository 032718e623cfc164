"""A program of its own that makes markdown of a page: hostile HTML ends this process, and no other.

Standard input: `charset` (or an empty line), then the page. Standard output: markdown. Exit code 3: no library.
"""

import codecs
import re
import resource
import signal
import sys
from contextlib import suppress

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


def _main_text(page: str) -> str:
    if len(page) > _LONG:
        return ""
    from trafilatura import extract  # pyright: ignore[reportUnknownVariableType] - partly typed

    return extract(page, output_format="markdown", include_links=True, include_tables=True, favor_recall=True) or ""


def _whole(page: str) -> str:
    from markdownify import markdownify  # pyright: ignore[reportMissingTypeStubs] - it ships none

    return re.sub(r"\n{3,}", "\n\n", markdownify(page, heading_style="ATX")).strip()


def _words(page: str) -> str:
    from bs4 import BeautifulSoup  # of markdownify's; it walks through tags in tags without recursion

    return BeautifulSoup(page, "html.parser").get_text("\n", strip=True)


def markdown(page: str) -> str | None:
    """Give the page as markdown, by the first way that understands it in its time; None where no library is there."""
    best, installed = "", False
    for way in (_main_text, _whole, _words):
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
    return best if installed else None


def _late(*_: object) -> None:
    raise TimeoutError


def main() -> int:
    """Read, convert, write."""
    signal.signal(signal.SIGPROF, _late)
    with suppress(ValueError, OSError):  # a system that has no such limit
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    charset, _, content = sys.stdin.buffer.read().partition(b"\n")
    found = markdown(decoded(content, charset.decode(errors="replace").strip()))
    if found is None:
        return MISSING
    sys.stdout.buffer.write(found[:MOST].encode(errors="replace"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
