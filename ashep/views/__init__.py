"""Flows and facts -> what people look at: one source for tables, JSON and, later, the web page.

Never: a decision, or a write.

Everything here is a function of the database's rows (`ashep.store` says what they hold) and of what the caller knows
about the daemon. Nothing heavy is imported: a command that only reads must be quick.

Modules: `status` (where every issue stands), `runs` (runs), `issue_story` (why an issue is where it is), `id_masking`
(ids of other issues taken out of a text), `point_in_time` (how it stood at a moment), `report`, `usage`, `evidence`,
`issue_work` (the change, and what agents say of it), `lists` (page by page), `policies`, `policy_graph`, `edge_counts`,
`policy_comparison`, `project`, `times`; `json_types`, the JSON of all these, which the API shares: a TypedDict an
object.
"""

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Data = dict[str, Any]
"""What becomes JSON."""

Database = sqlite3.Connection
"""Opened read-only, rows by name."""

Text = Callable[[str], str | None]
"""Reads a blob; None where it is gone."""


def read_facts(
    database: Database, types: Sequence[str], where: str, *values: object, order: str = "seq"
) -> Iterator[Data]:
    """Read records of these types, in the order of their numbers, each with its `body`."""
    query = f"SELECT * FROM facts WHERE type IN ({', '.join('?' * len(types))}) AND {where} ORDER BY {order}"
    return (dict(row) | {"body": json.loads(row["body"])} for row in database.execute(query, [*types, *values]))
