"""`python -m tools.openapi FILE`: what the server's OpenAPI document says, for whoever makes a client of it."""

import json
import sys
from pathlib import Path

from ashep.api.openapi import document
from ashep.api.routes import OPERATIONS

if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(document(OPERATIONS)), encoding="utf-8")
