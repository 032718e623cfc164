"""A program of its own that makes text of a page: one that is hostile ends this process, and no other.

Standard input: `html` or `text`, a space, and the charset or nothing; then the page.
"""

import re
import resource
import sys
from contextlib import suppress

MOST = 400_000  # characters that are written; a page of lists in lists would be made megabytes of spaces

_META = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([\w-]{1,40})""", re.IGNORECASE)


def decoded(content: bytes, charset: str) -> str:
    """Give the text: by what the server says, what the page says, else as UTF-8."""
    if not charset and (found := _META.search(content[:4096])):
        charset = found[1].decode()
    with suppress(LookupError, ValueError):
        return content.decode(charset or "utf-8-sig", errors="replace")
    return content.decode("utf-8-sig", errors="replace")


def markdown(page: str) -> str:
    """Give the main text of a page as markdown; where none is found, all of it."""
    from markdownify import markdownify  # pyright: ignore[reportMissingTypeStubs] - it ships none
    from trafilatura import extract  # pyright: ignore[reportUnknownVariableType] - partly typed

    text: str | None = None
    if len(page) <= 700_000:  # lxml takes minutes to find the main text of megabytes
        with suppress(Exception):  # whatever it makes of tags within tags
            text = extract(page, output_format="markdown", include_links=True, include_tables=True, favor_recall=True)
    if len(text or "") < 200:  # it was not understood
        text = max(text or "", markdownify(page, heading_style="ATX"), key=len)
    return re.sub(r"\n{3,}", "\n\n", text or "").strip()


def main() -> None:
    """Read, convert, write."""
    with suppress(ValueError, OSError):  # a system that has no such limit
        resource.setrlimit(resource.RLIMIT_AS, (2 * 1024**3, 2 * 1024**3))
    told, _, content = sys.stdin.buffer.read().partition(b"\n")
    form, _, charset = told.decode(errors="replace").partition(" ")
    page = decoded(content, charset)
    sys.stdout.buffer.write((markdown(page) if form == "html" else page)[:MOST].encode(errors="replace"))


if __name__ == "__main__":
    main()
