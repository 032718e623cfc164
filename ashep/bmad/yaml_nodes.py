"""YAML as nodes that know where they stand. Nothing is built of them, so that aliases of aliases cost nothing."""

from bisect import bisect_right
from collections.abc import Iterator

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from ashep.bmad.text import UnreadableText


class NoYaml(UnreadableText):
    """The text is no YAML that can be read."""


class NodeLines:
    """Where nodes of a text stand; YAML's own lines also end where no editor ends them."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(place + 1 for place, char in enumerate(text) if char == "\n")]

    def locate(self, index: int) -> tuple[int, int]:
        """Give line, from 1, and column, from 0."""
        line = bisect_right(self._starts, index)
        return line, index - self._starts[line - 1]


def composed(text: str) -> Node | None:
    """Read YAML. Raises `NoYaml`."""
    try:
        return yaml.compose(text, Loader=yaml.SafeLoader)  # the loader of C dies of what is nested deeply
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise NoYaml(error.problem or "it is broken", NodeLines(text).locate(mark.index)[0] if mark else 1) from error
    except yaml.YAMLError as error:
        raise NoYaml(str(error).splitlines()[0]) from error
    except RecursionError as error:
        raise NoYaml("it is nested too deeply") from error


def pairs(node: Node | None) -> dict[str, Node]:
    """Give what a mapping holds; nothing where it is none."""
    return {str(key.value): value for key, value in node.value} if isinstance(node, MappingNode) else {}


def scalar(node: Node | None) -> str | None:
    """Give a text or number as it is written; None where there is none."""
    return str(node.value) if isinstance(node, ScalarNode) and node.value else None


def texts(node: Node | None) -> tuple[str, ...]:
    """Give the entries of a list: texts, and of mappings what they say."""
    listed = node.value if isinstance(node, SequenceNode) else [node] if scalar(node) else []
    return tuple(said for one in listed if (said := scalar(one) or "; ".join(_scalars(one))))


def _scalars(node: Node | None) -> Iterator[str]:
    yield from (f"{key}: {said}" for key, value in pairs(node).items() if (said := scalar(value)))
