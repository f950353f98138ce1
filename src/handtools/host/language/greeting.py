"""Greeting: what a server is told about us when it starts."""

from pathlib import Path
from typing import Any

from handtools.host.language.servers import Server

_KINDS = {"valueSet": list(range(1, 27))}
_ACTIONS = [
    "",
    "quickfix",
    "refactor",
    "refactor.rewrite",
    "source",
    "source.organizeImports",
    "source.fixAll",
]
_DOCUMENT: dict[str, Any] = {
    "synchronization": {"didSave": True},
    "publishDiagnostics": {"versionSupport": True},
    "diagnostic": {"dynamicRegistration": True, "relatedDocumentSupport": False},
    "definition": {},
    "references": {},
    "implementation": {},
    "hover": {"contentFormat": ["plaintext", "markdown"]},
    "documentSymbol": {"hierarchicalDocumentSymbolSupport": True, "symbolKind": _KINDS},
    "callHierarchy": {},
    "rename": {"prepareSupport": True},
    "codeAction": {
        "codeActionLiteralSupport": {"codeActionKind": {"valueSet": _ACTIONS}},
        "resolveSupport": {"properties": ["edit"]},
        "dataSupport": True,
        "isPreferredSupport": True,
    },
}
_WORKSPACE: dict[str, Any] = {
    "configuration": True,
    "workspaceFolders": True,
    "didChangeWatchedFiles": {"dynamicRegistration": True},
    "didChangeConfiguration": {},
    "symbol": {"symbolKind": _KINDS},
    "applyEdit": True,
    "workspaceEdit": {"documentChanges": True, "resourceOperations": ["create", "rename", "delete"]},
    "diagnostics": {"refreshSupport": True},
    "executeCommand": {},
}


def greeting(server: Server, root: str, folder: str) -> dict[str, Any]:
    """The parameters of `initialize`; `folder` is where the server's own packages are."""
    uri = Path(root).as_uri()
    return {
        # Not ours: a sandbox has no such process, and a server that misses it goes. A supervisor ends it with us.
        "processId": None,
        "clientInfo": {"name": "handtools"},
        "rootUri": uri,
        "rootPath": root,
        "workspaceFolders": [{"uri": uri, "name": Path(root).name}],
        "initializationOptions": _options(server, folder),
        "capabilities": {
            "general": {"positionEncodings": ["utf-16"]},
            "textDocument": _DOCUMENT,
            "workspace": _WORKSPACE,
            "window": {"workDoneProgress": True},
            "experimental": {"serverStatusNotification": True},
        },
    }


def _options(server: Server, folder: str) -> dict[str, Any]:
    options = dict(server.options)
    if server.proof == "tsserver" and folder:
        # Beside the server, for projects that bring no TypeScript, or one without a tsserver.
        own = Path(folder, "typescript", "lib", "tsserver.js")
        if own.is_file():
            options["tsserver"] = {**options.get("tsserver", {}), "fallbackPath": str(own)}
    return options
