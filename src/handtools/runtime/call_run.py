"""One run of a call: the `Context` of its tool, with ports that are made on first use."""

import time
from collections.abc import Callable
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from handtools.core.call import Call
from handtools.core.events import Event, Progressed
from handtools.runtime.approval.gate import ApprovalGate
from handtools.runtime.guards.files import OUTPUT_SCHEME, GuardedFiles, GuardedSkills
from handtools.runtime.workspace import Workspace

if TYPE_CHECKING:
    from handtools.core.callbacks import Callbacks
    from handtools.core.commands import Commands
    from handtools.core.language import Language
    from handtools.core.media import Media
    from handtools.core.search import Search
    from handtools.core.skills import Skills
    from handtools.core.syntax import Syntax
    from handtools.core.undo import History
    from handtools.core.web import Web

    port_on_first_use = property  # pyright does not accept a cached property for a property of a protocol
else:
    port_on_first_use = cached_property


class CallRun:
    """Everything that belongs to one run of a call: gate, ports, start time and, in `files`, its changes.

    What only some calls need (undo, search, the web) is imported on first use.
    """

    def __init__(
        self,
        gate: ApprovalGate,
        workspace: Workspace,
        *,
        callbacks: "Callbacks",
        clock: Callable[[], datetime],
    ) -> None:
        self.call: Call = gate.call
        self.workspace = workspace
        self.gate = gate
        self.files = GuardedFiles(gate.call, workspace, gate, gate.announce)
        self.clock = clock
        self.started = time.time()
        self._timer = time.perf_counter()
        self._callbacks = callbacks

    @property
    def syntax(self) -> "Syntax":
        return self.workspace.syntax

    @property
    def media(self) -> "Media":
        return self.workspace.media

    @port_on_first_use
    def commands(self) -> "Commands":
        from handtools.runtime.guards.commands import GuardedCommands

        return GuardedCommands(self.call, self.workspace, self.files, self.announce)

    @port_on_first_use
    def history(self) -> "History":
        from handtools.runtime.undo import GuardedHistory

        return GuardedHistory(self.workspace, self.files)

    @port_on_first_use
    def search(self) -> "Search":
        from handtools.runtime.guards.search import GuardedSearch

        return GuardedSearch(self.workspace, self.gate)

    @port_on_first_use
    def language(self) -> "Language":
        from handtools.runtime.guards.language import GuardedLanguage

        return GuardedLanguage(self.workspace, self.gate)

    @port_on_first_use
    def skills(self) -> "Skills":
        return GuardedSkills(self.workspace, self.gate)

    @port_on_first_use
    def web(self) -> "Web":
        from handtools.runtime.guards.web import GuardedWeb

        return GuardedWeb(self.call, self.workspace.web, self.gate, self.gate.announce)

    @port_on_first_use
    def callbacks(self) -> "Callbacks":
        from handtools.runtime.guards.callbacks import guarded_callbacks

        return guarded_callbacks(self._callbacks, self.files)

    def progress(self, text: str) -> None:
        """Announce a progress message for the user."""
        self.announce(Progressed(self.call.id, text, len(text.encode())))

    def announce(self, event: Event) -> None:
        """Announce an event to listeners, and record progress for other processes to show."""
        if isinstance(event, Progressed):
            kept = event.path.removeprefix(OUTPUT_SCHEME)
            self.workspace.journal.own_running.progress(event.call_id, event.text, event.bytes, kept)
        self.gate.announce(event)

    @property
    def seconds(self) -> float:
        """Seconds since the run began."""
        return time.perf_counter() - self._timer
