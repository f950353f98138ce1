"""A workspace: one machine's files with their locks, record and outputs. What a toolbox is built around."""

from dataclasses import dataclass, field, replace

from handtools.core.formatting import Formatters
from handtools.core.language import HostLanguage
from handtools.core.ports import HostCommands, HostFiles, HostSearch, Locks, Media, Store, Syntax
from handtools.core.skills import HostSkills
from handtools.core.tool import AnyTool
from handtools.core.web import HostWeb
from handtools.runtime.journal import Journal
from handtools.runtime.outputs import OwnedOutputs
from handtools.runtime.recent import RecentFiles
from handtools.runtime.rules import Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """Parts of the machine, put together by the toolbox."""

    files: HostFiles
    locks: Locks
    journal: Journal
    outputs: Store
    kept: HostSearch
    """Searches the outputs, by their names."""
    search: HostSearch
    syntax: Syntax
    media: Media
    skills: HostSkills
    commands: HostCommands
    language: HostLanguage
    formatters: Formatters
    web: HostWeb
    rules: tuple[Rule, ...] = ()
    """What holds here under every policy."""
    recent: RecentFiles = field(default_factory=RecentFiles)

    def owned_by(self, owner: str) -> "Workspace":
        """The same workspace for one of its owners: of what the others' calls left, nothing is there."""
        journal = self.journal.owned_by(owner)
        return replace(self, journal=journal, outputs=OwnedOutputs(self.outputs, journal.calls))

    def serves(self, tool: AnyTool) -> bool:
        """Whether the machine has what the tool needs."""
        if "run" in tool.effects and self.commands.missing:
            return False
        if "visit" in tool.effects and self.web.missing:
            return False
        return tool.needs != "engine" or self.web.engine is not None
