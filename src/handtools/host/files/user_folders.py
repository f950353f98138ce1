"""The user's folders: home, config and state, each workspace's state folder, and configuration files."""

import contextlib
import hashlib
import os
import re
import stat
from pathlib import Path

from handtools.core.errors import HostError, UsageError


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


STATE_VARIABLE = "HANDTOOLS_STATE"
_ODD_NAME_CHARS = re.compile(r"[^A-Za-z0-9._-]+")


def state_folder(root: str | Path) -> Path:
    """The folder for a workspace's journal and other state.

    Created on first use with access for its owner only.
    """
    real = Path(os.path.realpath(root))
    folder = state_root() / workspace_id(real)
    if folder.is_relative_to(real):
        raise HostError(
            f"The record of {real} would lie inside it; set {STATE_VARIABLE} to another folder."
        )
    try:
        folder.mkdir(0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
    except OSError as error:
        reason = error.strerror or str(error)
        raise HostError(
            f"{folder} can't be made: {reason}. Set {STATE_VARIABLE} to another folder."
        ) from error
    return folder


def workspace_id(real: Path) -> str:
    """A readable folder name for a workspace, unique on this machine, made from its real path."""
    name = _ODD_NAME_CHARS.sub("-", real.name).strip("-.")[:40] or "root"
    return f"{name}-{hashlib.sha256(os.fsencode(real)).hexdigest()[:12]}"


def backups_folder(root: str | Path, state: Path) -> Path:
    """The folder for a workspace's backups, on its file system: in the state folder, or beside the workspace."""
    real = Path(os.path.realpath(root))
    device = real.stat().st_dev
    if not state.exists() or state.stat().st_dev == device:
        return state / "vault"
    beside = real.parent
    with contextlib.suppress(OSError):
        found = beside.stat()
        if found.st_dev == device and os.access(beside, os.W_OK) and found.st_uid == os.geteuid():
            return beside / f".handtools-vault-{state.name}"
    return state / "vault"


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


POLICY_VARIABLE = "HANDTOOLS_POLICY"
SETTINGS_VARIABLE = "HANDTOOLS_SETTINGS"
PROJECT_FILE_NAME = ".handtools.toml"
"""Name of a project's own file, in the workspace; agents can change it, so it may only tighten."""


def policy_file(root: str | Path, given: str | Path | None = None) -> Path | None:
    """The path of the policy file: `given`, `$HANDTOOLS_POLICY` or the user's own; None without any.

    Raises `UsageError` for a file inside the workspace, where agents could change it.
    """
    named = given or os.environ.get(POLICY_VARIABLE) or None
    return _outside_file(root, named, user_policy_file(), "policy")


def settings_file(root: str | Path) -> Path | None:
    """The path of the settings file: `$HANDTOOLS_SETTINGS` or the user's own; None without any.

    Raises `UsageError` for a file inside the workspace, where agents could change it.
    """
    own = (folder := config_home()) and folder / "handtools" / "settings.toml"
    return _outside_file(root, os.environ.get(SETTINGS_VARIABLE) or None, own, "settings file")


def user_policy_file() -> Path | None:
    """The path of the user's own policy file, whether it is there or not; None without a home."""
    settings = config_home()
    return settings and settings / "handtools" / "policy.toml"


def project_file(root: str | Path) -> Path | None:
    """The path of the project's own file in a workspace; None when there is none."""
    path = Path(root, PROJECT_FILE_NAME)
    return path if os.path.lexists(path) else None


def read_config_file(path: Path) -> str:
    """Read the text of a policy or settings file; raises `UsageError` when it can't be read."""
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise UsageError(f"{path} can't be read: {problem}.") from problem


def read_project_file(path: Path) -> str:
    """Read the text of a project's own file, which anyone may have put there: a small, regular file, no link.

    Raises `UsageError` for anything else.
    """
    from handtools.host.files.small_text_reader import SMALL_FILE_BYTES, read_small_text

    try:
        facts = path.lstat()
    except OSError as problem:
        raise UsageError(f"{path} can't be read: {problem.strerror}.") from problem
    text = read_small_text(path)
    if not stat.S_ISREG(facts.st_mode) or (not text and facts.st_size):
        raise UsageError(f"{path} is no plain file of at most {SMALL_FILE_BYTES >> 10} kB.")
    return text


def _outside_file(root: str | Path, named: str | Path | None, own: Path | None, what: str) -> Path | None:
    path = Path(os.path.expanduser(named)) if named else own
    if path is None or (named is None and not path.is_file()):
        return None
    real, workspace = Path(os.path.realpath(path)), Path(os.path.realpath(root))
    if real.is_relative_to(workspace):
        raise UsageError(
            f"The {what} {path} lies inside the workspace, where agents can change it. Move it out."
        )
    return path
