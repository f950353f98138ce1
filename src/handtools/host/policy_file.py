"""The policy file: where a person writes down what agents may do on this machine."""

import os
from pathlib import Path

from handtools.core.errors import UsageError
from handtools.host.home import config_home

OVERRIDE = "HANDTOOLS_POLICY"


def policy_file(root: str | Path, given: str | Path | None = None) -> Path | None:
    """The file that was named, or the user's own if there is one. Never one that tools can reach."""
    named = given or os.environ.get(OVERRIDE) or None
    path = Path(os.path.expanduser(named)) if named else _own()
    if path is None or (named is None and not path.is_file()):
        return None
    real, workspace = Path(os.path.realpath(path)), Path(os.path.realpath(root))
    if real.is_relative_to(workspace):
        raise UsageError(
            f"The policy {path} lies inside the workspace, where agents can change it. Move it out."
        )
    return path


def read_policy_file(path: Path) -> str:
    """What is written in it."""
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise UsageError(f"The policy {path} can't be read: {problem}.") from problem


def _own() -> Path | None:
    settings = config_home()
    return settings and settings / "handtools" / "policy.toml"
