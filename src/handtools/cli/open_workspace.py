"""Open a workspace for a CLI command: its journal of calls alone, or its toolbox as well."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from handtools.cli.terminal import CliCommandError, print_remark
from handtools.core.approval import Approval, Reply

if TYPE_CHECKING:
    from handtools.core.files import HostFiles
    from handtools.runtime.journal import Journal
    from handtools.runtime.journal.calls import Calls
    from handtools.runtime.journal.change_entries import ChangeEntries
    from handtools.toolbox import BlockingToolbox

JOURNAL_NAME = "journal.sqlite"


@dataclass(frozen=True, slots=True)
class WorkspaceJournal:
    """A workspace's journal and files, as CLI commands read them, with a builder of suggested next commands."""

    path: Path
    """The workspace folder as given on the command line, not resolved."""
    journal: "Journal"
    files: "HostFiles"

    @property
    def calls(self) -> "Calls":
        """The journal's log of tool calls."""
        return self.journal.calls

    @property
    def entries(self) -> "ChangeEntries":
        """The journal's record of file changes."""
        return self.journal.entries

    def suggested_command(self, *words: str) -> str:
        """A `handtools` command line to suggest to the person as the next step.

        It has `-C FOLDER` when the workspace is not the current folder, and one for each of several folders.
        """
        from handtools.host.workspace_folders import workspace_folders

        folders = workspace_folders(self.path)
        named = [str(self.path)] if "" in folders else folders.values()
        where = [] if self.path == Path() else [word for folder in named for word in ("-C", folder)]
        return shlex.join(["handtools", *words, *where])

    def find_call_id(self, name: str) -> str:
        """The full id of the one recorded call with a change number, or whose id starts with the given text.

        Raises `CliCommandError` when none or several do.
        """
        numbered = self.journal.call_of_change(name)
        found = [numbered] if numbered else self.calls.ids_with_prefix(name)
        if not name or not found:
            raise CliCommandError(
                f"No call `{name}` is recorded here.", f"`{self.suggested_command('log')}` lists the calls."
            )
        if len(found) > 1 and found[0] != name:
            listed = ", ".join(self.calls.short(call_id) for call_id in found)
            raise CliCommandError(f"Several calls begin with `{name}`: {listed}.", "Give more of the id.")
        return found[0]


@contextmanager
def open_journal_at(path: Path) -> Iterator[WorkspaceJournal]:
    """Open the journal of a workspace without loading any tool; closes it at the end.

    Raises `CliCommandError` when nothing is recorded for the folder.
    """
    from handtools.local_journal import open_local_journal

    record = open_local_journal(path)
    if not Path(record.journal.path).exists():
        raise _nothing_recorded(path, Path(record.journal.path).parent)
    try:
        yield WorkspaceJournal(path, record.journal, record.files)
    finally:
        if record.journal.healed:
            print_remark(record.journal.healed)
        record.journal.close()


@contextmanager
def open_toolbox_at(
    path: Path, *, plugins: bool = False, yes: bool = False, runner: str = ""
) -> Iterator[tuple["BlockingToolbox", WorkspaceJournal]]:
    """Open the toolbox of a workspace with its configuration, and its journal, which is closed at the end.

    `plugins` adds tools of installed packages, `yes` approves every call that would be asked about.
    """
    from handtools.configuration import load_configuration
    from handtools.toolbox import BlockingToolbox, coding, everything

    make = everything if plugins else coding
    found = load_configuration(path)
    print_remark(*found.ignored)
    toolbox = make(
        path,
        policy=found.policy,
        settings=found.settings,
        runner=runner,
        approver=approve_all if yes else None,
    )
    try:
        yield (
            BlockingToolbox(toolbox),
            WorkspaceJournal(path, toolbox.workspace.journal, toolbox.workspace.files),
        )
    finally:
        toolbox.workspace.journal.close()


async def approve_all(_: Approval) -> Reply:
    """Approver of a person who types the command: who would be asked has said it."""
    return Reply(allow=True)


def _nothing_recorded(path: Path, state: Path) -> CliCommandError:
    """The error for a folder without a journal; suggests a parent folder that has one."""
    from handtools.host.files.state_folders import workspace_id
    from handtools.host.workspace_folders import workspace_folders

    real = path.resolve()
    folders = workspace_folders(path)
    if "" not in folders:
        words = [word for folder in folders.values() for word in ("-C", folder)]
        return CliCommandError(
            f"No call is recorded for {' and '.join(folders.values())} together.",
            f"`{shlex.join(['handtools', *words, 'call', 'TOOL'])} …` makes one.",
        )
    for above in real.parents:
        if (state.parent / workspace_id(above) / JOURNAL_NAME).exists():
            step = shlex.join(["-C", str(above)])
            return CliCommandError(
                f"No call is recorded for {real}.", f"{above} has a record: add `{step}`."
            )
    return CliCommandError(f"No call is recorded for {real}.", "`handtools call TOOL …` makes one.")
