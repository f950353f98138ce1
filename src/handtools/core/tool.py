"""A tool: a typed function, its prompt, and what it may do."""

import inspect
import re
import sys
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from typing import Any, Generic, TypeVar, get_args, get_type_hints, overload

from pydantic import BaseModel

from handtools.core.callbacks import Need
from handtools.core.context import Context
from handtools.core.effects import EffectKind
from handtools.core.errors import UsageError
from handtools.core.result import Result

P = TypeVar("P", bound=BaseModel)
D = TypeVar("D", bound=BaseModel)

Run = Callable[[Context, P], Awaitable[Result[D]]]
Paths = Callable[[P], Iterable[str]]

WITH = re.compile(r"[ \t]*<!--\s*with:\s*(\w+)\s*-->")
"""Marks a line of a prompt that is told only where that tool is offered too."""
CLAIM = re.compile(r"[ \t]*<!--\s*claim:\s*([\w.]+)\s*-->")


@dataclass(frozen=True)
class Tool(Generic[P, D]):
    """What `@tool` makes of a function. Nothing is registered: a toolbox is given a list."""

    run: Run[P, D]
    name: str
    params: type[P]
    details: type[D]
    effects: frozenset[EffectKind]
    paths: Paths[P]
    """The paths a call is about, for locks: known before it runs."""
    needs: Need | None = None
    """The callback, or the search engine, without which it is not offered."""
    vendor_type: str = ""
    """The type under which a vendor's API has this tool built in; a request names that instead of a schema."""

    def __call__(self, ctx: Context, params: P) -> Awaitable[Result[D]]:
        return self.run(ctx, params)

    @property
    def reads_only(self) -> bool:
        """Whether it leaves the world as it is: it looks at files, and at pages of the web."""
        return self.effects <= {"read", "visit"}

    @property
    def prompt(self) -> str:
        """What the model is told where no other tool is offered."""
        return self.prompt_beside(())

    def prompt_beside(self, offered: Collection[str]) -> str:
        """What the model is told: limits filled in, marks taken out, no line about a tool it does not have."""
        rows = (
            row for row in self._filled.splitlines() if all(name in offered for name in WITH.findall(row))
        )
        return WITH.sub("", "\n".join(rows)).strip()

    @cached_property
    def _filled(self) -> str:
        module = sys.modules[self.run.__module__]
        filled = re.sub(r"\{([A-Z_]+)\}", lambda m: f"{getattr(module, m[1]):,}", self._prose)
        return CLAIM.sub("", filled)

    @cached_property
    def claims(self) -> frozenset[str]:
        """The promises in the prompt, by the ids that tests carry."""
        return frozenset(CLAIM.findall(self._prose))

    @cached_property
    def _prose(self) -> str:
        """`<module>.md` beside the tool, or its docstring."""
        package, _, stem = self.run.__module__.rpartition(".")
        page = resources.files(package) / f"{stem}.md" if package else None
        # By the function's name: a vendor's tool is offered under another one.
        own = stem == self.run.__name__.removesuffix("_")
        if page is not None and own and page.is_file():
            return page.read_text("utf-8")
        return inspect.getdoc(self.run) or ""


AnyTool = Tool[Any, Any]


@overload
def tool(run: Run[P, D], /) -> Tool[P, D]: ...
@overload
def tool(
    *, effects: Iterable[EffectKind] = ..., paths: Paths[Any] | None = ..., needs: Need | None = ...
) -> Callable[[Run[P, D]], Tool[P, D]]: ...
def tool(
    run: Run[P, D] | None = None,
    /,
    *,
    effects: Iterable[EffectKind] = ("read", "change"),
    paths: Paths[Any] | None = None,
    needs: Need | None = None,
) -> Tool[P, D] | Callable[[Run[P, D]], Tool[P, D]]:
    """Make a tool of an async function; types come from its annotations, its name is the tool's."""

    def make(run: Run[P, D]) -> Tool[P, D]:
        params, details = _annotations(run)
        name = run.__name__.removesuffix("_")
        return Tool(run, name, params, details, frozenset(effects), paths or _path_fields, needs)

    return make if run is None else make(run)


def _annotations(run: Run[P, D]) -> tuple[type[P], type[D]]:
    hints = get_type_hints(run)
    result = hints.pop("return", None)
    hints.pop("ctx", None)
    params = next(iter(hints.values()), None)
    details = next(iter(get_args(result)), None)
    for found, where in ((params, "parameter"), (details, "Result[...]")):
        if not (isinstance(found, type) and issubclass(found, BaseModel)):
            raise UsageError(f"{run.__name__}: annotate the {where} with a pydantic model.")
    return params, details  # type: ignore[return-value]


def _path_fields(params: BaseModel) -> Iterable[str]:
    path = getattr(params, "path", None)
    return [path] if isinstance(path, str) else []
