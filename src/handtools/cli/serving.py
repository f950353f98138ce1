"""Starting the MCP server on stdio: what `handtools mcp` does, without the command line around it."""

import logging
import os
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from handtools.core.errors import HandtoolsError
from handtools.host.policy_file import policy_file
from handtools.mcp.introduction import written
from handtools.mcp.stdio import serve_opening

if TYPE_CHECKING:
    from handtools.toolbox import Toolbox


def serve_folder(
    folder: str,
    *,
    preset: str = "coding",
    policy: Path | None = None,
    unattended: str | None = None,
    block: Sequence[str] = (),
    runner: str = "",
    sampling: bool = False,
) -> None:
    """Serve the tools of a folder until the client leaves; what goes wrong is said on stderr."""
    # The protocol owns stdout; clients keep what comes on stderr as the server's log.
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s"
    )
    root = Path(os.path.expanduser(folder)).absolute()
    if find_spec("mcp") is None:
        sys.exit("handtools: the `mcp` package is missing: pip install 'handtools-slim[mcp]'")
    if not root.is_dir():
        sys.exit(f"handtools: {root} is no folder. Name one that is there: handtools mcp FOLDER")

    def opening() -> "Toolbox":
        from handtools.mcp.presets import opened

        return opened(
            root,
            preset=preset,
            policy=policy,
            unattended=unattended,
            block=block,
            runner=runner,
            sampling=sampling,
        )

    try:
        usual = preset == "coding" and not block and policy_file(root, policy) is None
        serve_opening(opening, root, written() if usual else None)
    except HandtoolsError as problem:
        sys.exit(_told(problem))
    except ExceptionGroup as group:
        # What fails after the greeting fails beside the tasks that talk to the client.
        problems, others = group.split(HandtoolsError)
        if problems is None or others is not None:
            raise
        sys.exit(_told(problems))
    except KeyboardInterrupt:
        sys.exit(130)


def _told(problem: BaseException) -> str:
    while isinstance(problem, BaseExceptionGroup):
        problem = problem.exceptions[0]
    return f"handtools: {problem} `handtools doctor` looks at this machine."
