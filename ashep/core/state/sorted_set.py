"""A sorted set that is a value: the World needs to know what is due first without looking at everything."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import chain
from operator import itemgetter
from typing import Generic, TypeVar, cast

Item = TypeVar("Item", bound=tuple[object, ...])

MOST = 256
"""Items that a chunk may hold: a change copies one chunk and the list of chunks, not everything."""

_first = itemgetter(0)


class Ordered(Generic[Item]):
    """A sorted set of tuples; a change makes another one, and costs as much for ten thousand items as for ten."""

    __slots__ = ("_chunks",)

    def __init__(self, chunks: tuple[tuple[Item, ...], ...] = ()) -> None:
        """Without arguments: an empty one. `chunks` are sorted, in order, and none is empty."""
        self._chunks = chunks

    def insert(self, item: Item) -> "Ordered[Item]":
        """This one with an item that it does not hold."""
        chunks = self._chunks
        if not chunks:
            return Ordered(((item,),))
        at = self._chunk_of(item)
        chunk = chunks[at]
        place = bisect_left(chunk, item)
        grown = (*chunk[:place], item, *chunk[place:])
        parts = (grown,) if len(grown) <= MOST else (grown[: MOST // 2], grown[MOST // 2 :])
        return Ordered((*chunks[:at], *parts, *chunks[at + 1 :]))

    def remove(self, item: Item) -> "Ordered[Item]":
        """This one without an item; KeyError where it does not hold it."""
        chunks = self._chunks
        at = self._chunk_of(item)
        chunk = chunks[at] if chunks else ()
        place = bisect_left(chunk, item)
        if place == len(chunk) or chunk[place] != item:
            raise KeyError(item)
        shrunk = (*chunk[:place], *chunk[place + 1 :])
        parts = (shrunk,) if shrunk else ()
        return Ordered((*chunks[:at], *parts, *chunks[at + 1 :]))

    def _chunk_of(self, item: Item) -> int:
        return max(bisect_right(self._chunks, item, key=_first) - 1, 0)

    def __iter__(self) -> Iterator[Item]:
        return chain.from_iterable(self._chunks)

    def __len__(self) -> int:
        return sum(map(len, self._chunks))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ordered) and tuple(self) == tuple(cast("Ordered[Item]", other))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"Ordered({list(self)})"
