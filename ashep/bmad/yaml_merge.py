"""Three versions of a YAML file become one, key by key: changes of different keys are never in conflict.

What a branch changed is spliced into the base's text: comments, order and line ends stay as the base has them. It is
believed only where the same splicing makes of the oldest version exactly the branch's: what it changed next to its keys
is not lost, but left to a person.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from ashep.bmad.status_words import further, only_status
from ashep.bmad.text import Text, UnreadableText
from ashep.bmad.yaml_nodes import composed
from ashep.errors import AshepError

LARGEST = 64_000
"""Bytes of a file that is merged: the largest sprint status of the facts has 186 keys, some 10 kB; YAML is slow."""

_END = re.compile(r"\r\n|\r|\n")
_QUOTES = "'\""


class NotMerged(AshepError):
    """It is in conflict, or is no file that is merged by key."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """A key and its value: where its line begins, where key and value end; and the keys below it."""

    start: int
    key: int
    end: int
    inner: "dict[str, _Entry] | None"


@dataclass(frozen=True, slots=True)
class _File:
    text: str
    """With an end of its last line."""
    top: dict[str, _Entry]
    ended: bool
    """Whether it has one."""

    def read_value(self, entry: _Entry) -> str:
        """Give all between the key and its value's end, as one compares it."""
        return _END.sub("\n", self.text[entry.key : entry.end])

    def line_end(self, place: int) -> int:
        if place and self.text[place - 1] in "\r\n":
            return place  # of a block of text
        found = _END.search(self.text, place)
        return found.end() if found else len(self.text)

    def lines(self, entry: _Entry) -> str:
        return _END.sub("\n", self.text[entry.start : self.line_end(entry.end)])

    def leaves(
        self, entries: Mapping[str, _Entry] | None = None, above: tuple[str, ...] = ()
    ) -> dict[tuple[str, ...], str]:
        """Give what each key says that has none below it."""
        found = dict[tuple[str, ...], str]()
        for key, entry in (self.top if entries is None else entries).items():
            if entry.inner is not None:
                found |= self.leaves(entry.inner, (*above, key))
            else:
                found[*above, key] = self.read_value(entry)
        return found


def merge(oldest: bytes, base: bytes, branch: bytes) -> bytes:
    """Give the base's file with what the branch changed since the oldest. Raises `NotMerged`."""
    old, onto, new = (_read(data) for data in (oldest, base, branch))
    if _spliced(old, new, old) != new.text or old.ended != new.ended:
        raise NotMerged("the branch changes more than values, and lines of keys")
    before, there, wanted = old.leaves(), onto.leaves(), new.leaves()
    expected = {
        path: _chosen(path, before.get(path), there.get(path), wanted.get(path))
        for path in {**there, **wanted, **before}
    }
    text = _spliced(old, new, onto)
    merged = (text if onto.ended else text.removesuffix("\n").removesuffix("\r")).encode()
    if _read(merged).leaves() != {path: said for path, said in expected.items() if said is not None}:
        raise NotMerged("its keys stand otherwise in the base")
    return merged


def _chosen(path: tuple[str, ...], old: str | None, base: str | None, branch: str | None) -> str | None:
    """Choose what a key says; of two statuses the further one. Raises `NotMerged`."""
    if branch == old or base == branch:
        return base
    if base == old:
        return branch
    here, there = only_status(_bare(base)), only_status(_bare(branch))
    if here is not None and there is not None:
        if further(there, here):
            return branch
        if here == there or further(here, there):
            return base
    raise NotMerged(f"{'.'.join(path)} was changed on both sides")


def _bare(said: str | None) -> str:
    plain = (said or "").removeprefix(":").strip()
    return plain[1:-1] if plain[:1] in _QUOTES and plain[:1] == plain[-1:] else plain


# --- splicing -----------------------------------------------------------------------------------------------------

_Edit = tuple[int, int, str]
_Three = tuple[dict[str, _Entry], dict[str, _Entry], dict[str, _Entry]]


