"""The questions of `ashep setup`, five at most, each with its default, and what follows from the answers: pure."""

import shlex
from dataclasses import dataclass
from itertools import product
from typing import get_args

from ashep.actions.setup.checks import CheckFact
from ashep.actions.setup.facts import ForgeFact, ProjectFacts
from ashep.actions.setup.written import KEYS, NONE, Answers, Key, plain, written_answers
from ashep.config.starter.setup_files import (
    HEAD,
    ChosenCheck,
    ChosenForge,
    Landing,
    SetupAnswers,
    Source,
    files_of,
)
from ashep.core.policy.checks import parse_command
from ashep.errors import UsageError

BUDGET = "20"
_MOST_PAIRS = 6


@dataclass(frozen=True, slots=True)
class Option:
    """An answer that is offered."""

    value: str
    label: str


@dataclass(frozen=True, slots=True)
class Question:
    """What a person is asked."""

    key: Key
    text: str
    options: tuple[Option, ...]
    default: str
    """The value of the option that Enter takes."""
    hint: str = ""
    """What else may be typed; empty: only an option."""

    @property
    def is_open(self) -> bool:
        """Whether there is anything to choose."""
        return len(self.options) > 1 or bool(self.hint)


def question(key: Key, facts: ProjectFacts, given: Answers) -> Question:
    """Return a question. `given`: the answers before it, and those that the files hold already."""
    return _QUESTIONS[key](facts, given)


def _choose(key: Key, text: str, options: list[Option], default: str, given: Answers, hint: str = "") -> Question:
    """Have an answer that was given before be the default, where it can be given still."""
    before = given.get(key, "")
    if hint and before and before not in {option.value for option in options}:
        options = [Option(before, before), *options]
    values = [option.value for option in options]
    chosen = before if before in values else default
    return Question(key, text, tuple(options), chosen, hint)


def _ask_source(facts: ProjectFacts, given: Answers) -> Question:
    forge, options = facts.forge, list[Option]()
    if forge is not None and forge.type == "github":
        token = "" if forge.login else f" (needs a token in {forge.token[0]}, or `gh auth login`)"
        options.append(Option("github", f"issues of {forge.repository} on GitHub with the label `ashep`{token}"))
    where = "in .beads" if facts.has_database else "kept in .beads, which git does not see"
    options.append(Option("bd", f"issues of bd, {where}"))
    if facts.stories:
        options.append(Option("stories", f"{facts.stories} stories of the BMAD method"))
    reachable = bool(options[0].value == "github" and forge and forge.login)
    default = "bd" if facts.has_database else "github" if reachable else "stories" if facts.stories else "bd"
    return _choose("source", "Where do issues come from?", options, default, given)


def _ask_agents(facts: ProjectFacts, given: Answers) -> Question:
    able = [agent for agent in facts.agents if agent.is_usable]
    able.sort(key=lambda agent: agent.login != "yes")  # who is logged in goes first, in the order of the table
    apart = [(maker, judge) for maker, judge in product(able, able) if maker is not judge]
    pairs = [*apart[: _MOST_PAIRS - 1], *((agent, agent) for agent in able)][:_MOST_PAIRS]
    options = [
        Option(
            f"{maker.name}/{judge.name}",
            f"{maker.title} works, {'another session of it' if maker is judge else judge.title} judges",
        )
        for maker, judge in pairs
    ]
    return _choose("agents", "Who works, and who judges?", options, options[0].value, given)


def _ask_check(facts: ProjectFacts, given: Answers) -> Question:
    options = [Option(shlex.join(one.command), _describe_check(one)) for one in facts.checks if one.passed]
    options.append(Option(NONE, "no check: nobody but an agent says that work is right"))
    failed = [f"`{shlex.join(one.command)}` does not pass on the base: {one.failure}" for one in facts.checks]
    failed = failed if len(options) == 1 else []
    text = "\n".join([*failed, "Which command checks work?"])
    return _choose("check", text, options, options[0].value, given, "or another command")


