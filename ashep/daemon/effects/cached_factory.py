"""Cache of a part that is made of settings: made at its first use, and again once they are others."""

from collections.abc import Callable
from typing import Generic, TypeVar

from ashep.errors import AshepError

_Settings = TypeVar("_Settings")
_Part = TypeVar("_Part")


class CachedFactory(Generic[_Settings, _Part]):
    """A part as the settings say."""

    def __init__(
        self,
        make: Callable[[_Settings], _Part] | None,
        lacking: str = "",
        by: Callable[[_Settings], object] = lambda settings: settings,
    ) -> None:
        """`make` None: nothing can, and `lacking` says what to do. `by`: what of the settings makes it another part."""
        self._make, self._lacking, self._by = make, lacking, by
        self._known: tuple[object, _Part] | None = None

    @property
    def possible(self) -> bool:
        """Whether anything can make it."""
        return self._make is not None

    def is_of(self, settings: _Settings) -> bool:
        """Whether it is made, of these settings."""
        return self._known is not None and self._known[0] == self._by(settings)

    def get_part(self, settings: _Settings) -> _Part:
        """Give the part, made if need be. Raises `AshepError` where nothing can, and what making it raises."""
        if self._make is None:
            raise AshepError(self._lacking)
        if self._known is None or self._known[0] != self._by(settings):
            self._known = self._by(settings), self._make(settings)
        return self._known[1]

    def forget(self) -> _Part | None:
        """Let go of it, and give it to whoever is to close it; None: there is none."""
        known, self._known = self._known, None
        return None if known is None else known[1]
