"""Grants: which token opens which workspace, with which tools, under which policy."""

import hashlib
import hmac
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_args

from handtools.core.errors import UsageError
from handtools.mcp.desk import Asks

TOKEN_CHARS = 24
"""Shorter tokens can be guessed, and are refused when the file is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """One token: only its digest is kept, so that neither memory nor a log shows it."""

    name: str
    sha256: str
    workspace: Path
    preset: str = "coding"
    policy: Path | None = None
    """A policy file; without one, the user's own."""
    unattended: str | None = None
    asks: Asks = "client"
    block: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()


class Grants:
    """The tokens of one server."""

    def __init__(self, grants: list[Grant]) -> None:
        if not grants:
            raise UsageError("A server needs at least one token.")
        for word in ("name", "sha256"):
            if len({getattr(grant, word) for grant in grants}) != len(grants):
                raise UsageError(f"Two tokens have the same {word}.")
        self.all = tuple(grants)

    def find(self, token: str) -> Grant | None:
        """Whose token it is. All are compared, in the same time, whichever it is."""
        given = digest_of(token)
        found = [grant for grant in self.all if hmac.compare_digest(grant.sha256, given)]
        return found[0] if found else None


def digest_of(token: str) -> str:
    """The name under which a token is known."""
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def read_grants(path: Path) -> Grants:
    """The grants of a file: `[[token]]` tables with a name, a sha256 or token_file, and a workspace."""
    try:
        written = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise UsageError(f"{path} can't be read: {problem}.") from problem
    tables = written.get("token")
    if not isinstance(tables, list):
        raise UsageError(f"{path} has no [[token]] table.")
    return Grants([_grant(table, path.parent) for table in tables])


def _grant(table: dict[str, Any], beside: Path) -> Grant:
    known = {field.name for field in fields(Grant)} | {"token_file"}
    name = str(table.get("name", ""))
    where = f"The token {name!r}"
    if unknown := sorted(set(table) - known):
        told = f"Known: {', '.join(sorted(known))}."
        raise UsageError(f"{where} says {', '.join(unknown)}, which means nothing. {told}")
    if not name or "workspace" not in table:
        raise UsageError("Every token needs a name and a workspace.")
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in table.items()
    }
    if token_file := values.pop("token_file", None):
        values["sha256"] = digest_of(read_token(beside / str(token_file)))
    if len(str(values.get("sha256", ""))) != 64:
        raise UsageError(f"{where} needs a sha256 of 64 hexadecimal digits, or a token_file.")
    if values.get("asks", "client") not in get_args(Asks):
        raise UsageError(f"{where}: asks is one of {', '.join(get_args(Asks))}.")
    for named in ("workspace", "policy"):
        if named in values:
            values[named] = beside / str(values[named])
    values["sha256"] = str(values["sha256"]).lower()
    return Grant(**values)


def read_token(path: Path) -> str:
    """A token from a file of its own."""
    try:
        token = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as problem:
        raise UsageError(f"{path} can't be read: {problem}.") from problem
    return strong(token, f"The token in {path}")


def strong(token: str, where: str) -> str:
    """The token, if it can't be guessed."""
    if len(token) < TOKEN_CHARS:
        raise UsageError(f"{where} is too short: use {TOKEN_CHARS} random characters or more.")
    return token