def _describe_check(check: CheckFact) -> str:
    needs = f"; with `verification`: {', '.join(check.verification)}" if check.verification else ""
    return f"{shlex.join(check.command)}: {check.seconds:.0f} s on the base, passes{needs}"


def _ask_landing(facts: ProjectFacts, given: Answers) -> Question:
    options = [Option("merge", f"merged into {facts.branch} here, once you said yes")]
    forge = facts.forge
    if forge is not None:
        variable, rights = forge.token
        token = "" if forge.login else f" (needs a token in {variable}, with {rights})"
        options.append(Option("pull_request", f"as a pull request of {forge.repository}{token}"))
    by_request = given.get("source") == "github" and forge is not None and forge.login
    return _choose("landing", "How does work land?", options, "pull_request" if by_request else "merge", given)


def _ask_budget(facts: ProjectFacts, given: Answers) -> Question:
    options = [Option(BUDGET, f"{BUDGET} dollars a day"), Option(NONE, "no limit")]
    return _choose("budget", "What may a day cost?", options, BUDGET, given, "or another number")


_QUESTIONS = {
    "source": _ask_source, "agents": _ask_agents, "check": _ask_check, "landing": _ask_landing, "budget": _ask_budget
}  # fmt: skip


# --- what the answers mean ----------------------------------------------------------------------------------------


def validate(question: Question, value: str) -> str:
    """Return an answer as it is kept: an option's value, by its number too, or what `hint` allows.

    Raises:
        UsageError: it is neither; says what is expected.

    """
    value, values = value.strip(), [option.value for option in question.options]
    if value.isdecimal() and 0 < int(value) <= len(values) and value not in values:
        return values[int(value) - 1]
    if value in values:
        return value
    try:
        if question.key == "budget":
            if float(value) > 0:
                return f"{float(value):g}"
        elif question.key == "check" and parse_command(value):
            return value
    except ValueError as error:
        raise UsageError(f"{value}: {error}") from error
    raise UsageError(f"{value or 'nothing'}: expected a number from 1 to {len(values)}{', ' + question.hint}")


def answers_of(facts: ProjectFacts, given: Answers) -> SetupAnswers:
    """Return what the files are made of; each key of `given` was answered."""
    agents = {agent.name: agent.chosen for agent in facts.agents}
    maker, _, judge = given["agents"].partition("/")
    source: Source = next(one for one in get_args(Source) if one == given["source"])
    landing: Landing = next(one for one in get_args(Landing) if one == given["landing"])
    check = next((one for one in facts.checks if one.passed and shlex.join(one.command) == given["check"]), None)
    forge = facts.forge
    return SetupAnswers(
        source,
        agents[maker],
        agents[judge],
        None if check is None else _chosen_check(check),
        landing,
        None if given["budget"] == NONE else float(given["budget"]),
        forge=None if forge is None else _chosen_forge(forge),
    )


def _chosen_forge(forge: ForgeFact) -> ChosenForge:
    """The forge as the files name it: gh knows its address itself."""
    by_gh = forge.login == "gh" and not forge.url
    return ChosenForge("gh" if by_gh else forge.type, forge.repository, forge.url)


def _chosen_check(check: CheckFact) -> ChosenCheck:
    why = f"{check.seconds:.0f} s on the base; {check.rule}" if check.rule else f"{check.seconds:.0f} s on the base"
    return ChosenCheck(check.command, check.verification, why)


def changed_files(facts: ProjectFacts, answers: SetupAnswers) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the files to write, and the names of those among them that a person has changed by hand.

    A file that means the same already is not among them.
    """
    there = {name: plain(text) for name, text in facts.files.items()}
    changed = {name: text for name, text in files_of(answers).items() if plain(text) != there.get(name)}
    before = written_answers(facts.files)
    try:
        made = files_of(answers_of(facts, before)) if {*KEYS} <= {*before} else {}
    except (KeyError, StopIteration, ValueError):  # they name what is not here any more
        made = dict[str, str]()
    own = {name for name, text in made.items() if HEAD in facts.files.get(name, "") and plain(text) == there[name]}
    return changed, tuple(name for name in changed if name in there and name not in own)
