"""Web tools for Claude Code: `web-search` and `web-fetch`, as functions and as an MCP server on the wrapper's port.

What comes from the web is data: each text stands in a fence that it could not have written, cut to a bound.
Nothing heavy is imported before it is needed.

In the wrapper::

    tools = WebTools(settings, environ, folder, secret, redaction)   # cheap
    app = McpApp(tools)                                              # an ASGI app: Route("/mcp", endpoint=app)
    group.start_soon(app.run)                                        # serves until cancelled; requests wait for it
    text = await tools.search("query")                               # POST /tool/web-search
    text = await tools.fetch("https://…", "a question, or empty")    # POST /tool/web-fetch
"""

from collections.abc import Mapping
from pathlib import Path

from starlette.types import Receive, Scope, Send

from ashep.foreman.settings import ForemanSettings
from ashep.redaction import Redaction


def missing() -> str:
    """Say which packages of the extra are not installed, and how to get them; empty: all are."""
    raise NotImplementedError


class WebTools:
    """The tools of one wrapper."""

    def __init__(
        self,
        settings: ForemanSettings,
        environ: Mapping[str, str],
        folder: Path,
        secret: str,
        redaction: Redaction | None = None,
    ) -> None:
        """`folder`: of the project, whose `.env` may hold keys. `secret`: of this start, asked for by `McpApp`."""
        self.secret = secret

    async def search(self, query: str) -> str:
        """Give what a search found, fenced; or a sentence that says why there is nothing. Raises nothing."""
        raise NotImplementedError

    async def fetch(self, url: str, question: str = "") -> str:
        """Give a page as markdown, or what the small model answers about it, fenced; or why not. Raises nothing."""
        raise NotImplementedError


class McpApp:
    """The MCP server as an ASGI app for one exact path; it wants `Authorization: Bearer <secret>`."""

    def __init__(self, tools: WebTools) -> None:
        self._tools = tools

    async def run(self) -> None:
        """Import the library in a thread, and serve until cancelled; without the extra requests are told so."""
        raise NotImplementedError

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, once the server stands."""
        raise NotImplementedError
