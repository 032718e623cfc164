"""A scripted issuer of tokens, which takes a refresh token once, as real ones may."""

import http.client
import json
import ssl
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl

from ashep.extras.demo.scripted_model import ModelServer

CERTIFICATE = (
    *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"),
    *("-subj", "/CN=issuer", "-addext", "subjectAltName=DNS:*.claude.com,DNS:*.anthropic.com,DNS:auth.openai.com"),
)


class Issuer(ThreadingHTTPServer):
    """A proxy that is, to whoever goes through it, the issuer of tokens, and the provider with a scripted model."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Speaker)
        self.model: ModelServer | None = None
        self.asked: list[str] = []
        """The refresh tokens that came."""
        self.pair, self.takes, self.refuses = 0, 0.0, False
        """The number of the refresh token that it takes; the seconds that it takes for a new pair."""
        self.access = ""
        """The access token that the provider takes."""
        self.ca, key, self.lock = folder / "ca.pem", folder / "key.pem", threading.Lock()
        folder.mkdir()
        subprocess.run([*CERTIFICATE, "-out", self.ca, "-keyout", key], check=True, capture_output=True)
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(self.ca, key)

    def renewed(self, asked: dict[str, str]) -> dict[str, object] | None:
        with self.lock:
            self.asked.append(asked["refresh_token"])
            if self.refuses or asked["refresh_token"] != f"refresh-{self.pair}":
                return None
            self.pair += 1
            self.access = f"access-{self.pair}"
            given = {"access_token": self.access, "refresh_token": f"refresh-{self.pair}"}
        time.sleep(self.takes)
        return {**given, "token_type": "Bearer", "expires_in": 28800, "scope": asked.get("scope", "")}


class Speaker(BaseHTTPRequestHandler):
    """One connection to it."""

    protocol_version = "HTTP/1.1"
    server: Issuer  # pyright: ignore[reportIncompatibleVariableOverride] - no other has it

    def do_CONNECT(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.connection = self.server.tls.wrap_socket(self.connection, server_side=True)
        self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", 0)
        self.close_connection = False

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        if self.path in ("/v1/oauth/token", "/oauth/token"):
            is_form = "form" in self.headers["content-type"]
            found = self.server.renewed(dict(parse_qsl(body.decode())) if is_form else json.loads(body))
            refusal = {"error": "invalid_grant", "error_description": "Refresh token not found or invalid"}
            self._answer(*((400, refusal) if found is None else (200, found)))
        elif self.headers["authorization"] != f"Bearer {self.server.access}":
            said = {"type": "authentication_error", "message": "OAuth token has expired"}
            self._answer(401, {"type": "error", "error": said})
        else:
            assert self.server.model is not None
            model = http.client.HTTPConnection(self.server.model.url.removeprefix("http://"))
            given = {key: one for key, one in self.headers.items() if key.lower() not in ("host", "accept-encoding")}
            model.request("POST", self.path, body, given)
            answer = model.getresponse()
            self._answer(answer.status, answer.read(), answer.headers["content-type"])
            model.close()

    def do_GET(self) -> None:
        self._answer(404, {})

    def _answer(self, status: int, said: object, kind: str = "application/json") -> None:
        data = said if isinstance(said, bytes) else json.dumps(said).encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def finish(self) -> None:
        super().finish()
        self.connection.close()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""
