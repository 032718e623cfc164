"""When a busy turn has shown no sign of life for too long.

Signs themselves are no facts: there would be one a second. A due time says when a turn is to be doubted; then whether
it shows signs of life is read, and what that read says moves the due time on or ends the run. A watcher that was blind
for a while says so in `Life.quiet`, so that a gap in the events alone never ends anything.
"""

from datetime import datetime, timedelta

from ashep.core.policy.language import format_duration
from ashep.core.policy.settings import Life
from ashep.core.state.flow import Run


def due_after(run: Run, life: Life, now: datetime) -> datetime | None:
    """Say when a turn will have been quiet for too long that shows these signs of life now; None: there is no rule."""
    if run.stall_after is None:
        return None
    dues = [now - life.quiet + run.stall_after]
    if life.tool is not None and run.tool_timeout is not None:
        dues.append(now - life.tool_for + run.tool_timeout)
    if life.retry_in is not None:
        dues.append(now + life.retry_in + run.stall_after)
    return max(dues)


def has_stalled(before: Run, run: Run, life: Life | None, now: datetime) -> bool:
    """Whether a fresh read of a doubted turn shows that it has stalled; `before`: the run before that read."""
    if not before.doubted or life is None or run.fresh_after != 0:
        return False
    due = due_after(run, life, now)
    return due is not None and due <= now


def why_stalled(run: Run, life: Life) -> str:
    """Say it in a sentence."""
    quiet = _whole(life.quiet)
    if life.tool is not None:
        return f"the tool {life.tool} has run for {_whole(life.tool_for)} and shown nothing for {quiet}"
    return f"no sign of life for {quiet}, and {_whole(run.stall_after or timedelta())} is the bound"


def _whole(span: timedelta) -> str:
    return format_duration(timedelta(seconds=round(span.total_seconds())))
