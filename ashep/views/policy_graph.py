"""A policy as a picture: Mermaid, Graphviz, text or JSON, with what is wrong with it, and how many issues are where.

Drawn from the edges that the checker found (`ashep.core.analysis.soundness`), so that a picture shows what is checked.
"""

from __future__ import annotations  # the types bring pydantic along, for which no command that reads has time

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from ashep.core.analysis.soundness import Defect, PolicyEdge
from ashep.views import Database

if TYPE_CHECKING:
    from ashep.views import json_types

Severity = Literal["error", "warning"]
Kind = Literal["agent", "human", "end"]

ENDS = {"close": "closed", "park": "parked", "ask": "asks a person"}
"""Targets that are no phases, and what an issue is there."""

FAILURES = {"failed", "partial", "timed out", "stalled"}
"""The ways in which a phase can come to no success."""


class GraphNode(NamedTuple):
    """A phase, or an end."""

    name: str
    kind: Kind
    needs: tuple[str, ...] = ()
    issues: int | None = None
    """How many issues are there now; None: not asked."""
    codes: tuple[str, ...] = ()
    mark: Severity | None = None

    @property
    def label(self) -> list[str]:
        """Give the lines to write into it."""
        lines = [self.name]
        if self.kind == "human":
            lines.append("asks a person")
        elif self.kind == "agent" and self.needs != (self.name,):
            lines.append(", ".join(self.needs))
        if self.issues is not None:
            lines.append(f"{self.issues} issue{'' if self.issues == 1 else 's'}")
        return lines


class Arrow(NamedTuple):
    """What leads from one box to another: all moves of a kind together."""

    source: str
    target: str
    kind: str
    moves: tuple[str, ...]
    mark: Severity | None = None
    codes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PolicyGraph:
    """A policy, ready to be drawn."""

    name: str
    boxes: tuple[GraphNode, ...]
    arrows: tuple[Arrow, ...]
    findings: tuple[json_types.FindingJson, ...]


def picture(
    name: str,
    phases: Sequence[tuple[str, tuple[str, ...], bool]],
    edges: Iterable[PolicyEdge],
    findings: Iterable[Defect] = (),
    issues: Mapping[str, int] | None = None,
) -> PolicyGraph:
    """Put a picture together; `phases` are names, needs, and whether a person answers there, in order."""
    arrows: dict[tuple[str, str, str], list[str]] = {}
    for edge in edges:
        arrows.setdefault((edge.source, edge.target, edge.kind), []).append(edge.move)
    found = list(findings)
    asks = {source for source, _, kind in arrows if kind == "answer"}  # a person may be an agent of the registry, too
    boxes = list[GraphNode]()
    for phase, needs, human in phases:
        own = [finding for finding in found if finding.phase == phase]
        kind, count = "human" if human or phase in asks else "agent", None if issues is None else issues.get(phase, 0)
        boxes.append(GraphNode(phase, kind, needs, count, _codes(own), _worst(own)))
    targets = {target for _, target, _ in arrows}
    ends = [end for end in ENDS if end in targets]
    boxes += [GraphNode(end, "end", (), None if issues is None or end == "ask" else issues.get(end, 0)) for end in ends]
    drawn = list[Arrow]()
    for (source, target, kind), moves in arrows.items():
        keys = {"on_deadline" if move == "deadline" else move for move in moves}
        defects = [
            defect for defect in found if defect.phase == source and defect.key_path and defect.key_path[-1] in keys
        ]
        drawn.append(Arrow(source, target, kind, tuple(dict.fromkeys(moves)), _worst(defects), _codes(defects)))
    rows: list[json_types.FindingJson] = [
        {"code": defect.code, "severity": defect.severity, "phase": defect.phase, "message": defect.message}
        for defect in found
    ]
    return PolicyGraph(name, tuple(boxes), tuple(drawn), tuple(rows))


def _codes(findings: Iterable[Defect]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(finding.code for finding in findings))


def _worst(findings: Collection[Defect]) -> Severity | None:
    marks: list[Severity] = [finding.severity for finding in findings]
    return "error" if "error" in marks else marks[0] if marks else None


def stands(database: Database | None, policy: str) -> dict[str, dict[json_types.State, int]]:
    """Count the issues under a policy by where they are (a phase, `park` or `close`), and there by their state."""
    found: dict[str, dict[json_types.State, int]] = {}
    if database is None:
        return found
    known = "SELECT state, phase, count(*) AS many FROM issues WHERE policy = ? GROUP BY state, phase"
    for row in database.execute(known, [policy]):
        place = {"parked": "park", "closed": "close", "not_eligible": None}.get(row["state"], row["phase"])
        if place is not None:
            there = found.setdefault(place, {})
            there[row["state"]] = there.get(row["state"], 0) + row["many"]
    return found


def counts(database: Database | None, policy: str) -> dict[str, int]:
    """Count the issues under a policy, by where they are."""
    return {place: sum(there.values()) for place, there in stands(database, policy).items()}


# --- Mermaid -------------------------------------------------------------------------------------------------------

_RESERVED = {"call", "class", "click", "default", "end", "flowchart", "graph", "href", "style", "subgraph", "begin"}
_SHAPES = {"agent": '["{}"]', "human": '{{{{"{}"}}}}', "end": '(["{}"])'}
_LINES = {"failure": "-.->", "deadline": "-.->"}
_STYLES = (
    "classDef human stroke-dasharray: 5 3",
    "classDef error stroke:#c62828,stroke-width:3px,color:#c62828",
    "classDef warning stroke:#ef6c00,stroke-width:3px,color:#ef6c00",
)
_COLOURS = {"error": "#c62828", "warning": "#ef6c00"}


