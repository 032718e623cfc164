"""How everything stood at a moment, in the words of `now` and with the counts of policies that were in force."""

from datetime import datetime, timedelta

from ashep.core.state.world import EPOCH
from ashep.store.playback import PastView
from ashep.views import json_types, lists, policies, policy_graph, status
from ashep.views.times import local, stamp


def describe_moment(
    past: PastView, moment: datetime, graphs: policies.PastPolicyGraphs, issue: str | None = None
) -> json_types.ThenJson:
    """Tell a moment; `counts` are null where it cannot be told, or not yet (`ready`)."""
    answer: json_types.ThenJson = {
        "seq": 0, "last": None, "at": stamp(moment),
        "kept_from": stamp(EPOCH + timedelta(microseconds=past.begins)) if past.begins else None,
        "ready": past.made >= 1, "progress": past.made, "counts": None, "waiting": [], "running": [],
        "policies": [], "issue": None,
    }  # fmt: skip
    if past.stood is None:
        return answer
    database, world = past.stood
    seq = lists.seq(database)
    return {
        **answer, "seq": seq, "last": stamp(world.now) if world.seq else None, **status.first(database),
        "policies": [
            {"seq": seq, **policies.counted(graph, policy_graph.stands(database, name), None)}
            for name, graph in graphs.all(world).items()
        ],
        "issue": status.read_issue(database, issue) if issue is not None else None,
    }  # fmt: skip


def headline(seen: json_types.ThenJson) -> str:
    """Say in a line of when it is told; or why it is not."""
    if seen["counts"] is None:
        kept = f"the journal is kept from {local(seen['kept_from'])} on" if seen["kept_from"] else "there is no journal"
        return f"nothing is known of {local(seen['at'])}: {kept}"
    return f"as of {local(seen['at'])}, record {seen['seq']}; {counts(seen['counts'])}"


def counts(known: dict[json_types.State, int]) -> str:
    """Say in a line how many issues stood where."""
    said = [f"{known[state]} {words}" for state, words in status.STATES.items() if known[state]]
    return f"{sum(known.values())} issues: {', '.join(said)}" if said else "no issues were known"