def _spliced(old: _File, new: _File, onto: _File) -> str:
    """Change a text as the new one differs from the old one. Raises `NotMerged`."""
    end, text = found[0] if (found := _END.search(onto.text)) else "\n", onto.text
    edits = [*enumerate(_edits(old, new, onto, (old.top, new.top, onto.top), (), (0, 0)))]
    for _, (start, stop, said) in sorted(edits, key=lambda one: (*one[1][:2], one[0]), reverse=True):
        text = text[:start] + _END.sub(end, said) + text[stop:]
    return text


def _edits(
    old: _File, new: _File, onto: _File, entries: _Three, path: tuple[str, ...], begin: tuple[int, int]
) -> Iterator[_Edit]:
    """Give what is to be replaced; what is added comes behind the key that it stands behind in the new one."""
    before, wanted, there = entries
    at, place, added = begin[0], begin[1], ""
    for key, entry in wanted.items():
        was, here, end = before.get(key), there.get(key), new.line_end(entry.end)
        if was is None and here is None:
            added += new.text[at:end]
        if was is not None and added:
            yield place, place, added
            added = ""
        inner = {} if was is None else was.inner
        if here is not None and here.inner is not None and entry.inner is not None and inner is not None:
            below = new.line_end(entry.key), onto.line_end(here.key)
            yield from _edits(old, new, onto, (inner, entry.inner, here.inner), (*path, key), below)
        elif was is not None or here is not None:
            said, now = was and old.read_value(was), here and onto.read_value(here)
            chosen = _chosen((*path, key), said, now, new.read_value(entry))
            if here is not None and chosen is not None and chosen != now:
                yield here.key, here.end, chosen
        if was is not None and here is not None:
            place = onto.line_end(here.end)
        at = end
    if added:
        yield place, place, added
    for key in (one for one in before if one not in wanted and one in there):
        if onto.lines(there[key]) != old.lines(before[key]):
            raise NotMerged(f"{'.'.join((*path, key))} was changed on one side, and removed on the other")
        yield there[key].start, onto.line_end(there[key].end), ""


# --- reading ------------------------------------------------------------------------------------------------------


def _read(data: bytes) -> _File:
    if len(data) > LARGEST:
        raise NotMerged(f"it has more than {LARGEST} bytes")
    try:
        Text.from_bytes(data)
        text, end = data.decode(), _END.search(data.decode())
        if not (ended := text.endswith(("\r", "\n"))):
            text += end[0] if end else "\n"
        root = composed(text)
        events = yaml.parse(text, Loader=yaml.SafeLoader) if "&" in text or "*" in text else ()
        if any(getattr(event, "anchor", None) is not None for event in events):
            raise NotMerged("it has anchors or aliases")
        if not isinstance(root, MappingNode) or root.flow_style:
            raise NotMerged("it holds no keys, each in a line of its own")
        return _File(text, _entries(root, text), ended)
    except UnreadableText as error:
        raise NotMerged(f"line {error.line}: {error}") from error


def _entries(node: MappingNode, text: str) -> dict[str, _Entry]:
    found = dict[str, _Entry]()
    for key, value in node.value:
        start = key.start_mark.index
        if not isinstance(key, ScalarNode) or str(key.value) in found:
            raise NotMerged(f"line {text.count(chr(10), 0, start) + 1}: a key stands there twice, or is no word")
        line = text.rfind("\n", 0, start) + 1
        inner = _entries(value, text) if isinstance(value, MappingNode) and not value.flow_style else None
        found[str(key.value)] = _Entry(line, key.end_mark.index, _end(value), inner)
    return found


def _end(node: Node) -> int:
    """Where a value ends; a block's own mark stands behind the comments that follow it."""
    if isinstance(node, MappingNode | SequenceNode) and node.value and not node.flow_style:
        last = node.value[-1]
        return _end(last[1] if isinstance(node, MappingNode) else last)
    return node.end_mark.index
