"""The questions of `ashep setup`, five at most, each with its default, and what follows from the answers: pure."""

import math
import shlex
from dataclasses import dataclass
from itertools import product
from typing import cast, get_args

from ashep.actions.setup.facts import ProjectFacts
from ashep.actions.setup.written import NONE, Answers, Key, plain, write_number, written_check
from ashep.config.starter.setup_files import ChosenCheck, Landing, SetupAnswers, Source, files_of, is_as_written
from ashep.core.policy.checks import parse_command
from ashep.errors import UsageError

BUDGET = "20"
_MOST_PAIRS = 6


@dataclass(frozen=True, slots=True)
class SetupOption:
    """An answer that is offered."""

    value: str
    label: str


@dataclass(frozen=True, slots=True)
class SetupQuestion:
    """What a person is asked."""

    key: Key
    text: str
    options: tuple[SetupOption, ...]
    default: str
    """The value of the option that Enter takes."""
    hint: str = ""
    """What else may be typed; empty: only an option."""

    @property
    def values(self) -> tuple[str, ...]:
        """The values of the options."""
        return tuple(option.value for option in self.options)

    @property
    def is_open(self) -> bool:
        """Whether there is anything to choose."""
        return len(self.options) > 1 or bool(self.hint)


def question(key: Key, facts: ProjectFacts, replies: Answers) -> SetupQuestion:
    """Return a question. `replies`: the answers before it, and those that the files hold already."""
    return _QUESTIONS[key](facts, replies)


def _choose(
    key: Key, text: str, options: list[SetupOption], default: str, replies: Answers, hint: str = ""
) -> SetupQuestion:
    """Have an answer that was given before be the default, where it can be given still."""
    previous = replies.get(key, "")
    if hint and previous and previous not in {option.value for option in options}:
        options = [SetupOption(previous, previous), *options]
    values = [option.value for option in options]
    chosen = previous if previous in values else default
    return SetupQuestion(key, text, tuple(options), chosen, hint)


def _ask_source(facts: ProjectFacts, replies: Answers) -> SetupQuestion:
    forge, options = facts.forge, list[SetupOption]()
    if forge is not None and forge.type == "github":
        token = "" if forge.login else f" (needs a token in {forge.token[0]}, or `gh auth login`)"
        options.append(SetupOption("github", f"issues of {forge.repository} on GitHub with the label `ashep`{token}"))
    place = "in .beads" if facts.has_database else "kept in .beads, which git does not see"
    options.append(SetupOption("bd", f"issues of bd, {place}"))
    if facts.stories:
        options.append(SetupOption("stories", f"{facts.stories} stories of the BMAD method"))
    reachable = bool(options[0].value == "github" and forge and forge.login)
    default = "bd" if facts.has_database else "github" if reachable else "stories" if facts.stories else "bd"
    return _choose("source", "Where do issues come from?", options, default, replies)


def _ask_agents(facts: ProjectFacts, replies: Answers) -> SetupQuestion:
    able = [agent for agent in facts.agents if agent.is_usable]
    able.sort(key=lambda agent: agent.login != "yes")  # who is logged in goes first, in the order of the table
    apart = [(maker, judge) for maker, judge in product(able, able) if maker is not judge]
    pairs = [*apart[: _MOST_PAIRS - 1], *((agent, agent) for agent in able)][:_MOST_PAIRS]
    options = [
        SetupOption(
            f"{maker.name}/{judge.name}",
            f"{maker.title} works, {'another session of it' if maker is judge else judge.title} judges",
        )
        for maker, judge in pairs
    ]
    return _choose("agents", "Who works, and who judges?", options, options[0].value, replies)


