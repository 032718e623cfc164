"""Methods of a port that a class only hands on: by their first argument, a session or a branch, it knows to whom."""

import inspect
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

_Parameters = ParamSpec("_Parameters")
_Answer = TypeVar("_Answer", bound=Awaitable[Any])
_Method = Callable[Concatenate[Any, _Parameters], _Answer]


def forward(method: _Method[_Parameters, _Answer]) -> _Method[_Parameters, _Answer]:
    """Return the method that calls the one of this name of another object: the object's class has `route(key, call)`,
    which chooses that one by the first argument, and gives `call` the two.
    """
    signature = inspect.signature(method)

    @wraps(method)
    async def forwarded(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)  # by name or by place, as the port's method takes them
        owner, key, *rest = bound.args

        def call(target: object, key: str) -> Any:
            return getattr(target, method.__name__)(key, *rest, **bound.kwargs)

        return await owner.route(key, call)

    return forwarded  # pyright: ignore[reportReturnType] - a method of the same arguments
