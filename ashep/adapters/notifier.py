"""Tells people through programs, or through apprise's many services.

A program is the user's own, from their configuration; what it is told is data on its standard input and in its
environment, never a part of its command line. Text, which may be handed on to a chat, calls nobody there, whatever
issues and agents say; JSON is data, and holds every character. apprise is imported only where a target names it; its
URLs hold secrets, so that they come from the environment or a file, and no error repeats them.
"""

import json
import logging
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from ashep.adapters.system import programs
from ashep.core.policy.settings import NotifyTarget
from ashep.core.text import calling_nobody, clean
from ashep.errors import AshepError, NotSent
from ashep.ports.notifier import TIMEOUT, Message
from ashep.redaction import Redaction

LONGEST = 300
"""Characters of what a target says of a failure."""

_ENTITY = re.compile(r"&(?=#?\w{1,10};)")
_ANGLES = str.maketrans({"<": "\u2039", ">": "\u203a"})


class Messenger:
    """The Notifier with real targets."""

    def __init__(
        self,
        project: Path,
        environ: Mapping[str, str] | None = None,
        redaction: Redaction | None = None,
        timeout: float = TIMEOUT,
    ) -> None:
        """`timeout`: seconds that a target has."""
        self._project, self._redaction, self._timeout = project, redaction or Redaction(), timeout
        self._environ = os.environ if environ is None else environ

    async def send(self, target: NotifyTarget, message: Message) -> None:
        try:
            if target.command is not None:
                await self._run(target.command, message)
            else:
                with anyio.fail_after(self._timeout):
                    await self._notify(await self._urls(target), message)
        except TimeoutError as error:
            raise NotSent(f"it took longer than {self._timeout:g} s") from error
        except NotSent:
            raise
        except AshepError as error:
            raise NotSent(self._safe(str(error))) from error

    def _title(self, message: Message) -> str:
        return _defuse_mentions(f"ashep, {self._project.name}: {message.title}")

    def _safe(self, text: str) -> str:
        return clean(" ".join(self._redaction.text(text).split()))[:LONGEST]

    # --- programs ---------------------------------------------------------------------------------------------------

    async def _run(self, argv: tuple[str, ...], message: Message) -> None:
        told = json.dumps(message.as_json(self._project.name), ensure_ascii=False).encode()
        words = {"ASHEP_TITLE": self._title(message), "ASHEP_TEXT": _defuse_mentions(message.text)}
        done = await programs.run(
            argv, cwd=self._project, env={**self._environ, **words}, timeout=self._timeout, stdin=told
        )
        if done.returncode:
            said = (done.stderr or done.stdout).decode(errors="replace")
            raise NotSent(self._safe(f"{argv[0]} ended with {done.returncode}: {said}"))

    # --- apprise ----------------------------------------------------------------------------------------------------

    async def _urls(self, target: NotifyTarget) -> list[str]:
        if target.apprise_env is not None:
            urls = self._environ.get(target.apprise_env, "").split()
            where = f"the environment variable {target.apprise_env}"
        else:
            path = self._project / await anyio.Path(target.apprise_file or "").expanduser()
            where = str(path)
            try:
                lines = (await anyio.Path(path).read_text(encoding="utf-8")).splitlines()
            except (OSError, UnicodeDecodeError) as error:
                raise NotSent(f"{where} cannot be read: {type(error).__name__}") from error
            urls = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
        if not urls:
            raise NotSent(f"{where} holds no URL")
        for url in urls:
            self._redaction.add_url(url)
        return urls

    async def _notify(self, urls: list[str], message: Message) -> None:
        failed = [
            f"URL {place} of {len(urls)}: {why}"
            for place, url in enumerate(urls, 1)
            if (why := await anyio.to_thread.run_sync(self._notify_service, url, message, abandon_on_cancel=True))
        ]
        if failed:
            raise NotSent(self._safe("; ".join(failed)))

    def _notify_service(self, url: str, message: Message) -> str:
        """Tell one service; give what went wrong, if anything did. Blocks."""
        try:
            import apprise  # pyright: ignore[reportMissingImports, reportMissingTypeStubs] - an extra, without types
        except ImportError:
            return "apprise is not installed: pip install 'ashep[notify]'"
        library: Any = apprise
        service: Any = library.Apprise()
        with library.LogCapture(level=logging.WARNING, fmt="%(message)s") as said:
            if not service.add(url):
                return "apprise does not know such a URL"
            if service.notify(title=self._title(message), body=_defuse_mentions(message.text)):
                return ""
            return str(said.getvalue()) or "the service did not take it"


def _defuse_mentions(text: str) -> str:
    """Give the text so that it calls nobody in any chat: `@all`, `<!channel>`, `<at>`, `&lt;@U1&gt;`.

    It is the same for all of them: which one a program hands it on to is not known, and apprise makes a call of what
    was escaped as Slack wants it.
    """
    return _ENTITY.sub("& ", calling_nobody(text)).translate(_ANGLES)
