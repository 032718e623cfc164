"""Secrets that must not be written down: what comes in from programs and servers loses them at the door.

The journal, blobs, prompts and pictures are made of what came in; so nothing that is kept ever holds one, and a read
that is compared with what is known compares like with like.
"""

import json

MARK = "[redacted]"
"""What stands in the place of a secret."""

SHORTEST = 8
"""Characters; a shorter word would be found in the midst of ordinary text."""


class Redaction:
    """The secrets of this process, all of which are strings of at least `SHORTEST` characters."""

    def __init__(self, secrets: tuple[str, ...] = ()) -> None:
        self._forms: tuple[str, ...] = ()
        self._encoded: tuple[bytes, ...] = ()
        for secret in secrets:
            self.add(secret)

    def add(self, secret: str | None) -> None:
        """Remember a secret, also as it looks inside of JSON; one that is too short or None is ignored."""
        if secret is None or len(secret) < SHORTEST:
            return
        plain, ascii_only = json.dumps(secret, ensure_ascii=False)[1:-1], json.dumps(secret)[1:-1]
        go = plain.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")  # as bd writes it
        forms = {*self._forms, secret, plain, ascii_only, go}
        self._forms = tuple(sorted(forms, key=lambda form: (-len(form), form)))
        self._encoded = tuple(form.encode(errors="replace") for form in self._forms)

    def text(self, text: str) -> str:
        """Give the text without secrets."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, MARK)
        return text

    def data(self, data: bytes) -> bytes:
        """Give bytes of UTF-8 without secrets."""
        for form in self._encoded:
            if form in data:
                data = data.replace(form, MARK.encode())
        return data
