"""The introduction: what this server says of itself, and of its tools, before anything else is loaded."""

import json
import sys
from pathlib import Path
from typing import Any

from handtools import __version__

NAME = "handtools"
IDENTITY = {"name": NAME, "version": __version__, "title": NAME}
OFFERED = ("tools", "resources", "prompts")
INSTRUCTIONS = """\
Tools for working on code in one folder. Paths are relative to that folder; nothing outside it can be reached.
Use these for files and commands, even if the client has tools of its own for that: only what is done with these is
confined, recorded and can be undone.
Every call is judged by a policy and recorded: `undo` takes back a call, a turn or the last change of a path.
A long output is cut and kept whole: `read` its `output:` path by range. A call that waits for approval has changed
nothing yet."""

CODING = Path(__file__).with_name("coding.json")
"""The answer to `tools/list` for the coding tools, on a machine that runs commands.

Making it takes pydantic and every tool, which is most of the time until a client has its first answer. So it is
written down; `just docs` writes it anew, and a test holds it against the tools.
"""


def written() -> dict[str, Any] | None:
    """What was written down; None where the tools must say it themselves."""
    if not sys.platform.startswith("linux"):
        return None
    found: dict[str, Any] = json.loads(CODING.read_bytes())
    return found
