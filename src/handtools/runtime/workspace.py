"""A workspace: one machine's files with their locks, record and outputs. What a toolbox is built around."""

from dataclasses import dataclass

from handtools.core.ports import HostFiles, HostSearch, Locks, Media, Store, Syntax
from handtools.runtime.journal import Journal


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """Parts of the machine, put together by the toolbox."""

    files: HostFiles
    locks: Locks
    journal: Journal
    outputs: Store
    search: HostSearch
    syntax: Syntax
    media: Media
