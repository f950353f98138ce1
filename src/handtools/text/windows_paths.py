"""Path arguments of a model on Windows, made relative to the workspace root or refused, like `paths`.

Both slashes are separators, case is ignored, and some names are devices or streams in any folder. Follows
the documented rules; not tested on Windows.
"""

import re

from handtools.text.paths import BadPath, workspace_relative

_ROOT = re.compile(r"(?P<drive>[A-Za-z]:)(?=/|\Z)|//(?P<server>[^/?.][^/]*)/(?P<share>[^/]+)(?=/|\Z)")
_URL_DRIVE = re.compile(r"file:(?://(?:localhost)?)?/(?=[A-Za-z]:[\\/])", re.IGNORECASE)
_DEVICE = re.compile(
    r"(?:CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(?:COM|LPT)[0-9¹²³])(?:\s*\..*)?\Z", re.IGNORECASE
)
_FORBIDDEN = re.compile(r'[<>:"|?*]')


def windows_workspace_relative(path: str, root: str) -> str:
    """Normalize a path or `file:` URL to one with forward slashes relative to `root`; raises `BadPath`.

    `root` is an absolute path with a drive or a share.
    """
    plain = _URL_DRIVE.sub("", path).replace("\\", "/")
    top, above = _split_root(root.replace("\\", "/"))
    if top is None:
        raise ValueError(f"the root {root!r} is not absolute")
    start, names = _split_root(plain)
    if start is None and plain.startswith("//"):
        raise BadPath(path, "is a Windows device path")
    if start is None and plain.startswith("/"):
        raise BadPath(path, "starts at the root of an unnamed drive")
    if start is not None:
        if ".." in names:
            raise BadPath(path, "contains `..`, which may not lead where it seems to", "Write it without.")
        if start.lower() != top.lower() or _lower(names[: len(above)]) != _lower(above):
            raise BadPath(path, "is outside the workspace")
        names = names[len(above) :]
    for name in names:
        _refuse_name(path, name)
    return workspace_relative("/".join(names), "/")


def _split_root(path: str) -> tuple[str | None, list[str]]:
    """Split a path into its drive or share (None if it has none) and its names."""
    match = _ROOT.match(path)
    rest = path[match.end() :] if match else path
    return match[0] if match else None, [name for name in rest.split("/") if name not in {"", "."}]


def _lower(names: list[str]) -> list[str]:
    return [name.lower() for name in names]


def _refuse_name(path: str, name: str) -> None:
    """Raise `BadPath` for a name that Windows does not treat as a file with that name."""
    if _DEVICE.match(name):
        raise BadPath(path, f"names the device {name[:20]}", "Use another name.")
    if found := _FORBIDDEN.search(name):
        raise BadPath(
            path, f"contains `{found[0]}`, which Windows does not allow", "Write the name without it."
        )
    if name != ".." and name.endswith((" ", ".")):
        raise BadPath(
            path, "has a name that ends with a space or a dot", "Windows drops these: leave them out."
        )
