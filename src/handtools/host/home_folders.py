"""The user's own folders: home, config, and the state that all workspaces share."""

import os
from pathlib import Path

from handtools.core.errors import HostError

STATE_VARIABLE = "HANDTOOLS_STATE"


def user_home() -> Path | None:
    """Return the user's home folder; None if neither HOME nor the system has one, as in some containers."""
    given = os.path.expanduser("~") if os.environ.get("HOME", "~") else ""
    return Path(given) if os.path.isabs(given) else None


def required_home(purpose: str) -> Path:
    """Return the user's home folder; raises a `HostError` that mentions `purpose` if there is none."""
    found = user_home()
    if found is None:
        raise HostError(f"No home folder found, so there is no {purpose}. Set HOME to a folder.")
    return found


def config_home() -> Path | None:
    """Return the user's config folder: `$XDG_CONFIG_HOME` or `~/.config`; None without a home folder."""
    return _absolute_variable("XDG_CONFIG_HOME") or ((found := user_home()) and found / ".config")


def state_home() -> Path | None:
    """Return the user's state folder: `$XDG_STATE_HOME` or `~/.local/state`; None without a home folder."""
    return _absolute_variable("XDG_STATE_HOME") or ((found := user_home()) and found / ".local" / "state")


def _absolute_variable(variable: str) -> Path | None:
    # The XDG specification says to ignore relative values.
    given = os.environ.get(variable, "")
    return Path(given) if os.path.isabs(given) else None


def state_root() -> Path:
    """Return the folder with the state of all workspaces and the state that belongs to no workspace."""
    override = os.environ.get(STATE_VARIABLE)
    if override:
        return Path(os.path.realpath(override))
    place = state_home()
    if place is None:
        raise HostError(
            f"No home folder found, so there is no place for the log. Set {STATE_VARIABLE} to a folder."
        )
    return Path(os.path.realpath(place)) / "handtools"
