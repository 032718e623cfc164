"""What stands in the place of OpenCode's server, and runs what it is sent as an agent's shell would.

The daemon's own code starts it: what it sees and has in its environment is what an agent would. A program of its own.
"""

import base64
import os
import subprocess
import sys
import tempfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

LONGEST = 20.0


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._answer(b'{"healthy": true, "version": "0", "REACHED": true}')

    def do_POST(self) -> None:
        script = self.rfile.read(int(self.headers["Content-Length"]))
        with tempfile.NamedTemporaryFile() as file, tempfile.TemporaryFile() as said:
            file.write(script)
            file.flush()
            try:
                subprocess.run([sys.executable, "-IS", file.name], stdout=said, stderr=said, timeout=LONGEST)
            except subprocess.TimeoutExpired:
                said.write(b"it had not ended")
            said.seek(0)
            self._answer(said.read())

    def _answer(self, said: bytes) -> None:
        pair = base64.b64encode(f"opencode:{os.environ['OPENCODE_SERVER_PASSWORD']}".encode()).decode()
        self.send_response(200 if self.headers["Authorization"] == f"Basic {pair}" else 401)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, format: str, *args: object) -> None:
        pass


if __name__ == "__main__":
    port = int(sys.argv[sys.argv.index("--port") + 1])
    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
