"""The page itself: files that `make page` built, held in memory, and told to everybody who may ask at all.

Nothing of the project is in them: without a token a browser sees an empty page. A page's own paths (`/issues/t-1`) are
all the same file, which then asks the API.
"""

import gzip
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable

from starlette.requests import Request
from starlette.responses import Response

INDEX = "index.html"
MISSING = "the page was not built here: run `make page`; programs ask for application/json"

_FOREVER = "public, max-age=31536000, immutable"  # the names of assets change with what they hold
_SMALL = 1000  # bytes that are not worth packing

mimetypes.init()  # reads files: not at the first page, which may be made in the event loop


@dataclass(frozen=True, slots=True)
class File:
    """A file of the page."""

    body: bytes
    packed: bytes | None
    media: str
    lasts: str


class Page:
    """The files by their paths; none where nothing was built."""

    def __init__(self, found: Mapping[str, bytes]) -> None:
        self.files = dict[str, File]()
        for name, body in found.items():
            media = mimetypes.guess_type(name)[0] or "application/octet-stream"
            media = "text/javascript" if name.endswith(".js") else media
            packed = gzip.compress(body, mtime=0) if len(body) > _SMALL and not media.startswith("image/png") else None
            lasts = _FOREVER if name.startswith("assets/") else "no-cache"
            self.files[name] = File(body, packed, media, lasts)

    def answer(self, request: Request) -> Response | None:
        """Give a file, or the page for one of its own paths; None: it is neither, or there is no page."""
        if request.method not in ("GET", "HEAD"):
            return None
        name = request.url.path.removeprefix("/")
        file = self.files.get(name) if name != INDEX else None
        if file is None and "text/html" in request.headers.get("accept", "") and not name.startswith("api/"):
            file = self.files.get(INDEX)
        if file is None:
            return None
        headers = {"Cache-Control": file.lasts, "Vary": "Accept, Accept-Encoding"}
        if file.packed is not None and "gzip" in request.headers.get("accept-encoding", ""):
            return Response(file.packed, headers=headers | {"Content-Encoding": "gzip"}, media_type=file.media)
        return Response(file.body, headers=headers, media_type=file.media)


def built() -> Page:
    """Read what `make page` built. Blocks."""
    found = dict[str, bytes]()

    def walk(folder: Traversable, prefix: str) -> None:
        for one in folder.iterdir():
            if one.name.startswith("."):  # what says of what it was built
                continue
            if one.is_dir():
                walk(one, f"{prefix}{one.name}/")
            else:
                found[f"{prefix}{one.name}"] = one.read_bytes()

    folder = files("ashep") / "page" / "static"
    if folder.is_dir():
        walk(folder, "")
    return Page(found)
