"""The toolbox for people who don't write async: the same methods, generated, each waiting for its answer."""

from collections.abc import Callable, Coroutine
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

import anyio

from handtools.toolbox import Toolbox

P = ParamSpec("P")
R = TypeVar("R")


def _waiting(
    method: Callable[Concatenate[Toolbox, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate["BlockingToolbox", P], R]:
    @wraps(method)
    def wait(self: "BlockingToolbox", /, *args: P.args, **kwargs: P.kwargs) -> R:
        return anyio.run(partial(method, self.toolbox, *args, **kwargs))

    return wait


class BlockingToolbox:
    """Wraps a toolbox; one call at a time per thread."""

    def __init__(self, toolbox: Toolbox) -> None:
        self.toolbox = toolbox

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    call = _waiting(Toolbox.call)
    resume = _waiting(Toolbox.resume)
    waiting = _waiting(Toolbox.waiting)
    why = _waiting(Toolbox.why)
    close = _waiting(Toolbox.aclose)
