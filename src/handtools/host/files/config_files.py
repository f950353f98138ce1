"""Find and read the configuration files for a workspace: the user's and the project's."""

import os
import stat
from pathlib import Path

from handtools.core.errors import UsageError
from handtools.host.home_folders import config_home
from handtools.host.workspace_folders import is_in_workspace, workspace_folders
from handtools.text.toml_parsing import MAX_PYPROJECT_BYTES, PYPROJECT_NAME, handtools_table

CONFIG_VARIABLE = "HANDTOOLS_CONFIG"
POLICY_VARIABLE = "HANDTOOLS_POLICY"
PROJECT_FILE_NAME = ".handtools.toml"
"""Name of the project file, in the workspace. Agents can change it, so it may only tighten the rules."""


def config_file(root: str | Path) -> Path | None:
    """Return the path of the configuration file: `$HANDTOOLS_CONFIG` or the user's own; None if there is none.

    Raises `UsageError` for a file inside the workspace, where agents could change it.
    """
    named = os.environ.get(CONFIG_VARIABLE) or None
    return _outside_file(root, named, user_config_file(), "configuration file")


def policy_file(root: str | Path, given: str | Path | None = None) -> Path | None:
    """Return the path of the policy file that replaces the user's policy: `given` or `$HANDTOOLS_POLICY`.

    None if neither is set. Raises `UsageError` for a file inside the workspace, where agents could change it.
    """
    named = given or os.environ.get(POLICY_VARIABLE) or None
    return _outside_file(root, named, None, "policy")


def user_config_file() -> Path | None:
    """Return the path of the user's configuration file, which need not exist; None without a home folder."""
    folder = config_home()
    return folder and folder / "handtools" / "config.toml"


def project_files(root: str | Path) -> list[tuple[str, Path]]:
    """Return the paths of the project files in a workspace, each with the name of its workspace folder."""
    tops = {name: root if not name else folder for name, folder in workspace_folders(root).items()}
    found: list[tuple[str, Path]] = []
    for name, top in tops.items():
        own, pyproject = Path(top, PROJECT_FILE_NAME), Path(top, PYPROJECT_NAME)
        if os.path.lexists(own):
            found.append((name, own))
        if pyproject.is_file() and _has_table(pyproject):
            found.append((name, pyproject))
    return found


def _has_table(pyproject: Path) -> bool:
    """Whether the file has a handtools table; files without one are ignored, even if they are invalid."""
    from handtools.host.files.syscalls import read_small_text

    return bool(handtools_table(read_small_text(pyproject, MAX_PYPROJECT_BYTES)))


def read_config_file(path: Path) -> str:
    """Read the text of a policy or configuration file; raises `UsageError` if it can't be read."""
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise UsageError(f"Can't read {path}: {problem}.") from problem


def read_project_file(path: Path) -> str:
    """Read the text of a project file. It is untrusted, so it must be a small regular file.

    Raises `UsageError` for anything else, such as a symlink.
    """
    from handtools.host.files.syscalls import SMALL_FILE_BYTES, read_small_text

    most = MAX_PYPROJECT_BYTES if path.name == PYPROJECT_NAME else SMALL_FILE_BYTES
    try:
        facts = path.lstat()
    except OSError as problem:
        raise UsageError(f"Can't read {path}: {problem.strerror}.") from problem
    text = read_small_text(path, most)
    if not stat.S_ISREG(facts.st_mode) or (not text and facts.st_size):
        raise UsageError(f"{path} must be a regular file of at most {most >> 10} kB.")
    return text


def _outside_file(root: str | Path, named: str | Path | None, own: Path | None, what: str) -> Path | None:
    path = Path(os.path.expanduser(named)) if named else own
    if path is None or (named is None and not path.is_file()):
        return None
    if is_in_workspace(path, root):
        raise UsageError(
            f"The {what} {path} is inside the workspace, where agents can change it. Move it out."
        )
    return path
