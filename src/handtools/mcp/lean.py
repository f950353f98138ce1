"""Lean imports: the SDK's packages load their parts when they are asked for, and not all of them at once."""

import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

PACKAGES = ("mcp", "mcp.server", "mcp.client")
"""Packages whose `__init__` imports far more than their modules need: clients, web servers, OAuth."""


def load_lean() -> None:
    """Make `import mcp.server.runner` cost what that module needs; to be called before the first import of mcp.

    A name of the package itself, as in `from mcp import Client`, still works: it runs the `__init__` then.
    """
    for name in PACKAGES:
        if name in sys.modules:
            continue
        spec = find_spec(name)
        if spec is None:
            return
        module = module_from_spec(spec)
        module.__class__ = _Unopened
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)


class _Unopened(ModuleType):
    """A package whose `__init__` has not run: a missing name runs it."""

    def __getattr__(self, name: str) -> Any:
        spec = self.__spec__
        if name.startswith("__") or not isinstance(spec, ModuleSpec) or spec.loader is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        self.__class__ = ModuleType  # type: ignore[assignment]
        spec.loader.exec_module(self)
        return getattr(self, name)
