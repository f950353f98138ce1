"""Home: the folder of whoever runs us, where there is one."""

import os
from pathlib import Path

from handtools.core.errors import HostError


def home() -> Path | None:
    """Their folder; None where neither HOME nor the system names one, as in some containers."""
    given = os.path.expanduser("~") if os.environ.get("HOME", "~") else ""
    return Path(given) if os.path.isabs(given) else None


def home_needed(purpose: str) -> Path:
    """Their folder; says what can't be found without it."""
    found = home()
    if found is None:
        raise HostError(f"There is no home folder, and so no {purpose}. Set HOME to a folder.")
    return found


def config_home() -> Path | None:
    """Where their settings are."""
    return _given("XDG_CONFIG_HOME") or ((found := home()) and found / ".config")


def state_home() -> Path | None:
    """Where programs keep what they remember."""
    return _given("XDG_STATE_HOME") or ((found := home()) and found / ".local" / "state")


def _given(variable: str) -> Path | None:
    # The standard has relative values ignored.
    given = os.environ.get(variable, "")
    return Path(given) if os.path.isabs(given) else None
