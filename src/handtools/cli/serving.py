"""Starting the MCP server on stdio: what `handtools mcp` does, without the command line around it."""

import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from handtools.core.errors import HandtoolsError


def serve_folder(
    folder: str, *, preset: str = "coding", unattended: str = "ask", block: Sequence[str] = ()
) -> None:
    """Serve the tools of a folder until the client leaves; what goes wrong is said on stderr."""
    # The protocol owns stdout; clients keep what comes on stderr as the server's log.
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s"
    )
    try:
        from handtools.mcp.presets import opened
        from handtools.mcp.stdio import serve_stdio

        root = Path(folder).expanduser()
        serve_stdio(opened(root, preset=preset, unattended=unattended, block=block), root)
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in {"mcp", "mcp_types"}:
            raise
        sys.exit("handtools: the `mcp` package is missing: pip install 'handtools-slim[mcp]'")
    except HandtoolsError as problem:
        sys.exit(f"handtools: {problem}")
    except KeyboardInterrupt:
        sys.exit(130)
