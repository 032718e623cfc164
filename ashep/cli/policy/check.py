"""`ashep policy check`: whether the policies can be left alone, and what they can cost at most."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from ashep.cli import output
from ashep.cli.commands import Json, example, policies, project_of
from ashep.cli.context import configured
from ashep.cli.output import counted
from ashep.config import examine
from ashep.config.findings import Finding, errors_of
from ashep.config.policy_checks import warnings
from ashep.core.analysis.cost_bounds import Bounds
from ashep.core.analysis.soundness import analyse
from ashep.core.policy.base_types import format_duration
from ashep.errors import UsageError
from ashep.prompt.user_files import wrong_templates

OTHER_QUESTIONS = (
    "questions: those of phases; agents may ask people, too, and ashep where work falls short or touches rules"
)
"""What the bounds leave out: nothing in a policy says how often an agent asks."""


@policies.command(
    name="check", epilog=example("ashep policy check", "ashep policy check draft.yaml", "ashep policy check --json")
)
def policy_check(
    context: typer.Context,
    files: Annotated[
        list[Path] | None, typer.Argument(metavar="FILE…", help="Drafts; by default the project's policies.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Check the policies, before the night: their form, and all that they can lead to.

    Every outcome, verdict, failure, answer and silence is tried with the rules that run issues, in every state that an
    issue can come to. What must not be (a phase that nothing leads to, an issue that can never be closed, a way around
    an approval, …) is an error, with the shortest way to it; `ashep work` refuses such a policy. Then come its bounds,
    with the questions of its phases: agents may ask people, too.
    The exit code is 1 where there is an error.
    """
    folder = configured(project_of(context))
    for file in files or ():
        if not file.is_file():
            raise UsageError(f"{file}: there is no such file")
    checked = [(file or folder / "policies.yaml", *_checked(folder, file)) for file in files or (None,)]
    findings = [finding for _, found, _ in checked for finding in found]
    failed = bool(errors_of(findings))
    if as_json:
        bounds = {str(file): {name: _plain(one) for name, one in all_of.items()} for file, _, all_of in checked}
        output.data({"ok": not failed, "findings": [asdict(finding) for finding in findings], "bounds": bounds})
    else:
        for file, found, all_of in checked:
            _say(file, found, all_of)
    raise typer.Exit(int(failed))


def _checked(folder: Path, file: Path | None) -> tuple[list[Finding], dict[str, Bounds | None]]:
    seen = examine(folder, file)
    if seen.policies is None or seen.agents is None or seen.settings is None:
        return seen.findings, {}
    findings = seen.findings + warnings(seen.policies, seen.agents, seen.settings, seen.places)
    if file is None and (folder / "prompts").is_dir():
        findings += wrong_templates(folder, seen.policies)
    if errors_of(findings):
        return findings, {}
    analysis = analyse(seen.policies, seen.agents, seen.settings)
    return findings, {name: verdict.bounds for name, verdict in analysis.items()}


def _say(file: Path, findings: list[Finding], bounds: dict[str, Bounds | None]) -> None:
    for finding in findings:
        output.say_finding(finding.severity, f"{finding} [{finding.code}]")
        for step in finding.story:
            output.say(f"    {step}")
    for name, bound in bounds.items():
        if bound is not None:
            output.say(f"{name}: {describe_bounds(bound)}")
    if any(bounds.values()):
        output.say(OTHER_QUESTIONS)
    if not errors_of(findings):
        output.say(f"{file}: no mistake found")


def describe_bounds(bounds: Bounds) -> str:
    """Give the bounds of a policy as a sentence."""
    cost = "" if bounds.best_cost is None else f", cost {bounds.best_cost:.2f}"
    most = "" if bounds.worst_cost is None else f", cost {bounds.worst_cost:.2f}"
    wait = f", {format_duration(bounds.worst_wait)} of waiting for people" if bounds.worst_questions else ""
    return (
        f"at best {counted(bounds.best_runs, 'run')} and {counted(bounds.best_questions, 'question')}{cost}; "
        f"until a person answers at most {counted(bounds.worst_runs, 'run')}, "
        f"{counted(bounds.worst_questions, 'question')}, {format_duration(bounds.worst_work)} of work{wait}{most}"
    )


def _plain(bounds: Bounds | None) -> dict[str, Any] | None:
    if bounds is None:
        return None
    seconds = {"worst_work": bounds.worst_work.total_seconds(), "worst_wait": bounds.worst_wait.total_seconds()}
    return asdict(bounds) | seconds
