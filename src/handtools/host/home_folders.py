"""The user's own folders: home, config, and the state that all workspaces share."""

import os
from pathlib import Path

from handtools.core.errors import HostError

STATE_VARIABLE = "HANDTOOLS_STATE"


def user_home() -> Path | None:
    """The user's home folder; None where neither HOME nor the system names one, as in some containers."""
    given = os.path.expanduser("~") if os.environ.get("HOME", "~") else ""
    return Path(given) if os.path.isabs(given) else None


def required_home(purpose: str) -> Path:
    """The user's home folder; raises `HostError`, which names `purpose`, when there is none."""
    found = user_home()
    if found is None:
        raise HostError(f"There is no home folder, and so no {purpose}. Set HOME to a folder.")
    return found


def config_home() -> Path | None:
    """The user's config folder: `$XDG_CONFIG_HOME`, else `~/.config`; None without a home."""
    return _absolute_variable("XDG_CONFIG_HOME") or ((found := user_home()) and found / ".config")


def state_home() -> Path | None:
    """The user's state folder: `$XDG_STATE_HOME`, else `~/.local/state`; None without a home."""
    return _absolute_variable("XDG_STATE_HOME") or ((found := user_home()) and found / ".local" / "state")


def _absolute_variable(variable: str) -> Path | None:
    # The standard has relative values ignored.
    given = os.environ.get(variable, "")
    return Path(given) if os.path.isabs(given) else None


def state_root() -> Path:
    """The folder that contains the state of all workspaces and the state that belongs to none."""
    override = os.environ.get(STATE_VARIABLE)
    if override:
        return Path(os.path.realpath(override))
    place = state_home()
    if place is None:
        raise HostError(
            f"There is no home folder, and so no place for the record; set {STATE_VARIABLE} to a folder."
        )
    return Path(os.path.realpath(place)) / "handtools"
