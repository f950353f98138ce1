"""Hand tools for coding agents: every call is sandboxed, logged and can be undone.

Names are imported on first use, so that importing the package is cheap.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from handtools.configuration import load_configuration
    from handtools.core.approval import Approval, Reply
    from handtools.core.call import Call, CancelToken
    from handtools.core.callbacks import Callbacks
    from handtools.core.changes import Change, ChangeSet, Node
    from handtools.core.context import Context
    from handtools.core.errors import HandtoolsError, HostError, ToolError, UsageError
    from handtools.core.result import Document, Image, Result, Text
    from handtools.core.tool import Tool, tool
    from handtools.runtime.policy import Policy
    from handtools.runtime.policy.rules import Rule
    from handtools.runtime.workspace import Workspace
    from handtools.toolbox import (
        BlockingToolbox,
        Toolbox,
        coding,
        everything,
        local_workspace,
        plugins,
        reading,
    )

__version__ = "0.1.0"

_HOMES = {
    "Approval": "core.approval",
    "BlockingToolbox": "toolbox",
    "Call": "core.call",
    "Callbacks": "core.callbacks",
    "CancelToken": "core.call",
    "Change": "core.changes",
    "ChangeSet": "core.changes",
    "Context": "core.context",
    "Document": "core.result",
    "HandtoolsError": "core.errors",
    "HostError": "core.errors",
    "Image": "core.result",
    "Node": "core.changes",
    "Policy": "runtime.policy",
    "Reply": "core.approval",
    "Result": "core.result",
    "Rule": "runtime.policy.rules",
    "Text": "core.result",
    "Tool": "core.tool",
    "ToolError": "core.errors",
    "Toolbox": "toolbox",
    "UsageError": "core.errors",
    "Workspace": "runtime.workspace",
    "coding": "toolbox",
    "everything": "toolbox",
    "load_configuration": "configuration",
    "local_workspace": "toolbox",
    "plugins": "toolbox",
    "reading": "toolbox",
    "tool": "core.tool",
}

__all__ = [
    "Approval", "BlockingToolbox", "Call", "Callbacks", "CancelToken", "Change", "ChangeSet", "Context",
    "Document", "HandtoolsError", "HostError", "Image", "Node", "Policy", "Reply", "Result", "Rule", "Text",
    "Tool", "ToolError", "Toolbox", "UsageError", "Workspace", "coding", "everything",
    "load_configuration", "local_workspace", "plugins", "reading", "tool",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'handtools' has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(f"handtools.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
