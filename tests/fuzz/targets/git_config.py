"""Git's configuration files: read as git reads them, or refused where git refuses."""

import os
import subprocess
import tempfile
import zlib

from handtools.text.git_config import BadGitConfig, GitConfigKey, parse_git_config

SEEDS = [
    b'[core]\n\tbare = false\n\thooksPath = "a # b" ; c\n[remote "Ori\\"gin"]\nurl = x \\\n y\n',
    b'[a.B]k-1\n[alias]\nx = !sh\n#c\n;d\n[x ""]\nv=\\t\\b\\n\\\\\n',
]
WORDS = [
    "[core]",
    '[remote "origin"]',
    "[a.b]",
    "\\\n",
    "\\n",
    '\\"',
    "\r\n",
    "\ufeff",
    " = ",
    "#",
    ";",
    '"',
    "include",
]
PARSERS = ["handtools.text.git_config"]
FOUND = {
    "a character whose bytes a quote parts was read as two halves": b'[a]k = "\xdd"\xb6\n',
}
ONE_IN = 8
QUIET = os.environ | {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}


def fuzz(data):
    try:
        ours = parse_git_config(data)
    except BadGitConfig:
        ours = None
    for key in ours or ():
        GitConfigKey.of(key)
    if zlib.crc32(data) % ONE_IN == 0:
        # A NUL ends a line for some readers and not for others: we refuse it, git does not.
        theirs = None if b"\0" in data else read_by_git(data)
        assert with_plain_blanks(ours) == with_plain_blanks(theirs)


def with_plain_blanks(found):
    """Git 2.39 makes a space of a tab inside of a value, where we keep it."""
    if found is None:
        return None
    blanks = str.maketrans("\t\r\v\f", "    ")
    return {
        key: tuple(value and value.translate(blanks) for value in values) for key, values in found.items()
    }


def read_by_git(data):
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        done = subprocess.run(
            ["git", "config", "--file", file.name, "--no-includes", "--list", "-z"],
            env=QUIET, capture_output=True, check=False,
        )  # fmt: skip
    if done.returncode:
        return None
    found = {}
    for row in done.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]:
        key, sign, value = row.partition("\n")
        found[key] = (*found.get(key, ()), value if sign else None)
    return found
