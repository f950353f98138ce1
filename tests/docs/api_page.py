"""The reference page of the Python API: every public name with its signature, its docstring and an example.

`python -m tests.docs.api_page` writes it from the code and from `api_examples`; `test_examples` runs the examples.
"""

import inspect
import re
import typing
from pathlib import Path
from typing import Any

import handtools
from handtools.core.events import EventListener
from tests.docs.api_examples import PARTS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "python-api.md"
HEAD = """# Python API

<!-- Made from the code by `just docs`: change the docstrings, or `tests/docs/api_examples.py`, not this page. -->

Every name that `from handtools import …` gives. The examples run as they stand here, each in a new process
(`tests/docs`). How the parts fit together is in [ARCHITECTURE.md](../../ARCHITECTURE.md).
"""
_MODULE = re.compile(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z_]\w*)")
MAX_DEFAULT_CHARS = 40
_SHORTER = {
    str(typing.get_args(EventListener)[0][0]): "Event",
    "Callable[[Event], None]": "EventListener",
    '*<class "ToolboxOptions">': "Unpack[ToolboxOptions]",
}
"""How a signature is written by people, where Python writes it out."""


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for part in PARTS:
        parts.append(f"\n## {part.title}\n")
        parts += [described(name) for name in part.names]
        parts.append(f"\n<!-- run -->\n```python\n{part.code.strip()}\n```\n")
        parts.append(f"\n<!-- prints -->\n```text\n{part.prints.strip()}\n```\n")
    return "".join(parts)


def described(name: str) -> str:
    """The section of one public name."""
    found = getattr(handtools, name)
    text = f"\n### `{name}`\n\n```python\n{name}{signature(found)}\n```\n\n{inspect.getdoc(found)}\n"
    members = (
        [line for key, value in vars(found).items() if (line := member(key, value))]
        if isinstance(found, type)
        else []
    )
    return text + ("\n" + "\n".join(members) + "\n" if members else "")


def member(name: str, value: Any) -> str:
    """One line about a method or property; empty for what is not public."""
    if name.startswith("_") or not (text := inspect.getdoc(value) if is_documented(value) else ""):
        return ""
    first = " ".join(text.split("\n\n")[0].split())
    if isinstance(value, staticmethod | classmethod):
        return f"* `{name}{signature(value.__func__, bound=True)}`: {first}"
    return f"* `{name}{signature(value, bound=True) if callable(value) else ''}`: {first}"


def is_documented(value: Any) -> bool:
    return (
        inspect.isfunction(value)
        or isinstance(value, staticmethod | classmethod | property)
        or hasattr(value, "func")
    )


def signature(found: Any, *, bound: bool = False) -> str:
    """A signature without the modules of its types; empty for a protocol, which nobody calls."""
    if getattr(found, "_is_protocol", False):
        return ""
    try:
        seen = inspect.signature(found)
    except ValueError:
        return ""
    parameters = list(seen.parameters.values())[1 if bound else 0 :]
    seen = seen.replace(parameters=[with_short_default(one) for one in parameters])
    text = _MODULE.sub("", str(seen).replace("'", '"'))
    for long, short in _SHORTER.items():
        text = text.replace(_MODULE.sub("", long), short)
    # Quotes around a type that is imported for type checkers only.
    text = re.sub(r'(->|\w:) "([^"]+)"', r"\1 \2", text)
    return text.removesuffix(" -> None")


class LongDefault:
    """Stands for a default that is too long to read, or has no text of its own."""

    def __repr__(self) -> str:
        return "…"


def with_short_default(parameter: inspect.Parameter) -> inspect.Parameter:
    text = repr(parameter.default)
    has_none = parameter.default is inspect.Parameter.empty
    if has_none or (len(text) <= MAX_DEFAULT_CHARS and not text.startswith("<")):
        return parameter
    return parameter.replace(default=LongDefault())


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
