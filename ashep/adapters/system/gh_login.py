"""The login of GitHub's own program on this machine."""

from anyio import to_thread

from ashep.adapters.system import programs
from ashep.errors import AshepError


async def gh_token(host: str) -> str:
    """Give the token of the account that is logged in there; empty where none is."""
    program = await to_thread.run_sync(programs.find, "gh")
    if program is None:
        return ""
    try:
        argv = [str(program), "auth", "token", "--hostname", host]
        result = await programs.run(argv, cwd=None, env=None, timeout=20.0)
    except AshepError:
        return ""
    return result.stdout.decode(errors="replace").strip() if result.returncode == 0 else ""
