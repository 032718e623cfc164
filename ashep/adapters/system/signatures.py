"""Signatures by `ssh-keygen -Y` (OpenSSH 8.1 and later), as git makes them with `gpg.format=ssh`."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from ashep.adapters.system import programs
from ashep.core.facts.approvals import NAMESPACE
from ashep.errors import ProgramMissing, UsageError

_SIGNER = "ashep"
"""The name that all keys have in a list of allowed ones, which holds those of one person."""
_BOUND = 30.0  # seconds


async def is_signed(text: str, armor: str, keys: Sequence[str]) -> bool:
    """Whether one of these keys signed the text as an approval. Raises `ProgramMissing` without `ssh-keygen`."""
    if not keys:
        return False
    with TemporaryDirectory(prefix="ashep-signature-") as folder:
        allowed, signature = anyio.Path(folder, "allowed"), anyio.Path(folder, "signature")
        await allowed.write_text("".join(f"{_SIGNER} {key}\n" for key in keys))
        await signature.write_text(f"{armor}\n")
        argv = ["ssh-keygen", "-Y", "verify", "-n", NAMESPACE, "-I", _SIGNER, "-f", str(allowed), "-s", str(signature)]
        done = await programs.run(argv, cwd=None, env=None, timeout=_BOUND, stdin=text.encode())
    return done.returncode == 0


def sign(text: str, key: str | Path) -> str:
    """Sign a text as an approval: with the file of a key, or with a public key whose private one the ssh-agent has.

    `ssh-keygen` asks for a passphrase, or a touch of the key, at the person's terminal, and is waited for. Raises
    `UsageError` where it does not sign.
    """
    with TemporaryDirectory(prefix="ashep-signature-") as folder:
        file = Path(folder, "key.pub") if isinstance(key, str) else key
        if isinstance(key, str):
            file.write_text(f"{key}\n")
        argv = ["ssh-keygen", "-Y", "sign", "-n", NAMESPACE, "-f", str(file)]
        try:
            done = subprocess.run(argv, input=text.encode(), stdout=subprocess.PIPE, check=False)
        except OSError as error:
            raise ProgramMissing(f"ssh-keygen cannot be started: {error.strerror}; install OpenSSH") from error
    if done.returncode != 0:
        raise UsageError("ssh-keygen did not sign, and says above why; `--key FILE` names another key")
    return done.stdout.decode().strip()
