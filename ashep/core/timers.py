"""What a flow waits for a time for, and how such a timer is called."""

from datetime import datetime

from ashep.core.flow import Flow


def flow_dues(flow: Flow) -> list[tuple[str, datetime]]:
    """Everything that this flow waits for a time for, by the timer's name."""
    dues: list[tuple[str, datetime]] = []
    if flow.not_before is not None:
        dues.append(("wait", flow.not_before))
    if flow.question is not None and flow.stage == "person":
        dues.append(("question", flow.question.due))
    if flow.effect_after is not None:
        dues.append(("effect", flow.effect_after))
    if flow.write_after is not None:
        dues.append(("write", flow.write_after))
    run = flow.run
    if run is not None and not run.ended:
        if run.deadline is not None and not run.overdue:
            dues.append(("deadline", run.deadline))
        if run.sign_due is not None:
            dues.append(("sign", run.sign_due))
    return dues


def split_timer(key: str) -> tuple[str, str]:
    """Take a timer's key apart: its name and its issue."""
    name, _, issue = key.partition(":")
    return name, issue