def mermaid(drawn: PolicyGraph) -> list[str]:
    """Write it for Mermaid. Failures and deadlines are dotted; what is wrong is red, or orange."""
    ids = _ids(drawn)
    lines = ["flowchart TD", "    begin(( )) --> " + ids[drawn.boxes[0].name]]
    lines += [f"    {ids[box.name]}{_SHAPES[box.kind].format('<br/>'.join(box.label))}" for box in drawn.boxes]
    for arrow in drawn.arrows:
        line = _LINES.get(arrow.kind, "-->")
        lines.append(f'    {ids[arrow.source]} {line}|"{_moves(arrow)}"| {ids[arrow.target]}')
    marks = {box.mark for box in drawn.boxes} | {arrow.mark for arrow in drawn.arrows}
    styles = [style for style in _STYLES if style.split()[1] in {*marks, *(box.kind for box in drawn.boxes)}]
    lines += [f"    {style}" for style in styles]
    for kind in ("human", "error", "warning"):
        if names := [ids[box.name] for box in drawn.boxes if kind in (box.kind, box.mark)]:
            lines.append(f"    class {','.join(names)} {kind}")
    for number, arrow in enumerate(drawn.arrows, 1):  # the first is that of the beginning
        if arrow.mark:
            lines.append(f"    linkStyle {number} stroke:{_COLOURS[arrow.mark]},stroke-width:3px")
    return lines + [f"    %% {_line(finding)}" for finding in drawn.findings]


def _ids(drawn: PolicyGraph) -> dict[str, str]:
    """Give each box a word that Mermaid takes, and no two the same."""
    ids: dict[str, str] = {}
    for box in drawn.boxes:
        word = re.sub(r"\W+|-", "_", box.name)
        while word.lower() in _RESERVED or word in ids.values():
            word += "_"
        ids[box.name] = word
    return ids


def _moves(arrow: Arrow) -> str:
    """Name what leads there; all that can fail together in two words."""
    return "any failure" if set(arrow.moves) == FAILURES else ", ".join(arrow.moves)


def _line(finding: json_types.FindingJson) -> str:
    where = f"{finding['phase']}: " if finding["phase"] else ""
    return " ".join(f"{finding['severity']} {finding['code']}: {where}{finding['message']}".split())


# --- Graphviz ------------------------------------------------------------------------------------------------------


def dot(drawn: PolicyGraph) -> list[str]:
    """Write it for Graphviz."""
    lines = [f'digraph "{drawn.name}" {{', "    node [shape=box, style=rounded];", "    begin [shape=point];"]
    shapes = {"agent": "", "human": "shape=hexagon", "end": "shape=oval"}
    for box in drawn.boxes:
        label = 'label="' + "\\n".join(box.label) + '"'
        lines.append(f'    "{box.name}" [{_join_attributes(label, shapes[box.kind], *_coloured(box.mark))}];')
    lines.append(f'    begin -> "{drawn.boxes[0].name}";')
    for arrow in drawn.arrows:
        style = "style=dashed" if arrow.kind in _LINES else ""
        given = _join_attributes(f'label="{_moves(arrow)}"', style, *_coloured(arrow.mark))
        lines.append(f'    "{arrow.source}" -> "{arrow.target}" [{given}];')
    return [*lines, *(f"    // {_line(finding)}" for finding in drawn.findings), "}"]


def _join_attributes(*attributes: str) -> str:
    return ", ".join(filter(None, attributes))


def _coloured(mark: Severity | None) -> tuple[str, ...]:
    return (f'color="{_COLOURS[mark]}"', f'fontcolor="{_COLOURS[mark]}"', "penwidth=2") if mark else ()


# --- text and JSON -------------------------------------------------------------------------------------------------


def text(drawn: PolicyGraph) -> list[tuple[str, str | None]]:
    """Write it in lines, each with how bad it is."""
    lines: list[tuple[str, str | None]] = []
    wide = max((len(_moves(arrow)) for arrow in drawn.arrows), default=0)
    for box in drawn.boxes:
        head, *more = box.label
        lines.append((f"{head}{' (' + ', '.join(more) + ')' if more else ''}", box.mark))
        own = [arrow for arrow in drawn.arrows if arrow.source == box.name]
        lines += [(f"  {_moves(arrow).ljust(wide)}  → {arrow.target}", arrow.mark) for arrow in own]
    return lines + [(_line(finding), finding["severity"]) for finding in drawn.findings]


def as_json(drawn: PolicyGraph) -> json_types.LivePolicyJson:
    """Give it as JSON."""
    phases: list[json_types.PhaseJson] = [
        {
            "name": box.name, "kind": box.kind, "capabilities": [*box.needs], "issues": box.issues,
            "findings": [*box.codes], "states": None,
        }
        for box in drawn.boxes
    ]  # fmt: skip
    edges: list[json_types.MoveJson] = [
        {
            "source": arrow.source, "move": move, "target": arrow.target, "kind": arrow.kind,
            "findings": [*arrow.codes], "taken": None,
        }
        for arrow in drawn.arrows
        for move in arrow.moves
    ]  # fmt: skip
    return {"policy": drawn.name, "phases": phases, "edges": edges, "findings": [*drawn.findings]}
