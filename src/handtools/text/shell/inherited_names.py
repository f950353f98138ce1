"""Names that earlier commands of a shell session defined, and whether a script uses them.

They are functions, aliases, and variables that control which programs run or that contain secrets.
"""

import re
from collections.abc import Iterable

from handtools.text.shell.script_commands import Script

_FUNCTION = re.compile(r"^(?:function )?(\S+) \(\)", re.MULTILINE)
_ALIAS = re.compile(r"^alias (?:-- )?([^=\s]+)=", re.MULTILINE)
_STEERING = re.compile(
    r"PATH|CDPATH|IFS|ENV|BASH_\w*|PS4|PROMPT_COMMAND|SHELL\w*|GLOBIGNORE|HOME|TMPDIR|EDITOR|VISUAL|BROWSER"
    r"|LD_\w+|DYLD_\w+|GCONV_PATH|LOCPATH|PYTHON\w*|PERL\w*|RUBY\w*|NODE_\w+|npm_\w+|NPM_\w+|PIP_\w+|UV_\w+"
    r"|GIT_\w+|SSH_\w+|JAVA_\w+|_JAVA_OPTIONS|JDK_\w+|MAVEN_\w+|GRADLE_\w+|CARGO\w*|RUST\w*|GO[A-Z]+|CC|CXX|AR"
    r"|MAKE\w*|LESS\w*|PAGER|MANPAGER|XDG_\w+|\w*FLAGS|\w*_OPTIONS|\w*_OPTS|\w*PRELOAD\w*",
)
_SECRET = re.compile(r"TOKEN|KEY|SECRET|PASS|CREDENTIAL|AUTH", re.IGNORECASE)


def function_and_alias_names(functions: str, aliases: str) -> frozenset[str]:
    """Extract the names of functions and aliases from the output of bash's `declare -f` and `alias`."""
    return frozenset((*_FUNCTION.findall(functions), *_ALIAS.findall(aliases)))


def script_runs_any_named_command(script: Script, names: frozenset[str]) -> bool:
    """Whether a script runs one of these names as a command; if it is opaque, whether there are any."""
    if not script.parts:
        return bool(names)
    return any(words[0] in names for words in script.parts)


def steering_variables(exports: Iterable[str]) -> list[str]:
    """Return those environment variables that control which programs run or load, such as `PATH`."""
    return sorted(name for name in exports if _STEERING.fullmatch(name))


def is_secret_name(name: str) -> bool:
    """Whether a variable's name suggests a secret value, such as a token, key or password."""
    return _SECRET.search(name) is not None
