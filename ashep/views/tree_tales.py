"""What is told of the work trees of issues: sentences for `ashep.views.story`."""

from collections.abc import Callable

from ashep.views import Data
from ashep.views.times import local


def _sealed(_: object, body: Data) -> tuple[str, str]:
    count = len(body["commits"])
    told = "; ".join((f"tree {body['tree']}", *body.get("told", ())))
    return f"its branch has {count} commit{'' if count == 1 else 's'}", told


def _rests(_: object, body: Data) -> tuple[str, str]:
    until = f"until {local(body['due'])}" if body.get("due") else "for good"
    return f"its work tree stands {until}", body.get("why", "")


def _removed(_: object, body: Data) -> tuple[str, str]:
    saved = ", ".join(body.get("saved", ()))
    return "its work tree and branch are gone: the base has it all", f"saved: {saved}" if saved else ""


SAID: dict[str, Callable[[object, Data], tuple[str, str]]] = {
    "TreePrepared": lambda _, body: (
        f"works in {body['path']}, on the branch {body['branch']}",
        f"which began at {body['base']}",
    ),
    "TreeSealed": _sealed,
    "TreeLeft": lambda _, body: ("what it left could not be sealed, and stays in its tree", body["why"]),
    "TreeRests": _rests,
    "TreeRemoved": _removed,
    "TreeKept": lambda _, body: ("its work tree stays", body["why"]),
}
"""By the name of the record: what happened, and the reason."""
