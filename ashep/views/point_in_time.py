"""How everything stood at a moment, in the words of `now` and with the counts of policies that were in force."""

from datetime import datetime, timedelta
from typing import Any

from ashep.core.state.world import EPOCH
from ashep.store.playback import PastView
from ashep.views import Data, lists, policies, policy_graph, status
from ashep.views.times import local, stamp


def told(then: PastView, moment: datetime, drawn: policies.PastPolicyGraphs, issue: str | None = None) -> Data:
    """Tell a moment; `counts` are null where it cannot be told, or not yet (`ready`)."""
    kept = stamp(EPOCH + timedelta(microseconds=then.begins)) if then.begins else None
    found: Data = {"at": stamp(moment), "kept_from": kept, "ready": then.made >= 1, "progress": then.made}
    if then.stood is None:
        nothing: Data = {"counts": None, "waiting": [], "running": [], "policies": [], "issue": None}
        return {"seq": 0, "last": None, **found, **nothing}
    database, world = then.stood
    seq = lists.seq(database)
    graphs = [
        {"seq": seq} | policies.counted(one, policy_graph.stands(database, name), None)
        for name, one in drawn.all(world).items()
    ]
    return {
        "seq": seq, "last": stamp(world.now) if world.seq else None, **found, **status.first(database),
        "policies": graphs, "issue": status.shown(database, issue) if issue is not None else None,
    }  # fmt: skip


def headline(seen: Data) -> str:
    """Say in a line of when it is told; or why it is not."""
    if seen["counts"] is None:
        kept = f"the journal is kept from {local(seen['kept_from'])} on" if seen["kept_from"] else "there is no journal"
        return f"nothing is known of {local(seen['at'])}: {kept}"
    return f"as of {local(seen['at'])}, record {seen['seq']}; {counts(seen['counts'])}"


def counts(known: dict[str, Any]) -> str:
    """Say in a line how many issues stood where."""
    said = [f"{known[state]} {words}" for state, words in status.STATES.items() if known[state]]
    return f"{sum(known.values())} issues: {', '.join(said)}" if said else "no issues were known"
