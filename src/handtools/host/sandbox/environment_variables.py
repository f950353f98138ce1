"""Environment variables of a command: the inherited ones, and values that keep programs from prompting."""

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

INHERITED_VARIABLES = frozenset({
    "HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TMPDIR", "TZ", "USER", "VIRTUAL_ENV",
})  # fmt: skip
"""Variables that a command inherits. Any other may be a secret, but a workspace can allow it."""
CERTIFICATE_VARIABLES = frozenset({
    "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "PIP_CERT", "GIT_SSL_CAINFO",
    "CARGO_HTTP_CAINFO", "DENO_CERT", "NPM_CONFIG_CAFILE", "npm_config_cafile",
})  # fmt: skip
"""Variables that name a file of trusted certificates; behind a company's proxy, installers need it."""
MAX_CERTIFICATE_FILE_BYTES = 4 << 20
NONINTERACTIVE_VARIABLES: Mapping[str, str] = {
    "PAGER": "cat", "GIT_PAGER": "cat", "GH_PAGER": "cat", "MANPAGER": "cat", "SYSTEMD_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "", "SSH_ASKPASS": "", "GCM_INTERACTIVE": "never",
    "EDITOR": "false", "VISUAL": "false", "DEBIAN_FRONTEND": "noninteractive",
    # GIT_EDITOR=true accepts git's prepared message, so `git rebase --continue` doesn't block.
    # Without optional locks, read-only commands such as `git status` don't write the index.
    "GIT_EDITOR": "true", "GIT_OPTIONAL_LOCKS": "0",
    "PIP_NO_INPUT": "1", "PYTHONUNBUFFERED": "1", "TERM": "dumb", "NO_COLOR": "1",
}  # fmt: skip
"""Variables that keep programs from asking questions, starting a pager or using colours."""
BASH_PROGRAM = "/bin/bash" if os.path.exists("/bin/bash") else "bash"
"""The bash to run: /bin/bash if it exists, since a search on PATH could find a project's bash."""
_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"


def command_environment(
    more: Mapping[str, str], passed: frozenset[str], *, terminal: bool, path: Sequence[str] = ()
) -> dict[str, str]:
    """Return a command's complete environment: inherited variables, non-interactive settings and `more`.

    The folders in `path` are put before the ones in `PATH`.
    """
    names = INHERITED_VARIABLES | passed | certificate_files().keys()
    ours = {name: value for name, value in os.environ.items() if name in names or name.startswith("LC_")}
    screen = {"TERM": "xterm"} if terminal else {}
    ours["PATH"] = os.pathsep.join((*path, ours.get("PATH", _DEFAULT_PATH)))
    return {**ours, **NONINTERACTIVE_VARIABLES, **screen, **more}


def certificate_files() -> dict[str, str]:
    """Return the files of trusted certificates that variables name, by variable.

    A file that can't be read, holds no certificate or holds a private key is left out.
    """
    named = {name: os.environ.get(name, "") for name in CERTIFICATE_VARIABLES}
    return {
        name: path for name, path in named.items() if os.path.isabs(path) and _has_only_certificates(path)
    }


def _has_only_certificates(path: str) -> bool:
    try:
        found = os.stat(path)
        return _read_only_certificates(path, found.st_size, found.st_mtime_ns)
    except OSError:
        return False


@lru_cache(maxsize=32)
def _read_only_certificates(path: str, size: int, _modified: int) -> bool:
    if size > MAX_CERTIFICATE_FILE_BYTES:
        return False
    data = Path(path).read_bytes()
    return b"-----BEGIN CERTIFICATE-----" in data and b"PRIVATE KEY" not in data