def _ask_check(facts: ProjectFacts, replies: Answers) -> SetupQuestion:
    options = list[SetupOption]()
    for trial in facts.checks:
        if trial.passes:
            command = shlex.join(trial.command)
            needs = f"; with `verification`: {', '.join(trial.verification)}" if trial.verification else ""
            options.append(SetupOption(command, f"{command}: {trial.seconds:.0f} s on the base, passes{needs}"))
    options.append(SetupOption(NONE, "no check: nobody but an agent says that work is right"))
    failures = [trial.message for trial in facts.checks] if len(options) == 1 else []
    text = "\n".join([*failures, "Which command checks work?"])
    for trial in facts.checks:  # with its dependencies the same check has another command
        if trial.passes and shlex.join(trial.proposal.command) == replies.get("check"):
            replies = {**replies, "check": shlex.join(trial.command)}
    return _choose("check", text, options, options[0].value, replies, "or another command")


def _ask_landing(facts: ProjectFacts, replies: Answers) -> SetupQuestion:
    options = [SetupOption("merge", f"merged into {facts.branch} here, once you said yes")]
    forge = facts.forge
    if forge is not None:
        variable, rights = forge.token
        token = "" if forge.login else f" (needs a token in {variable}, with {rights})"
        options.append(SetupOption("pull_request", f"as a pull request of {forge.repository}{token}"))
    by_request = replies.get("source") == "github" and forge is not None and forge.login
    return _choose("landing", "How does work land?", options, "pull_request" if by_request else "merge", replies)


def _ask_budget(facts: ProjectFacts, replies: Answers) -> SetupQuestion:
    options = [
        SetupOption(BUDGET, f"{BUDGET} dollars a day"),
        SetupOption(NONE, "no limit"),
    ]
    return _choose("budget", "What may a day cost?", options, BUDGET, replies, "or another number")


_QUESTIONS = {
    "source": _ask_source, "agents": _ask_agents, "check": _ask_check, "landing": _ask_landing, "budget": _ask_budget
}  # fmt: skip


# --- what the answers mean ----------------------------------------------------------------------------------------


def validate(question: SetupQuestion, value: str) -> str:
    """Return an answer as it is kept: an option's value, by its number too, or what `hint` allows.

    Raises:
        UsageError: it is neither; says what is expected.

    """
    value, values = value.strip(), question.values
    if value.isdecimal() and 0 < int(value) <= len(values) and value not in values:
        return values[int(value) - 1]
    if value in values:
        return value
    try:
        if question.key == "budget" and 0 < float(value) < math.inf:
            return write_number(float(value))
        if question.key == "check" and (words := parse_command(value)):
            return shlex.join(cast("tuple[str, ...]", words))
    except ValueError as error:
        raise UsageError(f"{value}: {error}") from error
    raise UsageError(f"{value or 'nothing'}: expected a number from 1 to {len(values)}{', ' + question.hint}")


def answers_of(facts: ProjectFacts, replies: Answers) -> SetupAnswers:
    """Return what the files are made of; each key of `replies` was answered."""
    agents = {agent.name: agent.chosen for agent in facts.agents}
    maker, _, judge = replies["agents"].partition("/")
    return SetupAnswers(
        next(item for item in get_args(Source) if item == replies["source"]),
        agents[maker],
        agents[judge],
        _choose_check(facts, replies["check"]),
        next(item for item in get_args(Landing) if item == replies["landing"]),
        None if replies["budget"] == NONE else float(replies["budget"]),
        None if facts.forge is None else facts.forge.chosen,
    )


def _choose_check(facts: ProjectFacts, command: str) -> ChosenCheck | None:
    """Return the check of a command: one that passes, else what the files have; None: work has no check."""
    for trial in facts.checks:
        if trial.passes and shlex.join(trial.command) == command:
            parts = (f"{trial.seconds:.0f} s on the base", trial.proposal.rule)
            return ChosenCheck(trial.verify, trial.verification, "; ".join(filter(None, parts)))
    return None if command == NONE else written_check(facts.files)


def changed_files(facts: ProjectFacts, answers: SetupAnswers) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the files to write, and the names of those among them that a person has changed by hand.

    A file that means the same already is not among them.
    """
    existing = facts.files
    changed = {
        name: text
        for name, text in files_of(answers).items()
        if name not in existing or plain(text) != plain(existing[name])
    }
    return changed, tuple(name for name in changed if name in existing and not is_as_written(existing[name]))
