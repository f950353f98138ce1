"""The table `[tool.handtools]` of a pyproject.toml, which tightens a policy like a `.handtools.toml` file.

The code that reads the table and the code that protects it both use this module, so that they always agree
on which table it is, however its keys are written.
"""

import json
import re

PYPROJECT_NAME = "pyproject.toml"
PYPROJECT_TABLE = ("tool", "handtools")
"""The path of the table in the file."""
MAX_PYPROJECT_BYTES = 1 << 20
"""A larger file is not read, and counts as having no table."""
BROKEN_TABLE = "broken"
"""The value for a file that is not valid TOML but seems to have the table."""
_NAMED = re.compile(r"handtools|\\[uU]")
"""Text without the name, or an escape that may hide it, has no table and is not parsed."""
_SEEMS_TO_HAVE_TABLE = re.compile(
    r"""^\s*\[[^\n]*handtools | handtools["']?\s*(?:\.|=(?!=)) | \\[uU]""", re.MULTILINE | re.VERBOSE
)


def handtools_table(text: str) -> str:
    """Return the table of a pyproject.toml as JSON with sorted keys; empty if there is no table.

    A file that is not valid TOML counts as having no table, unless the name is in a header or before a dot
    or a single equals sign.
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
