"""Whether a person has looked through all that they approve, where a policy asks for it."""

from anyio import to_thread

from ashep.api.handlers.queries import QueryHandlers
from ashep.api.handlers.run_artifacts import WhichLines, read_changes
from ashep.api.schemas.actions import SeenFiles
from ashep.config import load
from ashep.views import issue_work
from ashep.views.json_types import IssueJson

NAMED = 3
"""Files that a message names."""


async def find_unseen(pictures: QueryHandlers, row: IssueJson, files: SeenFiles | None) -> str | None:
    """Say which files of an issue's work a person has yet to look through; None: none, or nobody asks for it.

    Where git cannot read the files, the reason is the answer. Raises `ConfigErrors`.
    """
    question = row["question"]
    policies = (await to_thread.run_sync(load, pictures.folder)).policies.policies
    policy = policies.get(row["policy"] or "")
    phases = policy.phases if policy and question else ()
    human = next((phase.human for phase in phases if question and phase.name == question["phase"]), None)
    if human is None or human.seen is None:
        return None
    issue = row["issue"]
    ends = await pictures.look_up(
        lambda model: issue_work.ends(model.database, issue), f"nothing is known of an issue {issue}"
    )
    if ends == issue_work.NO_COMMIT:
        return None
    changes = await read_changes(pictures, ends, WhichLines(), "this issue")
    if changes.head is None:
        return f"the policy asks that every changed file is seen first. {changes.why}"
    seen_paths = files.paths if files is not None and files.head == changes.head else ()
    paths = [file.path for file in changes.files if file.path not in seen_paths]
    number = len(paths) + changes.more
    if not number:
        return None
    names = ", ".join(paths[:NAMED])
    rest = f" and {number - NAMED} more" if number > NAMED else ""
    return (
        f"the policy asks that every changed file is seen first; not marked as seen: {names or 'unlisted files'}{rest}"
    )
