"""The table `[tool.handtools]` of a pyproject.toml, which tightens a policy as a file `.handtools.toml` does.

Who reads it and who protects it must mean the same table, however its keys are written: both ask here.
"""

import json
import re

PYPROJECT_NAME = "pyproject.toml"
PYPROJECT_TABLE = ("tool", "handtools")
"""Names of the table."""
MAX_PYPROJECT_BYTES = 1 << 20
"""A larger file is not read, and has no table for us."""
BROKEN_TABLE = "broken"
"""What stands for the table of a file that is not TOML and seems to have one."""
_NAMED = re.compile(r"handtools|\\[uU]")
"""Without the name, or an escape that may hide it, there is no table and nothing to parse."""
_SEEMS_TO_HAVE_TABLE = re.compile(
    r"""^\s*\[[^\n]*handtools | handtools["']?\s*(?:\.|=(?!=)) | \\[uU]""", re.MULTILINE | re.VERBOSE
)


def handtools_table(text: str) -> str:
    """Return the table of a pyproject.toml as JSON in a fixed order; empty without the table.

    A file that is not TOML counts as one without the table, unless it seems to have one: the name is in a header
    or before a dot or a single equals sign.
    """
    if not _NAMED.search(text):
        return ""
    from handtools.text.toml_text import parse_toml

    try:
        found = parse_toml(text)
        for name in PYPROJECT_TABLE:
            if not isinstance(found, dict) or name not in found:
                return ""
            found = found[name]
        return json.dumps(found, sort_keys=True, default=repr)
    except (ValueError, RecursionError):
        return BROKEN_TABLE if _SEEMS_TO_HAVE_TABLE.search(text) else ""
